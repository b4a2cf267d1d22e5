"""Reading LiveCodeBench's private tests, which are a pickled text in zlib in base64, without Python's `pickle`.

A pickle is a list of instructions that can import and call anything, so loading a foreign one is unsafe. This reader
knows only the few instructions that write a text, and refuses all others. Source of the format: CPython,
Lib/pickletools.py.
"""

from __future__ import annotations

import base64
import binascii
import zlib

from harness.extensions.answers.program.tests_of import MAX_TESTS_BYTES

_LENGTH_BYTES = {b"\x8c": 1, b"X": 4, b"\x8d": 8}
"""Instruction that writes a text (SHORT_BINUNICODE, BINUNICODE, BINUNICODE8) → bytes of the length that follows it."""

_PROTO, _FRAME, _STOP = b"\x80", b"\x95", b"."
_MEMO = {b"\x94": 0, b"q": 1, b"r": 4}
"""Instruction that remembers the text (MEMOIZE, BINPUT, LONG_BINPUT) → bytes of its argument, which is skipped."""


def unpacked_text(packed: str) -> str:
    """The text in a cell of packed tests.

    Raises `ValueError` if the cell is not the pickle of exactly one text; the error is the end of a sentence whose
    subject is the cell ("is cut off …").
    """
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(packed, validate=True), MAX_TESTS_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise ValueError(f"is neither JSON nor base64 of a zlib stream: {error}") from error
    if not reader.eof:
        raise ValueError(f"is cut off, or unpacks to more than {MAX_TESTS_BYTES} bytes")
    return pickled_text(data)


def pickled_text(data: bytes) -> str:
    """The text in a pickle. Raises `ValueError` if the pickle is not of exactly one text."""
    offset, text = 0, None
    while offset < len(data):
        code, offset = data[offset : offset + 1], offset + 1
        if code == _PROTO:
            offset += 1
        elif code == _FRAME:
            offset += 8
        elif code in _LENGTH_BYTES and text is None:
            n_bytes = _LENGTH_BYTES[code]
            size = int.from_bytes(data[offset : offset + n_bytes], "little")
            offset += n_bytes
            if offset + size > len(data):
                break
            # pickle writes lone surrogates in this form, and a strict decoder would refuse them.
            text = data[offset : offset + size].decode("utf-8", "surrogatepass")
            offset += size
        elif code in _MEMO and text is not None:
            offset += _MEMO[code]
        elif code == _STOP and text is not None and offset == len(data):
            return text
        else:
            raise ValueError(f"is a pickle that holds more than a text (instruction {code!r} at byte {offset - 1})")
    raise ValueError("is a pickle that is cut off")
