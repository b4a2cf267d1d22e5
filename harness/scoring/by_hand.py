"""What a score reports about manual verdicts: computed at scoring, and again after each new verdict.

Manual verdicts do not change the score itself. They give a second accuracy (`accuracy_overridden`) and, if they are
from an audit, an estimate (`audited`), each with one warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from harness.core.records import Key
from harness.runs import overrides
from harness.runs.overrides import Override
from harness.scoring.audit import audited
from harness.scoring.audit_order import audits, why_no_estimate
from harness.scoring.score import Score, ScoreWarning, warned
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import rate_of_shares


def with_verdicts_by_hand(score: Score, items: Sequence[QuestionTally], corrections: Sequence[Override]) -> Score:
    """The score with the results of the manual verdicts, which replace the results of earlier ones.

    items: the score's questions, with the grader's grades. corrections: all overrides of the benchmark, in order.
    """
    in_force, by_audit = overrides.in_force(corrections), audits(corrections)
    estimate = None
    if by_audit and score.accuracy is not None:
        estimate = audited(items, by_audit, score.accuracy, in_force)
    score = msgspec.structs.replace(
        score,
        accuracy_overridden=None,
        n_overridden=0,
        audited=estimate,
        warnings=tuple(
            warning for warning in score.warnings if warning.kind not in ("by hand", "judge errors", "audit")
        ),
    )
    if in_force and score.accuracy is not None:
        score = _with_corrected(score, items, in_force)
    return msgspec.structs.replace(score, warnings=(*score.warnings, *_on_errors(score, items, by_audit)))


def _on_errors(score: Score, items: Sequence[QuestionTally], by_audit: Mapping[Key, Override]) -> list[ScoreWarning]:
    """The warning about the grader's errors: an audit's estimate, why there is none, or that there was no audit. Empty
    if no judge decided and nothing is audited. by_audit: the audited samples.
    """
    if score.audited is not None:
        return warned("audit", [score.audited.sentence])
    why = why_no_estimate(items, by_audit) if by_audit else ""
    if why:
        return warned("audit", [why if score.judge_errors is None else f"{score.judge_errors.opening}: {why}"])
    return warned("judge errors", [] if score.judge_errors is None else [score.judge_errors.sentence])


def _with_corrected(score: Score, items: Sequence[QuestionTally], in_force: Mapping[Key, Override]) -> Score:
    """The score with the accuracy that counts the manual verdicts, and a warning about it.

    in_force: the manual verdicts. The score is unchanged if no verdict differs from the grader's. If an audit gives an
    estimate, the warning names no other accuracy: replacing the grader's verdicts on some of the samples is not an
    estimate.
    """
    present = sorted((item for item in items if item.n), key=lambda item: item.question.question_id)
    by_hand = overrides.count_corrected((grade for item in present for grade in item.grades), in_force)
    if not by_hand.n_differing or score.accuracy is None:
        return score
    applied = [[*overrides.apply(item.grades, in_force)] for item in present]
    corrected = [Counter(grade.verdict for grade in grades) for grades in applied]
    accuracy = rate_of_shares(present, [[grade.counted for grade in grades] for grades in applied])
    if score.audited is None:
        n_open = sum(verdicts["undecided"] for verdicts in corrected)
        sentence = by_hand.sentence(score.accuracy.value, accuracy.value, n_open)
    else:
        # The audit's own warning covers the verdicts in its estimate; this one covers all verdicts, if there are more.
        n_in_estimate = score.audited.n_audited + score.audited.n_decided
        sentence = by_hand.counts_in_words if by_hand.n_judged > n_in_estimate else ""
    return msgspec.structs.replace(
        score,
        accuracy_overridden=accuracy,
        n_overridden=by_hand.n_differing,
        warnings=(*score.warnings, *warned("by hand", [sentence])),
    )
