"""Converts runs to a table: the columns, how each is computed from a sample, and the rows as Arrow batches, which
pandas, polars and DuckDB can read directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Any, Literal, NamedTuple

import arro3.core
from arro3.core import Array, DataType, RecordBatch, Schema, Table, list_array, struct_array
from msgspec import UnsetType

from harness.core import codec
from harness.core.codec import without_lone_surrogates
from harness.core.errors import UsageError
from harness.core.images import ImageFolder
from harness.exports.selection import ExportedBenchmark, SampleChoice, SampleRow
from harness.runs.layout import RunFolder, labels
from harness.runs.manifest import Manifest
from harness.scoring.score import Score
from harness.scoring.table_cells import numbers
from harness.tools.table import name_in

Of = Literal["samples", "grades", "scores"]
"""The possible meanings of a row of the table."""

ROWS_AT_A_TIME = 500
"""Number of samples per batch, which are kept in memory in addition to the table or file."""

IMAGE_ROWS = 8
"""Number of samples per batch if the questions have images."""

_IMAGE_FIELDS = [arro3.core.Field("bytes", DataType.binary()), arro3.core.Field("path", DataType.string())]

_TYPES = {
    "string": DataType.string(),
    "int32": DataType.int32(),
    "int64": DataType.int64(),
    "double": DataType.float64(),
    "bool": DataType.bool(),
    "images": DataType.list(arro3.core.Field("element", DataType.struct(_IMAGE_FIELDS), nullable=True)),
    "list<string>": DataType.list(arro3.core.Field("element", DataType.string(), nullable=True)),
}
"""Type of a column in `FIELDS` → Arrow type."""

_GRADE = ("question_id", "sample_index", "verdict", "extracted", "rule", "vote", "grader", "completion_tokens")
"""The fields of a grade that have a column in a table of grades."""


def frame(folders: Sequence[RunFolder], of: Of) -> Table:
    """The samples, grades or scores of runs, one per row, with the run's name in the first column.

    Manual verdicts count in samples and grades; a score has a separate accuracy with them. Raises `UsageError` for an
    unknown `of` and for runs without rows, and `StoreError`.
    """
    named = zip(labels(folders), folders, [Manifest.load(folder) for folder in folders], strict=True)
    benchmarks = [
        (label, ExportedBenchmark(folder, manifest, name, SampleChoice()))
        for label, folder, manifest in named
        for name in manifest.benchmarks
    ]
    if of == "samples":
        fields = fields_of([benchmark for _, benchmark in benchmarks])
        batches = [batch for label, each in benchmarks for batch in sample_batches(each, (_run(label), *fields))]
    elif of == "grades":
        grades = ((label, each.name, grade) for label, each in benchmarks for grade in each.grades.values())
        batches = _inferred(
            {"run": label, "benchmark": name} | {field: getattr(grade, field) for field in _GRADE}
            for label, name, grade in grades
        )
    elif of == "scores":
        scores = ((label, Score.load(each.folder.benchmark(each.name))) for label, each in benchmarks)
        batches = _inferred(
            {"run": label, "benchmark": score.benchmark, **numbers(score), "warnings": "; ".join(score.sentences)}
            for label, score in scores
            if score
        )
    else:
        raise UsageError(f"of={of!r}: expected samples, grades or scores", field="of")
    if not batches:
        raise UsageError(f"these runs contain no {of}{'' if of == 'samples' else ': score them first'}")
    return Table.from_batches(batches)


def _run(label: str) -> Field:
    """The first column of a table of several runs, with the label of one run."""
    return Field("run", "string", "run label", lambda _: label)


def schema_of(fields: Sequence[Field], about: Mapping[str, str] | None = None) -> Schema:
    """The schema of a table with these columns, each with its description. about: facts about the whole table."""
    columns = [
        arro3.core.Field(field.name, _TYPES[field.type], nullable=True, metadata={"description": field.about})
        for field in fields
    ]
    return Schema(columns, metadata=dict(about or {}))


def sample_batches(benchmark: ExportedBenchmark, fields: Sequence[Field]) -> Iterator[RecordBatch]:
    """The samples of a benchmark, in batches of up to `ROWS_AT_A_TIME`. fields: their columns."""
    rows, schema = benchmark.rows(), schema_of(fields)
    at_a_time = IMAGE_ROWS if any(field.type == "images" for field in fields) else ROWS_AT_A_TIME
    while chunk := list(islice(rows, at_a_time)):
        columns = [_column([field.value(row) for row in chunk], field.type) for field in fields]
        yield RecordBatch.from_arrays(columns, schema=schema)


def _inferred(rows: Iterable[Mapping[str, Any]]) -> list[RecordBatch]:
    """The rows as one batch, with column types inferred from the values; empty without rows."""
    records = list(rows)
    kinds = {bool: "bool", int: "int64", str: "string"}
    columns = {name: [record.get(name) for record in records] for name in dict.fromkeys(chain(*records))}
    batch: dict[str, Any] = {}
    for name, values in columns.items():
        types = {kinds.get(type(value), "double") for value in values if value is not None}
        batch[name] = _column(values, types.pop() if len(types) == 1 else "double")
    return [RecordBatch.from_pydict(batch)] if records else []


def _column(values: list[Any], kind: str) -> Array:
    """A column with a type used in `FIELDS`; a missing list becomes an empty list."""
    if not kind.startswith(("images", "list")):
        return Array(values, type=_TYPES[kind])
    offsets = [*accumulate((len(value or ()) for value in values), initial=0)]
    each = [one for value in values for one in value or ()]
    if kind == "images":
        data = Array([image for image, _ in each], type=DataType.binary())
        parts = struct_array([data, _column([path for _, path in each], "string")], fields=_IMAGE_FIELDS)
    else:
        parts = _column(each, "string")
    return list_array(_column(offsets, "int32"), parts, type=_TYPES[kind])


# ---- the columns of samples


class Field(NamedTuple):
    """A column of the table. type: name of its type, a key of `_TYPES`. about: its description. value: function that
    computes the column's value from a sample.
    """

    name: str
    type: str
    about: str
    value: Callable[[SampleRow], Any]


def _text(value: str | None) -> str | None:
    return None if value is None else without_lone_surrogates(value)


def _json(value: Any) -> str:
    return codec.encode_strictly(value).decode()


FIELDS = (
    Field("benchmark", "string", "benchmark name", lambda r: r.question.benchmark),
    Field("question_id", "string", "question id within the benchmark", lambda r: r.sample.question_id),
    Field("sample_index", "int32", "sample index within the question, from 0", lambda r: r.sample.sample_index),
    Field(
        "question",
        "string",
        "the user's last turn, or the plain prompt, as sent",
        lambda r: _text(r.question.last_turn),
    ),
    Field("references", "list<string>", "accepted reference answers", lambda r: [*map(_text, r.question.references)]),
    Field("kind", "string", "answer type", lambda r: r.question.kind),
    Field("metadata", "string", "level, subject, etc., as JSON", lambda r: _json(r.question.metadata)),
    Field("text", "string", "the reply as sent; null is preserved", lambda r: _text(r.sample.text)),
    Field("reasoning", "string", "reasoning that the server returned separately", lambda r: _text(r.sample.reasoning)),
    Field("finish_reason", "string", "finish reason as sent; length means truncated", lambda r: r.sample.finish_reason),
    Field("verdict", "string", "correct, wrong, no_answer or undecided", lambda r: r.grade and r.grade.verdict),
    Field("correct", "bool", "whether the verdict is correct", lambda r: r.grade and r.grade.verdict == "correct"),
    Field("extracted", "string", "the extracted answer", lambda r: r.grade and _text(r.grade.extracted)),
    Field("rule", "string", "the rule that decided the verdict", lambda r: r.grade and r.grade.rule),
    Field("vote", "string", "first of the equal answers", lambda r: r.grade and _text(r.grade.vote)),
    Field("grader", "string", "grader name and version", lambda r: r.grade and r.grade.grader),
    Field("graded", "string", "the grader's verdict if a person set `verdict`", lambda r: r.graded),
    Field("prompt_tokens", "int64", "prompt tokens", lambda r: r.sample.usage.prompt_tokens),
    Field(
        "completion_tokens", "int64", "generated tokens, including thinking", lambda r: r.sample.usage.completion_tokens
    ),
    Field("reasoning_tokens", "int64", "thinking tokens", lambda r: r.sample.usage.reasoning_tokens),
    Field(
        "cached_tokens", "int64", "prompt tokens read from the server's cache", lambda r: r.sample.usage.cached_tokens
    ),
    Field("started", "double", "Unix time at which the request was sent", lambda r: r.sample.timing.started),
    Field(
        "queued", "double", "seconds from planning the sample to sending the request", lambda r: r.sample.timing.queued
    ),
    Field("first_token", "double", "seconds from request to first token", lambda r: r.sample.timing.first_token),
    Field("total", "double", "seconds from request to end", lambda r: r.sample.timing.total),
    Field("endpoint", "string", "server base URL, or file:NAME for another tool's file", lambda r: r.sample.endpoint),
    Field("server_model", "string", "model name that the server reported", lambda r: r.sample.server_model),
    Field("provider", "string", "the provider behind a router", lambda r: r.sample.provider or None),
    Field("fingerprint", "string", "`system_fingerprint`, as sent", lambda r: r.sample.fingerprint),
    Field("request_id", "string", "request id that the server assigned", lambda r: r.sample.request_id),
    Field("seed", "int64", "sample seed; null if none was sent", lambda r: r.sample.seed),
    Field("attempts", "int32", "requests made for this sample", lambda r: r.sample.attempts),
)


def _points(row: SampleRow, which: int) -> float | None:
    return row.grade.points[which] if row.grade and row.grade.points else None


_OF_A_JUDGE = (
    Field("points", "double", "points awarded by a judge", lambda r: _points(r, 0)),
    Field("points_of", "double", "maximum points", lambda r: _points(r, 1)),
    Field(
        "confidence",
        "double",
        "confidence stated in the reply, as a fraction",
        lambda r: None if r.grade is None or isinstance(r.grade.confidence, UnsetType) else r.grade.confidence,
    ),
)


_STEPS = "requests for a sample that used a tool, with calls and outputs, as JSON"
_OF_A_TOOL = Field("steps", "string", _STEPS, lambda r: _json(r.sample.steps) if r.sample.steps else None)


_CALLS = "calls that make up the answer, as JSON"
_OF_CALLS = Field("calls", "string", _CALLS, lambda r: _json(r.sample.calls) if r.question.kind == "calls" else None)


def images_field(benchmark: ExportedBenchmark) -> Field:
    """The column with the images of a benchmark's questions, in the form used by image data sets on the Hub."""
    folder = ImageFolder(benchmark.folder.benchmark(benchmark.name).images)

    def images(row: SampleRow) -> list[tuple[bytes, str]]:
        names = [image.sha256 for image in row.question.images]
        return [(folder.read(name), folder.facts(name).file_name) for name in names]

    return Field("images", "images", "the question's images in order, as bytes and paths", images)


def fields_of(benchmarks: Sequence[ExportedBenchmark]) -> tuple[Field, ...]:
    """The columns of a table of these benchmarks' samples; columns for a judge's points, a tool and calls only if any
    benchmark has them.
    """
    judged = any(grade.points or grade.confidence for each in benchmarks for grade in each.grades.values())
    has_tool = any(name_in(each.record.identity) for each in benchmarks)
    asks_calls = any(question.kind == "calls" for each in benchmarks for question in each.questions.values())
    more = (*(_OF_A_JUDGE if judged else ()), *([_OF_A_TOOL] if has_tool else ()), *([_OF_CALLS] if asks_calls else ()))
    return (*FIELDS, *more)
