"""What is kept of samples beside their grades: numbers as they were, in little memory; continued samples; endpoints.

For: harness.scoring.sample_columns, harness.scoring.pipeline, harness.scoring.anomalies, harness.core.reply_notes,
harness.scoring.measures, harness.scoring.load, harness.scoring.goodput, harness.core.time_limits.
"""

from __future__ import annotations

import csv
import heapq
import itertools
import math
import random
import re
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core import codec
from harness.core.contradictions import CUT_EARLY, TOO_FEW_STATED
from harness.core.hidden_limit import DIGEST_BITS
from harness.core.records import Question, Sample, SampleStep, Seam, Timing, Usage
from harness.core.reply_notes import AFTER_LEFTOVER, LATE_TEXT, UNREAD_TEXT
from harness.core.time_limits import limits_in
from harness.presets.grading import GradingOptions
from harness.reports.formats import to_csv
from harness.reports.report import report
from harness.reports.score_tables import budget_table, endpoint_table, goodput_table, speed_table
from harness.runs import RunFolder, grades, read_samples
from harness.runs.line_file import write_lines
from harness.scoring.anomalies import (
    LONG_CHARS,
    allowed_repeats,
    anomalies,
    copies_among,
    reply_doubts,
    signs,
    signs_of,
)
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.client_metrics import Speed, Workload, endpoint_scores
from harness.scoring.client_metrics import workload as of_rows
from harness.scoring.goodput import Goodput, goodput, late_warning, retry_warning
from harness.scoring.journal_grades import grade_basis
from harness.scoring.load import LoadPoint, Rate, at_full_load, load_point
from harness.scoring.measures import mean_of_tokens
from harness.scoring.pipeline import score_run
from harness.scoring.sample_columns import Column, Observed, retokenized_warning, takeover_warning
from harness.scoring.score import Score
from harness.scoring.stats import t_factor
from harness.scoring.tally import tally
from harness.sweeps.load_curve import CurvePoint, advice
from harness.sweeps.results import CellResult
from harness.viewer.rows import facts_of
from tests.runs import recorded
from tests.scoring.graded import grade, graded, question


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)))
def test_a_column_returns_stated_values_up_to_the_largest_exact_number(values: list[float | None]) -> None:
    column = Column()
    for row, value in enumerate(values):
        column.put(row, value)
        if row % 3 == 0:  # what was read stays, and is there once
            column.numbers(np.array([row], dtype=np.int64))
    assert column.has_numbers == any(value is not None for value in values)
    rows = np.array([*range(len(values))][::-1] * 2, dtype=np.int64)
    found = [None if math.isnan(one) else one for one in column.numbers(rows)]
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
    tallies = tally([question(f"q{i}") for i in range(10)], [*ours], n // 10)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(item.n for item in tallies.questions) == n
    assert used < 500 * n


def test_what_other_tools_made_is_named_with_its_number() -> None:
    observed = Observed()
    for n, file in enumerate(("file:b.jsonl", A, "file:a.jsonl", "file:b.jsonl", "file:c.jsonl")):
        observed.observe(sample("q", n, file))
    assert takeover_warning(observed, np.arange(4, dtype=np.int64)).startswith(
        "3 samples are from another tool's files"
    )
    assert takeover_warning(observed, np.array([1])) == ""


CONTINUED = "1 of 2 samples were continued after an interruption, 1 of them after retokenizing their text"


@pytest.mark.parametrize(("exact", "warning"), [((), ""), ((True,), ""), ((False,), CONTINUED)])
def test_inexact_continued_samples_get_a_warning(exact: tuple[bool, ...], warning: str) -> None:
    observed = Observed()
    seams = tuple(Seam(tokens=1, text=1, reasoning=0, exact=each) for each in exact)
    observed.observe(sample("q", 0, A))
    observed.observe(msgspec.structs.replace(sample("q", 1, A), salvaged_at=seams))
    assert retokenized_warning(observed, np.arange(2, dtype=np.int64)) == warning


def test_former_grades_are_known_by_the_digest_that_older_versions_wrote() -> None:
    assert grade_basis(question("q0")) == "90aea43a26bb"


def test_grades_in_any_order_are_stable_and_the_last_of_a_key_counts(tmp_path: Path) -> None:
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
def test_samples_that_an_earlier_version_continued_count(tmp_path: Path, exact: bool) -> None:
    run = folder(tmp_path, exact=exact)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert score.accuracy.value == 0.75
    named = [one for one in score.sentences if "were continued after an interruption" in one]
    assert bool(named) == (not exact)
    assert len(grades.read(run.benchmark("demo"))) == 8


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


def test_each_endpoint_has_its_shares_and_those_expected_by_its_questions() -> None:
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
    assert not endpoint_table([("run", score)]).rows


# -- suspicious replies ------------------------------------------------------------------------------------------------


WORDS = [
    *("let", "the", "number", "of", "ways", "be", "counted", "by", "cases", "where", "each", "prime", "factor"),
    *("divides", "one", "side", "but", "not", "the", "other"),
]
PROSE = " ".join(random.Random(1).choices(WORDS, k=900))
ALGEBRA = "\n".join(f"$x_{{{n}}} = {n * n + 7} - {n}y$, so $y = \\frac{{{n * 13}}}{{{n + 4}}}$." for n in range(120))
CHINESE = "设这个三角形的面积为所求，先看两条边的长度与夹角，再由余弦定理得到第三条边。" * 3


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        (PROSE + " Wait, let me check again." * 40, "repetition"),
        ("I will now list them. " + "0" * 6000, "repetition"),
        (PROSE + "".join(f"{n}, " for n in [1, 2, 3]) * 900, "repetition"),
        (PROSE + " caf\u00c3\u00a9 na\u00c3\u00afve r\u00c3\u00b4le", "garbled"),
        (PROSE + " \ufffd\ufffd\ufffd", "garbled"),
        ("\u0120the\u0120answer\u0120is\u01205", "garbled"),
    ],
)
def test_each_sign_is_seen(text: str, sign: str) -> None:
    assert signs(text) == {sign}


@pytest.mark.parametrize(
    "text",
    [
        "",
        r"\boxed{204}",
        PROSE,
        ALGEBRA,
        PROSE + " Wait, let me check again." * 3,
        "The word \ufffd is what was asked about.",
        "The café of São Paulo; \u03b1 + \u03b2 \u2264 \u03b3, \u2200x \u2208 \u211d, \U0001d465\u00b2 \u2192 \u221e.",
        "The Chinese for mountain is 山, that of water is 水.",
        "设 $\\angle ABC = 90^\\circ$，则 \\sin x = \\frac{a}{b}，cos x 为正。" + CHINESE,
        "\n".join(f"| {n} | {n * n % 97} |" for n in range(400)),
    ],
)
def test_a_sound_reply_shows_none(text: str) -> None:
    assert signs(text) == frozenset()


def test_of_a_long_reply_the_beginning_and_the_end_are_looked_at() -> None:
    sound, spoilt = PROSE * 9, "\ufffd" * 1000
    assert signs(sound + spoilt + sound) == frozenset()
    assert signs(spoilt + sound) >= {"garbled"}
    assert signs(sound + spoilt[:9]) == {"garbled"}


def said(index: int, text: str | None, reasoning: str | None = None) -> Sample:
    return recorded.sample("q", index, text, reasoning=reasoning, usage=Usage())


def test_a_finished_reply_without_any_text_looks_wrong() -> None:
    assert signs_of(said(0, "")) == signs_of(said(0, None)) == {"no text"}
    # The reasoning is a text; a reply that max_tokens cut may have spent them on a hidden reasoning.
    assert signs_of(said(0, "", "So it is 5.")) == frozenset()
    assert signs_of(msgspec.structs.replace(said(0, ""), finish_reason="length")) == frozenset()


def test_samples_are_counted_by_what_they_show() -> None:
    observed = Observed()
    both = PROSE + " \ufffd\ufffd\ufffd" + " again and again, then." * 60
    given = [said(0, PROSE), said(1, "ok", both), said(2, "0" * 999), said(3, None), said(4, "0" * 999)]
    rows = np.array([observed.observe(one) for one in given])
    counts = anomalies(observed.sign_flags(rows[:4]))
    assert counts is not None
    assert (counts.n_samples, counts.n_any) == (4, 3)
    assert counts.by_sign == {"repetition": 2, "garbled": 1, "no text": 1}
    assert counts.sentence == "3 of 4 samples (75.0%) look wrong: 2 repetition, 1 garbled, 1 no text"
    assert anomalies(observed.sign_flags(rows[:0])) is None
    assert [observed.anomalies(row) for row in (0, 1)] == [(), ("repetition", "garbled")]
    sound = anomalies(observed.sign_flags(rows[:1]))
    assert sound is not None
    assert sound.sentence == ""


def folder_with(path: Path, *lines: object) -> RunFolder:
    (path / "log.jsonl").write_bytes(b"".join(codec.encode(line) + b"\n" for line in lines))
    return RunFolder(path)


def test_doubts_of_all_sessions_are_added_up_and_the_rest_is_left_out(tmp_path: Path) -> None:
    exposed = f"{AFTER_LEFTOVER}; 7 before this one came over used connections and may be wrong"
    notes = [{LATE_TEXT: 2, "no [DONE]": 9}, {LATE_TEXT: 1, f"{UNREAD_TEXT}: thinking": 4, exposed: 1, "refusal": 3}]
    folder = folder_with(tmp_path, *({"event": "session_ended", "notes": one} for one in notes), {"event": "other"})
    assert reply_doubts(folder) == [
        f"4 replies of this run: {UNREAD_TEXT}: thinking",
        f"3 replies of this run: {LATE_TEXT}",
        f"1 reply of this run: {exposed}",
    ]


def test_a_log_without_doubts_or_that_is_damaged_says_nothing(tmp_path: Path) -> None:
    assert reply_doubts(folder_with(tmp_path, {"event": "session_ended", "notes": {"no [DONE]": 3}})) == []
    (tmp_path / "log.jsonl").write_bytes(b'{"event": "session_ended", "notes": {"' + b"\xff" * 99 + b"\n[]\n")
    assert reply_doubts(RunFolder(tmp_path)) == []


def test_what_another_sentence_tells_is_not_told_twice(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path, {"event": "session_ended", "finished": 9, "notes": {CUT_EARLY: 5, TOO_FEW_STATED: 2}}
    )
    (both,), (other,) = reply_doubts(folder), reply_doubts(folder, [CUT_EARLY])
    assert (CUT_EARLY in both, CUT_EARLY in other, TOO_FEW_STATED in other) == (True, False, True)
    former = {"event": "session_ended", "finished": 9, "notes": {"state fewer tokens than came": 2}}
    assert TOO_FEW_STATED in "".join(reply_doubts(folder_with(tmp_path, former))), "in a log of an earlier version"


@pytest.mark.parametrize(
    "note",
    [
        "bytes after the finish reason that are no events",
        "each event has an id of its own",
        "its end states another text than its pieces, which was taken",
        "its server has sent replies that nobody asked for",
    ],
)
def test_a_note_in_the_words_of_an_earlier_log_is_counted(tmp_path: Path, note: str) -> None:
    stored = {"event": "session_ended", "finished": 9, "notes": {note: 3}}
    assert note in "".join(reply_doubts(folder_with(tmp_path, stored)))


def test_the_words_of_a_server_in_a_note_are_harmless(tmp_path: Path) -> None:
    ended = {"event": "session_ended", "notes": {f"{UNREAD_TEXT}: \x1b[2J": 1}}
    assert "\x1b" not in reply_doubts(folder_with(tmp_path, ended))[0]


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder_with(tmp_path, {"event": "session_ended", "notes": {LATE_TEXT: 2}}).log.rename(tmp_path / "elsewhere")
    (tmp_path / "log.jsonl").symlink_to(tmp_path / "elsewhere")
    (sentence,) = reply_doubts(RunFolder(tmp_path))
    assert sentence.startswith("notes on unusual replies cannot be read from log.jsonl: it is a symbolic link")


QUESTIONS = [question(f"q{n}") for n in range(12)]


def replies(copies: int, *, characters: int = 600, samples: int = 8) -> list[Sample]:
    """For each of 12 questions `samples` replies, half of the questions right; the first `copies` have one text."""
    every = []
    for number, asked_question in enumerate(QUESTIONS):
        for index in range(samples):
            reply = sample(asked_question.question_id, index, A, right=number % 2 == 0)
            thought = f"{number} {0 if index < copies else index} ".ljust(characters, "x")
            every.append(msgspec.structs.replace(reply, reasoning=thought))
    return every


def scored(place: Path, samples: list[Sample]) -> Score:
    (score,) = score_run(stored(place, QUESTIONS, samples, 8), GradingOptions(workers=1))
    return score


@pytest.mark.parametrize(
    ("copies", "characters", "n_equal", "n_excess", "independent"),
    [
        (8, 600, 84, 84, 1 / 8),
        (2, LONG_CHARS, 12, 12, 0.8),  # a few copies of each question
        (8, 6, 84, 0, 1.0),  # short replies may repeat as often as independent ones do
        (1, 600, 0, 0, 1.0),
    ],
)
def test_copies_are_counted_named_and_one_sample_in_the_interval(
    tmp_path: Path, copies: int, characters: int, n_equal: int, n_excess: int, independent: float
) -> None:
    score = scored(tmp_path, replies(copies, characters=characters))
    assert score.copies is not None
    assert (score.copies.n_samples, score.copies.n_equal, score.copies.n_excess) == (96, n_equal, n_excess)
    assert (score.copies.n_questions, score.copies.independent) == (12 * bool(n_excess), pytest.approx(independent))
    named = [text for text in score.sentences if text.startswith(f"{n_excess} of 96 samples repeat another reply")]
    assert len(named) == bool(n_excess)
    assert (score.sampling_error is None) == bool(n_excess)  # "at most", as with one sample a question
    assert score.accuracy.sampling is not None
    assert (score.accuracy.sampling.half_width > 0.08) == (independent < 0.5)


@pytest.mark.parametrize("n_texts", [2, 3, 10, 100, 300])
@pytest.mark.parametrize("samples", [4, 16, 64])
def test_a_server_that_draws_from_few_short_texts_is_accused_of_nothing(n_texts: int, samples: int) -> None:
    drawn = np.random.default_rng(n_texts).integers(n_texts, size=30 * samples)
    question = np.repeat(np.arange(30, dtype=np.uint32), samples)
    for length, is_told in ((600, False), (LONG_CHARS, True)):
        counted = copies_among(question, (length << DIGEST_BITS) + drawn, 30)
        assert counted is not None
        copies, independent = counted
        repeats = copies.n_equal > 0.01 * len(drawn)
        assert (copies.is_excessive, bool(copies.sentence)) == (is_told and repeats,) * 2
        assert bool((independent < samples).any()) is copies.is_excessive


def test_replies_of_unknown_text_are_no_copies() -> None:
    question = np.zeros(8, dtype=np.uint32)
    assert copies_among(question, np.full(8, -1), 1) is None
    counted = copies_among(question, np.array([LONG_CHARS << DIGEST_BITS] * 2 + [-1] * 6), 1)
    assert counted is not None
    assert (counted[0].n_samples, counted[0].n_equal) == (8, 1)


def test_the_bound_falls_with_the_length_and_never_below_one() -> None:
    n = np.array([8, 8, 8, 64])
    bounds = allowed_repeats(n, np.array([1, 100, 2000, 35])).tolist()
    assert bounds[0] > 8 > bounds[1] > bounds[2] == 1.0
    assert bounds[3] == pytest.approx(64 * 2**-0.7 + 3 * (64 * 2**-0.7 * (1 - 2**-0.7)) ** 0.5)


# -- speed -------------------------------------------------------------------------------------------------------------


def timed(index: int, timing: Timing, tokens: int | None = 101) -> Sample:
    """A right answer that arrived so."""
    return msgspec.structs.replace(sample("q0", index, A), timing=timing, usage=Usage(completion_tokens=tokens))


def scored_at(folder: Path, *samples: Sample) -> Score:
    (score,) = score_run(stored(folder, [question("q0")], list(samples), len(samples)), GradingOptions(workers=1))
    return score


def streamed(first: float, *, gap: float = 0.02, lag: float | None = 0.001) -> Timing:
    """100 tokens after the first, one a `gap`."""
    return Timing(
        started=0.0,
        first_token=first,
        last_token=first + 100 * gap,
        total=first + 100 * gap,
        gap_p50=gap,
        gap_p99=2 * gap,
        events=101,
        clock="kernel",
        lag=lag,
    )


def test_first_tokens_gaps_and_rates_are_quantiles_over_samples(tmp_path: Path) -> None:
    score = scored_at(tmp_path, *(timed(i, streamed(0.1 * (i + 1))) for i in range(5)))
    assert score.speed == Speed(
        n_samples=5,
        first_token_p50=pytest.approx(0.3),
        first_token_p99=0.5,
        gap_p50=0.02,
        gap_p99=0.04,
        tokens_per_s=pytest.approx(50.0),
        lag=0.001,
        kernel_stamps=1.0,
    )
    table = speed_table([("run", score)])
    assert table is not None
    assert table.rows == (("run", "demo", "300", "500", "20", "40", "50.0", "1"),)
    assert not table.notes


@pytest.mark.parametrize(("lag", "shown"), [(0.005, True), (0.0051, False), (None, False)])
def test_gaps_below_four_times_the_lag_are_withheld(tmp_path: Path, lag: float | None, shown: bool) -> None:
    score = scored_at(tmp_path, timed(0, streamed(0.1, lag=lag)))
    assert score.speed is not None
    assert (score.speed.gap_p50, score.speed.gap_p99) == ((0.02, 0.04) if shown else (None, None))
    assert score.speed.tokens_per_s == pytest.approx(50.0)
    table = speed_table([("run", score)])
    assert table is not None
    assert table.rows[0][4:6] == (("20", "40") if shown else ("*", "*"))
    assert ("client's lag" in " ".join(table.notes)) is not shown


def test_replies_in_one_piece_have_no_speed(tmp_path: Path) -> None:
    score = scored_at(tmp_path, timed(0, Timing(started=0.0, total=2.0)))
    assert score.speed is None
    assert not speed_table([("run", score)]).rows
    assert "Speed" not in report([stored(tmp_path / "other", [question("q0")], [], 1)]).markdown()


def test_a_server_that_states_no_tokens_has_no_rate(tmp_path: Path) -> None:
    score = scored_at(tmp_path, timed(0, streamed(0.1), tokens=None))
    assert score.speed is not None
    assert (score.speed.tokens_per_s, score.speed.gap_p50) == (None, 0.02)


@pytest.mark.parametrize(
    ("reasoning", "rate", "hidden"),
    [(None, 50.0, 1.0), ("it was summed up …", None, 1.0), ("so " * 1667, 2550.0, None), ("é" * 2500, 2550.0, None)],
)
def test_thinking_that_was_not_sent_does_not_count_as_speed(
    tmp_path: Path, reasoning: str | None, rate: float | None, hidden: float | None
) -> None:
    usage = Usage(completion_tokens=5101, reasoning_tokens=5000)
    one = msgspec.structs.replace(timed(0, streamed(60.0)), usage=usage, reasoning=reasoning)
    score = scored_at(tmp_path, one)
    assert score.speed is not None
    assert (score.speed.tokens_per_s, score.speed.hidden) == (rate and pytest.approx(rate), hidden)
    table = speed_table([("run", score)])
    assert table is not None
    assert ("visible tokens only" in " ".join(table.notes)) is (hidden is not None)
    first_token = next(value for name, value in facts_of(one) if name == "first token")
    assert first_token == ("60.00 s" if hidden is None else "60.00 s (visible tokens only)")


def test_every_format_holds_speed_budgets_and_tokens(tmp_path: Path) -> None:
    run = stored(tmp_path, [question("q0")], [timed(i, streamed(0.1), 200 * (i + 1)) for i in range(3)], 3)
    (score,) = score_run(run, GradingOptions(workers=1))
    of_run = report([run])
    for document in (of_run.markdown(), of_run.html()):
        for title in ("Latency of one stream", "Accuracy within a token budget", "Tokens per sample"):
            assert title in document
    (row,) = csv.DictReader(to_csv([("run", "m", score)]).splitlines())
    assert (row["speed_first_token_p50"], row["speed_lag"]) == ("0.1", "0.001")
    assert float(row["within_256_accuracy"]) == pytest.approx(1 / 3)
    assert (row["tokens_completion_mean"], row["tokens_completion_p50"]) == ("400.0", "400")


def worked(
    number: int, started: float, total: float, tokens: int | None = 10, *, attempts: int = 1, cached: int | None = None
) -> Sample:
    prompt = None if tokens is None else 7
    usage = Usage(prompt_tokens=prompt, completion_tokens=tokens, reasoning_tokens=3, cached_tokens=cached)
    timing = Timing(started=started, total=total)
    return recorded.sample("q", number, "", usage=usage, timing=timing, attempts=attempts)


def workload(*samples: Sample) -> Workload:
    observed = Observed()
    found = of_rows(observed, np.array([observed.observe(one) for one in samples]))
    assert found is not None
    return found


def test_idle_time_does_not_count_and_unstated_usage_is_counted_apart() -> None:
    # 0–10 and 5–12 overlap; then nothing until 1000–1003. A clock may run backwards, a reply take no time.
    found = workload(worked(0, 0, 10, attempts=3), worked(1, 5, 7, None), worked(2, 1000, 3), worked(3, 1, -3))
    assert found.busy_s == pytest.approx(15)
    assert (found.started, found.ended) == (0, 1003)
    assert (found.n_samples, found.n_stated, found.requests) == (4, 3, 6)
    assert (found.prompt_tokens, found.completion_tokens, found.reasoning_tokens) == (21, 30, 9)
    assert workload(worked(0, 5, 0)).busy_s == 0
    assert found.cached_tokens is msgspec.UNSET
    assert workload(worked(0, 0, 1, cached=4), worked(1, 0, 1), worked(2, 0, 1, None, cached=2)).cached_tokens == 4


def test_only_the_rows_asked_for_count() -> None:
    observed = Observed()
    rows = [observed.observe(one) for one in (worked(0, 0, 1), worked(1, 5, 9, attempts=4), worked(2, 0, 2))]
    found = of_rows(observed, np.array([rows[0], rows[2]]))
    assert found is not None
    assert (found.n_samples, found.busy_s, found.requests) == (2, 2, 2)
    assert of_rows(observed, np.array([], dtype=np.int64)) is None


def of_lengths(*lengths: tuple[str, int | None]) -> Score:
    """One question; a letter and the tokens of each sample."""
    questions, _ = graded(q1="")
    grades = [grade("q1", i, letter, completion_tokens=n) for i, (letter, n) in enumerate(lengths)]
    return score_benchmark(questions, grades, len(lengths))


def test_a_longer_reply_counts_as_wrong_within_a_budget() -> None:
    score = of_lengths(("c", 200), ("c", 256), ("c", 257), ("w", 100), ("c", 900))
    found = {tokens: (one.accuracy.value, one.cut) for tokens, one in score.budgets.items()}
    assert found == {256: (0.4, 0.4), 512: (pytest.approx(0.6), 0.2), 1024: (pytest.approx(0.8), 0.0)}
    assert score.budgets[1024].accuracy == score.accuracy
    shown = budget_table([("run", score)])
    assert (shown.columns[-1], [row[-1] for row in shown.rows]) == ("longer %", ["40.0", "20.0", "0.0"])


def test_unknown_tokens_give_no_budgets() -> None:
    assert of_lengths(("c", 200), ("c", None)).budgets == {}


def test_hand_worked() -> None:
    """Two questions with 10, 20 and 30, 60 tokens, twice each: mean 30, variances within 100/3 and 300."""
    values, of = np.array([10.0, 20.0, 10.0, 20.0, 30.0, 60.0, 30.0, 60.0]), np.repeat([0, 1], 4)
    found = mean_of_tokens(values, of, np.arange(2))
    # Σd² = 1000, Σd⁴ = 205,000, f = 6: K = 3.66 equal squares, 9.4 degrees of freedom, at most 6.
    factor = math.exp(t_factor(6) * math.sqrt(4 * 100 / 3 + 4 * 300) / 8 / 30)
    assert found.sampling == pytest.approx((30 / factor, 30 * factor))
    assert found.question is None  # two questions leave one degree of freedom
    assert not found.at_most


def test_one_sample_each_is_at_most() -> None:
    found = mean_of_tokens(np.array([10.0, 20.0, 30.0]), np.arange(3), np.arange(3))
    factor = math.exp(t_factor(2) * math.sqrt(200) / 3 / 20)
    assert found.at_most
    assert found.sampling == pytest.approx((20 / factor, 20 * factor))
    factor = math.exp(t_factor(2) * math.sqrt(200 * 3 / 2) / 3 / 20)
    assert found.question == pytest.approx((20 / factor, 20 * factor))


def test_a_long_length_leaves_few_degrees_of_freedom() -> None:
    """One of eight lengths makes nearly the whole variance: K = 1.1 of 7, 1.4 degrees of freedom, at least 2."""
    values = np.array([10.0, 11.0, 10.0, 11.0, 10.0, 11.0, 10.0, 200.0])
    found = mean_of_tokens(values, np.arange(8), np.arange(8)).sampling
    mean = values.mean()
    factor = math.exp(t_factor(2) * math.sqrt(((values - mean) ** 2).sum()) / 8 / mean)
    assert found == pytest.approx((mean / factor, mean * factor))


def test_one_length_says_nothing_of_others() -> None:
    found = mean_of_tokens(np.array([10.0, math.nan, math.nan]), np.arange(3), np.arange(3))
    assert found.sampling is None


def test_one_cluster_has_no_question_interval() -> None:
    found = mean_of_tokens(np.array([10.0, 20.0]), np.array([0, 1]), np.zeros(2, dtype=np.intp))
    assert found.question is None


PREFILL_S, USER_SPEED, MEAN_TOKENS = 0.5, 40.0, 400


def sample_at(number: int, began: float, total: float, tokens: int | None, **more: object) -> Sample:
    timing = Timing(started=began, first_token=PREFILL_S, last_token=total, total=total)
    made: dict[str, Any] = {"text": "x", "reasoning": None, "finish_reason": "stop", "endpoint": "http://a/v1"}
    made |= {"usage": Usage(completion_tokens=tokens), "timing": timing}
    return Sample(benchmark="b", question_id=f"q{number}", sample_index=0, **made | more)


def simulated(
    seed: int, n: int, concurrency: int, *, spell_s: float = 0, user_speed: float = USER_SPEED
) -> list[Sample]:
    """A run with so many requests in flight, on a server whose speed varies with the second and with the request.

    spell_s: the mean length of spells at half speed, which take a fifth of the time. user_speed: tokens per second of
    one request.
    """
    random = np.random.default_rng(seed)
    shared = random.normal(0, 0.1, 100_000)
    if spell_s:
        lengths = random.exponential(np.tile([4 * spell_s, spell_s], 2_000)).cumsum().astype(int)
        for start, end in zip(lengths[::2], lengths[1::2], strict=True):
            shared[start:end] += math.log(0.5)
    free, samples = [random.uniform(0, 0.2) for _ in range(concurrency)], list[Sample]()
    heapq.heapify(free)
    for number in range(n):
        began = heapq.heappop(free)
        tokens = 2 + int(random.exponential(MEAN_TOKENS - 2))
        speed = user_speed * np.exp(shared[int(began)] + random.normal(0, 0.1))
        total = PREFILL_S + (tokens - 1) / speed
        samples.append(sample_at(number, began, float(total), tokens))
        heapq.heappush(free, began + total + random.uniform(0, 0.002))
    return samples


def point_of(samples: Sequence[Sample], concurrency: int) -> LoadPoint:
    point = load_point(samples, concurrency)
    assert point is not None
    return point


@pytest.mark.parametrize("concurrency", [1, 4, 20])
def test_a_load_is_what_counting_each_token_and_request_at_full_load_gives(concurrency: int) -> None:
    plain = simulated(5, 15 * concurrency, concurrency)
    gaps = np.random.default_rng(5).integers(1, 40, (len(plain), 100))
    gaps[:: 2 * concurrency, 0] = 400  # A stall.
    samples = [
        replace(one, timing=replace(one.timing, gaps=Counter(of.tolist()))) for one, of in zip(plain, gaps, strict=True)
    ]
    point = point_of(samples[::-1], concurrency)
    ends = [(one.timing.started, one.timing.started + one.timing.total) for one in samples]
    times = sorted(itertools.chain(*ends))
    in_flight = [sum(began <= time < end for began, end in ends) for time in times]
    full = [pair for pair, n in zip(itertools.pairwise(times), in_flight[:-1], strict=True) if n >= 0.9 * concurrency]
    assert point.seconds == pytest.approx(sum(end - start for start, end in full))
    began = [one for one in samples if any(start <= one.timing.started < end for start, end in full)]
    assert 0.7 * len(samples) < point.requests == len(began) <= len(samples)
    arrivals = np.concatenate(
        [
            one.timing.started + np.linspace(PREFILL_S, one.timing.total, one.usage.completion_tokens or 0)
            for one in samples
        ]
    )
    n_arrived = sum(int(((arrivals >= start) & (arrivals < end)).sum()) for start, end in full)
    assert point.tokens_per_s.value == pytest.approx(n_arrived / point.seconds, rel=0.01)
    assert point.user_tokens_per_s is not None
    speeds = [((one.usage.completion_tokens or 0) - 1) / (one.timing.total - PREFILL_S) for one in began]
    assert point.user_tokens_per_s.value == np.quantile(speeds, 0.5, method="inverted_cdf")
    for stated, values in (
        (point.total, [one.timing.total for one in began]),
        (point.time_per_token, [1 / v for v in speeds]),
    ):
        assert stated is not None
        expected = np.quantile(values, [0.5, 0.9, 0.99], method="inverted_cdf")
        assert [stated.p50, stated.p90, stated.p99] == pytest.approx(expected)
    of_load = np.array([list(Counter(one.timing.gaps).elements()) for one in began])
    assert point.gap_p99 == np.quantile(of_load, 0.99, method="inverted_cdf") / 1000 < 0.04
    largest = np.quantile(of_load.max(axis=1), [0.5, 0.9, 0.99], method="inverted_cdf") / 1000
    assert point.largest_gap is not None
    assert [point.largest_gap.p50, point.largest_gap.p90, point.largest_gap.p99] == largest.tolist()
    assert point.largest_gap.p99 == 0.4
    # Wrong twin: a run that did not record them.
    assert (point_of(plain, concurrency).gap_p99, point_of(plain, concurrency).largest_gap) == (None, None)


def test_intervals_cover_the_true_rates() -> None:
    covered = np.zeros(2)
    spread = np.exp(0.1**2)  # The mean of 1 / speed, of two normal logarithms with deviation 0.1.
    truth = 8 * MEAN_TOKENS / (PREFILL_S + (MEAN_TOKENS - 1) / USER_SPEED * spread)
    for seed in range(400):
        point = point_of(simulated(seed, 400, 8), 8)
        for number, (rate, true) in enumerate(((point.tokens_per_s, truth), (point.user_tokens_per_s, USER_SPEED))):
            assert rate is not None
            assert rate.low is not None
            assert rate.high is not None
            covered[number] += rate.low <= true <= rate.high
    assert [0.93 <= share <= 0.97 for share in covered / 400] == [True, True], covered


@pytest.mark.parametrize("spell_s", [5, 20, 40])
def test_intervals_cover_at_the_advised_size_under_slow_spells(spell_s: float) -> None:
    long = [point_of(simulated(1_000 + seed, 20_000, 8, spell_s=spell_s), 8).tokens_per_s.value for seed in range(3)]
    rates = [point_of(simulated(seed, 128 * 8, 8, spell_s=spell_s), 8).tokens_per_s for seed in range(150)]
    held = [rate.low is not None and rate.high is not None and rate.low <= np.mean(long) <= rate.high for rate in rates]
    assert np.mean(held) >= 0.93 - 2 * math.sqrt(0.93 * 0.07 / 150), np.mean(held)


RATES = ("within", "right", "within_per_s", "right_per_s")


def goodput_of(samples: Sequence[Sample], limits: str, right: Sequence[bool] | None = None) -> Goodput:
    observed = Observed()
    rows = np.array([observed.observe(sample) for sample in samples])
    found = goodput(observed, rows, np.array(right or [True] * len(rows)), limits_in(limits))
    assert found is not None
    return found


def test_goodput_counts_the_right_answers_within_all_limits() -> None:
    samples = simulated(3, 400, 8)
    right = [number % 3 > 0 for number in range(len(samples))]
    found = goodput_of(samples, "token_gap=26ms,total=12s", right)
    kept = [
        one.timing.total <= 12
        and (one.timing.total - PREFILL_S) / max(1, (one.usage.completion_tokens or 0) - 1) <= 0.026
        for one in samples
    ]
    point = point_of(samples, 8)  # At full load for nearly all of the time.
    assert found.n_requests == pytest.approx(len(samples), rel=0.05)
    assert 0.1 < found.right.value < found.within.value < 0.9
    assert found.within.value == pytest.approx(np.mean(kept), abs=0.02)
    assert found.right.value == pytest.approx(np.mean(np.array(kept) & np.array(right)), abs=0.02)
    for share, per_s in ((found.within, found.within_per_s), (found.right, found.right_per_s)):
        assert per_s.value == pytest.approx(share.value * point.tokens_per_s.value / point.tokens, rel=0.03)
    # Wrong twins: a limit that all keep, and one that none keeps. No variation is no certainty.
    every, none = goodput_of(samples, "total=9999s").within, goodput_of(samples, "total=1ms").within
    assert (every.value, none.value) == (1, 0)
    assert (every.low or 0) < 1 == every.high
    assert none.low == 0 < (none.high or 0)


def test_goodput_counts_requests_that_start_and_end_together() -> None:
    samples = [sample_at(n, n // 8 + 0.001 * (n % 8), 1 - 0.002 * (n % 8), 50) for n in range(512)]
    found = goodput_of(samples, "total=3s")
    assert found.n_requests > 480
    assert found.within_per_s.value == pytest.approx(8, rel=0.02)
    assert (found.within_per_s.low or 0) <= 8 <= (found.within_per_s.high or 0) + 0.1


def test_a_report_states_the_limits_and_what_kept_them(tmp_path: Path) -> None:
    found = goodput_of(simulated(3, 400, 8), "token_gap=26ms,total=12s")
    rate = {"value": 0.5, "low": 0.25, "high": 0.75}
    plain = msgspec.structs.replace(found, n_requests=1234.0, **dict.fromkeys(RATES, Rate(**rate)))
    score = msgspec.structs.replace(scored_at(tmp_path, timed(0, streamed(0.1))), goodput=plain)
    table = goodput_table([("run", score)])
    assert table is not None
    shown = ["token gap ≤ 26 ms, total ≤ 12 s", "1,234", *["50 (25–75)"] * 2, *["0.5 (0.25–0.75)"] * 2]
    assert table.rows == (("run", "demo", *shown),)
    assert not goodput_table([("run", msgspec.structs.replace(score, goodput=msgspec.UNSET))]).rows


def test_goodput_leaves_out_requests_whose_limited_times_are_unknown() -> None:
    samples = simulated(1, 200, 4)
    whole = [replace(one, timing=replace(one.timing, first_token=None, last_token=None)) for one in samples[:50]]
    found = goodput_of([*whole, *samples[50:]], "first_token=1s")
    assert found.n_unknown > 40
    assert found.within.value == 1
    at_once = [replace(one, timing=replace(one.timing, first_token=9.0, last_token=9.0)) for one in samples]
    observed = Observed()
    rows = np.array([observed.observe(sample) for sample in at_once])
    assert goodput(observed, rows, np.ones(len(rows)), limits_in("token_gap=1ms")) is None
    assert goodput_of([*whole, *samples[50:]], "total=9999s").n_unknown == 0


def test_a_request_that_failed_at_first_is_not_within_the_limits() -> None:
    samples = [replace(one, attempts=1 + (n % 4 == 0)) for n, one in enumerate(simulated(1, 400, 4))]
    assert goodput_of(samples, "total=9999s").within.value == pytest.approx(0.75, abs=0.02)
    # With planned arrivals, the times include all attempts.
    planned = [replace(one, timing=replace(one.timing, late=0.01)) for one in samples]
    assert goodput_of(planned, "total=9999s").within.value == 1
    point = load_point(samples, 4)
    assert point is not None
    assert retry_warning(point.n_retried, point.requests).startswith(f"{point.n_retried} of {point.requests} requests")
    assert point.n_retried == pytest.approx(point.requests / 4, abs=2)
    assert retry_warning(1, 100) == ""


def test_each_benchmark_of_a_sweep_has_one_highest_load() -> None:
    points = []
    for load in (2, 4):  # as in a sweep, the benchmarks alternate
        good = goodput_of(simulated(load, 64 * load, load), "token_gap=33.3ms")
        for benchmark in ("a", "b"):
            cell = SimpleNamespace(benchmark=benchmark)
            score = SimpleNamespace(goodput=good, warnings=())
            result = SimpleNamespace(score=score, cell=cell, against_base=None, differs=False, reason="")
            points.append(CurvePoint(benchmark, cast(CellResult, result), None, 1, load))
    assert [sentence.partition(" requests")[0] for sentence in advice(points)] == ["a: Serve with 4", "b: Serve with 4"]


def test_the_advice_names_why_a_higher_load_is_not_served() -> None:
    def point(load: int, *, limits: bool, lost: float = 0.0) -> CurvePoint:
        good = goodput_of(simulated(load, 64 * load, load), "token_gap=33.3ms") if limits else None
        pair = SimpleNamespace(difference=SimpleNamespace(value=-lost, sampling=None)) if lost else None
        score, cell = SimpleNamespace(goodput=good, warnings=()), SimpleNamespace(benchmark="b")
        result = SimpleNamespace(score=score, cell=cell, against_base=pair, differs=bool(lost), reason="")
        return CurvePoint("", cast(CellResult, result), None, 1, load)

    (sentence,) = advice([point(1, limits=True), point(4, limits=True, lost=0.2)])
    assert sentence.startswith("Serve with 1 request in flight, the highest load at which 90% of")
    assert sentence.endswith("≤ 33.3 ms and the accuracy is kept")
    (sentence,) = advice([point(1, limits=True), point(4, limits=True)])
    assert sentence.endswith("≤ 33.3 ms")
    assert advice([point(1, limits=False)]) == ["No load has a known speed per user"]


def test_the_highest_load_before_a_planted_knee_is_found() -> None:
    """Up to 16 requests at 40 tokens per second each, and slower in proportion above: the limit is 30."""
    found = []
    for seed in range(20):
        points = []
        for load in (4, 8, 16, 24, 32):
            speed = USER_SPEED * min(1, 16 / load)
            good = goodput_of(simulated(97 * seed + load, 64 * load, load, user_speed=speed), "token_gap=33.3ms")
            score = SimpleNamespace(goodput=good, warnings=())
            cell = SimpleNamespace(benchmark="b")
            result = SimpleNamespace(score=score, cell=cell, against_base=None, differs=False, reason="")
            points.append(CurvePoint("", cast(CellResult, result), None, 1, load))
        (sentence,) = advice(points)
        found.append(sentence)
    limits = "90% of the requests meet token gap ≤ 33.3 ms"
    right = f"Serve with 16 requests in flight, the highest load at which {limits}"
    assert found.count(right) >= 19, found


def test_intervals_of_goodput_cover_under_slow_spells() -> None:
    limits = "token_gap=30ms,total=40s"
    long = [goodput_of(simulated(1_000 + seed, 20_000, 8, spell_s=20), limits).within.value for seed in range(1)]
    shares = [goodput_of(simulated(seed, 128 * 8, 8, spell_s=20), limits).within for seed in range(60)]
    held = [
        each.low is not None and each.high is not None and each.low <= np.mean(long) <= each.high for each in shares
    ]
    assert np.mean(held) >= 0.93 - 2 * math.sqrt(0.93 * 0.07 / 60), np.mean(held)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ("total=5", "total: expected a time above 0 with its unit, such as 2s or 50ms, found 5"),
        ("total=0s", "total: expected a time above 0 with its unit"),
        ("tpot=50ms", "expected limits named first_token, token_gap, total or share, found tpot"),
        ("share=90%", "expected at least one of first_token, token_gap, total"),
        ("total=1s,share=0.9", "share: expected a percentage above 0 and below 100, such as 90%, found 0.9"),
        ({"total": 5}, "total: expected a time above 0 with its unit"),
    ],
)
def test_a_limit_without_a_unit_or_a_name_is_one_sentence(limits: str | dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        limits_in(limits)
    assert limits_in("first_token=1.5s, token_gap=50 ms,share=95%") == (1.5, 0.05, None, 0.95)


def test_time_between_sessions_is_not_time_at_a_rate() -> None:
    began = np.array([*np.arange(10.0), *np.arange(1000.0, 1010.0)])
    full = at_full_load(began, began + 0.5, planned=True)
    assert full is not None
    assert full.seconds == pytest.approx(18)
    assert full.shares(began, began + 0.5).sum() == pytest.approx(18), "the last request of each session is not in it"
    assert at_full_load(began[:1], began[:1] + 0.5, planned=True) is None


def test_late_requests_are_a_warning() -> None:
    assert late_warning(np.array([np.nan, 0.01, 0.1])) == ""
    assert late_warning(np.array([np.nan, 0.01, 0.25, 0.15])).startswith("2 of 4 requests were sent over 0.1 s after")


def test_a_load_that_was_never_reached_or_states_no_tokens_is_unknown() -> None:
    samples = simulated(1, 60, 8)
    assert load_point(samples, 8) is not None
    assert load_point(samples, 9) is None
    assert load_point([], 1) is None
    assert load_point([replace(one, usage=Usage()) for one in samples], 8) is None
    continued = replace(samples[0], salvaged_at=(Seam(tokens=1, text=1, reasoning=0, exact=True),))
    with_tool = replace(samples[0], steps=(SampleStep(finish_reason="tool_calls"),))
    assert load_point([continued], 1) is load_point([with_tool], 1) is None


def test_a_reply_in_one_piece_and_hidden_reasoning_have_no_false_speed() -> None:
    """Hidden reasoning is over before the first token that is shown."""
    samples = simulated(1, 200, 4)
    whole = [replace(one, timing=replace(one.timing, first_token=None, last_token=None)) for one in samples]
    hidden = [replace(one, usage=replace(one.usage, reasoning_tokens=one.usage.completion_tokens)) for one in samples]
    summary = [replace(one, reasoning="So") for one in hidden]
    plain = point_of(samples, 4)
    for kind in (whole, hidden, summary):
        point = point_of(kind, 4)
        assert (point.user_tokens_per_s, point.time_per_token) == (None, None)
        assert point.tokens_per_s.value == pytest.approx(plain.tokens_per_s.value, rel=0.02)
        assert (point.first_token is None) == (kind is whole)
    # Wrong twin: half of the tokens were streamed, at half of the speed.
    half = [
        replace(one, usage=replace(one.usage, reasoning_tokens=(one.usage.completion_tokens or 0) // 2))
        for one in samples
    ]
    shown = point_of(half, 4).user_tokens_per_s
    assert shown is not None
    assert plain.user_tokens_per_s is not None
    assert shown.value == pytest.approx(plain.user_tokens_per_s.value / 2, rel=0.03)
