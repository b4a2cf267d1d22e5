"""Compares a run's score with a published score on the same questions.

The formulas are in `difference_stats`. Missing samples count as neither right nor wrong. The comparison is made as if
all were right, all wrong, and for every accuracy between these extremes (`_possible_verdicts`); a verdict is given only
if all agree. An unknown number of samples behind a published score is treated the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from harness.benchmarks import prompts
from harness.core.number_text import count_noun, is_are
from harness.deciding.difference_stats import (
    FIXED_ROUNDING,
    RANDOM_ROUNDING,
    DifferenceVariance,
    growth,
    published_variance,
    smoothed_variance,
)
from harness.deciding.paired_comparison import Samples, counted_samples, if_possible
from harness.deciding.published import PublishedScore
from harness.scoring.call_measures import KIMI_ACCURACY, SCHEMA_ACCURACY
from harness.scoring.score import Score
from harness.scoring.stats import Z_95, Estimate, effective_samples, normal_two_sided, sampling_variance_of_mean, wilson
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import Draws, maj_at, pass_at

UNKNOWN_SAMPLES = (1, 64)
"""Smallest and largest number of samples per question assumed for a published score whose source reports none."""

WITHOUT_EFFECT = frozenset(("seed",))
"""Settings that cannot explain a difference from a published score: another seed only draws other samples."""

CONDITIONS = ("attention_budget", "tool")
"""Settings that change what is measured. `attention_budget`: number of tokens that the server's attention can access.
`tool`: name of the tool offered to the model. A published score whose source does not report one of these settings was
measured without it.
"""

PROMPTS = ("prompt", "system_prompt")
"""Settings that change the question itself, if the source reports them."""

UNKNOWN = "unknown"
"""Our value of a setting that is not recorded in the outputs of another tool."""

_MEASURES = {"F1": "F1", SCHEMA_ACCURACY: KIMI_ACCURACY}
"""Published metric → our measure of it. Moonshot publishes the schema accuracies."""

PublishedVerdict = Literal["compatible", "not compatible", "cannot say"]
"""The verdict on a run compared with a published score; "compatible" does not prove that both measure the same model.
"""


class PublishedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between a run's score and a published score."""

    published: PublishedScore
    """The published score."""
    ours: float | None
    """The run's score, as a fraction; None if it has none."""
    difference: float | None
    """The run's score minus the published score, as a fraction; None if the run has no score."""
    error: float | None
    """Standard error of the difference, assuming that both scores belong to the same model, as a fraction; None if the
    published number of samples is unknown.
    """
    p: float | None
    """Two-sided p-value; None if the published number of samples is unknown."""
    detectable: float | None
    """Minimum detectable difference (80% power), as a fraction; None if no possible difference is detectable."""
    verdict: PublishedVerdict
    """Whether the two scores are compatible."""
    reason: str
    """Why the verdict is "cannot say"; otherwise empty."""
    differing: dict[str, tuple[Any, Any]]
    """The run's value and the published value of each setting that differs, among the settings that the source reports.
    """

    @property
    def same_settings(self) -> bool:
        """Whether the source reports settings for this score, and ours match all of them."""
        return self.published.states_settings and not self.differing

    @property
    def mismatch(self) -> str:
        """Why the published score decides nothing, if it measures something else; otherwise empty."""
        return other_measurement(self.published, self.differing)


def compare_published(
    score: Score,
    questions: Sequence[QuestionTally],
    published: PublishedScore,
    settings: Mapping[str, Any],
) -> PublishedComparison:
    """Compare a run's score with a published one on the same questions.

    Both scores are for the same questions, so the choice of questions adds no error. There are three sources of error:
    sampling in the run; sampling in the published score, estimated from its number of samples and the run's spread; and
    the rounding of the printed value. If the source does not report its number of samples, the test is made for each
    number in `UNKNOWN_SAMPLES`. questions: `tally(…).questions` of the run. settings: the run's settings, under the
    names used in the published file.
    """
    differing = differing_settings(published, settings)
    # A verdict is given only if it is the same for all possible missing samples and for every number of samples that
    # the source may have.
    apart = other_measurement(published, differing)
    by_number, reason = ([], apart) if apart else _tests(score, questions, published)
    tests = [test for of_number in by_number for test in of_number]
    smallest = max((test.difference_variance.smallest() for test in tests), default=None)
    verdict: PublishedVerdict = "cannot say"
    if tests:
        possible = set().union(*map(_possible_verdicts, by_number))
        if len(possible) == 1:
            verdict = possible.pop()
        elif len(by_number[0]) > 1:
            reason = (
                f"{count_noun(score.n_missing, 'sample')} {is_are(score.n_missing)} missing, and the verdict "
                "depends on them"
            )
        else:
            reason = "the source does not report its number of samples, and the verdict depends on it"
    ours = _value(score, published)
    difference = None if ours is None else ours - published.value
    error = max(test.error for test in tests) if tests and len(by_number) == 1 else None
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


class _PublishedTest(NamedTuple):
    """A run's value minus a published value, and the standard error of this difference if both measure the same model.

    difference_variance: used to compute the smallest difference, with the rounding of a plan (`FIXED_ROUNDING`).
    """

    difference: float
    error: float
    difference_variance: DifferenceVariance


def _possible_verdicts(tests: Sequence[_PublishedTest]) -> set[PublishedVerdict]:
    """The verdicts that the run may get once no sample is missing, for one number of samples of the published score.

    tests: one for each of our estimates, as `_our_estimates` returns them. The missing samples may give any accuracy
    between the extremes, which are the first two. So the run is certainly compatible only if both extremes are, and
    certainly not compatible only if even the nearest possible accuracy is farther away than the largest error explains.
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
    """The accuracy of a run, as draws of one sample each."""
    correct, counts, squares = samples
    variance = float(sampling_variance_of_mean(correct, counts, squares=squares))
    trials = float(effective_samples(counts))
    return Draws(Estimate(value=float((correct / counts).mean())), variance, trials, variance * trials)


def differing_settings(published: PublishedScore, settings: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The reported settings and the conditions whose values differ: setting → (ours, theirs)."""
    ours, theirs = _with_system_text(settings), _with_system_text(published.settings)
    return {
        name: (ours.get(name), theirs.get(name))
        for name in dict.fromkeys((*theirs, *CONDITIONS))
        if ours.get(name) != theirs.get(name) and name not in WITHOUT_EFFECT
    }


def _with_system_text(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings with the text of the system prompt: the named system prompt, or the one that the named prompt
    includes.
    """
    name = settings.get("prompt")
    prompt = prompts.PROMPTS.get(str(name))
    if prompt is None and "system_prompt" not in settings:
        return {**settings, "system_prompt": UNKNOWN} if name == UNKNOWN else settings
    system = settings.get("system_prompt", prompt and prompt.system)
    return {**settings, "system_prompt": prompts.SYSTEM_PROMPTS.get(str(system), system) or None}


def other_measurement(published: PublishedScore, differing: Mapping[str, tuple[Any, Any]]) -> str:
    """Why a published score does not measure the same thing as the run; empty if it does, as far as is known."""
    for name in CONDITIONS:
        if name in differing:
            return f"it was measured with a different {name.replace('_', ' ')}, or with none"
    if published.averaged_over:
        return f"it is averaged over several values of {' and '.join(published.averaged_over)}"
    # Another tool's outputs do not record the prompt.
    if published.stated and any(differing.get(name, (UNKNOWN,))[0] != UNKNOWN for name in PROMPTS):
        return "it was measured with a different prompt"
    return "it was graded by a different judge" if "judge" in differing else ""


def _value(score: Score, published: PublishedScore) -> float | None:
    """The run's value of the published metric; None if it has none."""
    by_k = score.pass_at if published.kind == "pass" else score.maj_at
    estimate = score.accuracy if published.metric == "pass@1" else by_k.get(published.k)
    if published.metric in _MEASURES:
        estimate = score.measures.get(_MEASURES[published.metric])
    return estimate and estimate.value


def _our_estimates(
    score: Score, questions: Sequence[QuestionTally], published: PublishedScore
) -> tuple[list[Draws], str]:
    """Return the run's estimates to compare with a published score, and "" or the reason why there are none.

    There is one estimate, or three if samples are missing: with these all wrong, all right, and distributed so that the
    error of the accuracy is largest.
    """
    if _value(score, published) is None:
        return [], f"this run has no {published.metric}"
    if published.metric == "F1":
        return [], "the standard error of the published F1 is unknown"
    if published.n_questions is None:
        return [], "the source does not report its number of questions"
    if score.n_questions != published.n_questions:
        return (
            [],
            f"this run has {count_noun(score.n_questions, 'question')}, but the published score has "
            f"{published.n_questions}",
        )
    if score.n_missing and not (score.partial and published.k == 1):
        return [], f"this run is unfinished ({count_noun(score.n_missing, 'sample')} missing)"
    if published.k == 1:
        counted = counted_samples(questions)
        if not counted.planned.all():
            return [], "at least one question of this run has no samples"
        ends = [_draws(counted.fill_missing(right=False))]
        if counted.missing.any():
            ends += [_draws(counted.fill_missing(right=True)), _draws(counted.most_uncertain())]
        return ends, ""
    k = published.k
    return [pass_at(questions, k) if published.kind == "pass" else maj_at(questions, [k])[k]], ""


def _tests(
    score: Score, questions: Sequence[QuestionTally], published: PublishedScore
) -> tuple[list[list[_PublishedTest]], str]:
    """The tests of each of our estimates, for each possible number of samples of the source; or why there are none.

    A schema accuracy is a fraction of different replies in each run, so the requests need not be the same.
    """
    if published.metric != SCHEMA_ACCURACY:
        ends, reason = _our_estimates(score, questions, published)
        samples = UNKNOWN_SAMPLES if published.samples is None else (published.samples,)
        return [[_test(end, published, number) for end in ends] for number in samples], reason
    ours = score.measures.get(KIMI_ACCURACY)
    interval = ours and (ours.question or ours.sampling)
    if ours is None or interval is None:
        return [], "no reply to a request without an accepted answer has the finish_reason tool_calls"
    if published.replies is None:
        return [], "the source does not report how many replies contain calls"
    if score.n_missing:
        return [], f"this run is unfinished ({count_noun(score.n_missing, 'sample')} missing)"
    # Newcombe's method 10, as in `scaled_difference`, which uses the interval ends that face each other.
    theirs = wilson(np.asarray(published.value), np.asarray(float(published.replies)))
    difference, rounding = ours.value - published.value, published.unit * math.sqrt(RANDOM_ROUNDING)
    above = math.hypot((ours.value - interval.low) / Z_95, (theirs.high - published.value) / Z_95, rounding)
    below = math.hypot((interval.high - ours.value) / Z_95, (published.value - theirs.low) / Z_95, rounding)
    planned = DifferenceVariance(np.asarray(max(above, below) ** 2), np.asarray(0.0))
    return [[_PublishedTest(difference, above if difference > 0 else below, planned)]], ""


def _test(own: Draws, published: PublishedScore, samples: int) -> _PublishedTest:
    """The comparison of a run's value with a published value.

    samples: number of samples per question assumed for the published score.
    """
    # Even fewer than k samples count as one draw.
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
