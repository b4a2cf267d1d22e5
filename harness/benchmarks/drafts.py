"""Turn a data row into a question without its prompt (`Draft`): its id, text and reference answers.

Id: the value of the id column if the data have one, otherwise the checksum of the row; equal rows are numbered. It
depends neither on the order of the file nor on the prompt. References: the answer cell becomes the accepted answers and
their kind. The functions for references raise `ValueError` with the end of a sentence; their caller prepends the row
and the column.

Long: one step turns a row into an identity and references, and each is a closed list of forms.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from harness.benchmarks import column_names
from harness.benchmarks.column_names import ANSWER_COLUMNS, ASKED_COLUMNS
from harness.benchmarks.conversations import TURN_ANSWER_COLUMNS, references_of, turns_of
from harness.benchmarks.row_forms import rows_of, text_list
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row, refuse_picture
from harness.benchmarks.tool_choice import accepted_calls, read_calling
from harness.core import codec, plugins
from harness.core.codec import digest
from harness.core.errors import UsageError, near_names
from harness.core.files import disk_errors
from harness.core.installation import cache_folder
from harness.core.records import (
    CHECKSUM_ID_CHARS,
    AnswerKind,
    AskedTurn,
    GradeRules,
    MediaPart,
    Message,
    OfferedTool,
    Question,
    metadata_of,
)
from harness.core.sanitize import quoted, visible
from harness.core.turn_settings import turns_in
from reasoning_answers.host import read_calls, read_reference, read_tools

if TYPE_CHECKING:
    from harness.benchmarks.card import Card, Names

# ---- reference answers


_WORDS = re.compile(r"[^\W\d_][^\d\\$^_{}=+*/<>]*\Z")
"""Words: a letter, then no digits and no formula symbols."""


_BESIDE_LETTER = " \t\n()（）[].．、"
"""Characters that may surround the letter of a choice."""


def form_of(value: Any, reference: str) -> AnswerKind:
    """The form of a reference for its question's checksum, if the card specifies no kind. value: the cell in the data.

    This function must not change, because a run can be resumed only while its checksums stay the same. `kind_of`, which
    determines how an answer is graded, may improve.
    """
    if isinstance(value, list | dict):
        return "multiple"
    if reference.strip(_BESIDE_LETTER) in tuple("ABCDEFGHIJ"):
        return "choice"
    if len(reference) > 1 and _WORDS.match(reference):
        return "text"
    return "expression"


# ---- questions


MAX_ID_CHARS = 500
"""Maximum length of a question id."""


@dataclass(frozen=True)
class Draft:
    """A question without its prompt, and the row it was made from.

    question: its messages use the data's wording, with the question itself last. form: the kind of answer that is part
    of the checksum (`form_of`). index: the number, from 0, with which the row identifies its correct option.
    """

    row: Row
    question: Question
    form: AnswerKind
    index: int | None

    @property
    def identity(self) -> str:
        """Checksum of the row, its id, references and choices; the kind is included as `form` (see `form_of`)."""
        question = self.question
        calling = [question.calling] if question.calling else []
        parts = [question.row_digest, question.question_id, question.references, self.form, question.choices]
        return digest([*parts, *calling])


def drafts(card: Card, rows: Iterable[Row]) -> Iterator[Draft]:
    """A draft for each row, in order. Raises `UsageError` that names the row and the column.

    A row may omit an optional column, such as one of `metadata`. If all rows omit it, a user's card is rejected because
    the name is misspelled. A shipped card accepts data with fewer columns than its own.
    """
    rows = _select_rows(card, _form_rows(card, rows))
    first = next(rows, None)
    if first is None:
        raise UsageError(f"{card.name} has no rows")
    columns = card.columns
    optional = [columns.context, columns.multiple, columns.tolerance, columns.unit, columns.tools]
    optional += [(name,) for name in (*columns.more_answers, *columns.metadata)]
    # The optional columns that have not occurred in any row so far.
    missing = [names for names in optional if names]
    # Other interpretations of numbers than the index from 0 that fit all rows so far → whether any row would then have
    # a different option.
    readings, numbered = dict.fromkeys((_FROM_ONE, _AS_TEXT), False), None
    for row, row_digest, question_id in _with_ids(_id_column(card, first), chain([first], rows)):
        missing = [names for names in missing if _first_column(names, row) is None]
        draft = _draft(card, row, question_id, row_digest)
        if draft.index is not None and (card.address is not None or card.is_of_data):  # shipped cards know their rows
            numbered, fitting = numbered or row, _other_readings(draft.index, draft.question.choices)
            readings = {
                name: differs or fitting[name] != draft.index for name, differs in readings.items() if name in fitting
            }
        yield draft
    if numbered is not None and any(readings.values()):
        column = _require_column(numbered, columns.answer, "the answer")
        reading = next(name for name, differs in readings.items() if differs)
        raise UsageError(
            f"{numbered.where}: the answer column {column!r} contains the correct option as a number, but no row "
            f"shows whether that number is an index from 0 or {reading}: use letters instead (A for the first option)"
        )
    if missing and card.address is not None:
        raise _no_column(first, missing[0], "any question (no other row has it either)")


_FROM_ONE, _AS_TEXT = "from 1", "is the option's own text"
"""Ways to interpret a whole number as an answer, other than as an index from 0."""


def _other_readings(index: int, choices: tuple[str, ...]) -> dict[str, int]:
    """The option index that a number may mean, by interpretation; interpretations that do not apply are omitted."""
    from_one = {_FROM_ONE: index - 1} if index else {}
    return from_one | ({_AS_TEXT: choices.index(str(index))} if str(index) in choices else {})


def _with_ids(column: str | None, rows: Iterable[Row]) -> Iterator[tuple[Row, str, str]]:
    """Each row with its checksum and the id of its question. column: the column with the ids; None: the row's checksum
    is the id. Raises `UsageError` for a missing or repeated id.
    """
    place_of: dict[str, str] = {}  # id → location of its row
    equal_rows: Counter[str] = Counter()  # checksum → number of rows with it so far
    for row in rows:
        row_digest = digest(row.value)
        if column is None:
            equal_rows[row_digest] += 1
            ordinal = equal_rows[row_digest]
            question_id = row_digest[:CHECKSUM_ID_CHARS] + (f"-{ordinal}" if ordinal > 1 else "")
        else:
            question_id = _id_of(row, column)
        if question_id in place_of:
            raise UsageError(
                f"{row.where}: the id {visible(question_id, 100)!r} is already used at {place_of[question_id]}; "
                "ids must be unique (leave out the id column to identify rows by checksum)"
            )
        place_of[question_id] = row.where
        yield row, row_digest, question_id


def _form_rows(card: Card, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows that the card's `row_form` derives from `rows`; `rows` themselves if the card has no `row_form`."""
    for row in rows:
        with _mistakes_at(row.where):
            for value in [row.value] if card.row_form is None else rows_of(card.row_form, row.value):
                yield row._replace(value=value)


@contextlib.contextmanager
def _mistakes_at(place: str) -> Iterator[None]:
    """A `with` block in which a `ValueError` with the end of a sentence becomes a `UsageError` about `place`."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"{place} {visible(str(error))}") from error


def _select_rows(card: Card, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows that the card's `only` and `dates` select; all rows if the card has neither. Raises `UsageError`."""
    for row in rows:
        # A row without the column is an error: if the data renamed the column, no row would be left.
        cells = ((row.cell(_require_column(row, (name,), "the selection")), card.only[name]) for name in card.only)
        if not all(cell in values for cell, values in cells):
            continue
        if card.dates is not None and card.date_column is not None:
            date = _cell_or_none(row, (card.date_column,))
            if not (isinstance(date, str) and re.match(r"\d{4}-\d\d-\d\d", date)):
                raise _wrong_cell(row, card.date_column, "be a date", date)
            first, last = card.dates
            # Dates in this form are compared as texts, each cut to the precision of its limit; "" means no limit.
            if date[: len(first)] < first or date[: len(last)] > last:
                continue
        yield row


def _id_column(card: Card, first: Row) -> str | None:
    """The column with the question ids; None if the checksum of each row is used instead. Raises `UsageError`."""
    if card.id_rule == "checksum" or not card.columns.id:
        return None
    column = _first_column(card.columns.id, first)
    if column is None and card.id_rule == "column":
        raise _no_column(first, card.columns.id, "the id")
    return column


def _id_of(row: Row, column: str) -> str:
    """The question's id in a row. Raises `UsageError` if it is neither a text nor an integer, or is too long."""
    value = _cell_or_none(row, (column,))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _is_text_of(value, str | int):
        raise _wrong_cell(row, column, "be a string or an integer", value, "the id column")
    if len(str(value)) > MAX_ID_CHARS:
        raise UsageError(f"{row.where}: the id is {len(str(value))} characters long; the limit is {MAX_ID_CHARS}")
    return str(value).strip()


def _draft(card: Card, row: Row, question_id: str, row_digest: str) -> Draft:
    """Make a question without its prompt from a row: text, answers, choices, rules and metadata.

    row_digest: checksum of the row, stored with the question. `kind` is how the answer is graded, `form` is the kind
    used in the question's checksum (`form_of`), and `index` is the number of the correct option in the row. Raises
    `UsageError`.
    """
    columns = card.columns
    tools = () if card.program is not None or card.choices else _tools(card, row)
    names = {tool.name for tool in tools}
    asked_turns = _asked_turns(card, row)
    if asked_turns:
        *turns, asked = asked_turns[0].messages
        asked_turns[0] = msgspec.structs.replace(asked_turns[0], messages=())
    else:
        turns, asked = _shown(card, row, names)
    text = _text_of(card, row, asked.content)
    metadata = _metadata(card, row)
    choices: tuple[str, ...] = ()
    calling: dict[str, Any] = {}
    index: int | None = None
    answers: tuple[str, ...]
    kind: AnswerKind
    form: AnswerKind
    if card.program is not None:
        text, reference = _read_program(card, row, text)
        answers, kind, form = (reference,), "program", "program"
    elif card.choices:
        choices, right, order, index = _read_choices(card, row, question_id)
        answers, kind, form = (right,), "choice", "choice"
        if order is not None:
            metadata["choice_order"] = order
    elif tools:
        with _mistakes_at(f"{row.where}:"):
            calling = read_calling(row.value, names)
        column = _first_column(columns.answer, row)
        with _mistakes_at(f"{row.where}: the answer column {column!r}"):
            answers = (accepted_calls(row.value, row.value[column] if column else None),)
        kind = form = "calls"
    elif columns.rubric and not columns.answer:
        answers, kind, form = (), "text", "text"
    elif asked_turns:
        asked_turns = _with_references(card, row, asked_turns)
        answers, kind = asked_turns[-1].references, asked_turns[-1].kind
        form = kind
    else:
        answers, kind, form = _read_answers(card, row)
        if _cell_or_none(row, columns.multiple) in (True, "true", "True", 1):
            kind = form = "multiple"
    question = Question(
        benchmark=card.name,
        question_id=question_id,
        messages=(*turns, _with_images(Message("user", text).in_parts_of(asked), row)),
        references=answers,
        kind=kind,
        rules=_read_tolerance(card, row),
        choices=choices,
        metadata=metadata,
        row_digest=row_digest,
        rubric=_rubric(card, row) if columns.rubric else msgspec.UNSET,
        tools=tools or msgspec.UNSET,
        calling=calling or msgspec.UNSET,
        turns=tuple(asked_turns) or msgspec.UNSET,
        prompt_digest="",
    )
    return Draft(row, question, form, index)


def _text_of(card: Card, row: Row, text: str) -> str:
    """The question's text with its line breaks, after the row's context."""
    if card.literal_line_breaks:
        text = _LINE_BREAK.sub("\n", text)
    context = _cell_or_none(row, card.columns.context)
    return f"{context.strip()}\n\n{text}" if isinstance(context, str) and context.strip() else text


def _shown(card: Card, row: Row, names: Container[str]) -> tuple[list[Message], Message]:
    """Return (the messages before the question, the question). names: the offered tools. Raises `UsageError`."""
    columns = card.columns
    if not columns.question:
        return [], Message("user", "")
    turns, asked = conversation(row, _require_column(row, columns.question, "the question"), names)
    return [*turns], asked


def _read_tolerance(card: Card, row: Row) -> GradeRules:
    """The card's rules, with the row's tolerance if it has one. Raises `UsageError`."""
    tolerance = _cell_or_none(row, card.columns.tolerance)
    if tolerance in (None, ""):
        return card.rules
    return msgspec.structs.replace(card.rules, absolute_tolerance=_tolerance(row, tolerance))


def _asked_turns(card: Card, row: Row) -> list[AskedTurn]:
    """The turns of a conversation; empty if the row is one question. Raises `UsageError`."""
    settings, columns = turns_in(card.turns), card.columns
    names = [name for name in columns.question if name not in columns.turns]
    if not settings.live and (not columns.turns or (names and _first_column(tuple(names), row) is not None)):
        return []
    of_turns = (*columns.turns, *(columns.question if settings.live else ()))
    with _mistakes_at(row.where):
        turns = turns_of(row.value, of_turns, live=settings.live, most=settings.most)
        if not (turns or columns.question):
            raise ValueError(f"has no turns; expected the column {' or '.join(columns.turns)}")
    return turns


def _with_references(card: Card, row: Row, turns: Sequence[AskedTurn]) -> list[AskedTurn]:
    """The turns with their reference answers. Raises `UsageError`."""
    columns = (*card.columns.answer, *(TURN_ANSWER_COLUMNS if card.is_of_data else ()))
    with _mistakes_at(row.where):
        cells = references_of(_cell_or_none(row, card.columns.answer), row.value, columns, len(turns))
        read = [
            None if cell is None else read_reference(cell, card.kind, card.answer_form, card.structured_answers)
            for cell in cells
        ]
    return [
        turn if found is None else msgspec.structs.replace(turn, references=tuple(found[0]), kind=found[1])
        for turn, found in zip(turns, read, strict=True)
    ]


def _with_images(message: Message, row: Row) -> Message:
    """The question itself with the row's images, which are not yet placed in the text."""
    parts = tuple(MediaPart(sha256=name, start=0, end=0) for name in row.images if name)
    return msgspec.structs.replace(message, media=parts) if parts else message


def _tools(card: Card, row: Row) -> tuple[OfferedTool, ...]:
    """The tools that the row offers, under the names used in requests. Raises `UsageError`, also for duplicate
    names."""
    column = _first_column(card.columns.tools, row)
    if column is None or row.value[column] in (None, "", []):
        return ()
    with _mistakes_at(f"{row.where}: the column {column!r}:"):
        tools = read_tools(row.value[column])
        names = [tool.name for tool in tools]
        if len({*names}) < len(names):
            raise ValueError(f"has two tools with the same name in requests: {quoted(max(names, key=names.count))}")
    return tools


def _rubric(card: Card, row: Row) -> str:
    """The row's rubric for a judge, a list as JSON. Raises `UsageError` if there is none, or if the card's judge form
    cannot count it.
    """
    column = _require_column(row, card.columns.rubric, "the rubric")
    value = row.cell(column)
    rubric = value.strip() if isinstance(value, str) else codec.encode(value).decode()
    if not rubric or value is None:
        raise _wrong_cell(row, column, "contain a rubric for the judge", value)
    if card.judge:
        # Imported late: it needs pydantic, which grading alone does not load.
        from harness.benchmarks.judge_forms import criteria_of, form_named

        with _mistakes_at(f"{row.where}: the column {column!r}:"):
            if form_named(card.judge).reply == "criteria":
                criteria_of(rubric)
    return rubric


def _metadata(card: Card, row: Row) -> dict[str, Any]:
    """The metadata of a row's question: the columns that the card names, plus unit and cluster.

    Raises `UsageError`.
    """
    columns = {name: _first_column((name,), row) for name in card.columns.metadata}
    metadata = metadata_of({name: row.cell(column) for name, column in columns.items() if column is not None})
    if row.images or (card.columns.images and not card.is_of_data):
        metadata["images"] = sum(map(bool, row.images))
    unit = _cell_or_none(row, card.columns.unit)
    if isinstance(unit, str) and unit.strip():
        metadata["unit"] = unit.strip()
    cluster = _cluster(card, row) if card.cluster_key else None
    if cluster is not None:
        metadata["cluster"] = cluster
    return metadata


_CONVERSATION = re.compile(r'\s*\[\s*\{\s*"(?:role|content)"\s*:')
"""The beginning of a text that contains a conversation as JSON."""
_ROLES = ("system", "user", "assistant", "tool")
"""Roles that a message of a conversation may have."""


class _TextPart(msgspec.Struct, tag="text"):
    """A content part in the format of the chat API."""

    text: str


class _LoggedMessage(msgspec.Struct):
    """A message in the format of the chat API."""

    role: Literal["system", "user", "assistant", "tool", "developer"]
    content: str | list[_TextPart] | None = None
    name: str | None = None
    tool_calls: list[Any] | None = None
    tool_call_id: str | None = None

    def message(self, offered: Container[str]) -> Message:
        """The message in the form used by a question. offered: names of the offered tools. Raises `ValueError`."""
        if (self.content is None and not self.tool_calls) or (self.role == "tool") != bool(self.tool_call_id):
            raise ValueError("a message must have content or tool_calls, and a tool message must have a tool_call_id")
        if self.role == "developer" or (self.name and self.role != "tool"):
            raise ValueError("write `system` for the role `developer`, and a name into the content")
        calls = read_calls(self.tool_calls or [], offered)
        texts = [part.text for part in self.content] if isinstance(self.content, list) else [self.content or ""]
        breaks = tuple(accumulate((len(text) for text in texts[:-1]), lambda at, length: at + 1 + length))
        return Message(
            self.role,
            "\n".join(texts),
            calls or msgspec.UNSET,
            self.tool_call_id or msgspec.UNSET,
            breaks or msgspec.UNSET,
        )


def conversation(row: Row, column: str, offered: Container[str] = ()) -> tuple[tuple[Message, ...], Message]:
    """Return (the messages before the question, the question) from the question cell. offered: names of the offered
    tools.

    Raises `UsageError`.
    """
    value = row.cell(column)
    if isinstance(value, str) and _CONVERSATION.match(value):
        # A text that only begins this way, such as a question about JSON, is plain text.
        with contextlib.suppress(UsageError):
            value = tables.parse_json(value, f"{row.where}, the column {column!r}")
    if isinstance(value, str) and value.strip():
        return (), Message("user", value)
    if not isinstance(value, list) or not value:
        raise _wrong_cell(row, column, "be a question or a list of messages", value)
    messages = []
    for number, item in enumerate(value, 1):
        try:
            messages.append(msgspec.convert(item, _LoggedMessage).message(offered))
        except (msgspec.ValidationError, ValueError) as error:
            refuse_picture(row)
            raise UsageError(
                f"{row.where}: message {number} of the column {column!r} must have a role ({', '.join(_ROLES)}) and "
                f"content that is a string or a list of text parts ({quoted(str(error))}), found {_show(item)}"
            ) from error
    *turns, last = messages
    if last.role == "tool":
        return tuple(messages), Message("user", "")
    if last.role != "user" or not last.content.strip():
        way = {"assistant": "; remove the beginning of a reply, which cannot be continued", "system": "; put it first"}
        what = f"must end with a user message that contains the question{way.get(last.role, '')}"
        raise UsageError(f"{row.where}: the column {column!r} {what}")
    return tuple(turns), last


def _cluster(card: Card, row: Row) -> str | int | None:
    """The name of the row's cluster; None if the row names no cluster and is therefore its own. Raises `UsageError`."""
    column = _require_column(row, card.cluster_key, "the cluster")
    value = row.cell(column)
    if not isinstance(value, str | int | None):
        raise _wrong_cell(row, column, "be a string or an integer", value, "the cluster column")
    if value in (None, ""):
        return None
    if card.cluster_until is not None:
        before, found, _ = str(value).rpartition(card.cluster_until)
        value = before if found else value
    return value if card.cluster_after is None else str(value).rpartition(card.cluster_after)[2]


def _read_program(card: Card, row: Row, text: str) -> tuple[str, str]:
    """Read a row that asks for a program: the question's text, and a reference with the tests.

    text: the question cell. Raises `UsageError`.
    """
    programs = plugins.load("answer", card.rules.grader)
    if programs is None or card.program is None:
        raise UsageError(
            f"the card {card.name!r} requires programs, but the package reasoning-programs, which runs them, is not "
            "installed"
        )
    with _mistakes_at(row.where), disk_errors(cache_folder()):
        question_text, reference = programs.read_row(card.program.model_dump(), text, row.value, cache_folder())
    return question_text, reference


def _read_answers(card: Card, row: Row) -> tuple[tuple[str, ...], AnswerKind, AnswerKind]:
    """Read the reference answers to a question without choices, with their kind and their form for the checksum."""
    column = _require_column(row, card.columns.answer, "the answer")
    value = row.cell(column)
    # If the card expects no truth values, one is more likely from a column of flags than from the answers.
    if card.structured_answers and isinstance(value, bool):
        value = str(value)
    with _mistakes_at(f"{row.where}: the answer column {column!r}"):
        answers, kind = read_reference(value, card.kind, card.answer_form, card.structured_answers)
    form = form_of(value, answers[0]) if card.kind == "auto" else card.kind
    cells = [_cell_or_none(row, (name,)) for name in card.columns.more_answers]
    more = [str(cell).strip() for cell in cells if cell is not None]
    distinct = dict.fromkeys((*answers, *(text for text in more if text)))
    return tuple(distinct), kind, form


class ShownChoices(NamedTuple):
    """The options of a multiple-choice question as they are shown.

    texts: options in the order shown. right: the letter of the correct option. order: for each option shown, its index
    in the card's columns, 0 for the correct option; None if the options are not shuffled. number: the index, from 0,
    with which the row identifies the correct option; None if it uses no number.
    """

    texts: tuple[str, ...]
    right: str
    order: list[int] | None
    number: int | None


def _read_choices(card: Card, row: Row, question_id: str) -> ShownChoices:
    """The options of a multiple-choice row. Raises `UsageError`."""
    spec = card.choices
    assert spec is not None
    if not spec.correct:
        texts, labels = _read_options(row, spec.options)
        column = _require_column(row, card.columns.answer, "the answer")
        answer = row.cell(column)
        if isinstance(answer, list) and len(answer) == 1:  # AGIEval
            (answer,) = answer
        letter = _right_letter(answer, texts, labels)
        if letter is None:
            expected = f"identify one of the {len(texts)} options by its letter, index (starting at 0) or text"
            raise _wrong_cell(row, column, expected, row.cell(column), "the answer column")
        number = answer if isinstance(answer, int) and answer not in labels else None
        return ShownChoices(tuple(texts), letter, None, number)
    columns = [_require_column(row, (name,), "an option") for name in (spec.correct, *spec.incorrect)]
    texts = [_option_text(row, column, row.cell(column)) for column in columns]

    def rank(index: int) -> bytes:
        # "0" once distinguished several orders of a question; without it all stored runs would have different orders.
        text = "\0".join((str(spec.shuffle_seed), question_id, "0", str(index)))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    order = sorted(range(len(texts)), key=rank)
    return ShownChoices(tuple(texts[index] for index in order), ascii_uppercase[order.index(0)], order, None)


def _right_letter(answer: Any, texts: list[str], labels: list[Any]) -> str | None:
    """The letter of the option that an answer cell identifies by label, letter, index or text; None if there is
    none."""
    if isinstance(answer, bool):
        return None
    if answer in labels:
        return ascii_uppercase[labels.index(answer)]
    if isinstance(answer, int) and 0 <= answer < len(texts):
        return ascii_uppercase[answer]
    if not isinstance(answer, str):
        return None
    text = answer.strip()
    if len(text) == 1 and text in ascii_uppercase[: len(texts)]:
        return text  # a letter takes precedence over a text: options may be blood types
    if text in texts:
        return ascii_uppercase[texts.index(text)]
    from reasoning_answers.host import letter_of

    return letter_of(answer, ascii_uppercase[len(texts) - 1])


def _read_options(row: Row, columns: Names) -> tuple[list[str], list[Any]]:
    """Return (the options of a row, the row's labels for them, often none).

    Each option is a column, or one column has them all: as a list, a mapping by letter, either of these as JSON, or
    ARC's mapping of `label` and `text` to lists. Raises `UsageError`.
    """
    labels: list[Any] = []
    cells = {column: row.cell(_require_column(row, (column,), "the options")) for column in columns}
    if len(cells) > 1:
        texts = [_option_text(row, *cell) for cell in cells.items() if cell[1] not in (None, "")]
    else:
        ((column, options),) = cells.items()
        if isinstance(options, str) and options.lstrip()[:1] in ("[", "{"):
            options = _parsed_options(row, column, options)
        if isinstance(options, dict) and list(options) == list(ascii_uppercase[: len(options)]):
            options = list(options.values())
        elif isinstance(options, dict) and options.keys() == {"label", "text"}:
            labels, options = options["label"], options["text"]
            if not isinstance(labels, list) or not isinstance(options, list) or len(labels) != len(options):
                raise UsageError(f"{row.where}: the column {column!r} must have exactly one label for each text")
        if not isinstance(options, list):
            raise _wrong_cell(row, column, "be a list of 2 to 26 options", options)
        texts = [_option_text(row, column, option) for option in options]
    if not 2 <= len(texts) <= len(ascii_uppercase):
        remedy = "" if texts else "; move the questions without options to a separate file and run them separately"
        raise UsageError(f"{row.where}: expected 2 to {len(ascii_uppercase)} options, found {len(texts)}{remedy}")
    return texts, labels


def _parsed_options(row: Row, column: str, options: str) -> Any:
    """Options that are JSON in a text, or a list in Python notation. Raises `UsageError`."""
    try:
        return tables.parse_json(options, f"{row.where}, the column {column!r}")
    except UsageError:
        with contextlib.suppress(ValueError):
            return text_list(options)
        raise


def _option_text(row: Row, column: str, value: Any) -> str:
    """The text of an option. value: the cell, or a part of it. Raises `UsageError`."""
    if not _is_text_of(value, str | int | float):
        raise _wrong_cell(row, column, "contain an option's text", value)
    return str(value).strip()


def _tolerance(row: Row, value: Any) -> float:
    """The absolute tolerance in a cell. Raises `UsageError`, also for a list, which some rows of OlympiadBench have."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"{row.where}: the tolerance must be a finite, nonnegative number, found {_show(value)}")
    return number


_LINE_BREAK = re.compile(
    r"\\n(?!(?:abla|eq?|eg|ot|otin|u|i|leq|geq|less|gtr|mid|parallel|olimits|onumber|ewline|atural|earrow|warrow|sim"
    r"|cong|subseteq|exists|ormalsize|oindent|obreak)(?![A-Za-z]))"
)
"""A literal backslash-n, unless it begins a LaTeX command such as `\\neq` or `\\nu`."""


def _first_column(names: Names, row: Row) -> str | None:
    """The first of these columns that the row has, however it is spelled; None if it has none of them."""
    return column_names.find(names, row.value)


def _cell_or_none(row: Row, names: Names) -> Any:
    """The cell in the first of these columns that the row has; None if it has none of them."""
    column = _first_column(names, row)
    return None if column is None else row.cell(column)


def _require_column(row: Row, names: Names, role: str) -> str:
    """The first of these columns that the row has. role: the column's purpose, for the `UsageError` if there is
    none."""
    column = _first_column(names, row)
    if column is None:
        raise _no_column(row, names, role)
    return column


_KEYS = {ASKED_COLUMNS: "question_key", ANSWER_COLUMNS: "answer_key"}
"""Usual names of columns → the option that names another column."""


def _no_column(row: Row, names: Names, role: str) -> UsageError:
    """The error for a row that has none of these columns. role: what the column is for, such as "the answer"."""
    expected = " or ".join(repr(visible(name, 100)) for name in names) or "named"
    columns = column_names.column_paths(row.value)
    have = ", ".join(visible(name, 60) for name in columns[:40]) or "none"
    near = near_names(names[0], columns) if names else ""
    key = _KEYS.get(tuple(names))
    how = f" Specify the column with `{key}=NAME`." if key is not None and not near else ""
    return UsageError(f"{row.where} has no column {expected} for {role}; available columns: {have}.{near}{how}")


def _is_text_of(value: Any, kinds: Any) -> bool:
    """Whether a cell of these types has a value. JSON true is an integer in Python, but does not count as one here."""
    return isinstance(value, kinds) and not isinstance(value, bool) and bool(str(value).strip())


def _wrong_cell(row: Row, column: str, expected: str, value: Any, what: str = "the column") -> UsageError:
    """The error for a cell. expected: what it must do or be. what: the text before the column's name."""
    return UsageError(f"{row.where}: {what} {column!r} must {expected}, found {_show(value)}")


def _show(value: Any) -> str:
    """A cell for a message, safe to print."""
    if value is None:
        return "null"
    if value == "":
        return "an empty string"
    return quoted(repr(value))
