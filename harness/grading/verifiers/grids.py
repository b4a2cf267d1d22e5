"""Grids in a reply: a matrix of integers (ARC), and the table of a logic puzzle (ZebraLogic).

The answer is the last JSON value of its form in the reply: a list of lists of integers, or an object with a `solution`.
A reply may think aloud in JSON first, so earlier values do not count. A value inside another JSON value of the same
bracket does not count either, because a reply that lists several grids has chosen none of them; but a list with one
grid and nothing else, the format of ARC submissions, counts as this grid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from harness.core.records import Question
from harness.grading.verifier import Parts

MAX_OPENINGS = 400
"""Number of opening brackets, counted from the end of a reply, at which the search for JSON values is tried."""

Table = dict[str, dict[str, str]]
"""A solved puzzle: house → attribute → its value, in lower case and without outer blanks."""


def same_grid(answer: str, question: Question) -> bool:
    """Whether the last grid in the reply has the reference's size and cells."""
    expected = json.loads(question.references[0])
    values = map(_without_outer_lists, _values_from_end(answer, "["))
    return next((grid == expected for grid in values if _is_grid(grid)), False)  # values come last first


def solved_puzzle(answer: str, question: Question) -> Parts:
    """How many cells of the puzzle's table are right, ignoring letter case and outer blanks; none if there is no table.

    A cell that contains a list counts by its first item, as in the program of the benchmark's authors.
    """
    expected = _table(json.loads(question.references[0]))
    solutions = (value["solution"] for value in _values_from_end(answer, "{") if "solution" in value)
    table = _table(next(solutions, None))
    right = sum(
        table.get(house, {}).get(attribute) == value
        for house, attributes in expected.items()
        for attribute, value in attributes.items()
    )
    return Parts(right, sum(map(len, expected.values())))


def _without_outer_lists(value: list[Any]) -> Any:
    """Return `value` without outer lists of one item, down to a grid: [[1, 2]] of [[[1, 2]]]."""
    inner: Any = value
    while isinstance(inner, list) and len(inner) == 1 and not _is_grid(inner):
        (inner,) = inner
    return inner


def _is_grid(value: Any) -> bool:
    rows = value if isinstance(value, list) else []
    return bool(rows) and all(
        isinstance(row, list) and row and all(type(cell) is int for cell in row)  # JSON's true is not a cell
        for row in rows
    )


def _table(value: Any) -> Table:
    """Return the cells of a solution that are strings; everything else is left out."""
    houses = value.items() if isinstance(value, dict) else ()
    return {
        house: {name: text.strip().casefold() for name, cell in attributes.items() if (text := _text_of(cell))}
        for house, attributes in houses
        if isinstance(attributes, dict)
    }


def _text_of(cell: Any) -> str:
    # Models write a cell as a list of one string, and the authors' program accepts this.
    first = cell[0] if isinstance(cell, list) and cell else cell
    return first if isinstance(first, str) else ""


def _values_from_end(text: str, bracket: str) -> Iterator[Any]:
    """Return the JSON values of a reply that begin with `bracket` and are not inside another value, from last to first.

    A value that is incomplete or nested too deeply is skipped, and the values inside it are tried.
    """
    decoder = json.JSONDecoder()
    # From the left, so that an outer value hides the values inside it.
    openings = [match.start() for match in re.finditer(re.escape(bracket), text)][-MAX_OPENINGS:]
    spans: list[tuple[int, int, Any]] = []
    for opening in openings:
        if spans and opening < spans[-1][1]:
            continue  # inside the previous value
        try:
            value, end = decoder.raw_decode(text, opening)
        except (ValueError, RecursionError):
            continue
        spans.append((opening, end, value))
    return (value for _, _, value in reversed(spans))
