"""Samples that were continued after an interruption: counted, named where that is not exact, left out on demand.

For: harness.scoring.pipeline.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.core.records import Sample, Seam, Timing
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, grades
from harness.scoring.pipeline import score_run
from tests.scoring.graded import question
from tests.scoring.test_scoring_endpoints import A, sample, stored


def went_on(one: Sample, *, exact: bool) -> Sample:
    seam = Seam(tokens=60, text=200, reasoning=0, exact=exact)
    timing = Timing(started=0.0, first_token=0.1, last_token=0.2, total=0.2, events=40)
    return msgspec.structs.replace(one, salvaged_at=(seam,), timing=timing)


def folder(place: Path, *, exact: bool) -> RunFolder:
    """Two questions of four samples; of each, one that is wrong was salvaged."""
    samples = [sample(q, i, A, right=i > 0) for q in ("q0", "q1") for i in range(4)]
    samples = [went_on(one, exact=exact) if one.sample_index == 0 else one for one in samples]
    return stored(place, [question("q0"), question("q1")], samples, 4)


@pytest.mark.parametrize("exact", [True, False])
def test_they_count_unless_they_are_left_out_and_are_graded_in_any_case(tmp_path: Path, exact: bool) -> None:
    run = folder(tmp_path, exact=exact)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert score.accuracy.value == 0.75
    named = [one for one in score.sentences if "were continued after an interruption" in one]
    assert bool(named) == (not exact)
    (without,) = score_run(run, GradingOptions(workers=1, salvaged=False))
    assert without.accuracy.value == 1.0
    assert any("2 of 8 samples were continued" in one and "leaves them out" in one for one in without.sentences)
    assert len(grades.read(run.benchmark("demo"))) == 8
    (again,) = score_run(run, GradingOptions(workers=1))
    assert again.accuracy.value == 0.75


def test_their_time_is_that_of_a_part_and_does_not_count_as_speed(tmp_path: Path) -> None:
    whole = Timing(started=0.0, first_token=0.1, last_token=2.1, total=2.1, events=101)
    samples = [msgspec.structs.replace(sample("q0", i, A), timing=whole) for i in range(3)]
    run = stored(tmp_path, [question("q0")], [*samples, went_on(sample("q0", 3, A), exact=True)], 4)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert score.speed is not None
    assert score.speed.n_samples == 3
