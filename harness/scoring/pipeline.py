"""Computes grades and scores from the files of a run. It may run in a separate process, at any time, even during the
run.

    samples.jsonl ─ grade_journal ─▶ GradedBenchmark ─ score_of ─▶ Score ─ publish ─▶ grades.jsonl, scores.json

The accuracy with answers from the reasoning needs a second grading: another pass over the journal that decodes only the
samples whose grades may change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np

from harness.core.contradictions import CUT_EARLY, ENDS_AT_LIMIT
from harness.core.errors import InUse, StoreError
from harness.core.files import disk_errors, open_untrusted
from harness.core.hidden_limit import Cuts, HiddenLimit
from harness.core.records import Grade, Question
from harness.core.sanitize import quoted
from harness.core.time_limits import limits_in
from harness.grading.processes import pool
from harness.presets.grading import GradingOptions
from harness.runs import (
    BenchmarkFolder,
    BenchmarkRecord,
    Manifest,
    RunFolder,
    grades,
    overrides,
    questions,
    read_samples,
)
from harness.runs.engine_pages import NO_PAGE, read_engine_pages
from harness.runs.line_file import hold_lock
from harness.runs.missing import KeySet, n_planned
from harness.runs.recorded_settings import max_tokens_sent
from harness.scoring.anomalies import anomalies, reply_doubts
from harness.scoring.benchmark_score import check_ks, score_benchmark, with_errors, with_verdicts_by_hand
from harness.scoring.call_measures import UNREAD_CALLS
from harness.scoring.client_metrics import MAX_LOST_SHARE, endpoint_scores, speed, tool_use, workload
from harness.scoring.engine_metrics import engine_metrics, speculation
from harness.scoring.goodput import goodput, late_warning, retry_warning
from harness.scoring.journal_grades import ById, grade_journal, journal_warnings
from harness.scoring.judging import JudgeErrors, Judging
from harness.scoring.sample_columns import (
    Observed,
    Rows,
    answerer_warnings,
    hidden_limit,
    retokenized_warning,
    takeover_warning,
)
from harness.scoring.score import Score, ScoreWarning, warned
from harness.scoring.tally import QuestionTally, tally
from harness.scoring.uncertainty import accuracy_of
from harness.tools.table import name_in
from server_launchers.engines.table import calls_remedy

OnGraded = Callable[[str, int], None]
"""A callback that receives the benchmark's name and the number of its samples graded so far."""


@dataclass(frozen=True, kw_only=True)
class GradedBenchmark:
    """One benchmark of a run between grading and scoring.

    questions: the planned questions, in order. grades: in the order of questions and sample indices. warnings: about
    the journal. observed, rows: facts about the samples, and the row of each grade. counted_rows: the rows of the
    planned samples. from_reasoning: the grades with answers taken from the reasoning if there is
    no other answer; None = the option was not given. cuts: what truncated samples. hidden_limit, judge_errors, judging:
    as in `Score`. judged_failures: verifier failures on samples that a judge decided instead: rule → number of samples.
    """

    folder: BenchmarkFolder
    record: BenchmarkRecord
    grading: GradingOptions
    questions: Sequence[Question]
    grades: Sequence[Grade]
    warnings: tuple[ScoreWarning, ...]
    observed: Observed
    rows: Rows
    counted_rows: Rows
    cuts: Cuts = field(default_factory=Cuts)
    hidden_limit: HiddenLimit | None = None
    from_reasoning: Sequence[Grade] | None = None
    judge_errors: JudgeErrors | None = None
    judging: Judging | None = None
    judged_failures: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def tallied(self) -> Sequence[QuestionTally]:
        """The questions with the grades that the score counts."""
        return tally(self.questions, self.grades, self.record.planned).questions


def score_run(folder: RunFolder, grading: GradingOptions, on_graded: OnGraded = lambda _name, _n: None) -> list[Score]:
    """Grade new samples, write each benchmark's `grades.jsonl` and `scores.json`, and return the scores.

    Raises `StoreError` when a file of the run is missing or damaged.
    """
    return [publish(graded) for graded in grade_run(folder, grading, on_graded)]


def grade_run(
    folder: RunFolder, grading: GradingOptions, on_graded: OnGraded = lambda _name, _n: None, *, only: str | None = None
) -> Iterator[GradedBenchmark]:
    """The benchmarks of a run, or only the benchmark named `only`, with all their grades; no score is written.

    All benchmarks are validated by this call, before the iterator grades the first one. Raises `StoreError` for a
    missing or damaged file of the run, and `UsageError` for a k larger than the number of samples or for an untrusted
    or broken verifier.
    """
    manifest = Manifest.load(folder)
    if not manifest.benchmarks:
        raise StoreError(f"{folder.path} contains no benchmark yet. Run `harness run` first.")
    for name, record in manifest.benchmarks.items():
        check_ks(name, grading.k, math.floor(record.plan.samples))
    records = {name: record for name, record in manifest.benchmarks.items() if only in (None, name)}
    planned = {name: _planned_questions(folder.benchmark(name), record) for name, record in records.items()}
    for name in records:
        overrides.read(folder.benchmark(name))
    if only is None:  # the graders of a single benchmark are checked before its first grade
        pool.grader_names(chain.from_iterable(questions for questions, _ in planned.values()), grading.sandbox)
    return (_grade_benchmark(folder, name, records[name], *planned.pop(name), grading, on_graded) for name in records)


def _grade_benchmark(
    folder: RunFolder,
    name: str,
    record: BenchmarkRecord,
    planned: Sequence[Question],
    by_card: str | None,
    grading: GradingOptions,
    on_graded: OnGraded,
) -> GradedBenchmark:
    """Grade one benchmark of a run and gather everything that its score needs. planned, by_card:
    `_planned_questions`.
    """
    files = folder.benchmark(name)
    by_id = ById(planned)
    journal = grade_journal(files, by_id, grading, partial(on_graded, name), tool=name_in(record.identity))
    most = np.array([n_planned(question.question_id, record.plan.samples) for question in planned])
    within = journal.index < most[journal.question]
    counted = journal.rows if within.all() else journal.rows[within]
    cuts = journal.observed.cuts(counted, partial(max_tokens_sent, record))
    limit = hidden_limit(journal.observed, counted)
    # These have separate warnings.
    early = cuts.early_cut(len(counted))
    told = [kind for kind, shown in ((CUT_EARLY, early), (ENDS_AT_LIMIT, limit)) if shown is not None]
    from_reasoning = _from_reasoning(files, by_id, journal.grades, grading) if grading.answer_from_reasoning else None
    return GradedBenchmark(
        folder=files,
        record=record,
        grading=grading,
        questions=planned,
        grades=journal.grades,
        warnings=(
            *warned("journal", journal_warnings(files, journal.report)),
            *warned("continued", [retokenized_warning(journal.observed, counted)]),
            *warned("continued", ["" if record.imported else takeover_warning(journal.observed, counted)]),
            *warned("answerers", answerer_warnings(journal.observed)),
            *warned("replies", reply_doubts(folder, told)),
            *warned("card", [by_card]),
            *warned("file", record.reading_warnings),
            *warned("regraded", journal.changes),
        ),
        observed=journal.observed,
        rows=journal.rows,
        counted_rows=counted,
        cuts=cuts,
        hidden_limit=limit,
        from_reasoning=from_reasoning,
    )


def _planned_questions(folder: BenchmarkFolder, record: BenchmarkRecord) -> tuple[Sequence[Question], str | None]:
    """The questions of a run with their card's current rules, and a warning if the run started with other rules.

    Questions of another tool's outputs keep the rules with which the file was read, because their benchmark's name may
    match a card only by chance.
    """
    planned = questions.read_planned(folder, record)
    if record.imported:
        return planned, None
    # Imported late: cards are slow to import, and files of outputs need none.
    from harness.benchmarks.catalog import apply_card_rules

    return apply_card_rules(folder.name, record.settings, planned)


def grade_span(folder: RunFolder, benchmark: str, span: tuple[int, int], out: Path, grading: GradingOptions) -> int:
    """Grade part of a benchmark's journal and write the grades to the file `out`; return their number.

    span: the bytes [start, stop) of the journal file. The grades are sorted by question and sample index. Raises
    `StoreError` if a file of the run is missing or damaged.
    """
    files, record = folder.benchmark(benchmark), Manifest.load(folder).benchmarks[benchmark]
    planned, _ = _planned_questions(files, record)
    journal = grade_journal(files, ById(planned), grading, lambda _: None, span)
    grades.write_file(out, journal.grades)
    return len(journal.grades)


def publish(graded: GradedBenchmark) -> Score:
    """Write the benchmark's `grades.jsonl` and `scores.json`; return its score.

    Raises `UsageError` for a k larger than the number of samples; the grades are written even then. Raises `InUse` if
    the run has since been replaced by other outputs.
    """
    run, name = RunFolder(graded.folder.path.parent), graded.folder.name
    if graded.record.imported and Manifest.load(run).benchmarks.get(name) != graded.record:
        raise InUse(f"{run.path} was replaced by other outputs during grading, so this score is not stored.")
    # Two concurrent scorings write their files one after the other.
    path = graded.folder.questions
    with disk_errors(path), open_untrusted(path) as file, hold_lock(file.fileno()):
        # The grades are written first: they took the time, and they are valid even if the score is rejected.
        grades.write(graded.folder, graded.grades)
        score = score_of(graded)
        score.save(graded.folder)
    return score


NO_LIMITS = "the limits are not checked, because no reply has the times that they need"
"""The warning of a score with limits and without such times."""


def score_of(graded: GradedBenchmark) -> Score:
    """The benchmark's score; nothing is written. Raises `UsageError` for a k larger than the number of samples."""
    grading, observed, rows = graded.grading, graded.observed, graded.rows
    thought, limit = observed.columns["reasoning_tokens"], graded.hidden_limit
    score = score_benchmark(
        graded.questions,
        graded.grades,
        graded.record.planned,
        ks=grading.k,
        early_cut=graded.cuts.early_cut(len(graded.counted_rows)),
        cut_by=graded.cuts.limits_and_remedies[0],
        reasoning_tokens=thought.numbers(rows) if thought.has_numbers else None,
        warnings=(*graded.warnings, *warned("hidden limit", [] if limit is None else [limit.sentence])),
    )
    model, pages = str(graded.record.identity.get("model")), [*read_engine_pages(RunFolder(graded.folder.path.parent))]
    used, metrics = tool_use(observed, graded.counted_rows), engine_metrics(pages, model)
    spec_tokens, spec_steps = observed.columns["spec_tokens"], observed.columns["spec_steps"]
    acceptance, with_reasoning = None, None
    if spec_steps.has_numbers:
        replies = [grade.question_id for grade in graded.grades]
        acceptance = speculation(spec_tokens.numbers(rows), spec_steps.numbers(rows), replies)
    if graded.from_reasoning is not None:
        with_reasoning = accuracy_of(tally(graded.questions, graded.from_reasoning, graded.record.planned).questions)
    good, n_retried = None, 0
    if grading.limits:
        n_retried = (observed.columns["attempts"].numbers(rows) > 1).sum()
        right = np.array([grade.counted for grade in graded.grades])
        good = goodput(observed, rows, right, limits_in(grading.limits))
    # The rest adds fields to the score: facts about the samples, other accuracies, corrections, the audit.
    score = msgspec.structs.replace(
        score,
        hidden_limit=limit,
        speed=speed(observed, graded.counted_rows),
        goodput=good or msgspec.UNSET,
        workload=workload(observed, graded.counted_rows),
        anomalies=anomalies(observed.sign_flags(graded.counted_rows)),
        # Rows of a file have no endpoints.
        endpoints={} if graded.record.imported else endpoint_scores(observed, rows, graded.grades),
        judge_errors=graded.judge_errors,
        judging=graded.judging,
        tool=used or msgspec.UNSET,
        engine=metrics if metrics and any(reading.page.why != NO_PAGE for reading in pages) else msgspec.UNSET,
        speculation=acceptance or msgspec.UNSET,
        accuracy_from_reasoning=with_reasoning,
        warnings=(
            *score.warnings,
            *warned("limits", [NO_LIMITS if grading.limits and good is None else ""]),
            *warned("rate", [late_warning(observed.columns["late"].numbers(rows))]),
            *warned("retries", [retry_warning(int(n_retried), len(rows))]),
            *warned("calls", [_unread(score, model, graded.grades) if used is None else used.warning(model)]),
        ),
    )
    score, by_hand = with_errors(score, graded.judged_failures), overrides.read(graded.folder)
    return with_verdicts_by_hand(score, graded.tallied if by_hand else (), by_hand)


def _unread(score: Score, model: str, grades: Iterable[Grade]) -> str:
    """The warning that the server did not parse calls in answers; empty if few replies contain such calls."""
    lost = score.measures.get(UNREAD_CALLS)
    if lost is None or lost.value <= MAX_LOST_SHARE:
        return ""
    texts = (grade.extracted or "" for grade in grades if "unread_call" in (grade.call_signs or ()))
    # A list of calls is that of a reply with further calls.
    mark = next((quoted(text.partition(": ")[2]) for text in texts if not text.startswith("[")), "")
    such = f" (such as {mark})" if mark else ""
    return (
        f"{lost.value:.1%} of the replies contain a call as plain text{such} and count as wrong: "
        f"{calls_remedy(model)}; to list them, run `harness show RUN --why unread_call`"
    )


def _from_reasoning(
    folder: BenchmarkFolder, by_id: ById, every_grade: Sequence[Grade], grading: GradingOptions
) -> Sequence[Grade]:
    """`every_grade`, but with samples without an answer regraded by the end of their reasoning."""
    silent = KeySet(grade.key for grade in every_grade if grade.verdict == "no_answer")
    regraded = pool.grade_all(
        by_id,
        read_samples(folder, keys=silent),
        workers=grading.n_workers,
        deadline_s=grading.deadline,
        answer_from_reasoning=True,
        sandbox=grading.sandbox,
    )
    by_key = {grade.key: grade for grade in regraded}
    anew = ((grade, by_key.get(grade.key, grade)) for grade in every_grade)
    return [msgspec.structs.replace(new, reply_checksum=old.reply_checksum) for old, new in anew]
