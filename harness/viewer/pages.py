"""The content of each page of the viewer, as values that become its JSON."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import open_untrusted, read_at
from harness.core.inert import safe_name
from harness.core.records import Grade, Key, Question, Sample, Timing, Usage
from harness.grading.elsewhere import shown_references
from harness.runs import questions as question_file
from harness.runs.layout import RunFolder
from harness.runs.overrides import Override
from harness.scoring import Score
from harness.scoring.score import accuracy_cell
from harness.scoring.stats import Interval
from harness.viewer import auditing
from harness.viewer.beside import PublishedBeside
from harness.viewer.library import ByHand, Library, OpenBenchmark, OpenRun
from harness.viewer.request import curl
from harness.viewer.rows import (
    MAX_TITLE_CHARS,
    ListedSample,
    QuestionRow,
    Vote,
    bare_text,
    question_rows,
    sample_row,
    sample_rows,
    votes,
)

MAX_SHOWN_CHARS = 400_000
"""Longest text of a sample or question that is shown whole; of longer ones the middle is in the raw text only."""
MAX_MESSAGES = 200
"""Largest number of messages before the last one on a question's page."""
MAX_FIELD_CHARS = 2000
"""Longest value of metadata, or reference, that is shown; longer ones are cut."""


PARTS = {"question": "txt", "text": "txt", "reasoning": "txt", "record": "json"}
"""Part of a sample → the suffix of its downloaded file."""
REPORT = "report.html"
"""Name of a report in a run's folder."""

MAX_LOG_BYTES = 200_000
"""Largest part of a run's log that its page shows: its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTable:
    """A table of words: a row has one cell for each column. notes: lines below it. folded: shown when it is clicked."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The settings and circumstances of a run.

    tables: settings by benchmark; then time, tokens, cost and servers; failed requests; checksums, folded. warnings:
    those in the run's log. commands: command lines that make the run again.
    """

    tables: Sequence[ShownTable]
    warnings: Sequence[str]
    commands: Sequence[str]


ReadFacts = Callable[[RunFolder], RunFacts]
"""Reads the facts of a run. Raises `StoreError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The line of one benchmark in the overview of runs. in_words: the accuracy as `harness score` prints it. n_stored:
    samples in the journal. n_planned: samples of each question. modified: Unix time of the last sample."""

    benchmark: str
    accuracy: float | None
    in_words: str
    sampling_interval: Interval | None
    question_interval: Interval | None
    n_questions: int | None
    n_samples: int | None
    n_stored: int
    n_planned: int
    n_truncated: int | None
    mean_tokens: float | None
    modified: float | None
    by_hand: ByHand | None
    problems: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run in the overview. problem: why it cannot be read, else empty."""

    run: str
    model: str
    created: str
    problem: str
    benchmarks: Sequence[Standing]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkPage:
    """The questions of one benchmark.

    reported_by: every source that reports a score of the run's model, with its number; verdict: whether the run agrees
    with them. Both empty where nothing is published. rubric: the user's rubric by which a
    judge decided samples; empty without one.
    """

    standing: Standing
    reported_by: str
    verdict: str
    questions: Sequence[QuestionRow]
    warnings: Sequence[str]
    rubric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A text as it is sent to the page. text: without its middle if it is very long. omitted: number of characters left
    out. cut: the position in `text` where they are missing. answer: (start, end) of the answer in `text`. Positions
    count UTF-16 units, as JavaScript does.
    """

    text: str
    omitted: int
    cut: int | None
    answer: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownQuestion:
    """A question for a page.

    text: the last message, or the raw prompt. before: role and text of the messages before it (examples, a system
    prompt); n_before: their number.
    """

    text: Shown
    before: Sequence[tuple[str, Shown]]
    n_before: int
    kind: str
    references: Sequence[str]
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPage:
    """One question with all its samples. title: the beginning of the question as its data have it. own_id: whether the
    data gave its id."""

    title: str
    own_id: bool
    question: ShownQuestion
    samples: Sequence[ListedSample]
    votes: Sequence[Vote]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePage:
    """One sample. history: all overrides of its verdict."""

    row: ListedSample
    text: Shown | None
    reasoning: Shown | None
    finish_reason: str
    usage: Usage
    timing: Timing
    endpoint: str
    server_model: str | None
    seed: int | None
    attempts: int
    grade: Grade | None
    history: Sequence[Override]
    curl: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """One run. prompts: benchmark → its first question as the model got it, which shows the prompt. log: the last lines
    of the run's log; log_omitted: bytes before them. report: whether there is one in the run's folder."""

    facts: RunFacts
    prompts: dict[str, ShownQuestion]
    log: str
    log_omitted: int
    report: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """The next sample of an audit, without its verdict.

    n_drawn: samples of the audit. n_left: those that are open; if there are none, the fields of the sample are None.
    older: a sentence if some of them were judged before the judge's rubric was used, else empty. rubric: the user's
    rubric by which a judge decided samples; empty without one. result: the outcome of the audit in a sentence; empty
    while samples are left, because it would tell the person how far they differ from the grader.
    """

    n_drawn: int
    n_left: int
    older: str
    rubric: str
    question_id: str | None
    sample: int | None
    question: ShownQuestion | None
    answer: str | None
    text: Shown | None
    result: str


def overview(library: Library) -> list[RunLine]:
    """All runs, the newest first. Reads scores, manifests; samples and grades only where a verdict was overridden."""
    library.refresh()
    lines = [_run_line(run) for _, run in sorted(library.runs.items())]
    return sorted(lines, key=lambda line: line.created, reverse=True)


def _run_line(run: OpenRun) -> RunLine:
    """The line of a run on the first page."""
    run.refresh()
    manifest = run.manifest
    return RunLine(
        run=run.label,
        model="" if manifest is None else manifest.model,
        created="" if manifest is None else manifest.created,
        problem=run.problem,
        benchmarks=[standing(benchmark) for benchmark in run.benchmarks.values()],
    )


def standing(benchmark: OpenBenchmark) -> Standing:
    """The line of a benchmark in the overview. Verdicts corrected by hand give a second accuracy."""
    benchmark.glance()
    score: Score | None = benchmark.score
    accuracy = None if score is None else score.accuracy
    if benchmark.overrides:
        benchmark.refresh()
    return Standing(
        benchmark=benchmark.name,
        accuracy=accuracy and accuracy.value,
        in_words="" if score is None or accuracy is None else accuracy_cell(score, " %"),
        sampling_interval=accuracy and accuracy.sampling,
        question_interval=accuracy and accuracy.question,
        n_questions=None if score is None else score.n_questions,
        n_samples=None if score is None else score.n_samples,
        n_stored=benchmark.n_stored,
        n_planned=benchmark.record.plan.samples,
        n_truncated=None if score is None else score.n_truncated,
        mean_tokens=None if score is None else score.mean_completion_tokens,
        modified=benchmark.modified,
        by_hand=benchmark.by_hand(),
        problems=benchmark.problems,
    )


def benchmark_page(benchmark: OpenBenchmark, published: PublishedBeside) -> BenchmarkPage:
    """Return the page of a benchmark: its questions, and the published scores of the run's model."""
    line = standing(benchmark)
    warnings = () if benchmark.score is None else benchmark.score.warnings
    return BenchmarkPage(
        standing=line,
        reported_by=published.reported_by,
        verdict=published.verdict,
        questions=[replace(row, metadata=_fields(row.metadata)) for row in question_rows(benchmark)],
        # The score's warning on verdicts by hand is as old as the score; the line has the one of now.
        warnings=[warning.text for warning in warnings if warning.kind != "by hand"],
        rubric=_rubric(benchmark),
    )


def question_page(benchmark: OpenBenchmark, question_id: str) -> QuestionPage:
    """Return the page of a question, with its samples. Raises `UsageError` for an unknown id."""
    question = benchmark.question(question_id)
    rows = [
        replace(row, reply_bytes=benchmark.offsets.reply_bytes(Key(question_id, row.index)))
        for row in sample_rows(benchmark, question_id)
    ]
    return QuestionPage(
        title=bare_text(benchmark, question)[:MAX_TITLE_CHARS],
        own_id=question.has_own_id,
        question=shown_question(question),
        samples=rows,
        votes=votes(rows),
    )


def shown_question(question: Question) -> ShownQuestion:
    """Return the question for a page, with all its texts cut to bounds."""
    earlier = question.messages[:-1]
    limit = MAX_SHOWN_CHARS // max(1, min(len(earlier), MAX_MESSAGES))
    return ShownQuestion(
        text=show(question.messages[-1].content if question.messages else question.prompt, None),
        before=[(message.role, show(message.content, None, limit)) for message in earlier[-MAX_MESSAGES:]],
        n_before=len(earlier),
        kind=question.kind,
        references=[_field(reference) for reference in shown_references(question)],
        metadata=_fields(question.metadata),
    )


def _fields(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {
        _field(name): _field(value if isinstance(value, str) else codec.encode(value).decode())
        for name, value in metadata.items()
    }


def _field(text: str) -> str:
    return text if len(text) <= MAX_FIELD_CHARS else text[:MAX_FIELD_CHARS] + "…"


def sample_page(benchmark: OpenBenchmark, key: Key) -> SamplePage:
    """Return the sample with everything known about it. Raises `UsageError` and `StoreError`."""
    question = benchmark.question(key.question_id)
    sample: Sample = benchmark.offsets.read(key)
    grade = benchmark.grade(key)
    span = None if grade is None else grade.span
    return SamplePage(
        row=sample_row(benchmark, key),
        text=None if sample.text is None else show(sample.text, span),
        reasoning=show(sample.reasoning, None) if sample.reasoning else None,
        finish_reason=sample.finish_reason,
        usage=sample.usage,
        timing=sample.timing,
        endpoint=sample.endpoint,
        server_model=sample.server_model,
        seed=sample.seed,
        attempts=sample.attempts,
        grade=grade,
        history=[override for override in benchmark.override_history() if override.key == key],
        curl=curl(benchmark.record, question, sample),
    )


def run_page(run: OpenRun, facts: RunFacts) -> RunPage:
    """Return the run's page. The prompt of each benchmark is its first question, from the run's file of questions."""
    run.refresh()
    prompts = {}
    for name, benchmark in run.benchmarks.items():
        # If the file of questions is damaged, only the prompt is left out here; the benchmark's page names the damage.
        with contextlib.suppress(StoreError):
            for first in islice(question_file.read_planned(benchmark.folder, benchmark.record), 1):
                prompts[name] = shown_question(first)
    log, omitted = _end_of_log(run.folder)
    report = (run.folder.path / REPORT).is_file()
    return RunPage(facts=facts, prompts=prompts, log=log, log_omitted=omitted, report=report)


def _end_of_log(folder: RunFolder) -> tuple[str, int]:
    """(the last whole lines of the run's log, bytes before them); empty if there is no log that can be read."""
    try:
        with open_untrusted(folder.log) as file:
            size = file.seek(0, os.SEEK_END)
            begin = max(0, size - MAX_LOG_BYTES)
            data = read_at(file.fileno(), size - begin, begin)
    except OSError:
        return "", 0
    # The first line may have lost its beginning.
    cut = data.find(b"\n") + 1 if begin else 0
    return data[cut:].decode("utf-8", "replace"), begin + cut


def file_name(words: Mapping[str, str], part: str) -> str:
    """The name of a downloaded part of a sample: benchmark, question, sample and part, with plain characters only.

    words: names and values in the query of the address.
    """
    part = part if part in PARTS else "text"
    number = [] if part == "question" else [f"s{words['sample']}"]
    return f"{safe_name('-'.join([words['benchmark'], words['question'], *number, part]))}.{PARTS[part]}"


def audit_page(benchmark: OpenBenchmark) -> AuditPage:
    """Return the next sample that a person shall judge. Raises `UsageError` and `StoreError`."""
    keys = auditing.draw_keys(benchmark, auditing.SAMPLES)
    left = auditing.samples_left(benchmark, keys)
    estimate = None if left.keys else auditing.renewed_score(benchmark).audited
    why = "" if left.keys or estimate else auditing.why_unknown(benchmark)
    page = AuditPage(
        n_drawn=len(keys),
        n_left=len(left.keys),
        older=left.sentence,
        rubric=_rubric(benchmark),
        question_id=None,
        sample=None,
        question=None,
        answer=None,
        text=None,
        result=why if estimate is None else estimate.sentence,
    )
    if not left.keys:
        return page
    key = left.keys[0]
    item = auditing.item(benchmark, key)
    return replace(
        page,
        question_id=key.question_id,
        sample=key.sample_index,
        question=shown_question(benchmark.question(key.question_id)),
        answer=item.answer and _field(item.answer),
        text=show(item.text, None),
    )


def _rubric(benchmark: OpenBenchmark) -> str:
    """The text of the rubric by which a judge decided samples of the benchmark; empty without one."""
    rubric = auditing.rubric_used(benchmark)
    return "" if rubric is None else rubric.text


def show(text: str, span: tuple[int, int] | None, limit: int = MAX_SHOWN_CHARS) -> Shown:
    """Return `text` for a page. span: (start, end) of the answer, in characters. limit: characters that are shown; a
    longer text loses its middle."""
    omitted = max(0, len(text) - limit)
    head = text if not omitted else text[: limit // 2]
    tail = "" if not omitted else text[len(head) + omitted :]
    answer = None
    if span is not None and 0 <= span[0] < span[1] <= len(text):
        if span[1] <= len(head):
            answer = (_units(text[: span[0]]), _units(text[: span[1]]))
        elif span[0] >= len(head) + omitted:
            before = _units(head)
            answer = (
                before + _units(text[len(head) + omitted : span[0]]),
                before + _units(text[len(head) + omitted : span[1]]),
            )
    return Shown(text=head + tail, omitted=omitted, cut=_units(head) if omitted else None, answer=answer)


def _units(text: str) -> int:
    """Length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
