"""Samples as Arrow batches, and runs as an Arrow table, which pandas, polars and DuckDB read as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Any, Literal

import arro3.core
from arro3.core import Array, DataType, RecordBatch, Schema, Table, list_array

from harness.core.errors import UsageError
from harness.exports.choice import ExportedBenchmark, SampleChoice
from harness.exports.fields import Field, fields_of
from harness.runs.layout import RunFolder, labels
from harness.runs.manifest import Manifest
from harness.scoring.columns import numbers
from harness.scoring.score import Score

Of = Literal["samples", "grades", "scores"]
"""A row of the table is one of these."""

ROWS_AT_A_TIME = 500
"""Number of samples of a batch, which are held in memory beside the table or file."""

_TYPES = {
    "string": DataType.string(),
    "int32": DataType.int32(),
    "int64": DataType.int64(),
    "double": DataType.float64(),
    "bool": DataType.bool(),
    "list<string>": DataType.list(arro3.core.Field("item", DataType.string(), nullable=True)),
}
"""Type of a column as `FIELDS` names it → Arrow's type."""

_GRADE = ("question_id", "sample_index", "verdict", "extracted", "rule", "vote", "grader", "completion_tokens")
"""The fields of a grade that have a column in a table of grades."""


def frame(folders: Sequence[RunFolder], of: Of) -> Table:
    """The samples, grades or scores of runs, a row each, with the run's name in the first column.

    Verdicts by hand count in samples and grades; a score has an accuracy of its own with them. Raises `UsageError` for
    another word and for runs without a row, `StoreError`.
    """
    named = zip(labels(folders), folders, [Manifest.load(folder) for folder in folders], strict=True)
    benchmarks = [
        (label, ExportedBenchmark(folder, manifest, name, SampleChoice()))
        for label, folder, manifest in named
        for name in manifest.benchmarks
    ]
    if of == "samples":
        fields = fields_of([benchmark for _, benchmark in benchmarks])
        batches = [batch for label, one in benchmarks for batch in sample_batches(one, (_run(label), *fields))]
    elif of == "grades":
        grades = ((label, one.name, grade) for label, one in benchmarks for grade in one.grades.values())
        batches = _inferred(
            {"run": label, "benchmark": name} | {field: getattr(grade, field) for field in _GRADE}
            for label, name, grade in grades
        )
    elif of == "scores":
        scores = ((label, Score.load(one.folder.benchmark(one.name))) for label, one in benchmarks)
        batches = _inferred(
            {"run": label, "benchmark": score.benchmark, **numbers(score)} for label, score in scores if score
        )
    else:
        raise UsageError(f"of={of!r} is none of samples, grades and scores", field="of")
    if not batches:
        raise UsageError(f"these runs hold no {of}{'' if of == 'samples' else ': score them first'}")
    return Table.from_batches(batches)


def _run(label: str) -> Field:
    """The first column of a table of several runs, with the label of one of them."""
    return Field("run", "string", "label of the run", lambda _: label)


def schema_of(fields: Sequence[Field], about: Mapping[str, str] | None = None) -> Schema:
    """The schema of a table with these columns, each with its description. about: facts of the whole table."""
    columns = [
        arro3.core.Field(field.name, _TYPES[field.type], nullable=True, metadata={"description": field.about})
        for field in fields
    ]
    return Schema(columns, metadata=dict(about or {}))


def sample_batches(benchmark: ExportedBenchmark, fields: Sequence[Field]) -> Iterator[RecordBatch]:
    """The samples of a benchmark, some hundred a batch. fields: their columns."""
    rows, schema = benchmark.rows(), schema_of(fields)
    while chunk := list(islice(rows, ROWS_AT_A_TIME)):
        columns = [_column([field.value(row) for row in chunk], field.type) for field in fields]
        yield RecordBatch.from_arrays(columns, schema=schema)


def _inferred(rows: Iterable[Mapping[str, Any]]) -> list[RecordBatch]:
    """The rows as one batch, whose columns have the types of their values; none without rows."""
    records = list(rows)
    kinds = {bool: "bool", int: "int64", str: "string"}
    columns = {name: [record.get(name) for record in records] for name in dict.fromkeys(chain(*records))}
    batch: dict[str, Any] = {}
    for name, values in columns.items():
        types = {kinds.get(type(value), "double") for value in values if value is not None}
        batch[name] = _column(values, types.pop() if len(types) == 1 else "double")
    return [RecordBatch.from_pydict(batch)] if records else []


def _column(values: list[Any], kind: str) -> Array:
    """A column of a type of `FIELDS`; a missing list is empty."""
    if kind != "list<string>":
        return Array(values, type=_TYPES[kind])
    offsets = list(accumulate((len(value or ()) for value in values), initial=0))
    texts = [text for value in values for text in value or ()]
    return list_array(_column(offsets, "int32"), _column(texts, "string"), type=_TYPES[kind])
