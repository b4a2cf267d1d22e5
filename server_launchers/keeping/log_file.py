"""A member's log as the guard writes it: bounded, terminal-safe, without secrets. Standard library only."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from server_launchers.keeping import private_files
from server_launchers.terminal import MAX_LINE_CHARS, visible

LOG_BYTES = 16 << 20
"""A log of this many bytes is moved to `.1`, in place of the last one: at most twice as many are kept."""
BAR_SECONDS = 1.0
"""A progress bar that is drawn over and over on one line is kept this often, in seconds."""


class LogFile:
    """One member's output: whole lines, no control characters, no secret, bounded."""

    def __init__(self, path: Path, secrets: list[str]) -> None:
        self._path = path
        self._secrets = secrets
        self._file = os.fdopen(private_files.create(path), "ab")
        self._rest = b""
        self._last_bar = 0.0

    def feed(self, data: bytes) -> None:
        """Keep `data`; a progress bar drawn over and over on one line is kept once a second."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > 4 * MAX_LINE_CHARS:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self.write(line.rstrip(b"\r").rpartition(b"\r")[2])
        if b"\r" in self._rest:
            bar, _, self._rest = self._rest.rpartition(b"\r")
            if time.monotonic() - self._last_bar >= BAR_SECONDS:
                self._last_bar = time.monotonic()
                self.write(bar.rpartition(b"\r")[2])

    def write(self, line: bytes) -> None:
        """One line; a full disk must not stop the draining, so it is dropped then."""
        text = line.decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, "***")
        with contextlib.suppress(OSError):
            self._file.write(visible(text).encode("utf-8") + b"\n")
            self._file.flush()
            if self._file.tell() > LOG_BYTES:
                self._file.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._file = os.fdopen(private_files.create(self._path), "ab")

    def note(self, text: str) -> None:
        """A line of our own, set apart from the engine's."""
        self.write(f"[harness] {text}".encode())

    def close(self) -> None:
        """Write what came without a line's end."""
        if self._rest:
            self.write(self._rest)
            self._rest = b""
        with contextlib.suppress(OSError):
            self._file.close()
