"""Sends a probe's requests as fast as the server allows: after a 429 it waits and keeps fewer in flight, as a run does.

The rules are those of a run with one endpoint (`generation.dispatch.lanes`), driven here by the threads of the probe:

| the server's reply | what the probe does |
| --- | --- |
| 429 | waits (as long as Retry-After says, if the reply has it), and sends the request again |
| 429, and no request would have been answered for `PATIENCE_S` | asks no more: `ended` says why |
| 402, or 429 with words of an empty account | the same, at once: waiting does not fill an account |
| none, and nothing answers at the address any more | asks no more |
| any other | belongs to the check that sent the request |
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.reply import RequestFailed
from harness.generation.dispatch.lanes import Lanes
from harness.generation.dispatch.too_many_requests import Ticket
from harness.generation.settings import Patience

AT_ONCE = 8
"""Largest number of requests in flight in checks that send many; behaviour under load has a check of its own."""

PATIENCE_S = 300.0
"""Seconds without an answered request, refusals and stated waits included, after which the probe asks no more."""

LOOK_AGAIN_S = 1.0
"""A waiting thread looks at the pace again after this many seconds: the number of requests in flight rises by time."""

LIMITING = (402, 429)
"""Statuses that refuse a request because of the account or the pace, whatever the request asks for."""


class Pacer:
    """Lets the threads of a probe send requests, at most `AT_ONCE` at a time and no faster than the server allows.

    Each thread calls `enter`, sends one request, and calls `leave` with its outcome.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._lanes = Lanes([endpoint], AT_ONCE, Patience(), time.monotonic)
        self._changed = threading.Condition()
        self._refused_since: float | None = None
        self.ended = ""
        """Why nothing more is asked, in the server's words; empty while requests are sent."""
        self.n_refused = 0
        """Requests that were refused because of the pace or the account."""
        self.refused_for_good: Counter[str] = Counter()
        """The status of a refusal, in words → number of requests that it refused and that were not sent again."""
        self.seconds_waited = 0.0
        self.n_unsent = 0
        """Requests that were not sent, or not sent again, because nothing more is asked."""

    def enter(self) -> Ticket | None:
        """Wait until a request may be sent, and return its ticket; None if nothing more is asked. Blocking."""
        begun = time.monotonic()
        with self._changed:
            while not self.ended:
                self._lanes.advance()
                if self._lanes.with_room():
                    self.seconds_waited += time.monotonic() - begun
                    return self._lanes.sent(0)
                self._changed.wait(min(LOOK_AGAIN_S, self._lanes.next_change() or LOOK_AGAIN_S))
            self.n_unsent += 1
        return None

    def leave(self, ticket: Ticket, refusal: RequestFailed | None) -> bool:
        """Note how the request of this ticket ended; return whether it is to be sent again.

        refusal: the failure if the server's status is one of `LIMITING`; None for any other end.
        """
        with self._changed:
            self._changed.notify_all()
            if refusal is None:
                self._lanes.answered_by(ticket)
                self._refused_since = None
                return False
            self.n_refused += 1
            if refusal.kind == "rate_limited":
                self._lanes.failed(ticket, refusal)
            else:
                self._lanes.cancelled(ticket)
                self.ended = self.ended or refusal.message
            now = time.monotonic()
            if self._refused_since is None:
                self._refused_since = now
            # A stated wait counts before it has passed, so that an hour is not waited for in vain.
            unanswered = now + max(0.0, self._lanes[0].pause(now)) - self._refused_since
            if unanswered > PATIENCE_S and not self.ended:
                self.ended = f"{refusal.message}, and no request is answered for {unanswered:.0f} s"
            if self.ended:
                account = "" if refusal.kind == "rate_limited" else ", the account is empty"
                self.refused_for_good[f"HTTP {refusal.status}{account}"] += 1
            return not self.ended

    def stop(self, why: str) -> None:
        """Send nothing more; a thread that waits in `enter` gets None."""
        with self._changed:
            self.ended = self.ended or why
            self._changed.notify_all()
