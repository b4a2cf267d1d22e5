"""How many requests this machine allows at a time: each in flight holds a socket, and so an open file."""

from __future__ import annotations

import resource

from harness.core.errors import UsageError

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
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return concurrency
    if soft < MIN_DESCRIPTORS:
        raise UsageError(
            f"the limit of open files (ulimit -n) is {soft}; a run needs {MIN_DESCRIPTORS}, plus one per request; "
            f"raise it, for example with `ulimit -n {MIN_DESCRIPTORS + SPARE_DESCRIPTORS + concurrency}`"
        )
    return max(1, min(concurrency, soft - SPARE_DESCRIPTORS))
