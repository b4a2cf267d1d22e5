"""What is kept of samples beside their grades: numbers as they were, in little memory; continued samples; endpoints.

For: harness.scoring.observed, harness.scoring.pipeline.
"""

from __future__ import annotations

import math
import random
import tracemalloc
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.packed import Packed
from harness.core.records import Grade, Question, Sample, Seam, Timing, Usage
from harness.presets.grading import GradingOptions
from harness.reports.report import report
from harness.reports.tables import endpoint_table
from harness.runs import RunFolder, grades, read_samples
from harness.runs.line_file import write_lines
from harness.scoring.client_metrics import endpoint_scores
from harness.scoring.journal_grades import basis
from harness.scoring.observed import Column, Observed, salvage_warnings, takeover_warning
from harness.scoring.pipeline import score_run
from harness.scoring.tally import tally
from tests.runs import recorded
from tests.scoring.graded import grade, question


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)))
def test_a_column_gives_back_what_was_stated_up_to_the_largest_exact_number(values: list[float | None]) -> None:
    column = Column()
    for row, value in enumerate(values):
        column.put(row, value)
        if row % 3 == 0:  # what was read stays, and is there once
            column.of(np.array([row], dtype=np.int64))
    assert column.stated == any(value is not None for value in values)
    rows = np.array([*range(len(values))][::-1] * 2, dtype=np.int64)
    found = [None if math.isnan(one) else one for one in column.of(rows)]
    assert found == [value and min(value, 2.0**53) for value in (values[row] for row in rows)]


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ([{}, {}], []),
        ([{"provider": "A"}, {"provider": "A", "fingerprint": "fp1"}, {}], []),
        ([{"provider": "B"}, {"provider": "A"}, {"provider": "A"}, {}], ["2 providers (`provider`: A 2, B 1)"]),
        (
            [{"provider": str(n), "fingerprint": f"fp{n % 2}"} for n in range(7)],
            ["7 providers (`provider`: 0 1, 1 1, 2 1, 3 1, 4 1 and 2 more)", "`system_fingerprint`: fp0 4, fp1 3)"],
        ),
    ],
)
def test_a_score_names_more_than_one_answerer(tmp_path: Path, stated: list[dict[str, str]], words: list[str]) -> None:
    """Of a field that says who answered; a router's providers, a server's builds."""
    samples = [msgspec.structs.replace(sample("q", n, A), **fields) for n, fields in enumerate(stated)]
    run = stored(tmp_path, [question("q")], samples, len(samples))
    (score,) = score_run(run, GradingOptions(workers=1))
    told = [warning.text for warning in score.warnings if warning.kind == "answerers"]
    assert len(told) == len(words)
    assert all(word in text for word, text in zip(words, told, strict=True)), told
    assert [one.provider or None for one in read_samples(run.benchmark("demo"))] == [f.get("provider") for f in stated]


@pytest.mark.slow
def test_a_sample_and_its_grade_take_little_memory() -> None:
    n = 12_000
    observed = Observed()
    plain = Sample(
        benchmark="demo",
        question_id="q",
        sample_index=0,
        text="so 2",
        reasoning=None,
        finish_reason="stop",
        usage=Usage(prompt_tokens=30, completion_tokens=1234),
        timing=Timing(started=1.8e9, total=2.5),
        endpoint=A,
    )
    tracemalloc.start()
    for _ in range(n):
        observed.observe(plain)
    ours = (grade(f"q{i % 10}", i // 10, "cw"[i % 3 == 0], completion_tokens=i) for i in range(n))
    packed = Packed(Grade, ours)
    tallies = tally([question(f"q{i}") for i in range(10)], packed, n // 10)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(item.n for item in tallies.questions) == n
    assert used < 150 * n


def test_what_other_tools_made_is_named_with_its_number() -> None:
    observed = Observed()
    for n, file in enumerate(("file:b.jsonl", A, "file:a.jsonl", "file:b.jsonl", "file:c.jsonl")):
        observed.observe(sample("q", n, file))
    assert takeover_warning(observed, np.arange(4, dtype=np.int64)).startswith(
        "3 samples are from another tool's files"
    )
    assert takeover_warning(observed, np.array([1])) == ""


@pytest.mark.parametrize(
    ("exact", "counted", "warning"),
    [
        ((), True, None),
        ((), False, None),
        ((True,), True, None),
        (
            (True,),
            False,
            "1 of 2 samples were continued after an interruption, over the same tokens; the score does not",
        ),
        ((False,), True, "1 of them after retokenizing their text; to exclude them, use --no-salvaged"),
        ((False,), False, "1 of them after retokenizing their text; the score does not count them"),
    ],
)
def test_continued_samples_are_warned_of_where_they_are_left_out_or_inexact(
    exact: tuple[bool, ...], counted: bool, warning: str | None
) -> None:
    observed = Observed()
    seams = tuple(Seam(tokens=1, text=1, reasoning=0, exact=each) for each in exact)
    observed.observe(sample("q", 0, A))
    observed.observe(msgspec.structs.replace(sample("q", 1, A), salvaged_at=seams))
    warnings = salvage_warnings(observed, np.arange(2, dtype=np.int64), counted=counted)
    assert len(warnings) == (warning is not None)
    assert warning is None or warning in warnings[0]


def test_former_grades_are_known_by_the_digest_that_older_versions_wrote() -> None:
    assert basis(question("q0")) == "90aea43a26bb"


def test_grades_of_a_file_in_any_order_hold_still_and_the_last_of_a_key_counts(tmp_path: Path) -> None:
    asked = [question(f"q{i}") for i in range(4)]
    samples = [sample(f"q{i}", n, (A, B)[n % 2], right=(i + n) % 3 > 0) for n in range(3) for i in (2, 0, 3, 1)]
    run = stored(tmp_path / "run", asked, samples, 3)
    (first,) = score_run(run, GradingOptions(workers=1))
    place = run.benchmark("demo")
    ordered = [*grades.read(place)]
    assert [one.key for one in ordered] == sorted(one.key for one in ordered)
    turned = msgspec.structs.replace(ordered[0], verdict="undecided")
    write_lines(place.grades, [turned, *ordered[1:]])
    (other,) = score_run(run, GradingOptions(workers=1))
    assert other.n_undecided == 1, "a former grade is reused, the first of all, too"
    write_lines(place.grades, [turned, *reversed(ordered)])
    assert score_run(run, GradingOptions(workers=1)) == [first]
    assert [*grades.read(place)] == ordered
    write_lines(place.grades, [*ordered, turned])
    (other,) = score_run(run, GradingOptions(workers=1))
    assert other.n_undecided == 1
    assert score_run(run, GradingOptions(workers=1, fresh=True)) == [first]


@pytest.mark.parametrize("key", [("gone", 0), ("q0", -1), ("q0", 1 << 40)])
def test_a_sample_of_no_plan_hides_none_behind_it(tmp_path: Path, key: tuple[str, int]) -> None:
    run = stored(tmp_path / "run", [question("q0")], [sample(*key, A), sample("q0", 0, A)], 1)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert (score.n_samples, score.accuracy.value) == (1, 1.0)


def test_the_first_damaged_lines_of_a_journal_are_named(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", [question("q0")], [sample("q0", 0, A)], 1)
    with run.benchmark("demo").samples.open("ab") as file:
        file.write(b"{}\n" * 5)
    (score,) = score_run(run, GradingOptions(workers=1))
    (warning,) = (warning.text for warning in score.warnings if "not counted" in warning.text)
    assert [part.partition(" (")[0] for part in warning.split("line ")[1:]] == ["2", "3", "4"]
    assert " and 2 more; to sample them again, repeat the run command" in warning


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
    assert any("2 of 8 samples were continued" in one and "does not count them" in one for one in without.sentences)
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


A, B, C = (f"http://node{letter}:8000/v1" for letter in "abc")


def sample(question_id: str, index: int, endpoint: str, *, right: bool = True, cut: bool = False) -> Sample:
    return recorded.sample(
        question_id,
        index,
        rf"so \boxed{{{2 if right else 3}}}",
        benchmark="demo",
        endpoint=endpoint,
        finish_reason="length" if cut else "stop",
        usage=Usage(completion_tokens=100),
        timing=Timing(started=0.0, total=4.0 if endpoint == B else 2.0),
    )


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
    by_url = endpoint_scores(observed, np.arange(4), grades)
    first, second = by_url.values()
    assert ([*by_url], first.n_samples, second.n_samples) == ([A, B], 2, 2)
    assert (first.accuracy.value, first.expected_accuracy) == (1.0, pytest.approx(2 / 3))
    assert (second.accuracy.value, second.expected_accuracy) == (0.5, pytest.approx((2 / 3 + 1) / 2))
    assert first.truncated == 0.5
    assert (first.tokens_per_s, second.tokens_per_s) == (50.0, 25.0)
    assert first.accuracy.sampling.low < 1.0 == first.accuracy.sampling.high
    assert (first.accuracy.at_most, second.accuracy.at_most) == (False, True)


@pytest.mark.slow
def test_the_endpoints_of_a_run_stand_in_score_and_table(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", [question(f"q{q}") for q in range(30)], drawn({A: 0.6, B: 0.6, C: 0.3}, seed=1), 16)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert [*score.endpoints] == [A, B, C]
    table = endpoint_table([("run", score)])
    assert table is not None
    low, high = score.endpoints[C].accuracy.sampling or (0.0, 0.0)
    assert low < 0.3 < high
    assert {one.accuracy.question for one in score.endpoints.values()} == {None}  # each endpoint has the same questions
    assert table.rows[2][5] == f"{100 * low:.1f}–{100 * high:.1f}"
    assert "By endpoint" in report([run]).html()


def test_one_endpoint_has_no_table(tmp_path: Path) -> None:
    asked = [question("q0"), question("q1")]
    alone = stored(tmp_path / "alone", asked, [sample("q0", 0, A), sample("q1", 0, A, right=False)], 1)
    (score,) = score_run(alone, GradingOptions(workers=1))
    assert score.endpoints == {}
    assert endpoint_table([("run", score)]) is None
