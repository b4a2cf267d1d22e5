"""The settings of a score's grading: its graders, and what decided the verdicts of a judge."""

from __future__ import annotations

from collections.abc import Mapping

from harness.runs.recorded_settings import in_words
from harness.scoring.score import Score

GRADERS = "graders"
"""The name of the setting that lists the graders."""

JUDGE = "judge: "
"""The name of a judge's option begins with this."""


def grading_settings(score: Score) -> dict[str, object]:
    """Who graded a benchmark, by name: its graders (with the checksum of a file of the user's), and the options of a
    judge that decided samples. A rubric is named as the judge's prompt, by its checksum.
    """
    judge = {} if score.judge_errors is None else score.judge_errors.settings
    options = {f"{JUDGE}{name}": value for name, value in judge.items()}
    return {GRADERS: [*score.graders], **options}


def grading_differences(first: Mapping[str, object], second: Mapping[str, object]) -> list[tuple[str, str, str]]:
    """(name, the first run's value, the second's) of the settings of `grading_settings` that differ, in words."""
    names = dict.fromkeys((*first, *second))
    rows = ((name, in_words(first.get(name)), in_words(second.get(name))) for name in names)
    return [row for row in rows if row[1] != row[2]]
