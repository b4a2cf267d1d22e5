"""The dispatcher's orders as values. The network thread carries them out and reports how each ended.

Named tuples, which are made in a third of the time of frozen dataclasses; an order without a field would be false.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.client.address.endpoint import Endpoint
from harness.core.records import Sample
from harness.generation.plan import Task


class Ask(NamedTuple):
    """Send one request. Its end is reported once: by `answered`, `failed`, `cancelled` or `broke`.

    attempt: number of this request for the sample in this session, from 1. go_on: whether the request may continue the
    part of the reply that an earlier request left; False: it asks for the whole reply.
    """

    task: Task
    endpoint: Endpoint
    attempt: int
    go_on: bool = True


class Cancel(NamedTuple):
    """End the request for `task` if it has not ended. Reported as `cancelled`, or as the end that came first."""

    task: Task


class Store(NamedTuple):
    """Append `sample` to the journal of its benchmark. Reported as `written` when it is on disk, or never will be."""

    task: Task
    sample: Sample


class Log(NamedTuple):
    """Write an event to the run's log."""

    event: str
    facts: Mapping[str, Any]


class Wait(NamedTuple):
    """Do nothing until something is reported, or until `seconds` have passed; None: without limit."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Done:
    """The session has ended: no request is in flight, and no sample on its way to the disk."""


Action = Ask | Cancel | Store | Log | Wait | Done
