"""What happens after a request failed: whose fault it was, whether its sample is asked again, when, and at what cost.

| fault | the sample is asked again | it costs | counts against the endpoint |
| --- | --- | --- | --- |
| endpoint | elsewhere first; at once, or within a second if refused | nothing | yes |
| pace | at once, by whichever endpoint's pace allows it | nothing | slots rest |
| part | at once (`keeping` decides whether it continues the part) | nothing | no |
| chance | after a backoff, elsewhere first | an attempt | yes |
| question | after a backoff, elsewhere first | an attempt | no |
| payload | never: the sample is given up | – | no |
| run | never: the run stops | – | – |

`FAULTS` says which fault it is: by the failure's own sign, and by what endpoint and question have met before
(`history`). One sentence holds the table together: what fails where others pass is its own fault, and an endpoint that
has just answered such requests is waited for, whatever its words are, unless they concern the key or the account.

`lanes` and `too_many_requests` decide what a fault means for the endpoint. A Retry-After holds the endpoint back but
not the sample, which another endpoint may take meanwhile. Time and randomness are parameters; nothing here sleeps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from harness.client.protocol.failures import RequestFailed
from harness.generation.dispatch.flight import Work
from harness.generation.dispatch.history import Past
from harness.generation.settings import Patience

Sign = Literal[
    "unsent",  # no connection
    "away",  # closed before the reply, `AWAY`, `GATEWAY`, a probe's deadline
    "busy",  # 429
    "still busy",  # 429 though the request has waited (`Lanes.has_waited`)
    "broken",  # other 5xx, cut or malformed streams, deadlines
    "part",  # any of these four, of a request that continues a part, before its first token
    "rejected",  # 400, 413, 422, 501 and the like
    "refused",  # 404, a redirect, an unknown model, 403 without a word of the key
    "no account",  # 401, 402, an empty quota, 403 of a key
    "too long",  # the prompt exceeds the context
    "runaway",
]
"""The kinds of failures, as far as one failure by itself shows its kind."""

Fault = Literal["endpoint", "pace", "part", "chance", "question", "payload", "run"]

FAULTS: Mapping[Sign, tuple[Fault, Fault, Fault, Fault, Fault, Fault]] = {
    # before:      new         hopeless    spare       known       alone       others pass
    "unsent":     ("endpoint", "endpoint", "endpoint", "endpoint", "endpoint", "endpoint"),
    "away":       ("endpoint", "endpoint", "endpoint", "endpoint", "endpoint", "question"),
    "busy":       ("pace",     "pace",     "pace",     "pace",     "pace",     "pace"),
    "still busy": ("pace",     "pace",     "pace",     "pace",     "pace",     "question"),
    "broken":     ("chance",   "chance",   "chance",   "chance",   "question", "question"),
    "part":       ("endpoint", "endpoint", "endpoint", "endpoint", "endpoint", "part"),
    "rejected":   ("question", "payload",  "endpoint", "endpoint", "question", "payload"),
    "refused":    ("question", "run",      "endpoint", "endpoint", "question", "payload"),
    "no account": ("run",      "run",      "endpoint", "run",      "run",      "run"),
    "too long":   ("payload",  "payload",  "endpoint", "payload",  "payload",  "payload"),
    "runaway":    ("payload",  "payload",  "payload",  "payload",  "payload",  "payload"),
}  # fmt: skip
"""The fault by the failure's sign, and by what came before it (the values of `Past`, in their order)."""

_OF_THE_ACCOUNT = re.compile(
    r"\b(api[ _-]?)?(key|token|credential|account|subscription|licen[cs]e|billing|balance|credits?|permissions?)s?\b"
    r"|authenti|authori[sz]|suspended|country|region|territory",
    re.IGNORECASE,
)
"""Words of a 403 that concern the key, the account or the place from which it is used."""

AWAY = frozenset({503, 529})
"""Statuses by which a server says that it cannot serve now, also by an error inside a reply of status 200."""

BUSY = AWAY | {429}
"""Statuses by which a server says that it is there and will serve later."""

GATEWAY = frozenset({502, 504, 520, 521, 522, 523})
"""Statuses by which a gateway says that no server is behind it. Inside a reply of status 200, one was: "broken"."""

_MAX_DOUBLINGS = 30


def sign_of(failure: RequestFailed, *, probing: bool = False, has_waited: bool = False) -> Sign:
    """What a failed request shows by itself.

    probing: it was a probe of an endpoint that was set aside, so a deadline says that the endpoint is still away.
    has_waited: so that a 429 says nothing of the pace.
    """
    status = failure.status
    match failure.kind:
        case "too_long":
            return "too long"
        case "runaway" | "rejected":
            return failure.kind
        case "refused":
            of_account = status in (401, 402, 407, 429) or (status == 403 and _OF_THE_ACCOUNT.search(failure.message))
            return "no account" if of_account else "refused"
        case "rate_limited":
            return "still busy" if has_waited else "busy"
        case "connect" if not failure.sent:
            return "unsent"
    if failure.kind == "connect" or (probing and failure.kind == "timeout"):
        return "away"
    return "away" if status in AWAY or (status in GATEWAY and not failure.in_reply) else "broken"


def fault_of(sign: Sign, past: Past) -> Fault:
    """Say whose fault a failed request is (the endpoint's, chance, …), which decides about its retry."""
    return FAULTS[sign][get_args(Past).index(past)]


def longest_backoff(patience: Patience, n_failures: int) -> float:
    """Longest backoff, in seconds, after `n_failures` (at least 1) of a sample."""
    return min(patience.longest_wait, patience.first_wait * 2.0 ** min(n_failures - 1, _MAX_DOUBLINGS))


def seconds_to_retry(
    work: Work, fault: Fault, patience: Patience, jitter: Callable[[float, float], float], *, is_refused: bool = False
) -> float | None:
    """Seconds until a sample is asked again whose request failed; None: it is given up.

    Counts the failure. is_refused: by an endpoint that has answered before. jitter: a random number between two bounds.
    """
    costs = fault in ("chance", "question")
    work.failures += costs
    if work.failures >= patience.attempts:
        return None
    return jitter(0.0, longest_backoff(patience, max(1, work.failures))) if costs or is_refused else 0.0
