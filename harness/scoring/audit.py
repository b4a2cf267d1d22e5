"""The accuracy that a person's verdicts would give, estimated from the person's verdicts on a few samples.

A judge model makes errors, and the intervals of the accuracy do not include them. So a person judges random samples
from two groups, those graded correct and the rest, and the score is corrected accordingly (stratified
prediction-powered inference: Angelopoulos et al. 2023, Science 382:669; of one stratum each, Rogan and Gladen 1978, Am.
J. Epidemiol. 107:71):

    accuracy = the part of the samples that no judge decided + Σ_h W_h · π_h
    W_h: weight in the accuracy of the samples that were called correct (h = 1), or not (h = 2)
    π_h: share of the audited samples in stratum h that the person calls correct

| what is uncertain | limits |
| --- | --- |
| π_h, from m of N samples | Wilson's at m (N − 1) / (N − m) trials; no uncertainty if all are audited |
| which samples the model drew for these questions | the raw sampling interval, moved to the estimate |
| which questions were asked | the raw question interval, moved (its trials limited by the cap at the estimate), times
1 / (sensitivity + specificity − 1): by this factor (Rogan and Gladen's), a grader's errors make questions look more
alike |

A raw interval is Wilson's, whose width as a difference of arcsin √p depends only on its trials, not on the mean. So
`moved_interval` gives Wilson's interval around the estimate with the same number of trials: a judge that calls nearly
all samples correct has a short raw interval, which says little about an accuracy in the middle. If all samples are
audited, the person's verdicts are scored like a grader's, and nothing is moved or stretched.

The three sources are independent, so their distances to the estimate add in quadrature on each side (Zou and Donner
2008, Statistics in Medicine 27:1693). `make simulate` prints the coverage; docs/method/statistics.md shows it.

If a judge gives points, there are four strata, and each sample adds the person's points minus the judge's points:

    mean of points = the judge's + Σ_h W_h · mean of (person − judge); its error on each side
    √(Σ_h (W_h t_h)² s_h²/m_h · (1 − m_h/N_h) + (W · 1.5/m)²), t_h = 1.96 (1 + 0.8/m_h), W and m over all strata

The last term allows for errors of one and a half samples that the audit missed: Wilson's limits are valid only for
right and wrong, and without this term the coverage is 82% if a judge errs in 2% of cases, always in the same direction.
The stretch is then 1 / (slope of the judge's points on the person's), which is the same number for right and wrong.

`audit_order` decides which samples are drawn and which of a person's verdicts count.

Samples that neither the rules nor the judge decided are outside the population, and nothing is estimated for them.
Samples on which a person has given a verdict, for whatever reason, count accordingly; for the others, the estimate
reports its value if they are wrong and if they are right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from harness.core.nouns import are, count_noun, in_percent
from harness.core.records import Key
from harness.runs.overrides import Override, apply, share_of
from harness.scoring.audit_order import Population, Stratum
from harness.scoring.stats import Z_95, Array, Estimate, Interval, effective_clusters, moved_interval, wilson
from harness.scoring.tally import QuestionTally, cluster_numbers
from harness.scoring.uncertainty import rate_of_shares

MIN_DISCERNMENT = 0.5
"""Smallest value of a grader's sensitivity + specificity − 1 used to stretch the question interval. Smaller values are
raised to this one, so the interval at most doubles.
"""


MISSED_ERRORS = 1.5
"""Number of judge errors, in samples, that an audit of points may have missed by chance."""


class JudgeErrors(msgspec.Struct, frozen=True, kw_only=True):
    """What is known, without an audit, about the errors of the judge model behind a score."""

    n_judged: int
    """Number of samples whose verdict comes from the judge."""
    n_samples: int
    """Number of samples covered by the score."""
    n_both: int
    """Number of samples that both the rules and the judge decided."""
    n_differing: int
    """Number of those samples on which the rules and the judge disagree."""
    settings: dict[str, Any] = {}
    """The judge's options by name, excluding API keys. `base_url` lists the addresses that responded. Empty in scores
    from earlier versions.
    """
    key_variable: str | msgspec.UnsetType = msgspec.UNSET
    """Environment variable that contains the judge's API key; absent if none was specified."""

    @property
    def opening(self) -> str:
        """The beginning of the warning of a score without an estimate of these errors."""
        return (
            f"{self.n_judged:,} of {self.n_samples:,} verdicts come from a judge; the intervals do not account for its "
            "errors"
        )

    @property
    def sentence(self) -> str:
        """The warning of a score that nobody has audited."""
        beside = "no sample was decided by both the grader and the judge, so the judge's error rate is unknown"
        if self.n_both:
            share = in_percent(self.n_differing / self.n_both)
            beside = f"it differs from the grader on {self.n_differing:,} of {self.n_both:,} ({share}%)"
        return f"{self.opening}: {beside}. To measure its errors, run `harness audit`"


class JudgeShift(NamedTuple):
    """The effect of a judge's errors, as measured by audits."""

    shift: float
    """Change in accuracy when the judge's errors are corrected, as a fraction."""
    reach: float
    """Half-width of the 95% interval for this change."""

    def could_turn(self, difference: float, interval: Interval) -> bool:
        """Whether these errors could change the sign of a difference whose interval is on one side of 0."""
        moved = difference + self.shift
        low = moved - math.hypot(difference - interval.low, self.reach)
        high = moved + math.hypot(interval.high - difference, self.reach)
        return low <= 0 <= high or moved * difference <= 0


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate, based on audited verdicts, of what the accuracy would be if a person had judged every sample."""

    accuracy: Estimate
    """Estimated accuracy, as a fraction. The intervals account for the uncertainty of the audit."""
    n_population: int
    """Number of verdicts from which the audited verdicts were drawn."""
    n_audited: int
    """Number of verdicts audited by a person."""
    n_differing: int
    """Number of audited samples on which the human auditor disagrees with the grader."""
    n_accepted: int = 0
    """Number of samples in `n_differing` that the grader marked correct."""
    of_judge: bool = False
    """Whether a judge gave the audited verdicts."""
    n_undecided: int = 0
    """Number of samples outside the audited population that both the grader and the human auditor left undecided. They
    count as wrong.
    """
    accuracy_undecided_right: float | None = None
    """Accuracy if these undecided samples counted as correct, as a fraction; None if there are no such samples."""
    n_decided: int = 0
    """Number of samples outside the audited population that the grader left undecided but the human auditor did not."""
    by_points: bool | msgspec.UnsetType = msgspec.UNSET
    """True if the judge awarded points, in which case `n_accepted` counts samples to which the judge gave more points
    than the human auditor did; otherwise absent.
    """

    def beyond(self, graded: Estimate) -> JudgeShift:
        """How much the audit changes the graded accuracy, and the half-width that the audit adds (in quadrature) to the
        interval of the graded accuracy.
        """
        ours, theirs = self.accuracy.sampling, graded.sampling
        assert ours is not None
        widths = ours.half_width, 0.0 if theirs is None else theirs.half_width
        return JudgeShift(self.accuracy.value - graded.value, math.sqrt(max(0.0, widths[0] ** 2 - widths[1] ** 2)))

    @property
    def partial(self) -> bool:
        """Whether only part of the population is audited."""
        return self.n_audited < self.n_population

    @property
    def words(self) -> str:
        """The accuracy as a percentage, or its range if samples are undecided."""
        to = "" if self.accuracy_undecided_right is None else f" to {in_percent(self.accuracy_undecided_right)}"
        return f"{in_percent(self.accuracy.value)}{to}%"

    @property
    def sentence(self) -> str:
        """The estimate in words, for a score's remarks."""
        whose = "the judge's " if self.of_judge else ""
        person = f"a person audited {self.n_audited:,} of {whose}{self.n_population:,} verdicts and disagreed with "
        person += f"{self.n_differing:,}"
        rejected = self.n_differing - self.n_accepted
        if self.n_differing and self.by_points:
            person += (
                f" (the judge gave more points than the person did to {self.n_accepted:,} and fewer to {rejected:,})"
            )
        elif self.n_differing:
            person += f" (the grader called {self.n_accepted:,} of them correct and {rejected:,} not)"
        if self.n_decided:
            person += f", and judged {count_noun(self.n_decided, 'sample')} that the grader left undecided"
        left_out = "; the score's intervals do not account for the judge's errors" if self.of_judge else ""
        what = "mean of points" if self.by_points else "accuracy"
        return f"{person}: the audited {what} is {self._accuracy_with_intervals}{left_out}"

    @property
    def _accuracy_with_intervals(self) -> str:
        """The accuracy with both intervals; if samples are undecided, also the accuracy if they are right."""
        sampling, question = self.accuracy.sampling, self.accuracy.question
        assert sampling is not None
        new = "" if question is None else f"; new questions {question.in_percent}"
        value, intervals = f"{in_percent(self.accuracy.value)}%", f"(same questions {sampling.in_percent}{new})"
        if self.accuracy_undecided_right is None:
            return f"{value} {intervals}"
        undecided = f"{count_noun(self.n_undecided, 'undecided sample')} {are(self.n_undecided)}"
        they_are = "it is" if self.n_undecided == 1 else "they are"
        if_right = f"{in_percent(self.accuracy_undecided_right)}% if {they_are} right"
        return f"{value} if the {undecided} wrong {intervals} and {if_right}"


class AuditedPoints(NamedTuple):
    """The audited samples of a stratum: weight in the accuracy, and share of the points given by the person and by the
    judge, each (m,).
    """

    weights: Array
    by_person: Array
    by_judge: Array


class AuditedPart(NamedTuple):
    """The audit of one stratum (the samples called correct, or the others).

    population: number of samples in the stratum, which together have `weight` in the accuracy. drawn: number of audited
    samples; on n_differing of them the person disagrees with the grader. right: weighted share of the audited samples
    that the person calls correct. trials: equivalent number of independent draws; it equals `drawn` if all samples have
    the same weight. points: set if the judge gives points.
    """

    called_correct: bool
    weight: float
    population: int
    drawn: int
    n_differing: int
    right: float
    trials: float
    points: AuditedPoints | None = None

    @classmethod
    def of(cls, stratum: Stratum, verdicts: Sequence[tuple[Key, float]]) -> AuditedPart:
        """The audit with these verdicts: (sample, share of it that the person calls right), at least one."""
        weights = np.array([stratum.weight_of[key] for key, _ in verdicts])
        correct = np.array([correct for _, correct in verdicts])
        by_judge = np.array([stratum.share_of.get(key, float(stratum.called_correct)) for key, _ in verdicts])
        return cls(
            called_correct=stratum.called_correct,
            weight=math.fsum(stratum.weight_of.values()),
            population=len(stratum.weight_of),
            drawn=len(verdicts),
            n_differing=int((abs(correct - by_judge) > 1e-9).sum()),
            right=float((weights * correct).sum() / weights.sum()),
            # Kish's effective sample size: samples of unequal weight carry less information than as many of equal
            # weight.
            trials=float(weights.sum() ** 2 / (weights**2).sum()),
            points=AuditedPoints(weights, correct, by_judge) if stratum.share_of else None,
        )


def audited(
    items: Sequence[QuestionTally], by_hand: Mapping[Key, Override], graded: Estimate, in_force: Mapping[Key, Override]
) -> Audited | None:
    """The audited accuracy, estimated from the audited samples; None as long as any stratum has no counted verdict.

    items: `tally(…).questions`. by_hand: `audits(…)`. graded: the accuracy according to the grades. in_force: all
    manual verdicts, whatever their reason; they count for samples outside the judge's that the grader left undecided.
    """
    population = Population.of(items)
    verdicts = [stratum.verdicts(by_hand) for stratum in population.strata]
    if not verdicts or not all(verdicts):
        return None
    parts = list(map(AuditedPart.of, population.strata, verdicts))
    decided = {key: in_force[key] for key in population.undecided if key in in_force}
    weight_right = math.fsum(population.undecided[key] * share_of(by) for key, by in decided.items())
    one_sample = all(item.n <= 1 for item in items)
    clusters = effective_clusters(np.bincount(cluster_numbers(items)))
    if population.strata[0].share_of:
        graded = msgspec.structs.replace(graded, value=graded.value + weight_right)
    estimated = estimate(parts, population.certain + weight_right, graded, clusters, one_sample=one_sample)
    open_weights = [weight for key, weight in population.undecided.items() if key not in decided]
    estimated = msgspec.structs.replace(
        estimated,
        of_judge=population.of_judge,
        n_undecided=len(open_weights),
        accuracy_undecided_right=min(1.0, estimated.accuracy.value + math.fsum(open_weights)) if open_weights else None,
        n_decided=len(decided),
    )
    if estimated.partial:
        return estimated
    # Everything is audited, so the person's verdicts are scored as a grader's would be.
    judged = decided | {key: by_hand[key] for stratum in population.strata for key in stratum.weight_of}
    present = [item for item in items if item.n]
    shares = [[grade.counted for grade in apply(item.grades, judged)] for item in present]
    scored = msgspec.structs.replace(rate_of_shares(present, shares), value=estimated.accuracy.value)
    return msgspec.structs.replace(estimated, accuracy=scored)


def estimate(
    parts: Sequence[AuditedPart], certain: float, graded: Estimate, clusters: float, *, one_sample: bool = False
) -> Audited:
    """The accuracy that a person would find, estimated from the audit of each stratum.

    certain: the part of the accuracy from samples that no judge decided. graded: the accuracy according to the grades.
    clusters: the effective number of questions or clusters. one_sample: whether every question has one sample. Its
    spread is that of a coin, so errors of the grader do not make it smaller.
    """
    by_points = parts[0].points is not None
    if by_points:
        added, reach, slope = points_correction(parts)
        accuracy, below, above = min(1.0, max(0.0, graded.value + added)), reach**2, reach**2
        stretch = 1 / min(1.0, max(MIN_DISCERNMENT, slope))
        n_accepted = sum(int((part.points.by_judge > part.points.by_person).sum()) for part in parts if part.points)
    else:
        accuracy = certain + math.fsum(part.weight * part.right for part in parts)
        # The shares of the samples that the grader calls correct, and that both the grader and the person call correct.
        by_grader = certain + math.fsum(part.weight for part in parts if part.called_correct)
        by_both = certain + math.fsum(part.weight * part.right for part in parts if part.called_correct)
        # The audit's own uncertainty: squares of the distances to both ends, summed over the strata.
        ends = [_limits(part) for part in parts]
        below = math.fsum((part.weight * (part.right - end.low)) ** 2 for part, end in zip(parts, ends, strict=True))
        above = math.fsum((part.weight * (end.high - part.right)) ** 2 for part, end in zip(parts, ends, strict=True))
        stretch = _stretch(accuracy, by_both, by_grader)
        n_accepted = sum(part.n_differing for part in parts if part.called_correct)
    assert graded.sampling is not None
    sampling = moved_interval(graded.sampling, accuracy)
    question = graded.question and moved_interval(graded.question, accuracy, clusters)
    return Audited(
        accuracy=Estimate(
            value=accuracy,
            sampling=_around(accuracy, sampling, below, above),
            question=question and _around(accuracy, question, below, above, 1.0 if one_sample else stretch),
            at_most=graded.at_most,
        ),
        n_population=sum(part.population for part in parts),
        n_audited=sum(part.drawn for part in parts),
        n_differing=sum(part.n_differing for part in parts),
        n_accepted=n_accepted,
        by_points=by_points or msgspec.UNSET,
    )


def points_correction(parts: Sequence[AuditedPart]) -> tuple[float, float, float]:
    """Return (what the audit adds to the judge's mean of points, the half-width of the audit's own 95% interval, the
    slope of the judge's points on the person's).
    """
    added, variance, n_audited = 0.0, 0.0, sum(part.drawn for part in parts)
    for part in parts:
        assert part.points is not None
        weights, by_person, by_judge = part.points
        gaps, m = by_person - by_judge, part.trials
        mean = float((weights * gaps).sum() / weights.sum())
        spread = float((weights * (gaps - mean) ** 2).sum() / weights.sum()) * m / (m - 1) if m > 1 else 0.25
        added += part.weight * mean
        variance += (part.weight * Z_95 * (1 + 0.8 / m)) ** 2 * spread / m * (1 - part.drawn / part.population)
    weight = math.fsum(part.weight for part in parts)
    missed = 0.0 if n_audited == sum(part.population for part in parts) else weight * MISSED_ERRORS / n_audited
    of_all = [np.concatenate(column) for column in zip(*(part.points for part in parts if part.points), strict=True)]
    shares = np.concatenate([np.full(part.drawn, part.weight / part.drawn) for part in parts])
    by_person, by_judge = (each - np.average(each, weights=shares) for each in of_all[1:])
    slope = float((shares * by_person * by_judge).sum() / max(1e-9, float((shares * by_person**2).sum())))
    return added, math.hypot(math.sqrt(variance), missed), slope


def _limits(part: AuditedPart) -> Interval:
    """The 95% limits (Wilson's) of the share of a stratum that the person would call correct.

    Both limits are the observed share if all samples of the stratum are audited.
    """
    if part.drawn == part.population:
        return Interval(part.right, part.right)
    trials = part.trials * (part.population - 1) / (part.population - part.drawn)
    return wilson(np.asarray(part.right), np.asarray(trials)).interval()


def _stretch(correct: float, both_correct: float, called_correct: float) -> float:
    """Return the factor that converts a difference of two graded accuracies into the difference of the true ones.

    It is 1 / (sensitivity + specificity − 1), between 1 and 1 / `MIN_DISCERNMENT`. correct, both_correct,
    called_correct: shares of the samples called right by the person, by both, and by the grader.
    """
    # Sensitivity is undefined without right samples, and specificity without wrong samples.
    if not 0 < correct < 1:
        return 1.0
    discernment = both_correct / correct - (called_correct - both_correct) / (1 - correct)
    return 1 / min(1.0, max(MIN_DISCERNMENT, discernment))


def _around(estimate: float, interval: Interval, below: float, above: float, stretch: float = 1.0) -> Interval:
    """Return the interval of the audited accuracy: the score's interval, widened by the audit's own uncertainty.

    below, above: squares of the distances from the estimate to the ends of the audit's interval. stretch: factor on the
    distances to the ends of `interval`.
    """
    return Interval(
        max(0.0, estimate - math.hypot(stretch * (estimate - interval.low), math.sqrt(below))),
        min(1.0, estimate + math.hypot(stretch * (interval.high - estimate), math.sqrt(above))),
    )
