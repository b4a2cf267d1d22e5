"""Reading single fields of a decoded event.

A field of the wrong type raises `BadEvent` if it could hold a part of the answer; else it is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MAX_NAME_CHARS = 1024
"""Longest id, model name, fingerprint or finish reason that is accepted."""


class BadEvent(ValueError):
    """An event that cannot be believed, so that its reply fails. The message says what is wrong with the event."""


def token_logprobs(stated: object) -> Iterator[object]:
    """The log-probability of each token in a choice's `logprobs`; None where one is missing.

    The chat API has them under `content`, the completions API under `token_logprobs`. stated: the value of `logprobs`,
    unchecked.
    """
    if isinstance(stated, dict):
        if isinstance(content := stated.get("content"), list):
            yield from (token.get("logprob") if isinstance(token, dict) else None for token in content)
        elif isinstance(alone := stated.get("token_logprobs"), list):
            yield from alone


def string_or_none(value: object) -> str | None:
    """`value` if it is a string that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def name_of(name: str, field: str) -> str:
    """`name` itself. Raises `BadEvent` if it is longer than `MAX_NAME_CHARS`. field: its field, for the message."""
    if len(name) > MAX_NAME_CHARS:
        raise BadEvent(f"its {field} has {len(name)} characters, more than {MAX_NAME_CHARS}")
    return name


def reasoning_parts(parts: list[Any]) -> Iterator[str]:
    """The text of each part of a reasoning that is sent as a list. Raises `BadEvent`."""
    for part in parts:
        if type(part) is not dict or type(part.get("text")) is not str:
            raise BadEvent("a part of its reasoning is no text")
        yield part["text"]


def may_hold_text(value: object) -> bool:
    """Whether the value of an unknown field could hold a part of the answer: a string, list or object, not empty."""
    return type(value) in (str, list, dict) and bool(value)


_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}


def json_kind(value: object) -> str:
    """The JSON type of a value, for a message."""
    return _KINDS.get(type(value), "null")
