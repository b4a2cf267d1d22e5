"""Open files: each request in flight holds a socket."""

from __future__ import annotations

import os
import resource

from harness.core.errors import UsageError

SPARE = 64
"""Descriptors for everything that is no request: journals, logs, the loop, name look-ups."""


LEAST = 24
"""Descriptors without which no run is begun."""


def affordable(concurrency: int) -> int:
    """At most `concurrency` requests in flight, as the limit of open files allows; raises the soft limit if it may.

    Raises `UsageError` where it does not even allow one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = concurrency + SPARE
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return concurrency
    if soft < LEAST:
        raise UsageError(f"the limit of open files (ulimit -n) is {soft}; a run needs {LEAST}, and one a request more")
    return max(1, min(concurrency, soft - SPARE))


class Reserve:
    """Descriptors held back, to be let go when sockets have taken all others: files must still be opened then."""

    SIZE = 8

    def __init__(self) -> None:
        self._held: list[int] = []
        try:
            for _ in range(self.SIZE):
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            pass  # as many as there are

    def release(self) -> None:
        """Let all go; a second call does nothing."""
        while self._held:
            os.close(self._held.pop())
