"""The processes of a sweep with several servers at once: a child process runs the cells of each server.

A child makes the plan of its parent: it gets the content of the sweep's file from the parent, by standard input, since
the file may be edited, or half written, by the time the child starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harness.cli.terminal import RESUMED_BY, Terminal
from harness.core import codec
from server_launchers import isolated

if TYPE_CHECKING:
    from harness.verbs.sweep.cells import ServerGroup, Sweep

LOOK_SECONDS = 0.1
"""Seconds between two checks of which child processes have ended."""

END_SECONDS = 60.0
"""Seconds that a child process has to stop its server after it was told to end; then the child is killed."""


def content_from_parent() -> dict[str, Any]:
    """The content of the sweep's file as the parent read it: the first line of standard input, JSON."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:  # The parent has ended.
            sys.exit(128 + signal.SIGTERM)
        line += part
    return codec.decode(line, dict[str, Any])


def end_with_parent() -> None:
    """Send SIGTERM to this process once the parent sweep has ended in any way, which ends our standard input."""

    def wait() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


class SweepLanes:
    """Runs several servers at once: a child process for each group of cells, on the devices of a free slot."""

    def __init__(self, sweep: Sweep, on_ended: Callable[[], None] = lambda: None) -> None:
        """on_ended: called after the cells of each server."""
        self._sweep, self._on_ended = sweep, on_ended
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def run(self, groups: Sequence[ServerGroup]) -> None:
        """Run the groups until all have ended. Their results are on disk."""
        waiting = list(groups)
        try:
            while waiting or self._running:
                for slot, devices in enumerate(self._sweep.slots):
                    if slot in self._running and self._running[slot].poll() is not None:
                        self._end(slot)
                        self._on_ended()
                    if slot not in self._running and waiting:
                        self._running[slot] = self._start(waiting.pop(0), devices)
                time.sleep(LOOK_SECONDS)
        finally:
            # All pipes are closed before the first wait, so that the servers stop side by side.
            for child in self._running.values():
                assert child.stdin is not None
                child.stdin.close()
            for slot in list(self._running):
                self._end(slot)

    def _start(self, group: ServerGroup, devices: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start the child process of a group: this process's own command, with flags that name the group."""
        flags = ["--lane", group.name]
        if devices:
            flags += ["--lane-devices", ",".join(devices)]
        # A child that is stopped names the command that the user typed, not its own.
        variables = {**os.environ, RESUMED_BY: Terminal().resume_command}
        words = isolated.command("harness", *sys.argv[1:], *flags)
        child = subprocess.Popen(words, stdin=subprocess.PIPE, env=variables)
        # The pipe stays open as long as this process lives; its end ends the child (`end_with_parent`).
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # The child has ended already.
            child.stdin.write(codec.encode(self._sweep.file.content) + b"\n")
            child.stdin.flush()
        return child

    def _end(self, slot: int) -> None:
        """Wait for the child process in this slot to end; after `END_SECONDS` kill it."""
        child = self._running.pop(slot)
        try:
            child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdin is not None:
            child.stdin.close()
