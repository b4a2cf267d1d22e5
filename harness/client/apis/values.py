"""Reading single values in the JSON of replies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.client.apis.api import BadEvent, TextName
from harness.core.reply_notes import NO_PLACE, UNREAD_TEXT


def is_error(value: Mapping[str, Any]) -> bool:
    """Whether an object is an error in place of a reply or an event: with `error`, of type or kind `error` (SGLang), or
    with FastAPI's `detail`.
    """
    return bool(value.get("error") or value.get("detail")) or "error" in (value.get("object"), value.get("type"))


_KINDS = {bool: "true", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
"""A type of JSON's values, as a message names it."""


def string_of(value: object, name: str) -> str:
    """`value`, or an empty text if it is null, false or empty. name: its field's name.

    Raises `BadEvent` for a value of any other type, whose text would be lost.
    """
    if isinstance(value, str):
        return value
    if value or type(value) in (int, float):
        raise BadEvent(f"its {name} is {_KINDS[type(value)]}, not a string")
    return ""


def text_in(value: Mapping[str, Any], name: str, of: TextName) -> tuple[str, list[str]]:
    """The text in the field `name` of a piece, with a note if it is missing. of: the text that the piece is part of.

    Raises `BadEvent` as `string_of` does; reasoning of another type, which is not part of the answer, is noted.
    """
    text = value.get(name)
    if isinstance(text, str):
        return text, []
    return ("", [unread(name)]) if text and of == "reasoning" else (string_of(text, name), [NO_PLACE])


def text_of(value: object) -> str | None:
    """`value` if it is a string that is not empty, otherwise None."""
    return value if isinstance(value, str) and value else None


def object_of(value: object) -> dict[str, Any]:
    """`value` if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def objects_in(value: object, name: str) -> list[dict[str, Any]]:
    """The objects of a list; an empty value is an empty list or object. name: its field's name.

    Raises `BadEvent` for anything else, whose text would be lost.
    """
    objects = [each or {} for each in value] if isinstance(value, list) else value or []
    if not (isinstance(objects, list) and all(isinstance(each, dict) for each in objects)):
        raise BadEvent(f"its {name} are not a list of objects")
    return objects


def place_of(value: Any) -> int | None:
    """The whole number that `value` is or spells; None if it is not a whole number."""
    try:
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        return None


def unread(name: str) -> str:
    """The note that something called `name` is not read."""
    return f"{UNREAD_TEXT}: {name}" if _FIELD_NAME.match(name) else UNREAD_TEXT


def thought_marks(part: Mapping[str, Any]) -> list[str]:
    """Notes on fields that may say that the text beside them is reasoning."""
    return [unread(name) for name, value in part.items() if value is True and _MARKS_A_THOUGHT.search(name)]


_MARKS_A_THOUGHT = re.compile("thought|think|reason")
_FIELD_NAME = re.compile(r"[A-Za-z_]{1,40}\Z")
