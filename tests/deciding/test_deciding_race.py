"""A race may be looked at after every round: its interval is worked by hand, and its verdicts are seldom false."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from harness.deciding.looks import boundaries, planned_looks
from harness.deciding.race import RaceStanding, change_after, confirm, judge_planned
from harness.deciding.stats_differences import difference_variance
from harness.gates.race import play
from harness.scoring.stats import Interval

pytestmark = pytest.mark.slow


def test_the_looks_are_the_steps_and_the_end_and_at_most_64() -> None:
    looks = [planned_looks(*plan) for plan in ((2, 8), (2, 5), (8, 5), (1, 1000))]
    assert (looks[:3], len(looks[3]), looks[3][-1]) == ([(2, 4, 6, 8), (2, 4, 5), (5,)], 63, 1000)


def test_the_boundaries_spend_the_level_over_the_looks() -> None:
    assert boundaries((7,), 0.05 / 2, 0.05 / 2).below == pytest.approx(
        (1.95996,), abs=1e-3
    )  # one look: the test of always
    first, last = boundaries((4, 8), 0.05 / 2, 0.05 / 2).below
    assert first == pytest.approx(NormalDist().inv_cdf(1 - 0.05 / 4 / 2), abs=2e-3)  # a quarter at half time
    paths = np.random.default_rng(3).standard_normal((400_000, 2))
    crossed = (np.abs(paths[:, 0]) > first) | (np.abs(paths.sum(axis=1)) / math.sqrt(2) > last)
    assert crossed.mean() == pytest.approx(0.05, abs=0.0011)
    assert all(
        b > a
        for a, b in zip(
            boundaries((4, 8), 0.05 / 2, 0.05 / 2).below, boundaries((4, 8), 0.01 / 2, 0.01 / 2).below, strict=True
        )
    )


def games(rng: np.random.Generator, chances: np.ndarray, rounds: int) -> np.ndarray:
    return rng.random((rounds, len(chances))) < chances


def test_a_planned_verdict_needs_a_planned_look() -> None:
    candidate, baseline = np.ones((6, 40), dtype=bool), np.zeros((6, 40), dtype=bool)
    assert judge_planned(candidate[:3], baseline[:3], (4, 8), 0.0).verdict == "undecided"
    decided = judge_planned(candidate[:4], baseline[:4], (4, 8), 0.0)
    assert (decided.verdict, decided.rounds, decided.difference) == ("better", 4, 1.0)
    assert judge_planned(baseline, candidate, (4, 8), 0.0).verdict == "worse"
    assert judge_planned(candidate, candidate, (4, 6), 0.2).verdict == "equal within the margin"
    assert judge_planned(candidate[:0], baseline[:0], (4, 8), 0.5).verdict == "undecided"


def test_a_planned_interval_is_its_boundary_times_the_error_of_the_difference() -> None:
    rng = np.random.default_rng(2)
    candidate, baseline = games(rng, np.linspace(0.2, 0.9, 40), 8), games(rng, np.linspace(0.1, 0.9, 40), 8)
    counts = np.full(40, 8.0)
    ours, theirs = candidate.sum(axis=0).astype(float), baseline.sum(axis=0).astype(float)
    error = math.sqrt(float(difference_variance(ours, counts, theirs, counts).variance))
    (z,) = boundaries((8,), 0.045 / 2, 0.045 / 2).below
    state = judge_planned(candidate, baseline, (8,), 0.0)
    difference = candidate.mean() - baseline.mean()
    assert state.difference == pytest.approx(difference)
    assert (state.interval.low, state.interval.high) == pytest.approx((difference - z * error, difference + z * error))
    (tenth,) = boundaries((8,), 0.0045 / 2, 0.0045 / 2).below
    wider = judge_planned(candidate, baseline, (8,), 0.0, 10).interval
    assert wider.high - wider.low == pytest.approx(2 * tenth * error)
    all_right, all_wrong = np.ones((8, 1), dtype=bool), np.zeros((8, 1), dtype=bool)
    assert judge_planned(all_right, all_wrong, (8,), 0.0).interval.high == 1.0
    assert judge_planned(all_wrong, all_right, (8,), 0.0).interval.low == -1.0
    none = RaceStanding(0, 0.0, Interval(-1.0, 1.0), "undecided")
    assert judge_planned(candidate[:0], baseline[:0], (8,), 0.0) == none


def test_who_cannot_complete_its_rounds_ends_the_race_and_is_named() -> None:
    right = np.ones((2, 5), dtype=bool)
    asked: list[tuple[str, int]] = []

    def sample_to(name: str, n: int) -> np.ndarray:
        asked.append((name, n))
        return right[: 1 if name == "b" else n]

    standings, _, short = play(
        {"a": right[:0], "b": right[:0]}, sample_to, most=8, margin=0.0, step=2, on_look=lambda _: None
    )
    assert (short, asked, standings["b"].rounds) == ("b", [("a", 2), ("b", 2)], 1)


# --- a change during the race ---
def test_the_change_is_worked_by_hand() -> None:
    """Two questions; the candidate wins both in the first two rounds of four, none after."""
    candidate = np.array([[True, True]] * 2 + [[False, False]] * 2)
    error = math.sqrt(2 * 0.25 * 4 / 3 * (1 / 2 + 1 / 2)) / 2
    assert change_after(candidate, np.zeros((4, 2), dtype=bool), 2) == (-1.0, pytest.approx(error))
    assert change_after(candidate, candidate, 4) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("called", "rounds", "due"),
    [(4, 4, 6), (5, 6, 8), (6, 8, 9), (4, 6, None), (7, 7, None), (9, 9, None), (12, 12, None)],
)
def test_only_a_verdict_of_the_first_half_has_to_be_confirmed(called: int, rounds: int, due: int | None) -> None:
    won = np.ones((rounds, 30), dtype=bool)
    state = RaceStanding(rounds, 1.0, Interval(0.5, 1.0), "better", called)
    answer = confirm(state, won, ~won, range(1, 13))
    assert answer.withheld == (f"better after {called} rounds, to be confirmed by round {due}" if due else "")
    assert (answer.verdict == "better") == (due is None)


@pytest.mark.parametrize(("called", "sign"), [(8, 1), (8, -1), (6, 1), (12, -1)])
def test_a_verdict_is_withheld_by_a_change_of_more_than_1_64_errors(called: int, sign: int) -> None:
    """After a verdict of the last round, the halves are compared."""
    verdict: Any = "better" if sign == 1 else "worse"
    at = called if called < 12 else 6
    answers: dict[float, str] = {}
    for n_later in range(0, 31, 2):
        ahead, behind = np.zeros((12, 60), dtype=bool), np.zeros((12, 60), dtype=bool)
        behind[:, 30:] = np.arange(12)[:, None] % 2  # noise of both sides
        ahead[:6, :30], ahead[6:, :n_later] = True, True
        candidate, baseline = (ahead, behind) if sign == 1 else (behind, ahead)
        change, error = change_after(candidate, baseline, at)
        answer = confirm(RaceStanding(12, 0.3, Interval(0.1, 0.9), verdict, called), candidate, baseline, [12])
        said = f"the difference shifts by {100 * change:+.1f} points after the first {at}" in answer.withheld
        assert answer.verdict == ("undecided" if said else verdict)
        answers[-sign * change / error if error else 0.0] = answer.verdict
    assert answers == {errors: "undecided" if errors > 1.64 else verdict for errors in answers}
    assert {errors > 1.64 for errors in answers} == {True, False}
    assert any(1.64 / 2 < errors < 1.64 for errors in answers)


def test_a_race_that_was_stopped_between_two_looks_goes_on_to_the_look_that_was_planned() -> None:
    rng = np.random.default_rng(3)
    rows = {name: rng.random((24, 20)) < 0.5 for name in ("a", "b")}
    targets = []

    def sample_to(name: str, n: int) -> np.ndarray:
        targets.append(n)
        return rows[name][:n]

    # A budget had stopped the race at round 12 of one candidate and round 14 of the other.
    have = {"a": rows["a"][:14], "b": rows["b"][:12]}
    ended, *_ = play(have, sample_to, most=24, margin=0.0, step=8, on_look=lambda _: None)
    assert (targets, ended["b"].rounds) == ([16, 16, 24, 24], 24)
