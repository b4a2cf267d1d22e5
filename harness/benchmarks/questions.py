"""From a card and its rows to rendered questions with fixed references: verify, select, render."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.benchmarks import drafts, prompts
from harness.benchmarks.card import Card
from harness.benchmarks.drafts import LETTERS, Draft
from harness.benchmarks.prompts import Prompt
from harness.benchmarks.sources import chooser
from harness.core.checksums import digest
from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted, visible
from harness.core.records import Api, Question
from harness.presets.sampling import Sampling


@dataclass(frozen=True)
class QuestionSet:
    """The questions of one benchmark as they will be asked.

    name: of the benchmark. questions: the selected ones, in the order of the source. n_all: how many the set has
    without a selection. samples, sampling: what its card asks for; publish: whether it lets
    questions, answers and samples be shown in public.
    rows_digest: checksum of all source rows, in any order (what cards state). dataset_digest: checksum of all rows
    with the references and choices made from them, in any order and whatever the selection: part of a run's identity.
    template_digest: checksum of prompt and system prompt. notes: what a reader of the score should know.
    """

    name: str
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
    samples: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    publish: bool = True


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
    source = chooser.read(card)
    notes = list(source.notes)
    all_drafts = drafts.drafts(card, source.rows)
    rows_digest = digest(sorted(draft.row_digest for draft in all_drafts))
    notes += _verified(card, all_drafts, rows_digest, source.origin)
    if card.choices and card.choices.orders > 1:
        all_drafts = [other for draft in all_drafts for other in drafts.reordered(card, draft, card.choices.orders)]

    asked = [_text_of(draft, chosen, system) for draft in all_drafts]
    stripped = sum(had for _, had in asked)
    if stripped:
        notes.append(f"{stripped} of {len(all_drafts)} questions carry the instruction themselves; it is asked once")
    texts = {draft.question_id: text for draft, (text, _) in zip(all_drafts, asked, strict=True)}
    selected = _selected(all_drafts, card, filters, ids, limit)
    return QuestionSet(
        name=card.name,
        samples=card.samples,
        sampling=card.sampling,
        publish=card.publish_questions,
        questions=[_question(card, draft, texts[draft.question_id], chosen, system, api) for draft in selected],
        n_all=len(all_drafts),
        rows_digest=rows_digest,
        dataset_digest=digest(sorted(draft.identity for draft in all_drafts)),
        prompt=chosen.name,
        system_prompt=(chosen.system if system is None else system) or None,
        template_digest=digest([chosen.template_digest, chosen.system if system is None else system, api]),
        api=api,
        origin=source.origin,
        notes=tuple(notes),
    )


def _text_of(draft: Draft, prompt: Prompt, system: str | None) -> tuple[str, bool]:
    """The question's text for this prompt, and whether an instruction of its own was taken off."""
    if not (prompt.instructs or system):
        return draft.text, False
    return prompts.without_instruction(draft.text, prompt)


def _question(card: Card, draft: Draft, text: str, prompt: Prompt, system: str | None, api: Api) -> Question:
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


def _verified(card: Card, drafts: list[Draft], rows_digest: str, origin: str) -> list[str]:
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
    drafts: list[Draft], card: Card, filters: Sequence[str], ids: Sequence[str] | None, limit: int | None
) -> list[Draft]:
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
        chosen = [draft for draft in chosen if _cell(draft, name) == wanted]
        if not chosen:
            values = sorted({_cell(draft, name) for draft in drafts})
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


def _cell(draft: Draft, name: str) -> str:
    """A column's value as it is typed in a filter."""
    value = draft.metadata.get(name, draft.row.value.get(name))
    return str(value).lower() if isinstance(value, bool) else str(value)
