"""Twins: questions derived from another benchmark's questions with different numbers or names, which test the same
skill.

A twin benchmark's card names the benchmark of the originals (`twin_of`) and the column that names each twin's original.
A model that has memorized the originals, rather than learned to solve them, does better on the originals than on their
twins. The drop is the accuracy on the originals minus the accuracy on their twins, paired: all samples of an original's
twins count as samples of one question, so each original has the same weight however many twins it has.

    an original is named by      example
    its question id              `2024-I-4`
    words of its prompt          the whole text of the question, which occurs in only one question's prompt

Twins without a unique original, and originals without a twin, count in neither accuracy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from harness.core.packed import Packed
from harness.core.records import Grade, Question
from harness.scoring.stats import Estimate
from harness.scoring.tally import QuestionTally

TWIN_OF = "twin_of"
"""The field of a question's metadata that names the benchmark of its original."""

ORIGINAL = "original"
"""The field of a question's metadata that names its original."""


class TwinDrop(msgspec.Struct, frozen=True, kw_only=True):
    """The drop in accuracy from the original questions to their twins, which are the same questions with different
    numbers.
    """

    original: str
    """Name of the benchmark with the original questions."""
    n_originals: int
    """Number of original questions that have samples and at least one twin with samples."""
    n_twins: int
    """Number of twins of these original questions."""
    n_unpaired: int
    """Number of twins and original questions that have no counterpart."""
    n_missing: int
    """Number of planned samples missing on either side. Intervals and p-values account for every possible verdict on
    the missing samples.
    """
    original_accuracy: float
    """Accuracy on the original questions, as a fraction."""
    twin_accuracy: float
    """Accuracy on the twins, as a fraction."""
    drop: Estimate
    """Accuracy on the original questions minus accuracy on the twins, as a fraction."""
    p_sampling: float
    """p-value for the same questions and twins, sampled again."""
    p_question: float | None
    """p-value for new questions and twins of the same kind; None if there is only one original question."""
    detectable: float | None
    """Minimum detectable drop (80% power, same questions), as a fraction; None if not even the largest
    possible drop is detectable.
    """


def original_benchmark(question: Question) -> str | None:
    """The benchmark of the question's original; None if the question is not a twin."""
    name = question.metadata.get(TWIN_OF)
    return name if isinstance(name, str) else None


def by_original(originals: Iterable[Question], twins: Sequence[QuestionTally]) -> dict[str, list[QuestionTally]]:
    """Id of an original question → its twins, the same question with different numbers. originals: with their texts."""
    texts = {
        each.question_id: _words(each.prompt or "\n".join(message.content for message in each.messages))
        for each in originals
    }
    named: dict[str, str | None] = {}
    pairs: dict[str, list[QuestionTally]] = {}
    for item in twins:
        name = item.question.metadata.get(ORIGINAL)
        if not isinstance(name, str):
            continue
        # Look up each name only once, because a search by text reads all originals, and an original may have fifty
        # twins.
        if name not in named:
            named[name] = name if name in texts else _only_one_with(_words(name), texts)
        if (original := named[name]) is not None:
            pairs.setdefault(original, []).append(item)
    return pairs


def _only_one_with(text: str, texts: Mapping[str, str]) -> str | None:
    """The id of the only question whose prompt contains `text`; None if no prompt or several prompts contain it."""
    holding = [question_id for question_id, prompt in texts.items() if text and text in prompt]
    return holding[0] if len(holding) == 1 else None


def _words(text: str) -> str:
    """The text with whitespace collapsed to single spaces, because copies of a benchmark differ in whitespace."""
    return " ".join(text.split())


def as_one(original: QuestionTally, twins: Sequence[QuestionTally]) -> QuestionTally:
    """All samples of the twins, as if they were samples of their original."""
    return QuestionTally.of(
        question=original.question,
        grades=Packed(Grade, chain.from_iterable(item.grades for item in twins)),
        planned=sum(item.planned for item in twins),
        independent=sum(item.independent for item in twins) if any(item.has_copies for item in twins) else None,
    )
