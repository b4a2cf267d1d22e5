"""What a launcher refuses or fails at, as one sentence for the person at the keyboard.

LaunchError          a server cannot be started, found, made ready or stopped
├── ModelError       the model is a path, and no model that the engine serves lies there
└── DownloadError    model weights cannot be had
"""

from __future__ import annotations

from harness.core.errors import ServerError


class LaunchError(ServerError):
    """A server could not be started, found, made ready or stopped; the text says why and what to do."""


class ModelError(LaunchError):
    """The model is a path, and no model that the engine serves lies there."""


class DownloadError(LaunchError):
    """Model weights cannot be fetched: no index reachable, checksum differs, or the disk is full."""


GUARDS_MARK = "[harness]"
"""Begins each line that the guard, which watches the engine, writes into the engine's log."""

LOG_TAIL = "last lines of"
"""Begins the line of an error before the last lines of a log: `last lines of PATH:`."""


def in_short(text: str) -> str:
    """Shorten the text of an error for a footnote: the lines of a log become the log's path and the engine's last line.

    That line is left out if the text before it says the same.
    """
    head, tail, lines = text.partition(f"\n{LOG_TAIL} ")
    if not tail:
        return text
    path, *written = lines.splitlines()
    # The guard's own lines come last and tell nothing of the cause.
    last = next((line.strip() for line in reversed(written) if not line.lstrip().startswith(GUARDS_MARK)), "")
    is_repeated = (last.partition(": ")[2] or last) in head
    return f"{head}\nits log: {path.removesuffix(':')}" + ("" if is_repeated else f"\nits last line: {last}")
