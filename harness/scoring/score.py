"""Computes the score of one benchmark from its grades: the record in `scores.json`. All values are fractions, not
percentages.

`tally` counts the grades by question and `uncertainty` computes the intervals; this module combines them into one
record with its warnings.

Long: the record of scores.json belongs with the functions that fill it and the functions that write its warnings.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.benchmarks.judge_forms import JudgeForm, form_named, stored_form
from harness.core import codec
from harness.core.errors import StoreError, UsageError
from harness.core.files import read_record, write_atomically
from harness.core.hidden_limit import EarlyCut, HiddenLimit
from harness.core.inert import visible
from harness.core.nouns import are, count_noun, in_percent
from harness.core.records import Grade, GradeRules, NearMiss, Question
from harness.grading.second.judge_messages import prompt_of
from harness.grading.steps import EXHAUSTED, NEAR_MISSES
from harness.grading.verifier import GIVEN, LEFT_OPEN, failure, is_late
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import refuse_link
from harness.scoring.anomalies import Anomalies, Copies
from harness.scoring.call_measures import of_calls
from harness.scoring.engine_metrics import EngineMetrics, Speculation
from harness.scoring.judging import JudgeErrors, Judging
from harness.scoring.measures import (
    BudgetScore,
    TokenStatistics,
    accuracy_of_finished,
    budget_scores,
    measures,
    n_cut,
    token_statistics,
    uneven_parts,
)
from harness.scoring.observed import EndpointScore, Speed, ToolUse, Workload
from harness.scoring.stats import Estimate
from harness.scoring.tally import GradeKind, QuestionTally, Tallies, cluster_numbers, slim, tally
from harness.scoring.uncertainty import (
    MAX_LABEL_CHARS,
    accuracy_of,
    maj_at,
    pass_at,
    pass_hat,
    question_error,
    sampling_error,
    unequal_clusters,
)

MAX_SCORES_BYTES = 16 * 1024 * 1024
"""Maximum size of scores.json in bytes."""

MAX_TRUNCATED_SHARE = 0.01
"""A score warns if max_tokens truncated more than this fraction of its samples."""

MAX_GROUPS = 20
"""Largest number of values of a metadata field that a score is broken down by."""

MAX_BREAKDOWNS = 8
"""Largest number of metadata fields by which a score is broken down."""

MAX_GRADER_CHARS = 160
"""Maximum length of a grader's name in a warning, in characters: a verifier with its checksum, then a judge."""

MAX_NAMED_ERRORS = 5
"""Largest number of different verifier failures that a score lists, most frequent first."""


SCORES_SCHEMA = 2
"""Version of the format of `scores.json`; in the first version, an estimate and its intervals were separate fields."""


class Bounds(msgspec.Struct, frozen=True):
    """The range of possible accuracies, depending on the verdicts on the missing and undecided samples."""

    low: float
    """Accuracy if all missing and undecided samples were wrong, as a fraction."""
    high: float
    """Accuracy if all missing and undecided samples were correct, as a fraction."""


class GroupScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score on the questions that share a value of a metadata field."""

    accuracy: Estimate | None
    """Fraction correct; None if there are no samples."""
    n_questions: int
    """Number of questions with this value."""
    n_answered: int
    """Number of questions with at least one sample. The accuracy covers only these questions."""
    n_samples: int
    """Number of samples."""
    n_undecided: int
    """Number of samples that the grader could not decide."""


WarningKind = Literal[
    "journal", "continued", "answerers", "replies", "card", "regraded", "hidden limit", "left out", "stored since",
    "unequal", "breakdown", "cut", "missing", "verifier", "undecided", "near misses", "copies", "one sample", "graders",
    "file", "judge", "judge errors", "by hand", "audit", "points", "calls",
]  # fmt: skip
"""The topics of a score's warnings; `audit` and `breakdown` occur only in older scores."""


class ScoreWarning(msgspec.Struct, frozen=True):
    """A warning about a score."""

    kind: WarningKind
    """Warning topic."""
    text: str
    """Warning text."""


def warned(kind: WarningKind, sentences: Iterable[str | None]) -> list[ScoreWarning]:
    """A warning of this kind for each sentence that is not empty."""
    return [ScoreWarning(kind, sentence) for sentence in sentences if sentence]


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one benchmark. An `Estimate` is a mean over questions, with its two 95% intervals.

    Wide: it is the record of `scores.json`, and its fields are the columns of that file.
    """

    benchmark: str
    """Name of the benchmark."""
    accuracy: Estimate | None
    """Fraction correct, or fraction of points earned if a judge awards points; None if there are no samples."""
    sampling_error: float | None
    """Standard error if the same questions were sampled again; None if no question has at least two samples, or if many
    samples are duplicates. The intervals are not simple multiples of this standard error.
    """
    question_error: float | None
    """Standard error for new questions of the same kind, including sampling error; None if all questions are in one
    cluster.
    """
    n_questions: int
    """Number of questions covered by the score."""
    n_samples: int
    """Number of samples covered by the score."""
    n_missing: int
    """Number of planned samples that have no grade."""
    n_truncated: int | None
    """Number of samples truncated by max_tokens; None if another tool's file does not report truncation."""
    n_undecided: int
    """Number of samples that no rule could decide or whose grading ran out of time or memory. These samples count as
    wrong.
    """
    pass_at: dict[int, Estimate]
    """For each k, the probability that at least one of k samples is correct (pass@k)."""
    pass_hat: dict[int, Estimate] = {}
    """For each k, the probability that all k samples are correct (pass^k)."""
    maj_at: dict[int, Estimate]
    """For each k, the probability that the majority answer of k samples is correct (maj@k)."""
    mean_completion_tokens: float | None
    """Mean completion tokens per sample, over samples for which the server reported a count; None if there are no such
    samples.
    """
    bounds: Bounds
    """The accuracy if all missing and undecided samples were wrong, and the accuracy if all were correct."""
    partial: bool = False
    """Whether the score covers incomplete rounds, which biases the accuracy toward samples that finished first."""
    rounds: int | float
    """Number of samples per question covered by the score."""
    samples_per_question: int | float | None
    """Planned number of samples per question; None if no number was planned, or if an earlier run set a different
    number for each question.
    """
    n_clusters: int | None = None
    """Number of independent groups of questions (`cluster_of`); None if every question is a separate group."""
    sampling_error_bound: float | None = None
    """Upper bound on the sampling error, for scores whose `sampling_error` is None."""
    n_imputed: int = 0
    """Number of questions with only one sample, whose variance is estimated from the other questions."""
    n_correct: int = 0
    """Number of correct samples; if `right_from` is set, the number of samples with at least that many points."""
    n_no_answer: int = 0
    """Number of samples without an answer."""
    n_unextracted: int = 0
    """Number of samples whose text contains the correct answer but does not present it as the answer."""
    n_tokens_known: int = 0
    """Number of samples for which the server reported completion tokens."""
    undecided_share: float = 0.0
    """Fraction of samples that are undecided."""
    undecided_bounds: Bounds | None = None
    """Accuracy if all undecided samples were wrong (low; equal to the accuracy) or correct (high); None if no samples
    are undecided.
    """
    accuracy_finished: Estimate | None = None
    """Accuracy over the samples not truncated by max_tokens."""
    accuracy_from_reasoning: Estimate | None = None
    """Accuracy if the reasoning were searched for an answer whenever a reply has no final answer. It shows the effect
    of the token limit and is not a score; None if not requested.
    """
    n_overridden: int = 0
    """Number of verdicts corrected by a person."""
    accuracy_overridden: Estimate | None = None
    """Accuracy with the corrected verdicts, which no other field uses; None if no verdicts were corrected."""
    measures: dict[str, Estimate] = {}
    """Other metrics that the benchmark's authors report, by name (`harness.scoring.measures`)."""
    points_of: float | msgspec.UnsetType = msgspec.UNSET
    """Maximum points for an answer (the highest maximum if questions differ); absent unless a judge awards points. The
    accuracy is then the mean of the points, each as a fraction of its question's maximum.
    """
    right_from: float | msgspec.UnsetType = msgspec.UNSET
    """Minimum points for a sample to count as correct in `n_correct`, `pass_at`, `pass_hat` and `maj_at`. If absent, a
    sample must earn full credit to count as correct, and `pass_at` is empty.
    """
    budgets: dict[int, BudgetScore] = {}
    """Accuracy if replies longer than a token limit counted as wrong, by limit; empty if any sample's token count is
    unknown.
    """
    tokens: TokenStatistics | None = None
    """Token counts of all samples, of the correct ones, and of the others."""
    speed: Speed | None = None
    """Latency and throughput; None if no reply was streamed."""
    workload: Workload | None = None
    """Server load, in requests and tokens."""
    tool: ToolUse | msgspec.UnsetType = msgspec.UNSET
    """How the samples used the tool; absent if no tool was offered."""
    engine: EngineMetrics | msgspec.UnsetType = msgspec.UNSET
    """The engine's metrics over the whole run; absent if no server has a metrics page."""
    speculation: Speculation | msgspec.UnsetType = msgspec.UNSET
    """Tokens per speculative decoding step, as reported in the replies; absent if not reported."""
    endpoints: dict[str, EndpointScore] = {}
    """Score by endpoint URL; empty if there is only one endpoint."""
    breakdowns: dict[str, dict[str, GroupScore]] = {}
    """Score by metadata field, then by the field's value."""
    anomalies: Anomalies | None = None
    """Samples whose text appears to be broken."""
    hidden_limit: HiddenLimit | None = None
    """A limit inferred from reply lengths but not reported by the server; None if no such limit is suspected."""
    early_cut: EarlyCut | None = None
    """A limit below max_tokens at which the server truncates replies and reports the truncation; None if there is none.
    """
    copies: Copies | None = None
    """Samples with the same text. If there are many, `sampling_error` is None and the sampling intervals are upper
    bounds.
    """
    judge_errors: JudgeErrors | None = None
    """Information about the judge's errors; None if no judge was used."""
    judging: Judging | None = None
    """The judge used for this score, even if it decided no samples; None if no judge was used."""
    graders: tuple[str, ...] = ()
    """Names and versions of the graders, sorted."""
    verifier_errors: tuple[str, ...] = ()
    """Cases in which the benchmark's own verifier returned no verdict, one sentence each. The affected samples either
    are undecided or were graded by a judge.
    """
    near_misses: dict[NearMiss, int] = {}
    """Number of wrong answers by kind of near miss."""
    warnings: tuple[ScoreWarning, ...] = ()
    """Warnings to show with the score."""
    schema: int = SCORES_SCHEMA
    """Version of this format."""

    @classmethod
    def load(cls, folder: BenchmarkFolder) -> Score | None:
        """The benchmark's stored score; None before `harness score`.

        Raises `StoreError` if it is damaged, or if its format is from another version of the harness.
        """
        score = read_record(folder.scores, Score, MAX_SCORES_BYTES, what="a scores file", remedy=_REMEDY)
        if score is not None and score.schema != SCORES_SCHEMA:
            raise StoreError(f"{folder.scores} has schema {score.schema}, expected {SCORES_SCHEMA}. {_REMEDY}")
        return score

    @property
    def sentences(self) -> list[str]:
        """The texts of the warnings."""
        return [warning.text for warning in self.warnings]

    def save(self, folder: BenchmarkFolder) -> None:
        """Store the score as its benchmark's `scores.json`, replacing any earlier score. Raises `StoreError`."""
        # In someone else's folder, a link could redirect the write elsewhere.
        refuse_link(folder.scores)
        write_atomically(folder.scores, codec.pretty(self))


_REMEDY = "Run `harness score` again."
"""The end of an error message about a scores file."""


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
    present, fewest = [item for item in covered if item.n], min(item.n for item in covered)
    check_ks(questions[0].benchmark, ks, fewest)
    rules, form, most_points = questions[0].rules, _form_of(questions[0], tallies.kinds), _most_points(present)
    stated = columns.tokens[~np.isnan(columns.tokens)]
    clusters = cluster_numbers(covered)
    n_clusters = int(clusters.max()) + 1
    spread, error_of_questions = (sampling_error(present), question_error(present)) if present else (None, None)
    score = Score(
        benchmark=questions[0].benchmark,
        accuracy=accuracy_of(covered),
        sampling_error=spread and spread.error,
        question_error=error_of_questions,
        n_clusters=n_clusters if n_clusters < len(covered) else None,
        n_questions=len(covered),
        n_samples=sum(item.n for item in covered),
        n_missing=tallies.missing,
        n_truncated=n_cut(covered),
        **_undecided_fields(covered),
        **_over_k(covered, {*_powers_of_two(fewest), *ks}, rules, has_points=most_points is not None),
        accuracy_finished=accuracy_of_finished(covered),
        tokens=token_statistics(columns, reasoning_tokens, clusters),
        budgets=budget_scores(covered, columns),
        n_tokens_known=len(stated),
        mean_completion_tokens=_mean(stated) if len(stated) else None,
        bounds=_bounds(covered),
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
        breakdowns=_breakdowns(covered),
        early_cut=early_cut,
        copies=tallies.copies,
        measures=measures(covered, ks, form, rules.right_from) | of_calls(covered),
        points_of=most_points or msgspec.UNSET,
        right_from=(most_points and rules.right_from) or msgspec.UNSET,
    )
    left_out = f"{count_noun(tallies.n_left_out, 'unplanned grade')} not counted" if tallies.n_left_out else ""
    unequal = warned("unequal", [unequal_clusters(present), uneven_parts(present)])
    of_samples = (*warnings, *warned("left out", [left_out]), *unequal)
    own = _warnings(score, tallies, cut_by)
    return msgspec.structs.replace(score, warnings=(*of_samples, *own))


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
    every_k = [] if has_points and rules.right_from is None else sorted(ks)
    majorities = maj_at(items, [] if has_points or rules.grader == GIVEN else every_k)
    return {
        "pass_at": {k: pass_at(items, k).estimate for k in every_k},
        "pass_hat": {k: pass_hat(items, k).estimate for k in every_k},
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
        samples = count_noun(score.n_samples, "sample")
        yield ScoreWarning("cut", f"{score.n_truncated} of {samples} ({share:.1%}) were truncated by {cut_by}")
    missing = f"{count_noun(score.n_missing, 'sample')} {are(score.n_missing)} missing"
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
    if score.copies is not None and score.copies.many:
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
    yield ScoreWarning("undecided", f"{samples} {are(n)} undecided ({why}) and {counts} as wrong: {allowed}")


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
            # Runs of earlier versions name the original of a question's variant, which is no kind of question.
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
    powers = [1 << exponent for exponent in range(limit.bit_length())] if limit else []
    return powers if not powers or powers[-1] == limit else [*powers, limit]


def _mean(values: Sequence[float] | NDArray[np.float64]) -> float:
    return math.fsum(values) / len(values)
