"""The accuracy with manual verdicts: points count as shares, and a difference in points alone counts as one."""

from __future__ import annotations

import msgspec
import pytest

from harness.runs.overrides import Override
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.by_hand import with_verdicts_by_hand
from harness.scoring.tally import tally
from tests.scoring.graded import grade, question


def by_person(
    question_id: str, index: int, points: tuple[float, float] | msgspec.UnsetType, *, right: bool
) -> Override:
    return Override(
        benchmark="demo",
        question_id=question_id,
        sample_index=index,
        verdict="correct" if right else "wrong",
        graded=None,
        who="me",
        when="2026-01-01T00:00:00+00:00",
        why="audit",
        points=points,
    )


@pytest.mark.parametrize(("with_points", "half_width", "finished"), [(True, 0.037, 0.069), (False, 0.107, 0.149)])
def test_shares_of_points_are_no_coins_in_any_accuracy(with_points: bool, half_width: float, finished: float) -> None:
    """Of 7 points the samples have 3 or 4 by the judge, 4 or 3 by the person; without points 0 or 1."""
    samples = [(f"q{n}", index) for n in range(20) for index in range(4)]

    def points(index: int) -> tuple[float, float] | msgspec.UnsetType:
        return (3 + index % 2, 7) if with_points else msgspec.UNSET

    grades = [grade(name, i, "wc"[i % 2], rule="judge", points=points(i), truncated=i > 1) for name, i in samples]
    score = score_benchmark([question(f"q{n}") for n in range(20)], grades, None)
    questions = tally([question(f"q{n}") for n in range(20)], grades, None).questions
    corrected = [by_person(name, i, points(i + 1), right=not i % 2) for name, i in samples]
    score = with_verdicts_by_hand(score, questions, corrected)
    for each in (score.accuracy, score.budgets[256].accuracy, score.accuracy_overridden):
        assert each
        assert each.sampling
        assert each.value == pytest.approx(0.5)
        assert each.sampling.half_width == pytest.approx(half_width, rel=0.1)
    assert score.accuracy_finished
    assert score.accuracy_finished.sampling
    assert score.accuracy_finished.sampling.half_width == pytest.approx(finished, rel=0.1)


def test_other_points_with_the_same_verdict_differ_and_the_same_points_do_not() -> None:
    grades = [grade("q1", i, "w", rule="judge", points=(3, 7)) for i in range(4)]
    score = score_benchmark([question("q1")], grades, None)
    items = tally([question("q1")], grades, None).questions
    for points, n_differing in ((5.0, 4), (3.0, 0)):
        judged = with_verdicts_by_hand(score, items, [by_person("q1", i, (points, 7), right=False) for i in range(4)])
        assert judged.n_overridden == n_differing
        assert (judged.accuracy_overridden is not None) == bool(n_differing)
        assert not n_differing or judged.accuracy_overridden.value == pytest.approx(points / 7)
