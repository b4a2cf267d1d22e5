"""How two graders agree, for the terminal: the matrix, and the disagreements that move the score most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.core.inert import quoted, visible

if TYPE_CHECKING:
    from harness.grading.second.second_opinion import Agreement

SHOWN_DISAGREEMENTS = 10
SHOWN_ANSWER_CHARS = 60
_RULES = ("correct", "wrong", "no_answer", "undecided")
_OTHER = ("correct", "wrong", "no opinion")


def matrix_lines(agreement: Agreement, other: str) -> Iterator[str]:
    """Our verdicts down, the other grader's across; rows without a sample are left out."""
    corner = f"rules | {other}"
    yield f"  {corner}" + "".join(f"{word:>12}" for word in _OTHER)
    for rules in _RULES:
        counts = [agreement.matrix.get((rules, said), 0) for said in _OTHER]
        if any(counts):
            yield f"  {rules:<{len(corner)}}" + "".join(f"{count:>12}" for count in counts)


def disagreement_lines(agreement: Agreement, other: str, note: str) -> Iterator[str]:
    """The answers on which they differ, those with the largest effect on the score first."""
    found = agreement.disagreements
    if not found:
        return
    yield f"  they disagree on {sum(one.n_samples for one in found)} samples; {note}:"
    for one in found[:SHOWN_DISAGREEMENTS]:
        answer = "no answer" if one.extracted is None else repr(visible(one.extracted, SHOWN_ANSWER_CHARS))
        said = "correct" if one.theirs else "wrong"
        effect = f"{100 * one.effect:.2f} points"
        yield f"    {quoted(one.question_id)}: {answer}: rules {one.ours}, {other} {said} (×{one.n_samples}, {effect})"
    if len(found) > SHOWN_DISAGREEMENTS:
        yield f"    and {len(found) - SHOWN_DISAGREEMENTS} more"
