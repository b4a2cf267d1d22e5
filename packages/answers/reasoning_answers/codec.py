"""JSON of references and function calls, and checksums of texts.

msgspec encodes and decodes, because it is fast. It rejects lone surrogates (``"\\ud800"``), which a model can send.
Values that contain them go through the standard library's `json`, which stores them escaped and reads them back equal.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encoder, _sorting = msgspec.json.Encoder(), msgspec.json.Encoder(order="deterministic")


def encode(value: Any, *, in_order: bool = False) -> bytes:
    """One line of JSON in UTF-8, without the newline. in_order: sort the keys of objects."""
    try:
        return (_sorting if in_order else _encoder).encode(value)
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"), sort_keys=in_order).encode("ascii")


def decode(data: bytes | str, type: type[T] = Any) -> T:  # type: ignore[assignment]
    """The value in `data`, checked against `type`. Raises `ValueError` if it is not JSON, or not of this type."""
    try:
        try:
            return msgspec.json.decode(data, type=type)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Only an escaped surrogate is worth a second attempt with the slower decoder.
            if b"\\ud" not in (data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")).lower():
                raise
            return msgspec.convert(json.loads(data), type)
    except (msgspec.DecodeError, ValueError) as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def digest(text: str) -> str:
    """SHA-256 (hex) of a text as JSON with ASCII escapes, because a lone surrogate has no UTF-8 form."""
    return hashlib.sha256(json.dumps(text).encode("ascii")).hexdigest()
