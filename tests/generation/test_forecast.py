"""When a run ends: the range that is printed holds, and nothing reads as done before it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.generation.forecast import Streaming, TimeLeft, time_left
from harness.showing.lines import line, percent, printed_range, time_range
from tests.generation.virtual_session import LENGTHS, Moment, lengths, played

MOMENTS = 12


def late(moments: list[Moment]) -> list[Moment]:
    """From a fifth of the samples on."""
    past_a_fifth = [one for one in moments if one.progress.done >= 0.2 * one.progress.total]
    return past_a_fifth[:: max(1, len(past_a_fifth) // MOMENTS)]


def test_the_true_end_lies_in_the_printed_range_at_seven_moments_in_ten() -> None:
    held = []
    for kind in LENGTHS:
        *moments, end = played(lengths(kind, 0, 35, 16), concurrency=32, step=5.0)
        for one in late(moments):
            assert one.progress.eta is not None
            least, most = printed_range(one.progress.eta)
            held.append(least <= end.now - one.now <= most)
    assert len(held) > 50
    assert sum(held) / len(held) >= 0.7


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
    *moments, _ = played(lengths("lognormal", 0, 10, 4), concurrency=8, step=5.0)
    assert all((one.progress.eta is not None) == (one.progress.done >= 8) for one in moments[3:])
    assert {one.progress.done >= 8 for one in moments[3:]} == {True, False}


@pytest.mark.parametrize(
    ("waiting", "tokens", "longest", "least", "most", "why"),
    [
        (0, 10, 1000, 490, 1990, "as long as the mean, or twice the longest"),
        (0, 1000, 800, 0, 1000, "twice as long as it is, since it is the longest"),
        (0, 3900, 800, 0, 100, "never beyond its budget"),
        (5000, 500, 1000, 500, 2550, "10 tokens a second, and one more of twice the longest; the mean may be 50 more"),
    ],
)
def test_the_range_is_from_the_tokens_left_to_the_longest_stream(
    waiting: float, tokens: float, longest: float, least: float, most: float, why: str
) -> None:
    left = time_left(waiting, [Streaming(tokens, 4000)], 1.0, 10.0, mean=500.0, n=10, longest=longest)
    assert left == TimeLeft(least, most), why


@given(
    waiting=st.floats(0, 1e9),
    streams=st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), max_size=6),
    pace=st.floats(1e-4, 10),
    rate=st.none() | st.just(0.0) | st.floats(1e-6, 1e6),
    mean=st.floats(1, 1e6),
    more=st.floats(0, 1e6),
)
def test_whatever_the_lengths_the_range_is_one(
    waiting: float, streams: list[tuple[float, float]], pace: float, rate: float | None, mean: float, more: float
) -> None:
    left = time_left(waiting, [Streaming(*each) for each in streams], pace, rate, mean=mean, n=8, longest=mean + more)
    if left is None:
        assert not streams or not rate
    else:
        assert 0 <= left.least_s <= left.most_s
        assert time_range(left)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ((12.9, 44.1), "12 to 45 s"),
        ((0.2, 59.9), "0 to 60 s"),
        ((40, 170), "40 s to 3 min"),
        ((540, 780.1), "9 to 14 min"),
        ((540, 9000), "9 min to 2 h 30 min"),
        ((7200, 9000), "2 h 00 min to 2 h 30 min"),
        ((99.9, 99.9), "99 s to 2 min"),
        ((30, 30), "30 s"),
    ],
)
def test_the_range_in_words_is_rounded_outwards(left: tuple[float, float], words: str) -> None:
    assert time_range(TimeLeft(*left)) == words
