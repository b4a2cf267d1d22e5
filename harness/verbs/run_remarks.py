"""The sentences that hold for all scores of a run, in the tables of a sweep and in a report."""

from __future__ import annotations

from collections.abc import Callable

from harness.runs import RunFolder
from harness.verbs import former_files, same_replies


def remarks() -> Callable[[RunFolder], list[str]]:
    """A function that returns sentences about files of a run's model that are no longer those of the samples, and about
    a step that repeats the step before; often none. Only the first such step gets the advice.
    """
    repeated: list[str] = []

    def of_run(folder: RunFolder) -> list[str]:
        sentences = same_replies.remarks(folder)
        shown = [sentence.removesuffix(same_replies.ADVICE) if repeated else sentence for sentence in sentences]
        repeated.extend(sentences)
        return [*former_files.remarks(folder), *shown]

    return of_run
