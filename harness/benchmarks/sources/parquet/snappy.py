"""Data packed by Snappy, unpacked without its library: pages of Parquet files are small.

Source: format_description.txt of github.com/google/snappy. Guarantees: at most `n_bytes` bytes are written.
"""

from __future__ import annotations

from harness.benchmarks.sources.parquet.thrift import ByteReader, DamagedError

_LITERAL, _COPY_1, _COPY_2, _COPY_4 = range(4)


def unpack(data: memoryview, n_bytes: int) -> bytes:
    """The unpacked bytes of `data`. n_bytes: their expected number. Raises `DamagedError` if it is another."""
    start = ByteReader(data)
    stated = start.varint()
    if stated != n_bytes:
        raise DamagedError(f"a page's header states {n_bytes} unpacked bytes, but its Snappy data state {stated}")
    packed, position, out = bytes(data), start.position, bytearray()
    end = len(packed)
    while position < end and len(out) <= n_bytes:
        tag = packed[position]
        position += 1
        kind = tag & 3
        if kind == _LITERAL:
            length = (tag >> 2) + 1
            if length > 60:  # the length stands in the next 1 to 4 bytes
                extra = length - 60
                length = int.from_bytes(packed[position : position + extra], "little") + 1
                position += extra
            out += packed[position : position + length]
            position += length
            continue
        # A copy of `length` bytes that begin `offset` bytes before the end of the output. The low bits of the offset
        # are the next `extra` bytes; its high bits are in the tag of the shortest kind of copy.
        if kind == _COPY_1:
            length, extra, high = 4 + (tag >> 2 & 7), 1, (tag >> 5) << 8
        else:
            length, high = (tag >> 2) + 1, 0
            extra = 2 if kind == _COPY_2 else 4
        offset = high | int.from_bytes(packed[position : position + extra], "little")
        position += extra
        begin = len(out) - offset
        if not 0 <= begin < len(out):
            raise DamagedError("a page's Snappy data copy from before their beginning")
        if offset >= length:
            out += out[begin : begin + length]
        else:  # the copy reads what it writes: the last `offset` bytes again and again
            out += (out[begin:] * (length // offset + 1))[:length]
    if len(out) != n_bytes or position > end:
        raise DamagedError("a page's Snappy data end too early")
    return bytes(out)
