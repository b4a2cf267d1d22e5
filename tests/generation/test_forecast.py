"""When a run ends: the range that is printed holds, and nothing reads as done before it is."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.generation.forecast import Expectation, Outlook, Streaming, TimeLeft, time_left
from harness.showing.lines import line, percent, printed_range, time_range
from tests.generation.virtual_session import LENGTHS, MAX_TOKENS, Moment, lengths, played

SEEDS = range(2)
MOMENTS = 12


def late(moments: list[Moment]) -> list[Moment]:
    """From a fifth of the samples on."""
    past_a_fifth = [one for one in moments if one.progress.done >= 0.2 * one.progress.total]
    return past_a_fifth[:: max(1, len(past_a_fifth) // MOMENTS)]


@pytest.mark.wide
def test_the_true_end_lies_in_the_printed_range_at_nine_moments_in_ten() -> None:
    held = []
    for kind in LENGTHS:
        for seed in SEEDS:
            *moments, end = played(lengths(kind, seed, 35, 16), concurrency=32, step=5.0)
            random = Random(seed)
            for one in late(moments):
                left = time_left(one.outlook, random)
                assert left is not None
                least, most = printed_range(left)
                held.append(least <= end.now - one.now <= most)
    assert len(held) > 100
    assert sum(held) / len(held) >= 0.9


def test_the_mean_of_what_has_finished_would_not_have_held() -> None:
    """The wrong twin: what is left, taken for as long as what came, at the rate so far."""
    held = []
    for kind in LENGTHS:
        *moments, end = played(lengths(kind, 0, 35, 16), concurrency=32, step=5.0)
        for one in late(moments):
            p = one.progress
            guess = one.now * (p.total - p.done) / p.done
            held.append(abs(end.now - one.now - guess) <= 0.1 * guess)
    assert sum(held) / len(held) < 0.5


def test_a_run_never_reads_as_done_before_its_last_sample() -> None:
    *moments, end = played(lengths("pareto", 1, 10, 20), concurrency=32, step=20.0)
    for one in moments:
        assert (percent(one.progress.done, one.progress.total) == "100%") == (one.progress.done == one.progress.total)
    assert percent(559, 560) == "99%"
    assert "(100%)" in line(end.progress)


def test_arrived_tokens_and_both_rates_are_those_of_the_streams() -> None:
    *moments, _ = played(lengths("lognormal", 0, 10, 4), concurrency=8, step=10.0)
    busy = [one.progress for one in moments if one.progress.in_flight == 8]
    assert len(busy) > 5
    for one in busy[2:]:
        assert one.tokens_per_s_now == pytest.approx(8 * 50, rel=0.02)
        assert one.tokens_per_s == pytest.approx(8 * 50, rel=0.02)
        assert one.arrived > one.tokens
        assert one.oldest is not None
        assert one.oldest.tokens == pytest.approx(one.oldest.seconds * 50, abs=2)


def test_before_eight_samples_have_finished_nothing_is_promised() -> None:
    question = ("sums", "q0")

    def outlook(n: int, running: int = 1) -> Outlook:
        return Outlook(
            finished={question: [100.0] * n} if n else {},
            running=[Streaming(question, 10.0, 0.1)] * running,
            waiting={},
            prior={},
            max_tokens={},
        )

    assert time_left(outlook(0), Random(0)) is None
    assert time_left(outlook(7), Random(0)) is None
    assert time_left(outlook(8, running=0), Random(0)) is None
    assert time_left(outlook(8), Random(0)) is not None


def test_no_sample_is_expected_beyond_its_budget() -> None:
    question = ("sums", "q0")
    left = time_left(
        Outlook(
            finished={question: [900.0, 1000.0] * 10},
            running=[Streaming(question, 990.0, 1.0)],
            waiting={},
            prior={},
            max_tokens={"sums": 1000},
        ),
        Random(0),
    )
    assert left is not None
    assert left.most_s <= 10 * 1.3  # ten tokens at a second each, and the spread of the pace


@given(
    finished=st.dictionaries(st.integers(0, 5), st.lists(st.integers(1, 10**6), min_size=1, max_size=9), min_size=1),
    running=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 10**6), st.floats(1e-4, 10)), min_size=1, max_size=6),
    waiting=st.dictionaries(st.integers(0, 9), st.integers(1, 300), max_size=9),
    longest_first=st.booleans(),
    seed=st.integers(0, 9),
)
def test_whatever_the_lengths_the_range_is_one(
    finished: dict[int, list[int]],
    running: list[tuple[int, int, float]],
    waiting: dict[int, int],
    longest_first: bool,
    seed: int,
) -> None:
    outlook = Outlook(
        finished={("b", f"q{q}"): tokens for q, tokens in finished.items()},
        running=[Streaming(("b", f"q{q}"), tokens, pace) for q, tokens, pace in running],
        waiting={("b", f"q{q}"): n for q, n in waiting.items()},
        prior={("b", "q0"): 50.0},
        max_tokens={"b": MAX_TOKENS},
        longest_first=longest_first,
    )
    left = time_left(outlook, Random(seed))
    if sum(map(len, finished.values())) < 8:
        assert left is None
        return
    assert left is not None
    assert 0 <= left.least_s <= left.likely_s <= left.most_s < math.inf
    assert " s" in time_range(left) or " min" in time_range(left) or "h" in time_range(left)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ((12.9, 20, 44.1), "12 to 45 s"),
        ((0.2, 20, 59.9), "0 to 60 s"),
        ((40, 100, 170), "40 s to 3 min"),
        ((540, 600, 780.1), "9 to 14 min"),
        ((540, 600, 9000), "9 min to 2 h 30 min"),
        ((7200, 9000, 9000), "2 h 00 min to 2 h 30 min"),
        ((99.9, 100, 99.9), "99 s to 2 min"),
        ((30, 30, 30), "30 s"),
    ],
)
def test_the_range_in_words_is_rounded_outwards(left: tuple[float, float, float], words: str) -> None:
    assert time_range(TimeLeft(*left)) == words


def test_an_expectation_is_renewed_for_something_new_and_not_too_often() -> None:
    question = ("sums", "q0")
    outlooks = [
        Outlook(
            finished={question: [100.0] * 8}, running=[Streaming(question, 1.0, 0.1)], waiting={}, prior={},
            max_tokens={},
        )
        for _ in range(2)
    ]  # fmt: skip
    spent = iter([0.0, 0.5, 1.0, 1.5])
    expectation = Expectation(clock=lambda: next(spent))
    assert not expectation.renew(None, now=0.0)
    assert expectation.renew(outlooks[0], now=0.0)
    assert expectation.left is not None
    assert not expectation.renew(outlooks[0], now=1000.0)  # the same
    assert not expectation.renew(outlooks[1], now=49.0)  # half a second of work a moment ago
    assert expectation.renew(outlooks[1], now=51.0)


def test_what_is_left_shrinks_as_time_passes() -> None:
    assert TimeLeft(10, 20, 30).after(15) == TimeLeft(0, 5, 15)
