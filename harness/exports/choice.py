"""Which samples of a run an export holds. Samples are read one by one, so that memory holds only their keys."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.core import codec
from harness.core.errors import UsageError
from harness.core.records import Grade, Key, Question, Sample
from harness.grading.find.reasoning import final_part
from harness.runs import RunFolder, grades, questions, read_samples
from harness.runs.manifest import BenchmarkRecord, Manifest
from harness.scoring import Score, score_file

Take = Literal["correct", "all"]

GROUP_BYTES = 128 * 1024 * 1024
"""Bytes of a journal whose samples are in memory at a time, where an export is in the order of the questions."""

ENDED = ("stop",)
"""The finish reason of a reply that the model ended itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleChoice:
    """Which planned samples an export holds, and how much of each.

    take: the correct ones, or all. shortest: at most this many of each question, the shortest by characters of
    reasoning and text; None: all. finish_reasons: how a reply must have ended; empty: in any way. distinct: keep only
    the first of equal replies to a question. reasoning: with the model's reasoning, or the final part only.
    """

    take: Take = "all"
    shortest: int | None = None
    finish_reasons: tuple[str, ...] = ()
    distinct: bool = False
    reasoning: bool = True


class SampleRow(NamedTuple):
    """A sample with its question. grade: None where the sample has not been graded."""

    question: Question
    sample: Sample
    grade: Grade | None


class File(NamedTuple):
    """A written file. n: samples or results in the file; None where it holds neither."""

    path: Path
    n: int | None = None


@dataclass(frozen=True)
class ExportedBenchmark:
    """A benchmark of a run as an exporter gets it: the samples of the choice, the score, the settings."""

    folder: RunFolder
    manifest: Manifest
    name: str
    choice: SampleChoice

    @property
    def record(self) -> BenchmarkRecord:
        """The benchmark's identity, plan and settings."""
        return self.manifest.benchmarks[self.name]

    @cached_property
    def questions(self) -> dict[str, Question]:
        """Those of the plan, by id, in its order."""
        planned = questions.read_planned(self.folder.benchmark(self.name), self.record)
        return {question.question_id: question for question in planned}

    @cached_property
    def grades(self) -> dict[Key, Grade]:
        """The verdicts by key; none where the run has not been scored."""
        folder = self.folder.benchmark(self.name)
        return {grade.key: grade for grade in grades.read(folder)} if folder.grades.is_file() else {}

    @cached_property
    def score(self) -> Score:
        """Raises `UsageError` where the run has not been scored."""
        score = score_file.read(self.folder.benchmark(self.name))
        if score is None:
            raise not_scored(self.folder, self.name)
        return score

    def rows(self) -> Iterator[SampleRow]:
        """The chosen samples in the order of the journal, which is read again each time. Raises `StoreError`."""
        shortest = None if self.choice.shortest is None else self._shortest(self.choice.shortest)
        return (row for row in self._passing() if shortest is None or row.sample.key in shortest)

    def by_question(self) -> Iterator[tuple[Question, list[SampleRow]]]:
        """The chosen samples of each question, by rising index, in the order of the plan; a question without any is
        left out. The journal is read once for each `GROUP_BYTES` of it, so that no more is held."""
        ids = list(self.questions)
        size = self.folder.benchmark(self.name).samples.stat().st_size if ids else 0
        step = math.ceil(len(ids) / math.ceil(max(1, size) / GROUP_BYTES)) if ids else 1
        for first in range(0, len(ids), step):
            by_id: dict[str, list[SampleRow]] = {question_id: [] for question_id in ids[first : first + step]}
            for row in self.rows():
                if row.sample.question_id in by_id:
                    by_id[row.sample.question_id].append(row)
            for question_id, rows in by_id.items():
                if rows:
                    yield self.questions[question_id], sorted(rows, key=lambda row: row.sample.sample_index)

    def _passing(self) -> Iterator[SampleRow]:
        choice, samples = self.choice, self.record.plan.samples
        seen: set[bytes] = set()
        for sample in read_samples(self.folder.benchmark(self.name)):
            question = self.questions.get(sample.question_id)
            if question is None or sample.sample_index >= samples:
                continue
            grade = self.grades.get(sample.key)
            if choice.take == "correct" and (grade is None or grade.verdict != "correct"):
                continue
            if choice.finish_reasons and sample.finish_reason not in choice.finish_reasons:
                continue
            if choice.distinct:
                reply = _digest(sample)
                if reply in seen:
                    continue
                seen.add(reply)
            yield SampleRow(question, sample, grade)

    def _shortest(self, most: int) -> set[Key]:
        heaps: dict[str, list[tuple[int, int]]] = {}
        for row in self._passing():
            sample = row.sample
            heap = heaps.setdefault(sample.question_id, [])
            heapq.heappush(heap, (-length(sample), -sample.sample_index))
            if len(heap) > most:
                heapq.heappop(heap)
        return {Key(question_id, -index) for question_id, heap in heaps.items() for _, index in heap}


def not_scored(folder: RunFolder, name: str) -> UsageError:
    """The refusal of what needs verdicts where there are none."""
    return UsageError(f"{name} of {folder.path} has not been graded; give `harness score {folder.path}` first")


def length(sample: Sample) -> int:
    """Characters that the model wrote, thinking included."""
    return len(sample.text or "") + len(sample.reasoning or "")


def written(sample: Sample, *, reasoning: bool) -> str:
    """The reply as one text: thinking that the server set apart stands before it in `<think>` tags; without
    `reasoning`, what was said after the thinking alone. Empty where nothing was said."""
    text = sample.text or ""
    if not reasoning:
        part = final_part(text)
        return text[part[0] : part[1]].lstrip() if part else ""
    if sample.reasoning:
        thought = sample.reasoning.strip("\n")
        return f"<think>\n{thought}\n</think>\n\n{text.lstrip()}"
    return text


def whole(text: str) -> str:
    """`text` with each half of a surrogate pair that stands alone replaced: other tools' readers refuse it."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def json_line(value: object) -> bytes:
    """A line of JSON in which no character ends a line for readers that split as Python's `splitlines` does."""
    line = codec.inert(codec.encode(value))
    return line.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029") + b"\n"


def _digest(sample: Sample) -> bytes:
    reply = f"{sample.question_id}\0{sample.reasoning or ''}\0{sample.text or ''}"
    return blake2b(reply.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def counted_metrics(score: Score) -> dict[str, float]:
    """Accuracy, pass@k and maj@k for k above 1, as fractions; nothing where no sample is there."""
    if score.accuracy is None:
        return {}
    named = (("pass", score.pass_at), ("maj", score.maj_at))
    return {"accuracy": score.accuracy, **{f"{name}@{k}": v for name, by_k in named for k, v in by_k.items() if k > 1}}


def uncertainty(score: Score) -> dict[str, Any]:
    """What should stand beside an accuracy wherever there is room; see `Score`."""
    return {
        "sampling_error": score.sampling_error,
        "sampling_interval": score.sampling_interval,
        "question_error": score.question_error,
        "question_interval": score.question_interval,
        "n_questions": score.n_questions,
        "n_samples": score.n_samples,
        "n_missing": score.n_missing,
        "n_truncated": score.n_truncated,
        "n_undecided": score.n_undecided,
        "partial": score.partial,
    }
