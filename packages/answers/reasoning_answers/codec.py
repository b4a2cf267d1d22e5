"""JSON and SHA-256 digests of JSON values.

msgspec encodes and decodes, because it is fast. It rejects lone surrogates (``"\\ud800"``), which a model can send.
Values that contain them go through the standard library's `json`, which stores them escaped and reads them back equal.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


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


def mistake_in_words(error: Exception, expected_type: Any) -> str:
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
        message = f"expected {_types_in_words(types[1])}, found {_types_in_words(types[2])}"
    return f"{field}{message}"


def _types_in_words(types: str) -> str:
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
        raise DecodeError(mistake_in_words(error, type)) from error
    except RecursionError as error:
        raise DecodeError("nested too deeply") from error


def digest(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON of `value`: sorted keys, no spaces, ASCII escapes."""
    # ASCII escapes, because a lone surrogate has no UTF-8 form.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
