"""Single fields of a decoded event: what they are if they are of the usual kind, and `BadEvent` where no sample may be
made of an event that holds them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from harness.client.protocol.reply import MAX_LIKELIEST

MAX_NAME_CHARS = 1024
"""Longest id, model's name, fingerprint or finish reason; a longer one is no name."""


class BadEvent(ValueError):
    """An event that no sample may be made of. The message says what is wrong with it."""


def token_logprobs(stated: object) -> Iterator[object]:
    """Of each token, as chat completions have them (`content`) or as plain completions do (`token_logprobs`)."""
    if isinstance(stated, dict):
        if isinstance(content := stated.get("content"), list):
            yield from (token.get("logprob") if isinstance(token, dict) else None for token in content)
        elif isinstance(alone := stated.get("token_logprobs"), list):
            yield from alone


def likeliest_of(stated: object) -> dict[str, float]:
    """Token → log-probability; empty where it is anything else, or more than a server lists."""
    if (
        type(stated) is not dict
        or len(stated) > MAX_LIKELIEST
        or sum(map(len, stated)) > MAX_LIKELIEST * MAX_NAME_CHARS
    ):
        return {}
    numbers = {token: value for token, value in stated.items() if type(value) in (int, float) and math.isfinite(value)}
    return numbers if len(numbers) == len(stated) else {}


def string_or_none(value: object) -> str | None:
    """A string that says something."""
    return value if isinstance(value, str) and value else None


def name_of(name: str, field: str) -> str:
    """`name`, if it is no longer than a name. Raises `BadEvent`."""
    if len(name) > MAX_NAME_CHARS:
        raise BadEvent(f"its {field} has {len(name)} characters, which no name has")
    return name


def thoughts_of(parts: list[Any]) -> Iterator[str]:
    """The texts of a reasoning that is sent as parts. Raises `BadEvent`."""
    for part in parts:
        if type(part) is not dict or type(part.get("text")) is not str:
            raise BadEvent("a part of its thinking is no text")
        yield part["text"]


def may_hold_text(value: object) -> bool:
    """Whether an unknown field of a delta may hold a part of the answer: a string, or a list or object of anything."""
    return type(value) in (str, list, dict) and bool(value)


_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}


def json_kind(value: object) -> str:
    """The JSON type of a value, for a message."""
    return _KINDS.get(type(value), "null")
