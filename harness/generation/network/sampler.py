"""The interface between the network thread and a sampler, which turns each `Ask` of the dispatcher into a sample.

There are two samplers: one request for each sample (`harness.generation.network.requests`), and many requests in a file
(`harness.generation.batching`). `Way` says what else differs between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.client.protocol.reply import Reply
from harness.core.records import Sample
from harness.generation.dispatch.actions import Ask
from harness.generation.network.keeping import Keeper
from harness.runs.record import Task


class Sampler(Protocol):
    """Asks for samples, many at once. A sampler is made and used on the network thread's loop."""

    async def sample(self, ask: Ask) -> tuple[Sample, Reply]:
        """Ask for the sample that `ask` names; return it with the reply that it was made from.

        Raises `RequestFailed`.
        """
        ...

    def arrived(self) -> Mapping[Task, int]:
        """Return about how many tokens each request in flight has received; requests that do not tell are left out."""
        ...

    async def close(self) -> None:
        """End all requests in flight and close all connections."""
        ...


class Host(Protocol):
    """The part of a session that a sampler may use. `stop` and `fail` may be called on any thread."""

    def stop(self, why: str) -> None:
        """End every request now, and the session with them."""
        ...

    def fail(self, error: BaseException) -> None:
        """End every request now; the session raises `error`."""
        ...

    @property
    def keeper(self) -> Keeper | None:
        """The store of half-written samples; None if the session stores none."""
        ...

    @property
    def n_unwritten(self) -> int:
        """How many samples have arrived and are not on disk yet. Read on the network's loop."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a session asks for samples: one by one, or by the batch.

    open: makes the sampler, on the network's loop. concurrency: most requests in flight. attempts: failures after which
    a sample is given up; None: as the settings say. waits: True: after the first signal, requests in flight may finish;
    False: they are cut off at once.
    """

    open: Callable[[Host], Sampler]
    concurrency: int
    attempts: int | None
    waits: bool
