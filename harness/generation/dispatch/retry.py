"""What happens after a failed request: its cause, whether the sample is requested again, or why it is missing.

| fault | the sample is requested again | it costs | counts against the endpoint |
| --- | --- | --- | --- |
| endpoint | elsewhere first; at once, or within a second if refused | nothing | yes |
| pace | at once, by whichever endpoint's pace allows it | nothing | slots rest |
| chance | after a backoff, elsewhere first | an attempt | yes |
| question | after a backoff, elsewhere first | an attempt | no |
| payload | never: the sample is given up | – | no |
| run | never: the run stops | – | – |

`FAULTS` gives the fault by the failure's own sign and by the past of its endpoint and question (`History`). One
principle underlies the table: a request that fails where others succeed is itself at fault; if an endpoint has just
answered such requests, the run waits for it, whatever its error message says. The run stops if an endpoint has answered
none, and fails every request alike (`RequestFailed.signature`): all in flight, and one more that it gets alone. If the
message concerns the key or the account, it stops so even after replies.

`lanes` and `too_many_requests` decide what a fault means for the endpoint. A Retry-After delays the endpoint but not
the sample, which another endpoint may take in the meantime. Time and randomness are parameters; nothing here sleeps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal, get_args

from harness.client.protocol.failures import RequestFailed
from harness.generation.dispatch.state import Past, Work
from harness.generation.settings import Patience
from harness.runs.missing import Task

Sign = Literal[
    "unsent",  # no connection
    "away",  # closed before the reply, `GATEWAY`, a probe's deadline
    "busy",  # 429, 503, 529, words that ask to wait
    "still busy",  # the same though the request has waited (`Lanes.has_waited`)
    "faulty",  # other 5xx, any other error in place of a reply
    "broken",  # deadlines, a reply lost or kept after tokens
    "unreadable",  # bytes that are not a reply, or not all of it: compressed, malformed, cut, aborted
    "rejected",  # 400, 413, 422, 501 and the like
    "refused",  # 404, a redirect, an unknown model, 403 without a word of the key
    "no account",  # 401, 402, an empty quota, 403 of a key
    "too long",  # the prompt exceeds the context
    "runaway",
]
"""The kinds of failures, as far as a single failure shows its kind."""

Fault = Literal["endpoint", "pace", "chance", "question", "payload", "run"]

FAULTS: Mapping[Sign, tuple[Fault, Fault, Fault, Fault, Fault, Fault]] = {
    # before:      new         hopeless    spare       known       alone       others pass
    "unsent": ("endpoint", "endpoint", "endpoint", "endpoint", "endpoint", "endpoint"),
    "away": ("endpoint", "endpoint", "endpoint", "endpoint", "endpoint", "question"),
    "busy": ("pace", "pace", "pace", "pace", "pace", "pace"),
    "still busy": ("pace", "pace", "pace", "pace", "pace", "question"),
    "faulty": ("endpoint", "endpoint", "chance", "chance", "question", "question"),
    "broken": ("chance", "chance", "chance", "chance", "question", "question"),
    "unreadable": ("chance", "run", "chance", "chance", "question", "question"),
    "rejected": ("question", "payload", "endpoint", "endpoint", "question", "payload"),
    "refused": ("endpoint", "run", "endpoint", "endpoint", "question", "payload"),
    "no account": ("endpoint", "run", "endpoint", "endpoint", "endpoint", "endpoint"),
    "too long": ("payload", "payload", "endpoint", "payload", "payload", "payload"),
    "runaway": ("payload", "payload", "payload", "payload", "payload", "payload"),
}
"""The fault, by the failure's sign and by the past (the values of `Past`, in order)."""

_OF_THE_ACCOUNT = re.compile(
    r"\b(api[ _-]?)?(key|token|credential|account|subscription|licen[cs]e|billing|balance|credits?|permissions?)s?\b"
    r"|authenti|authori[sz]|suspended|country|region|territory",
    re.IGNORECASE,
)
"""Words in a 403 message that concern the key, the account or the place from which it is used."""

GATEWAY = frozenset({502, 504, 520, 521, 522, 523})
"""Statuses with which a gateway reports that no server is behind it. An error inside a 200 reply is "faulty", since
there was a server.
"""

_MAX_DOUBLINGS = 30


def sign_of(failure: RequestFailed, *, probing: bool = False, has_waited: bool = False) -> Sign:
    """What a failed request shows by itself.

    probing: whether it was a probe of an endpoint that was set aside, so that a missed deadline means that the endpoint
    is still away. has_waited: whether the request had waited, so that a 429 says nothing about the pace.
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
    states_error = status is not None or failure.in_reply
    if failure.kind != "timeout" and not states_error and not (failure.resumable and failure.n_events):
        return "unreadable"
    if status in GATEWAY and not failure.in_reply:
        return "away"
    return "faulty" if states_error and not failure.n_events else "broken"


def fault_of(sign: Sign, past: Past) -> Fault:
    """Return whose fault a failed request is (the endpoint's, chance, …), which determines its retry."""
    return FAULTS[sign][get_args(Past).index(past)]


def longest_backoff(patience: Patience, n_failures: int) -> float:
    """Longest backoff, in seconds, after `n_failures` (at least 1) failures of a sample."""
    return min(patience.longest_wait, patience.first_wait * 2.0 ** min(n_failures - 1, _MAX_DOUBLINGS))


def seconds_to_retry(
    work: Work, fault: Fault, patience: Patience, jitter: Callable[[float, float], float], *, is_refused: bool = False
) -> float | None:
    """Seconds until a sample whose request failed is requested again; None: it is given up.

    Counts the failure. is_refused: whether an endpoint that has answered before rejected it. jitter: returns a random
    number between two bounds.
    """
    costs = fault in ("chance", "question")
    work.failures += costs
    if work.failures >= patience.attempts:
        return None
    return jitter(0.0, longest_backoff(patience, max(1, work.failures))) if costs or is_refused else 0.0


# ---- why samples are missing


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why samples are missing."""

    kind: str
    """Kind of failure: a `FailureKind`, "internal" (a bug in the harness) or "not asked" (no request was sent)."""
    count: int
    """Number of samples missing for this reason."""
    example: str
    """Error message from one such failure, safe to print."""
    attempts: tuple[int, int] = (0, 0)
    """Minimum and maximum number of requests made per sample; a sample that may still be retried counts as 0."""

    def __str__(self) -> str:
        fewest, most = self.attempts
        span = f"{fewest} to {most}" if fewest < most else most
        note = f" (given up after {span} attempts)" if fewest and most > 1 else ""
        return f"{self.count} × {self.kind}: {self.example}{note}"

    def add(self, other: Cause) -> Cause:
        """Both causes as one, with this one's example."""
        attempts = min(self.attempts[0], other.attempts[0]), max(self.attempts[1], other.attempts[1])
        return replace(self, count=self.count + other.count, attempts=attempts)


_PASSING = frozenset({"connect", "timeout", "cut", "malformed", "server", "rate_limited", "not asked"})
"""Kinds of causes that may not occur again if the same command is repeated."""


def advice(causes: Sequence[Cause], down: Sequence[RequestFailed | None] | None) -> str:
    """What to do about the samples that are missing for these causes; empty: nothing is known that helps.

    down: if no endpoint answers at the end, the last failure of each, None for an endpoint without a failure; otherwise
    None.
    """
    kinds = {cause.kind for cause in causes}
    refused = "the server answers other requests but rejects these, so a retry would fail too"
    words = (
        (kinds & _PASSING, _advice(down, slow="timeout" in kinds)),
        (kinds & {"rejected", "refused"} and down is None, refused),
        (
            "too_long" in kinds,
            "use a longer context or a smaller `max_tokens`, or skip these samples (`accept_missing`)",
        ),
        ("internal" in kinds, "the error is in log.jsonl in the run folder; please report it"),
    )
    return "; ".join(sentence for holds, sentence in words if holds)


def _advice(down: Sequence[RequestFailed | None] | None, *, slow: bool) -> str:
    """When the same command may help. slow: whether some sample got no reply in time."""
    again = "run the same command again"
    if not down or None in down:
        return f"{again} to request them" + (", perhaps with a longer timeout" if slow else "")
    signs = {"slow" if failure.kind == "timeout" else sign_of(failure) for failure in down if failure}
    if signs & {"away", "busy"}:
        return f"{again} once the server accepts requests"
    if "unsent" in signs:
        return f"{again} once the server responds"
    if "slow" in signs:
        return f"{again} with a longer timeout, or when the server is under less load"
    return f"every request fails; check the server's log for the cause, then {again}"


class Causes:
    """Keeps the last failure of every sample that failed and is not on disk, one entry for each such sample."""

    def __init__(self) -> None:
        self._failures: dict[Task, tuple[Cause, int | None]] = {}
        self._given_up: set[Task] = set()

    def lost_tasks(self) -> dict[Task, str]:
        """Return the samples that will not be requested again, with the kind of their last failure."""
        return {task: self._failures[task][0].kind for task in self._given_up}

    def record_retry(self, task: Task, failure: RequestFailed) -> None:
        """Record a failure of `task`, which will be retried."""
        self._failures[task] = Cause(failure.kind, 1, failure.message), failure.status

    def record_loss(self, task: Task, kind: str, message: str, status: int | None = None, attempts: int = 0) -> None:
        """Record the failure after which `task` is not retried and stays missing. attempts: its requests so far."""
        self._failures[task] = Cause(kind, 1, message, (attempts, attempts)), status
        self._given_up.add(task)

    def arrived(self, task: Task) -> None:
        """Forget the failures of `task`, which has succeeded."""
        self._failures.pop(task, None)

    def too_long(self) -> dict[str, dict[str, str]]:
        """Questions whose prompt exceeds the context: benchmark → question id → the server's message."""
        messages: dict[str, dict[str, str]] = {}
        for task in self._given_up:
            cause, _ = self._failures[task]
            if cause.kind == "too_long":
                messages.setdefault(task.benchmark, {})[task.question_id] = cause.example
        return messages

    def listed(self, n_missing: int, not_asked_because: str) -> list[Cause]:
        """Return why samples are missing and how many for each cause, the most frequent cause first.

        n_missing: number of missing samples. not_asked_because: why some samples were never requested.
        """
        groups: dict[tuple[str, int | None], list[Cause]] = {}
        for cause, status in self._failures.values():
            groups.setdefault((cause.kind, status), []).append(cause)
        causes = [reduce(Cause.add, each) for each in groups.values()]
        if n_missing > len(self._failures):
            causes.append(Cause("not asked", n_missing - len(self._failures), not_asked_because))
        return sorted(causes, key=lambda cause: -cause.count)
