"""Pydantic's objections as one sentence for the person who wrote the value."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from harness.core.errors import near_names
from harness.core.inert import quoted, visible

if TYPE_CHECKING:  # who has an error to explain has imported pydantic already
    from pydantic import ValidationError


class Problem(NamedTuple):
    """The first thing wrong with a value. All four are safe to print.

    field: dotted path, empty for the value as a whole. complaint: what is wrong with it, without its name.
    found: Python's notation of what stands there, clipped; empty for a mapping. sentence: all of it, to stand alone.
    """

    field: str
    complaint: str
    found: str
    sentence: str


def first_problem(error: ValidationError, known: Collection[str] = ()) -> Problem:
    """The problem to tell first. `known`: names that a misspelt key may have meant."""
    problems = error.errors(include_url=False, include_context=False)
    # A misspelt key is also a missing one; the misspelling says more.
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    field = visible(".".join(str(part) for part in first["loc"]), 200)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if first["type"] == "extra_forbidden":
        near = near_names(str(first["loc"][-1]), known)
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
    found = "" if isinstance(first["input"], dict) else quoted(repr(first["input"]))
    told = f"{complaint}{f', found {found}' if found else ''}{more}"
    return Problem(field, complaint, found, f"{field}: {told}" if field else told)
