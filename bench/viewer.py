"""Measures reading a large run: opening it, reading samples, searching; and a full-text index (SQLite FTS5) for
comparison.

    python bench/viewer.py [--questions 817] [--samples 64] [--folder DIR] [--fts]

Makes a run of records of 30–100 kB (817 × 64 take 4.1 GB), prints one line a figure, and removes the run.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from harness.core.records import Grade, Key, Message, Question, Sample, Timing, Usage
from harness.runs import questions, record
from harness.runs.layout import BenchmarkFolder, RunFolder
from harness.runs.line_file import write_lines
from harness.runs.manifest import BenchmarkRecord, Manifest, Plan

BENCHMARK = "large"
RECORD_CHARS = (30_000, 100_000)
_WORDS = ["the", "value", r"$x\frac{1}{2}$", "is", "so", "wait,", "é", "\n\n", '"q"', "中文", "prime", r"\sqrt{3}", "≤"]


def make(path: Path, n_questions: int, n_samples: int) -> RunFolder:
    """A graded run of `n_questions` × `n_samples`."""
    chance = random.Random(0)
    pool = [" ".join(chance.choices(_WORDS, k=30_000)) for _ in range(64)]
    folder = RunFolder(path)
    folder.create()
    benchmark = folder.benchmark(BENCHMARK)
    benchmark.create()
    question_list = [question(number) for number in range(n_questions)]
    questions.write(benchmark, question_list)
    verdicts = []
    with benchmark.samples.open("wb", buffering=1 << 22) as file:
        for number in range(n_questions * n_samples):
            key = Key(f"q{number % n_questions}", number // n_questions)  # in rounds, as a run asks them
            text = chance.choice(pool)
            begin = chance.randrange(1000)
            drawn = sample(key, text[begin : begin + chance.randint(*RECORD_CHARS)], chance.random() < 0.4)
            file.write(record.encode(drawn))
            verdicts.append(grade(drawn))
    write_lines(benchmark.grades, verdicts)
    record_of = BenchmarkRecord(identity={"model": "m", "api": "chat"}, plan=Plan(samples=n_samples))
    Manifest(
        harness_version="bench", created="2026-01-01T00:00:00+00:00", model="m", benchmarks={BENCHMARK: record_of}
    ).save(folder)
    return folder


def question(number: int) -> Question:
    """A question of a large benchmark."""
    return Question(
        benchmark=BENCHMARK,
        question_id=f"q{number}",
        messages=(Message("user", f"What is {number} times two? " * 8),),
        references=(str(2 * number),),
        kind="integer",
        metadata={"level": 1 + number % 5},
        row_digest="",
        prompt_digest="",
    )


def sample(key: Key, reasoning: str, right: bool) -> Sample:
    """A sample of a long reasoning answer."""
    answer = 2 * int(key.question_id[1:]) + (not right)
    return Sample(
        benchmark=BENCHMARK,
        question_id=key.question_id,
        sample_index=key.sample_index,
        text=rf"So the answer is $\boxed{{{answer}}}$.",
        reasoning=reasoning,
        finish_reason="stop",
        usage=Usage(prompt_tokens=100, completion_tokens=len(reasoning) // 4),
        timing=Timing(started=1.8e9, total=300.1, events=9000),
        endpoint="http://127.0.0.1:8000/v1",
    )


def grade(drawn: Sample) -> Grade:
    """Make the grade that the rules would give this sample."""
    text = drawn.text or ""
    answer = text[text.index("{") + 1 : text.index("}")]
    right = int(answer) == 2 * int(drawn.question_id[1:])
    return Grade(
        benchmark=BENCHMARK,
        question_id=drawn.question_id,
        sample_index=drawn.sample_index,
        verdict="correct" if right else "wrong",
        extracted=answer,
        rule="integer",
        grader="rules/1",
        vote=answer,
        span=(text.index("{") + 1, text.index("}")),
        completion_tokens=drawn.usage.completion_tokens,
    )


def evict(path: Path) -> None:
    """Drop the file from the page cache, so that the next read comes from the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def open_and_read(path: Path, *, cold: bool) -> None:
    """Open the run as the viewer does, read samples at random and search; print a line for each figure."""
    from harness.scoring.opened import OpenBenchmark
    from harness.viewer.pages import benchmark_page
    from harness.viewer.search import search

    folder = RunFolder(path)
    benchmark = folder.benchmark(BENCHMARK)
    if cold:
        for file in (benchmark.samples, benchmark.grades, benchmark.questions):
            if file.exists():
                evict(file)
    label = "cold" if cold else "warm"
    begun, used = time.perf_counter(), time.process_time()
    opened = OpenBenchmark(benchmark, Manifest.load(folder).benchmarks[BENCHMARK])
    _ = opened.questions, opened.grades, opened.offsets
    spent = time.perf_counter() - begun
    print(
        f"{label}: open {spent:.2f} s ({time.process_time() - used:.2f} s of CPU), {opened.offsets.n_samples} samples"
    )
    begun, used = time.perf_counter(), time.process_time()
    n_rows = len(benchmark_page(opened, "")["questions"])
    spent = time.perf_counter() - begun
    print(f"{label}: list of {n_rows} questions {spent:.2f} s ({time.process_time() - used:.2f} s of CPU)")
    chance = random.Random(1)
    keys = [key for key, _ in opened.offsets.in_file_order()]
    took = []
    for key in chance.sample(keys, 500):
        begun = time.perf_counter()
        opened.offsets.read(key)
        took.append(time.perf_counter() - begun)
    took.sort()
    print(f"{label}: read a sample: median {1e3 * took[250]:.1f} ms, longest of 500 {1e3 * took[-1]:.1f} ms")
    for needle in (r"no such \words", "is prime ≤ so the prime"):
        if cold:
            evict(benchmark.samples)
        begun = time.perf_counter()
        hits = sum(1 for _ in search(opened, needle))
        spent = time.perf_counter() - begun
        speed = benchmark.samples.stat().st_size / spent / 1e9
        print(f"{label}: search {needle!r}: {hits} hits, {spent:.2f} s, {speed:.2f} GB/s")
    print(f"{label}: memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def over_http(path: Path, *, cold: bool) -> None:
    """Start `harness view` and measure the time until its address, its list of questions and its samples are there, and
    its memory.
    """
    benchmark = RunFolder(path).benchmark(BENCHMARK)
    if cold:
        for file in (benchmark.samples, benchmark.grades, benchmark.questions):
            if file.exists():
                evict(file)
    label = "cold" if cold else "warm"
    begun = time.perf_counter()
    command = [sys.executable, "-m", "harness", "view", str(path), "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as viewer:
        assert viewer.stdout is not None
        address = viewer.stdout.readline().strip()
        printed = time.perf_counter() - begun
        visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(), urllib.request.ProxyHandler({}))
        visitor.open(address).read()
        root = address.partition("?")[0].rstrip("/")
        where = f"run={path.name}&benchmark={BENCHMARK}"
        n_bytes = len(visitor.open(f"{root}/api/benchmark?{where}").read())
        listed = time.perf_counter() - begun
        print(
            f"{label}: harness view prints its address after {printed:.2f} s; "
            f"the list of questions ({n_bytes / 1e6:.1f} MB) is there after {listed:.2f} s"
        )
        chance, took = random.Random(2), []
        for _ in range(200):
            key = f"question=q{chance.randrange(800)}&sample={chance.randrange(16)}"
            begun = time.perf_counter()
            visitor.open(f"{root}/api/sample?{where}&{key}").read()
            took.append(time.perf_counter() - begun)
        took.sort()
        peak = next(line for line in Path(f"/proc/{viewer.pid}/status").read_text().splitlines() if "VmHWM" in line)
        print(f"{label}: a sample over HTTP: median {1e3 * took[100]:.1f} ms, longest of 200 {1e3 * took[-1]:.1f} ms")
        print(f"{label}: memory of harness view at most {int(peak.split()[1]) / 1024:.0f} MB", flush=True)
        viewer.send_signal(signal.SIGINT)


def full_text(benchmark: BenchmarkFolder) -> None:
    """Build an FTS5 index over the texts and query it. It stores no texts and indexes trigrams, since LaTeX needs
    searches for any substring.
    """
    from harness.runs.offsets import SampleOffsets

    path = benchmark.path / "fts.sqlite"
    base = sqlite3.connect(path)
    base.execute("PRAGMA journal_mode=OFF")
    base.execute("PRAGMA synchronous=OFF")
    base.execute("CREATE VIRTUAL TABLE t USING fts5(text, content='', tokenize='trigram')")
    offsets = SampleOffsets(benchmark)
    offsets.refresh()
    begun, n_bytes = time.perf_counter(), 0
    for number, (key, spot) in enumerate(offsets.in_file_order()):
        drawn = offsets.read(key)
        base.execute("INSERT INTO t(rowid, text) VALUES (?, ?)", (number, f"{drawn.reasoning}\n{drawn.text}"))
        n_bytes += spot.length
        if time.perf_counter() - begun > 60:
            break
    base.commit()
    spent = time.perf_counter() - begun
    share = path.stat().st_size / n_bytes
    print(f"FTS5: {n_bytes / 1e6:.0f} MB in {spent:.0f} s, {n_bytes / spent / 1e6:.0f} MB/s, index {share:.2f} of text")
    for needle in ('"no such words"', '"is prime ≤ so the prime"'):
        begun = time.perf_counter()
        try:
            hits = base.execute("SELECT count(*) FROM t WHERE t MATCH ?", (needle,)).fetchone()[0]
            print(f"FTS5: search {needle}: {hits} hits, {time.perf_counter() - begun:.2f} s")
        except sqlite3.OperationalError as error:
            print(f"FTS5: search {needle}: {error}")


def main() -> None:
    """Make a run, measure in fresh processes, remove it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=817)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="where the run is made (default: a temporary folder)")
    parser.add_argument("--fts", action="store_true", help="also build an FTS5 index for a minute")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.open:
        open_and_read(given.open, cold=given.cold)
        return
    base = Path(tempfile.mkdtemp(prefix="viewer-", dir=given.folder))
    try:
        begun = time.perf_counter()
        folder = make(base / "run", given.questions, given.samples)
        benchmark = folder.benchmark(BENCHMARK)
        print(
            f"made {benchmark.samples.stat().st_size / 1e9:.2f} GB in {time.perf_counter() - begun:.0f} s", flush=True
        )
        for flags in ((), ("--cold",)):
            subprocess.run([sys.executable, __file__, "--open", str(folder.path), *flags], check=True)
            over_http(folder.path, cold=bool(flags))
        if given.fts:
            full_text(benchmark)
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
