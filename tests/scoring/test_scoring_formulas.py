"""The formulas against hand-worked values, brute force and simulation."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.scoring import estimators, intervals
from harness.scoring.columns import numbers
from harness.scoring.estimators import (
    VoteGroup,
    g_pass_at_k,
    g_pass_jackknife,
    maj_at_k,
    maj_jackknife,
    pass_at_k,
    pass_hat_k,
    pass_jackknife,
    quantile,
)
from harness.scoring.majorities import win_and_drawn
from harness.scoring.score import score_benchmark, with_g_pass
from harness.scoring.tally import QuestionTally, tally
from harness.scoring.uncertainty import question_error, sampling_error
from tests.budget import examples
from tests.scoring.graded import grade, question


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (4, 1, 1, 0.25),
        (4, 1, 2, 0.5),  # 3 of the 6 pairs hold the one right sample
        (5, 2, 3, 0.9),  # 1 − C(3,3)/C(5,3)
        (10, 3, 5, 1 - 21 / 252),
        (4, 2, 3, 1.0),
        (4, 0, 4, 0.0),
        (4, 4, 1, 1.0),
    ],
)
def test_pass_at_k_equals_the_hand_worked_value(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("k", [5, 0, -1])
def test_k_outside_the_samples_present_is_an_error(k: int) -> None:
    with pytest.raises(UsageError, match=f"pass@{k}"):
        pass_at_k(4, 1, k)
    with pytest.raises(UsageError, match=f"maj@{k}"):
        maj_at_k([VoteGroup(3, 3)], 1, k)


@given(st.integers(1, 200), st.data())
def test_pass_at_k_starts_at_the_fraction_correct_and_never_falls(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    curve = [pass_at_k(n, c, k) for k in range(1, n + 1)]
    assert curve[0] == c / n
    assert all(later >= earlier - 1e-12 for earlier, later in itertools.pairwise(curve))
    assert curve[-1] == (1.0 if c else 0.0)


def brute_majority(groups: list[VoteGroup], silent: int, k: int) -> float:
    """maj@k over every subset, vote by vote."""
    ballots = [(place, member < group.correct) for place, group in enumerate(groups) for member in range(group.size)]
    ballots += [(-1, False)] * silent
    total = subsets = 0.0
    for subset in itertools.combinations(ballots, k):
        by_vote: dict[int, list[bool]] = {}
        for vote, right in subset:
            if vote >= 0:
                by_vote.setdefault(vote, []).append(right)
        most = max(map(len, by_vote.values()), default=0)
        winners = [members for members in by_vote.values() if len(members) == most]
        total += sum(sum(members) / len(members) for members in winners) / len(winners) if winners else 0.0
        subsets += 1
    return total / subsets


group_lists = st.lists(
    st.integers(1, 4).flatmap(lambda size: st.builds(VoteGroup, st.just(size), st.integers(0, size))), max_size=4
)


@given(group_lists, st.integers(0, 2), st.data())
def test_maj_at_k_equals_the_mean_over_every_subset(groups: list[VoteGroup], silent: int, data: st.DataObject) -> None:
    n = sum(group.size for group in groups) + silent
    if not 1 <= n <= 11:
        return
    k = data.draw(st.integers(1, n))
    assert maj_at_k(groups, silent, k) == pytest.approx(brute_majority(groups, silent, k), abs=1e-12)


@pytest.mark.parametrize(
    ("groups", "silent", "k", "expected"),
    [
        ([VoteGroup(3, 3), VoteGroup(2, 0)], 0, 5, 1.0),
        ([VoteGroup(2, 2), VoteGroup(2, 0)], 0, 4, 0.5),  # a tie counts its right share
        ([VoteGroup(2, 2), VoteGroup(2, 0), VoteGroup(2, 0)], 0, 6, 1 / 3),
        ([VoteGroup(1, 1)], 9, 10, 1.0),  # "no answer" does not vote
        ([VoteGroup(1, 1)], 9, 1, 0.1),
        ([], 3, 2, 0.0),
        ([VoteGroup(2, 2), VoteGroup(1, 0)], 0, 2, 1 / 3 + 2 / 3 * 0.5),
    ],
)
def test_maj_at_k_equals_the_hand_worked_value(groups: list[VoteGroup], silent: int, k: int, expected: float) -> None:
    assert maj_at_k(groups, silent, k) == pytest.approx(expected, abs=1e-12)


def test_maj_at_one_is_the_fraction_correct() -> None:
    assert maj_at_k([VoteGroup(20, 20), VoteGroup(30, 0)], 14, 1) == pytest.approx(20 / 64)


def test_the_exact_sum_stays_exact_where_binomials_are_large() -> None:
    """By symmetry two equal groups share every vote, whatever k."""
    groups = [VoteGroup(600, 600), VoteGroup(600, 0)]
    assert maj_at_k(groups, 0, 101) == pytest.approx(0.5, abs=1e-10)


def test_of_two_large_groups_one_wins() -> None:
    larger, smaller = (maj_at_k([VoteGroup(5000, a), VoteGroup(4900, b)], 100, 128) for a, b in ((5000, 0), (0, 4900)))
    assert larger > smaller > 0.4
    assert larger + smaller == pytest.approx(1.0, abs=1e-9)


def test_a_draw_without_any_vote_counts_nothing() -> None:
    """One right answer among 999 that say nothing: it wins exactly when it is drawn."""
    assert maj_at_k([VoteGroup(1, 1)], 999, 500) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(("sizes", "silent", "k"), [((1, 1), 2, 3), ((2, 1), 1, 3), ((2, 2), 3, 4)])
def test_a_majority_that_is_always_right_is_right_with_chance_one_and_no_more(
    sizes: tuple[int, ...], silent: int, k: int
) -> None:
    """Without a bound, rounding makes a little more than 1 of each of them."""
    assert maj_at_k([VoteGroup(size, size) for size in sizes], silent, k) == 1.0


@pytest.mark.parametrize("k", [2, 128, 200, 299])
def test_a_tie_of_all_that_are_drawn_shares_the_win(k: int) -> None:
    """Each sample says something else, and half of all are right."""
    assert maj_at_k([VoteGroup(1, i % 2) for i in range(300)], 0, k) == pytest.approx(0.5, rel=1e-12)


def majority_in_fractions(groups: list[VoteGroup], silent: int, k: int) -> Fraction:
    """maj@k by the numbers of subsets, without rounding: the draws in which nobody has more than v."""
    total, n = Fraction(0), sum(group.size for group in groups) + silent
    for own in range(len(groups)):
        rivals = [group.size for place, group in enumerate(groups) if place != own]
        for v in range(1, min(groups[own].size, k) + 1):
            # by_ties[t][d]: the ways to take d samples of those that are no rivals and of the first rivals, t in ties.
            by_ties = [[math.comb(silent, d) for d in range(k - v + 1)]]
            for size in rivals:
                grown = [[0] * (k - v + 1) for _ in range(len(by_ties) + 1)]
                for ties, ways in enumerate(by_ties):
                    for d, number in enumerate(ways):
                        for u in range(min(size, v, k - v - d) + 1 if number else 0):
                            grown[ties + (u == v)][d + u] += number * math.comb(size, u)
                by_ties = grown
            wins = sum(Fraction(ways[k - v], ties + 1) for ties, ways in enumerate(by_ties))
            total += Fraction(groups[own].correct, groups[own].size) * math.comb(groups[own].size, v) * wins
    return total / math.comb(n, k)


def random_votes(generator: random.Random) -> tuple[list[VoteGroup], int, int]:
    """(groups, silent samples, k): few or many groups, even or not, of which some are right or partly right."""
    sizes = [generator.choice((1, 1, 2, 3, 8, 15, 30)) for _ in range(generator.randint(1, 7))]
    groups = [VoteGroup(size, generator.choice((0, size, generator.randint(0, size)))) for size in sizes]
    silent = generator.choice((0, 1, 2, 10, 40))
    n = sum(sizes) + silent
    return groups, silent, generator.randint(1, n)


def test_the_majority_is_that_of_fractions_to_twelve_digits() -> None:
    generator = random.Random(27)
    for _ in range(examples(150)):
        groups, silent, k = random_votes(generator)
        exact = majority_in_fractions(groups, silent, k)
        # A chance below 1e-9 has fewer digits.
        assert maj_at_k(groups, silent, k) == pytest.approx(float(exact), rel=1e-12, abs=1e-21), (groups, silent, k)


@pytest.mark.parametrize("k", [2, 64, 129, 150, 190])
def test_a_majority_among_hundreds_is_that_of_fractions(k: int) -> None:
    groups = [VoteGroup(90, 90), VoteGroup(80, 0), VoteGroup(15, 15)]
    exact = float(majority_in_fractions(groups, 10, k))
    assert maj_at_k(groups, 10, k) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("k", [101, 128, 500, 1200])
def test_two_equal_groups_share_every_vote(k: int) -> None:
    assert maj_at_k([VoteGroup(600, 600), VoteGroup(600, 0)], 10, k) == pytest.approx(0.5, rel=1e-12)


def test_the_draws_of_all_samples_add_up_to_k() -> None:
    """Where a group wins, k samples are drawn: the chances of all samples to be drawn there say so."""
    generator = random.Random(3)
    for _ in range(examples(200)):
        sizes = [generator.choice((1, 2, 9, 30, 90, 400)) for _ in range(generator.randint(2, 30))]
        silent, own = generator.choice((0, 1, 25)), sizes[0]
        n = sum(sizes) + silent
        k = generator.randint(2, n - 1)
        rivals = Counter(sizes[1:])
        win = win_and_drawn(tuple(sorted(rivals.items(), reverse=True)), n, own, k)
        drawn = own * win.own_drawn + silent * win.drawn(0)
        drawn += sum(times * size * win.drawn(size) for size, times in rivals.items())
        assert drawn == pytest.approx(k * win.chance, rel=1e-9, abs=1e-15), (sizes, silent, k)


def jackknife(estimates: list[float]) -> float:
    """(n − 1)/n · Σ (estimate without sample i − their mean)²."""
    mean = sum(estimates) / len(estimates)
    return (len(estimates) - 1) / len(estimates) * sum((estimate - mean) ** 2 for estimate in estimates)


def majorities_without_one(groups: list[VoteGroup], silent: int, k: int) -> list[float]:
    """maj@k without each of the samples."""
    estimates = [maj_at_k(groups, silent - 1, k)] * silent if silent else []
    for place, group in enumerate(groups):
        for right, samples in ((1, group.correct), (0, group.size - group.correct)):
            smaller = [VoteGroup(group.size - 1, group.correct - right)] if samples and group.size > 1 else []
            rest = [*groups[:place], *smaller, *groups[place + 1 :]]
            estimates += [maj_at_k(rest, silent, k)] * samples if samples else []
    return estimates


@given(group_lists, st.integers(0, 2), st.data())
def test_the_jackknife_of_a_majority_leaves_each_sample_out_once(
    groups: list[VoteGroup], silent: int, data: st.DataObject
) -> None:
    n = sum(group.size for group in groups) + silent
    if n < 2:
        return
    k = data.draw(st.integers(1, n - 1))
    expected = jackknife(majorities_without_one(groups, silent, k))
    assert maj_jackknife(groups, silent, k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [2, 7, 64, 127])
@pytest.mark.parametrize(
    ("groups", "silent"),
    [
        ([VoteGroup(90, 90), VoteGroup(80, 0), VoteGroup(80, 3), VoteGroup(3, 0), *[VoteGroup(1, 0)] * 9], 20),
        ([VoteGroup(120, 0), VoteGroup(120, 120), VoteGroup(41, 41), VoteGroup(2, 2)], 0),
        ([VoteGroup(1, 1), *[VoteGroup(1, 0)] * 150], 30),
        ([VoteGroup(280, 280), VoteGroup(2, 0)], 1),
    ],
)
def test_the_jackknife_of_a_majority_of_many_samples_is_that_of_the_plain_formula(
    groups: list[VoteGroup], silent: int, k: int
) -> None:
    expected = jackknife(majorities_without_one(groups, silent, k))
    assert maj_jackknife(groups, silent, k) == pytest.approx(expected, abs=1e-12)


@given(st.integers(2, 30), st.data())
def test_the_jackknife_of_a_pass_leaves_each_sample_out_once(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n - 1))
    estimates = [pass_at_k(n - 1, max(0, c - 1), k)] * c + [pass_at_k(n - 1, min(c, n - 1), k)] * (n - c)
    assert pass_jackknife(n, c, k) == pytest.approx(jackknife(estimates), abs=1e-12)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30), st.integers(0, 8))
def test_a_quantile_is_the_smallest_value_that_enough_of_them_do_not_exceed(values: list[int], eighths: int) -> None:
    enough = [value for value in values if 8 * sum(shorter <= value for shorter in values) >= eighths * len(values)]
    assert quantile(values, eighths / 8) == min(enough)


def test_no_value_has_no_quantile() -> None:
    assert quantile([], 0.5) is None


def counted(*pairs: tuple[int, int]) -> list[QuestionTally]:
    """Questions of which c of n samples are right."""
    return [
        QuestionTally(question(f"q{i}"), tuple(grade(f"q{i}", j, "c" if j < c else "w") for j in range(n)), n)
        for i, (c, n) in enumerate(pairs)
    ]


def test_sampling_error_equals_the_hand_worked_value() -> None:
    # variances of the means: 0.5·0.5/3 and 0.25·0.75/3; root of their sum, over two questions
    expected = math.sqrt(0.25 / 3 + 0.1875 / 3) / 2
    result = sampling_error(counted((2, 4), (1, 4)))
    assert result.error == pytest.approx(expected)
    assert result.imputed == 0


def test_a_question_with_one_sample_takes_the_others_spread_and_is_counted() -> None:
    # sample variances 1/3 (of 4 at ½) and the same imputed, undivided, for the single sample
    result = sampling_error(counted((2, 4), (1, 1)))
    assert result.error == pytest.approx(math.sqrt(1 / 3 / 4 + 1 / 3) / 2)
    assert result.imputed == 1


def test_one_sample_everywhere_leaves_the_sampling_error_unknown_but_bounded() -> None:
    result = sampling_error(counted((1, 1), (0, 1), (0, 1), (0, 1)))
    assert result.error is None
    assert result.bound == pytest.approx(math.sqrt(0.25 * 0.75 / 4))


def test_question_error_is_the_deviation_of_the_rates_over_root_q() -> None:
    assert question_error(counted((0, 2), (2, 2), (1, 2))) == pytest.approx(0.5 / math.sqrt(3))
    assert question_error(counted((2, 5))) is None


@pytest.mark.wide
@pytest.mark.slow
def test_errors_of_thirty_questions_of_64_samples_near_31_percent_are_as_simulated() -> None:
    """An AIME-like set: some questions always right, many never, the rest between; 400 simulated runs of it."""
    generator = random.Random(7)
    chances = [0.9, 0.84, 0.8, 0.76, 0.7, 0.62, 0.56, 0.5, 0.46, 0.42, 0.38, 0.34, 0.3, 0.27, 0.24, 0.21, 0.18]
    chances += [0.15, 0.13, 0.11, 0.09, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.0, 0.0]
    means, errors, question_errors = [], [], []
    for _ in range(400):
        items = counted(*((sum(generator.random() < chance for _ in range(64)), 64) for chance in chances))
        result = sampling_error(items)
        assert result.error is not None
        means.append(sum(item.correct for item in items) / 64 / 30)
        errors.append(result.error)
        question_errors.append(question_error(items) or 0.0)
    mean = sum(means) / len(means)
    spread_of_runs = math.sqrt(sum((value - mean) ** 2 for value in means) / (len(means) - 1))
    assert mean == pytest.approx(0.31, abs=0.01)
    assert 100 * spread_of_runs == pytest.approx(0.8, abs=0.08)
    assert 100 * sum(errors) / len(errors) == pytest.approx(100 * spread_of_runs, rel=0.1)
    assert 100 * sum(question_errors) / len(question_errors) == pytest.approx(5.2, abs=0.1)


def test_the_majority_of_many_samples_is_certain_only_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for sizes in ([900, 60, 40], [520, 470, 10], [300, 280, 5, 5, 1, 1], [400]):
        for right in range(len(sizes)):
            groups = [VoteGroup(size, size if index == right else 0) for index, size in enumerate(sizes)]
            for k in (2, 16, 100):
                short = maj_at_k(groups, 7, k)
                with monkeypatch.context() as summed:
                    summed.setattr(estimators, "_certain_value", lambda *_: None)
                    assert maj_at_k(groups, 7, k) == pytest.approx(short, abs=1e-11)
    close = [VoteGroup(1000, 1000), VoteGroup(990, 0)]
    assert 0.5 < maj_at_k(close, 0, 127) < 0.7


def test_g_pass_is_the_chance_of_a_share_of_k_right() -> None:
    """4 samples, 2 right, k = 2: both right in 1 of 6 draws, at least one in 5 of 6."""
    assert g_pass_at_k(4, 2, 2, 1.0) == pytest.approx(1 / 6)
    assert g_pass_at_k(4, 2, 2, 0.5) == pytest.approx(5 / 6)
    # 0.3 · 10 is 3.0000000000000004 in floating point; 3 of 10 right are enough.
    assert g_pass_at_k(10, 3, 10, 0.3) == 1.0
    assert g_pass_at_k(10, 2, 10, 0.3) == 0.0
    for c in range(9):
        assert g_pass_at_k(8, c, 4, 0.01) == pytest.approx(pass_at_k(8, c, 4))
        assert g_pass_at_k(8, c, 4, 1.0) == pytest.approx(pass_hat_k(8, c, 4))
        assert g_pass_jackknife(8, c, 4, 0.01) == pytest.approx(pass_jackknife(8, c, 4))


def test_a_score_has_g_pass_where_a_share_is_given() -> None:
    grades = [grade("q1", i, "c" if i < 2 else "w") for i in range(4)]
    score = score_benchmark([question("q1")], grades, 4)
    assert score.g_pass is None
    (item,) = tally([question("q1")], grades, 4).questions
    g_pass = with_g_pass(score, [item], 0.5).g_pass
    assert g_pass is not None
    assert g_pass.values == pytest.approx({1: 0.5, 2: 5 / 6, 4: 1.0})
    assert [g_pass.intervals[k].at_most for k in (1, 2, 4)] == [False, False, True]
    assert "G-Pass@2, 0.5" in numbers(with_g_pass(score, [item], 0.5))


def test_the_larger_of_two_groups_is_nearly_certain_to_win_wherever_it_stands() -> None:
    large, small = VoteGroup(900, 600), VoteGroup(50, 50)
    for groups in ([small, large], [large, small], [small, large, small]):
        n = sum(group.size for group in groups) + 7
        assert estimators._certain_value(groups, n, 100) == maj_at_k(groups, 7, 100) == 600 / 900


def test_rivals_that_may_catch_up_only_together_leave_a_majority_open() -> None:
    """Each rival alone is below the bound; ten of them are not."""
    few, many = ([VoteGroup(5400, 0), *[VoteGroup(60, 60)] * times] for times in (1, 10))
    k = next(k for k in range(2, 128) if estimators._chance_to_catch_up(5400, 60, 6000, k) < 0.5e-15)
    assert estimators._certain_value(few, 6000, k) == 0.0
    assert estimators._certain_value(many, 6000, k) is None


def test_the_bound_on_a_rival_is_that_of_chernoff() -> None:
    """Shares 4/9 and 1/9, whose roots differ by 1/3: (1 − 1/9)²."""
    assert estimators._chance_to_catch_up(4, 1, 9, 2) == pytest.approx((8 / 9) ** 2)


@pytest.mark.parametrize("df", [499, 500, 501, 5_000])
def test_the_factor_of_t_leaves_five_percent_outside_by_bisection_and_by_series(df: int) -> None:
    assert intervals.t_two_sided(intervals.t_factor(df), df) == pytest.approx(0.05, abs=1e-9)
    assert intervals.t_two_sided(intervals.t_factor(df - 1), df) < 0.05 - 1e-9
