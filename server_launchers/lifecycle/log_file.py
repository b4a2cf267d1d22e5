"""The log file of one process of a server, which the guard writes from the process's raw output."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from harness.core.sanitize import visible
from server_launchers.errors import GUARDS_MARK
from server_launchers.lifecycle import servers

MAX_LINE_CHARS = 4000
"""Number of characters of a log line that are kept; an ellipsis replaces the rest."""
LOG_BYTES = 16 << 20
"""A log of this size in bytes is renamed to `.1`, replacing the older one, so at most twice this size is kept."""
BAR_SECONDS = 1.0
"""Seconds between recorded states of a progress bar that is redrawn on one line."""


class LogFile:
    """One member's output: whole lines, without control characters or secrets, limited in size.

    _rest: the bytes since the last line end. _last_bar: when a progress bar was last written, in seconds of the
    monotonic clock.
    """

    def __init__(self, path: Path, secrets: list[str]) -> None:
        self._path = path
        self._secrets = secrets
        self._file = os.fdopen(servers.create(path), "ab")
        self._rest = b""
        self._last_bar = 0.0

    def feed(self, data: bytes) -> None:
        """Write the whole lines in `data`; an incomplete line is kept until its line end arrives.

        A progress bar that is redrawn on one line is written at most once in `BAR_SECONDS`.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        # An engine that never ends its line would otherwise fill the memory of the guard.
        if len(self._rest) > 4 * MAX_LINE_CHARS:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            # A terminal shows only what follows the last carriage return.
            self._write(line.rstrip(b"\r").rpartition(b"\r")[2])
        if b"\r" in self._rest:
            bar, _, self._rest = self._rest.rpartition(b"\r")
            # A bar redraws dozens of times a second and would push the real lines out of the size-limited log.
            if time.monotonic() - self._last_bar >= BAR_SECONDS:
                self._last_bar = time.monotonic()
                self._write(bar.rpartition(b"\r")[2])

    def _write(self, line: bytes) -> None:
        """Write one line. If the disk is full the line is dropped, because reading the engine's output must
        continue."""
        text = line.decode("utf-8", "replace")
        # Secrets first: `visible` may cut or escape a key so that it no longer matches.
        for secret in self._secrets:
            text = text.replace(secret, "***")
        with contextlib.suppress(OSError):
            self._file.write(visible(text.replace("\t", "    "), MAX_LINE_CHARS).encode("utf-8") + b"\n")
            # Flushed by line: the launcher follows this file's size to see progress, and reads the cause from its end.
            self._file.flush()
            if self._file.tell() > LOG_BYTES:
                self._file.close()
                self._path.replace(servers.older_log(self._path))
                self._file = os.fdopen(servers.create(self._path), "ab")

    def note(self, text: str) -> None:
        """Write a line from the guard itself, marked to distinguish it from the engine's lines."""
        self._write(f"{GUARDS_MARK} {text}".encode())

    def close(self) -> None:
        """Write the last line if it is incomplete, and close the file."""
        if self._rest:
            self.feed(b"\n")
        with contextlib.suppress(OSError):
            self._file.close()
