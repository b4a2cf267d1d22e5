"""A card's data: finds them on this machine, fetches them, and shows the first prompts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from harness.benchmarks import questions
from harness.benchmarks.card import Card, HubSource, RandomSource, UrlSource
from harness.benchmarks.questions import QuestionSet
from harness.benchmarks.sources import hub, readers
from harness.benchmarks.sources.tables import MAX_DATA_BYTES, MAX_ROWS, Row
from harness.core import codec
from harness.core.files import replacing
from harness.core.records import Question

Status = Literal["here", "absent", "generated"]
"""Where a card's rows are. here: on this machine · absent: `fetch` downloads them · generated: a package creates them.
"""


class Fetched(NamedTuple):
    """The result of `fetch`: all questions, and what a machine without a network needs.

    to_copy: the single file with the rows; or the data set's folder in the hub's cache if the rows are too many for one
    file or contain images, or if the card is in that folder; or the folder of several files from URLs. None for data
    from neither the hub nor a URL.
    """

    questions: QuestionSet
    to_copy: Path | None


def status(card: Card) -> Status:
    """Whether the card's rows can be read without the network. Never uses the network."""
    source = card.source
    if isinstance(source, RandomSource):
        return "generated"
    if isinstance(source, HubSource | UrlSource) or source.path.startswith("hf://"):
        return "here" if readers.is_cached(card) else "absent"
    return "here" if readers.local_path(card, source).exists() else "absent"


def fetch(card: Card) -> Fetched:
    """Download a card's data if needed, then read and verify all rows. Raises `UsageError`.

    A hub data set is downloaded even if a copied file of it is here; its rows are then written to that file.
    """
    source = card.source
    rows = readers.read_hub(card, source).rows if isinstance(source, HubSource) else ()
    built = questions.build(card)
    to_copy = None
    if isinstance(source, HubSource):
        file = readers.copied_file(card, source)
        has_images = bool(card.columns.images)  # their bytes are not in any line of JSON
        is_enough = not has_images and not readers.is_of_its_set(card) and _write_rows(file, rows)
        to_copy = file if is_enough else hub.repository_folder(source)
    elif isinstance(source, UrlSource):
        from harness.benchmarks.sources import web

        to_copy = web.cached_path(source)
        to_copy = to_copy.parents[1] if source.further else to_copy
    return Fetched(built, to_copy)


class _TooLargeError(Exception):
    """The rows would make a file that is too long to be read."""


def _write_rows(file: Path, rows: Iterable[Row]) -> bool:
    """Write the rows as JSON Lines. If they are too many to be read, returns False and leaves the file unchanged."""
    size = 0
    with contextlib.suppress(_TooLargeError), replacing(file) as lines:
        for number, row in enumerate(rows, 1):
            line = codec.encode(row.value) + b"\n"
            size += len(line)
            if size > MAX_DATA_BYTES or number > MAX_ROWS:
                raise _TooLargeError
            lines.write(line)
        return True
    return False


def render_examples(card: Card, number: int) -> list[str]:
    """The prompts of the first `number` questions, each as one text. Raises `UsageError`."""
    return [prompt_text(question) for question in questions.build(card, limit=number).questions]


def prompt_text(question: Question) -> str:
    """A question's prompt as one text: each message below a line `[role]`; for the completions API, only the prompt."""
    if not question.messages:
        return question.prompt
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in question.messages)
