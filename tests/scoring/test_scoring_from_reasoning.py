"""The second column: what the accuracy would be if reasoning without a final answer were searched."""

from __future__ import annotations

import json
from pathlib import Path

from harness.core.records import GradeRules, Question, Sample
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder
from harness.scoring.pipeline import score_run
from tests.runs import recorded


def sample(index: int, text: str | None, reasoning: str) -> Sample:
    """A sample of the only question; without a final text the budget ended it."""
    ended = "length" if text is None else "stop"
    return recorded.sample("q", index, text, benchmark="made up", reasoning=reasoning, finish_reason=ended)


def run_with(folder: Path, samples: list[Sample], rules: GradeRules | None = None) -> RunFolder:
    """A run that holds these samples of one question, whose answer is 7."""
    of_run = Question(
        benchmark="made up", question_id="q", references=("7",), kind="integer", row_digest="", prompt_digest="",
        rules=rules or GradeRules(),
    )  # fmt: skip
    return recorded.write_run(folder, [of_run], samples, planned=len(samples), identity={"model": "m"})


def test_only_samples_without_an_answer_are_searched_and_their_grades_stay(tmp_path: Path) -> None:
    run = run_with(
        tmp_path / "run",
        [
            sample(0, r"\boxed{7}", "thinking"),
            sample(1, r"\boxed{8}", r"it is \boxed{7}"),  # an answer was given: the reasoning is no matter
            sample(2, None, r"so it must be \boxed{7}"),
            sample(3, None, "no idea yet"),
        ],
    )
    (plain,) = score_run(run, GradingOptions(workers=1))
    assert (plain.accuracy.value, plain.accuracy_from_reasoning) == (0.25, None)
    (score,) = score_run(run, GradingOptions(workers=1, answer_from_reasoning=True))
    assert (score.accuracy.value, score.accuracy_from_reasoning.value) == (0.25, 0.5)
    stored = [json.loads(line) for line in run.benchmark("made up").grades.read_bytes().splitlines()]
    assert [grade["verdict"] for grade in stored] == ["correct", "wrong", "no_answer", "no_answer"]
