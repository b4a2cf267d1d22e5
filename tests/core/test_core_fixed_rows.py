"""Rows of numbers are grouped by question, in the order of their arrival, however many blocks they fill.

For: harness.core.fixed_rows.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core import fixed_rows, packed
from harness.core.fixed_rows import FixedRows


def filled(questions: list[int]) -> FixedRows:
    rows = FixedRows({"question": "I", "arrival": "q", "value": "d"})
    for arrival, question in enumerate(questions):
        rows.append(question, arrival, arrival / 2)
    return rows


@given(st.lists(st.integers(0, 9), max_size=80), st.integers(1, 20), st.sampled_from([16, 1 << 20]))
def test_rows_of_a_question_are_together_in_their_order(questions: list[int], block: int, held: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixed_rows, "BLOCK_ROWS", block)
        patch.setattr(packed, "HELD_BYTES", held)
        rows = filled(questions)
        groups = [*rows.grouped(10)]
        arrived = [row for part in rows.blocks() for row in part["arrival"].tolist()]
    assert arrived == [*range(len(questions))]
    together = [row for group in groups for row in group["arrival"].tolist()]
    assert together == sorted(arrived, key=lambda arrival: (questions[arrival], arrival))
    assert all(row["value"] == row["arrival"] / 2 for group in groups for row in group)
    # A part holds few rows, except where they are all of one question.
    assert all(len(group) <= block or len(np.unique(group["question"])) == 1 for group in groups)
    owners = [{*group["question"].tolist()} for group in groups]
    assert sum(map(len, owners)) == len(set[int]().union(*owners))


def test_rows_are_added_one_by_one_and_as_an_array() -> None:
    rows, more = filled([3, 1]), filled([2])
    rows.extend(more.read(0, 1))
    rows.append(0, 7, 0.0)
    assert len(rows) == 4
    assert rows.read(1, 4)["question"].tolist() == [1, 2, 0]
    assert [group["question"].tolist() for group in rows.grouped(4)] == [[0, 1, 2, 3]]
