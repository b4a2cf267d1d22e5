"""Real run folders, written through `harness.runs`, with seeded verdicts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.core import codec
from harness.core.files import write_atomically
from harness.core.records import Grade, Message, Question, Verdict
from harness.runs import grades as grade_file
from harness.runs import questions as question_file
from harness.runs.layout import RunFolder
from harness.runs.manifest import BenchmarkRecord, Manifest, Plan
from harness.scoring import score_benchmark

Spoil = Callable[[str], str]


def write_run(
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
) -> RunFolder:
    """A run of (benchmark, questions, samples); `spoil` rewrites every foreign text; cut, missing: shares."""
    generator = random.Random(seed)
    folder = RunFolder(path)
    folder.path.mkdir(parents=True)
    records: dict[str, BenchmarkRecord] = {}
    for name, n_questions, n_samples in benchmarks:
        settings = {"model": model, "sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 32768}}
        records[name] = BenchmarkRecord(identity={**settings, **(identity or {})}, plan=Plan(samples=n_samples))
        place = folder.benchmark(name)
        place.create()
        questions = [_question(name, number, n_questions, spoil) for number in range(n_questions)]
        question_file.write(place, questions)
        grades = [
            _grade(question, index, strength * 2 * (1 - number / n_questions), generator, cut, spoil)
            for number, question in enumerate(questions)
            for index in range(n_samples)
            if generator.random() >= missing
        ]
        if scored:
            grade_file.write(place, grades)
            write_atomically(place.scores, codec.pretty(score_benchmark(questions, grades, n_samples)))
    Manifest(harness_version="0.1.0", created="2026-01-01T00:00:00+00:00", model=model, benchmarks=records).save(folder)
    return folder


def _question(name: str, number: int, of: int, spoil: Spoil) -> Question:
    return Question(
        benchmark=name,
        question_id=spoil(f"q{number:03}"),
        messages=(Message("user", spoil(rf"Find the value of $\frac{{{number}}}{{7}}$ in lowest terms.")),),
        references=(spoil(str(number)),),
        kind="integer",
        metadata={"level": spoil(str(1 + 5 * number // of))},
        row_digest=f"row {number}",
        prompt_digest="",
    )


def _grade(question: Question, index: int, chance: float, generator: random.Random, cut: float, spoil: Spoil) -> Grade:
    draw = generator.random()
    verdict: Verdict = "correct" if draw < chance else "no_answer" if draw > 0.97 else "wrong"
    truncated = verdict != "correct" and generator.random() < cut
    answer = question.references[0] if verdict == "correct" else spoil(str(generator.randrange(4)))
    tokens = 32768 if truncated else int(generator.lognormvariate(8.4 if verdict == "correct" else 8.9, 0.5))
    return Grade(
        benchmark=question.benchmark,
        question_id=question.question_id,
        sample_index=index,
        verdict=verdict,
        extracted=None if verdict == "no_answer" else answer,
        rule="integer",
        grader="rules/1",
        vote=None if verdict == "no_answer" else answer,
        truncated=truncated,
        completion_tokens=tokens,
    )
