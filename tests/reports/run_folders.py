"""Real run folders, written through `harness.runs`, with seeded verdicts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.core import codec
from harness.core.files import write_atomically
from harness.core.records import Grade, Message, Question, Timing, Usage, VerdictName
from harness.reports.report import Report, report
from harness.runs import questions as question_file
from harness.runs.layout import RunFolder, RunLog
from harness.runs.line_file import write_lines
from harness.runs.manifest import BenchmarkRecord, Manifest, Plan
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.client_metrics import Workload, workload
from harness.scoring.sample_columns import Observed
from tests.reports.payloads import PAYLOADS
from tests.runs import recorded

Spoil = Callable[[str], str]

_written: dict[str, dict[Path, bytes]] = {}
"""What `write_run` was asked for → the files that it wrote, by their paths in the folder."""


def write_run(path: Path, **asked: Any) -> RunFolder:
    """The run that `_write_run` writes; a second one alike is a copy of the first, which takes a tenth of the time."""
    if "spoil" in asked:
        return _write_run(path, **asked)
    key = repr(sorted(asked.items()))
    if key not in _written:
        folder = _write_run(path, **asked)
        _written[key] = {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()}
        return folder
    for name, content in _written[key].items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return RunFolder(path)


def _write_run(
    path: Path,
    *,
    model: str = "org/model-7b",
    benchmarks: Sequence[tuple[str, int, int]] = (("demo", 6, 4),),
    strength: float = 0.5,
    seed: int = 1,
    identity: dict[str, Any] | None = None,
    spoil: Spoil = lambda text: text,
    cut: float = 0.0,
    missing: float = 0.0,
    scored: bool = True,
    settings: dict[str, Any] | None = None,
    environment: dict[str, Any] | None = None,
    n_failures: int = 0,
    only: int | None = None,
    per_cluster: int | None = None,
) -> RunFolder:
    """A run of (benchmark, questions, samples); `spoil` rewrites every foreign text; cut, missing: shares.

    settings: of its records; environment: of its manifest; n_failures: failed requests in its log. only: the run was
    asked only the first so many questions. per_cluster: questions of each cluster; None: they stand alone.
    """
    generator = random.Random(seed)
    folder = RunFolder(path)
    folder.path.mkdir(parents=True)
    records: dict[str, BenchmarkRecord] = {}
    for name, n_questions, n_samples in benchmarks:
        settings_asked = {"model": model, "sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 32768}}
        records[name] = BenchmarkRecord(
            identity={**settings_asked, **(identity or {})}, plan=Plan(samples=n_samples), settings=settings or {}
        )
        place = folder.benchmark(name)
        place.create()
        questions = [_question(name, number, n_questions, spoil) for number in range(n_questions)][:only]
        if per_cluster is not None:
            questions = [
                msgspec.structs.replace(question, metadata={"cluster": str(number // per_cluster)})
                for number, question in enumerate(questions)
            ]
        if only is not None:
            ids = [question.question_id for question in questions]
            records[name] = msgspec.structs.replace(records[name], plan=Plan(samples=n_samples, question_ids=ids))
        question_file.write(place, questions)
        grades = [
            _grade(question, index, strength * 2 * (1 - number / n_questions), generator, cut, spoil)
            for number, question in enumerate(questions)
            for index in range(n_samples)
            if generator.random() >= missing
        ]
        if scored:
            write_lines(place.grades, grades)
            score = score_benchmark(questions, grades, n_samples)
            score = msgspec.structs.replace(score, workload=_workload(grades, generator))
            write_atomically(place.scores, codec.pretty(score))
    Manifest(
        harness_version="0.1.0",
        created="2026-01-01T00:00:00+00:00",
        model=model,
        benchmarks=records,
        environment=environment or {},
    ).save(folder)
    with RunLog(folder) as log:
        log.write("session_started", missing=1, done=0)
        for number in range(n_failures):
            log.write(
                "request_failed",
                task=[benchmarks[0][0], "q000", 0],
                endpoint=spoil("http://10.0.0.1:8000/v1"),
                kind=("status", "connect")[number % 3 == 0],
                status=None if number % 3 == 0 else 503,
                message=spoil(f"overloaded {number}"),
                attempt=1,
            )
        log.write("session_ended", done=1, failures=n_failures, retries=n_failures, stopped="")
    return folder


def hostile_report(folder: Path, url: str) -> Report:
    """A report in which every foreign text is a payload, each one in turn; url: what the payloads ask."""
    texts = cycle(payload.format(url=url) for payload in PAYLOADS)
    runs = [
        write_run(
            folder / f"run{number}",
            model=PAYLOADS[number].format(url=url),
            benchmarks=[(f"<b>{number}</b>", len(PAYLOADS), 3)],
            identity={f"<i>{number}": next(texts), "nested": {"x": [next(texts)]}},
            spoil=lambda text: f"{next(texts)}{text}",
        )
        for number in range(3)
    ]
    return report(runs)


def _workload(grades: Sequence[Grade], generator: random.Random) -> Workload | None:
    """As if each reply had come at about 40 tokens a second, eight at a time, with a night in between."""
    observed = Observed()
    for place, grade in enumerate(grades):
        seconds = (grade.completion_tokens or 0) / 40
        timing = Timing(
            started=1_767_225_600.0 + 20.0 * place + (36_000.0 if place > len(grades) / 2 else 0.0),
            first_token=min(seconds, generator.uniform(0.2, 0.9)),
            total=seconds,
        )
        usage = Usage(prompt_tokens=100, completion_tokens=grade.completion_tokens, reasoning_tokens=5)
        fields = {"usage": usage, "timing": timing, "endpoint": "http://10.0.0.1:8000/v1"}
        observed.observe(recorded.sample(grade.question_id, text="", attempts=1 + (place % 10 == 0), **fields))
    return workload(observed, np.arange(len(grades)))


def _question(name: str, number: int, of: int, spoil: Spoil) -> Question:
    messages = (Message("user", spoil(rf"Find the value of $\frac{{{number}}}{{7}}$ in lowest terms.")),)
    return Question(
        benchmark=name,
        question_id=spoil(f"q{number:03}"),
        messages=messages,
        references=(spoil(str(number)),),
        kind="integer",
        metadata={"level": spoil(str(1 + 5 * number // of))},
        row_digest=f"row {number}",
        prompt_digest="",
    )


def _grade(question: Question, index: int, chance: float, generator: random.Random, cut: float, spoil: Spoil) -> Grade:
    draw = generator.random()
    verdict: VerdictName = "correct" if draw < chance else "no_answer" if draw > 0.97 else "wrong"
    truncated = verdict != "correct" and generator.random() < cut
    answer = question.references[0] if verdict == "correct" else spoil(str(generator.randrange(4)))
    tokens = 32768 if truncated else int(generator.lognormvariate(8.4 if verdict == "correct" else 8.9, 0.5))
    found = None if verdict == "no_answer" else answer
    return Grade(
        benchmark=question.benchmark,
        question_id=question.question_id,
        sample_index=index,
        verdict=verdict,
        extracted=found,
        rule="integer",
        grader="rules/1",
        vote=found,
        truncated=truncated,
        completion_tokens=tokens,
    )
