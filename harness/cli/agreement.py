"""Shows how two graders agree, for the terminal: the matrix, and the disagreements that move the score most."""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.inert import quoted, visible
from harness.core.nouns import count_noun
from harness.grading.second.second_opinion import Agreement

SHOWN_DISAGREEMENTS = 10
SHOWN_ANSWER_CHARS = 60
# The rows and columns of the matrix: verdicts of the rules, and opinions of the other grader.
_RULES = ("correct", "wrong", "no_answer", "undecided")
_OTHER = ("correct", "wrong", "no opinion")


def matrix_lines(agreement: Agreement, grader: str, first: str = "rules") -> Iterator[str]:
    """The lines of the matrix: a row for each verdict of the rules, a column for each opinion of the other grader.

    Each number counts samples; rows without samples are left out. grader: the other grader's name. first: who graded
    before it.
    """
    corner = f"{first} | {grader}"
    yield f"  {corner}" + "".join(f"{word:>12}" for word in _OTHER)
    for rules in _RULES:
        counts = [agreement.matrix.get((rules, opinion), 0) for opinion in _OTHER]
        if any(counts):
            yield f"  {rules:<{len(corner)}}" + "".join(f"{count:>12}" for count in counts)


def disagreement_lines(agreement: Agreement, grader: str, note: str, first: str = "rules") -> Iterator[str]:
    """The lines on answers that the graders judge differently, those with the largest effect on the score first.

    note: the end of the first line, such as which verdict counts. grader, first: as in `matrix_lines`.
    """
    cases = agreement.disagreements
    if not cases:
        return
    yield f"    the graders disagree on {count_noun(sum(case.n_samples for case in cases), 'sample')}; {note}:"
    for case in cases[:SHOWN_DISAGREEMENTS]:
        answer = "no answer" if case.extracted is None else repr(visible(case.extracted, SHOWN_ANSWER_CHARS))
        opinion = "correct" if case.theirs else "wrong"
        effect = f"{100 * case.effect:.2f} points"
        where = f"{quoted(case.question_id)}: {answer}"
        yield f"    {where}: {first} {case.ours}, {grader} {opinion} (×{case.n_samples}, {effect})"
    if len(cases) > SHOWN_DISAGREEMENTS:
        yield f"    and {len(cases) - SHOWN_DISAGREEMENTS} more"
