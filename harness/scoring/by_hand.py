"""What a score says of the verdicts that persons gave by hand: written at scoring, and again after each new verdict.

The verdicts count nowhere in the score itself. They give a second accuracy (`accuracy_overridden`) and, if an audit
asked for them, an estimate (`audited`), each with one warning.
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
    """The score with what follows from the verdicts by hand, in place of what it said of earlier ones.

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
    """The warning on the errors of the grader: what an audit estimates, why it estimates nothing, or that there is
    none; none if no judge decided and nothing is audited. by_audit: what is audited.
    """
    if score.audited is not None:
        return warned("audit", [score.audited.sentence])
    why = why_no_estimate(items, by_audit) if by_audit else ""
    if why:
        return warned("audit", [why if score.judge_errors is None else f"{score.judge_errors.opening}: {why}"])
    return warned("judge errors", [] if score.judge_errors is None else [score.judge_errors.sentence])


def _with_corrected(score: Score, items: Sequence[QuestionTally], in_force: Mapping[Key, Override]) -> Score:
    """The score with the accuracy that counts the verdicts by hand, and a warning on it.

    in_force: these verdicts. The score stays as it is if no verdict differs from the grader's. The warning names no
    accuracy beside the estimate of an audit: verdicts on a part of the samples, put in place of the grader's, estimate
    nothing.
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
        # The audit's own warning tells of the verdicts that its estimate uses; this one, if there are more, of all.
        n_in_estimate = score.audited.n_audited + score.audited.n_decided
        sentence = by_hand.counts_in_words if by_hand.n_judged > n_in_estimate else ""
    return msgspec.structs.replace(
        score,
        accuracy_overridden=accuracy,
        n_overridden=by_hand.n_differing,
        warnings=(*score.warnings, *warned("by hand", [sentence])),
    )
