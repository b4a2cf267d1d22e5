"""Every chosen sample as a row of a CSV file, for spreadsheets."""

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
from harness.core.inert import csv_cell, safe_name
from harness.exports import ExportedBenchmark, Exporter, File
from harness.exports.frame import fields_of


def csv_tables(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write a file for each benchmark: UTF-8 with a byte-order mark, without which Excel garbles other scripts.

    Behind `fields_of`, each metadata field of the questions has a column of its own, for filters and pivot tables.
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
"""Numbers with a sign between them that a spreadsheet takes as a date or a time: 3:2, 1/2, 1-2."""

_PREFIX = "metadata."
"""Beginning of the name of a metadata field's column."""


def _plain(value: Any) -> Any:
    """A value of a metadata field as text or number; lists and mappings as JSON."""
    if value is None or isinstance(value, int | float):
        return value
    return without_lone_surrogates(value if isinstance(value, str) else codec.encode(value).decode())


def _cell(value: Any) -> Any:
    """A value as it stands in the file. NUL is left out, since readers of CSV end a text there.

    An apostrophe goes before a text that a spreadsheet would run, or turn into a date or a time.
    """
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else codec.encode(value).decode()
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "")
    return f"'{text}" if _DATE_OR_TIME.fullmatch(text) else csv_cell(text)


EXPORTER = Exporter(kind="samples", write=csv_tables)
