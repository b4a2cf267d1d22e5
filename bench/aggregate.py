"""Measures memory and CPU of the last part of `harness score`: grades are sorted, counted and written.

    python bench/aggregate.py [--questions 10000] [--samples 1000]

Samples and grades are made up, without texts and without graders, so that ten million take minutes. Everything after
that is the code of `harness score`. Prints the peak of memory after each stage, and a checksum of the two files that
are written, by which two versions can be compared. Linux only.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness.core.packed import Packed
from harness.core.records import Grade, Message, Question, Sample, Timing, Usage
from harness.grading.processes import pool
from harness.presets.grading import GradingOptions
from harness.runs import BenchmarkFolder, BenchmarkRecord, JournalReport, Plan
from harness.scoring import journal_grades, pipeline


class Journal:
    """A made-up journal: gives samples round by round, as a run stores them."""

    def __init__(self, n_questions: int, samples: int) -> None:
        self.n_questions, self.samples = n_questions, samples
        self.report = JournalReport()

    def __iter__(self) -> Iterator[Sample]:
        for number in range(self.n_questions * self.samples):
            yield Sample(
                benchmark="b",
                question_id=f"question-{number % self.n_questions}",
                sample_index=number // self.n_questions,
                text=None,
                reasoning=None,
                finish_reason="stop",
                usage=Usage(prompt_tokens=30, completion_tokens=500 + number % 700),
                timing=Timing(started=1.8e9 + 0.01 * number, total=5 + number % 7),
                endpoint="http://127.0.0.1:1/v1",
            )


def grade_all(questions: Any, samples: Iterable[Sample], **_: Any) -> Iterator[Grade]:
    """Make up a grade for each sample: two of three are right, and wrong answers are of a hundred kinds."""
    for number, sample in enumerate(samples):
        right = number % 3 != 2
        answer = sample.question_id if right else str(number % 100)
        yield Grade(
            benchmark="b",
            question_id=sample.question_id,
            sample_index=sample.sample_index,
            verdict="correct" if right else "wrong",
            extracted=answer,
            rule="integer",
            grader="rules",
            vote=answer,
            span=(7, 9),
            completion_tokens=sample.usage.completion_tokens,
        )


def question(number: int) -> Question:
    return Question(
        benchmark="b",
        question_id=f"question-{number}",
        messages=(Message("user", "x" * 100),),
        references=(str(number),),
        kind="integer",
        row_digest=f"row {number}",
        prompt_digest=f"prompt {number}",
    )


def show(stage: str) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{stage:10} peak {used.ru_maxrss >> 10} MB, {time.process_time():.0f} s of processor", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=1000, help="of each question")
    arguments = parser.parse_args()
    packed = Packed(Question, map(question, range(arguments.questions)))
    with tempfile.TemporaryDirectory(prefix="aggregate-bench-") as name:
        target = BenchmarkFolder("b", Path(name))
        by_id = journal_grades.ById(packed)
        show("questions")
        with (
            patch.object(
                journal_grades, "read_samples", lambda _folder, **_: Journal(arguments.questions, arguments.samples)
            ),
            patch.object(pool, "grade_all", grade_all),
        ):
            graded = journal_grades.grade_journal(
                target, by_id, workers=1, deadline_s=2, fresh=True, on_graded=lambda _n: None
            )  # fmt: skip
        show("in order")
        pipeline.publish(
            pipeline.GradedBenchmark(
                folder=target,
                record=BenchmarkRecord(identity={}, plan=Plan(samples=arguments.samples)),
                grading=GradingOptions(),
                questions=packed,
                grades=graded.grades,
                warnings=(),
                observed=graded.observed,
                rows=graded.rows,
                planned_rows=graded.rows,
            )
        )
        show("score")
        for path in (target.grades, target.scores):
            print(path.name, hashlib.sha256(path.read_bytes()).hexdigest()[:16])


if __name__ == "__main__":
    main()
