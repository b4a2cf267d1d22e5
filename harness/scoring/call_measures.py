"""A score's metrics for questions that ask for function calls, and how often two runs agree on whether to call.

schema accuracy       share of replies with calls whose calls all match the schemas of their tools
replies with calls    share of samples; the same for each kind of error, reported only if it occurs
trigger agreement     precision, recall and F1 of "the run calls", compared with the calls of a reference run
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from harness.core.records import CallSign
from harness.scoring.measures import ratio_of_means
from harness.scoring.stats import Array, Estimate
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import mean_question_interval, rate

SCHEMA_ACCURACY = "schema accuracy"
"""The metric of replies with calls whose calls all match their schemas."""

KIMI_ACCURACY = "schema accuracy by Moonshot's rule"
"""The same as Moonshot's K2-Vendor-Verifier counts it: of the replies whose finish reason is `tool_calls`, those with
calls that are all valid to it. Only for logged requests.
"""

UNREAD_CALLS = "call markup in the text"
"""The metric of replies whose calls the server did not parse."""

_SHARES: dict[CallSign, str] = {
    "no_json": "arguments not JSON",
    "schema": "arguments not matching the schema",
    "unknown_name": "unknown function",
    "unread_call": UNREAD_CALLS,
    "cut_call": "truncated within a call",
    "same_id": "calls with the same ID",
}
"""Sign → name of the metric of samples that show it; reported only if there are any."""


def is_unstated(item: QuestionTally) -> bool:
    """Whether a question has no right answer in the data, so that the accuracy does not cover it."""
    return item.question.kind == "calls" and any("unstated" in (grade.call_signs or ()) for grade in item.grades)


def call_estimates(items: Sequence[QuestionTally]) -> dict[str, Estimate]:
    """The metrics of replies to questions that ask for calls; empty if there are no such questions."""
    items = [item for item in items if item.n and item.question.kind == "calls"]
    shown = [Counter(sign for grade in item.grades for sign in grade.call_signs or ()) for item in items]
    if not items or not any(grade.call_signs is not msgspec.UNSET for item in items for grade in item.grades):
        return {}
    counts = {sign: [each[sign] for each in shown] for sign in ("call", "fits", *_SHARES)}
    silent = np.array([item.n for item in items]) - np.array(counts["call"])
    estimates: dict[str, Estimate | None] = {
        SCHEMA_ACCURACY: ratio_of_means(items, 1.0, 0.0, np.array(counts["fits"]), silent),
        "replies with calls": rate(items, counts["call"], verdicts=True),
    }
    if any(map(is_unstated, items)):
        both = {"ends_in_calls", "valid_for_kimi"}
        valid = [sum(both <= {*(grade.call_signs or ())} for grade in item.grades) for item in items]
        others = np.array([item.n - each["ends_in_calls"] for item, each in zip(items, shown, strict=True)])
        estimates[KIMI_ACCURACY] = ratio_of_means(items, 1.0, 0.0, np.array(valid), others)
    shares = {name: rate(items, counts[sign], verdicts=True) for sign, name in _SHARES.items() if any(counts[sign])}
    return {name: each for name, each in (estimates | shares).items() if each is not None}


def counts_of_calls(items: Iterable[QuestionTally]) -> Counter[str]:
    """The number of samples that each metric of calls counts; empty without calls and without their errors."""
    signs = Counter(sign for item in items for grade in item.grades for sign in grade.call_signs or ())
    return Counter({name: signs[sign] for sign, name in {"call": "with calls", **_SHARES}.items() if signs[sign]})


class TriggerAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How often a run and a reference run agree on whether to call functions, over all pairs of their samples on the
    same question. The intervals apply to new questions of the same kind.
    """

    precision: Estimate | None
    """Fraction of the run's replies with a call for which the reference also makes a call; None if the run makes no
    calls.
    """
    recall: Estimate | None
    """Fraction of the reference's replies with a call for which the run also makes a call; None if the reference makes
    no calls.
    """
    f1: Estimate | None
    """Harmonic mean of precision and recall; None if neither run makes any calls."""
    of_log: bool = False
    """Whether requests state no right answer; a reply to them counts as correct unless it contains a faulty call."""

    @property
    def sentence(self) -> str:
        """The three metrics in a sentence."""
        cells = {"F1": self.f1, "precision": self.precision, "recall": self.recall}
        words = [
            f"{name} {each.value:.1%}"
            + (f" ({each.question.low:.1%} to {each.question.high:.1%})" if each.question else "")
            for name, each in cells.items()
            if each is not None
        ]
        agreement = ", ".join(words) or "neither run calls a function"
        counted = "; the difference counts replies without a faulty call" if self.of_log else ""
        return f"function calls where the baseline also calls one: {agreement}{counted}"


def trigger_agreement(pairs: Sequence[tuple[QuestionTally, QuestionTally]]) -> TriggerAgreement | None:
    """How often two runs agree on whether to call; None if no question asks for calls. pairs: (run's, reference's)."""
    asked = [(ours, theirs) for ours, theirs in pairs if ours.question.kind == "calls"]
    if not asked:
        return None
    items = [ours for ours, _ in asked]
    of_sides = [
        [sum("call" in (grade.call_signs or ()) for grade in item.grades) / item.n for item in pair] for pair in asked
    ]
    ours, theirs = np.array(of_sides).T
    return TriggerAgreement(
        precision=_weighted(theirs, ours, items),
        recall=_weighted(ours, theirs, items),
        f1=_weighted(
            np.divide(2 * ours * theirs, ours + theirs, out=np.zeros_like(ours), where=ours + theirs > 0),
            ours + theirs,
            items,
        ),
        of_log=any(map(is_unstated, items)),
    )


def _weighted(values: Array, weights: Array, items: Sequence[QuestionTally]) -> Estimate | None:
    """The weighted mean of the values over the questions with a positive weight; None if there are none."""
    counted = weights > 0
    if not counted.any():
        return None
    having = [item for item, has_weight in zip(items, counted, strict=True) if has_weight]
    values, weights = values[counted], weights[counted]
    interval = mean_question_interval(values, having, weights)
    return Estimate(value=float((values * weights).sum() / weights.sum()), question=interval)
