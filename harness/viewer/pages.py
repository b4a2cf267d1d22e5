"""The runs that the viewer shows, and the content of each page, as values that are converted to JSON."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from harness.core.errors import StoreError, UsageError, near_names
from harness.core.images import ImageFacts
from harness.core.number_text import count_noun, in_percent
from harness.core.records import Key, Question
from harness.core.sanitize import visible
from harness.grading.external_graders import shown_references
from harness.runs import questions as question_file
from harness.runs.layout import RunFolder, labels, runs_below
from harness.runs.sweep_cell import JOIN, names_in_sweep
from harness.scoring.run_reader import OpenBenchmark, OpenRun
from harness.scoring.table_cells import accuracy_cell, lead_estimate
from harness.viewer.audit_samples import rubric_used
from harness.viewer.rows import (
    MAX_TITLE_CHARS,
    bare_text,
    facts_of,
    field,
    fields,
    images_of,
    question_rows,
    sample_row,
    sample_rows,
    steps_of,
    title,
    votes,
)
from harness.viewer.sample_text import curl
from harness.viewer.search import MAX_HITS, search

MAX_SHOWN_CHARS = 400_000
"""Longest text of a sample or question shown in full; the middle of a longer text is only in the raw text."""
MAX_MESSAGES = 200
"""Largest number of messages before the last one on a question's page."""


def overview(library: Library) -> list[dict[str, Any]]:
    """Return all runs, newest first; the cells of a sweep that differ only in the benchmark form one row. Reads scores
    and manifests, and samples and grades only where a verdict was overridden.
    """
    library.refresh()
    lines = [_run_line(run) for _, run in sorted(library.runs.items())]
    rows: dict[str, dict[str, Any]] = {}
    for line in sorted(lines, key=lambda line: str(line["created"]), reverse=True):
        row = rows.setdefault(line["row"], line)
        row["benchmarks"] += line["benchmarks"] if row is not line else []
    return [*rows.values()]


def _run_line(run: OpenRun) -> dict[str, Any]:
    """Return the line of a run on the first page.

    All benchmarks of a sweep cell share a row. The label of such a run ends with the benchmark's name in the sweep
    (`column`); the label without this name is the row's label (`row`).
    """
    run.refresh()
    manifest = run.manifest
    names = {} if manifest is None else names_in_sweep(run.folder, manifest.benchmarks)
    return {
        "row": run.label.removesuffix(f"{JOIN}{next(iter(names.values()))}") if names else run.label,
        "run": run.label,
        "model": "" if manifest is None else manifest.model,
        "created": "" if manifest is None else manifest.created,
        "problem": run.problem,
        "benchmarks": [
            benchmark_line(benchmark) | {"run": run.label, "column": names.get(benchmark.name, benchmark.name)}
            for benchmark in run.benchmarks.values()
        ],
    }


def benchmark_line(benchmark: OpenBenchmark) -> dict[str, Any]:
    """Return the line of a benchmark in the overview. in_words: its accuracy. notes: remarks on the accuracy."""
    benchmark.refresh()
    score, notes = benchmark.score, []
    samples, planned = benchmark.record.plan.samples, score.n_samples + score.n_missing if score else 0
    if score and isinstance(samples, int):  # also where the score excludes incomplete rounds
        planned = score.n_questions * samples
    if benchmark.n_stored < planned:
        notes.append(f"{benchmark.n_stored:,} of {planned:,} samples")
    if score and score.n_truncated:
        notes.append(f"{in_percent(score.n_truncated / score.n_samples)}% cut")
    notes += filter(None, [benchmark.override_sentence()])
    if score and score.warnings:
        notes.append(count_noun(len(score.warnings), "warning"))
    accuracy = None if score is None else score.accuracy
    return {
        "benchmark": benchmark.name,
        "accuracy": accuracy and accuracy.value,
        "in_words": accuracy_cell(score, "%")
        if score and lead_estimate(score)
        else f"{benchmark.n_stored:,} samples, no score",
        "notes": notes,
        "problems": benchmark.problems,
    }


def benchmark_page(benchmark: OpenBenchmark, published: str) -> dict[str, Any]:
    """The page of a benchmark, with its questions. published: text on what others report for the run's model."""
    line, score = benchmark_line(benchmark), benchmark.score
    headline = [line["in_words"]]
    if score and score.accuracy and score.accuracy.question:
        headline.append(f"{score.accuracy.question.in_percent}% on new questions of this kind")
    headline.append(f"{benchmark.n_stored:,} samples of {len(benchmark.questions):,} questions")
    if score and score.n_truncated:
        headline.append(f"{score.n_truncated:,} cut")
    if score and score.mean_completion_tokens:
        headline.append(f"{round(score.mean_completion_tokens):,} tokens per sample")
    return {
        "headline": headline,
        "published": published,
        # The score's own sentence on manual verdicts may be out of date.
        "notes": [
            *filter(None, [benchmark.override_sentence()]),
            *(warning.text for warning in (score.warnings if score else ()) if warning.kind != "by hand"),
        ],
        "problems": benchmark.problems,
        "rubric": rubric_used(benchmark),
        "questions": question_rows(benchmark),
    }


def question_page(benchmark: OpenBenchmark, question_id: str) -> dict[str, Any]:
    """The page of a question, with its samples. Raises `UsageError` for an unknown id."""
    question, rows = benchmark.question(question_id), sample_rows(benchmark, question_id)
    return {
        "title": bare_text(benchmark, question)[:MAX_TITLE_CHARS],
        "crumb": title(benchmark, question),
        "question": shown_question(question) | {"images": [*map(_image, images_of(benchmark, question))]},
        "samples": rows,
        "votes": votes(rows),
    }


def _image(image: ImageFacts | str) -> dict[str, Any]:
    """An image for a page: its name if the browser may show it, and a description."""
    if isinstance(image, str):
        return {"name": None, "words": image}
    return {"name": image.name if image.can_be_shown else None, "words": image.description}


def shown_question(question: Question) -> dict[str, Any]:
    """Return the question for its page, with all texts cut to their limits. text: the last message, or the raw prompt.
    before: role and text of the preceding messages (examples, a system prompt). n_before: number of these messages.
    """
    earlier = question.messages[:-1]
    limit = MAX_SHOWN_CHARS // max(1, min(len(earlier), MAX_MESSAGES))
    return {
        "text": show(question.last_turn),
        "before": [(message.role, show(message.shown, limit=limit)) for message in earlier[-MAX_MESSAGES:]],
        "n_before": len(earlier),
        "facts": [
            ("reference", "  or  ".join(field(reference) for reference in shown_references(question))),
            ("kind", question.kind),
            *fields(question.metadata).items(),
        ],
    }


def sample_page(benchmark: OpenBenchmark, key: Key) -> dict[str, Any]:
    """The sample with everything known about it. Raises `UsageError` and `StoreError`."""
    question = benchmark.question(key.question_id)
    sample, grade = benchmark.offsets.read(key), benchmark.grade(key)
    return {
        "row": sample_row(benchmark, key),
        "text": None if sample.text is None else show(sample.text, None if grade is None else grade.span),
        "reasoning": show(sample.reasoning) if sample.reasoning else None,
        "steps": "\n".join(f"{sign}\n{text}" for text, sign in steps_of(sample, question, grade)),
        "facts": [
            ("answer", "–" if grade is None else grade.extracted or "–"),
            ("rule", "–" if grade is None else f"{grade.rule} ({grade.grader})"),
            *facts_of(sample),
        ],
        "history": [override for override in benchmark.override_history if override.key == key],
        "curl": curl(benchmark.record, question, sample),
    }


def run_page(run: OpenRun, facts: Callable[[RunFolder], Mapping[str, Any]]) -> dict[str, Any]:
    """The run's page. facts: reads its settings. prompts: benchmark → its first question as the model received it."""
    run.refresh()
    prompts = {}
    for name, benchmark in run.benchmarks.items():
        # If the question file is damaged, only the prompt is omitted here; the benchmark's page reports the damage.
        with contextlib.suppress(StoreError):
            for first in islice(question_file.read_planned(benchmark.folder, benchmark.record), 1):
                prompts[name] = shown_question(first)
    return {"facts": facts(run.folder), "prompts": prompts}


def search_page(benchmark: OpenBenchmark, sought: str) -> dict[str, Any]:
    """The first hits of a search. complete: whether these are all hits."""
    hits = search(benchmark, sought)
    return {"hits": list(islice(hits, MAX_HITS)), "complete": next(hits, None) is None}


def show(text: str, span: tuple[int, int] | None = None, *, limit: int = MAX_SHOWN_CHARS) -> dict[str, Any]:
    """Return `text` prepared for a page. parts: the text before the answer, the answer, and the text after it. span:
    (start, end) of the answer. limit: number of characters shown; in a longer text, a note replaces the middle.
    """
    omitted = max(0, len(text) - limit)
    gap_begin = limit // 2 if omitted else len(text)
    gap_end = gap_begin + omitted
    words = f" [{omitted:,} characters omitted here; see the raw text] " if omitted else ""

    def part(begin: int, end: int) -> str:
        """The text from `begin` to `end` without the gap, which the note replaces if the gap begins here."""
        in_place = words if begin < gap_begin <= end else ""
        return text[begin : min(end, gap_begin)] + in_place + text[max(begin, gap_end) : end]

    start, end = span if span is not None and 0 <= span[0] < span[1] <= len(text) else (len(text), len(text))
    return {"parts": [part(0, start), part(start, end), part(end, len(text))], "n": len(text), "omitted": omitted}


MAX_RUNS = 10_000
"""Largest number of run folders opened below the given folders."""


class Library:
    """All runs at or below the given paths; each `refresh` searches the folders again."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = [path.absolute() for path in paths]
        self.runs: dict[str, OpenRun] = {}
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Find the runs. Raises `StoreError` when a path is neither a run nor a folder."""
        with self._lock:
            by_path = {folder.path: RunFolder(folder.path) for path in self._paths for folder in _runs_at(path)}
            folders = list(by_path.values())[:MAX_RUNS]
            opened = {run.folder.path: run for run in self.runs.values()}
            self.runs = {}
            for label, folder in zip(labels(folders), folders, strict=True):
                run = opened.get(folder.path) or OpenRun(label, folder)
                run.label = label
                self.runs[label] = run

    def run(self, label: str) -> OpenRun:
        """Return the run with this label. Raises a `UsageError` that suggests similar labels."""
        if label not in self.runs:
            self.refresh()
        try:
            return self.runs[label]
        except KeyError:
            raise UsageError(f"there is no run {visible(label, 100)!r} here.{near_names(label, self.runs)}") from None


def _runs_at(path: Path) -> list[RunFolder]:
    """Return the run at `path`, or else the runs up to two folders below it. Raises `StoreError`."""
    if (path / "manifest.json").is_file() or not path.is_dir():
        return [RunFolder.open(path)]
    return runs_below(path)
