"""Samples to store, runs that hold them, and a reader of journals that shares no code with the one under test."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.records import Key, Question, Sample, Timing, Usage
from harness.runs import BenchmarkRecord, Journal, Manifest, Plan, RunFolder, questions

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
    for record in intact_lines(data):
        texts.setdefault(Key(record["question_id"], record["sample_index"]), record["text"])
    return texts
