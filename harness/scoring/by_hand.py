"""What a score says of the verdicts that persons gave by hand: written at scoring, and again after each new verdict.

The verdicts count nowhere in the score itself. They give a second accuracy (`accuracy_overridden`), of each group of a
breakdown too, and, if an audit asked for them, an estimate (`audited`); the benchmark's own two have a sentence each
among the warnings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from harness.core.records import Key
from harness.runs import overrides
from harness.runs.overrides import Override
from harness.scoring.audit import Audited, audited
from harness.scoring.audit_order import NO_ESTIMATE, audits, why_no_estimate
from harness.scoring.score import GroupScore, Score, groups_by_field, intervals_of
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import rate


def beside_verdicts_by_hand(
    score: Score, items: Sequence[QuestionTally], corrections: Sequence[Override], since: datetime | None
) -> Score:
    """The score with what follows from the verdicts by hand, in place of what it said of earlier ones.

    items: the score's questions, with the grader's grades. corrections: all overrides of the benchmark, in order.
    since: when the judge's rubric was first used; None: it has none.
    """
    warnings, _ = split_warnings(score)
    score = msgspec.structs.replace(
        score,
        accuracy_overridden=None,
        accuracy_overridden_intervals=None,
        n_overridden=0,
        n_undecided_overridden=msgspec.UNSET,
        breakdowns={
            field: {value: _with_group_corrected(group, (), {}) for value, group in groups.items()}
            for field, groups in score.breakdowns.items()
        },
        audited=_estimate(score, items, corrections, since),
    )
    in_force = overrides.in_force(corrections)
    if in_force and score.accuracy is not None:
        score, sentence = _with_corrected(score, items, in_force)
        warnings += [sentence] if sentence else []
    remark = _remark(score, items, audits(corrections))
    warnings += [remark] if remark else []
    return msgspec.structs.replace(score, warnings=tuple(warnings))


def split_warnings(score: Score) -> tuple[list[str], list[str]]:
    """The score's warnings that hold for the grader's accuracy, and those on verdicts by hand."""
    on_hand = [warning for warning in score.warnings if _is_on_verdicts_by_hand(score, warning)]
    return [warning for warning in score.warnings if warning not in on_hand], on_hand


def _remark(score: Score, items: Sequence[QuestionTally], by_hand: Mapping[Key, Override]) -> str:
    """The warning on the errors of the grader: what an audit estimates, why it estimates nothing, or that there is
    none; empty if no judge decided and nothing is audited. by_hand: what is audited.
    """
    if score.audited is not None:
        return score.audited.sentence
    why = why_no_estimate(items, by_hand) if by_hand else ""
    if score.judge_errors is None:
        return why
    return f"{score.judge_errors.opening}: {why}" if why else score.judge_errors.sentence


def _is_on_verdicts_by_hand(score: Score, warning: str) -> bool:
    """Whether the warning is one that this module added to the stored `score`."""
    if warning in {remark.sentence for remark in (score.judge_errors, score.audited) if remark is not None}:
        return True
    if NO_ESTIMATE in warning:
        return True
    # The score does not state how many samples were judged, the number with which these sentences begin.
    former = overrides.Corrected(0, score.n_overridden)
    n_open = 0 if score.n_undecided_overridden is msgspec.UNSET else score.n_undecided_overridden
    words = {former.words, former.beside(score.accuracy, score.accuracy_overridden, n_open)}
    return bool(score.n_overridden) and any(warning.endswith(text[text.index(" judged") :]) for text in words)


def _estimate(
    score: Score, items: Sequence[QuestionTally], corrections: Sequence[Override], since: datetime | None
) -> Audited | None:
    """The accuracy that an audit estimates from the verdicts by hand; None while these are too few."""
    by_hand = audits(corrections)
    if not by_hand or score.accuracy is None:
        return None
    in_force = overrides.in_force(corrections)
    return audited(items, by_hand, intervals_of(score), in_force=in_force, since=since)


def _with_corrected(
    score: Score, items: Sequence[QuestionTally], in_force: Mapping[Key, Override]
) -> tuple[Score, str]:
    """The score with the accuracy that counts the verdicts by hand, and the sentence on it.

    in_force: these verdicts. Score and sentence stay as they are (the sentence empty) if no verdict differs from the
    grader's. The sentence names no accuracy beside the estimate of an audit: verdicts on a part of the samples, put in
    place of the grader's, estimate nothing.
    """
    present = sorted((item for item in items if item.n), key=lambda item: item.question.question_id)
    numbers = overrides.count_corrected((grade for item in present for grade in item.grades), in_force)
    if not numbers.n_differing:
        return score, ""
    corrected = [Counter(grade.verdict for grade in overrides.apply(item.grades, in_force)) for item in present]
    accuracy, intervals = rate(present, [verdicts["correct"] for verdicts in corrected])
    n_open = sum(verdicts["undecided"] for verdicts in corrected)
    score = msgspec.structs.replace(
        score,
        accuracy_overridden=accuracy,
        accuracy_overridden_intervals=intervals,
        n_overridden=numbers.n_differing,
        n_undecided_overridden=n_open,
        breakdowns=_corrected_breakdowns(score, present, in_force),
    )
    if score.audited is None:
        return score, numbers.beside(score.accuracy, accuracy, n_open)
    n_counted = score.audited.n_audited + score.audited.n_decided
    return score, numbers.words if numbers.n_judged > n_counted else ""


def _corrected_breakdowns(
    score: Score, present: Sequence[QuestionTally], in_force: Mapping[Key, Override]
) -> dict[str, dict[str, GroupScore]]:
    """The breakdowns, each group with what it scores if the verdicts by hand count. present: questions with samples."""
    fields = groups_by_field(present)
    return {
        field: {
            value: _with_group_corrected(group, fields.get(field, {}).get(value, ()), in_force)
            for value, group in groups.items()
        }
        for field, groups in score.breakdowns.items()
    }


def _with_group_corrected(
    group: GroupScore, items: Sequence[QuestionTally], in_force: Mapping[Key, Override]
) -> GroupScore:
    """The group with its accuracy, and its number of undecided samples, if the verdicts `in_force` count.

    items: the group's questions with samples. Without verdicts in force, both fields are unset.
    """
    if not in_force:
        return msgspec.structs.replace(group, accuracy_overridden=msgspec.UNSET, n_undecided_overridden=msgspec.UNSET)
    corrected = [list(overrides.apply(item.grades, in_force)) for item in items]
    hits = [sum(grade.verdict == "correct" for grade in grades) for grades in corrected]
    return msgspec.structs.replace(
        group,
        accuracy_overridden=rate(items, hits)[0] if items else None,
        n_undecided_overridden=sum(grade.verdict == "undecided" for grades in corrected for grade in grades),
    )
