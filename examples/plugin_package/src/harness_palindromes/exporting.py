"""An exporter: a function of the run's benchmarks and a folder that returns the files it has written."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def lengths(benchmarks: Sequence[Any], folder: Path) -> list[Path]:
    """Write a CSV file per benchmark: question, sample, verdict, characters of the reply."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, one in enumerate(benchmarks):
        path = folder / f"lengths-{number}.csv"
        with path.open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["question", "sample", "verdict", "characters"])
            for row in one.rows():
                verdict = row.grade.verdict if row.grade is not None else ""
                length = len(row.sample.text or "")
                table.writerow([row.question.question_id, row.sample.sample_index, verdict, length])
        written.append(path)
    return written
