"""Every chosen sample as a row of a Parquet file, with a dictionary of the fields in its schema and beside it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from harness.core import codec
from harness.core.about import install_line
from harness.core.errors import UsageError
from harness.core.files import replacing, write_atomically
from harness.core.inert import safe_name
from harness.exports import ExportedBenchmark, Exporter, File
from harness.exports.fields import fields_of

ROWS_AT_A_TIME = 500
"""Number of samples that are held in memory and then written as one row group."""


def parquet(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write a file for each benchmark, and `fields.json`. Raises `UsageError` if pyarrow is not installed."""
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError as error:
        raise UsageError(f"Parquet needs pyarrow: {install_line('parquet')}") from error
    fields = fields_of(benchmarks)
    types = {"list<string>": pa.list_(pa.string())}
    schema = pa.schema(
        [
            pa.field(
                field.name,
                types.get(field.type) or pa.type_for_alias(field.type),
                metadata={"description": field.about},
            )
            for field in fields
        ]
    )
    files = []
    for benchmark in benchmarks:
        path, n = out / f"{safe_name(benchmark.name)}.parquet", 0
        rows, manifest = benchmark.rows(), benchmark.manifest
        about = {"model": manifest.model, "harness_version": manifest.harness_version}
        with replacing(path) as file, ParquetWriter(file, schema.with_metadata(about)) as writer:
            while chunk := list(islice(rows, ROWS_AT_A_TIME)):
                columns = {field.name: [field.value(row) for row in chunk] for field in fields}
                writer.write_table(pa.Table.from_pydict(columns, schema=writer.schema))
                n += len(chunk)
        files.append(File(path, n))
    dictionary = [{"field": field.name, "type": field.type, "about": field.about} for field in fields]
    write_atomically(out / "fields.json", codec.pretty(dictionary))
    return [*files, File(out / "fields.json")]


EXPORTER = Exporter(kind="samples", write=parquet)
