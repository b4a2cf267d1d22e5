"""A small run, whole or in parts, written as a run writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.records import Key, Question, Sample, ServerFacts, Timing, Usage
from harness.runs import BenchmarkRecord, Manifest, Plan, RunFolder, questions, record
from harness.runs.manifest import Provenance

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
