"""A broken endpoint shows in the score of a run, and a sound one that was given the easy questions does not."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.core import codec
from harness.core.records import Grade, Question, Sample, ServerFacts, Timing, Usage
from harness.presets.grading import GradingOptions
from harness.reports import endpoint_table
from harness.reports.report import report
from harness.runs import BenchmarkRecord, Journal, Manifest, Plan, RunFolder, questions
from harness.runs.layout import RunLog
from harness.runs.manifest import Provenance
from harness.scoring.by_endpoint import EndpointScore, FailedRequests
from harness.scoring.by_endpoint import scores as of_rows
from harness.scoring.observed import Observed
from harness.scoring.pipeline import score_run
from tests.scoring.graded import grade, question

A, B, C = (f"http://node{letter}:8000/v1" for letter in "abc")


def sample(question_id: str, index: int, endpoint: str, *, right: bool = True, cut: bool = False) -> Sample:
    return Sample(
        benchmark="demo",
        question_id=question_id,
        sample_index=index,
        text=rf"so \boxed{{{2 if right else 3}}}",
        reasoning=None,
        finish_reason="length" if cut else "stop",
        usage=Usage(completion_tokens=100),
        timing=Timing(started=0.0, total=4.0 if endpoint == B else 2.0),
        endpoint=endpoint,
    )


def scores(
    observed: Observed, grades: list[Grade], failures: dict[str, int], planned: int | None = None
) -> tuple[EndpointScore, ...]:
    """With as many grades as samples were observed."""
    return of_rows(observed, np.arange(observed.n), grades, FailedRequests(failures, frozenset()), planned)


def stored(folder: Path, listed: list[Question], samples: list[Sample], per_question: int) -> RunFolder:
    """A run folder as `harness run` leaves it."""
    run = RunFolder(folder)
    record = BenchmarkRecord(identity={}, plan=Plan(samples=per_question, question_ids=None), settings={})
    manifest = Manifest.start(run, model="m", harness_version="1")
    manifest.extend("demo", record).save(run)
    place = run.benchmark("demo")
    place.create()
    questions.write(place, listed)
    with RunLog(run) as log, Journal.open(place, log=log) as journal:
        for one in samples:
            journal.append(one)
    return run


def drawn(chances: dict[str, float], seed: int, *, n_questions: int = 30, n_samples: int = 16) -> list[Sample]:
    """Each endpoint is right with its chance; which one is asked falls at random."""
    chance = random.Random(seed)
    drawn_samples = []
    for q in range(n_questions):
        for index in range(n_samples):
            endpoint = chance.choice(list(chances))
            drawn_samples.append(sample(f"q{q}", index, endpoint, right=chance.random() < chances[endpoint]))
    return drawn_samples


def test_z_compares_each_sample_with_the_later_ones_of_its_question() -> None:
    # In the order of their start: q1 at A right, at B wrong, at A right; and q2 with one sample, which says nothing.
    observed, grades = Observed(), []
    for index, (endpoint, letter) in enumerate([(A, "c"), (B, "w"), (A, "c")]):
        observed.observe(sample("q1", index, endpoint))
        grades.append(grade("q1", index, letter))
    observed.observe(sample("q2", 0, B))
    grades.append(grade("q2", 0, "c"))
    first, second = scores(observed, grades, {B: 3})
    # A's share before each, with one imagined at either: 1/2, 2/3. Weights (1 − 1/2)·2/3 and (0 − 2/3)·1/2.
    # Contrasts 1 − 1/2 and 0 − 1; variances 1 + 1/2 and 1 + 1 times 2·1/(3·2).
    expected = (1 / 3 * 0.5 + 1 / 3) / ((1 / 9 * 1.5 + 1 / 9 * 2) / 3) ** 0.5
    assert first.z_accuracy == pytest.approx(expected)
    assert second.z_accuracy == pytest.approx(-expected)
    assert (first.accuracy, first.expected_accuracy) == (1.0, pytest.approx(2 / 3))
    assert first.z_truncated is None
    assert (first.tokens_per_s, second.tokens_per_s) == (50.0, 25.0)
    assert first.sampling_interval is not None
    assert first.sampling_interval.low < 1.0 == first.sampling_interval.high
    assert (first.at_most, second.at_most) == (False, True)
    assert (first.n_failures, second.n_failures) == (0, 3)


def test_the_order_of_the_start_decides_not_that_of_the_index() -> None:
    def z(starts: list[float]) -> float | None:
        observed, grades = Observed(), []
        for index, (endpoint, letter) in enumerate([(A, "c"), (B, "w"), (A, "c")]):
            one = sample("q1", index, endpoint)
            timing = Timing(started=starts[index], total=1.0)
            observed.observe(msgspec.structs.replace(one, timing=timing))
            grades.append(grade("q1", index, letter))
        return scores(observed, grades, {})[0].z_accuracy

    assert z([1.0, 2.0, 3.0]) == z([11.0, 12.0, 13.0])
    assert z([1.0, 2.0, 3.0]) != z([2.0, 1.0, 3.0])


def test_a_question_with_missing_samples_is_left_out() -> None:
    observed, grades = Observed(), []
    for q in range(20):
        for index in range(8):
            endpoint = B if index % 2 else A
            if not (q and endpoint == B and index == 7):
                observed.observe(sample(f"q{q}", index, endpoint))
                grades.append(grade(f"q{q}", index, "w" if endpoint == B else "c"))
    assert all(e.outlier for e in scores(observed, grades, {}))
    assert [e.z_accuracy for e in scores(observed, grades, {}, 9)] == [None, None]
    one = scores(observed, grades, {}, 8)[0].z_accuracy
    assert one is not None
    assert abs(one) < abs(scores(observed, grades, {})[0].z_accuracy or 0.0)


def cut_streams(seed: int) -> tuple[list[Sample], list[tuple[str, int]]]:
    """Two sound endpoints; A cuts long streams, which are wrong, and B gets them then. Returns (samples, cut ones)."""
    chance = random.Random(seed)
    samples: list[Sample] = []
    failed: list[tuple[str, int]] = []
    for q in range(30):
        for index in range(32):
            endpoint, right = chance.choice([A, B]), chance.random() < 0.5
            long = not right and chance.random() < 0.9 and q % 3 > 0
            one = sample(f"q{q}", index, endpoint, right=right)
            if long and endpoint == A:
                one = msgspec.structs.replace(sample(f"q{q}", index, B, right=right), attempts=2)
                failed.append((one.question_id, index))
            timing = Timing(started=float(32 * q + index), total=2.0)
            samples.append(msgspec.structs.replace(one, timing=timing))
    return samples, failed


@pytest.mark.parametrize(("kind", "named", "n_cut"), [("cut", 0, 20), ("rate_limited", 3, 0)])
def test_an_endpoint_that_cuts_long_streams_is_not_called_another_model(
    tmp_path: Path, kind: str, named: int, n_cut: int
) -> None:
    outliers = []
    for seed in range(3):
        samples, failed = cut_streams(seed)
        run = stored(tmp_path / str(seed), [question(f"q{q}") for q in range(30)], samples, 32)
        with RunLog(run) as log:
            for question_id, index in failed:
                log.write("request_failed", task=["demo", question_id, index], endpoint=A, kind=kind, status=None)
        (score,) = score_run(run, GradingOptions(workers=1))
        assert [one.n_questions_cut for one in score.endpoints] == [n_cut, n_cut]
        assert all(one.z_accuracy is not None for one in score.endpoints)
        outliers.append(any(one.outlier for one in score.endpoints))
    assert sum(outliers) == named


def test_where_every_question_was_cut_the_score_says_that_nothing_is_tested(tmp_path: Path) -> None:
    samples = [msgspec.structs.replace(one, attempts=2) for one in drawn({A: 0.9, B: 0.1}, seed=1)]
    run = stored(tmp_path, [question(f"q{q}") for q in range(30)], samples, 16)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert any("not tested against each other: replies to 30 questions broke off" in text for text in score.warnings)
    assert not any(one.outlier for one in score.endpoints)


@pytest.mark.slow
def test_a_broken_replica_stands_out_in_score_warning_and_table(tmp_path: Path) -> None:
    samples = drawn({A: 0.6, B: 0.6, C: 0.3}, seed=1)
    run = stored(tmp_path / "run", [question(f"q{q}") for q in range(30)], samples, 16)
    with RunLog(run) as log:
        for endpoint in (A, C, C):
            log.write("request_failed", task=["demo", "q1", 0], endpoint=endpoint, kind="cut")
        log.write("request_failed", task=["other", "q1", 0], endpoint=C, kind="cut")
    (score,) = score_run(run, GradingOptions(workers=1))
    assert [(e.endpoint, e.outlier, e.n_failures) for e in score.endpoints] == [
        (A, False, 1), (B, False, 0), (C, True, 2)
    ]  # fmt: skip
    (warning,) = [w for w in score.warnings if "differs from the rest" in w]
    assert C in warning
    assert codec.decode(run.benchmark("demo").scores.read_bytes())["endpoints"][2]["outlier"] is True
    table = endpoint_table([("run", score)])
    assert table is not None
    assert [row[2].endswith(" *") for row in table.rows] == [False, False, True]
    low, high = score.endpoints[2].sampling_interval or (0.0, 0.0)
    assert low < 0.3 < high
    assert table.rows[2][5] == f"{100 * low:.1f}–{100 * high:.1f}"
    page = report([run]).html()
    assert "By endpoint" in page
    assert f"{C} *" in page


def test_an_endpoint_that_truncates_more_stands_out(tmp_path: Path) -> None:
    samples = [
        sample(f"q{q}", index, B if index % 2 else A, cut=bool(index % 2)) for q in range(10) for index in range(8)
    ]
    run = stored(tmp_path / "run", [question(f"q{q}") for q in range(10)], samples, 8)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert all(e.outlier for e in score.endpoints)
    assert any("100.0% truncated instead of 50.0%" in w for w in score.warnings)


def test_an_endpoint_with_the_easy_questions_does_not() -> None:
    chance = random.Random(3)
    observed, grades = Observed(), []
    for q in range(40):
        easy = q % 2 == 0
        for index in range(16):
            endpoint = B if chance.random() < (0.8 if easy else 0.2) else A
            observed.observe(sample(f"q{q}", index, endpoint))
            grades.append(grade(f"q{q}", index, "c" if chance.random() < (0.9 if easy else 0.1) else "w"))
    slow = scores(observed, grades, {})[1]
    assert slow.accuracy > 0.65
    assert not slow.outlier


def test_sound_endpoints_are_seldom_named() -> None:
    named = 0
    for seed in range(60):
        observed, grades = Observed(), []
        for one in drawn({A: 0.5, B: 0.5, C: 0.5}, seed, n_questions=10, n_samples=8):
            observed.observe(one)
            right = one.text is not None and "{2}" in one.text
            grades.append(grade(one.question_id, one.sample_index, "c" if right else "w"))
        named += any(e.outlier for e in scores(observed, grades, {}))
    assert named <= 2


PORTS = ("http://127.0.0.1:8001/v1", "http://127.0.0.1:8002/v1")


@pytest.mark.parametrize(
    ("sessions", "compared"),
    [
        ([{PORTS[0]: "w"}, {PORTS[1]: "w"}], False),
        ([{PORTS[0]: "w"}, {PORTS[1]: "other weights"}], True),
        ([{PORTS[0]: "w", PORTS[1]: "w"}], True),
        ([{PORTS[0]: ""}, {PORTS[1]: ""}], True),
        ([{PORTS[0]: "w"}], True),
    ],
    ids=["started again", "other weights", "side by side", "weights unknown", "one of them is not recorded"],
)
def test_a_server_that_was_started_again_on_another_port_is_not_compared_with_itself(
    tmp_path: Path, sessions: list[dict[str, str]], compared: bool
) -> None:
    """sessions: URL → checksum of the weights that its server states."""
    samples = drawn({PORTS[0]: 0.9, PORTS[1]: 0.1}, seed=1)
    run = stored(tmp_path / "run", [question(f"q{q}") for q in range(30)], samples, 16)
    provenance = Provenance()
    for endpoints in sessions:
        facts = {
            url: ServerFacts(model={"files.weights_sample": weights} if weights else {}, host={})
            for url, weights in endpoints.items()
        }
        provenance = provenance.after("t", facts, [])
    msgspec.structs.replace(Manifest.load(run), provenance=provenance).save(run)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert bool(score.endpoints) == compared
    assert any("differs from the rest" in text for text in score.warnings) == compared


def test_one_endpoint_or_one_sample_a_question_tests_nothing(tmp_path: Path) -> None:
    asked = [question("q0"), question("q1")]
    alone = stored(tmp_path / "alone", asked, [sample("q0", 0, A), sample("q1", 0, A, right=False)], 1)
    (score,) = score_run(alone, GradingOptions(workers=1))
    assert score.endpoints == ()
    assert endpoint_table([("run", score)]) is None
    two = stored(tmp_path / "two", asked, [sample("q0", 0, A), sample("q1", 0, B, right=False)], 1)
    (score,) = score_run(two, GradingOptions(workers=1))
    assert [(e.z_accuracy, e.outlier) for e in score.endpoints] == [(None, False)] * 2
