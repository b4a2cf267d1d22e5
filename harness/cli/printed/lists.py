"""Records of lists: benchmarks, plug-ins, servers, runs that are going on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from harness.commands.card_data import status
from harness.generation.run_progress import Progress
from harness.progress.running_score import RunningScore
from harness.runs.going import OnDisk
from harness.scoring.engine_figures import EngineFigures

if TYPE_CHECKING:
    from harness.benchmarks.card import Card
    from server_launchers.keeping.servers import ServerState


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One card. questions: their number; None if the card does not state it. samples: the default number of samples a
    question. data: whether the rows can be read without a network.
    """

    benchmark: str
    title: str
    questions: int | None
    samples: int
    licence: str
    data: Literal["here", "absent", "generated"]

    @classmethod
    def of(cls, card: Card) -> CardRow:
        """The row of `card`."""
        return cls(
            benchmark=card.name,
            title=card.title,
            questions=card.questions,
            samples=card.samples,
            licence=card.licence,
            data=status(card),
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the terminal shows it."""
        return self.benchmark, self.title, str(self.questions or "?"), str(self.samples), self.licence, self.data


class ServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One server. log: of its first process. versions: of the engine and what it runs on, as far as known."""

    name: str
    engine: str
    model: str
    status: str
    base_urls: list[str]
    log: str
    versions: dict[str, str]

    @classmethod
    def of(cls, server: ServerState) -> ServerRow:
        """The row of `server`."""
        return cls(
            name=server.name,
            engine=server.engine,
            model=server.model,
            status=server.status,
            base_urls=server.base_urls,
            log=str(server.log),
            versions=server.versions,
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the terminal shows it."""
        return self.name, self.engine, self.model, self.status, ", ".join(self.base_urls), self.log


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of this machine."""

    servers: list[ServerRow]


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a run.

    state: `silent` if a process holds the run and does not answer. progress: what the running process reports. files:
    what the disk shows, if none runs. scores: by benchmark, as far as they exist. engine: the engine's own figures so
    far; None without a metrics page.
    """

    run: str
    state: Literal["running", "paused", "ending", "silent", "ended"]
    progress: Progress | None
    files: OnDisk | None
    scores: dict[str, RunningScore]
    engine: EngineFigures | None = None
