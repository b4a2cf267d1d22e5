"""Matching another tool's rows to the questions of a benchmark, by their texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from harness.benchmarks.prompts import without_instruction
from harness.core.errors import UsageError, option
from harness.core.inert import visible
from harness.core.records import Question, Sample
from harness.foreign.numbering import SampleNumbers
from harness.foreign.outputs import Pairs


class ByText:
    """An index of questions by their text, with and without an instruction at its end."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self._by_text: dict[str, list[Question]] = {}
        for question in questions:
            text = text_of(question)
            for form in {text, _bare(text)}:
                self._by_text.setdefault(form, []).append(question)

    def of(self, row_question: Question) -> list[Question]:
        """Find the benchmark's questions that a row of another tool's file may answer.

        There are several if the benchmark repeats a text and neither id nor reference tells the questions apart."""
        text = text_of(row_question)
        candidates = self._by_text.get(text) or self._by_text.get(_bare(text)) or []
        named = [question for question in candidates if question.question_id == row_question.question_id]
        equal = [question for question in candidates if question.references == row_question.references]
        return named or equal or candidates


class Recognised:
    """A tool's (question, sample) pairs, in which the file's questions are replaced by a benchmark's questions.

    So ids, references and rules are the benchmark's. A row that lacks the question's text is matched by its reference,
    if only one question has that reference.
    """

    def __init__(self, path: Path, pairs: Pairs, questions: Sequence[Question], name: str) -> None:
        """path: the file of outputs. name: the benchmark. Both are for messages."""
        self._path, self._pairs, self._name = path, pairs, name
        self._questions, self._by_text = questions, ByText(questions)

    def __iter__(self) -> Iterator[tuple[Question, Sample]]:
        """Raises `UsageError` at the first row that matches no question of the benchmark."""
        by_row_id: dict[str, Question] = {}
        taken: set[str] = set()
        numbers = SampleNumbers()
        for row_question, sample in self._pairs:
            question = by_row_id.get(row_question.question_id)
            if question is None:
                question = by_row_id[row_question.question_id] = self._question(row_question, taken)
                taken.add(question.question_id)
            # Several questions of the file may be one of the benchmark.
            index = numbers.give(question.question_id, sample.sample_index)
            yield (
                question,
                msgspec.structs.replace(
                    sample,
                    benchmark=question.benchmark,
                    question_id=question.question_id,
                    sample_index=index,
                    prompt_digest=question.prompt_digest if text_of(row_question) == text_of(question) else "",
                ),
            )

    def _question(self, row_question: Question, taken: set[str]) -> Question:
        """The benchmark's question that a row answers. taken: ids of questions that earlier rows answer. Raises
        `UsageError`."""
        text, name = text_of(row_question), visible(self._name)
        if text:
            candidates = self._by_text.of(row_question)
            what = f"asks {visible(text, 100)!r}, which {name} does not"
        else:
            candidates = [question for question in self._questions if question.references == row_question.references]
            if len(candidates) != 1 or candidates[0].question_id in taken:
                candidates = []
            what = f"has no text, and its reference does not belong to exactly one question of {name}"
        if not candidates:
            raise UsageError(
                f"{visible(str(self._path))}: the question {visible(row_question.question_id, 100)!r} {what}; leave "
                f"{option('benchmark')} out, or name the column of the question with {option('question_key')}"
            )
        return next((question for question in candidates if question.question_id not in taken), candidates[0])


def text_of(question: Question) -> str:
    """The text that a question asks, without a system prompt."""
    return question.messages[-1].content if question.messages else question.prompt


def _bare(text: str) -> str:
    """`text` without the instruction that a prompt template puts behind a question, such as where to put the answer."""
    return without_instruction(text)[0].strip()
