"""Records for lists: benchmarks, servers, and runs in progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from harness.commands.card_data import status
from harness.generation.run_progress import Progress
from harness.progress.running_score import RunningScore
from harness.runs.going import OnDisk
from harness.scoring.engine_metrics import EngineMetrics

if TYPE_CHECKING:
    from harness.benchmarks.card import Card
    from server_launchers.lifecycle.servers import ServerState


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark card."""

    benchmark: str
    """Name of the benchmark."""
    title: str
    """Card title."""
    questions: int | None
    """Number of questions; None if the card does not specify it."""
    samples: int
    """Default number of samples per question."""
    license: str
    """Data license."""
    data: Literal["here", "absent", "generated"]
    """Whether the data is available offline: "here" (downloaded), "generated" (by the harness) or "absent"."""

    @classmethod
    def of(cls, card: Card) -> CardRow:
        """The row of `card`."""
        return cls(
            benchmark=card.name,
            title=card.title,
            questions=card.questions,
            samples=card.samples,
            license=card.license,
            data=status(card),
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the terminal shows it."""
        return self.benchmark, self.title, str(self.questions or "?"), str(self.samples), self.license, self.data


class ServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One server."""

    name: str
    """Server name."""
    engine: str
    """Engine that serves the model."""
    model: str
    """Name of the model."""
    status: str
    """Server state: "starting", "ready" or "exited"."""
    base_urls: list[str]
    """Base URLs, one for each replica."""
    log: str
    """Log file of the server's first process."""
    versions: dict[str, str]
    """Versions of the engine and the software it runs on, where known."""

    @classmethod
    def of(cls, server: ServerState) -> ServerRow:
        """The row of `server`."""
        values = {name: getattr(server, name) for name in cls.__struct_fields__}
        return cls(**{**values, "log": str(server.log)})

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the terminal shows it."""
        return self.name, self.engine, self.model, self.status, ", ".join(self.base_urls), self.log


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """The servers that were started on this machine."""

    servers: list[ServerRow]
    """One entry per server."""


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a run."""

    run: str
    """Run folder."""
    state: Literal["running", "paused", "ending", "silent", "ended"]
    """Run state; "silent" means that a process has locked the run but is not responding."""
    progress: Progress | None
    """Progress reported by the running process; None if no process responds."""
    files: OnDisk | None
    """The run's state on disk; None while a process reports progress."""
    scores: dict[str, RunningScore]
    """Score so far, by benchmark."""
    engine: EngineMetrics | None = None
    """The engine's metrics so far; None if the server has no metrics page."""
