"""Replies that look wrong, beside their wrong twins: sound replies that come near.

For: harness.scoring.anomalies, harness.core.reply_notes.
"""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.core import codec
from harness.core.contradictions import CUT_EARLY, TOO_FEW_STATED
from harness.core.hidden_limit import DIGEST_BITS
from harness.core.records import Sample, Usage
from harness.core.reply_notes import AFTER_LEFTOVER, LATE_TEXT, UNREAD_TEXT
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder
from harness.scoring.anomalies import (
    LONG_CHARS,
    allowed_repeats,
    anomalies,
    copies_among,
    reply_doubts,
    signs,
    signs_of,
)
from harness.scoring.observed import Observed
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from tests.runs import recorded
from tests.scoring.graded import question
from tests.scoring.test_scoring_observed import A, sample, stored

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
    counts = anomalies(observed.shown(rows[:4]))
    assert counts is not None
    assert (counts.n_samples, counts.n_any) == (4, 3)
    assert counts.by_sign == {"repetition": 2, "garbled": 1, "no text": 1}
    assert counts.sentence == "3 of 4 samples (75.0%) look wrong: 2 repetition, 1 garbled, 1 no text"
    assert anomalies(observed.shown(rows[:0])) is None
    assert [observed.anomalies(row) for row in (0, 1)] == [(), ("repetition", "garbled")]
    sound = anomalies(observed.shown(rows[:1]))
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
        assert (copies.many, bool(copies.sentence)) == (is_told and repeats,) * 2
        assert bool((independent < samples).any()) is copies.many


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
