"""The errors of launchers, each a single sentence for the user.

LaunchError          a server cannot be started, found, made ready or stopped
├── ModelError       the model is a path without a model that the engine serves
└── DownloadError    model weights cannot be fetched
"""

from __future__ import annotations

from harness.core.errors import ServerError


class LaunchError(ServerError):
    """A server could not be started, found, made ready or stopped; the text explains why and what to do."""


class ModelError(LaunchError):
    """The model is a path without a model that the engine serves."""


class DownloadError(LaunchError):
    """Model weights cannot be fetched: no index is reachable, the checksum differs, or the disk is full."""


GUARDS_MARK = "[harness]"
"""Prefix of each line that the guard, which watches the engine, writes to the engine's log."""

LOG_TAIL = "last lines of"
"""Prefix of an error's line before the last lines of a log: `last lines of PATH:`."""


def in_short(text: str) -> str:
    """Shorten the text of an error for a footnote: the lines of a log become the log's path and the engine's last line.

    That line is omitted if the text before it says the same.
    """
    head, tail, lines = text.partition(f"\n{LOG_TAIL} ")
    if not tail:
        return text
    path, *written = lines.splitlines()
    # The guard's own lines come last and say nothing about the cause.
    last = next((line.strip() for line in reversed(written) if not line.lstrip().startswith(GUARDS_MARK)), "")
    is_repeated = (last.partition(": ")[2] or last) in head
    return f"{head}\nits log: {path.removesuffix(':')}" + ("" if is_repeated else f"\nits last line: {last}")
