"""A card's data as a user handles them: are they here, fetch them, show what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.benchmarks import questions
from harness.benchmarks.card import Card, GymSource, HubSource, UrlSource
from harness.benchmarks.sources import chooser
from harness.core.records import Question

Status = Literal["here", "absent", "generated"]
"""here: readable without the network · absent: `fetch` gets them · generated: made by a package, from a seed."""


@dataclass(frozen=True)
class Fetched:
    """What `fetch` found: number of questions, where from, checksums, notes of the card's verification."""

    name: str
    n_questions: int
    origin: str
    rows_digest: str
    dataset_digest: str
    notes: tuple[str, ...]


def status(card: Card) -> Status:
    """Whether the rows can be read now. Never asks the network."""
    source = card.source
    if isinstance(source, GymSource):
        return "generated"
    if isinstance(source, HubSource | UrlSource) or source.path.startswith("hf://"):
        return "here" if chooser.cached(card) else "absent"
    return "here" if chooser.local_path(card, source).exists() else "absent"


def fetch(card: Card) -> Fetched:
    """Download where needed, read and verify all rows. Raises `UsageError` in one sentence."""
    built = questions.build(card)
    return Fetched(card.name, built.n_all, built.origin, built.rows_digest, built.dataset_digest, built.notes)


def render_examples(card: Card, number: int) -> list[str]:
    """The first prompts as they are sent: each turn under its role. Raises `UsageError`."""
    return [rendered(question) for question in questions.build(card, limit=number).questions]


def rendered(question: Question) -> str:
    """One question's prompt as text: `[role]` lines and contents, or the raw prompt of the completions API."""
    if not question.messages:
        return question.prompt
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in question.messages)
