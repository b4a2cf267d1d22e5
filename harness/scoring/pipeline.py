"""From the files of a run to its grades and scores. Runs in a process of its own, at any time, also beside the run."""

from __future__ import annotations

import contextlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from harness.core import codec
from harness.core.errors import StoreError, UsageError
from harness.core.files import write_atomically
from harness.core.inert import quoted
from harness.core.packed import Packed, Picked
from harness.core.reading import open_untrusted
from harness.core.records import Grade, Key, Question, Sample
from harness.grading.processes import pool
from harness.grading.verdict import stated
from harness.runs import (
    BenchmarkFolder,
    BenchmarkRecord,
    JournalReport,
    Manifest,
    RunFolder,
    grades,
    overrides,
    questions,
    read_samples,
)
from harness.runs.jsonl import write_lines
from harness.runs.keys import KeySet
from harness.runs.safe_open import refuse_link
from harness.scoring import by_endpoint
from harness.scoring.anomalies import Anomalies, anomalies
from harness.scoring.cut_text import accuracy_of_cut_text, cut, tokens_until
from harness.scoring.in_order import ById, basis, grade_journal
from harness.scoring.observed import Observed, Rows
from harness.scoring.score import Score, check_ks, intervals_of, score_benchmark
from harness.scoring.speed import Speed, speed
from harness.scoring.tally import tally
from harness.scoring.tokens import accuracy_of_first_right, budgets_of, first_right
from harness.scoring.workload import Workload, workload

MAX_NAMED = 3
"""Damaged lines or conflicting keys that a warning names; the rest are counted."""

MAX_LOG_LINE_BYTES = 64 * 1024

OnGraded = Callable[[str, int], None]
"""Called with the benchmark and the number of its samples graded so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """How to grade. workers: processes; deadline_s: seconds for one answer; fresh: grade all again.

    answer_from_reasoning: also say what the accuracy would be if the reasoning were searched where the final part gives
    no answer; the grades stay as they are. cut_text: also grade what replies had come to at smaller budgets,
    and say when the right answer first stood in them. ks: the k of pass@k, pass^k and maj@k beside the powers of two.
    salvaged: score samples, too, that went on after an interruption; they are graded in any case.
    """

    workers: int = 1
    deadline_s: float = pool.DEADLINE_SECONDS
    fresh: bool = False
    answer_from_reasoning: bool = False
    cut_text: bool = False
    ks: tuple[int, ...] = ()
    salvaged: bool = True

    def __post_init__(self) -> None:
        """Raises `UsageError`."""
        pool.check_deadline(self.deadline_s)
        if self.workers < 1:
            raise UsageError("at least one worker is needed", field="workers", value=self.workers)
        if below := [k for k in self.ks if k < 1]:
            raise UsageError("expected at least 1", field="k", value=below[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedBenchmark:
    """One benchmark of a run between grading and scoring.

    questions: those planned, in order. samples: planned a question; None: what is there is the plan. grades: in the
    order of questions and indices.
    warnings: what its journal gives reason to say. observed, rows: what is known of the samples of the grades beside
    them. failures: failed requests by endpoint, if there are several. speed: how fast the samples came, if streamed.
    workload: what they asked of the servers. anomalies: those whose text looks wrong.
    from_reasoning: the grades with answers taken from the reasoning where there is no other; None = not asked for.
    cut: by budget in tokens, the grades of the longer replies cut there; None = not asked for. first_right: with it,
    completion tokens up to where the right answer first stands, of the samples in which it does. ks: see `Grading`.
    salvaged: whether samples count that went on after an interruption; they are graded in any case.
    """

    folder: BenchmarkFolder
    questions: Sequence[Question]
    samples: int | None
    grades: Sequence[Grade]
    warnings: tuple[str, ...]
    observed: Observed = field(default_factory=Observed)
    rows: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    failures: Mapping[str, int] = field(default_factory=dict)
    speed: Speed | None = None
    workload: Workload | None = None
    anomalies: Anomalies | None = None
    from_reasoning: Sequence[Grade] | None = None
    cut: Mapping[int, Mapping[Key, Grade]] | None = None
    first_right: Mapping[Key, int] = field(default_factory=dict)
    ks: tuple[int, ...] = ()
    salvaged: bool = True

    @property
    def counts(self) -> Rows:
        """Places of the grades that the score is made of."""
        return np.arange(len(self.grades)) if self.salvaged else np.flatnonzero(~self.observed.salvaged(self.rows))

    def counted(self, grades: Sequence[Grade]) -> Sequence[Grade]:
        """Those of `grades`, which stand as the benchmark's do, that the score is made of."""
        return grades if self.salvaged else Picked(grades, array("q", self.counts.tobytes()))


def score_run(folder: RunFolder, grading: Grading, on_graded: OnGraded = lambda _name, _n: None) -> list[Score]:
    """Grade what is new, write `grades.jsonl` and `scores.json` of each benchmark, return the scores.

    Raises `StoreError` when a file of the run is missing or damaged.
    """
    return [publish(graded) for graded in grade_run(folder, grading, on_graded)]


def grade_run(
    folder: RunFolder, grading: Grading, on_graded: OnGraded = lambda _name, _n: None, *, only: str | None = None
) -> Iterator[GradedBenchmark]:
    """The benchmarks of a run, or `only` the one of that name, with all their grades; nothing is written.

    Raises as `score_run` does.
    """
    manifest = Manifest.load(folder)
    if not manifest.benchmarks:
        raise StoreError(f"{folder.path} holds no benchmark yet. Give `harness run` first.")
    for name, record in manifest.benchmarks.items():  # refused before anything is graded
        check_ks(name, grading.ks, record.plan.samples)
    for name, record in manifest.benchmarks.items():
        if only not in (None, name):
            continue
        yield _graded(folder, name, record, grading, on_graded)


def _graded(
    folder: RunFolder, name: str, record: BenchmarkRecord, grading: Grading, on_graded: OnGraded
) -> GradedBenchmark:
    from harness.benchmarks.catalogue import by_rules_of_card  # cards, which a file of outputs does without

    place = folder.benchmark(name)
    asked, by_card = by_rules_of_card(name, record.settings, questions.read_planned(place, record))
    by_id = ById(asked)
    found = grade_journal(
        place,
        by_id,
        workers=grading.workers,
        deadline_s=grading.deadline_s,
        fresh=grading.fresh,
        on_graded=partial(on_graded, name),
    )
    within = found.index < record.plan.samples
    planned = found.rows if within.all() else found.rows[within]
    counted = planned if grading.salvaged else planned[~found.observed.salvaged(planned)]
    from_reasoning = _from_reasoning(place, by_id, found.grades, grading) if grading.answer_from_reasoning else None
    return GradedBenchmark(
        folder=place,
        questions=asked,
        samples=record.plan.samples,
        grades=found.grades,
        warnings=(
            *_journal_warnings(place, found.report),
            *_salvage_warnings(found.observed, planned, counted=grading.salvaged),
            *by_endpoint.notes(found.observed, planned),
            *filter(None, [by_card]),
        ),
        observed=found.observed,
        rows=found.rows,
        failures=failed_requests(folder, name) if len(found.observed.endpoints) > 1 else {},
        speed=speed(found.observed, counted),
        workload=workload(found.observed, counted),
        anomalies=anomalies(found.observed.shown(counted)),
        from_reasoning=from_reasoning,
        cut=_cut(place, by_id, found.grades, grading) if grading.cut_text else None,
        first_right=_first_right(place, by_id, grading) if grading.cut_text else {},
        ks=grading.ks,
        salvaged=grading.salvaged,
    )


def _salvage_warnings(observed: Observed, rows: Rows, *, counted: bool) -> list[str]:
    """Warnings for a score with samples that went on after an interruption. rows: the planned samples. counted: such
    samples count towards the score."""
    n_salvaged = int(observed.salvaged(rows).sum())
    if not n_salvaged:
        return []
    n_near = int(observed.nearly(rows).sum())
    how = "over the same tokens" if not n_near else f"{n_near} of them over text that was turned into tokens anew"
    warning = f"{n_salvaged} of {len(rows)} samples went on after an interruption, {how}"
    if not counted:
        return [f"{warning}; they are left out"]
    return [f"{warning}; a score can leave them out"] if n_near else []


def grade_span(folder: RunFolder, benchmark: str, span: tuple[int, int], out: Path, grading: Grading) -> int:
    """The grades of one stretch of a benchmark's journal, as for `read_samples`, into the file `out`, in the order that
    a grading of the whole gives them. Returns how many there are. Raises as `score_run` does."""
    from harness.benchmarks.catalogue import by_rules_of_card

    place, record = folder.benchmark(benchmark), Manifest.load(folder).benchmarks[benchmark]
    asked, _ = by_rules_of_card(benchmark, record.settings, questions.read_planned(place, record))
    found = grade_journal(
        place,
        ById(asked),
        workers=grading.workers,
        deadline_s=grading.deadline_s,
        fresh=grading.fresh,
        on_graded=lambda _: None,
        span=span,
    )
    write_lines(out, found.grades)
    return len(found.grades)


def publish(graded: GradedBenchmark) -> Score:
    """Write the benchmark's `grades.jsonl` and `scores.json`; return its score. Raises `UsageError` for a k beyond the
    samples of a question, with the grades kept."""
    grades.write(graded.folder, graded.grades)
    score = score_of(graded)
    refuse_link(graded.folder.scores)
    write_atomically(graded.folder.scores, codec.pretty(score))
    return score


def score_of(graded: GradedBenchmark) -> Score:
    """Its score; nothing is written. Raises `UsageError` for a k beyond the samples of a question."""
    counted_grades = graded.counted(graded.grades)
    rows = graded.rows if graded.salvaged else graded.rows[graded.counts]
    thought = graded.observed.reasoning_tokens
    score = score_benchmark(
        graded.questions,
        counted_grades,
        graded.samples,
        ks=graded.ks,
        endpoints=by_endpoint.scores(graded.observed, rows, counted_grades, graded.failures, graded.samples),
        speed=graded.speed,
        workload=graded.workload,
        anomalies=graded.anomalies,
        reasoning_tokens=thought.of(rows) if thought.stated else None,
        warnings=graded.warnings,
    )
    if graded.from_reasoning is not None:
        other = score_benchmark(graded.questions, graded.counted(graded.from_reasoning), graded.samples)
        score = msgspec.structs.replace(
            score, accuracy_from_reasoning=other.accuracy, accuracy_from_reasoning_intervals=intervals_of(other)
        )
    if graded.cut is not None:
        counted = tally(graded.questions, counted_grades, graded.samples).questions
        budgets = []
        for one in score.budgets:
            cut_text = accuracy_of_cut_text(counted, graded.cut.get(one.budget, {}))
            stood = accuracy_of_first_right(counted, graded.first_right, one.budget)
            budgets.append(
                msgspec.structs.replace(
                    one,
                    accuracy_of_cut_text=cut_text[0],
                    accuracy_of_cut_text_intervals=cut_text[1],
                    accuracy_of_first_right=stood[0],
                    accuracy_of_first_right_intervals=stood[1],
                )
            )
        score = msgspec.structs.replace(
            score, budgets=tuple(budgets), first_right=first_right(counted, graded.first_right)
        )
    return _beside_overrides(graded, score)


def _beside_overrides(graded: GradedBenchmark, score: Score) -> Score:
    """The same score, with what it would be if verdicts corrected by hand counted."""
    in_force = overrides.in_force(overrides.read(graded.folder))
    if not in_force:
        return score
    counted = graded.counted(graded.grades)
    corrected = Packed(Grade, overrides.apply(counted, in_force))
    n = sum(ours.verdict != theirs.verdict for ours, theirs in zip(counted, corrected, strict=True))
    if n == 0:
        return score
    other = score_benchmark(graded.questions, corrected, graded.samples)
    share = "unknown" if other.accuracy is None else f"{100 * other.accuracy:.2f} %"
    said = (
        f"{n} verdict{'' if n == 1 else 's'} corrected by hand (overrides.jsonl); the accuracy would be {share} with "
        f"{'it' if n == 1 else 'them'}, this score is without"
    )
    return msgspec.structs.replace(
        score,
        accuracy_overridden=other.accuracy,
        accuracy_overridden_intervals=intervals_of(other),
        n_overridden=n,
        warnings=(*score.warnings, said),
    )


def _from_reasoning(folder: BenchmarkFolder, by_id: ById, found: Sequence[Grade], grading: Grading) -> Sequence[Grade]:
    """`found`, with the samples that gave no answer graded by what their reasoning ends with."""
    silent = KeySet(grade.key for grade in found if grade.verdict == "no_answer")
    regraded = pool.grade_all(
        by_id,
        read_samples(folder, keys=silent),
        workers=grading.workers,
        deadline_s=grading.deadline_s,
        answer_from_reasoning=True,
    )
    by_key = {grade.key: grade for grade in regraded}
    return Packed(Grade, (by_key.get(grade.key, grade) for grade in found))


def _cut(folder: BenchmarkFolder, by_id: ById, found: Sequence[Grade], grading: Grading) -> dict[int, dict[Key, Grade]]:
    """By budget, the grades of the replies that are longer, cut there."""
    graded = {}
    tokens = np.array([g.completion_tokens for g in found if g.completion_tokens is not None], dtype=float)
    for budget in budgets_of(tokens):
        keys = KeySet(g.key for g in found if (g.completion_tokens or 0) > budget)
        short = (one for sample in read_samples(folder, keys=keys) if (one := cut(sample, budget)) is not None)
        regraded = pool.grade_all(by_id, short, workers=grading.workers, deadline_s=grading.deadline_s)
        graded[budget] = {grade.key: grade for grade in regraded}
    return graded


def _first_right(folder: BenchmarkFolder, by_id: ById, grading: Grading) -> dict[Key, int]:
    """Completion tokens up to where a right answer first stands in a reply, of those in which one does."""
    places: dict[Key, list[int]] = {}

    def on_the_way() -> Iterator[tuple[Key, Question, list[str]]]:
        for sample in read_samples(folder):
            if sample.question_id in by_id and sample.usage.completion_tokens is not None:
                question = by_id[sample.question_id]
                found = stated(question, sample)
                places[sample.key] = [tokens_until(sample, one.end) or 0 for one in found]
                yield sample.key, question, [one.answer for one in found]

    judged = pool.first_right(on_the_way(), workers=grading.workers, deadline_s=grading.deadline_s)
    return {key: places.pop(key)[place] for key, place in judged if place is not None}


def failed_requests(folder: RunFolder, benchmark: str) -> dict[str, int]:
    """Failed requests of a benchmark by the endpoint's base URL, as the run's log has them."""
    counts: Counter[str] = Counter()
    for path in folder.logs():
        with contextlib.suppress(OSError), open_untrusted(path) as log:
            for line in log:
                if b'"request_failed"' in line and len(line) <= MAX_LOG_LINE_BYTES:
                    with contextlib.suppress(codec.DecodeError):
                        failure = codec.decode(line, _FailedRequest)
                        counts[failure.endpoint] += failure.event == "request_failed" and failure.task[0] == benchmark
    return +counts


class _FailedRequest(msgspec.Struct, frozen=True):
    """A line of `log.jsonl`, as far as it matters here."""

    event: str
    endpoint: str
    task: tuple[str, str, int]


def grade_outputs(
    pairs: Iterable[tuple[Question, Sample]],
    folder: RunFolder,
    grading: Grading,
    on_graded: OnGraded = lambda _name, _n: None,
) -> list[GradedBenchmark]:
    """The benchmarks of another tool's outputs, by name, gone through once, with grades in their order.

    folder: where their files would stand; nothing is written. What is there is the plan: questions may have unequal
    numbers of samples.
    """
    asked: dict[str, dict[str, Question]] = {}
    by_id: dict[str, Question] = {}

    def samples() -> Iterator[Sample]:
        for question, sample in pairs:
            by_id[question.question_id] = asked.setdefault(question.benchmark, {})[question.question_id] = question
            yield sample

    found: dict[str, list[Grade]] = {}
    bases: dict[str, str] = {}
    for grade in pool.grade_all(by_id, samples(), workers=grading.workers, deadline_s=grading.deadline_s):
        if grade.question_id not in bases:
            bases[grade.question_id] = basis(by_id[grade.question_id])
        of_it = found.setdefault(grade.benchmark, [])
        of_it.append(msgspec.structs.replace(grade, basis=bases[grade.question_id]))
        on_graded(grade.benchmark, len(of_it))
    return [
        GradedBenchmark(
            folder=folder.benchmark(name),
            questions=list(questions.values()),
            samples=None,
            grades=found[name],
            warnings=(),
            ks=grading.ks,
        )
        for name, questions in sorted(asked.items())
    ]


def _journal_warnings(folder: BenchmarkFolder, report: JournalReport) -> list[str]:
    found = []
    if report.damaged:
        named = ", ".join(f"line {d.number} ({d.reason})" for d in report.damaged[:MAX_NAMED])
        more = f" and {len(report.damaged) - MAX_NAMED} more" if len(report.damaged) > MAX_NAMED else ""
        found.append(
            f"{folder.samples.name}: damaged and not counted: {named}{more}; `harness run` asks for them again"
        )
    if report.n_duplicates:
        found.append(f"{report.n_duplicates} repeated records of a key left out; the first counts")
    if report.conflicts:
        named = ", ".join(f"{quoted(k.question_id)} #{k.sample_index}" for k in report.conflicts[:MAX_NAMED])
        found.append(f"{len(report.conflicts)} keys have records with different texts; the first counts: {named}")
    return [*found, *report.warnings]
