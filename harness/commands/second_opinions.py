"""Grades the samples of a run with a second grader. It changes no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.core.records import Key
from harness.grading.second.second_opinion import Agreement, agreement, second_verdicts
from harness.runs import Manifest, RunFolder, grades, questions, read_samples
from harness.runs.grades import read_opinions, replace_opinions
from server_launchers import isolated

if TYPE_CHECKING:
    from harness.options.keywords import FilePath


def second_opinions(run: RunFolder, library: str, python: FilePath | None = None) -> dict[str, Agreement]:
    """Grade a scored run with another grader; return, by benchmark, how far it agrees with the stored grades.

    The stored grades stay as they are; the other verdicts are stored beside them. library: the other grader's name,
    such as math-verify. python: the interpreter that has the grader installed; None: the interpreter that runs this.
    Raises `UsageError` if it is not installed.
    """
    agreements = {}
    for name in Manifest.load(run).benchmarks:
        folder = run.benchmark(name)
        by_id = {question.question_id: question for question in questions.read(folder)}
        theirs = dict[Key, bool | None]()
        try:
            second_verdicts(
                library, by_id, read_samples(folder), python=str(python or isolated.PYTHON), verdicts=theirs
            )
        finally:  # an interrupted grading stores its verdicts so far, and leaves earlier ones on the other samples
            earlier = {each.key: each.correct for each in read_opinions(folder) if each.grader == library}
            replace_opinions(folder, library, earlier | theirs)
        agreements[name] = agreement(grades.read(folder), theirs)
    return agreements
