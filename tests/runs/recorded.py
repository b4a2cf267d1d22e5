"""Samples, runs and appended files to store, and a reader of journals that shares no code with the one under test."""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.errors import StoreError
from harness.core.records import Key, Message, Question, Sample, ServerFacts, Timing, Usage
from harness.generation.batching.submission import BatchLedger
from harness.runs import (
    BenchmarkRecord,
    Journal,
    Manifest,
    Plan,
    RunFolder,
    RunLog,
    locked,
    overrides,
    questions,
    record,
)
from harness.runs.manifest import Provenance
from harness.runs.overrides import Override

BENCHMARK = "AIME 2024"


def sample(question_id: str = "q", sample_index: int = 0, text: str | None = "so 42", **fields: Any) -> Sample:
    """A finished sample; short, so that tests over every byte stay quick."""
    given: dict[str, Any] = {
        "benchmark": BENCHMARK,
        "reasoning": None,
        "finish_reason": "stop",
        "usage": Usage(completion_tokens=3),
        "timing": Timing(started=1.5, total=0.25),
        "endpoint": "e",
        **fields,
    }
    return Sample(question_id=question_id, sample_index=sample_index, text=text, **given)


def question(question_id: str = "q", text: str = "What is 6 · 7?", **fields: Any) -> Question:
    """A question of one message."""
    given: dict[str, Any] = {
        "benchmark": BENCHMARK,
        "messages": (Message("user", text),),
        "references": ("42",),
        "kind": "integer",
        "row_digest": "r",
        "prompt_digest": "p",
        **fields,
    }
    return Question(question_id=question_id, **given)


def write_run(
    path: Path,
    asked: Sequence[Question],
    samples: Iterable[Sample],
    *,
    planned: int,
    identity: Mapping[str, Any],
    **record: Any,
) -> RunFolder:
    """A run's folder with a benchmark, the questions' own, beside those that it had before. record: more fields of the
    benchmark's record."""
    folder = RunFolder(path)
    folder.create()
    name = asked[0].benchmark
    created = "2026-01-01T00:00:00+00:00"
    manifest = Manifest.find(folder) or Manifest(harness_version="0", created=created, model=identity["model"])
    added = BenchmarkRecord(identity=dict(identity), plan=Plan(samples=planned), **record)
    manifest.extend(name, added).save(folder)
    append(folder, name, samples)
    questions.write(folder.benchmark(name), asked)
    return folder


def append(folder: RunFolder, benchmark: str, samples: Iterable[Sample]) -> None:
    """Store samples as a run does."""
    with Journal.open(folder.benchmark(benchmark)) as journal:
        for one in samples:
            journal.append(one)


def intact_lines(data: bytes) -> list[dict[str, Any]]:
    """The records that count in a journal's bytes, by json and zlib alone."""
    records = []
    for line in data.split(b"\n"):
        body, mark, rest = line.rpartition(b',"crc":"')
        if mark and rest.endswith(b'"}') and len(rest) == 10 and b"%08x" % zlib.crc32(body) == rest[:8]:
            records.append(json.loads(line))
    return records


def intact_texts(data: bytes) -> dict[Key, str | None]:
    """The text of the first intact record of each key."""
    texts: dict[Key, str | None] = {}
    for line in intact_lines(data):
        texts.setdefault(Key(line["question_id"], line["sample_index"]), line["text"])
    return texts


NAME = "sums"
IDENTITY = {"model": "m", "sampling": {"temperature": 0.6}, "seed": 0}


def asked(n: int) -> list[Question]:
    return [
        Question(
            benchmark=NAME,
            question_id=f"q{i}",
            prompt=f"{i}+1?",
            references=(str(i + 1),),
            kind="integer",
            metadata={"level": str(i % 2)},
            row_digest=f"r{i}",
            prompt_digest=f"p{i}",
        )
        for i in range(n)
    ]


def sampled(question: int, index: int, text: str | None = None) -> Sample:
    """A sample whose every number depends on its key alone."""
    n = 31 * question + 7 * index
    answer = question + 1 + (n % 3 == 0)
    return Sample(
        benchmark=NAME,
        question_id=f"q{question}",
        sample_index=index,
        text=rf"so \boxed{{{answer}}}" if text is None else text,
        reasoning=f"thought {n}" if n % 4 else None,
        finish_reason="length" if n % 11 == 0 else "stop",
        usage=Usage(prompt_tokens=9 + question, completion_tokens=100 + n * 13 % 997, reasoning_tokens=n % 50),
        timing=Timing(
            started=1000 + n * 0.37 % 5, total=0.1 + n * 0.011, first_token=0.01 * (n % 9), last_token=0.1 + n * 0.01
        ),
        endpoint=f"http://h{n % 2}:8000/v1",
        attempts=1 + n % 2,
    )


def write(
    path: Path,
    samples: Iterable[Sample],
    *,
    n_questions: int = 0,
    planned: int,
    listed: Sequence[Question] = (),
    shard: str | None = None,
    question_ids: Sequence[str] | None = None,
    identity: Mapping[str, Any] = IDENTITY,
    failed: Sequence[Key] = (),
    servers: Mapping[str, ServerFacts] | None = None,
) -> RunFolder:
    """A run folder with these samples, without syncs. listed: its questions; the first `n_questions` if none are given.
    failed: keys of which a request failed, as the log tells."""
    folder = RunFolder(path)
    files = folder.benchmark(NAME)
    files.path.mkdir(parents=True)
    listed = listed or asked(n_questions)
    part = {} if shard is None else {"shard": {"part": shard, "selection": "s"}}
    provenance = Provenance()
    if servers:
        provenance = provenance.after("2026-01-01T00:00:00+00:00", servers, [])
    manifest = Manifest(
        harness_version="1",
        created="2026-01-01T00:00:00+00:00",
        model=str(identity["model"]),
        provenance=provenance,
        benchmarks={
            NAME: BenchmarkRecord(
                identity={**identity, **part},
                plan=Plan(samples=planned, question_ids=None if question_ids is None else list(question_ids)),
                settings={questions.DIGEST: questions.seal(listed)},
            )
        },
    )
    manifest.save(folder)
    questions.write(files, listed)
    files.samples.write_bytes(b"".join(record.encode(sample) for sample in samples))
    event = {"event": "request_failed", "endpoint": "http://h1:8000/v1"}
    folder.log.write_text("".join(json.dumps({**event, "task": [NAME, *key]}) + "\n" for key in failed), "utf-8")
    return folder


@dataclass(frozen=True)
class Appended:
    """A file that something of ours appends to. append: adds the record of a number; read: the numbers that count."""

    path: Callable[[RunFolder], Path]
    append: Callable[[RunFolder, int], None]
    read: Callable[[RunFolder], list[int]]


def override(number: int) -> Override:
    return Override(
        benchmark=BENCHMARK,
        question_id=f"q{number}",
        sample_index=0,
        verdict="correct",
        graded="wrong",
        who="me",
        when="2026-01-02T03:04:05+00:00",
        why="é\u2028 " * (number + 1),
    )


def correct(run: RunFolder, number: int) -> None:
    overrides.append(run.benchmark(BENCHMARK), override(number))


def corrected(run: RunFolder) -> list[int]:
    return [int(correction.question_id[1:]) for correction in overrides.read(run.benchmark(BENCHMARK))]


def plan_batch(run: RunFolder, number: int) -> None:
    BatchLedger(run).planned(str(number), "http://h/v1", [f"ask {number}"])


def planned_batches(run: RunFolder) -> list[int]:
    return [int(name) for name in BatchLedger(run).batches]


def log(run: RunFolder, number: int) -> None:
    with RunLog(run) as events:
        events.write("numbered", number=number)


def logged(run: RunFolder) -> list[int]:
    with run.log.open("rb") as file:
        lines = [line for line in file.read().split(b"\n") if line]
    return [int(line.rpartition(b":")[2][:-1]) for line in lines if line.endswith(b"}")]


FILES = {
    "overrides": Appended(lambda run: run.benchmark(BENCHMARK).overrides, correct, corrected),
    "batches": Appended(lambda run: run.batches, plan_batch, planned_batches),
    "log": Appended(lambda run: run.log, log, logged),
}
EVERY = [*FILES, "samples"]


def appended(run: RunFolder, first: int, last: int) -> Iterator[str]:
    """Append a record of each number to each file: `name/number` once it is acknowledged, or `refused` and why."""
    for number in range(first, last):
        for name, append in {**{name: file.append for name, file in FILES.items()}, "samples": _sampled}.items():
            try:
                append(run, number)
            except StoreError as refused:
                yield f"refused {name}: {refused}"
            else:
                yield f"{name}/{number}"


def _sampled(run: RunFolder, number: int) -> None:
    with locked(run), RunLog(run) as log, Journal.open(run.benchmark(BENCHMARK), log=log) as journal:
        journal.append(sample(f"q{number}"))


if __name__ == "__main__":  # a process whose disk fails: PATH FIRST LAST
    for line in appended(RunFolder(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])):
        os.write(1, line.encode() + b"\n")
