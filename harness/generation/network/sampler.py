"""The interface between the network thread and a sampler, which turns each `Ask` of the dispatcher into a sample.

There is one sampler, which sends a request for each sample (`harness.generation.network.requests`); tests have others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from harness.client.protocol.reply import Reply
from harness.core.records import Sample
from harness.generation.dispatch.actions import Ask
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
