"""Shares of right parts beside the accuracy.

For: harness.scoring.measures.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core import codec
from harness.core.nouns import count_noun
from harness.core.records import Grade, Question
from harness.reports.formats import to_markdown
from harness.reports.tables import measure_table
from harness.scoring.measures import measures, uneven_parts
from harness.scoring.score import Score, score_benchmark
from harness.scoring.tally import QuestionTally
from tests.scoring.graded import grade, graded, question


def with_parts(name: str, *right_and_total: tuple[int, int] | None) -> tuple[Question, list[Grade]]:
    """A question with its grades; None is a sample without an answer."""
    grades = [
        grade(name, index, "n" if pair is None else "wc"[pair[0] == pair[1]], **({"parts": pair} if pair else {}))
        for index, pair in enumerate(right_and_total)
    ]
    return question(name), grades


def scored(*drawn: tuple[Question, list[Grade]]) -> Score:
    samples = max(len(grades) for _, grades in drawn)
    return score_benchmark([q for q, _ in drawn], [g for _, grades in drawn for g in grades], samples)


@pytest.mark.parametrize(
    ("questions", "mean", "by_parts", "at_most"),
    [
        # Each question weighs the same, or by its parts; a sample without an answer has no right part.
        ([("wc", [(1, 2), (2, 2)]), ("wn", [(3, 6), None])], (0.75 + 0.25) / 2, (2 * 0.75 + 6 * 0.25) / 8, False),
        # An undecided question has no right part, and an unknown weight.
        ([("w", [(1, 2)]), ("c", [(2, 2)]), ("u", [None])], 0.5, 0.75, True),
        # An answer that is only called right or wrong is one part.
        ([("w", [(1, 2)]), ("c", [None])], (0.5 + 1) / 2, (2 * 0.5 + 1) / 3, True),
        ([("w", [(1, 2)]), ("w", [None])], 0.5 / 2, 2 * 0.5 / 3, True),
        # A verdict that contradicts the parts counts in their place.
        ([("cww", [(1, 2), (2, 2), (1, 2)])], (1 + 0 + 0.5) / 3, (1 + 0 + 0.5) / 3, False),
    ],
)
def test_a_share_of_parts(
    questions: list[tuple[str, list[tuple[int, int] | None]]], mean: float, by_parts: float, at_most: bool
) -> None:
    drawn = [
        (
            question(f"q{n}"),
            [grade(f"q{n}", i, x, **({"parts": parts[i]} if parts[i] else {})) for i, x in enumerate(letters)],
        )
        for n, (letters, parts) in enumerate(questions)
    ]
    by_name = scored(*drawn).measures
    assert {name: one.value for name, one in by_name.items()} == pytest.approx(
        {"share of parts": mean, "share of all parts": by_parts}
    )
    for measure in by_name.values():
        low, high = measure.sampling or (1, 0)
        assert low < measure.value < high
        assert measure.at_most == at_most


def answers_with(totals: Iterable[int]) -> st.SearchStrategy[list[tuple[str, int | None, int]]]:
    """(verdict, total or None, right parts) of some answers to one question. totals: those that the grader states."""
    each = st.tuples(st.sampled_from("cwnu"), st.none() | st.sampled_from([*totals]), st.integers(0, 6))
    return st.lists(each, min_size=1)


EVEN = st.integers(1, 6).flatmap(lambda total: answers_with([total]))


@given(st.lists(EVEN, min_size=1, max_size=6) | st.lists(EVEN | answers_with(range(1, 7)), min_size=1, max_size=6))
def test_shares_of_parts_are_fractions_and_the_mean_share_is_never_below_the_accuracy(
    samples: list[list[tuple[str, int | None, int]]],
) -> None:
    items, uneven = [], 0
    for number, row in enumerate(samples):
        parts = [{} if total is None else {"parts": (min(right, total), total)} for _, total, right in row]
        grades = [grade(f"q{number}", i, row[i][0], **parts[i]) for i in range(len(row))]
        items.append(QuestionTally.of(question(f"q{number}"), grades, len(grades)))
        uneven += len({total for _, total, _ in row} - {None}) > 1
    by_name = measures(items)
    # Answers to one question with different totals have no common share; a question beside them may have any total.
    assert bool(by_name) == (not uneven and any(total is not None for row in samples for _, total, _ in row))
    assert bool(uneven_parts(items)) == bool(uneven)
    assert not uneven or f"on {count_noun(uneven, 'question')} (such as q" in uneven_parts(items)
    if by_name:
        accuracy = sum(item.rate or 0 for item in items) / len(items)
        assert accuracy - 1e-9 <= by_name["share of parts"].value <= 1 + 1e-9
        assert -1e-9 <= by_name["share of all parts"].value <= 1 + 1e-9


def test_a_benchmark_without_such_measures_stores_none() -> None:
    plain = score_benchmark(*graded(q1="cw", q2="cc"), 2)
    assert plain.measures == {}
    assert measure_table([("run", plain)]) is None
    counted = scored(with_parts("q1", (1, 2)), with_parts("q2", (1, 2)))
    assert codec.decode(codec.encode(counted), Score).measures == counted.measures
    table = measure_table([("run", counted), ("run", plain)])
    assert table is not None
    assert "| share of parts | 50.0 | at most " in to_markdown([table])


def test_a_score_warns_of_uneven_totals_and_has_no_share_of_them() -> None:
    score = scored(with_parts("q1", (3, 3), (0, 1)), with_parts("q2", (1, 4), (2, 4)))
    (warning,) = [warning for warning in score.sentences if "parts" in warning]
    assert "on 1 question (such as q1: 1 to 3): the shares of right parts are left out" in warning
    assert score.measures == {}
    even = scored(with_parts("q1", (3, 3), (0, 3)), with_parts("q2", (1, 4), (2, 4)))
    assert not [warning for warning in even.sentences if "parts" in warning]
    assert len(even.measures) == 2
