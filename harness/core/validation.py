"""Pydantic's validation errors, turned into one sentence for the person who wrote the value."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin

from harness.core.errors import UsageError, misspelled
from harness.core.sanitize import quoted, visible
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
"""(pattern of pydantic's wording, our wording): `Input should be greater …` → `expected a number greater …`. The person
wrote YAML, JSON or a command line, but pydantic uses Python's terms.
"""

_HOLD_KEYS = frozenset({"environment", "env", "header", "extra_body", "chat_template_kwargs"})
"""Fields that may contain a key under any name or without a name, so their values are never shown."""


MAX_DEPTH = 6
"""Largest number of mappings around a key that a sentence names."""

MAX_PLACES = 3
"""Largest number of places of a key that a sentence names."""


class Problem(NamedTuple):
    """The first problem in a value that pydantic rejected. All texts are safe to print.

    keys: the path to the problem; empty if the problem is the value as a whole. field: the same path with dots.
    complaint: what is wrong, without the field's name and the rejected value. sentence: the field's name, the value and
    the complaint; a mapping, or a value that may contain a key, is left out.
    """

    keys: tuple[str | int, ...]
    field: str
    complaint: str
    sentence: str


class PartInvalid(ValueError):
    """Raised by a validator of a value for a part of it. keys: the path to the part."""

    def __init__(self, keys: tuple[str, ...], why: object) -> None:
        super().__init__(str(why))
        self.keys = keys


M = TypeVar("M", bound="BaseModel")


def validated(model: type[M], value: Any, where: str) -> M:
    """The value as an instance of the model. where: its file or name, which precedes the sentence of the `UsageError`
    for the first problem.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise UsageError(f"{where}: {first_problem(error, places_in(model), value).sentence}") from None


Places = Mapping[str, Collection[str]]
"""Each key that a file may have → its paths in the file, with NAME for a name that the user chooses."""


def places_in(kind: Any, path: str = "") -> dict[str, list[str]]:
    """The places of the keys of a file. kind: its type, a pydantic model or options. path: where it is."""
    places: dict[str, list[str]] = {}
    if isinstance(kind, type) and not get_args(kind):
        fields = getattr(kind, "model_fields", None) or getattr(kind, "_table", {})  # of `Options`
        inner = {name: getattr(field, "annotation", None) for name, field in fields.items() if name[0] != "_"}
        for name in inner:
            places.setdefault(name, []).append(path + name)
        deeper = [(value, f"{path}{name}.") for name, value in inner.items()]
    elif get_origin(kind) in (dict, Mapping):
        keys, values = get_args(kind)
        for name in map(str, get_args(keys)):
            places.setdefault(name, []).append(path + name)
        deeper = [(values, f"{path}NAME.")]
    else:
        deeper = [(each, path) for each in get_args(kind)]
    for value, at in deeper:
        if at.count(".") < MAX_DEPTH:
            for name, found in places_in(value, at).items():
                places[name] = [*dict.fromkeys((*places.get(name, ()), *found))]
    return places


def first_problem(error: ValidationError, names: Collection[str] | Places = (), value: Any = None) -> Problem:
    """The most helpful problem in a pydantic error. names: as in `problem_of`. value: what was rejected."""
    problems = located(error.errors(include_url=False), value)
    # A misspelled key causes two problems, "unknown" and "missing"; the first is more helpful.
    return problem_of(next((each for each in problems if each["type"] == "extra_forbidden"), problems[0]), names)


_NAME_OF_KIND = re.compile(r"str|int|float|bool|list|dict|tuple|constrained-\w+|[\w-]*\[.*\]")
"""A type of value as pydantic names it in the path to a problem, such as `list[str]`."""


def located(problems: Sequence[ErrorDetails], value: Any) -> list[ErrorDetails]:
    """The problems, one for each path; the paths consist only of keys and indices.

    For a value of several possible types, pydantic reports a problem for each type. Problems with the same path are
    merged, and those above a deeper one are left out. value: what was rejected.
    """
    by_path: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for problem in problems:
        part = getattr(problem.get("ctx", {}).get("error"), "keys", ())
        by_path.setdefault((*_keys_to(problem["loc"], value), *part), []).append(problem)
    merged: list[ErrorDetails] = []
    for keys, at_path in by_path.items():
        has_deeper = any(deeper[: len(keys)] == keys != deeper for deeper in by_path)
        if not has_deeper:
            # What was found instead comes last.
            complaints = sorted(dict.fromkeys(map(_complaint, at_path)), key=lambda words: ", found " in words)
            words = " or ".join(complaints).replace(" or expected ", " or ")
            merged.append({**at_path[0], "loc": keys, "msg": words if len(at_path) > 1 else at_path[0]["msg"]})
    return merged


def _keys_to(path: Sequence[str | int], value: Any) -> tuple[str | int, ...]:
    """The path of a problem in `value`, without the names of the types that pydantic tried on the way."""
    keys = []
    inner = value
    for number, part in enumerate(path, 1):
        is_index = isinstance(inner, list) and part in range(len(inner))
        is_key = isinstance(inner, dict) and part in inner
        is_kind = isinstance(inner, dict) and number < len(path)
        if is_index or is_key or not (is_kind or _NAME_OF_KIND.fullmatch(str(part))):
            keys.append(part)
            inner = inner[part] if is_index or is_key else None
    return tuple(keys)


FORMER = {
    "fingerprint": "is gone: `harness probe URL --replies RUN` compares a server with the one of a run",
    "salvaged": "is gone: samples that an earlier version continued always count",
}
"""An option of earlier versions → why it is unknown now."""


def problem_of(first: ErrorDetails, names: Collection[str] | Places = ()) -> Problem:
    """One problem of a pydantic error in our words. names: the known keys, for "Did you mean …?", or their places, for
    a key that belongs elsewhere.
    """
    keys = first["loc"]
    field = visible(".".join(map(str, keys)), 200)
    if first["type"] == "extra_forbidden":
        key = str(keys[-1])
        if gone := FORMER.get(key):
            return Problem(keys, field, f"{gone}.", f"the key {field!r} {gone}.")
        near = _instead([name for name in keys if isinstance(name, str)], names)
        return Problem(keys, field, f"is unknown.{near}", f"unknown key {field!r}.{near}")
    if first["type"] == "missing":
        return Problem(keys, field, "is missing", f"the key {field!r} is missing")
    complaint = visible(_complaint(first))
    sentence = f"{field}: {complaint}" if field else complaint
    may_show = not _may_be_secret(keys, first["input"])
    if may_show and ", found " not in complaint:  # the complaint already says the length of a list
        sentence += f", found {quoted(repr(first['input']))}"
    if first["type"] == "string_type" and isinstance(first["input"], bool):
        sentence += " (YAML reads yes, no, on and off as true or false; put the word in quotes)"
    if may_show and first["type"] in ("literal_error", "enum"):
        near = misspelled(str(first["input"]), re.findall(r"'([^']*)'", complaint))
        sentence += f".{near}" if near else ""
    return Problem(keys, field, complaint, sentence)


def _instead(keys: Sequence[str], names: Collection[str] | Places) -> str:
    """What to write instead of an unknown key: a similar key, its place, or the keys that its place has."""
    key, known = keys[-1], names if isinstance(names, Mapping) else {name: [name] for name in names}

    def fits(place: str, keys: Sequence[str]) -> bool:
        parts = place.split(".")
        return len(parts) == len(keys) and all(part in ("NAME", name) for part, name in zip(parts, keys, strict=True))

    beside = [name for name in sorted(known) if any(fits(place, (*keys[:-1], name)) for place in known[name])]
    if key in beside or (near := misspelled(key, beside)):  # a key that other kinds of this part have needs no advice
        return "" if key in beside else near
    places = sorted(known.get(key, ()), key=lambda place: place.count("."))
    if nearest := [place for place in places if place.count(".") == places[0].count(".")][:MAX_PLACES]:
        return f" It belongs at {' or '.join(f'`{each}`' if '.' in each else 'the top level' for each in nearest)}."
    return misspelled(key, known) or (f" Known keys: {', '.join(beside)}." if beside else "")


def _complaint(problem: ErrorDetails) -> str:
    """What is wrong with a value, in our words."""
    complaint = problem["msg"]
    for theirs, ours in _IN_WORDS:
        complaint = re.sub(theirs, ours, complaint)
    return complaint


def _may_be_secret(where: Sequence[object], value: object) -> bool:
    """Whether a rejected value must not be shown: it contains a key, or its field may contain a key anywhere.

    where: the path to the value, as field names and indices.
    """
    if isinstance(value, dict) or not _HOLD_KEYS.isdisjoint(where):
        return True
    shown = seal_secrets(value, str(where[-1]) if where else "")
    return next(secrets_in(shown), None) is not None
