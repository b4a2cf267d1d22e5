"""What a score reports about manual verdicts: computed at scoring, and again after each new verdict.

Manual verdicts do not change the score itself. They give a second accuracy (`accuracy_overridden`) and a warning.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.runs import overrides
from harness.runs.overrides import Override
from harness.scoring.score import Score, warned
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import rate_of_shares


def with_verdicts_by_hand(score: Score, items: Sequence[QuestionTally], corrections: Sequence[Override]) -> Score:
    """The score with the results of the manual verdicts, which replace the results of earlier ones.

    items: the score's questions, with the grader's grades. corrections: all overrides of the benchmark, in order. If no
    verdict differs from the grader's, there is no second accuracy.
    """
    in_force = overrides.in_force(corrections)
    present = sorted((item for item in items if item.n), key=lambda item: item.question.question_id)
    by_hand = overrides.count_corrected((grade for item in present for grade in item.grades), in_force)
    corrected, sentence = None, ""
    if by_hand.n_differing and score.accuracy is not None:
        applied = [[*overrides.apply(item.grades, in_force)] for item in present]
        corrected = rate_of_shares(present, [[grade.counted for grade in grades] for grades in applied])
        n_open = sum(grade.verdict == "undecided" for grades in applied for grade in grades)
        sentence = by_hand.sentence(score.accuracy.value, corrected.value, n_open)
    errors = ""
    if score.judge_errors is not None:
        advice = "" if in_force else ". To measure its errors, run `harness audit`"
        errors = f"{score.judge_errors.sentence}{advice}"
    kept = (warning for warning in score.warnings if warning.kind not in ("by hand", "judge errors", "audit"))
    return msgspec.structs.replace(
        score,
        accuracy_overridden=corrected,
        n_overridden=by_hand.n_differing if corrected else 0,
        warnings=(*kept, *warned("by hand", [sentence]), *warned("judge errors", [errors])),
    )
