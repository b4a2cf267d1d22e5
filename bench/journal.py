"""Measures the journal: appending records of about 100 kB, and the resume of a large journal.

    python bench/journal.py [MEGABYTES] [--folder DIR] [--records N]

Prints one line a figure. Times depend on the disk; compare runs on one machine only.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.core.records import Sample, Timing, Usage
from harness.runs import Journal, RunFolder

RECORD_CHARS = 88_000
"""Characters of text in a record, which takes about 100 kB in the file."""

_WORDS = ["the", "value", r"x\frac{1}{2}", "is", "so", "wait,", "é", "\n\n", '"q"', "中文"]


def sample(number: int, text: str) -> Sample:
    """A sample of a long reasoning answer."""
    return Sample(
        benchmark="bench",
        question_id=f"question-{number // 64}",
        sample_index=number % 64,
        text=r"so \boxed{42}",
        reasoning=text,
        finish_reason="stop",
        usage=Usage(prompt_tokens=100, completion_tokens=9000),
        timing=Timing(started=1.8e9, queued=0.1, first_token=0.2, last_token=300.0, total=300.1, events=9000),
        endpoint="http://127.0.0.1:8000/v1",
        server_model="m",
        seed=number + 1,
    )


def texts(count: int) -> list[str]:
    """Different texts of `RECORD_CHARS` characters."""
    chance = random.Random(0)
    return [" ".join(chance.choices(_WORDS, k=RECORD_CHARS // 4))[:RECORD_CHARS] for _ in range(count)]


def cpu() -> float:
    """CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def append(folder: Path, n_records: int, interval: float) -> None:
    """Append a record every `interval` seconds (0: all at once) and print the figures."""
    samples = [sample(i, text) for i, text in zip(range(n_records), texts(16) * n_records, strict=False)]
    blocked: list[float] = []
    with Journal.open(RunFolder(folder).benchmark("bench")) as journal:
        before, begin = cpu(), time.perf_counter()
        for sample_record in samples:
            called = time.perf_counter()
            journal.append(sample_record)
            blocked.append(time.perf_counter() - called)
            if interval:
                time.sleep(interval)
        journal.sync()
        wall, used = time.perf_counter() - begin, cpu() - before
    size = RunFolder(folder).benchmark("bench").samples.stat().st_size
    pace = f"every {interval * 1e3:.0f} ms" if interval else "at once"
    print(f"append {pace}: {n_records} records of {size / n_records / 1e3:.0f} kB")
    p50, p99 = (_quantile(blocked, q) * 1e6 for q in (0.5, 0.99))
    print(f"  {'caller blocked':18}{p50:8.1f} µs p50 {p99:8.1f} µs p99")
    print(f"  {'CPU':18}{used / n_records * 1e6:8.1f} µs a record")
    print(f"  {'wall':18}{wall / n_records * 1e3:8.2f} ms a record")


def _quantile(values: list[float], q: float) -> float:
    return sorted(values)[int(len(values) * q)]


def resume(folder: Path) -> None:
    """Open the journal as a resume does and print the figures. Runs in a process of its own."""
    begin = cpu()
    with Journal.open(RunFolder(folder).benchmark("bench")) as journal:
        used, n_keys = cpu() - begin, len(journal.keys)
    size = RunFolder(folder).benchmark("bench").samples.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"resume {n_keys} records, {size / 1e9:.2f} GB: {used:.3f} CPU s, peak {peak:.0f} MB resident")


def generate(folder: Path, megabytes: int) -> None:
    """Write a journal of about `megabytes`."""
    bodies = texts(16)
    journal_folder = RunFolder(folder).benchmark("bench")
    number = 0
    with Journal.open(journal_folder) as journal:
        while journal_folder.samples.stat().st_size < megabytes * 1_000_000:
            for _ in range(100):
                journal.append(sample(number, bodies[number % 16]))
                number += 1
            journal.sync()


def main() -> None:
    """Make the journals, measure them, and remove all files."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("megabytes", nargs="?", type=int, default=200, help="size of the journal to resume")
    arguments.add_argument("--records", type=int, default=500, help="records to append")
    arguments.add_argument("--folder", type=Path, default=None, help="where to write; a temporary folder by default")
    arguments.add_argument("--resume", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.resume is not None:
        resume(options.resume)
        return
    scratch = Path(tempfile.mkdtemp(prefix="journal-bench-", dir=options.folder))
    try:
        append(scratch / "burst", options.records, 0.0)
        append(scratch / "paced", options.records, 0.01)
        generate(scratch / "large", options.megabytes)
        for _ in range(2):
            subprocess.run([sys.executable, __file__, "--resume", str(scratch / "large")], check=True)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
