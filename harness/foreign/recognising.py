"""Which question of a known set another tool's row is about, by its text; and outputs as replies to such a set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from harness.benchmarks.prompts import without_instruction
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.records import Question, Sample
from harness.core.wording import option
from harness.foreign.outputs import Pairs


class ByText:
    """Questions by the text that is asked, with or without an instruction at its end."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self._known: dict[str, list[Question]] = {}
        for question in questions:
            text = text_of(question)
            for form in {text, _bare(text)}:
                self._known.setdefault(form, []).append(question)

    def of(self, asked: Question) -> list[Question]:
        """The questions that `asked` may be; several where the set repeats one, and id and reference leave it open."""
        text = text_of(asked)
        found = self._known.get(text) or self._known.get(_bare(text)) or []
        named = [question for question in found if question.question_id == asked.question_id]
        equal = [question for question in found if question.references == asked.references]
        return named or equal or found


class Recognised:
    """Outputs whose questions are those of a known set: with its ids, references and rules. Where a tool kept no text,
    a question is told by its reference, if no other has it."""

    def __init__(self, path: Path, pairs: Pairs, questions: Sequence[Question], name: str) -> None:
        """path: of the outputs; name: of the set; both for the refusal."""
        self._path, self._pairs, self._name = path, pairs, name
        self._questions, self._known = questions, ByText(questions)

    def __iter__(self) -> Iterator[tuple[Question, Sample]]:
        """Raises `UsageError` at the first row that asks something else: it is another set's, or was put otherwise."""
        chosen: dict[str, Question] = {}
        taken: set[str] = set()
        before: Counter[str] = Counter()
        for asked, sample in self._pairs:
            question = chosen.get(asked.question_id)
            if question is None:
                question = chosen[asked.question_id] = self._question(asked, taken)
                taken.add(question.question_id)
            index = max(before[question.question_id], sample.sample_index)  # some before it may be missing there
            before[question.question_id] = index + 1
            yield (
                question,
                msgspec.structs.replace(
                    sample,
                    benchmark=question.benchmark,
                    question_id=question.question_id,
                    sample_index=index,
                    prompt_digest=question.prompt_digest if text_of(asked) == text_of(question) else "",
                ),
            )

    def _question(self, asked: Question, taken: set[str]) -> Question:
        text, name = text_of(asked), visible(self._name)
        if text:
            found = self._known.of(asked)
            what = f"asks {visible(text, 100)!r}, which {name} does not"
        else:
            found = [one for one in self._questions if one.references == asked.references]
            found = [] if len(found) > 1 or {one.question_id for one in found} & taken else found
            what = f"has no text, and its reference is not that of one question of {name} alone"
        if not found:
            raise UsageError(
                f"{visible(str(self._path))}: the question {visible(asked.question_id, 100)!r} {what}; leave "
                f"{option('benchmark')} out, or name the column of the question with {option('question_key')}"
            )
        return next((one for one in found if one.question_id not in taken), found[0])


def text_of(question: Question) -> str:
    """What the user asks, without a system prompt."""
    return question.messages[-1].content if question.messages else question.prompt


def _bare(text: str) -> str:
    return without_instruction(text)[0].strip()
