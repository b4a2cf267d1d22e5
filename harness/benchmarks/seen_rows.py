"""What is learned from all rows of a source while they are read one by one: checksums, repetitions, what to note."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from harness.benchmarks.card import Card
from harness.benchmarks.drafts import Draft
from harness.core.codec import digest
from harness.core.number_text import count_noun, is_are


class SeenRows:
    """Collects the checksums, ids and reference answers of all rows as they are read one by one.

    rows: digest of each row. identities: `Draft.identity` of each question. ids: the questions' ids in order, as keys.
    contradiction: a sentence about the first row whose question also appears in an earlier row with a different answer.
    n_with_…: numbers of questions with tools, turns, and two user messages in a row; and, counted by the reader, with
    the prompt's instruction and with the URL of a picture.
    """

    def __init__(self, *, with_answers: bool, with_texts: bool) -> None:
        self.rows: list[bytes] = []
        self.identities: list[bytes] = []
        self.ids: dict[str, None] = {}
        self.contradiction = ""
        self.n_with_tools = self.n_with_turns = self.n_in_a_row = self.n_with_instruction = self.n_with_link = 0
        self._answers: list[Sequence[str]] | None = [] if with_answers else None
        self._first: dict[int, tuple[int, str]] | None = {} if with_texts else None  # Question -> (answers, location).

    def add(self, draft: Draft) -> None:
        """Record the question of a row."""
        question = draft.question
        # 32 bytes instead of a text of 64 characters: there may be millions of rows.
        self.rows.append(bytes.fromhex(question.row_digest))
        self.identities.append(bytes.fromhex(draft.identity))
        self.ids[question.question_id] = None
        self.n_with_tools += bool(question.tools)
        self.n_with_turns += bool(question.turns)
        self.n_in_a_row += ("user", "user") in pairwise(message.role for message in question.messages)
        if self._answers is not None:
            self._answers.append(question.references)
        if self._first is None or self.contradiction:
            return
        answers = hash((question.references, question.choices))
        asked = question.messages, question.choices, tuple(turn.messages for turn in question.turns or ())
        first = self._first.setdefault(hash(asked), (answers, draft.row.where))
        if first[0] != answers:
            self.contradiction = (
                f"{draft.row.where} has the same question as {first[1]} but a different answer, so one of two "
                "identical replies is graded as wrong. Correct the answer, or remove one of the rows"
            )

    @property
    def answers(self) -> str | None:
        """Checksum of all reference answers; None if the card has no such checksum."""
        return None if self._answers is None else answers_digest(self._answers)


def notes_on(card: Card, seen: SeenRows) -> Iterator[str]:
    """What a reader of the score should know about the rows."""
    n_all = count_noun(len(seen.rows), "question")
    repeated = len(seen.rows) - len(set(seen.rows))
    if repeated and card.questions is None:
        yield (
            f"{repeated} of {count_noun(len(seen.rows), 'row')} {is_are(repeated)} identical to an earlier "
            "row; each is still counted as a separate question"
        )
    if seen.n_in_a_row:
        yield (
            f"{seen.n_in_a_row} of {n_all} {'has' if seen.n_in_a_row == 1 else 'have'} two user "
            "messages in a row, which are sent in one request; to ask one after the other, set `turns=live`"
        )
    if seen.contradiction:
        yield seen.contradiction
    if seen.n_with_instruction:
        yield (
            f"{seen.n_with_instruction} of {len(seen.rows)} questions already contain the prompt's instruction; each "
            "request contains it only once"
        )
    if seen.n_with_link:
        yield (
            f"{seen.n_with_link} of {n_all} {'has' if seen.n_with_link == 1 else 'have'} the URL "
            "of an image in the text: the model sees the URL, not the image"
        )


def answers_digest(all_references: Iterable[Sequence[str]]) -> str:
    """Checksum of all reference answers, in any order; copies of a data set that differ only in other columns have the
    same checksum.

    Plain decimals are compared by value, so "27.0" equals "27".
    """
    return digest(sorted([_by_value(text) for text in references] for references in all_references))


def _by_value(text: str) -> str:
    """A plain decimal without trailing zeros; any other text unchanged."""
    if not re.fullmatch(r"-?\d{1,50}(\.\d{1,50})?", text):
        return text
    whole, _, decimals = text.partition(".")
    decimals = decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole
