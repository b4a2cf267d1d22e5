"""The endpoints of a run in its score and in a table."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.core.records import Question, Sample, Timing, Usage
from harness.presets.grading import GradingOptions
from harness.reports.report import report
from harness.reports.tables import endpoint_table
from harness.runs import RunFolder
from harness.runs.layout import RunLog
from harness.scoring.by_endpoint import scores
from harness.scoring.observed import Observed
from harness.scoring.pipeline import score_run
from tests.runs import recorded
from tests.scoring.graded import grade, question

A, B, C = (f"http://node{letter}:8000/v1" for letter in "abc")


def sample(question_id: str, index: int, endpoint: str, *, right: bool = True, cut: bool = False) -> Sample:
    return recorded.sample(
        question_id, index, rf"so \boxed{{{2 if right else 3}}}", benchmark="demo", endpoint=endpoint,
        finish_reason="length" if cut else "stop", usage=Usage(completion_tokens=100),
        timing=Timing(started=0.0, total=4.0 if endpoint == B else 2.0),
    )  # fmt: skip


def stored(folder: Path, listed: list[Question], samples: list[Sample], per_question: int) -> RunFolder:
    """A run folder as `harness run` leaves it."""
    return recorded.write_run(folder, listed, samples, planned=per_question, identity={"model": "m"})


def drawn(chances: dict[str, float], seed: int, *, n_questions: int = 30, n_samples: int = 16) -> list[Sample]:
    """Each endpoint is right with its chance; which one is asked falls at random."""
    chance = random.Random(seed)
    drawn_samples = []
    for q in range(n_questions):
        for index in range(n_samples):
            endpoint = chance.choice(list(chances))
            drawn_samples.append(sample(f"q{q}", index, endpoint, right=chance.random() < chances[endpoint]))
    return drawn_samples


def test_each_endpoint_has_its_shares_and_those_that_its_questions_lead_one_to_expect() -> None:
    # q1 at A right and cut, at B wrong, at A right; q2 with one sample, at B.
    observed, grades = Observed(), []
    for index, (endpoint, letter) in enumerate([(A, "c"), (B, "w"), (A, "c")]):
        observed.observe(sample("q1", index, endpoint))
        grades.append(msgspec.structs.replace(grade("q1", index, letter), truncated=not index))
    observed.observe(sample("q2", 0, B))
    grades.append(grade("q2", 0, "c"))
    by_url = scores(observed, np.arange(4), grades, {B: 3})
    first, second = by_url.values()
    assert ([*by_url], first.n_samples, second.n_samples) == ([A, B], 2, 2)
    assert (first.accuracy.value, first.expected_accuracy) == (1.0, pytest.approx(2 / 3))
    assert (second.accuracy.value, second.expected_accuracy) == (0.5, pytest.approx((2 / 3 + 1) / 2))
    assert first.truncated == 0.5
    assert (first.tokens_per_s, second.tokens_per_s) == (50.0, 25.0)
    assert first.accuracy.sampling.low < 1.0 == first.accuracy.sampling.high
    assert (first.accuracy.at_most, second.accuracy.at_most) == (False, True)
    assert (first.n_failures, second.n_failures) == (0, 3)


@pytest.mark.slow
def test_the_endpoints_of_a_run_stand_in_score_and_table(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", [question(f"q{q}") for q in range(30)], drawn({A: 0.6, B: 0.6, C: 0.3}, seed=1), 16)
    with RunLog(run) as log:
        for endpoint in (A, C, C):
            log.write("request_failed", task=["demo", "q1", 0], endpoint=endpoint, kind="cut")
        log.write("request_failed", task=["other", "q1", 0], endpoint=C, kind="cut")
    (score,) = score_run(run, GradingOptions(workers=1))
    assert [(url, e.n_failures) for url, e in score.endpoints.items()] == [(A, 1), (B, 0), (C, 2)]
    table = endpoint_table([("run", score)])
    assert table is not None
    low, high = score.endpoints[C].accuracy.sampling or (0.0, 0.0)
    assert low < 0.3 < high
    assert table.rows[2][5] == f"{100 * low:.1f}–{100 * high:.1f}"
    assert "By endpoint" in report([run]).html()


def test_one_endpoint_has_no_table(tmp_path: Path) -> None:
    asked = [question("q0"), question("q1")]
    alone = stored(tmp_path / "alone", asked, [sample("q0", 0, A), sample("q1", 0, A, right=False)], 1)
    (score,) = score_run(alone, GradingOptions(workers=1))
    assert score.endpoints == {}
    assert endpoint_table([("run", score)]) is None
