"""Build a benchmark's questions from its card: read the rows, check them against the card, select, render prompts.

`build` is the entry. The rows are read once, one at a time:

    row ──▶ draft (id, references) ──▶ digests and checks (`SeenRows`) ──▶ selected? (`_Selection`) ──▶ question
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from harness.benchmarks import column_names, drafts, prompts
from harness.benchmarks.card import Card
from harness.benchmarks.conversations import with_instructions
from harness.benchmarks.drafts import Draft
from harness.benchmarks.prompts import Example, Prompt
from harness.benchmarks.seen_rows import SeenRows, notes_on
from harness.benchmarks.sources import hub, images, readers
from harness.benchmarks.sources.tables import Row, Rows, links_picture, refuse_picture
from harness.core.codec import digest, digest_of_each
from harness.core.errors import UsageError, near_names
from harness.core.number_text import count_noun
from harness.core.records import Message, Question
from harness.core.sanitize import quoted, visible
from harness.presets.sampling import Sampling


@dataclass(frozen=True)
class QuestionSet:
    """The questions of one benchmark as they will be asked.

    name: the benchmark's name. questions: the selected questions, in the order of the source. n_all: number of
    questions without a selection. rows_digest: checksum of all rows of the source, in any order (as recorded in cards).
    dataset_digest: checksum of all rows with their references and choices, in any order and whatever the selection
    (part of a run's identity). prompt: the prompt's name. system_prompt: the system prompt's text. template_digest:
    checksum of prompt and system prompt. origin: the source's name and revision. notes: what a reader of the score
    should know. samples, sampling: the card's number of samples and sampling settings. publish: whether questions,
    answers and samples may be shown in public. card_file: the card's `address`. given_data: the address of the data, if
    the user supplied them. without_card: the user supplied data in place of a card. whole: the selection, if other
    clients ask other parts of it (`shards.divide`). resumes: the `dataset_digest` of the run that continues with these
    questions, each of which was compared with the stored ones (`harness.preparing.changed_data`); None: the run must
    have this set's digest. data_file: the local file from which the rows were read, as named in the card; None for any
    other source. columns: names of the columns of the first row. offers_tools: whether any question offers tools.
    turns: the card's or the user's `turns`. has_turns: whether any question is a conversation.
    """

    name: str
    questions: Sequence[Question]
    n_all: int
    rows_digest: str
    dataset_digest: str
    prompt: str
    system_prompt: str | None
    template_digest: str
    origin: str
    notes: tuple[str, ...] = ()
    samples: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    tool: str | None = None
    publish: bool = True
    card_file: str | None = None
    given_data: str | None = None
    without_card: bool = False
    whole: Sequence[Question] | None = None
    resumes: str | None = None
    data_file: str | None = None
    columns: tuple[str, ...] = ()
    offers_tools: bool = False
    turns: str | None = None
    has_turns: bool = False

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each question, by its id."""
        return {name: position for position, name in enumerate(self.ids)}

    @cached_property
    def ids(self) -> list[str]:
        """The ids of the questions, in order."""
        return [question.question_id for question in self.questions]

    @property
    def selection(self) -> Sequence[Question]:
        """The questions of all parts together; without parts, all questions."""
        return self.questions if self.whole is None else self.whole

    def question(self, question_id: str) -> Question:
        """The question with this id, which is unpacked again at each call: a large set stays packed in memory."""
        return self.questions[self.places[question_id]]


def build(
    card: Card,
    *,
    prompt: str | Prompt | None = None,
    system_prompt: str | None = None,
    limit: int | None = None,
    ids: Sequence[str] | None = None,
    filters: Sequence[str] = (),
    templated: bool = True,
    turns: str | None = None,
) -> QuestionSet:
    """The questions of a card: read, checked, selected and rendered. Raises `UsageError` with file, line and field.

    prompt: a prompt or its name; None: the card's. system_prompt: a name or a text, "none" to send no system message;
    None: the prompt's. templated: whether the API has a chat template. Selection: questions that pass all `filters`
    ("column=value"), then those in `ids`, then the first `limit`. turns: how conversations are carried on; None: the
    card's.
    """
    card = card if turns is None else card.model_copy(update={"turns": turns})
    own = prompt if prompt is None or isinstance(prompt, Prompt) else prompts.find_prompt(prompt, card.prompts)
    system = None if system_prompt is None else prompts.system_prompt(system_prompt)
    return _from_source(card, _Selection(card, filters, ids, limit), own, system, templated)


def _from_source(
    card: Card, selection: _Selection, own: Prompt | None, system: str | None, templated: bool
) -> QuestionSet:
    """The selected questions, read from the card's source. own: the user's prompt; None: the card's. system: the system
    prompt; None: the prompt's own.

    Raises `UsageError`.
    """
    source, usual = readers.read_source(card), own or prompts.find_prompt(card.prompt, card.prompts)
    # The usual prompt asks for a boxed answer.
    bare = prompts.PROMPTS["none"] if own is None and card.is_of_data else usual
    pool, generator = _examples(card, usual), random.Random(usual.seed)  # noqa: S311 - no secret
    selected = list[Question]()
    # A card with a number of questions has known rows.
    seen = SeenRows(with_answers=card.answers_checksum is not None, with_texts=card.questions is None)
    columns: tuple[str, ...] = ()
    for draft in _drafts(card, source):
        asked = draft.question.turns
        prompt = bare if draft.question.tools else usual
        if asked and not asked[0].references:  # the instruction goes to graded turns only
            prompt = usual.model_copy(update={"template": "{question}"})
        if pool:  # for each row, even if not selected: a question's examples depend on its position
            drawn = generator.sample(pool, usual.drawn)
            prompt = prompt.model_copy(update={"examples": (*prompt.examples, *drawn), "drawn": 0})
        columns = columns or tuple(draft.row.value)
        seen.add(draft)
        text = draft.question.messages[-1].content
        if prompt.instructs or system:
            text, had_instruction = prompts.without_instruction(text, prompt)
            seen.n_with_instruction += had_instruction
        seen.n_with_link += links_picture(text)
        if selection.takes(draft):
            if draft.row.problem:
                raise UsageError(draft.row.problem)
            if card.address is not None or card.given_data is not None:  # the rows of a shipped card are known
                refuse_picture(_unseen(draft), card.columns.images, images.marks(card.image_mark))
            question = _question(card, draft, text, prompt, system, templated)
            selected.append(with_instructions(question, usual) if asked else question)
    rows_digest = digest_of_each(key.hex() for key in sorted(seen.rows))
    notes = [*source.notes, *_check_edition(card, seen, rows_digest, source)]
    selection.check(seen.ids)
    n_all = len(seen.rows)
    notes += notes_on(card, seen)
    prompt = bare if seen.n_with_tools == n_all else usual
    sent_system = prompt.system if system is None else system
    form = "chat" if templated else "completions"  # the names of the first API of each form
    return QuestionSet(
        name=card.name,
        samples=card.samples,
        sampling=card.sampling,
        tool=card.tool,
        turns=card.turns,
        has_turns=seen.n_with_turns > 0,
        offers_tools=seen.n_with_tools > 0,
        publish=card.publish_questions,
        card_file=card.address,
        given_data=card.given_data,
        without_card=card.is_of_data,
        prompt=prompt.name,
        system_prompt=sent_system or None,
        template_digest=digest([prompt.template_digest, sent_system, form, *(e.model_dump() for e in pool)]),
        questions=selected,
        n_all=n_all,
        rows_digest=rows_digest,
        dataset_digest=digest_of_each(key.hex() for key in sorted(seen.identities)),
        origin=source.origin,
        data_file=source.origin if readers.reads_a_file(card) else None,
        notes=tuple(notes),
        columns=columns,
    )


def _examples(card: Card, prompt: Prompt) -> list[Example]:
    """The rows from which the prompt draws examples: questions with their full answers. Raises `UsageError`."""
    pool: list[Example] = []
    if not prompt.drawn or card.examples is None:
        return pool
    for row in hub.read(card.examples, long_fields=False).rows:
        columns = (column_names.find(names, row.value) for names in (card.columns.question, card.columns.answer))
        question, answer = (None if column is None else row.cell(column) for column in columns)
        if not (isinstance(question, str) and isinstance(answer, str)):
            raise UsageError(f"{row.where}: the question and answer of an example ({prompt.name}) must both be text")
        pool.append(Example.model_construct(question=question, answer=answer))
    if len(pool) < prompt.drawn:
        raise UsageError(f"{card.examples.id} has {count_noun(len(pool), 'row')}, too few for {prompt.drawn} examples")
    return pool


def _drafts(card: Card, source: Rows) -> Iterator[Draft]:
    """The questions of the source's rows. Raises `UsageError`, which includes the fix for a copied file."""
    try:
        yield from drafts.drafts(card, source.rows)
    except UsageError as error:
        if not source.remedy:
            raise
        raise UsageError(f"{error} (if this copy is damaged or from another data set, {source.remedy})") from error


def _question(card: Card, draft: Draft, text: str, prompt: Prompt, system: str | None, templated: bool) -> Question:
    """The question to send for a draft, with its text and choices inserted into the prompt.

    system: the system prompt; None: the prompt's own.
    """
    *turns, asked = draft.question.messages
    listed = prompts.list_choices(draft.question.choices, prompt.mark)
    try:
        messages, raw = prompts.render(prompt, text, listed, templated, system, tuple(turns))
        if messages:
            messages = (*messages[:-1], messages[-1].in_parts_of(asked))
        if card.columns.images:
            messages = _with_images(messages, raw, draft.row.images, card)
    except ValueError as error:
        raise UsageError(f"{draft.row.where} {error}") from error
    said = [message.identity for message in messages] if messages else raw
    prompt_digest = digest([said, draft.question.calling] if draft.question.calling else said)
    return msgspec.structs.replace(draft.question, messages=messages, prompt=raw, prompt_digest=prompt_digest)


def _unseen(draft: Draft) -> Row:
    """The part of a row that may refer to a picture that is not sent: the whole row, or only the question's text if it
    has images."""
    question = draft.question
    words = {"question": question.messages[-1].content, "options": [*question.choices]}
    return draft.row._replace(value=words) if draft.row.images else draft.row


def _with_images(
    messages: tuple[Message, ...], raw: str, shown: Sequence[str | None], card: Card
) -> tuple[Message, ...]:
    """The messages with the row's images placed in the last message, or in the raw text.

    Raises `ValueError` with the end of a sentence.
    """
    text = messages[-1].content if messages else raw
    parts = images.placed(text, shown, card.image_mark, first=card.images == "first")
    if not parts:
        return messages
    if not messages or messages[-1].role != "user":
        raise ValueError("has images, which only a user message can contain: use the chat API")
    return (*messages[:-1], msgspec.structs.replace(messages[-1], media=parts))


def _check_edition(card: Card, seen: SeenRows, rows_digest: str, source: Rows) -> list[str]:
    """Compare the rows with the card's counts and checksums; returns notes for the score.

    Raises `UsageError` if the card's own data differ from the card. For the user's data a difference is a note.
    rows_digest: checksum of the rows. source: where the rows were read, for messages.
    """
    if rows_digest in {card.checksum, *(edition.rows for edition in card.editions)}:
        return []
    answers, n_rows = seen.answers, len(seen.rows)
    problem = None
    if card.questions is not None and n_rows != card.questions:
        problem = f"{count_noun(n_rows, 'question')}, but the card {card.name!r} specifies {card.questions}"
    elif card.checksum is not None:
        problem = f"rows with checksum {rows_digest}, but the card {card.name!r} specifies {card.checksum}"
    elif card.answers_checksum is not None and answers != card.answers_checksum:
        problem = f"reference answers (checksum {answers}) that differ from those in the card {card.name!r}"
    if problem is None:
        if not (card.editions or card.answers_checksum):
            return []
        return [f"{visible(source.origin)} is an edition that the card does not list (row checksum: {rows_digest})"]
    if card.given_data is None:
        raise UsageError(
            f"{visible(source.origin)} has {problem}; {source.remedy or 'fetch the data again'}, or write a card "
            "for this data"
        )
    return [
        f"{visible(source.origin)} has {problem}, so the score cannot be compared with published "
        "scores. Omit the benchmark to run your own questions under their own name"
    ]


MAX_SHOWN_VALUES = 10
"""Maximum number of column values that a message lists."""


class _Selection:
    """Decides which questions are asked.

    They are the questions that pass all filters, then those with the given ids, then the first `limit`. The object
    receives each question once and stores what its messages need.
    """

    def __init__(self, card: Card, filters: Sequence[str], ids: Sequence[str] | None, limit: int | None) -> None:
        self._card = card
        self._texts = list(filters)
        self._filters: list[tuple[str, str]] | None = None  # (column, value); parsed when the first row shows columns
        self._passed = [0] * len(filters)  # number of questions that passed each filter and all before it
        self._values: list[set[str]] = [set() for _ in filters]  # by filter: values of its column while none passes
        self._ids = None if ids is None else dict.fromkeys(ids)
        self._limit = limit
        self._n_matching = 0  # questions that passed the filters and have one of the ids

    def takes(self, draft: Draft) -> bool:
        """Decide whether the next question of the source is asked. Raises `UsageError` if a filter names an unknown
        column."""
        if self._filters is None:
            self._filters = [self._parse_filter(text, draft) for text in self._texts]
        for index, (name, expected) in enumerate(self._filters):
            value = _cell(draft, name)
            if not self._passed[index]:
                self._values[index].add(value)
            if value != expected:
                return False
            self._passed[index] += 1
        if self._ids is not None and draft.question.question_id not in self._ids:
            return False
        self._n_matching += 1
        return self._limit is None or self._n_matching <= self._limit

    def check(self, all_ids: Iterable[str]) -> None:
        """Raise `UsageError` if a filter or the ids leave no question, an id is unknown or the limit is impossible.

        all_ids: the ids of all questions of the benchmark, in order.
        """
        name = self._card.name
        for text, passed, held in zip(self._texts, self._passed, self._values, strict=True):
            if not passed:
                values = sorted(held)
                shown = ", ".join(visible(value, 40) for value in values[:MAX_SHOWN_VALUES])
                raise UsageError(f"the filter {quoted(text)!r} matches no questions in {name}; the values are {shown}")
        if self._ids is not None:
            all_ids = list(all_ids)
            existing = set(all_ids)
            for question_id in self._ids:
                if question_id not in existing:
                    raise UsageError(
                        f"{name} has no question {visible(question_id, 100)!r}.{near_names(question_id, existing)} "
                        f"The first ids are {', '.join(visible(first_id, 40) for first_id in all_ids[:5])}"
                    )
            if not self._n_matching:  # each id exists and each filter passes some, but no question satisfies both
                raise UsageError(f"no question in {name} matches both the ids and the filter: change one of them")
        if self._limit is not None and self._limit < 1:
            raise UsageError(f"the limit must be at least 1 question, found {self._limit}")

    def _parse_filter(self, text: str, first: Draft) -> tuple[str, str]:
        """Split a filter such as `level=5` into column and value.

        first: a row that shows which columns exist. Raises `UsageError`.
        """
        name, equals, expected = text.partition("=")
        name, expected = name.strip(), expected.strip()
        if not equals or not name:
            raise UsageError(f"the filter {quoted(text)!r} must be of the form column=value, such as level=5")
        columns = {*first.question.metadata, *first.row.value}
        if name not in columns and column_names.find((name,), first.row.value) != name:
            raise UsageError(
                f"{self._card.name} has no column {visible(name, 100)!r} to filter by; available columns: "
                f"{', '.join(sorted(map(visible, columns)))}.{near_names(name, columns)}"
            )
        return name, expected


def _cell(draft: Draft, name: str) -> str:
    """A column value, written as in a filter (`true`, not `True`)."""
    of_data = draft.row.cell(name) if column_names.find((name,), draft.row.value) == name else None
    value = draft.question.metadata.get(name, of_data)
    return str(value).lower() if isinstance(value, bool) else str(value)
