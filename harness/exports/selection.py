"""Chooses the samples of a run for an export, and passes them to exporters with their questions and grades.

The functions at the end are shared by exporters: a reply as one text, JSON Lines files, the metrics of a score. Samples
are read one at a time, so only their keys are kept in memory, not their texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.core import codec
from harness.core.errors import UsageError
from harness.core.files import replacing, write_atomically
from harness.core.records import UNSTATED_REASON, Grade, Key, Message, Question, Sample, VerdictName
from harness.core.sanitize import safe_name, visible
from harness.runs import RunFolder, read_samples
from harness.runs.manifest import BenchmarkRecord, Manifest
from harness.runs.missing import n_planned
from harness.scoring.run_reader import OpenBenchmark
from harness.scoring.score import Score
from harness.scoring.stats import Estimate
from reasoning_answers.host import final_part

Take = Literal["correct", "all"]
"""The samples to export: only samples with the verdict "correct", or all."""

ENDED = ("stop",)
"""The finish reasons of replies that the model itself ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleChoice:
    """Which of the planned samples an export contains, and how much of each.

    take: only correct samples, or all. shortest: include at most this many samples of each question, the shortest by
    characters of reasoning and text; None: all. finish_reasons: include samples with these finish reasons; empty: with
    any. distinct: whether only the first of equal replies to a question is included. reasoning: whether a reply keeps
    the model's reasoning; False: only its final part. by_hand: whether a person's verdict replaces the grader's. empty:
    whether samples with no text (after `reasoning` is applied) and samples with tool calls are included.
    """

    take: Take = "all"
    shortest: int | None = None
    finish_reasons: tuple[str, ...] = ()
    distinct: bool = False
    reasoning: bool = True
    by_hand: bool = True
    empty: bool = True


class SampleRow(NamedTuple):
    """A sample with its question and its grade.

    grade: with a person's verdict if there is one; None if the sample has not been graded. graded: the grader's
    verdict, if a person's counts.
    """

    question: Question
    sample: Sample
    grade: Grade | None
    graded: VerdictName | None = None


class File(NamedTuple):
    """A file that an exporter wrote. n: number of samples or results in it; None if it holds none, or if unknown."""

    path: Path
    n: int | None = None


@dataclass(frozen=True)
class ExportedBenchmark:
    """A benchmark of a run as passed to an exporter: its chosen samples, score and settings, each read on demand.

    left_out: reason → number of samples that the latest pass of `rows` left out; complete only after the pass.
    """

    folder: RunFolder
    manifest: Manifest
    name: str
    choice: SampleChoice
    left_out: Counter[str] = field(default_factory=Counter, init=False, compare=False)

    @property
    def record(self) -> BenchmarkRecord:
        """The benchmark's identity, plan and settings."""
        return self.manifest.benchmarks[self.name]

    @cached_property
    def _opened(self) -> OpenBenchmark:
        return OpenBenchmark(self.folder.benchmark(self.name), self.record)

    @property
    def questions(self) -> dict[str, Question]:
        """Id → question, for the planned questions, in the order of the plan."""
        return self._opened.questions

    @cached_property
    def grades(self) -> dict[Key, Grade]:
        """Key → grade, with a person's verdict if the choice has `by_hand`; empty if the run has not been scored."""
        return {grade.key: grade for grade in self._opened.all_grades(overridden=self.choice.by_hand)}

    @property
    def score(self) -> Score:
        """The benchmark's score. Raises `UsageError` if the run has not been scored."""
        score = self._opened.score
        if score is None:
            raise not_scored_error(self.folder, self.name)
        return score

    def rows(self) -> Iterator[SampleRow]:
        """Yield the chosen samples in the order in which they finished. Raises `StoreError`.

        Each call reads the journal (`samples.jsonl`) again, twice if the choice sets `shortest`.
        """
        most = self.choice.shortest
        shortest = None if most is None else self._shortest(most)
        for row in self._passing():
            if shortest is None or row.sample.key in shortest:
                yield row
            else:
                self.left_out[f"longer than the {most} shortest samples for the same question"] += 1

    def by_question(self) -> Iterator[tuple[Question, list[SampleRow]]]:
        """Yield each question with chosen samples, in the order of the plan, with its samples sorted by index.

        Only the samples of one question are in memory at a time.
        """
        chosen, offsets = {row.sample.key for row in self.rows()}, self._opened.offsets
        for question_id, question in self.questions.items():
            keys = (Key(question_id, index) for index in sorted(offsets.locations(question_id)))
            if rows := [self._row(question, offsets.read(key)) for key in keys if key in chosen]:
                yield question, rows

    def _row(self, question: Question, sample: Sample) -> SampleRow:
        """The sample with its question and the grade that counts."""
        key, opened = sample.key, self._opened
        by_grader = opened.grade(key)
        corrected = self.choice.by_hand and key in opened.overrides
        graded = by_grader.verdict if by_grader is not None and corrected else None
        return SampleRow(question, sample, self.grades.get(key), graded)

    def _passing(self) -> Iterator[SampleRow]:
        """Yield the samples that satisfy the choice except for `shortest`; count the others in `left_out`."""
        self.left_out.clear()
        n_in_plan, plan, planned = 0, self.record.plan, self.record.planned
        seen: set[bytes] = set()
        for sample in read_samples(self._opened.folder):
            question = self.questions.get(sample.question_id)
            if question is None or sample.sample_index >= n_planned(question.question_id, plan.samples):
                self.left_out["not in the run's plan"] += 1
                continue
            n_in_plan += 1
            if reason := self._refused(sample, seen):
                self.left_out[reason] += 1
            else:
                yield self._row(question, sample)
        missing = sum(planned.values()) if isinstance(planned, Mapping) else plan.total(self.questions) - n_in_plan
        if missing > 0:
            self.left_out["missing from the run"] = missing

    def _refused(self, sample: Sample, seen: set[bytes]) -> str:
        """Why the choice leaves a sample out, apart from `shortest`; empty if the sample is included.

        seen: digests of the replies included so far, if duplicates are left out.
        """
        choice, grade = self.choice, self.grades.get(sample.key)
        if sample.has_verdict_only and not choice.empty:
            return "without a reply because their file contains only verdicts"
        if choice.take == "correct" and (grade is None or grade.verdict != "correct"):
            return "not graded yet" if grade is None else "not correct"
        if choice.finish_reasons and sample.finish_reason not in choice.finish_reasons:
            if sample.finish_reason == UNSTATED_REASON:
                return "with no finish reason in their file"
            return f"ended by {visible(sample.finish_reason, 40)!r}"
        if not choice.empty and (sample.calls or any(step.calls for step in sample.steps or ())):
            return "with tool calls, which this format cannot contain"
        if not choice.empty and not reply_text(sample, reasoning=choice.reasoning):
            return "empty"
        if choice.distinct:
            # Without the separators, ("ab", "c") and ("a", "bc") as reasoning and text would be equal.
            whole = f"{sample.question_id}\0{sample.reasoning or ''}\0{sample.text or ''}"
            if (reply := blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).digest()) in seen:
                return "identical to an earlier sample"
            seen.add(reply)
        return ""

    def _shortest(self, most: int) -> set[Key]:
        """The keys of the `most` shortest samples of each question."""
        lengths: dict[str, list[tuple[int, int]]] = {}
        for row in self._passing():
            sample = row.sample
            length = len(sample.text or "") + len(sample.reasoning or "")  # in characters
            lengths.setdefault(sample.question_id, []).append((length, sample.sample_index))
        return {Key(name, index) for name, replies in lengths.items() for _, index in sorted(replies)[:most]}


def not_scored_error(folder: RunFolder, name: str) -> UsageError:
    """The error to raise if an export needs verdicts and the benchmark `name` has none."""
    return UsageError(f"{name} of {folder.path} has not been graded; run `harness score {folder.path}` first")


def reply_text(sample: Sample, *, reasoning: bool) -> str:
    """The reply as one text; empty if the model wrote nothing.

    reasoning: if true, reasoning that the server sent in a separate field is put before the text, in `<think>` tags. If
    false, only the part after the reasoning is returned.
    """
    text = sample.text or ""
    if not reasoning:
        part = final_part(text, is_apart=bool(sample.reasoning))
        return text[part[0] : part[1]].lstrip() if part else ""
    if sample.reasoning:
        thought = sample.reasoning.strip("\n")
        return f"<think>\n{thought}\n</think>\n\n{text.lstrip()}"
    return text


def json_line(value: object, *, strict: bool = True) -> bytes:
    """A line of JSON. Unicode line separators are escaped, because Python's `splitlines` would split the line at them.

    strict: encode with `codec.encode_strictly`; otherwise lone surrogates are kept.
    """
    line = codec.escape_line(codec.encode_strictly(value) if strict else codec.encode(value))
    return line.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029") + b"\n"


Line = Callable[[SampleRow, str], dict[str, Any]]
"""A function of (sample, its reply as one text) that returns the object of the sample's line."""


def llama_factory(benchmarks: Sequence[ExportedBenchmark], out: Path, line: Line, form: dict[str, Any]) -> list[File]:
    """Write a file for each benchmark, and `dataset_info.json`, which LLaMA-Factory uses to find the files; return
    them.

    line: makes the object of each line. form: the fields of `dataset_info.json` that describe the layout of a file.
    """
    files = [training_file(benchmark, out, line) for benchmark in benchmarks]
    info = {file.path.stem: {"file_name": file.path.name, **form} for file in files}
    write_atomically(out / "dataset_info.json", codec.pretty(info))
    return [*files, File(out / "dataset_info.json")]


def training_file(benchmark: ExportedBenchmark, out: Path, line: Line) -> File:
    """Write the benchmark's file, with a line for each chosen sample."""
    reasoning = benchmark.choice.reasoning
    rows = (line(row, reply_text(row.sample, reasoning=reasoning)) for row in benchmark.rows())
    return lines_file(benchmark, out, rows)


def lines_file(
    benchmark: ExportedBenchmark, out: Path, values: Iterable[dict[str, Any]], *, strict: bool = True
) -> File:
    """Write the benchmark's file in the folder `out`, with each value as a line of JSON (`json_line`)."""
    path, n = out / f"{safe_name(benchmark.name)}.jsonl", 0
    with replacing(path) as file:
        for value in values:
            file.write(json_line(value, strict=strict))
            n += 1
    return File(path, n)


def conversation(question: Question, image: str | None = None) -> tuple[str, list[tuple[str, str]]]:
    """Split a question into its system prompt and its other messages (role, text).

    The system prompt is empty if there is none. A prompt without roles is one user message. image: the text that
    replaces each image; None: the texts are unchanged.
    """
    if not question.messages:
        return "", [("user", question.prompt)]
    messages = [
        (message.role, message.content if image is None or not message.media else _marked(message, image))
        for message in question.messages
    ]
    # Training data formats have one place for a system prompt, before the turns.
    system = "\n\n".join(text for role, text in messages if role == "system")
    return system, [(role, text) for role, text in messages if role != "system"]


def later_turns(row: SampleRow) -> Iterator[tuple[str, str]]:
    """Yield (role, text) for each message of a conversation between its question and its last reply."""
    steps = [step for step in row.sample.steps or () if step.turn and not step.calls]
    for step, turn in zip(
        steps[:-1] if row.sample.text is not None else steps, (row.question.turns or ())[1:], strict=False
    ):
        yield "assistant", step.text or ""
        yield from ((message.role, message.content) for message in turn.messages)


def _marked(message: Message, image: str) -> str:
    return "".join(part if isinstance(part, str) else image for part in message.parts)


def metrics_of(score: Score) -> dict[str, Estimate]:
    """Name → estimate of the accuracy, and of pass@k and maj@k for k above 1, as fractions with intervals; empty
    without samples.
    """
    if score.accuracy is None:
        return {}
    metrics = {"accuracy": score.accuracy}
    for name, by_k in (("pass", score.pass_at), ("maj", score.maj_at)):
        metrics |= {f"{name}@{k}": estimate for k, estimate in by_k.items() if k > 1}
    return metrics


def uncertainty(score: Score) -> dict[str, Any]:
    """Name → value of the facts about a score's uncertainty: errors, intervals, counts and warnings."""
    ks = [(name, each) for name, each in metrics_of(score).items() if "@" in name]
    return {
        **{f"{name}_interval": each.question or each.sampling for name, each in ks},
        "sampling_error": score.sampling_error,
        "sampling_interval": score.accuracy and score.accuracy.sampling,
        "question_error": score.question_error,
        "question_interval": score.accuracy and score.accuracy.question,
        "n_questions": score.n_questions,
        "n_samples": score.n_samples,
        "n_missing": score.n_missing,
        "n_truncated": score.n_truncated,
        "n_undecided": score.n_undecided,
        "partial": score.partial,
        "warnings": "; ".join(score.sentences) or None,
    }
