"""Export every selected sample as a row of a Parquet file, with a dictionary of the fields in its schema and next to
it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from arro3.core import RecordBatch, RecordBatchReader, Schema
from arro3.io import write_parquet

from harness.core import codec
from harness.core.files import replacing, write_atomically
from harness.core.sanitize import safe_name
from harness.exports import ExportedBenchmark, Exporter, File
from harness.exports.frame import ROWS_AT_A_TIME, Field, fields_of, images_field, sample_batches, schema_of


def parquet(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write a file for each benchmark, and `fields.json`."""
    common = fields_of(benchmarks)
    has_images = any(question.images for each in benchmarks for question in each.questions.values())
    fields, files = common, []
    for benchmark in benchmarks:
        fields = (*common, images_field(benchmark)) if has_images else common
        path, manifest = out / f"{safe_name(benchmark.name)}.parquet", benchmark.manifest
        about = {"model": manifest.model, "harness_version": manifest.harness_version}
        with replacing(path) as file:
            files.append(File(path, _write(benchmark, fields, schema_of(fields, about), file)))
    dictionary = [{"field": field.name, "type": field.type, "about": field.about} for field in fields]
    write_atomically(out / "fields.json", codec.pretty(dictionary))
    return [*files, File(out / "fields.json")]


def _write(benchmark: ExportedBenchmark, fields: Sequence[Field], schema: Schema, file: IO[bytes]) -> int:
    """Write the rows of the file; return their number. Raises the errors of reading samples."""
    n, failure = 0, None

    def batches() -> Iterator[RecordBatch]:
        nonlocal n, failure
        try:
            for batch in sample_batches(benchmark, fields):
                n += batch.num_rows
                yield batch
        except BaseException as error:
            failure = error
            raise

    disk = _Disk(file)
    try:
        # The group size limits how much the library keeps in memory.
        reader = RecordBatchReader.from_batches(schema, batches())
        write_parquet(reader, cast("IO[bytes]", disk), compression="snappy", max_row_group_size=ROWS_AT_A_TIME)
    except Exception:
        if failure is not None:  # the library raises its own error instead
            raise failure from None
        raise
    if disk.error is not None:
        raise disk.error
    return n


class _Disk(io.RawIOBase):
    """A file to be written that keeps the error of a failed write: the library would panic if it was raised."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write unless a write has failed. Returns the length of the data."""
        if self.error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self.error = error
        return len(data)


EXPORTER = Exporter(kind="samples", write=parquet)
