"""A run's note of how its questions were made, so that a resume need not make them again.

The note holds a digest of everything that questions are made from. Where a resume finds the same digest, it takes the
questions of the run's own questions.jsonl and reads neither data nor prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from harness.core.records import Question


class RecipeNote(msgspec.Struct, frozen=True, kw_only=True):
    """The note of one benchmark.

    recipe: digest of data, card, prompt, selection and version. file: SHA-256 of the run's questions.jsonl, which holds
    these questions in their order and nothing else. The other fields: see `harness.benchmarks.questions.QuestionSet`.
    """

    recipe: str
    file: str
    n_all: int
    rows_digest: str
    dataset_digest: str
    origin: str
    notes: tuple[str, ...] = ()


class StoredQuestions(NamedTuple):
    """The questions that a run stores, with its note of them."""

    note: RecipeNote
    questions: Sequence[Question]
