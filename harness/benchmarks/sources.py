"""Where a card's rows come from: a file, the Hugging Face hub, a generator."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.benchmarks import tables
from harness.benchmarks.card import Card, FileSource, GymSource, HubSource
from harness.benchmarks.tables import Row


@dataclass(frozen=True)
class Rows:
    """All rows of a source, in its order. `notes`: what a reader of the score should know about them."""

    rows: list[Row]
    origin: str
    notes: tuple[str, ...] = field(default=())


Status = Literal["here", "absent", "generated"]


def read(card: Card) -> Rows:
    """The rows of the card's source. Raises `UsageError` in one sentence."""
    source = card.source
    if isinstance(source, FileSource):
        if source.path.startswith("hf://"):
            from harness.benchmarks import hub

            return hub.read(hub.from_url(source.path, source.split))
        path = local_path(card, source)
        return Rows(tables.read(path, source.split, shown=source.path), source.path)
    if isinstance(source, HubSource):
        from harness.benchmarks import hub

        return hub.read(source)
    from harness.benchmarks import gym

    return gym.read(source)


def status(card: Card) -> Status:
    """Whether the data can be read without the network."""
    source = card.source
    if isinstance(source, GymSource):
        return "generated"
    if isinstance(source, HubSource) or source.path.startswith("hf://"):
        from harness.benchmarks import hub

        wanted = source if isinstance(source, HubSource) else hub.from_url(source.path, source.split)
        return "here" if hub.cached(wanted) else "absent"
    return "here" if local_path(card, source).exists() else "absent"


def local_path(card: Card, source: FileSource) -> Path:
    """The file of a source, relative to the card's folder."""
    path = Path(source.path).expanduser()
    if path.is_absolute() or card.folder is None:
        return path
    return card.folder / path
