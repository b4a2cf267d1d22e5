"""JSON for files, the network and pipes, SHA-256 digests of JSON values, and the seed of each sample.

msgspec encodes and decodes, because it is fast. It rejects lone surrogates (``"\\ud800"``), which a model can send.
Values that contain them go through the standard library's `json`, which stores them escaped and reads them back equal.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterable
from typing import Any, BinaryIO, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")

_MAX_DIGITS = 20
"""Longest integer that `decode_loosely` keeps, in digits: 64 bits and a sign fit."""

_ACTING = re.compile(rb"\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
"""Characters that change what a terminal shows: U+0080 to U+009F and bidirectional controls, as UTF-8 bytes."""

_encoder = msgspec.json.Encoder()
_FRAME_LENGTH = struct.Struct(">I")


class DecodeError(ValueError):
    """The bytes are not JSON, or not of the expected shape."""


_TYPES = {
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
"""msgspec's name for a type → ours."""
_EXPECTED = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
"""msgspec's message about a value of the wrong type; the groups are the types."""
_PLACE = re.compile(r"(?s)(.*) - at `(?:key in )?\$\.?(.*)`")
"""msgspec's message followed by the path of the field; the groups are the message and the path."""


def describe_mistake(error: Exception, expected_type: Any) -> str:
    """msgspec's message in users' terms: `grader: expected a text, found a list`. Other errors keep their message.

    expected_type: the type that the value should have; it determines the values that a field may have.
    """
    if not isinstance(error, msgspec.ValidationError):
        return str(error)
    message, field = str(error).removeprefix("Object ").removeprefix("contains "), ""
    if (placed := _PLACE.fullmatch(message)) is not None:
        message, field = placed[1], f"{placed[2]}: " if placed[2] else ""
    if message.startswith("Invalid enum value"):
        choices = _choices(expected_type, placed[2] if placed else "")
        listed = f"; expected {', '.join(choices[:-1])} or {choices[-1]}" if len(choices) > 1 else ""
        message = f"{message.replace('Invalid enum value', 'unknown value')}{listed}"
    elif (types := _EXPECTED.fullmatch(message)) is not None:
        message = f"expected {_type_names(types[1])}, found {_type_names(types[2])}"
    return f"{field}{message}"


def _type_names(types: str) -> str:
    """Types as msgspec lists them (`str | null`), in our words (`a text or nothing`)."""
    return " or ".join(_TYPES.get(name, name) for name in types.split(" | "))


def _choices(expected_type: Any, field: str) -> list[str]:
    """The values that a field of this type may have; empty if they are not restricted to a list.

    field: the path of the field as msgspec writes it, such as `rows[...].verdict`.
    """
    nodes = _alternatives(inspect.type_info(expected_type))
    for part in re.findall(r"\[[^\]]*\]|[^.\[]+", field):
        below = (child for node in nodes for child in _children(node, part))
        nodes = [alternative for child in below for alternative in _alternatives(child)]
    values = [value for node in nodes if isinstance(node, inspect.LiteralType) for value in node.values]
    null = ["null"] if values and any(isinstance(node, inspect.NoneType) for node in nodes) else []
    return [*map(str, values), *null]


def _alternatives(node: inspect.Type) -> list[inspect.Type]:
    """The types that a union allows; for any other type, only that type."""
    return [*node.types] if isinstance(node, inspect.UnionType) else [node]


def _children(node: inspect.Type, part: str) -> Iterable[inspect.Type]:
    """The types of a field (`verdict`) or an element (`[...]`) of a value of type `node`."""
    match node:
        case inspect.StructType():
            return [field.type for field in node.fields if field.encode_name == part]
        case inspect.ListType() | inspect.SetType() | inspect.FrozenSetType() | inspect.VarTupleType():
            return [node.item_type]
        case inspect.TupleType():
            return node.item_types
        case inspect.DictType():
            return [node.value_type]
    return []


def encode(value: Any) -> bytes:
    """One line of JSON in UTF-8, without the newline."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii")


def decode(data: bytes | str, type: type[T] = Any) -> T:  # type: ignore[assignment]
    """The value in `data`, checked against `type`. Raises `DecodeError`."""
    try:
        try:
            return msgspec.json.decode(data, type=type)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Only an escaped surrogate is worth a second attempt with the slower decoder.
            if b"\\ud" not in (data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")).lower():
                raise
            return msgspec.convert(json.loads(data), type)
    except (msgspec.DecodeError, ValueError) as error:
        raise DecodeError(describe_mistake(error, type)) from error
    except RecursionError as error:
        raise DecodeError("nested too deeply") from error


def encode_strictly(value: Any) -> bytes:
    """Like `encode`, but with U+FFFD in place of each lone surrogate, which strict readers reject."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), separators=(",", ":"), ensure_ascii=False)
        return without_lone_surrogates(text).encode()


def without_lone_surrogates(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    # In UTF-16, two surrogates that form a pair are read as one character, so only lone surrogates are replaced.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def holds_more_than(most: int, data: bytes) -> bool:
    """Whether the JSON in `data` may contain more than `most` values, judging by its commas and brackets.

    Readers of foreign JSON check this before they decode, because a value takes many times its bytes in memory.
    """
    return data.count(b",") + data.count(b"[") + data.count(b"{") > most


def escape_line(line: bytes) -> bytes:
    """A line of JSON, safe to print: characters that would control a terminal are escaped; the value is the same."""
    # Such characters can only occur inside JSON strings, where an escape means the same.
    if line.isascii():  # a hundred times as fast as the search
        return line
    return _ACTING.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), line)


def former_keys(type: Any) -> tuple[tuple[bytes, bytes], ...]:
    """The `FORMER_KEYS` of a record: (pattern of a key as files of earlier versions spell it, its present spelling)."""
    keys: tuple[tuple[bytes, bytes], ...] = getattr(type, "FORMER_KEYS", ())
    return keys


def with_present_keys(data: bytes, former: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """JSON of a stored record with its keys as they are spelled today."""
    for pattern, key in former:
        data = re.sub(pattern, key, data)
    return data


def decode_loosely(data: bytes) -> Any:
    """The value in `data`, read leniently because other programs write such JSON. Raises `DecodeError`.

    Keeps lone surrogates. A number that does not fit a float or 64 bits (NaN, 1e400, thousands of digits) becomes None.
    """
    try:
        return json.loads(data.decode(), **_NUMBERS)
    # UnicodeDecodeError is a ValueError, too.
    except ValueError as error:
        raise DecodeError(str(error)) from error
    except RecursionError as error:
        raise DecodeError("nested too deeply") from error


def values_in(text: str) -> list[Any]:
    """The values in a text, one after another, each read as by `decode_loosely`; strings may contain control
    characters. Raises `DecodeError`.
    """
    decoder, values, at = json.JSONDecoder(**_NUMBERS, strict=False), [], 0
    try:
        while at < len(text):
            if text[at] in " \t\r\n":
                at += 1
                continue
            value, at = decoder.raw_decode(text, at)
            values.append(value)
    except (ValueError, RecursionError) as error:
        raise DecodeError(str(error)) from error
    return values


def _finite(digits: str) -> float | None:
    """The number in JSON; None if it does not fit a float, such as 1e400."""
    value = float(digits)
    return value if math.isfinite(value) else None


def _integer(digits: str) -> int | None:
    """The integer in JSON; None if it has too many digits."""
    return int(digits) if len(digits) <= _MAX_DIGITS else None


_NUMBERS: Any = {"parse_constant": lambda _: None, "parse_float": _finite, "parse_int": _integer}
"""The arguments of `json` with which a number that fits nowhere becomes None."""


def pretty(value: Any) -> bytes:
    """Indented JSON with a final newline, for files that people open."""
    line = encode(value)
    try:
        return msgspec.json.format(line, indent=2) + b"\n"
    except msgspec.DecodeError:  # it contains an escaped lone surrogate
        return json.dumps(json.loads(line), indent=2).encode("ascii") + b"\n"


# ---- digests


_SEED_RANGE = (1 << 31) - 1
"""Number of different seeds. Servers store a seed in a signed 32-bit integer, and some interpret 0 as "no seed"."""


def frame(message: Any) -> bytes:
    """A message for a pipe: a big-endian length in four bytes, then JSON."""
    body = encode(message)
    return _FRAME_LENGTH.pack(len(body)) + body


def read_frame(stream: BinaryIO, max_bytes: int) -> bytes | None:
    """Read the JSON of the next frame; None at the end of the stream, or if the frame is longer than `max_bytes`."""
    header = stream.read(_FRAME_LENGTH.size)
    if len(header) < _FRAME_LENGTH.size:
        return None
    (size,) = _FRAME_LENGTH.unpack(header)
    if size > max_bytes:
        return None
    body = stream.read(size)
    return body if len(body) == size else None


def take_frame(buffer: bytearray, max_bytes: int) -> bytes | None:
    """Remove the first frame from a pipe's buffer and return its JSON; None while the frame is incomplete.

    Raises `DecodeError` for a frame that is longer than `max_bytes`.
    """
    if len(buffer) < _FRAME_LENGTH.size:
        return None
    end = _FRAME_LENGTH.size + _FRAME_LENGTH.unpack_from(buffer)[0]
    if end > _FRAME_LENGTH.size + max_bytes:
        raise DecodeError("the frame exceeds its size limit")
    if len(buffer) < end:
        return None
    body = bytes(buffer[_FRAME_LENGTH.size : end])
    del buffer[:end]
    return body


def digest(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON of `value`: sorted keys, no spaces, ASCII escapes."""
    # ASCII escapes, because a lone surrogate has no UTF-8 form.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def digest_of_each(values: Iterable[Any]) -> str:
    """`digest` of the list of `values`, computed one value at a time, so that the list's text is never in memory."""
    hashed = hashlib.sha256()
    before = b"["
    for value in values:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        hashed.update(before + text.encode("ascii"))
        before = b","
    # For an empty list, the opening bracket is still missing.
    hashed.update(b"]" if before == b"," else b"[]")
    return hashed.hexdigest()


def sample_seed(run_seed: int, question_id: str, sample_index: int) -> int:
    """The seed sent with the request for one sample: 1 to 2**31 - 1, the same when a run resumes."""
    text = f"{run_seed}\0{question_id}\0{sample_index}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
    return number % _SEED_RANGE + 1
