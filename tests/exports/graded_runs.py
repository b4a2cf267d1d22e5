"""A small run on disk: questions, samples in a real journal, graded and scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core import codec
from harness.core.files import write_atomically
from harness.core.records import Message, Question, Sample, Timing, Usage
from harness.grading import grade
from harness.runs import BenchmarkRecord, Journal, Manifest, Plan, RunFolder
from harness.runs import questions as question_file
from harness.runs.line_file import write_lines
from harness.scoring.score import score_benchmark

SYSTEM = "Think first."


def question(number: int, benchmark: str = "own") -> Question:
    """What is `number` plus 1?"""
    return Question(
        benchmark=benchmark,
        question_id=f"q{number}",
        messages=(Message("system", SYSTEM), Message("user", f"What is {number} + 1? 中文 \\frac{{1}}{{2}}")),
        references=(str(number + 1),),
        kind="integer",
        metadata={"level": number},
        row_digest=f"row {number}",
        prompt_digest=f"prompt {number}",
    )


def sample(number: int, index: int, text: str | None, benchmark: str = "own", **fields: Any) -> Sample:
    """A reply to `question(number)`."""
    given: dict[str, Any] = {
        "reasoning": None,
        "finish_reason": "stop",
        "usage": Usage(prompt_tokens=11, completion_tokens=7),
        "timing": Timing(started=1_767_225_600.0 + index, first_token=0.5, total=2.0),
        "endpoint": "http://10.0.0.1:8000/v1",
        "seed": 1000 + index,
        **fields,
    }
    return Sample(benchmark=benchmark, question_id=f"q{number}", sample_index=index, text=text, **given)


def write_run(
    path: Path,
    samples: Mapping[str, Sequence[Sample]] | Sequence[Sample],
    *,
    questions: int = 3,
    of_each: int = 4,
    settings: dict[str, Any] | None = None,
    identity: dict[str, Any] | None = None,
    scored: bool = True,
) -> RunFolder:
    """A run of these samples, by benchmark (else of "own")."""
    by_name = samples if isinstance(samples, Mapping) else {"own": samples}
    folder = RunFolder(path)
    folder.create()
    asked_settings = {"model": "org/model-7b", "sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 64}}
    record = BenchmarkRecord(
        identity={**asked_settings, **(identity or {})}, plan=Plan(samples=of_each), settings=settings or {}
    )
    Manifest(
        harness_version="0.1.0",
        created="2026-01-01T00:00:00+00:00",
        model="org/model-7b",
        benchmarks=dict.fromkeys(by_name, record),
    ).save(folder)
    for name, listed in by_name.items():
        files = folder.benchmark(name)
        files.create()
        question_file.write(files, [question(number, name) for number in range(questions)])
        with Journal.open(files) as journal:
            for one in listed:
                journal.append(one)
        if scored:
            asked_by_id = {question.question_id: question for question in question_file.read(files)}
            graded = [grade(asked_by_id[sample.question_id], sample) for sample in listed]
            write_lines(files.grades, graded)
            score = score_benchmark(list(asked_by_id.values()), graded, of_each)
            write_atomically(files.scores, codec.pretty(score))
    return folder


def varied(benchmark: str = "own") -> list[Sample]:
    """Right, wrong, cut, equal, thoughtful, empty and hostile replies to three questions."""
    return [
        sample(0, 0, r"So \boxed{1}.", benchmark),
        sample(0, 1, r"So \boxed{1}.", benchmark),  # equal to the first
        sample(0, 2, r"I am sure, and say it at length: \boxed{1}", benchmark),
        sample(0, 3, r"So \boxed{2}.", benchmark),  # wrong
        sample(1, 0, r"\boxed{2}", benchmark, reasoning="\nOne and one.\n"),
        sample(1, 1, r"Cut \boxed{2}", benchmark, finish_reason="length"),
        sample(1, 2, None, benchmark, reasoning="still thinking", finish_reason="length"),
        sample(1, 3, "<think>hm</think>\n\\boxed{2}", benchmark),
        sample(2, 0, "a lone \ud800 half, \u2028 a line, \x85: \\boxed{3}", benchmark),
        sample(2, 1, "", benchmark),
    ]
