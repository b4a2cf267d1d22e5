"""Measures `harness merge`, which joins shards: seconds, rate and memory; each merge runs in a process of its own.

    python bench/merge.py [--shards 8] [--records 2000] [--characters 20000]

Prints one line a figure: a merge into a new folder, the same merge again, and a copy of the same bytes beside them.
Times depend on the disk; compare runs on one machine only.
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

from harness.core.records import Question, Sample, Timing, Usage
from harness.runs import BenchmarkRecord, Manifest, Plan, RunFolder, questions, record
from harness.runs.merging import merge

SAMPLES = 64
_WORDS = ["the", "value", r"x\frac{1}{2}", "is", "so", "wait,", "é", "\n\n", '"q"', "中文"]


def sample(question: int, index: int, text: str) -> Sample:
    """A sample of a reasoning answer."""
    return Sample(
        benchmark="bench",
        question_id=f"question-{question}",
        sample_index=index,
        text=rf"so \boxed{{{question}}}",
        reasoning=text,
        finish_reason="stop",
        usage=Usage(prompt_tokens=100, completion_tokens=len(text) // 4),
        timing=Timing(started=1.8e9, first_token=0.2, last_token=300.0, total=300.1),
        endpoint="http://127.0.0.1:8000/v1",
    )


def write_shards(scratch: Path, of: int, n_records: int, n_characters: int) -> list[Path]:
    """Write `of` shards as runs write them and return their folders.

    Each has about `n_records` samples, `SAMPLES` of each of its questions, and at least one question. n_characters:
    length of a sample's text.
    """
    chance = random.Random(0)
    texts = [" ".join(chance.choices(_WORDS, k=n_characters // 4))[:n_characters] for _ in range(32)]
    n_questions = max(of, of * n_records // SAMPLES)  # each shard has one at least
    question_list = [
        Question(
            benchmark="bench", question_id=f"question-{n}", prompt="?", references=("1",), kind="integer",
            row_digest=str(n), prompt_digest=str(n),
        )
        for n in range(n_questions)
    ]  # fmt: skip
    settings = {questions.DIGEST: questions.digest_of(question_list)}
    for k in range(of):
        folder = RunFolder(scratch / f"shard{k}")
        files = folder.benchmark("bench")
        files.path.mkdir(parents=True)
        identity = {"model": "m", "shard": {"part": f"{k + 1}/{of}", "selection": "s"}}
        benchmark_record = BenchmarkRecord(identity=identity, plan=Plan(samples=SAMPLES), settings=settings)
        Manifest(harness_version="1", created="2026", model="m", benchmarks={"bench": benchmark_record}).save(folder)
        questions.write(files, question_list)
        with files.samples.open("wb") as file:
            for n in range(k, n_questions, of):
                for i in range(SAMPLES):
                    file.write(record.encode(sample(n, i, texts[(n + i) % len(texts)])))
    return sorted(scratch.glob("shard*"))


def measured(scratch: Path, out: Path) -> None:
    """Merge in this process, and print the seconds, the rate and the memory."""
    started = time.perf_counter()
    merged = merge([RunFolder(path) for path in sorted(scratch.glob("shard*"))], RunFolder(out))
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    (joined,) = merged.benchmarks
    peak = used.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    print(
        f"{joined.n_samples} samples, {joined.n_added} new: {seconds:.1f} s, "
        f"{used.ru_utime + used.ru_stime:.1f} s of CPU, "
        f"{joined.n_samples / seconds:,.0f} samples/s, peak {peak:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--records", type=int, default=2048, help="of each shard, in whole questions of 64")
    parser.add_argument("--characters", type=int, default=20_000, help="of each record's text")
    parser.add_argument("--measure", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measured(*given.measure)
        return
    scratch = Path(tempfile.mkdtemp(prefix="harness-merge-"))
    try:
        shards = write_shards(scratch, given.shards, given.records, given.characters)
        size = sum((shard / "bench" / "samples.jsonl").stat().st_size for shard in shards)
        print(f"{given.shards} shards, {size / 1e9:.2f} GB of samples")
        started = time.perf_counter()
        for shard in shards:
            shutil.copyfile(shard / "bench" / "samples.jsonl", scratch / "copy")
        subprocess.run(["sync", str(scratch / "copy")], check=True)
        print(f"cp of the same bytes: {time.perf_counter() - started:.1f} s")
        for _ in range(2):
            subprocess.run([sys.executable, __file__, "--measure", str(scratch), str(scratch / "out")], check=True)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
