"""The log of a member as the guard writes it: bounded, terminal-safe, without secrets."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from harness.core.inert import visible
from server_launchers.errors import GUARDS_MARK
from server_launchers.keeping import private_files

MAX_LINE_CHARS = 4000
"""Characters of a line that are kept; an ellipsis replaces the rest."""
LOG_BYTES = 16 << 20
"""A log of this size in bytes is renamed to `.1`, replacing the older one; so at most twice as much is kept."""
BAR_SECONDS = 1.0
"""Seconds between two kept states of a progress bar that is redrawn on one line."""


class LogFile:
    """One member's output: whole lines, no control characters, no secret, bounded."""

    def __init__(self, path: Path, secrets: list[str]) -> None:
        self._path = path
        self._secrets = secrets
        self._file = os.fdopen(private_files.create(path), "ab")
        self._rest = b""
        self._last_bar = 0.0

    def feed(self, data: bytes) -> None:
        """Write the whole lines in `data`; the rest waits for its line end.

        A progress bar that is redrawn on one line is written at most once in `BAR_SECONDS`.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        # An engine that never ends its line would otherwise fill the memory of the guard.
        if len(self._rest) > 4 * MAX_LINE_CHARS:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            # A terminal shows only what follows the last carriage return.
            self.write(line.rstrip(b"\r").rpartition(b"\r")[2])
        if b"\r" in self._rest:
            bar, _, self._rest = self._rest.rpartition(b"\r")
            # A bar redraws dozens of times a second and would push the real lines out of the bounded log.
            if time.monotonic() - self._last_bar >= BAR_SECONDS:
                self._last_bar = time.monotonic()
                self.write(bar.rpartition(b"\r")[2])

    def write(self, line: bytes) -> None:
        """Write one line. If the disk is full the line is dropped, because reading the engine's output must go on."""
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
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._file = os.fdopen(private_files.create(self._path), "ab")

    def note(self, text: str) -> None:
        """Write a line of the guard itself, marked so that it differs from the engine's lines."""
        self.write(f"{GUARDS_MARK} {text}".encode())

    def close(self) -> None:
        """Write the last line if it lacks a line end, and close the file."""
        if self._rest:
            self.write(self._rest)
            self._rest = b""
        with contextlib.suppress(OSError):
            self._file.close()
