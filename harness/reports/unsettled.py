"""Says what would settle a comparison that shows no difference: how many samples, and how many questions."""

from __future__ import annotations

from harness.core.nouns import are, count_noun, count_questions, in_percent, in_points
from harness.scoring.deciding import Decision
from harness.scoring.stats_differences import MAX_PLANNED

ANSWERED_ONCE = (
    "the answers were read from a file: if the same questions cannot be asked again, as in a class, only more "
    "questions of this kind tell more"
)
"""This sentence stands in place of the advice on new runs where a side of the comparison was read from a file."""

COMPLETE_FIRST = "complete the run first, by the same `harness run` command"
"""This advice stands in place of all other where a run owes planned samples."""


def open_points(decision: Decision) -> list[str]:
    """The sentences on what a comparison leaves open, for `harness compare` and reports; empty if it leaves nothing.

    If a run owes samples, or counted rounds lack some, they come first: no other number is said.
    """
    lines = []
    open_line, paired = decision.verdict == "no difference seen", decision.paired
    if open_line:
        missed = (
            f"a true difference of {in_percent(decision.detectable)} points is missed in one comparison of five, a "
            "smaller one more often"
            if decision.detectable is not None
            else "the largest difference that is possible would be missed in more than one comparison of five"
        )
        lines.append(f"this does not mean equal: {missed}")
    if n_missing := paired.n_missing or decision.n_owed:
        effect = "the intervals allow for any result of them" if paired.n_missing else "their rounds are left out"
        advice = f": {COMPLETE_FIRST}" if decision.n_owed else ""
        return [*lines, f"{count_noun(n_missing, 'sample')} {are(n_missing)} missing, and {effect}{advice}"]
    margin = decision.margin
    open_margin = margin is not None and margin.verdict == "open"
    if decision.imported:
        return lines + ([ANSWERED_ONCE] if open_line or open_margin else []) + _open_questions(decision)
    if open_line and decision.settling is None and paired.difference.value and paired.single_error:
        lines.append(
            f"a difference of this size takes more than {MAX_PLANNED:,} samples a question: no two runs would find it"
        )
    if open_line and decision.settling is not None:
        lines.append(
            f"two new runs of about {count_noun(decision.settling, 'sample')} a question, compared alone, would find a "
            f"difference of this size{_range(decision)}; `harness race` may stop earlier"
        )
    if margin is not None and open_margin and margin.settling is not None:
        lines.append(
            f"two new runs of about {count_noun(margin.settling, 'sample')} a question, compared alone, would decide "
            "the margin in 80 % of repetitions, if the true difference is the observed "
            f"{in_points(paired.difference.value)} points"
        )
    return lines + _open_questions(decision)


def _open_questions(decision: Decision) -> list[str]:
    """The sentence on how many questions would decide the line "new questions"; empty if it leaves nothing open."""
    number, paired = decision.settling_questions, decision.paired
    if decision.kind_verdict != "no difference seen" or not paired.difference.value:
        return []
    if number is None:
        return [
            f'on the line "new questions", a difference of this size takes more than {MAX_PLANNED:,} questions: more '
            "questions of this kind do not show it"
        ]
    if number <= paired.n_questions:  # So many questions may be there already.
        return []
    clusters = number * paired.n_clusters / paired.n_questions
    return [
        f"about {count_questions(number, clusters)} of this kind, with as many samples of each, would find a "
        'difference of this size on the line "new questions"'
    ]


def _range(decision: Decision) -> str:
    """The words for the range of samples a question that would settle a difference; empty if it is unknown."""
    if decision.settling_range is None:
        return ""
    fewest, most = decision.settling_range
    up_to = "any number" if most is None else f"{most:,}"
    return f" (from {fewest:,} to {up_to}, since the difference itself is uncertain)"
