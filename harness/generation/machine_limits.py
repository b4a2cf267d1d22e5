"""What this machine allows a session: open files for requests in flight, and room on the disk for what it writes.

Each request in flight holds a socket, so the limit of open files bounds the concurrency (`limit_concurrency`), and a
few descriptors are held back for files (`Reserve`). `DiskRoom` compares the bytes that a session is expected to write
with the free bytes, and ends the session when only a reserve is left: the replies in flight may still end, and are
stored. If the disk fills faster than that, or no reserve is set, a failed write stops the journal
(`harness.runs.journal`).
"""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.core.errors import StoreError, UsageError
from harness.runs.record import Owed

# ---- open files


SPARE_DESCRIPTORS = 64
"""Number of descriptors for everything but requests: journals, logs, the loop, name look-ups."""


MIN_DESCRIPTORS = 24
"""A run does not begin with a limit of fewer descriptors than this."""


def limit_concurrency(concurrency: int) -> int:
    """Return how many requests may be in flight under the limit of open files, at most `concurrency`.

    Raises the soft limit if the system allows. Raises `UsageError` if the limit is too low for a single request.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = concurrency + SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            # A container may forbid to raise it, and macOS has a bound below the stated one.
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return concurrency
    if soft < MIN_DESCRIPTORS:
        raise UsageError(
            f"the limit of open files (ulimit -n) is {soft}; a run needs {MIN_DESCRIPTORS}, plus one per request; "
            f"raise it, for example with `ulimit -n {MIN_DESCRIPTORS + SPARE_DESCRIPTORS + concurrency}`"
        )
    return max(1, min(concurrency, soft - SPARE_DESCRIPTORS))


class Reserve:
    """Keeps some descriptors open, to close them when sockets have taken all others: then files can still be opened."""

    SIZE = 8

    def __init__(self) -> None:
        self._held: list[int] = []
        try:
            for _ in range(self.SIZE):
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            pass  # as many as there are

    def release(self) -> None:
        """Release all; a second call does nothing."""
        while self._held:
            os.close(self._held.pop())


# ---- room on the disk


BYTES_A_TOKEN = 5
"""Bytes of a record per token of its reply: English takes about four, Chinese and escaped text more."""

BYTES_A_RECORD = 1000
"""Bytes of a record besides its text."""

UNKNOWN_TOKENS = 4096
"""Number of tokens expected of a reply if no stored sample shows a length."""


class DiskRoom:
    """Watches the free space of the disk that holds a run folder. reserve: bytes that must stay free; 0: none."""

    def __init__(self, folder: Path, reserve: int) -> None:
        self._folder = folder
        self._reserve = reserve
        self.reached = False
        """Whether the free space has ever fallen below the reserve."""

    def check(self) -> None:
        """Raise `StoreError` if less than the reserve is free before the first request."""
        if self.reach():
            raise StoreError(f"the run was not started: {self.sentence}")

    def reach(self) -> bool:
        """Look at the disk; return whether its free space is, or ever was, below the reserve."""
        self.reached = self.reached or (self._reserve > 0 and _free(self._folder) < self._reserve)
        return self.reached

    @property
    def sentence(self) -> str:
        """Why no more samples are asked, and how to continue."""
        return (
            f"{_mb(_free(self._folder))} are free for {self._folder}, and the run keeps "
            f"{_mb(self._reserve)}. Make room, and give the same command again."
        )

    def doubt(self, expected: int) -> str:
        """Return a warning if `expected` more bytes may not fit; "" if they fit."""
        free = _free(self._folder)
        if expected <= free - self._reserve:
            return ""
        return (
            f"the missing samples need about {_mb(expected)}, and {_mb(free)} are free for {self._folder}: the run "
            f"will end cleanly when the disk is nearly full, and the same command continues once there is room."
        )


def expected_bytes(
    owed: Sequence[Owed], bytes_a_sample: Mapping[str, float], max_tokens: Mapping[str, int | None]
) -> int:
    """Return about how many bytes the missing samples will take.

    bytes_a_sample: mean size of stored samples, by benchmark. max_tokens: most tokens of a reply, by benchmark. owed:
    the missing samples.
    """
    n_owed: Counter[str] = Counter()
    for row in owed:
        n_owed[row.benchmark] += len(row.indices)
    total = 0.0
    for name, n in n_owed.items():
        # Few replies are as long as max_tokens: if all were expected to be, nearly every disk would seem too small.
        tokens = min(max_tokens.get(name) or UNKNOWN_TOKENS, UNKNOWN_TOKENS)
        total += n * bytes_a_sample.get(name, BYTES_A_RECORD + BYTES_A_TOKEN * tokens)
    return round(total)


def _free(folder: Path) -> int:
    """Bytes that this user can still write there; a missing folder is left to the journal to report."""
    try:
        state = os.statvfs(folder)
    except OSError:
        return 1 << 62
    # f_bavail and not f_bfree: blocks that are kept for root are of no use here.
    return state.f_bavail * state.f_frsize


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"
