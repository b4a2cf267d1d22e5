"""Copies among the samples of a question: counted and named in the score, one sample in its interval.

For: harness.scoring.anomalies.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.core.hidden_limit import DIGEST_BITS
from harness.core.records import Grade, Sample
from harness.presets.grading import GradingOptions
from harness.scoring.anomalies import LONG_CHARS, allowed_repeats, copies_among
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score, score_benchmark
from tests.scoring.graded import grade, question
from tests.scoring.test_scoring_endpoints import A, sample, stored

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


def test_copies_are_counted_within_the_rounds_that_the_score_covers() -> None:
    """30 questions × 16 planned; two have 2 samples so far, so the score covers 2 rounds, 60 samples."""
    questions = [question(f"q{n:02}") for n in range(30)]
    copied = LONG_CHARS << DIGEST_BITS

    def grades(copies: int, stored: int) -> list[Grade]:
        """Of each question, the last `copies` of the `stored` samples have one text."""
        return [
            msgspec.structs.replace(
                grade(f"q{n:02}", index, "cw"[(n + index) % 2]),
                reply_checksum=copied + n if index >= stored - copies else copied + 1000 + 16 * n + index,
            )
            for n in range(30)
            for index in range(2 if n < 2 else stored)
        ]

    unfinished, two_rounds = (score_benchmark(questions, grades(3, stored), 16) for stored in (10, 2))
    assert (unfinished.n_samples, two_rounds.n_samples) == (60, 60)
    assert unfinished.copies is not None
    assert unfinished.copies.n_samples == 60
    assert unfinished.copies.n_equal == 0, "the copies lie outside the complete rounds"
    assert two_rounds.copies is not None
    assert two_rounds.copies.independent == 0.5
    alone = score_benchmark(questions, [one for one in grades(0, 10) if one.sample_index < 2], 2)
    assert unfinished.accuracy.sampling == alone.accuracy.sampling


def test_the_bound_falls_with_the_length_and_never_below_one() -> None:
    n = np.array([8, 8, 8, 64])
    bounds = allowed_repeats(n, np.array([1, 100, 2000, 35])).tolist()
    assert bounds[0] > 8 > bounds[1] > bounds[2] == 1.0
    assert bounds[3] == pytest.approx(64 * 2**-0.7 + 3 * (64 * 2**-0.7 * (1 - 2**-0.7)) ** 0.5)
