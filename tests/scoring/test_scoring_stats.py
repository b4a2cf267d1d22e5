"""The formulas: a table of numbers worked by hand, brute force for few samples, and what must hold of any samples.

For: harness.scoring.stats, harness.deciding.difference_stats.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.deciding.difference_stats import (
    DifferenceVariance,
    SampleSpread,
    holm,
    least_variance,
    mean_difference_limits,
    min_samples,
    planned_variance,
    power_factor,
    published_variance,
    question_difference,
    scaled_difference,
    score_variance,
    smallest_difference,
    smoothed_variance,
)
from harness.scoring import stats
from harness.scoring.pass_at_k import VoteGroup, at_least_of_k, jackknife, maj_at_k, maj_jackknife, without_one
from harness.scoring.stats import Array, Interval, IntervalEnds, between, question_limits, sampling_limits, t_factor
from tests.budget import examples

SPREAD = SampleSpread(n_questions=30, mean=0.3, variance=0.15)


def arrays(*pairs: tuple[float, float]) -> tuple[Array, Array]:
    """(right samples, all samples) of each question."""
    right, counts = np.array(pairs, dtype=float).T
    return right, counts


def ends(limits: IntervalEnds | Interval) -> list[float]:
    return [float(end) for end in limits]


def wilson(mean: float, trials: float, factor: float = stats.Z_95) -> list[float]:
    """Wilson's interval, in the form of textbooks."""
    square = factor**2
    reach = factor * math.sqrt(mean * (1 - mean) / trials + square / (4 * trials**2))
    center, norm = mean + square / (2 * trials), 1 + square / trials
    return [(center - reach) / norm, (center + reach) / norm]


def by_hand() -> Iterator[tuple[str, object, object]]:
    """(what it is, computed, worked by hand)."""
    yield "t of 1 degree", stats.t_two_sided(1, 1), 0.5  # Cauchy: 1 − 2/π·arctan 1
    yield "t of 2 degrees", stats.t_two_sided(math.sqrt(2), 2), 1 - math.sqrt(0.5)  # 1 − t/√(2 + t²)
    yield "t of none", stats.t_two_sided(0, 7), 1.0
    yield "normal tail", stats.normal_two_sided(-stats.Z_95), 0.05
    for df, factor in ((1, 12.7062), (2, 4.30265), (9, 2.26216), (29, 2.04523), (499, 1.96473), (500, 1.96472)):
        yield f"factor of {df} degrees", round(t_factor(df), 5), factor if df > 1 else 12.70620
    ten = stats.wilson(np.asarray(0.5), np.asarray(10.0))
    yield "ends of Wilson", [round(end, 4) for end in ends(ten)], [0.2366, 0.7634]
    # p = ¾ and 0 of 8 samples: s² = 0.1875/7/4, N = 16, p̄ = 3/8
    trials = 16 * (16 * 0.375 * 0.625 + 2) / (256 * 0.1875 / 7 / 4 + 2)
    yield "same questions", ends(sampling_limits(*arrays((6, 8), (0, 8)))), wilson(0.375, trials)
    yield "same questions, one sample", ends(sampling_limits(*arrays(*[(1, 1)] * 9, *[(0, 1)] * 11))), wilson(0.45, 20)
    low = sampling_limits(*arrays((1, 4), *[(0, 4)] * 29)).low
    yield "one right sample of 120", float(low), 0.0512932944 / 120
    yield "samples of 1 and 4", float(stats.effective_samples(np.array([1.0, 4.0]))), 4 / 1.25
    # 3 of 4 and 1 of 12 by weight: p = ¼ of 16; variances of a sample ¾·¼·4/3 and 1/12·11/12·12/11
    weights = np.array([0.25, 0.75])
    s2 = (4 * 0.25 + 12 / 12) / 256
    yield "weighted variance", float(stats.sampling_variance_of_mean(*arrays((3, 4), (1, 12)), weights)), s2
    trials = 16 * (16 * 0.25 * 0.75 + 2) / (256 * s2 + 2)
    yield "weighted share", ends(sampling_limits(*arrays((3, 4), (1, 12)), weights)), wilson(0.25, max(16, trials))
    # N* = ¼ / (¼/3) = 3 tosses, and the ends a quarter toss further out; m = 0 at p̄ = ½
    quarter = 0.25 / 3
    new = [wilson(0.5 - quarter, 3, t_factor(2))[0], wilson(0.5 + quarter, 3, t_factor(2))[1]]
    yield "new questions", ends(question_limits(np.array([0.0, 1, 0.5]))), new
    # Four questions of ¾ are all alike: N* is its cap, 4 + 16 · ¾ · ¼ / ½ = 10; d = 0.4 and m = −(2/1.4 − 1¼)
    shift = -(2 / 1.4 - 1.25)
    capped = [
        wilson(0.75 + (shift - 0.25) / 10, 10, t_factor(3))[0],
        wilson(0.75 + (shift + 0.25) / 10, 10, t_factor(3))[1],
    ]
    yield "new questions, all alike", ends(question_limits(np.full(4, 0.75))), capped
    labels, values = np.repeat(np.arange(3), (4, 2, 1)), np.array([0.9, 0.8, 1.0, 0.7, 0.2, 0.1, 0.4])
    left_out = np.array([values[labels != cluster].mean() for cluster in range(3)])
    _, variance, clusters, freedom = between(values, labels)
    yield "variance of unequal clusters", float(variance), 2 / 3 * ((left_out - values.mean()) ** 2).sum()
    yield "unequal clusters", [clusters, freedom], [49 / 21, 1]
    yield "freedom of equal clusters", between(np.arange(200.0), np.repeat(np.arange(20), 10)).freedom, 19
    four, one = (stats.wilson(half, 2e3 * half) for half in (np.full(4, 0.5), np.asarray(0.5)))
    mean = stats.mean_limits(np.full(4, 0.5), four).interval()
    yield "mean of four", mean.half_width, one.interval().half_width / 2
    yield "pass@1 of 4", at_least_of_k(4, 1, 1, 1), 0.25
    yield "pass@2 of 4", at_least_of_k(4, 1, 2, 1), 0.5  # 3 of the 6 pairs hold the one right sample
    yield "pass@5 of 10", at_least_of_k(10, 3, 5, 1), 1 - 21 / 252
    yield "pass^2 of 4", at_least_of_k(4, 2, 2, 2), 1 / 6
    yield "any of 2 of 4", at_least_of_k(4, 2, 2, 1), 5 / 6
    yield "maj@5 of 5", maj_at_k([VoteGroup(3, 3), VoteGroup(2, 0)], 0, 5), 1.0
    yield "maj@4, tied", maj_at_k([VoteGroup(2, 2), VoteGroup(2, 0)], 0, 4), 0.5
    yield "maj@2 of 3", maj_at_k([VoteGroup(2, 2), VoteGroup(1, 0)], 0, 2), 1 / 3 + 2 / 3 * 0.5
    yield "maj@500, one vote of 1,000", maj_at_k([VoteGroup(1, 1)], 999, 500), 0.5
    yield "maj@101, two alike", maj_at_k([VoteGroup(600, 600), VoteGroup(600, 0)], 10, 101), 0.5
    yield "maj@200, all ties", maj_at_k([VoteGroup(1, i % 2) for i in range(300)], 0, 200), 0.5
    yield "maj of no vote", [maj_at_k([], 3, k) for k in (1, 2, 3)], [0.0, 0.0, 0.0]
    ones, ours, theirs = np.ones(6), np.array([1.0, 1, 1, 0, 1, 0]), np.array([0.0, 0, 0, 1, 1, 0])
    z = (ours - theirs).mean() / math.sqrt(float(score_variance(ours, ones, theirs, ones)))
    yield "McNemar's test", z, (3 - 1) / math.sqrt(3 + 1)
    gaps = np.array([0.5, 0.0, 0.25, -0.25])
    variance = np.var(gaps, ddof=1) / 4 + 0.5 / 16
    reach = t_factor(3) * math.sqrt(variance)
    yield "difference on new questions", ends(question_difference(gaps).limits), [0.125 - reach, 0.125 + reach]
    yield "difference of at most 1", ends(question_difference(np.ones(3)).limits)[1], 1.0
    below, above = IntervalEnds(np.array([-0.1, 0.0]), np.array([0.3, 0.1])), np.array([0.1, 0.04])
    reaches = [0.07 - math.hypot(0.2, 0.04) / 2, 0.07 + math.hypot(0.2, 0.06) / 2]
    yield "mean difference", ends(mean_difference_limits(above, below)), reaches
    yield (
        "Holm",
        [holm([0.03, 0.01, 0.04]), holm([0.9, 0.0]), holm([0.6, 0.7])],
        [pytest.approx([0.06, 0.03, 0.06]), [0.9, 0.0], [1.0, 1.0]],
    )
    share = (1600 * 0.001 + 2) / (40 * 0.75 * 0.25 + 2)
    smoothed = [smoothed_variance(np.asarray(0.75), np.asarray(v), np.asarray(40.0)) for v in (0.001, math.nan, 1)]
    yield "smoothed variance", list(map(float, smoothed)), [share * 31 / 42 * 11 / 42] + [31 / 42 * 11 / 42] * 2
    yield "least variance", [least_variance(0.98, 30), least_variance(0.25, 2)], [0.4 * 0.6 / 30, 0.25 / 2]
    growing = planned_variance(SampleSpread(30, 0.8, 0.16), 64).growth * 1920
    yield "growth of equally hard questions", round(float(growing), 3), 0.6
    half, hundred = np.asarray(0.5), np.asarray(100.0)
    units = [published_variance(half, half / 200, hundred, half, hundred, unit) for unit in (0.1, 0.0)]
    yield "rounding", float(units[0] - units[1]), 0.01 / 12
    # Of 8 questions only the first run has 3 right, only the second 1: with u = 1.96² / 10, v = u (0.62 − 0.04) and
    # w = u · 0.2 / 1.24 the interval of the pairs is 0.2 − √v to 0.2 + w + √(w² + v).
    ours, theirs, ones = np.array([1.0, 1, 1, 0, 1, 1, 0, 0]), np.array([0.0, 0, 0, 1, 1, 1, 0, 0]), np.ones(8)
    pairs = [(ours, theirs, [-0.272022, 0.738030]), (theirs, ours, [-0.738030, 0.272022])]
    for first, second, limits in [*pairs, (ours, ours, [-stats.Z_95 * math.sqrt(0.03), stats.Z_95 * math.sqrt(0.03)])]:
        yield "pairs", ends(scaled_difference(first, ones, second, ones)(1.0)), pytest.approx(limits, abs=1e-6)


@pytest.mark.parametrize(("computed", "expected"), [pytest.param(*row[1:], id=row[0]) for row in by_hand()])
def test_each_formula_has_the_value_worked_by_hand(computed: object, expected: object) -> None:
    assert computed == (expected if "approx" in repr(expected) else pytest.approx(expected))


# ---- brute force


def brute_majority(groups: Sequence[VoteGroup], silent: int, k: int) -> float:
    """maj@k over every subset, vote by vote."""
    ballots = [(place, member < group.correct) for place, group in enumerate(groups) for member in range(group.size)]
    ballots += [(-1, False)] * silent
    chances = []
    for subset in itertools.combinations(ballots, k):
        by_vote: dict[int, list[bool]] = {}
        for vote, right in subset:
            if vote >= 0:
                by_vote.setdefault(vote, []).append(right)
        most = max(map(len, by_vote.values()), default=0)
        winners = [members for members in by_vote.values() if len(members) == most]
        chances.append(statistics.fmean(sum(members) / len(members) for members in winners) if winners else 0.0)
    return statistics.fmean(chances)


def without_each(groups: Sequence[VoteGroup], silent: int, k: int, value: Callable[..., float]) -> float:
    """The jackknife of maj@k, with every sample left out in turn."""
    left_out = [(value(groups, silent - 1, k), silent)] if silent else []
    for place, group in enumerate(groups):
        for right, samples in ((1, group.correct), (0, group.size - group.correct)):
            if samples:
                smaller = [VoteGroup(group.size - 1, group.correct - right)] if group.size > 1 else []
                left_out.append((value([*groups[:place], *smaller, *groups[place + 1 :]], silent, k), samples))
    return jackknife(left_out)


group_lists = st.lists(
    st.integers(1, 4).flatmap(lambda size: st.builds(VoteGroup, st.just(size), st.integers(0, size))), max_size=4
)


@given(group_lists, st.integers(0, 2), st.data())
def test_maj_at_k_is_the_mean_over_every_subset(groups: list[VoteGroup], silent: int, data: st.DataObject) -> None:
    n = sum(group.size for group in groups) + silent
    if not 2 <= n <= 10:
        return
    k = data.draw(st.integers(1, n))
    assert maj_at_k(groups, silent, k) == pytest.approx(brute_majority(groups, silent, k), abs=1e-12)
    if k < n:
        expected = without_each(groups, silent, k, brute_majority)
        assert maj_jackknife(groups, silent, k) == pytest.approx(expected, abs=1e-12)


def test_the_jackknife_of_a_majority_equals_leaving_out_each_sample() -> None:
    generator = random.Random(27)
    for _ in range(examples(40)):
        sizes = [generator.choice((1, 1, 2, 8, 30, 90)) for _ in range(generator.randint(1, 7))]
        groups = [VoteGroup(size, generator.choice((0, size, generator.randint(0, size)))) for size in sizes]
        silent = generator.choice((0, 1, 40))
        if (n := sum(sizes) + silent) > 2:
            k = generator.randint(2, n - 1)
            expected = without_each(groups, silent, k, maj_at_k)
            assert maj_jackknife(groups, silent, k) == pytest.approx(expected, abs=1e-11), (groups, silent, k)


@given(st.integers(1, 9), st.data())
def test_chances_of_right_samples_are_shares_of_subsets(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    least = data.draw(st.integers(1, k))
    right = [sum(pick) >= least for pick in itertools.combinations([i < c for i in range(n)], k)]
    assert at_least_of_k(n, c, k, least) == pytest.approx(sum(right) / len(right))
    if k < n:
        each = [at_least_of_k(n - 1, c - (i < c), k, least) for i in range(n)]
        spread = (n - 1) * statistics.pvariance(each)
        assert without_one(n, c, lambda n, c: at_least_of_k(n, c, k, least)) == pytest.approx(spread, abs=1e-12)


# ---- what holds of any samples

samples = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=12
)


@given(samples, st.randoms(use_true_random=False))
def test_the_six_properties_of_an_interval(pairs: list[tuple[int, int]], chance: random.Random) -> None:
    right, counts = arrays(*pairs)
    rates, labels = right / counts, np.arange(len(pairs))
    for limits in (lambda right, n: sampling_limits(right, n), lambda right, n: question_limits(right / n)):
        low, high = ends(limits(right, counts))
        # It holds its estimate, and is no point.
        assert 0 <= low <= rates.mean() + 1e-12
        assert rates.mean() - 1e-12 <= high <= 1
        assert low < high
        # Right and wrong are mirror images; the order of the questions does not matter.
        assert ends(limits(counts - right, counts)) == pytest.approx([1 - high, 1 - low], abs=1e-12)
        order = chance.sample(range(len(pairs)), len(pairs))
        assert ends(limits(right[order], counts[order])) == pytest.approx([low, high], abs=1e-12)
        # A single estimate keeps its interval; rows of repetitions are each by itself.
        alone = stats.mean_limits(rates.mean(keepdims=True), IntervalEnds(np.array([low]), np.array([high])))
        assert float(alone.high - alone.low) == pytest.approx(high - low, abs=1e-9)
        assert np.asarray(limits(np.stack([right, right]), counts))[:, 1] == pytest.approx([low, high])
    # Equal weights, and a cluster for each question, change nothing; more samples narrow it.
    even = np.full(len(pairs), 1 / len(pairs))
    low, high = ends(sampling_limits(right, counts))
    assert ends(sampling_limits(right, counts, even)) == pytest.approx([low, high])
    assert ends(question_limits(rates, labels)) == pytest.approx(ends(question_limits(rates)))
    more = sampling_limits(16 * right, 16 * counts)
    assert float(more.high - more.low) < high - low
    # Copies of each question in one cluster say nothing more; equal runs do not differ.
    copied = question_limits(np.repeat(rates, 4), np.repeat(labels, 4))
    assert ends(copied) == pytest.approx(ends(question_limits(rates)))
    same = ends(scaled_difference(right, counts, right, counts)(1.0))
    assert same[0] == pytest.approx(-same[1])
    assert same[0] < 0 < same[1]


# ---- plans


def found(n: int, m: int | None = None, spread: SampleSpread = SPREAD) -> float:
    return planned_variance(spread, n, m).smallest()


def test_the_fewest_samples_that_are_enough() -> None:
    def needed(beside: int | None = None, n_tests: int = 1) -> int | None:
        return min_samples(lambda samples: planned_variance(SPREAD, samples, beside), 0.02, n_tests)

    n, beside = needed(), needed(900)
    assert n is not None
    assert beside is not None
    assert found(n) <= 0.02 < found(n - 1)
    assert found(beside, 900) <= 0.02 < found(beside - 1, 900)
    assert needed(5) is None
    assert (needed(n_tests=3) or 0) > n
    for tests in (1, 5):
        d = DifferenceVariance(np.asarray(0.001), np.asarray(0.01)).smallest(tests)
        assert d * d == pytest.approx(power_factor(tests) ** 2 * (0.001 + 0.01 * d))
    assert smallest_difference(9.0) == 1.0
