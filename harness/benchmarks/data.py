"""What the command `benchmarks` does with a card's data: look for them on this machine, fetch them, show prompts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.benchmarks import questions
from harness.benchmarks.card import Card, GymSource, HubSource, UrlSource
from harness.benchmarks.sources import chooser
from harness.core import codec
from harness.core.files import write_atomically
from harness.core.records import Question

Status = Literal["here", "absent", "generated"]
"""Where a card's rows are. here: on this machine · absent: `fetch` downloads them · generated: a package makes them."""


@dataclass(frozen=True)
class Fetched:
    """The result of `fetch`.

    origin: the source's name and revision. notes: what a reader of a score should know about the data. rows_digest,
    dataset_digest: see `harness.benchmarks.questions.QuestionSet`. file: the one file that holds the rows, to be
    copied to a machine without a network; None where none is needed.
    """

    name: str
    n_questions: int
    origin: str
    rows_digest: str
    dataset_digest: str
    notes: tuple[str, ...]
    file: Path | None


def status(card: Card) -> Status:
    """Whether the card's rows can be read without the network. Never uses the network."""
    source = card.source
    if isinstance(source, GymSource):
        return "generated"
    if isinstance(source, HubSource | UrlSource) or source.path.startswith("hf://"):
        return "here" if chooser.is_cached(card) else "absent"
    return "here" if chooser.local_path(card, source).exists() else "absent"


def fetch(card: Card) -> Fetched:
    """Download a card's data if needed, then read and verify all rows. Raises `UsageError`."""
    built = questions.build(card)
    file = chooser.one_file(card)
    if file is not None and isinstance(card.source, HubSource):
        write_atomically(file, (codec.encode(row.value) + b"\n" for row in chooser.read(card).rows))
    return Fetched(card.name, built.n_all, built.origin, built.rows_digest, built.dataset_digest, built.notes, file)


def render_examples(card: Card, number: int) -> list[str]:
    """The prompts of the first `number` questions, each as one text. Raises `UsageError`."""
    return [prompt_text(question) for question in questions.build(card, limit=number).questions]


def prompt_text(question: Question) -> str:
    """A question's prompt as one text: each message under a line `[role]`; for the completions API, just the prompt."""
    if not question.messages:
        return question.prompt
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in question.messages)
