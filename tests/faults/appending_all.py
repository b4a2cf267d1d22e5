"""A program that appends to every file of a run: `python -m tests.faults.appending_all RUN FIRST LAST`.

It prints the name and number of each record once it is acknowledged, and goes on where a file refuses one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from harness.core.errors import StoreError
from harness.runs import Journal, RunFolder, RunLock, RunLog
from tests.runs.appended_files import FILES
from tests.runs.recorded import BENCHMARK, sample


def appended(run: RunFolder, first: int, last: int) -> Iterator[str]:
    """A record of each number to each file: `name/number` once it is acknowledged, or `refused` and why."""
    for number in range(first, last):
        for name, append in {**{name: file.append for name, file in FILES.items()}, "samples": _sampled}.items():
            try:
                append(run, number)
            except StoreError as refused:
                yield f"refused {name}: {refused}"
            else:
                yield f"{name}/{number}"


def _sampled(run: RunFolder, number: int) -> None:
    with RunLock(run), RunLog(run) as log, Journal.open(run.benchmark(BENCHMARK), log=log) as journal:
        journal.append(sample(f"q{number}"))


if __name__ == "__main__":
    for line in appended(RunFolder(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])):
        os.write(1, line.encode() + b"\n")
