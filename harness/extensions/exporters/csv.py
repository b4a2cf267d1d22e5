"""Export every selected sample as a row of a CSV file, for spreadsheets."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from harness.core import codec
from harness.core.codec import without_lone_surrogates
from harness.core.files import replacing
from harness.core.sanitize import csv_cell, safe_name
from harness.exports import ExportedBenchmark, Exporter, File
from harness.exports.frame import fields_of


def csv_tables(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write a file for each benchmark: UTF-8 with a byte-order mark, without which Excel garbles other scripts.

    After `fields_of`, each metadata field of the questions has its own column, for filters and pivot tables.
    """
    files = []
    for benchmark in benchmarks:
        path, n = out / f"{safe_name(benchmark.name)}.csv", 0
        with replacing(path) as file:
            text = TextIOWrapper(file, encoding="utf-8-sig", newline="", write_through=True)
            writer = csv.writer(text)
            fields = fields_of([benchmark])
            names = list(dict.fromkeys(name for each in benchmark.questions.values() for name in each.metadata))
            writer.writerow([*(field.name for field in fields), *(_cell(f"{_PREFIX}{name}") for name in names)])
            for row in benchmark.rows():
                metadata = (_cell(_plain(row.question.metadata.get(name))) for name in names)
                writer.writerow([*(_cell(field.value(row)) for field in fields), *metadata])
                n += 1
            text.detach()
        files.append(File(path, n))
    return files


_DATE_OR_TIME = re.compile(r"\s*[0-9][0-9 ]*[:/-][0-9 :/.-]*")
"""Numbers with a separator that a spreadsheet interprets as a date or time: 3:2, 1/2, 1-2."""

_PREFIX = "metadata."
"""Prefix of the column names of metadata fields."""


def _plain(value: Any) -> Any:
    """The value of a metadata field as text or number; lists and mappings as JSON."""
    if value is None or isinstance(value, int | float):
        return value
    return without_lone_surrogates(value if isinstance(value, str) else codec.encode(value).decode())


def _cell(value: Any) -> Any:
    """A value as written to the file. NUL is removed, because CSV readers end a text there.

    An apostrophe precedes a text that a spreadsheet would execute, or convert to a date or time.
    """
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else codec.encode(value).decode()
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "")
    return f"'{text}" if _DATE_OR_TIME.fullmatch(text) else csv_cell(text)


EXPORTER = Exporter(kind="samples", write=csv_tables)
