"""What happens after a request failed: whether its sample is asked again, when, and at what cost.

| fault | failures | the sample is asked again | it costs |
| --- | --- | --- | --- |
| endpoint | no connection, `AWAY`, `GATEWAY`, a probe's deadline | at once, elsewhere first | nothing |
| pace | 429 | at once, by whichever endpoint's pace allows it | nothing |
| chance | other 5xx, cut or malformed streams, deadlines | after a backoff, elsewhere first | an attempt |
| payload | prompt too long, rejected, runaway | never: the sample is given up | – |
| run | 401, 403, 404 | never: the run stops, unless this endpoint never answered and another may | – |

`lanes` and `too_many_requests` decide what a fault means for the endpoint. A Retry-After holds the endpoint back but
not the sample, which another endpoint may take meanwhile. Time and randomness are parameters; nothing here sleeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from harness.client.protocol.reply import RequestFailed
from harness.generation.dispatch.flight import Work
from harness.generation.settings import Patience

Fault = Literal["endpoint", "pace", "chance", "payload", "run"]

AWAY = frozenset({503, 529})
"""Statuses by which a server says that it cannot serve now, also by an error inside a reply of status 200."""

GATEWAY = frozenset({502, 504, 520, 521, 522, 523})
"""Statuses by which a gateway says that no server is behind it. Inside a reply of status 200, one was: "chance"."""

_MAX_DOUBLINGS = 30


def fault_of(failure: RequestFailed, *, probing: bool) -> Fault:
    """Say whose fault a failed request is (the endpoint's, chance, …), which decides about its retry.

    probing: the request was a probe of an endpoint that was set aside, so a deadline is the endpoint's fault.
    """
    if failure.stops_run:
        return "run"
    if not failure.retryable:
        return "payload"
    if failure.kind == "rate_limited":
        return "pace"
    if failure.kind == "connect" or (probing and failure.kind == "timeout"):
        return "endpoint"
    if failure.status in AWAY or (failure.status in GATEWAY and not failure.in_reply):
        return "endpoint"
    return "chance"


def longest_backoff(patience: Patience, n_failures: int) -> float:
    """Longest backoff, in seconds, after `n_failures` (at least 1) of a sample."""
    return min(patience.longest_wait, patience.first_wait * 2.0 ** min(n_failures - 1, _MAX_DOUBLINGS))


def seconds_to_retry(
    work: Work, fault: Fault, patience: Patience, jitter: Callable[[float, float], float]
) -> float | None:
    """Seconds until a sample is asked again whose request failed by "endpoint" or "chance"; None: it is given up.

    Counts the failure. jitter: returns a random number between two bounds.
    """
    work.failures += fault == "chance"
    if work.failures >= patience.attempts:
        return None
    return 0.0 if fault == "endpoint" else jitter(0.0, longest_backoff(patience, work.failures))
