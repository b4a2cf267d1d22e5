"""A small run on disk: questions, samples in a real journal, graded and scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core import codec
from harness.core.files import write_atomically
from harness.core.records import Message, Question, Sample, Timing, Usage
from harness.grading import grade
from harness.runs import RunFolder
from harness.runs.line_file import write_lines
from harness.scoring.benchmark_score import score_benchmark
from tests.runs import recorded

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
    given = {
        "usage": Usage(prompt_tokens=11, completion_tokens=7),
        "timing": Timing(started=1_767_225_600.0 + index, first_token=0.5, total=2.0),
        "endpoint": "http://10.0.0.1:8000/v1",
        "seed": 1000 + index,
    }
    return recorded.sample(f"q{number}", index, text, benchmark=benchmark, **{**given, **fields})


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
    asked_settings = {"model": "org/model-7b", "sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 64}}
    whole = {**asked_settings, **(identity or {})}
    for name, listed in (samples if isinstance(samples, Mapping) else {"own": samples}).items():
        asked = [question(number, name) for number in range(questions)]
        folder = recorded.write_run(path, asked, listed, planned=of_each, identity=whole, settings=settings or {})
        if scored:
            files = folder.benchmark(name)
            asked_by_id = {question.question_id: question for question in asked}
            graded = [grade(asked_by_id[sample.question_id], sample) for sample in listed]
            write_lines(files.grades, graded)
            write_atomically(files.scores, codec.pretty(score_benchmark(asked, graded, of_each)))
    return RunFolder(path)


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


def complete(benchmark: str, questions: int) -> list[Sample]:
    """A sample of every question; those of every third are wrong."""
    return [sample(n, 0, rf"\boxed{{{n + 1 + (n % 3 == 0)}}}", benchmark) for n in range(questions)]
