"""Compares the score of a run with a published score on the same questions.

The formulas are in `stats_differences`. Missing samples are neither right nor wrong: the comparison is made as if all
were right, all wrong, and for every accuracy between these extremes (`_possible_verdicts`), and a verdict stands only
if all agree. The unknown number of samples behind a published score is treated in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from harness.core.nouns import are, count_noun
from harness.scoring.comparison import Samples, counted_samples, if_possible
from harness.scoring.published.value import PublishedScore
from harness.scoring.score import Score
from harness.scoring.stats import Z_95, Estimate, effective_samples, normal_two_sided, sampling_variance_of_mean
from harness.scoring.stats_differences import (
    FIXED_ROUNDING,
    RANDOM_ROUNDING,
    DifferenceVariance,
    growth,
    published_variance,
    smoothed_variance,
)
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import Draws, maj_at, pass_at

UNKNOWN_SAMPLES = (1, 64)
"""Smallest and largest number of samples of each question that is assumed for a published score that states none."""

WITHOUT_EFFECT = frozenset(("seed",))
"""Settings that explain no difference to a published score: another seed only draws other samples of the same model."""

CONDITIONS = ("attention_budget", "tool")
"""Settings that change what is measured. `attention_budget`: the number of tokens that the server's attention may see.
`tool`: the name of the tool that the model is offered. A published score that does not state such a setting was
measured without it.
"""

PROMPTS = ("prompt", "system_prompt")
"""Settings that ask another question, if the source states them."""

UNKNOWN = "unknown"
"""Our value of a setting that the record of another tool's outputs does not have."""

PublishedVerdict = Literal["compatible", "not compatible", "cannot say"]
"""The verdict on a run beside a published score; "compatible" is no proof that both are of one model."""


class PublishedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A run's score minus a published one. Fractions.

    error: standard error of the difference if both scores are of one model; p: two-sided. Both are None if the
    published number of samples is unknown. detectable: the smallest true difference that is found in 80 % of
    repetitions; None if none that is possible is found. reason: why
    the verdict is "cannot say", else empty. differing: setting → (ours, theirs), for the settings that the source
    states.
    """

    published: PublishedScore
    ours: float | None
    difference: float | None
    error: float | None
    p: float | None
    detectable: float | None
    verdict: PublishedVerdict
    reason: str
    differing: dict[str, tuple[Any, Any]]

    @property
    def same_settings(self) -> bool:
        """Whether the source states settings for this score, and ours equal all of them."""
        return self.published.states_settings and not self.differing

    @property
    def apart(self) -> str:
        """Why the published score decides nothing, if it measures something else; else empty."""
        return other_measurement(self.published, self.differing)


def compare_published(
    score: Score,
    questions: Sequence[QuestionTally],
    published: PublishedScore,
    settings: Mapping[str, Any],
) -> PublishedComparison:
    """Compare a run's score with a published one on the same questions.

    Both scores are of the same questions, so the choice of questions adds no error. Three errors count: the run's
    sampling error; that of the published score, estimated from its number of samples and the run's spread; and the
    rounding of the printed value. If the source does not state its number of samples, the test is made for each number
    in `UNKNOWN_SAMPLES`. questions: `tally(…).questions` of the run. settings: the run's, by the names that the
    published file uses.
    """
    differing = differing_settings(published, settings)
    # The verdict stands if it is the same for everything that the missing samples and the source's unknown number of
    # samples may be.
    apart = other_measurement(published, differing)
    ends, reason = ([], apart) if apart else _our_ends(score, questions, published)
    samples = UNKNOWN_SAMPLES if published.samples is None else (published.samples,)
    by_number = [[_test(end, published, number) for end in ends] for number in samples]
    tests = [test for of_number in by_number for test in of_number]
    smallest = max((test.difference_variance.smallest() for test in tests), default=None)
    verdict: PublishedVerdict = "cannot say"
    if tests:
        possible = set().union(*map(_possible_verdicts, by_number))
        if len(possible) == 1:
            verdict = possible.pop()
        elif len(ends) > 1:
            reason = (
                f"{count_noun(score.n_missing, 'sample')} {are(score.n_missing)} missing, and the verdict "
                "depends on them"
            )
        else:
            reason = "the number of samples of the published score is not stated, and the verdict depends on it"
    ours = _value(score, published)
    difference = None if ours is None else ours - published.value
    if verdict != "cannot say" and difference is not None and (why := _undone_by_judge(score, difference, tests)):
        verdict, reason = "cannot say", why
    error = max(test.error for test in tests) if tests and published.samples is not None else None
    return PublishedComparison(
        published=published,
        ours=ours,
        difference=difference,
        error=error,
        p=normal_two_sided(difference / error) if error and difference is not None else None,
        detectable=None if smallest is None else if_possible(smallest, published.value),
        verdict=verdict,
        reason=reason,
        differing=differing,
    )


def _undone_by_judge(score: Score, difference: float, tests: Sequence[_PublishedTest]) -> str:
    """Why the errors of the judge that graded the run, as an audit shows them, leave its verdict open; else empty."""
    if score.audited is None or score.judge_errors is None or score.accuracy is None:
        return ""
    judge = score.audited.beyond(score.accuracy)
    graded, moved = ({
        abs(of + shift) > math.hypot(Z_95 * test.error, reach) for test in tests
    } for of, shift, reach in ((difference, 0.0, 0.0), (difference, *judge)))  # fmt: skip
    return "" if graded == moved else "the errors of the run's judge, as audited, could turn the verdict"


class _PublishedTest(NamedTuple):
    """A run's value minus a published one, and the standard error of this difference if both are of one model.

    difference_variance: what the smallest difference is computed from, with the rounding of a plan (`FIXED_ROUNDING`).
    """

    difference: float
    error: float
    difference_variance: DifferenceVariance


def _possible_verdicts(tests: Sequence[_PublishedTest]) -> set[PublishedVerdict]:
    """The verdicts that the run may have once no sample is missing, at one number of samples of the published score.

    tests: of our estimates, as `_our_ends` returns them. The missing samples may give any accuracy between the
    extremes, which are the first two. So the run is compatible for sure only if both extremes are, and not compatible
    for sure only if the nearest possible accuracy is farther away than the largest error explains.
    """
    differences = [test.difference for test in tests]
    nearest = 0.0 if min(differences) <= 0 <= max(differences) else min(map(abs, differences))
    possible: set[PublishedVerdict] = {
        "not compatible" if abs(test.difference) > Z_95 * test.error else "compatible" for test in tests[:2]
    }
    if nearest <= Z_95 * max(test.error for test in tests):
        possible.add("compatible")
    return possible


def _draws(samples: Samples) -> Draws:
    """The accuracy of a run as draws of one sample."""
    correct, counts, squares = samples
    variance = float(sampling_variance_of_mean(correct, counts, squares=squares))
    trials = float(effective_samples(counts))
    return Draws(Estimate(value=float((correct / counts).mean())), variance, trials, variance * trials)


def differing_settings(published: PublishedScore, settings: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The settings that the source states, and conditions, whose value differs: setting → (ours, theirs)."""
    return {
        name: (settings.get(name), published.settings.get(name))
        for name in (*published.settings, *(name for name in CONDITIONS if name not in published.settings))
        if settings.get(name) != published.settings.get(name) and name not in WITHOUT_EFFECT
    }


def other_measurement(published: PublishedScore, differing: Mapping[str, tuple[Any, Any]]) -> str:
    """Why a published score measures something else than the run; empty if it does not, as far as is known."""
    for name in CONDITIONS:
        if name in differing:
            return f"it was measured with another {name.replace('_', ' ')}, or without one"
    if published.averaged:
        return f"it is the mean over several values of {' and '.join(published.averaged)}"
    # Another tool's outputs do not say with which prompt they were asked.
    if published.stated and any(differing.get(name, (UNKNOWN,))[0] != UNKNOWN for name in PROMPTS):
        return "it was measured with another prompt"
    return "another judge gave it" if "judge" in differing else ""


def _value(score: Score, published: PublishedScore) -> float | None:
    """The run's value of the published metric; None where it has none."""
    by_k = score.pass_at if published.kind == "pass" else score.maj_at
    estimate = score.accuracy if published.metric == "pass@1" else by_k.get(published.k)
    if published.metric == "F1":
        estimate = score.measures.get("F1")
    return estimate and estimate.value


def _our_ends(score: Score, questions: Sequence[QuestionTally], published: PublishedScore) -> tuple[list[Draws], str]:
    """Return the run's estimates to compare with a published score, and "" or why there is none.

    There is one estimate; or three if samples are missing: as if these were all wrong, all right, and such that the
    accuracy has its largest error.
    """
    if _value(score, published) is None:
        return [], f"this run has no {published.metric}"
    if published.metric == "F1":
        return [], "the error of a published F1 is not known"
    if published.n_questions is None:
        return [], "the source does not state its number of questions"
    if score.n_questions != published.n_questions:
        return (
            [],
            f"this run has {count_noun(score.n_questions, 'question')}, the published score {published.n_questions}",
        )
    if score.n_missing and not (score.partial and published.k == 1):
        return [], f"this run is unfinished ({count_noun(score.n_missing, 'sample')} missing)"
    if published.k == 1:
        counted = counted_samples(questions)
        if not counted.planned.all():
            return [], "a question of this run has no sample"
        ends = [_draws(counted.filled(right=False))]
        if counted.missing.any():
            ends += [_draws(counted.filled(right=True)), _draws(counted.most_uncertain())]
        return ends, ""
    k = published.k
    return [pass_at(questions, k) if published.kind == "pass" else maj_at(questions, [k])[k]], ""


def _test(own: Draws, published: PublishedScore, samples: int) -> _PublishedTest:
    """The comparison of a run's value with a published one.

    samples: the samples of each question that the published score is supposed to have.
    """
    # Fewer than k samples still gave one draw.
    draws = max(1.0, samples / published.k)
    value, observed, total = np.asarray(own.estimate.value), np.asarray(own.variance), np.asarray(own.trials)
    their_total = np.asarray((published.n_questions or 0) * draws)
    variance = published_variance(
        value,
        observed,
        total,
        np.asarray(published.value),
        their_total,
        published.unit,
        None if published.k == 1 else np.asarray(own.single),
    )
    rise = growth(value, smoothed_variance(value, observed, total), total, their_total)
    planned = variance + (FIXED_ROUNDING - RANDOM_ROUNDING) * published.unit**2
    return _PublishedTest(
        own.estimate.value - published.value, math.sqrt(float(variance)), DifferenceVariance(planned, rise)
    )
