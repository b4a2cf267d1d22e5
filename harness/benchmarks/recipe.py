"""A run's note of how its questions were made, so that resuming the run need not make them again.

The note has a digest of everything from which questions are made (the recipe). If a resumed run computes the same
digest, it takes the questions from its own questions.jsonl and reads neither data nor prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from harness.core.records import Question


class RecipeNote(msgspec.Struct, frozen=True, kw_only=True):
    """The note for one benchmark of a run.

    recipe: digest of data, card, prompt, selection and the harness's version. file: SHA-256 that the run's
    questions.jsonl has while it holds exactly these questions in this order. Other fields: see
    `harness.benchmarks.questions.QuestionSet`.
    """

    recipe: str
    file: str
    n_all: int
    rows_digest: str
    dataset_digest: str
    origin: str
    notes: tuple[str, ...] = ()


class StoredQuestions(NamedTuple):
    """The questions in a run's questions.jsonl, with the run's note of how they were made."""

    note: RecipeNote
    questions: Sequence[Question]
