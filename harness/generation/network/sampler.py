"""What the network thread needs of whatever asks for samples: a sample for each `Ask`, and how far replies have come.

Two kinds exist: one request a sample (`harness.generation.network.requests`), and many by the batch
(`harness.generation.batching`). `Way` says what else differs between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.client.protocol.reply import Reply
from harness.core.records import Sample
from harness.generation.dispatch.actions import Ask
from harness.generation.dispatch.retry import RetryPolicy
from harness.generation.network.keeping import Keeper
from harness.generation.plan import Task


class Sampler(Protocol):
    """Asks for samples, many at once. Made and used on the network's loop."""

    async def sample(self, ask: Ask) -> tuple[Sample, Reply]:
        """The sample that `ask` names, with the reply that it was made from. Raises `RequestFailed`."""
        ...

    def arrived(self) -> Mapping[Task, int]:
        """Token events received so far, about, by request in flight; a request that tells nothing is left out."""
        ...

    async def close(self) -> None:
        """End what is under way and close all connections."""
        ...


class Host(Protocol):
    """The session that a sampler works for. `stop` and `fail` may be called on any thread."""

    def stop(self, why: str) -> None:
        """End every request now, and the session with them."""
        ...

    def fail(self, error: BaseException) -> None:
        """As `stop`; the session raises `error`."""
        ...

    @property
    def keeper(self) -> Keeper | None:
        """What is kept of half-written samples; None where nothing is."""
        ...

    @property
    def n_unwritten(self) -> int:
        """Samples on their way to the disk. Read on the network's loop."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How the samples of a session are asked.

    open: makes the sampler, on the network's loop. concurrency: requests in flight, at most. policy: of retries; None:
    the settings' own. waits: a first signal lets requests in flight end; else it ends them at once.
    """

    open: Callable[[Host], Sampler]
    concurrency: int
    policy: RetryPolicy | None
    waits: bool
