"""Reading single values in the JSON of replies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.client.apis.api import BadEvent
from harness.core.reply_notes import UNREAD_TEXT


def is_error(value: Mapping[str, Any]) -> bool:
    """Whether an object is an error in place of a reply or an event: with `error`, of type or kind `error` (SGLang), or
    with FastAPI's `detail`.
    """
    return bool(value.get("error") or value.get("detail")) or "error" in (value.get("object"), value.get("type"))


def string_of(value: object, name: str) -> str:
    """`value`, or an empty text if it is missing. Raises `BadEvent` if it is not a string. name: its field's name."""
    if value is not None and not isinstance(value, str):
        raise BadEvent(f"its {name} is not a string")
    return value or ""


def string_or_none(value: object) -> str | None:
    """`value` if it is a non-empty string, otherwise None."""
    return value if isinstance(value, str) and value else None


def object_of(value: object) -> dict[str, Any]:
    """`value` if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def unread(name: str) -> str:
    """The note that something called `name` is not read."""
    return f"{UNREAD_TEXT}: {name}" if _FIELD_NAME.match(name) else UNREAD_TEXT


_FIELD_NAME = re.compile(r"[A-Za-z_]{1,40}\Z")
