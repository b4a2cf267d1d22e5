"""Shortens a GGUF model: its tokenizer and chat template stay, most of its blocks go, and with them most of the work.

header: magic, version, n tensors, n metadata │ metadata │ name, shape, type, offset of each tensor │ padding │ data
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

ALIGNMENT = 32
"""Bytes: the data of each tensor begins at a multiple of it, in a file whose metadata name no other."""

STRING, ARRAY = 8, 9
FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Formats of `struct` by GGUF's numbers of the types of metadata, but the two above."""


def shorten(whole: Path, shorter: Path, n_blocks: int) -> None:
    """Write the model with its first `n_blocks` blocks."""
    with whole.open("rb") as file:
        magic, n_tensors, n_entries = file.read(8), _number(file, "Q"), _number(file, "Q")
        entries = [_entry(file) for _ in range(n_entries)]
        tensors = [_tensor(file) for _ in range(n_tensors)]
        data = _aligned(file.tell())
        ends = dict(zip(offsets := sorted(offset for *_, offset in tensors), offsets[1:], strict=False))
        kept, blocks = [], []
        for name, shape, offset in tensors:
            part = name.split(".")
            if part[0] != "blk" or int(part[1]) < n_blocks:
                file.seek(data + offset)
                kept.append((name, shape))
                blocks.append(file.read(ends[offset] - offset if offset in ends else -1))
    with shorter.open("wb") as file:
        file.write(magic + struct.pack("<QQ", len(kept), n_entries))
        for key, entry in entries:
            file.write(entry[:-4] + struct.pack("<I", n_blocks) if key.endswith(".block_count") else entry)
        offset = 0
        for (_, described), block in zip(kept, blocks, strict=True):
            file.write(described + struct.pack("<Q", offset))
            offset += _aligned(len(block))
        for block in (b"", *blocks):
            file.write(block)
            file.write(bytes(_aligned(file.tell()) - file.tell()))


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _number(file: BinaryIO, form: str) -> Any:
    return struct.unpack(f"<{form}", file.read(struct.calcsize(form)))[0]


def _skip(file: BinaryIO, kind: int) -> None:
    """Pass over a value of metadata."""
    if kind == STRING:
        file.seek(_number(file, "Q"), 1)
    elif kind == ARRAY:
        kind, n = _number(file, "I"), _number(file, "Q")
        for _ in range(n):
            _skip(file, kind)
    else:
        file.seek(struct.calcsize(FORMATS[kind]), 1)


def _entry(file: BinaryIO) -> tuple[str, bytes]:
    """The key of an entry of metadata, and its bytes."""
    begin = file.tell()
    key = file.read(_number(file, "Q")).decode()
    _skip(file, _number(file, "I"))
    length = file.tell() - begin
    file.seek(begin)
    return key, file.read(length)


def _tensor(file: BinaryIO) -> tuple[str, bytes, int]:
    """The name of a tensor, the bytes that describe it but for its offset, and the offset."""
    begin = file.tell()
    name = file.read(_number(file, "Q")).decode()
    file.seek(8 * _number(file, "I") + 4, 1)
    length = file.tell() - begin
    file.seek(begin)
    return name, file.read(length), _number(file, "Q")
