"""From a card and its rows to rendered questions with fixed references and identities.

Identity: the set's own id where it has one, else a checksum of the row; equal rows get an ordinal. Nothing of it
depends on the order of the file or on the prompt.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from harness.benchmarks import prompts, sources
from harness.benchmarks.card import Card, Names
from harness.benchmarks.prompts import Prompt
from harness.benchmarks.references import kind_of, letter, references
from harness.benchmarks.tables import Row
from harness.core.errors import UsageError, near_names
from harness.core.identity import digest
from harness.core.inert import quoted, visible
from harness.core.records import AnswerKind, Api, GradeRules, Question

MAX_ID_CHARS = 500
"""Longest id of a question, in characters."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class QuestionSet:
    """The questions of one benchmark as they will be asked.

    questions: the selected ones, in the order of the source. n_all: how many the set has without a selection.
    rows_digest: checksum of all source rows, in any order (what cards state). dataset_digest: checksum of all rows
    with the references and choices made from them, in any order and whatever the selection: part of a run's identity.
    template_digest: checksum of prompt and system prompt. notes: what a reader of the score should know.
    """

    card: Card
    questions: list[Question]
    n_all: int
    rows_digest: str
    dataset_digest: str
    prompt: str
    system_prompt: str | None
    template_digest: str
    api: Api
    origin: str
    notes: tuple[str, ...] = ()


def build(
    card: Card,
    *,
    prompt: str | Prompt | None = None,
    system_prompt: str | None = None,
    limit: int | None = None,
    ids: Sequence[str] | None = None,
    filters: Sequence[str] = (),
    api: Api = "chat",
) -> QuestionSet:
    """Read, verify, select and render. Raises `UsageError`: one sentence with file, line and field.

    prompt: a name, or a prompt of one's own; default the card's. system_prompt: a name or a text, "none" for no
    system turn; default the prompt's. filters: "column=value", all must hold; then `ids`, then the first `limit`.
    """
    chosen = prompt if isinstance(prompt, Prompt) else prompts.named(prompt or card.prompt, card.prompts)
    system = None if system_prompt is None else prompts.system_prompt(system_prompt)
    found = sources.read(card)
    notes = list(found.notes)
    drafts = _drafts(card, found.rows)
    rows_digest = digest(sorted(draft.row_digest for draft in drafts))
    notes += _verified(card, drafts, rows_digest, found.origin)
    if card.choices and card.choices.orders > 1:
        drafts = [reordered for draft in drafts for reordered in _orders(card, draft, card.choices.orders)]

    asked = [_text_of(draft, chosen, system) for draft in drafts]
    stripped = sum(had for _, had in asked)
    if stripped:
        notes.append(f"{stripped} of {len(drafts)} questions carry the instruction themselves; it is asked once")
    texts = {draft.question_id: text for draft, (text, _) in zip(drafts, asked, strict=True)}
    selected = _selected(drafts, card, filters, ids, limit)
    return QuestionSet(
        card=card,
        questions=[_question(card, draft, texts[draft.question_id], chosen, system, api) for draft in selected],
        n_all=len(drafts),
        rows_digest=rows_digest,
        dataset_digest=digest(sorted(draft.identity for draft in drafts)),
        prompt=chosen.name,
        system_prompt=(chosen.system if system is None else system) or None,
        template_digest=digest([chosen.template_digest, chosen.system if system is None else system, api]),
        api=api,
        origin=found.origin,
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Draft:
    """A row with its identity and references, before the prompt."""

    row: Row
    question_id: str
    row_digest: str
    text: str
    references: tuple[str, ...]
    kind: AnswerKind
    choices: tuple[str, ...]
    rules: GradeRules
    metadata: dict[str, Any]

    @property
    def identity(self) -> str:
        """Checksum of the row and of all that the card made of it."""
        return digest([self.row_digest, self.question_id, self.references, self.kind, self.choices])


def _drafts(card: Card, rows: list[Row]) -> list[_Draft]:
    if not rows:
        raise UsageError(f"{card.name} holds no rows")
    id_column = _id_column(card, rows)
    seen: dict[str, str] = {}
    equal_rows: dict[str, int] = {}
    drafts = []
    for row in rows:
        row_digest = digest(row.value)
        if id_column is None:
            ordinal = equal_rows[row_digest] = equal_rows.get(row_digest, 0) + 1
            question_id = row_digest[:16] + (f"-{ordinal}" if ordinal > 1 else "")
        else:
            question_id = _id_of(row, id_column)
        if question_id in seen:
            raise UsageError(
                f"{row.place}: the id {visible(question_id, 100)!r} stands already at {seen[question_id]}; ids must "
                "be distinct (leave out the id column to identify rows by checksum)"
            )
        seen[question_id] = row.place
        drafts.append(_draft(card, row, question_id, row_digest))
    return drafts


def _id_column(card: Card, rows: list[Row]) -> str | None:
    if card.id_rule == "checksum" or not card.columns.id:
        return None
    column = _first(card.columns.id, rows[0])
    if column is None and card.id_rule == "column":
        raise _no_column(rows[0], card.columns.id, "the id")
    return column


def _id_of(row: Row, column: str) -> str:
    value = row.value.get(column)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise UsageError(f"{row.place}: the id column {column!r} must be text or an integer, found {_shown(value)}")
    if len(str(value)) > MAX_ID_CHARS:
        raise UsageError(f"{row.place}: the id has {len(str(value))} characters; at most {MAX_ID_CHARS} are allowed")
    return str(value).strip()


def _orders(card: Card, draft: _Draft, orders: int) -> Iterable[_Draft]:
    yield draft
    for order in range(1, orders):
        other = _draft(card, draft.row, draft.question_id, draft.row_digest, order)
        metadata = other.metadata | {"same_as": draft.question_id}
        yield replace(other, question_id=f"{draft.question_id}~{order}", metadata=metadata)


def _draft(card: Card, row: Row, question_id: str, row_digest: str, order: int = 0) -> _Draft:
    columns = card.columns
    question = _required(row, columns.question, "the question")
    text = row.value[question]
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{row.place}: the column {question!r} must be a question's text, found {_shown(text)}")
    if card.literal_line_breaks:
        text = _LINE_BREAK.sub("\n", text)
    context = _optional(row, columns.context)
    if isinstance(context, str) and context.strip():
        text = f"{context.strip()}\n\n{text}"

    metadata = {name: row.value[name] for name in columns.metadata if name in row.value}
    rules = card.rules
    tolerance = _optional(row, columns.tolerance)
    if tolerance not in (None, ""):
        rules = msgspec.structs.replace(rules, absolute_tolerance=_tolerance(row, tolerance))
    unit = _optional(row, columns.unit)
    if isinstance(unit, str) and unit.strip():
        metadata["unit"] = unit.strip()

    choices: tuple[str, ...] = ()
    answers: tuple[str, ...]
    kind: AnswerKind
    if card.choices:
        choices, answer, shown = _choices(card, row, question_id, order)
        answers, kind = (answer,), "choice"
        if shown is not None:
            metadata["choice_order"] = shown
    else:
        answers, kind = _answers(card, row)
        if _optional(row, columns.multiple) in (True, "true", "True", 1):
            kind = "multiple"
    return _Draft(row, question_id, row_digest, text, answers, kind, choices, rules, metadata)


def _answers(card: Card, row: Row) -> tuple[tuple[str, ...], AnswerKind]:
    column = _required(row, card.columns.answer, "the answer")
    value = row.value[column]
    try:
        answers = references(value, card.answer_form, card.kind, card.structured_answers)
    except ValueError as error:
        raise UsageError(f"{row.place}: the answer column {column!r} {error}") from error
    kind = kind_of(value, answers[0]) if card.kind == "auto" else card.kind
    more = [str(value).strip() for name in card.columns.more_answers if (value := row.value.get(name)) is not None]
    if kind == "choice":
        answers = tuple(letter(answer) or answer for answer in answers)
    return tuple(dict.fromkeys((*answers, *(text for text in more if text)))), kind


def _choices(card: Card, row: Row, question_id: str, order: int) -> tuple[tuple[str, ...], str, list[int] | None]:
    """(option texts in the order shown, letter of the right one, order as indices into the source's columns)."""
    spec = card.choices
    assert spec is not None
    if spec.correct:
        texts = [_option(row, name) for name in (spec.correct, *spec.incorrect)]

        def rank(index: int) -> bytes:
            text = f"{spec.shuffle_seed}\0{question_id}\0{order}\0{index}"
            return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

        shown = sorted(range(len(texts)), key=rank)
        return tuple(texts[i] for i in shown), LETTERS[shown.index(0)], shown
    assert spec.options is not None
    column = _required(row, (spec.options,), "the options")
    options = row.value[column]
    if not isinstance(options, list) or not 2 <= len(options) <= len(LETTERS):
        raise UsageError(
            f"{row.place}: the column {column!r} must be a list of 2 to 26 options, found {_shown(options)}"
        )
    texts = [_option_text(row, column, option) for option in options]
    answer_column = _required(row, card.columns.answer, "the answer")
    answer = row.value[answer_column]
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(texts):
        return tuple(texts), LETTERS[answer], None
    if isinstance(answer, str):
        if answer.strip() in texts:
            return tuple(texts), LETTERS[texts.index(answer.strip())], None
        found = letter(answer)
        if found and LETTERS.index(found) < len(texts):
            return tuple(texts), found, None
    raise UsageError(
        f"{row.place}: the answer column {answer_column!r} must name one of the {len(texts)} options by letter, "
        f"index or text, found {_shown(answer)}"
    )


def _option(row: Row, name: str) -> str:
    return _option_text(row, name, row.value[_required(row, (name,), "an option")])


def _option_text(row: Row, column: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise UsageError(f"{row.place}: the column {column!r} must hold the text of an option, found {_shown(value)}")
    return str(value).strip()


def _tolerance(row: Row, value: Any) -> float:
    """OlympiadBench writes one number; some of its physics rows a list of numbers, which one answer cannot use."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"{row.place}: the tolerance must be a number of at least 0, found {_shown(value)}")
    return number


_LINE_BREAK = re.compile(
    r"\\n(?!(?:abla|eq?|eg|ot|otin|u|i|leq|geq|less|gtr|mid|parallel|olimits|onumber|ewline|atural|earrow|warrow|sim"
    r"|cong|subseteq|exists|ormalsize|oindent|obreak)(?![A-Za-z]))"
)
"""A literal backslash-n that begins no LaTeX command such as `\\neq` or `\\nu`."""


def _text_of(draft: _Draft, prompt: Prompt, system: str | None) -> tuple[str, bool]:
    """The question's text for this prompt, and whether an instruction of its own was taken off."""
    if not (prompt.instructs or system):
        return draft.text, False
    return prompts.without_instruction(draft.text)


def _question(card: Card, draft: _Draft, text: str, prompt: Prompt, system: str | None, api: Api) -> Question:
    listed = "\n".join(f"{LETTERS[i]}) {option}" for i, option in enumerate(draft.choices))
    messages, raw = prompts.render(prompt, text, listed, api, system)
    return Question(
        benchmark=card.name,
        question_id=draft.question_id,
        messages=messages,
        prompt=raw,
        references=draft.references,
        kind=draft.kind,
        rules=draft.rules,
        choices=draft.choices,
        metadata=draft.metadata,
        row_digest=draft.row_digest,
        prompt_digest=digest([[message.role, message.content] for message in messages] if messages else raw),
    )


def _verified(card: Card, drafts: list[_Draft], rows_digest: str, origin: str) -> list[str]:
    """Notes about the data's edition. Raises `UsageError` where the card's own data are not what the card says."""
    if rows_digest in {card.checksum, *(edition.rows for edition in card.editions)}:
        return []
    answers = answers_digest(draft.references for draft in drafts)
    problem = None
    if card.questions is not None and len(drafts) != card.questions:
        problem = f"{len(drafts)} questions, but the card {card.name!r} says {card.questions}"
    elif card.checksum is not None:
        problem = f"rows with checksum {rows_digest}, but the card {card.name!r} says {card.checksum}"
    elif card.answers_checksum is not None and answers != card.answers_checksum:
        problem = f"other reference answers than the card {card.name!r} knows (checksum {answers})"
    if problem is None:
        known = card.editions or card.answers_checksum
        return [f"{visible(origin)} is an edition that the card does not know (rows {rows_digest})"] if known else []
    if card.own_data:
        raise UsageError(
            f"{visible(origin)} holds {problem}; fetch the data again, or use a card of your own for other data"
        )
    return [f"{visible(origin)} holds {problem}: the score compares to no published one"]


def answers_digest(all_references: Iterable[Sequence[str]]) -> str:
    """Checksum of the reference answers of a set in any order: the same for copies that differ in other columns.

    Plain decimals count by value, so "27.0" and "27" are one.
    """
    return digest(sorted([_by_value(text) for text in references] for references in all_references))


def _by_value(text: str) -> str:
    if not re.fullmatch(r"-?\d{1,50}(\.\d{1,50})?", text):
        return text
    whole, _, decimals = text.partition(".")
    decimals = decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _selected(
    drafts: list[_Draft], card: Card, filters: Sequence[str], ids: Sequence[str] | None, limit: int | None
) -> list[_Draft]:
    chosen = drafts
    for text in filters:
        name, equals, wanted = text.partition("=")
        name, wanted = name.strip(), wanted.strip()
        if not equals or not name:
            raise UsageError(f"the filter {quoted(text)!r} must be of the form column=value, such as level=5")
        known = {*drafts[0].metadata, *drafts[0].row.value}
        if name not in known:
            raise UsageError(
                f"{card.name} has no column {visible(name, 100)!r} to filter by; it has "
                f"{', '.join(sorted(map(visible, known)))}.{near_names(name, known)}"
            )
        chosen = [d for d in chosen if str(d.metadata.get(name, d.row.value.get(name))) == wanted]
        if not chosen:
            values = sorted({str(d.metadata.get(name, d.row.value.get(name))) for d in drafts})
            shown = ", ".join(visible(value, 40) for value in values[:10])
            raise UsageError(f"the filter {quoted(text)!r} leaves no question of {card.name}; values are {shown}")
    if ids is not None:
        known_ids = {draft.question_id for draft in drafts}
        for wanted in ids:
            if wanted not in known_ids:
                raise UsageError(
                    f"{card.name} has no question {visible(wanted, 100)!r}.{near_names(wanted, known_ids)} "
                    f"The first ids are {', '.join(visible(d.question_id, 40) for d in drafts[:5])}"
                )
        chosen = [draft for draft in chosen if draft.question_id in set(ids)]
        if not chosen:
            raise UsageError(f"no question of {card.name} has one of the ids and passes the filter")
    if limit is not None:
        if limit < 1:
            raise UsageError(f"the limit must be at least 1 question, found {limit}")
        chosen = chosen[:limit]
    return chosen


def _first(names: Names, row: Row) -> str | None:
    return next((name for name in names if name in row.value), None)


def _optional(row: Row, names: Names) -> Any:
    column = _first(names, row)
    return None if column is None else row.value[column]


def _required(row: Row, names: Names, role: str) -> str:
    column = _first(names, row)
    if column is None:
        raise _no_column(row, names, role)
    return column


def _no_column(row: Row, names: Names, role: str) -> UsageError:
    wanted = " or ".join(repr(visible(name, 100)) for name in names) or "named"
    have = ", ".join(visible(name, 60) for name in list(row.value)[:40]) or "no columns"
    near = near_names(names[0], row.value) if names else ""
    return UsageError(f"{row.place} has no column {wanted} for {role}; it has {have}.{near}")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if value == "":
        return "an empty text"
    return quoted(repr(value))
