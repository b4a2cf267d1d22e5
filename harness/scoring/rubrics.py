"""The rubric by which a judge decided a run's samples: its text, and since when it is used.

Both are read from the folders of the judges' replies (`judge_replies`). A person's verdict that is older than
the rubric was given under other rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from harness.core.errors import StoreError
from harness.core.records import Grade
from harness.grading.second.judge import prompt_of
from harness.grading.second.judge_prompts import RUBRIC, rule_in
from harness.grading.verdict import JUDGE_RULE
from harness.runs import questions as question_file
from harness.runs.layout import BenchmarkFolder
from harness.scoring.judge_replies import judges_of


class Rubric(NamedTuple):
    """A user's rubric. text: as the judge got it. since: when a judge of this run was first asked by it."""

    text: str
    since: datetime


def rubric_of(folder: BenchmarkFolder, grades: Iterable[Grade]) -> Rubric | None:
    """The rubric by which a judge decided some of `grades`; None without one, with several, or if its replies are gone.

    folder: of the benchmark in the run.
    """
    prompts = {prompt_of(grader) for grader in {grade.grader for grade in grades if grade.rule == JUDGE_RULE}}
    if len(prompts) != 1 or not (prompt := prompts.pop()).startswith(RUBRIC):
        return None
    return min(_stored_rubrics(folder, prompt), key=lambda rubric: rubric.since, default=None)


def _stored_rubrics(folder: BenchmarkFolder, prompt: str) -> Iterator[Rubric]:
    """Yield the rubric named `prompt` of each judge of the run that was asked by it."""
    for judge, manifest in judges_of(folder):
        try:
            if manifest.benchmarks[folder.name].identity.get("prompt") != prompt:
                continue
            first = next(iter(question_file.read(judge.benchmark(folder.name))), None)
            since = datetime.fromisoformat(manifest.created).astimezone(UTC)
        except (StoreError, ValueError):
            continue  # An audit does not need the rubric, and `harness score` reports the damage.
        if first is not None and first.messages:
            yield Rubric(rule_in(first.messages[-1].content), since)
