"""Pydantic's objections as one sentence for the person who wrote the value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.core.errors import near_names
from harness.core.inert import quoted, visible
from harness.core.secret import sealed, secrets_in

if TYPE_CHECKING:  # who has an error to explain has imported pydantic already
    from pydantic import ValidationError


_HOLD_KEYS = frozenset({"environment", "env", "header", "extra_body", "chat_template_kwargs", "api_key_file"})
"""Fields in whose values a key may stand under any name, or under none."""


class Problem(NamedTuple):
    """The first thing wrong with a value. All four texts are safe to print.

    field: dotted path, empty for the value as a whole. complaint: what is wrong, without the field's name. value: the
    value in Python's notation, clipped; empty for a mapping, and for what may hold a key.
    sentence: field, complaint and value, to stand alone.
    """

    field: str
    complaint: str
    value: str
    sentence: str


def first_problem(error: ValidationError, names: Collection[str] = ()) -> Problem:
    """The problem to name first. names: the known keys, one of which a misspelt key may have meant."""
    problems = error.errors(include_url=False, include_context=False)
    # A misspelt key is also a missing one; the misspelling says more.
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    field = visible(".".join(str(part) for part in first["loc"]), 200)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if first["type"] == "extra_forbidden":
        near = near_names(str(first["loc"][-1]), names)
        return Problem(field, f"is unknown.{near}", "", f"unknown key {field!r}.{near}{more}")
    if first["type"] == "missing":
        return Problem(field, "is missing", "", f"the key {field!r} is missing{more}")
    # Pydantic speaks Python; what people write is YAML, JSON or a command line.
    spoken = (
        first["msg"]
        .replace("valid tuple", "valid list")
        .replace("Tuple should", "List should")
        .replace("valid dictionary", "mapping")
    )
    complaint = visible(spoken.removeprefix("Value error, ").removeprefix("Assertion failed, "))
    input_text = "" if _may_be_secret(first["loc"], first["input"]) else quoted(repr(first["input"]))
    sentence = f"{complaint}{f', found {input_text}' if input_text else ''}{more}"
    return Problem(field, complaint, input_text, f"{field}: {sentence}" if field else sentence)


def _may_be_secret(where: Sequence[object], value: object) -> bool:
    """Whether a value, or a mapping that one of its fields holds, is one that nobody should read.

    Variables and headers hold keys under any name.
    """
    if isinstance(value, dict) or not _HOLD_KEYS.isdisjoint(where):
        return True
    shown = sealed(value, str(where[-1]) if where else "")
    return next(secrets_in(shown), None) is not None
