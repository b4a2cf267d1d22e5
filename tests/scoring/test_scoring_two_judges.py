"""How far two judges agree, by the opinions that both left on the samples of a benchmark.

For: harness.scoring.two_judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from harness.core.records import Grade, Key
from harness.runs.opinions import Opinion
from harness.scoring.two_judges import JudgesAgreement, agreements

OURS, THEIRS = "judge:a@verdict", "judge:b@verdict"


def opinion(key: Key, correct: bool | None, grader: str = THEIRS) -> Opinion:
    return Opinion(
        benchmark="prose", question_id=key.question_id, sample_index=key.sample_index, grader=grader, correct=correct
    )


def grade(key: Key, extracted: str | None) -> Grade:
    return Grade(
        benchmark="prose", question_id=key.question_id, sample_index=key.sample_index, verdict="undecided",
        rule="unknown", grader="rules/1", extracted=extracted,
    )  # fmt: skip


def agreed(rows: Sequence[tuple[str, str | None, bool | None, bool | None]]) -> list[JudgesAgreement]:
    """The agreements over rows: (question, extracted answer, our verdict, the other judge's verdict)."""
    keys = [Key(row[0], index) for index, row in enumerate(rows)]
    ours: Mapping[Key, bool | None] = {key: row[2] for key, row in zip(keys, rows, strict=True)}
    theirs = [opinion(key, row[3]) for key, row in zip(keys, rows, strict=True)]
    return list(agreements(OURS, ours, theirs, [grade(key, row[1]) for key, row in zip(keys, rows, strict=True)]))


def test_agreement_and_kappa_are_those_of_cohens_table() -> None:
    """20 both right, 5 and 10 differing, 15 both wrong: 0.7 of 50, of which 0.5 by chance."""
    table = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    (result,) = agreed([(f"q{number}", "x", *verdicts) for number, verdicts in enumerate(table)])
    assert (result.name, result.n_answers, result.n_equal) == (THEIRS, 50, 35)
    assert result.kappa == pytest.approx(0.4)
    assert result.interval is not None
    assert 0.5 < result.interval.low < 0.58
    assert 0.8 < result.interval.high < 0.83
    assert [key.question_id for key in result.differing] == [f"q{number}" for number in range(20, 35)]


def test_equal_answers_count_once_and_samples_without_an_answer_each() -> None:
    rows = [("q", "x", True, False)] * 3 + [("q", None, True, True)] * 2 + [("r", "x", False, False)]
    (result,) = agreed(rows)
    assert (result.n_answers, result.n_equal) == (4, 3)
    assert result.differing == {Key("q", 0): (True, 3)}


def test_what_either_judge_left_open_counts_nowhere() -> None:
    assert agreed([("q", "x", None, True), ("r", "x", True, None)]) == []
    (result,) = agreed([("q", "x", None, True), ("r", "x", True, True)])
    assert (result.n_answers, result.interval, result.kappa) == (1, None, None)


def test_only_other_judges_are_compared() -> None:
    key = Key("q", 0)
    for grader in (OURS, "math-verify"):
        assert list(agreements(OURS, {key: True}, [opinion(key, False, grader)], [grade(key, "x")])) == []


def test_the_interval_takes_the_answers_of_a_question_as_alike() -> None:
    apart = [(f"q{number}", "x", True, number % 2 == 0) for number in range(20)]
    together = [(f"q{number // 5}", f"x{number}", True, number // 5 % 2 == 0) for number in range(20)]
    (by_twenty,), (by_four,) = agreed(apart), agreed(together)
    assert by_twenty.n_equal == by_four.n_equal == 10
    assert by_twenty.interval is not None
    assert by_four.interval is not None
    assert by_four.interval.half_width > by_twenty.interval.half_width * 1.5
