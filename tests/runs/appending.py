"""A program that fills a journal and is killed: `python -m tests.runs.appending FOLDER SAMPLES`.

It opens the run's lock and journal, appends every key not yet in the file, and prints each key once acknowledged.
"""

from __future__ import annotations

import os
import sys

from harness.runs import BenchmarkRecord, Journal, Manifest, Plan, RunFolder, RunLock
from tests.runs.recorded import BENCHMARK, sample


def main(path: str, n_samples: int) -> None:
    run = RunFolder(path)
    with RunLock(run):
        manifest = Manifest.start(run, model="m", harness_version="1")
        manifest.extend(BENCHMARK, BenchmarkRecord(identity={"model": "m"}, plan=Plan(samples=n_samples))).save(run)
        with Journal.open(run.benchmark(BENCHMARK)) as journal:
            os.write(1, b"open\n")
            for i in range(n_samples):
                key = (f"q{i % 7}", i // 7)
                if key in journal.keys:
                    continue
                # Bodies from some bytes to some hundred kilobytes, so that a kill also falls within a write.
                journal.append(sample(*key, text="x" * (37 * i * i)))
                os.write(1, f"{key[0]}/{key[1]}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
