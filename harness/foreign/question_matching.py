"""Matches another tool's rows to the questions of a benchmark by their texts, or by ids if there are no texts.

`Beginning` makes the replies in an unfinished file the first samples of our run. A reply is matched to the question
with the same text, with or without an instruction at the end. Its endpoint is `file:NAME`, and it has no seed and no
times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.benchmarks.prompts import Prompt, bare_text, stem
from harness.benchmarks.questions import QuestionSet
from harness.core.errors import UsageError, near_names
from harness.core.number_text import count_noun
from harness.core.records import FROM_FILE, Question, Sample
from harness.core.sanitize import safe_name, visible
from harness.foreign import outputs
from harness.foreign.outputs import Pairs
from harness.foreign.row_ids import SampleNumbers
from harness.runs.missing import n_planned


class ByText:
    """An index of questions by their text, with and without the surrounding instructions and choices."""

    def __init__(self, questions: Iterable[Question], prompt: Prompt | None = None) -> None:
        """prompt: the questions' prompt, whose instructions may surround the texts; None: only the usual
        instructions.
        """
        self._by_text: dict[str, list[Question]] = {}
        self._prompt = prompt
        for question in questions:
            bare = bare_text(question, prompt)
            forms = question.last_turn, bare, stem(question, prompt), _without_drawings(bare)
            for form in dict.fromkeys(forms):
                self._by_text.setdefault(form, []).append(question)

    def matches(self, row_question: Question) -> list[Question]:
        """Find the benchmark's questions that a row of another tool's file may answer.

        There are several if the benchmark repeats a text and neither id nor reference distinguishes the questions."""
        bare = bare_text(row_question, self._prompt)
        forms = row_question.last_turn, bare, _without_drawings(bare)
        candidates = next((self._by_text[form] for form in forms if form in self._by_text), [])
        with_id = [question for question in candidates if question.question_id == row_question.question_id]
        with_references = [question for question in candidates if question.references == row_question.references]
        return with_id or with_references or candidates


class Recognized:
    """A tool's (question, sample) pairs, with the file's questions replaced by a benchmark's questions.

    So ids, references and rules are the benchmark's. A row without the question's text is matched by its reference if
    only one question has it, or by its id (`by_id`).
    """

    def __init__(
        self,
        path: Path,
        pairs: Pairs,
        questions: Sequence[Question],
        name: str,
        *,
        prompt: Prompt | None = None,
        by_id: bool = False,
    ) -> None:
        """path: the file of outputs. name: the benchmark. Both are for messages. prompt: the prompt of the benchmark's
        questions. by_id: the rows have no texts, and their ids are the ids of the benchmark's questions.
        """
        self._path, self._pairs, self._name = path, pairs, name
        self._questions, self._by_text = questions, ByText(questions, prompt)
        self._by_id = {question.question_id: question for question in questions} if by_id else None

    def __iter__(self) -> Iterator[tuple[Question, Sample | None]]:
        """Raises `UsageError` at the first row that matches no question of the benchmark."""
        by_row_id: dict[str, Question] = {}
        taken: set[str] = set()
        numbers = SampleNumbers()
        for row_question, sample in self._pairs:
            question = by_row_id.get(row_question.question_id)
            if question is None:
                question = by_row_id[row_question.question_id] = self._question(row_question, taken)
                taken.add(question.question_id)
            if sample is None:
                yield question, None
                continue
            # Several questions in the file may be the same benchmark question.
            index = numbers.give(question.question_id, sample.sample_index)
            yield question, _sample_of(question, index, sample, row_question)

    def _question(self, row_question: Question, taken: set[str]) -> Question:
        """The benchmark's question that a row answers. taken: ids of questions that earlier rows answer. Raises
        `UsageError`."""
        if self._by_id is not None:
            return self._with_id(row_question, self._by_id)
        if row_question.last_turn:
            candidates = self._by_text.matches(row_question)
        else:
            candidates = [question for question in self._questions if question.references == row_question.references]
            if len(candidates) != 1 or candidates[0].question_id in taken:
                candidates = []
        if not candidates:
            raise self._unmatched_error(row_question)
        if not _show_the_same(candidates):
            raise UsageError(
                f"{visible(str(self._path))}: {visible(row_question.last_turn, 100)!r} is the text of "
                f"{count_noun(len(candidates), 'question')} of {visible(self._name)} with different images; "
                "specify the column of question ids with `id_key`"
            )
        return next((question for question in candidates if question.question_id not in taken), candidates[0])

    def _unmatched_error(self, row_question: Question) -> UsageError:
        """The error for a row whose text, or reference, belongs to no question of the benchmark."""
        text, name = row_question.last_turn, visible(self._name)
        if text:
            what, advice = f"has the text {visible(text, 100)!r}, which is not in {name}", ""
        else:
            what = f"has no text, and its reference does not match exactly one question in {name}"
            advice = f". If the rows contain question ids from {name}, specify their column with `id_key`"
        return UsageError(
            f"{visible(str(self._path))}: the question {visible(row_question.question_id, 100)!r} {what}; omit "
            f"`benchmark`, or specify the question column with `question_key`{advice}"
        )

    def _with_id(self, row_question: Question, by_id: Mapping[str, Question]) -> Question:
        """The benchmark's question with the id of the row. Raises `UsageError` if there is none, or if the row has a
        different reference, since the same id may mean different questions in two tables.
        """
        path, name, shown = visible(str(self._path)), visible(self._name), visible(row_question.question_id, 100)
        question = by_id.get(row_question.question_id)
        if question is None:
            example = visible(next(iter(by_id)), 100)
            raise UsageError(
                f"{path}: {name} has no question with the id {shown!r}; it has ids such as {example!r}."
                f"{near_names(row_question.question_id, by_id)} To match rows by the question's text, add a text "
                f"column, and specify it with `question_key`"
            )
        if not set(row_question.references) <= set(question.references):
            row_reference, reference = (visible(" or ".join(q.references), 100) for q in (row_question, question))
            raise UsageError(
                f"{path}: the question with the id {shown!r} has the reference {row_reference!r}, but {reference!r} in "
                f"{name}: the id may refer to a different question there. If it does not, remove the reference column "
                "from the file"
            )
        return question


def _show_the_same(candidates: Sequence[Question]) -> bool:
    """Whether questions with the same text show the same images, if any: if not, a reply to one does not answer the
    other.
    """
    return len({tuple(image.sha256 for image in question.images) for question in candidates}) == 1


def _without_drawings(text: str) -> str:
    """`text` without Asymptote code, which some copies of a benchmark leave out."""
    first, *others = text.split("[asy]")
    texts = [first.rstrip()]
    for part in others:
        _, end, text_after = part.partition("[/asy]")
        texts.append(text_after.rstrip() if end else f"[asy]{part}")
    return "".join(texts)


def _sample_of(question: Question, index: int, sample: Sample, row_question: Question) -> Sample:
    """The sample of a file's question as the sample with this index of a benchmark's question."""
    return msgspec.structs.replace(
        sample,
        benchmark=question.benchmark,
        question_id=question.question_id,
        sample_index=index,
        # If the texts differ, the other tool sent a different prompt, whose digest is unknown.
        prompt_digest=question.prompt_digest if row_question.last_turn == question.last_turn else "",
    )


class Beginning:
    """The replies in a file to the questions of a run. Each iteration reads the file again.

    n_other, n_empty: replies to other questions or beyond the run's planned samples, and replies without text, as
    counted by the latest iteration.
    """

    def __init__(self, path: Path, sets: list[QuestionSet], samples: Mapping[str, float]) -> None:
        """samples: benchmark → planned samples per question. Raises `UsageError` for an unreadable file and for a file
        without a reply to any of the run's questions.
        """
        listed = [question for each in sets for question in each.questions]
        self._path, self._samples, self._by_text = path, samples, ByText(listed)
        self._outputs = outputs.read(path, questions=listed, half_done=True)
        self.n_other = self.n_empty = 0
        self.n_samples = sum(1 for _ in self)
        if not self.n_samples:
            raise UsageError(
                f"{visible(str(path))} contains no replies to this run's questions: specify a folder, or "
                "a partial file from another tool with exactly these questions",
                field="out",
            )

    def __iter__(self) -> Iterator[Sample]:
        self.n_other = self.n_empty = 0
        numbers = SampleNumbers()
        for row_question, sample in self._outputs:
            if sample is None or not (sample.text or sample.reasoning):  # the other tool's request failed
                self.n_empty += 1
                continue
            candidates = self._by_text.matches(row_question)
            question = candidates[0] if candidates and _show_the_same(candidates) else None
            index = None if question is None else numbers.give(f"{question.benchmark}\0{question.question_id}", None)
            planned = 0 if question is None else n_planned(question.question_id, self._samples[question.benchmark])
            if question is None or index is None or index >= planned:
                self.n_other += 1
                continue
            ours = _sample_of(question, index, sample, row_question)
            yield msgspec.structs.replace(ours, endpoint=FROM_FILE + safe_name(self._path.name))

    @property
    def sentence(self) -> str:
        """A sentence on how many replies the run uses and what happens to the others."""
        left = (
            (self.n_empty, "empty or failed, to be requested again"),
            (self.n_other, "ignored, because their questions or sample numbers are not in the plan"),
        )
        others = "".join(f"; {n} {what}" for n, what in left if n)
        return (
            f"{count_noun(self.n_samples, 'sample')} of {visible(self._path.name, 100)} were added to this run, marked "
            f"as generated by another tool with its own settings{others}"
        )
