"""How options convert the values that callers give: texts as lists, JSON, prices, paths."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from harness.core.number_text import prices_in
from harness.core.time_limits import parse_limits
from harness.core.turn_settings import text_of_turns


class Kind(NamedTuple):
    """How an option converts the value that a caller gives (a text `8,16`) into the field's type (a tuple of ints).

    accepts: the type that Python callers may pass, as source text (`FilePath` and `Texts` are defined in
    `harness.options.keywords`). parse: converts such a value before pydantic checks it; raises a `ValueError` that says
    what was expected. schema: the type allowed in a sweep file, for its JSON schema; None: the field's own type.
    """

    accepts: str
    parse: Callable[[Any], Any]
    schema: Any = None


def text_as_tuple(value: Any) -> Any:
    """A single text or path as a list of one; any other value is unchanged."""
    return (os.fspath(value),) if isinstance(value, (str, os.PathLike)) else value


def _split_commas(value: Any) -> Any:
    """The comma-separated parts of a text, without blanks; any other value is unchanged."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _parse_object(value: Any) -> Any:
    """The JSON object in a text; any other value is unchanged. Raises `ValueError`."""
    if not isinstance(value, str):
        return value or {}
    from harness.core import codec

    try:
        return codec.decode(value, dict[str, Any])
    except codec.DecodeError as error:
        raise ValueError(f"expected a JSON object such as '{{\"top_k\": 20}}' ({error})") from error


def _parse_prices(value: Any) -> Any:
    """Prices as the text `IN,OUT,CACHED`, also if given as numbers; None is unchanged. Raises `ValueError`."""
    if value is not None:
        value = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        prices_in(value)  # raises for anything else
    return value


def _refuse_empty_path(value: Any) -> Any:
    """A path as text; any other value is unchanged. Raises `ValueError` for an empty text."""
    if isinstance(value, str) and not value:
        # An unset shell variable gives an empty text, which as a path would mean the current folder.
        raise ValueError("the path is empty")
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _refuse_empty_paths(value: Any) -> Any:
    """Paths as a tuple of texts; a single one is a tuple of one. Raises `ValueError` for an empty text."""
    paths = text_as_tuple(value)
    return tuple(map(_refuse_empty_path, paths)) if isinstance(paths, tuple | list) else paths


TEXTS = Kind("Texts", text_as_tuple, str | tuple[str, ...])
"""A list of texts, for a flag that may be repeated. A caller may pass a single text."""

COMMAS = Kind("Texts", _split_commas, str | tuple[str, ...])
"""A list of texts, or one text that is split at commas."""

NUMBERS = Kind(
    "int | Sequence[int]", lambda value: (value,) if isinstance(value, int) else value, int | tuple[int, ...]
)
"""A list of integers, for a flag that may be repeated. A caller may pass a single number."""

PRICES = Kind("str | tuple[float, ...]", _parse_prices, str | tuple[float, ...])
"""Prices of prompt, completion and, if they differ, cached prompt tokens, as numbers or a text `IN,OUT,CACHED`."""

LIMITS = Kind("str | Mapping[str, Any]", parse_limits, str | dict[str, Any])
"""Limits on the times of a request, as a mapping or a text `first_token=2s,token_gap=50ms`."""

TURNS = Kind("str | Mapping[str, Any]", text_of_turns, str | dict[str, Any])
"""How conversations are carried on, as a mapping or a text `live,history=reasoning,delay=2s,max=10`."""

JSON = Kind("str | Mapping[str, Any]", _parse_object, str | dict[str, Any])
"""A mapping, or a text with a JSON object."""

PATH = Kind("FilePath", _refuse_empty_path)
"""A path; an empty text is rejected."""

PATHS = Kind("FilePath | Sequence[FilePath]", _refuse_empty_paths, str | tuple[str, ...])
"""A list of paths, none of them empty."""

ADDRESS = Kind("FilePath", lambda value: os.fspath(value) if isinstance(value, os.PathLike) else value)
"""A path or a URL, as text."""

MIN_POINTS = 0.05
"""Smallest number of points that is accepted; a smaller one must be a fraction, which earlier versions expected."""


def _refuse_fraction(value: Any) -> Any:
    """`value`, a number of percentage points. Raises `ValueError` for a fraction, such as 0.02 for 2 points."""
    if isinstance(value, int | float) and 0 < value < MIN_POINTS:
        points = f"{100 * value:g} point{'' if 100 * value == 1 else 's'}"
        raise ValueError(f"expected percentage points, not a fraction: enter {100 * value:g} for {points}")
    return value


POINTS = Kind("float", _refuse_fraction)
"""A difference or an error in percentage points; 1 point is an accuracy of 0.01."""

SEED = Kind("int", lambda value: value)
"""A seed: an integer, or None (`none` on a command line) to send no seed. None counts as a value that was set."""
