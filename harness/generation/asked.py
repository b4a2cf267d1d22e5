"""The questions of a session by their ids: looked up when they are asked, since a large set is kept packed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from harness.core.records import Question

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet


class Asked(Mapping[tuple[str, str], Question]):
    """By (benchmark, question_id)."""

    def __init__(self, sets: Iterable[QuestionSet]) -> None:
        self._sets = {one.name: one for one in sets}

    def __getitem__(self, key: tuple[str, str]) -> Question:
        name, question_id = key
        chosen = self._sets[name]
        for place in chosen.places.candidates(question_id):
            question = chosen.questions[place]
            if question.question_id == question_id:
                return question
        raise KeyError(key)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((name, question.question_id) for name, chosen in self._sets.items() for question in chosen.questions)

    def __len__(self) -> int:
        return sum(len(chosen.questions) for chosen in self._sets.values())
