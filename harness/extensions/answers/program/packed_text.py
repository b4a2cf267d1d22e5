"""Reading LiveCodeBench's private tests, which are a pickled text in zlib in base64, without Python's `pickle`.

A pickle is a list of instructions that can import and call anything, so loading a foreign one is unsafe. Here the
instructions are listed, none is executed, and all are refused but the few that write a text.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib

from harness.extensions.answers.program.tests_of import MAX_TESTS_BYTES

_TEXTS = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
"""Instructions that write a text."""
_MEMO = {"MEMOIZE", "BINPUT", "LONG_BINPUT"}
"""Instructions that only remember the text."""


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
    text = None
    try:
        for instruction, argument, offset in pickletools.genops(data):
            name = instruction.name
            if name in _TEXTS and text is None:
                text = str(argument)
            elif name == "STOP" and text is not None and offset == len(data) - 1:
                return text
            elif not (name in ("PROTO", "FRAME") or (name in _MEMO and text is not None)):
                raise ValueError(f"is a pickle that holds more than a text (instruction {name} at byte {offset})")
    except ValueError as error:
        if str(error).startswith("is a pickle"):
            raise
    raise ValueError("is a pickle that is cut off or damaged")
