"""Compares a run's score with published scores on the same questions: which of these scores are shown next to it, in
which order, and their combined verdict.

The formulas are in `stats_differences`. Missing samples count as neither right nor wrong. The comparison is made as if
all were right, all wrong, and for every accuracy between these extremes (`_possible_verdicts`); a verdict is given only
if all agree. An unknown number of samples behind a published score is treated the same way.

Tables, CSV, JSON, reports and verdicts use the same order. Each published score is of one kind, and the kinds are
ordered as follows:

| kind | which scores |
| --- | --- |
| own | reported by the suite's own source, for the run's attention budget (number of tokens attention can access) |
| equal | its source reports its settings, and ours match all of them |
| other | different or unreported settings, or a number that the source only quotes |
| apart | another attention budget, a different reported prompt, or a mean over settings: it decides nothing |

Within a kind, original numbers come before quoted ones, then sources by the suite's authors, then sources that report
the run's settings, then those with the fewest differences. A `NEEDED` setting that the source does not report counts as
a difference, as does a different or unknown number of samples.

Long: the verdict on one score and the order of several scores depend on the same differing settings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
import numpy as np

from harness.benchmarks import prompts
from harness.core.nouns import are, count_noun
from harness.deciding.comparison import Samples, counted_samples, if_possible
from harness.deciding.published import PublishedScore
from harness.deciding.stats_differences import (
    FIXED_ROUNDING,
    RANDOM_ROUNDING,
    DifferenceVariance,
    growth,
    published_variance,
    smoothed_variance,
)
from harness.scoring.call_measures import SCHEMA_ACCURACY
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
    def apart(self) -> str:
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
                f"{count_noun(score.n_missing, 'sample')} {are(score.n_missing)} missing, and the verdict "
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

    tests: one for each of our estimates, as `_our_ends` returns them. The missing samples may give any accuracy between
    the extremes, which are the first two. So the run is certainly compatible only if both extremes are, and certainly
    not compatible only if even the nearest possible accuracy is farther away than the largest error explains.
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
    if published.averaged:
        return f"it is averaged over several values of {' and '.join(published.averaged)}"
    # Another tool's outputs do not record the prompt.
    if published.stated and any(differing.get(name, (UNKNOWN,))[0] != UNKNOWN for name in PROMPTS):
        return "it was measured with a different prompt"
    return "it was graded by a different judge" if "judge" in differing else ""


def _value(score: Score, published: PublishedScore) -> float | None:
    """The run's value of the published metric; None if it has none."""
    by_k = score.pass_at if published.kind == "pass" else score.maj_at
    estimate = score.accuracy if published.metric == "pass@1" else by_k.get(published.k)
    if published.metric in ("F1", SCHEMA_ACCURACY):
        estimate = score.measures.get(published.metric)
    return estimate and estimate.value


def _our_ends(score: Score, questions: Sequence[QuestionTally], published: PublishedScore) -> tuple[list[Draws], str]:
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
        ends = [_draws(counted.filled(right=False))]
        if counted.missing.any():
            ends += [_draws(counted.filled(right=True)), _draws(counted.most_uncertain())]
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
        ends, reason = _our_ends(score, questions, published)
        samples = UNKNOWN_SAMPLES if published.samples is None else (published.samples,)
        return [[_test(end, published, number) for end in ends] for number in samples], reason
    ours = score.measures.get(SCHEMA_ACCURACY)
    interval = ours and (ours.question or ours.sampling)
    if ours is None or interval is None:
        return [], f"this run has no {SCHEMA_ACCURACY}"
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


# ---- several published scores

NEEDED = ("temperature", "top_p", "max_tokens")
"""Settings that every measurement has. If a source does not report one of them, its value may be anything."""

MAX_BLUNTNESS = 2.0
"""A published score may confirm a run only if its smallest detectable difference is at most this many times that of the
sharpest score. Otherwise nearly every run would agree with a score based on one sample per question.
"""

OWN, EQUAL, OTHER, APART = range(4)
"""The kinds of published scores, in the order of the module's table."""

VENDOR = "vendor"
"""Name used for the model's own authors in a list of sources."""

MAX_SOURCES = 4
"""Largest number of sources shown next to one score in a cell; the tables of published scores list them all."""


class Reported(NamedTuple):
    """One of several sources shown next to a run. name: its repository, or `VENDOR`."""

    name: str
    comparison: PublishedComparison


class Standing(NamedTuple):
    """The combined verdict of all published scores on a run, and the scores that decided it, nearest first."""

    verdict: PublishedVerdict
    by: Sequence[PublishedComparison]


def in_order(
    comparisons: Iterable[PublishedComparison], suite: str = "", samples: float | None = None
) -> list[PublishedComparison]:
    """Sort the published scores of one model and benchmark by how comparable they are with the run, nearest first.

    suite: address of the source of the run's suite; empty without a suite. samples: number per question in the run.
    """

    def key(comparison: PublishedComparison) -> tuple[int, bool, bool, bool, int]:
        """The sort key: the kind, then the order within it that the module docstring describes."""
        published = comparison.published
        stated = published.settings if published.stated else {}
        differences = len(comparison.differing) + sum(name not in stated for name in NEEDED)
        differences += samples is None or published.samples != samples
        others = not suite or _owner(published.source.url) != _owner(suite)
        return kind(comparison, suite), published.quoted, others, not comparison.same_settings, differences

    return sorted(comparisons, key=key)


def kind(comparison: PublishedComparison, suite: str = "") -> int:
    """How comparable a published score is with the run: one of the kinds in the module's table.

    `OWN` (printed by the suite's source), `EQUAL` or `OTHER` (same or other settings), `APART` (it measures something
    else). suite: address of the source of the run's suite; empty without one.
    """
    published = comparison.published
    if comparison.apart:
        return APART
    if _is_of(suite, published):
        return OWN
    return EQUAL if comparison.same_settings and not published.quoted else OTHER


def nearest(comparisons: Sequence[PublishedComparison], metric: str, suite: str = "") -> PublishedComparison | None:
    """Return the nearest published score of this metric; None if none is published.

    For a suite, the score must be from the suite's own source or have the run's settings. comparisons: sorted by
    `in_order`.
    """
    of_metric = _of_one_run(comparisons, metric)
    if suite:
        of_metric = [entry for entry in of_metric if kind(entry, suite) == EQUAL or _is_of(suite, entry.published)]
    return next(iter(of_metric), None)


def quotation(comparisons: Sequence[PublishedComparison], metric: str, suite: str) -> PublishedComparison | None:
    """Return the score that the suite's source quotes next to its own; None if it quotes none.

    comparisons: sorted by `in_order`. suite: address of the suite's source; empty without one.
    """
    of_metric = _of_one_run(comparisons, metric)
    return next((one for one in of_metric if one.published.quoted and one.published.source.url == suite), None)


def mean_over(runs: Sequence[Sequence[PublishedComparison]], metric: str) -> PublishedComparison | None:
    """Return the published score that is the mean over exactly these runs; None if there is none.

    runs: the comparisons of each run. Each run has one value of every setting that the score averages over.
    """
    for entry in runs[0]:
        published = entry.published
        averaged = {name: Counter(values) for name, values in published.settings.items() if isinstance(values, list)}
        of_runs = [other.differing for run in runs for other in run if other.published == published]
        # A setting that makes no difference, such as the seed, is not in `differing`.
        ours = {name: Counter(differing.get(name, (None,))[0] for differing in of_runs) for name in averaged}
        if averaged and published.metric == metric and len(of_runs) == len(runs) and ours == averaged:
            differing = {name: both for name, both in entry.differing.items() if name not in averaged}
            return msgspec.structs.replace(entry, differing=differing)
    return None


def vendor(comparisons: Sequence[PublishedComparison], metric: str, suite: str) -> PublishedComparison | None:
    """Return the score that the model's authors report; None if there is none.

    Who the authors are depends on the model: a project's table also contains its measurements of other authors' models.
    A suite (such as LLMEval) often quotes the authors' score next to its own measurement. This quotation comes first,
    then the authors' own publications. comparisons: sorted by `in_order`. metric: such as "pass@1". suite: address of
    the publication whose settings the run follows.
    """
    theirs = [entry for entry in comparisons if entry.published.metric == metric and entry.published.by == "authors"]
    fitting = [entry for entry in theirs if kind(entry, suite) not in (APART, OWN)]
    quoted = [entry for entry in fitting if entry.published.quoted and entry.published.source.url == suite]
    return next(iter([*quoted, *fitting]), None)


def reported_scores(comparisons: Sequence[PublishedComparison], metric: str, suite: str = "") -> list[Reported]:
    """The sources shown next to a run's score, each once, with its nearest score of this metric.

    The nearest source comes first, then the model's own authors, then the others in order, at most `MAX_SOURCES` in
    all. A score for another attention budget or prompt is shown only if nothing else is published. comparisons: sorted
    by `in_order`. suite: address of the source of the run's suite; empty without one.
    """
    of_metric = _of_one_run(comparisons, metric)
    fitting = [entry for entry in of_metric if kind(entry, suite) != APART] or of_metric[:1]
    own = vendor(comparisons, metric, suite)
    firsts: dict[str, PublishedComparison] = {}
    for entry in [*fitting[:1], *([own] if own is not None else []), *fitting]:
        # A quoted score is left out unless it is the authors' score or the nearest one.
        if entry is own or not entry.published.quoted or entry is fitting[0]:
            firsts.setdefault(VENDOR if entry is own else entry.published.source.repository, entry)
    return [Reported(name, entry) for name, entry in firsts.items()][:MAX_SOURCES]


def overall_verdict(comparisons: Sequence[PublishedComparison], suite: str = "") -> Standing:
    """The combined verdict on a run: compatible if it agrees with a published score that counts.

    Three rules choose the scores that count:
    1. of the original scores that can be compared with the run, those without a named server, if there are any; of
       these, the scores of the first kind that occurs; and of these, the scores with the run's settings, if there are
       any. If no score is left, the verdict is "cannot say". For a suite, a score with other settings than the run's
       counts only if the suite's own source reports it;
    2. of these, the pass@1 scores, if there are any: the other metrics use the same samples, and pass@k hardly
       distinguishes two models when nearly every question is solved in k samples;
    3. of these, the sharp scores (`MAX_BLUNTNESS`), if they agree with the run. A blunt score that disagrees counts,
       too.

    If the run agrees with no score, it is "not compatible" only if it disagrees with a score whose settings are known:
    either reported, or reproduced by the run's suite (`OWN`). Otherwise the settings may explain the difference.

    comparisons: sorted by `in_order`. suite: address of the source of the run's suite; empty without one.
    """
    decided = [entry for entry in comparisons if entry.verdict != "cannot say" and not entry.published.quoted]
    # Agreement with a broken server of another party is no reason to trust this one.
    decided = [entry for entry in decided if not entry.published.server] or decided
    if suite:
        decided = [entry for entry in decided if kind(entry, suite) in (OWN, EQUAL)]
    first = min((kind(entry, suite) for entry in decided), default=APART)
    listed = [entry for entry in decided if kind(entry, suite) == first]
    listed = [entry for entry in listed if entry.same_settings] or listed
    listed = [entry for entry in listed if entry.published.metric == "pass@1"] or listed
    if not listed:
        return Standing("cannot say", ())
    # A score with no detectable difference is the bluntest.
    smallest = [1.0 if entry.detectable is None else entry.detectable for entry in listed]
    sharp = [entry for entry, points in zip(listed, smallest, strict=True) if points <= MAX_BLUNTNESS * min(smallest)]
    if agreeing := [entry for entry in sharp if entry.verdict == "compatible"]:
        return Standing("compatible", agreeing)
    with_settings = [entry for entry in listed if first == OWN or entry.published.states_settings]
    disagreeing = [entry for entry in with_settings if entry.verdict == "not compatible"]
    return Standing("not compatible" if disagreeing else "cannot say", disagreeing)


def _of_one_run(comparisons: Sequence[PublishedComparison], metric: str) -> list[PublishedComparison]:
    """The scores of this metric that can be compared with a single run; means over several settings are left out."""
    return [entry for entry in comparisons if entry.published.metric == metric and not entry.published.averaged]


def _is_of(suite: str, published: PublishedScore) -> bool:
    """Whether the suite's source reports this score as its own. suite: its address; empty without one."""
    return published.source.url == suite and not published.quoted


def _owner(url: str) -> tuple[str, str]:
    """The host and the owner in an address such as `github.com/OWNER/…`."""
    parts = urlsplit(url)
    return parts.netloc.casefold(), parts.path.strip("/").partition("/")[0].casefold()
