"""Computes the score of one benchmark from its grades, and its warnings.

`tally` counts the grades by question and `uncertainty` computes the intervals; here they become a `Score`.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.benchmarks.judge_forms import JudgeForm, form_named, stored_form
from harness.core.errors import UsageError
from harness.core.hidden_limit import EarlyCut
from harness.core.number_text import count_noun, in_percent, is_are
from harness.core.records import Grade, GradeRules, NearMiss, Question
from harness.core.sanitize import visible
from harness.grading.second.judge_messages import prompt_of
from harness.grading.verifier import GIVEN, is_late
from harness.runs import overrides
from harness.runs.overrides import Override
from harness.scoring import measures, uncertainty
from harness.scoring.call_measures import call_estimates, is_unstated
from harness.scoring.score import MAX_GRADER_CHARS, Bounds, GroupScore, Score, ScoreWarning, warned
from harness.scoring.tally import GradeKind, QuestionTally, Tallies, slim, tally
from harness.scoring.turn_scores import turn_scores
from harness.scoring.uncertainty import MAX_LABEL_CHARS, accuracy_of, cluster_numbers, rate_of_shares
from reasoning_answers.host import EXHAUSTED, LEFT_OPEN, NEAR_MISSES, failure

MAX_TRUNCATED_SHARE = 0.01
"""A score warns if max_tokens truncated more than this fraction of its samples."""

MAX_GROUPS = 20
"""Largest number of values of a metadata field that a score is broken down by."""

MAX_BREAKDOWNS = 8
"""Largest number of metadata fields by which a score is broken down."""

MAX_NAMED_ERRORS = 5
"""Largest number of different verifier failures that a score lists, most frequent first."""


def score_benchmark(
    questions: Sequence[Question],
    grades: Iterable[Grade],
    samples_per_question: float | Mapping[str, int] | None,
    *,
    ks: Sequence[int] = (),
    early_cut: EarlyCut | None = None,
    cut_by: str = "max_tokens",
    reasoning_tokens: NDArray[np.float64] | None = None,
    warnings: Iterable[ScoreWarning] = (),
) -> Score:
    """The score of one benchmark over the planned `questions`.

    samples_per_question: planned number; None if no number was planned (outputs of another tool); or, if questions have
    different numbers, question id → number of missing samples. ks: additional k of pass@k, pass^k and maj@k, besides
    the powers of two; a k above the number of samples of any question raises `UsageError`. early_cut, cut_by: from
    `Observed.cuts`. reasoning_tokens: number for each grade, NaN if not reported. warnings: warnings of earlier stages,
    which are passed on.
    """
    tallies = tally([*map(slim, questions)], grades, samples_per_question)
    covered = sorted(tallies.questions, key=lambda item: item.question.question_id)
    columns = tallies.columns.in_order([item.number for item in covered])
    with_answer, fewest = [item for item in covered if not is_unstated(item)], min(item.n for item in covered)
    present = [item for item in with_answer if item.n]
    check_ks(questions[0].benchmark, ks, fewest)
    rules, form, most_points = questions[0].rules, _form_of(questions[0], tallies.kinds), _most_points(present)
    stated = columns.tokens[~np.isnan(columns.tokens)]
    clusters = cluster_numbers(covered)
    spread = uncertainty.sampling_error(present) if present else None
    score = Score(
        benchmark=questions[0].benchmark,
        accuracy=accuracy_of(present),
        sampling_error=spread and spread.error,
        question_error=uncertainty.question_error(present) if present else None,
        n_clusters=n if (n := int(clusters.max()) + 1) < len(covered) else None,
        n_questions=len(covered),
        n_samples=sum(item.n for item in covered),
        n_missing=tallies.missing,
        n_truncated=measures.n_cut(covered),
        **_undecided_fields(covered),
        **_over_k(with_answer, {*_powers_of_two(fewest), *ks}, rules, has_points=most_points is not None),
        accuracy_finished=measures.accuracy_of_finished(with_answer),
        tokens=measures.token_statistics(columns, reasoning_tokens, clusters),
        budgets=measures.budget_scores(covered, columns) if len(with_answer) == len(covered) else {},
        n_tokens_known=len(stated),
        mean_completion_tokens=_mean(stated) if len(stated) else None,
        bounds=_bounds(with_answer or covered),
        partial=tallies.partial,
        rounds=tallies.covered,
        samples_per_question=tallies.planned,
        sampling_error_bound=spread.bound if spread else None,
        n_imputed=spread.imputed if spread and spread.error is not None else 0,
        n_correct=sum(item.correct for item in covered),
        n_no_answer=sum(n for kind, n in tallies.kinds.items() if kind.verdict == "no_answer"),
        n_unextracted=sum(n for kind, n in tallies.kinds.items() if kind.unextracted),
        graders=tuple(sorted({kind.grader for kind in tallies.kinds})),
        verifier_errors=_verifier_errors(tallies.kinds),
        near_misses=_near_misses(tallies.kinds),
        breakdowns=_breakdowns(with_answer),
        early_cut=early_cut,
        copies=tallies.copies,
        measures=measures.measures(covered, ks, form, rules.right_from) | call_estimates(covered),
        turns=turn_scores(questions, covered),
        points_of=most_points or msgspec.UNSET,
        right_from=(most_points and rules.right_from) or msgspec.UNSET,
    )
    left_out = f"{count_noun(tallies.n_left_out, 'unplanned grade')} not counted" if tallies.n_left_out else ""
    unequal = warned("unequal", [uncertainty.unequal_clusters(present), measures.uneven_parts(present)])
    of_samples = (*warnings, *warned("left out", [left_out]), *unequal)
    return msgspec.structs.replace(score, warnings=(*of_samples, *_warnings(score, tallies, cut_by)))


def _form_of(question: Question, kinds: Iterable[GradeKind]) -> JudgeForm | None:
    """The form of the judge that decided grades, or if no judge did, of the judge that the card names; None if there is
    no single form, or if its file is gone.
    """
    prompts = {prompt_of(kind.grader) for kind in kinds if "+judge:" in kind.grader}
    if prompts:
        return stored_form(prompts.pop(), question.rules.judge) if len(prompts) == 1 else None
    with contextlib.suppress(UsageError):
        return form_named(question.rules.judge) if question.rules.judge else None
    return None


def _most_points(items: Sequence[QuestionTally]) -> float | None:
    """The maximum points of an answer; None if no grade has points."""
    if not items or items[0].lowest is None:
        return None
    return max(grade.points[1] for item in items for grade in item.grades if grade.points is not msgspec.UNSET)


def _over_k(
    items: Sequence[QuestionTally], ks: Collection[int], rules: GradeRules, *, has_points: bool
) -> dict[str, Any]:
    """The fields of a score over k samples.

    With points, no sample is right or wrong unless the card specifies a threshold. With points or given verdicts, there
    is no majority answer.
    """
    every_k = [] if not items or (has_points and rules.right_from is None) else sorted(ks)
    majorities = uncertainty.maj_at(items, [] if has_points or rules.grader == GIVEN else every_k)
    return {
        "pass_at": {k: uncertainty.pass_at(items, k).estimate for k in every_k},
        "pass_hat": {k: uncertainty.pass_hat(items, k).estimate for k in every_k},
        "maj_at": {k: draws.estimate for k, draws in majorities.items()},
    }


def check_ks(benchmark: str, ks: Sequence[int], fewest: int) -> None:
    """Raise `UsageError` if a k exceeds `fewest`, the smallest number of samples of any question.

    ks: the values of k requested by the user.
    """
    for k in ks:
        if not 1 <= k <= fewest:
            has = f"at least one question has only {fewest}"
            advice = f"use a k from 1 to {fewest}, or take more samples" if fewest else "take more samples"
            raise UsageError(
                f"{visible(benchmark, MAX_LABEL_CHARS)}: pass@{k} needs {k} samples for every question, but {has}: "
                f"{advice}",
                field="k",
                value=k,
            )


def _warnings(score: Score, tallies: Tallies, cut_by: str) -> Iterator[ScoreWarning]:
    """The warnings derived from a score.

    tallies: the counted samples. cut_by: the limits that truncated samples.
    """
    share = (score.n_truncated or 0) / (score.n_samples or 1)
    if share > MAX_TRUNCATED_SHARE and score.early_cut:
        yield ScoreWarning("cut", score.early_cut.sentence)
    elif share > MAX_TRUNCATED_SHARE:
        samples, was = count_noun(score.n_samples, "sample"), "was" if score.n_truncated == 1 else "were"
        yield ScoreWarning("cut", f"{score.n_truncated} of {samples} ({share:.1%}) {was} truncated by {cut_by}")
    missing = f"{count_noun(score.n_missing, 'sample')} {is_are(score.n_missing)} missing"
    if score.n_missing and score.partial:
        low, high = in_percent(score.bounds.low), in_percent(score.bounds.high)
        what = "accuracy" if not score.points_of else "mean of points"
        text = f"partial: {missing}; the {what} of the complete run is between {low} and {high}%"
        yield ScoreWarning("missing", text)
    elif score.n_missing:
        of = f"the {score.rounds} of {tallies.planned} rounds in which all questions are complete"
        how = "to sample the rest, repeat the run command"
        stored, bounds = sum(question.n for question in tallies.stored), _bounds(tallies.stored)
        within = f"the {stored:,} stored samples show that the complete score is between {in_percent(bounds.low)} and "
        within += f"{in_percent(bounds.high)}%"
        yield ScoreWarning("missing", f"unfinished: the score covers {of}; {missing}: {how}; {within}")
    if score.points_of and score.accuracy is not None:
        over_k = "there is no pass@k because `right_from` is not set"
        if score.right_from:
            over_k = f"pass@k counts samples with at least {score.right_from:g} points as correct"
        whose = "a judge's points" if score.graders != (GIVEN,) else "the shares in the file"
        text = f"{in_percent(score.accuracy.value)}% is the mean of {whose} (out of {score.points_of:g}), not the"
        yield ScoreWarning("points", f"{text} percentage of correct answers; {over_k}")
    yield from warned("verifier", score.verifier_errors)
    yield from _undecided_warnings(score, tallies.kinds)
    for near, count in score.near_misses.items():
        answers = "answer is a near miss" if count == 1 else "answers are near misses"
        yield ScoreWarning("near misses", f"{count} wrong {answers}: {NEAR_MISSES[near]}")
    if score.copies is not None and score.copies.is_excessive:
        yield ScoreWarning("copies", score.copies.sentence)
    elif score.accuracy is not None and score.accuracy.at_most:
        text = "one sample per question: only an upper bound on the sampling error is known"
        yield ScoreWarning("one sample", text)
    if score.n_imputed:
        alone = count_noun(score.n_imputed, "question")
        text = f"{alone} with only one sample: the spread is estimated from the other questions"
        yield ScoreWarning("one sample", text)
    if len(score.graders) > 1 or any("+judge:" in grader for grader in score.graders):
        named = ", ".join(visible(grader, MAX_GRADER_CHARS) for grader in score.graders[:4])
        yield ScoreWarning("graders", f"graded by {count_noun(len(score.graders), 'grader')}: {named}")


def _undecided_fields(items: Sequence[QuestionTally]) -> dict[str, Any]:
    """The fields of a score about undecided samples."""
    n_undecided, n_samples = sum(item.undecided for item in items), sum(item.n for item in items)
    if not n_undecided:
        return {"n_undecided": 0}
    low = [item.right / item.n for item in items if item.n]
    high = [(item.right + item.undecided) / item.n for item in items if item.n]
    bounds = Bounds(max(0.0, _mean(low)), _mean(high))
    return {"n_undecided": n_undecided, "undecided_share": n_undecided / n_samples, "undecided_bounds": bounds}


def _undecided_warnings(score: Score, kinds: Mapping[GradeKind, int]) -> Iterator[ScoreWarning]:
    """A warning about undecided samples, with the causes and the bounds of the accuracy; nothing if there are none.

    kinds: number of samples by verdict and rule.
    """
    if (bounds := score.undecided_bounds) is None:
        return
    causes = Counter[str]()
    for kind, count in kinds.items():
        if kind.verdict == "undecided":
            causes[_why_undecided(kind.rule)] += count
    n, low, high = score.n_undecided, in_percent(bounds.low), in_percent(bounds.high)
    why = "; ".join(cause if count == n else f"{cause}: {count:,}" for cause, count in causes.most_common())
    samples, counts = f"{count_noun(n, 'sample')} ({score.undecided_share:.1%})", "counts" if n == 1 else "count"
    what = "accuracy" if not score.points_of else "mean of points"
    allowed = f"the {what} is {low}% if all are wrong and {high}% if all are correct"
    yield ScoreWarning("undecided", f"{samples} {is_are(n)} undecided ({why}) and {counts} as wrong: {allowed}")


def _why_undecided(rule: str) -> str:
    """Why a grade by this rule is undecided, in words."""
    if rule == LEFT_OPEN:
        return "only a judge can decide"
    if failure(rule) is not None:
        return "the verifier failed"
    return "the grader ran out of time or memory" if rule in EXHAUSTED else "no rule could decide"


def _verifier_errors(kinds: Mapping[GradeKind, int]) -> tuple[str, ...]:
    """Warnings about what the benchmark's own verifier raised or returned instead of a verdict.

    kinds: number of samples by verdict and rule.
    """
    failures, is_judged = Counter[str](), any("+judge:" in kind.grader for kind in kinds)
    for kind, n in kinds.items():
        # If a judge was used and gave no verdict, there is a separate warning.
        is_open = kind.rule == LEFT_OPEN and is_judged
        if kind.verdict in ("undecided", "no_answer") and failure(kind.rule) is not None and not is_open:
            failures[kind.rule] += n
    return _failure_sentences(failures, ": counted as wrong")


def _failure_sentences(failures: Mapping[str, int], consequence: str) -> tuple[str, ...]:
    """Sentences about the failures of a verifier, most frequent first.

    failures: rule → number of samples. consequence: text about what happened to these samples.
    """
    sentences = []
    for rule, count in sorted(failures.items(), key=lambda item: (-item[1], item[0]))[:MAX_NAMED_ERRORS]:
        advice = ""
        if is_late(rule):
            advice = "; to allow more time, score again with a longer --deadline"
        elif rule == LEFT_OPEN:
            advice = "; it returned None, which leaves the answer to a judge"
        failed = visible(rule.removeprefix("verifier "))
        sentences.append(f"the verifier {failed} on {count_noun(count, 'sample')}{consequence}{advice}")
    return tuple(sentences)


def with_errors(score: Score, failures: Mapping[str, int]) -> Score:
    """The score with added errors and warnings about verifier failures on samples that a judge decided instead.

    failures: the rule that names the failure → number of samples.
    """
    errors = _failure_sentences(failures, ", which the judge decided instead")
    return msgspec.structs.replace(
        score,
        verifier_errors=(*score.verifier_errors, *errors),
        warnings=(*score.warnings, *warned("verifier", errors)),
    )


def _near_misses(kinds: Mapping[GradeKind, int]) -> dict[NearMiss, int]:
    """Kind of near miss → number of wrong answers. kinds: number of samples by verdict and rule."""
    counts: Counter[NearMiss] = Counter()
    for kind, n in kinds.items():
        if kind.near_miss is not None and kind.verdict == "wrong":
            counts[kind.near_miss] += n
    return dict(sorted(counts.items()))


def _group_score(items: Sequence[QuestionTally]) -> GroupScore:
    """The score of a group of questions."""
    present = [item for item in items if item.n]
    return GroupScore(
        accuracy=accuracy_of(present),
        n_questions=len(items),
        n_answered=len(present),
        n_samples=sum(item.n for item in present),
        n_undecided=sum(item.undecided for item in present),
    )


def _bounds(items: Sequence[QuestionTally]) -> Bounds:
    """Lowest and highest possible accuracy: missing and undecided samples all count as wrong, or all as correct.

    A question whose planned number of samples is unknown (another tool's outputs) counts as 0 or as 1.
    """
    low = [item.right / item.planned if item.planned else 0.0 for item in items]
    high = [
        (item.right + item.undecided + item.planned - item.n) / item.planned if item.planned else 1.0 for item in items
    ]
    return Bounds(max(0.0, _mean(low)), _mean(high))


def _breakdowns(items: Sequence[QuestionTally]) -> dict[str, dict[str, GroupScore]]:
    """The score for each value of the first `MAX_BREAKDOWNS` metadata fields that have few values.

    A field is left out if it has only one value, or a different value in each question.
    """
    fields = groups_by_field(items)
    shown = [field for field in sorted(fields) if 1 < len(fields[field]) <= min(MAX_GROUPS, len(items) - 1)]
    return {
        field: {label: _group_score(fields[field][label]) for label in sorted(fields[field], key=_natural)}
        for field in shown[:MAX_BREAKDOWNS]
    }


def groups_by_field(items: Sequence[QuestionTally]) -> dict[str, dict[str, list[QuestionTally]]]:
    """The questions by metadata field and value, both under their names in a score."""
    fields: dict[str, dict[str, list[QuestionTally]]] = {}
    for item in items:
        for field, value in item.question.metadata.items():
            label = _label(value)
            # Runs of earlier versions name the original of a question's variant, which is not a kind of question.
            if label is not None and not ("twin_of" in item.question.metadata and field in ("twin_of", "original")):
                fields.setdefault(visible(field, MAX_LABEL_CHARS), {}).setdefault(label, []).append(item)
    return fields


def _label(value: Any) -> str | None:
    """The value of a metadata field as a group name; None if the value is unsuitable for grouping."""
    if not isinstance(value, bool | int | str) or value == "":
        return None
    # Such a number is not a level or a year, and Python refuses to print a number with thousands of digits.
    if isinstance(value, int) and abs(value) >= 10**18:
        return None
    return visible(str(value), MAX_LABEL_CHARS)


def _natural(label: str) -> tuple[bool, list[tuple[bool, float, str]]]:
    """Sort key of a label: numbers in it are sorted by value, before text; labels that are whole numbers come first."""
    parts = [
        # `isdigit` is also true for ², which `float` rejects.
        (False, float(part), part) if part.isascii() and part.isdigit() else (True, 0.0, part)
        for part in filter(None, re.split("([0-9]+)", label))
    ]
    return not (label.isascii() and label.isdigit()), parts


def _powers_of_two(limit: int) -> list[int]:
    """The numbers 1, 2, 4 … up to `limit`, and `limit` itself; empty for 0."""
    return sorted({1 << exponent for exponent in range(limit.bit_length())} | {limit} - {0})


def _mean(values: Sequence[float] | NDArray[np.float64]) -> float:
    return math.fsum(values) / len(values)


# ---- verdicts by hand


def with_verdicts_by_hand(score: Score, items: Sequence[QuestionTally], corrections: Sequence[Override]) -> Score:
    """The score with the results of the manual verdicts, which replace the results of earlier ones: a second accuracy
    and a warning. They do not change the score itself.

    items: the score's questions, with the grader's grades. corrections: all overrides of the benchmark, in order. If no
    verdict differs from the grader's, there is no second accuracy.
    """
    in_force = overrides.latest_overrides(corrections)
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
