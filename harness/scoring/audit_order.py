"""Which samples an audit draws, in which order, and which of a person's verdicts count in its estimate.

The audited population is the set of samples that a judge decided: samples with a verdict of the judge that counts,
whether or not the rules agree (`judge_messages.apply_ruling`). If no judge decided any sample, the population is all
samples. There are two strata: the samples called correct, and the others. The draw is not stored: samples are ordered
by a checksum of their keys, which does not depend on their texts and verdicts. From each stratum, the estimate uses the
samples from the beginning of this order up to the first without a manual verdict, so a person may stop at any sample. A
verdict counts only if an audit stored it (`audits`): a verdict given for another reason, for example on a sample that
looked wrong, is not a random draw and would bias the estimate.

The population and its strata depend on the grades, which may change: a score without the judge includes all samples.
Earlier verdicts are kept, but the order then stops at the first sample that the earlier audit could not draw, such as a
sample that the judge did not see. All samples before it are of the other kind, which is a biased draw. If a fraction p
of a stratum are such samples, none of them is among the first m with probability (1 − p)^m, so a small m does not mean
that p is 0. Therefore, at least `MIN_SHARE_COUNTED` of a stratum's audits must count; otherwise there is no estimate,
and `why_no_estimate` explains why.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from harness.core.codec import digest
from harness.core.records import Key
from harness.grading.verdict import JUDGE_RULE
from harness.runs import overrides
from harness.runs.overrides import Override
from harness.scoring.tally import QuestionTally

MIN_SHARE = 0.25
"""Minimum share of the audits for the smaller of the two strata, as long as it has samples."""

MIN_SHARE_OF_POINTS = 0.1
"""Approximate minimum share of the audits for each of the four strata if a judge gives points."""

MIN_SHARE_COUNTED = 0.5
"""Minimum share of a stratum's audits that must precede its first sample without a verdict; otherwise none of them
counts.
"""

WHY = "audit"
"""The reason (`Override.why`) of a manual verdict stored by an audit."""

NO_ESTIMATE = "no estimate of the audited accuracy yet: "
"""The beginning of the sentence that `why_no_estimate` returns."""


@dataclass
class Stratum:
    """The samples that the grader called correct, or the others. If a judge gives points, the samples with all points,
    with at least half of the points, with less than half, or with none. called_correct: whether the samples are right,
    or have all points. weight_of: key → weight in the accuracy. share_of: key → share of the points, if the judge gives
    points.
    """

    called_correct: bool
    graded: str
    weight_of: dict[Key, float] = field(default_factory=dict)
    share_of: dict[Key, float] = field(default_factory=dict)

    @cached_property
    def order(self) -> list[Key]:
        """The samples in the order of the draw; call only once all samples are in `weight_of`."""
        return sorted(self.weight_of, key=_checksum)

    def verdicts(self, by_hand: Mapping[Key, Override]) -> list[tuple[Key, float]]:
        """(sample, share of it that the person calls right) for each audit that counts, in order; empty if fewer than
        `MIN_SHARE_COUNTED` of the audits are at the beginning of the order.
        """
        beginning = self.beginning(by_hand)
        if len(beginning) < MIN_SHARE_COUNTED * len(self.weight_of.keys() & by_hand.keys()):
            return []
        return [(key, overrides.share_of(by_hand[key])) for key in beginning]

    def beginning(self, by_hand: Mapping[Key, Override]) -> list[Key]:
        """The samples before the first sample without a verdict, in order."""
        order = self.order
        return order[: next((i for i, key in enumerate(order) if key not in by_hand), len(order))]


_STRATA_OF_POINTS = (
    "given all points",
    "given at least half of the points",
    "given less than half of the points",
    "given no points",
)


@dataclass(frozen=True, slots=True)
class Population:
    """The audited population. certain: the part of the accuracy from samples that no judge decided. undecided: the
    samples outside the strata that the grader left undecided, with their weights in the accuracy. of_judge: whether the
    strata contain verdicts of a judge.
    """

    strata: tuple[Stratum, ...]
    certain: float
    n: int
    undecided: Mapping[Key, float]
    of_judge: bool

    @classmethod
    def of(cls, items: Sequence[QuestionTally]) -> Population:
        """The samples that can be drawn, in two strata (four if samples have points), and the part of the accuracy that
        no judge decided.
        """
        present = [item for item in items if item.n]
        by_judge = any(grade.rule == JUDGE_RULE for item in present for grade in item.grades)
        strata = [Stratum(number == 0, graded) for number, graded in enumerate(_STRATA_OF_POINTS)]
        if not any(item.lowest is not None for item in present):
            strata = [Stratum(True, "graded correct"), Stratum(False, "not graded correct")]
        certain: list[float] = []
        undecided: dict[Key, float] = {}
        for item in present:
            weight = 1 / (item.n * len(present))
            for grade in item.grades:
                if by_judge and grade.rule != JUDGE_RULE:
                    certain.append(weight * grade.counted)
                    if grade.verdict == "undecided":
                        undecided[grade.key] = weight
                    continue
                share = grade.counted
                number = int(share < 1) + int(share < 0.5) + int(share <= 0) if len(strata) > 2 else int(share < 1)
                strata[number].weight_of[grade.key] = weight
                if len(strata) > 2:
                    strata[number].share_of[grade.key] = share
        filled = tuple(stratum for stratum in strata if stratum.weight_of)
        n = sum(len(stratum.weight_of) for stratum in filled)
        return cls(filled, math.fsum(certain), n, undecided, by_judge)

    def turns(self) -> Iterator[int]:
        """Yield, for each sample of the draw in turn, the index of its stratum."""
        left = [len(stratum.weight_of) for stratum in self.strata]
        shares = shares_of(left, MIN_SHARE_OF_POINTS if any(each.share_of for each in self.strata) else MIN_SHARE)
        parts = [0] * len(left)
        while any(left):
            # The stratum farthest behind its share is next, so a small draw is part of every larger draw.
            turn = min((i for i, rest in enumerate(left) if rest), key=lambda i: (parts[i] + 1) / shares[i])
            parts[turn] += 1
            left[turn] -= 1
            yield turn


def audits(corrections: Iterable[Override]) -> dict[Key, Override]:
    """The person's verdicts on the audited samples.

    corrections: all corrections of a benchmark, in order. A correction of an audited sample counts, whatever its
    reason; a withdrawn verdict does not.
    """
    in_force: dict[Key, Override] = {}
    for override in corrections:
        if override.verdict is None:
            in_force.pop(override.key, None)
        elif override.why == WHY or override.key in in_force:
            in_force[override.key] = override
    return in_force


def shares_of(sizes: Sequence[int], least: float = MIN_SHARE) -> list[float]:
    """Return the shares of an audit's samples for its strata, which add up to 1.

    sizes: number of samples in each stratum. least: minimum share of a stratum, before the shares of more than two
    strata are normalized.
    """
    shares = [max(least, size / sum(sizes)) for size in sizes]
    if len(sizes) == 2:
        first = min(1 - least, shares[0])
        return [first, 1 - first]
    return [share / math.fsum(shares) for share in shares]


def draw(items: Sequence[QuestionTally], n: int, by_hand: Mapping[Key, Override] | None = None) -> list[Key]:
    """Draw at most `n` samples for a person to check, plus all whose verdicts count; return them in display order.

    items: `tally(…).questions`. by_hand: `audits(…)`; more than `n` of them may count, and the person may be asked
    about them again. Each of the two strata (samples that the grader called correct, and the others) gets a share in
    proportion to its size, but at least `MIN_SHARE`. The samples are ordered by checksum, so their order does not
    reveal the grader's verdict.
    """
    population = Population.of(items)
    parts = Counter(islice(population.turns(), n))
    drawn = {key for number, stratum in enumerate(population.strata) for key in stratum.order[: parts[number]]}
    drawn.update(key for stratum in population.strata for key, _ in stratum.verdicts(by_hand or {}))
    return sorted(drawn, key=_checksum)


def why_no_estimate(items: Sequence[QuestionTally], by_hand: Mapping[Key, Override]) -> str:
    """A sentence that explains why the audits give no estimate, and what to do; empty if they give one.

    items: `tally(…).questions`. by_hand: `audits(…)`.
    """
    population = Population.of(items)
    lacking = [stratum for stratum in population.strata if not stratum.verdicts(by_hand)]
    if not lacking:
        return ""
    if not any(stratum.weight_of.keys() & by_hand.keys() for stratum in population.strata):
        return f"{NO_ESTIMATE}none of the drawn samples has been judged by a person"
    causes = "; ".join(
        f"of {len(each.weight_of.keys() & by_hand.keys()):,} manual verdicts on samples that were {each.graded}, "
        f"{len(each.beginning(by_hand)):,} are among the first in the random order"
        for each in lacking
    )
    return (
        f"{NO_ESTIMATE}{causes}. At least {MIN_SHARE_COUNTED:.0%} (and at least one) must be among the first. If the "
        "samples or the grader have changed, score again with the same judge. Otherwise, continue the audit: "
        "`harness audit` shows the samples in this order (if it shows none, use a larger `samples`)"
    )


def _checksum(key: Key) -> str:
    """The sort key of the samples; it does not depend on texts and verdicts."""
    return digest(["audit", key.question_id, key.sample_index])
