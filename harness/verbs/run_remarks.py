"""The sentences that hold for all scores of a run, in the tables of a sweep and in a report."""

from __future__ import annotations

from harness.runs import RunFolder
from harness.verbs import former_files, same_replies


def remarks(folder: RunFolder) -> list[str]:
    """Sentences about files of the model that are no longer those of the samples, and about a step that repeats the
    step before; often none.
    """
    return [*former_files.remarks(folder), *same_replies.remarks(folder)]
