"""Pydantic's validation errors, turned into one sentence for the person who wrote the value."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted, visible
from harness.core.secret import seal_secrets, secrets_in

if TYPE_CHECKING:  # a caller with such an error has imported pydantic already
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


_IN_WORDS = (
    (r"^Input should be (?=(greater|less) )", "expected a number "),
    (
        r"^(?:List|Tuple|Value) should have (at (?:least|most) \d+) items? after validation, not (\d+)",
        r"expected \1, found \2",
    ),
    (
        r"^String should match pattern '\^\[a-z0-9\]\[a-z0-9\._-\].*",
        "expected at most 80 small letters, digits, . _ -, a letter or digit first",
    ),
    (r"^String should match pattern '\^\[0-9a-f\]\{(\d+)\}.*", r"expected \1 digits of 0-9 a-f"),
    (r"^String should match pattern '\^https.*", "expected an address that begins with https://"),
    (r"^String should match pattern '\^\(100.*", "expected a number from 0 to 100, such as 61.2"),
    (r"^String should match pattern '(.*)'$", r"expected a text of the form \1"),
    (r"^String should have (at least \d+ characters?)", r"expected \1"),
    (r"^Input is not a valid path.*", "expected a path"),
    (r"Input should be", "expected"),
    (r" or instance of \w+$", ""),
    (r"valid (?:list|tuple)", "list in brackets"),
    ("Tuple should", "List should"),
    ("valid dictionary", "mapping"),
    (r"valid string, unable to parse raw data as a unicode string", "text in UTF-8"),
    (r"^(Value error|Assertion failed), ", ""),
)
"""(pattern of pydantic's wording, our words for it): `Input should be greater …` → `expected a number greater …`. The
person wrote YAML, JSON or a command line; pydantic's words are Python's.
"""

_HOLD_KEYS = frozenset({"environment", "env", "header", "extra_body", "chat_template_kwargs"})
"""Fields that may hold a key under any name or under none, so their values are never shown."""


class Problem(NamedTuple):
    """The first problem in a value that pydantic refused. All four texts are safe to print.

    field: dotted path to the problem; empty if it is the value as a whole. complaint: what is wrong, without the
    field's name. value: the refused value in Python's notation, cut; empty for a mapping and for a value that may hold
    a key. sentence: the first three in one sentence.
    """

    field: str
    complaint: str
    value: str
    sentence: str


M = TypeVar("M", bound="BaseModel")


def validated(model: type[M], value: Any, where: str, names: Collection[str] = ()) -> M:
    """The value as the model. where: its file or name, before the sentence of the `UsageError` for the first problem.

    names: the known keys, for "Did you mean …?".
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise UsageError(f"{where}: {first_problem(error, names, value).sentence}") from None


def first_problem(error: ValidationError, names: Collection[str] = (), value: Any = None) -> Problem:
    """Choose the most helpful problem in a pydantic error. names: the known keys, for "Did you mean …?". value: what
    was refused.
    """
    problems = located(error.errors(include_url=False, include_context=False), value)
    return problem_of(first_of(problems), names)


_NAME_OF_KIND = re.compile(r"str|int|float|bool|list|dict|tuple|constrained-\w+|[\w-]*\[.*\]")
"""A kind of value as pydantic names it in the path to a problem, such as `list[str]`."""


def located(problems: Sequence[ErrorDetails], value: Any) -> list[ErrorDetails]:
    """The problems with paths of keys and indices alone, without the names of the kinds that pydantic tried at a value
    of several kinds; there, only the deepest problems are left, and those at one path are one.

    value: what was refused.
    """
    by_path: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for problem in problems:
        inner, path = value, list[str | int]()
        for part in problem["loc"]:
            is_key = isinstance(inner, dict | list) and part in (
                inner if isinstance(inner, dict) else range(len(inner))
            )
            if is_key or not _NAME_OF_KIND.fullmatch(str(part)):
                inner = inner[part] if is_key else None
                path.append(part)
        by_path.setdefault(tuple(path), []).append(problem)
    cleaned: list[ErrorDetails] = []
    for keys, at_path in by_path.items():
        is_deepest = not any(deeper[: len(keys)] == keys != deeper for deeper in by_path)
        if is_deepest:
            # What was found instead stands last.
            complaints = sorted(dict.fromkeys(map(_complaint, at_path)), key=lambda words: ", found " in words)
            words = " or ".join(complaints).replace(" or expected ", " or ")
            cleaned.append({**at_path[0], "loc": keys, "msg": words if len(at_path) > 1 else at_path[0]["msg"]})
    return cleaned


def first_of(problems: Sequence[ErrorDetails]) -> ErrorDetails:
    """The problem that helps most. A misspelt key causes two, "unknown" and "missing"; the first helps more."""
    return next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])


def problem_of(first: ErrorDetails, names: Collection[str] = ()) -> Problem:
    """One problem of a pydantic error in words."""
    field = visible(".".join(str(part) for part in first["loc"]), 200)
    if first["type"] == "extra_forbidden":
        key = str(first["loc"][-1])
        near = "" if key in names else near_names(key, names)  # a key of another place is not misspelt
        return Problem(field, f"is unknown.{near}", "", f"unknown key {field!r}.{near}")
    if first["type"] == "missing":
        return Problem(field, "is missing", "", f"the key {field!r} is missing")
    complaint = visible(_complaint(first))
    input_text = "" if _may_be_secret(first["loc"], first["input"]) else quoted(repr(first["input"]))
    near = ""
    if first["type"] in ("literal_error", "enum") and input_text:
        near = near_names(str(first["input"]), re.findall(r"'([^']*)'", complaint))
    # A key of YAML that is true or false was written as a word where a text is expected.
    yaml = " (YAML reads yes, no, on and off as true and false: quote the word)" if _is_yaml_word(first) else ""
    # A list of the wrong length is counted in the complaint.
    shown = f", found {input_text}" if input_text and ", found " not in complaint else ""
    sentence = f"{complaint}{shown}{yaml}{f'.{near}' if near else ''}"
    return Problem(field, complaint, input_text, f"{field}: {sentence}" if field else sentence)


def _complaint(problem: ErrorDetails) -> str:
    """What is wrong with a value, in our words."""
    complaint = problem["msg"]
    for theirs, ours in _IN_WORDS:
        complaint = re.sub(theirs, ours, complaint)
    return complaint


def _is_yaml_word(problem: ErrorDetails) -> bool:
    """Whether a text was expected and YAML has read the word as true or false."""
    return problem["type"] == "string_type" and isinstance(problem["input"], bool)


def _may_be_secret(where: Sequence[object], value: object) -> bool:
    """Whether a refused value must not be shown: it holds a key, or it is of a kind that may hold a key anywhere.

    where: the path to the value, field names and indices.
    """
    if isinstance(value, dict) or not _HOLD_KEYS.isdisjoint(where):
        return True
    shown = seal_secrets(value, str(where[-1]) if where else "")
    return next(secrets_in(shown), None) is not None
