"""What the dispatcher wants done next, as values. The network thread does it, and tells the dispatcher how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.client.address.endpoint import Endpoint
from harness.core.records import Sample
from harness.generation.plan import Task


@dataclass(frozen=True, slots=True)
class Ask:
    """Send one request. Its end is told once: `answered`, `failed`, `cancelled` or `broke`.

    attempt: number of this request for the sample in this session, from 1. go_on: it may go on with what had been
    written of the sample; a whole request otherwise.
    """

    task: Task
    endpoint: Endpoint
    attempt: int
    go_on: bool = True


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the request for `task`, if it has not ended. It is told as `cancelled`, or as what it came to meanwhile."""

    task: Task


@dataclass(frozen=True, slots=True)
class Store:
    """Append `sample` to the journal of its benchmark. When it is on disk, or never will be: `written`."""

    task: Task
    sample: Sample


@dataclass(frozen=True, slots=True)
class Log:
    """Write an event to the run's log."""

    event: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do until something is told, or until `seconds` from now; None: however long that takes."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Done:
    """The session has ended: nothing is in flight and nothing on its way to the disk."""


Action = Ask | Cancel | Store | Log | Wait | Done
