"""Says what a comparison that shows no difference leaves open."""

from __future__ import annotations

from harness.core.nouns import are, count_noun, in_percent
from harness.scoring.deciding import Decision

ANSWERED_ONCE = (
    "the answers were read from a file: if the same questions cannot be asked again, as in a class, only more "
    "questions of this kind tell more"
)
"""This sentence stands in place of the advice on new runs where a side of the comparison was read from a file."""

COMPLETE_FIRST = "complete the run first, by the same `harness run` command"
"""This advice stands in place of all other where a run owes planned samples."""


def open_points(decision: Decision) -> list[str]:
    """The sentences on what a comparison leaves open, for `harness compare` and reports; empty if it leaves nothing."""
    lines, is_open = [], decision.verdict == "no difference seen"
    if is_open:
        missed = "the largest difference that is possible would be missed in more than one comparison of five"
        if (points := decision.detectable) is not None:
            seen = f"a true difference of {in_percent(points)} points is missed in one comparison of five"
            missed = f"{seen}, a smaller one more often"
        lines.append(f"this does not mean equal: {missed}")
    n_missing, effect = decision.paired.n_missing, "the intervals allow for any result of them"
    if not n_missing:
        n_missing, effect = decision.n_owed, "their rounds are left out"
    if n_missing:
        advice = f": {COMPLETE_FIRST}" if decision.n_owed else ""
        return [*lines, f"{count_noun(n_missing, 'sample')} {are(n_missing)} missing, and {effect}{advice}"]
    if is_open or (decision.margin is not None and decision.margin.verdict == "open"):
        lines.append(ANSWERED_ONCE if decision.imported else "`harness plan` says how large two new runs must be")
    return lines
