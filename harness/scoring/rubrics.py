"""The rubric of the user's by which a judge decided a run's samples, read from the folders of the judges' replies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from harness.core.errors import StoreError
from harness.core.records import Grade
from harness.grading.second.judge import prompt_of
from harness.grading.second.judge_prompts import RUBRIC, rule_in
from harness.grading.verdict import JUDGE_RULE
from harness.runs import questions as question_file
from harness.runs.layout import BenchmarkFolder
from harness.scoring.judge_replies import judges_of


def rubric_of(folder: BenchmarkFolder, grades: Iterable[Grade]) -> str:
    """The rubric by which a judge decided some of `grades`, as the judge got it; empty without one, with several, or if
    its replies are gone.

    folder: the benchmark's in the run. The rubric is part of each prompt of the judge; that of the first is read.
    """
    graders = {grade.grader for grade in grades if grade.rule == JUDGE_RULE}
    prompts = set(map(prompt_of, graders))
    prompt = prompts.pop() if len(prompts) == 1 else ""
    if not prompt.startswith(RUBRIC):
        return ""
    for judge, manifest in judges_of(folder):
        if manifest.benchmarks[folder.name].identity.get("prompt") == prompt:
            with contextlib.suppress(StoreError):  # `harness score` reports the damage.
                first = next(iter(question_file.read(judge.benchmark(folder.name))), None)
                if first is not None and first.messages:
                    return rule_in(first.messages[-1].content)
    return ""
