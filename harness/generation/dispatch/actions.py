"""The dispatcher's orders as values. The network thread carries them out and reports how each ended.

msgspec structs, since C code makes them: a dispatcher makes several for each request.
"""

from __future__ import annotations

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.runs.record import Task


class Ask(msgspec.Struct, frozen=True):
    """Send one request. Its end is reported once: by `answered`, `failed`, `cancelled` or `broke`.

    attempt: number of this request for the sample in this session, from 1.
    """

    task: Task
    endpoint: Endpoint
    attempt: int


class Cancel(msgspec.Struct, frozen=True):
    """End the request for `task` if it has not ended. Reported as `cancelled`, or as the end that came first."""

    task: Task


class Wait(msgspec.Struct, frozen=True):
    """Do nothing until something is reported, or until `seconds` have passed; None: without limit."""

    seconds: float | None


class Done(msgspec.Struct, frozen=True):
    """The session has ended: no request is in flight."""


Action = Ask | Cancel | Wait | Done
