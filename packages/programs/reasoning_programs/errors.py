"""The errors of this package; each message is one sentence for the user."""

from __future__ import annotations


class UnavailableError(ValueError):
    """Nothing was executed: this machine cannot start such a sandbox, no sandbox has that name, or the tests of a
    reference cannot be read.
    """


class LostError(RuntimeError):
    """A sandbox that worked before can no longer be started, even after retries."""
