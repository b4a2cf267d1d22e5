"""The processes of a sweep: a scorer for each run, and a sweep of its own for each of several servers at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.score import command as score_command
from harness.core.inert import quoted
from harness.verbs.sweep.running import Scored
from server_launchers import isolated

if TYPE_CHECKING:
    from harness.asking.options import GradingOptions, JudgeOptions
    from harness.verbs.sweep.cells import Group, Sweep

LOOK_SECONDS = 0.1
"""Seconds between two looks at which of several sweeps have ended."""

END_SECONDS = 60.0
"""Seconds that a sweep that was told to end may take until it is killed: it stops its server."""


def score(folder: Path, options: GradingOptions, judge: JudgeOptions | None) -> Scored:
    """`harness score` in a process of its own; what it prints is left out, for the sweep's table says it."""
    given = options.given
    if judge is not None:
        given |= {f"judge_{name}": value for name, value in judge.given.items()}
    done = subprocess.run(
        isolated.command("harness", "score", *words(score_command, given), "--", str(folder)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return Scored(done.returncode, quoted(lines[-1].removeprefix("harness: ")) if done.returncode and lines else "")


def words(command: click.Command, given: Mapping[str, Any]) -> list[str]:
    """Options as words of the command's line. None leaves one out."""
    found = []
    for one in command.params:
        value = given.get(one.name or "")
        if not isinstance(one, click.Option) or value is None:
            continue
        if one.is_flag:
            found += [one.opts[0]] if value is (one.flag_value is not False) else []
        else:
            for each in value if isinstance(value, list | tuple) else (value,):
                found += [one.opts[0], str(each)]
    return found


def end_with_parent() -> None:
    """End as by TERM when the sweep that started this one is gone, however it went: our standard input ends with it."""

    def wait() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


class Lanes:
    """Several servers at once: each group's cells in a sweep of its own, on the devices of a free slot."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def run(self, groups: Sequence[Group]) -> None:
        """Until all have ended. What they came to is on disk."""
        waiting = list(groups)
        try:
            while waiting or self._running:
                for slot, devices in enumerate(self._sweep.slots):
                    if slot in self._running and self._running[slot].poll() is not None:
                        self._end(slot)
                    if slot not in self._running and waiting:
                        self._running[slot] = self._start(waiting.pop(0), devices)
                time.sleep(LOOK_SECONDS)
        finally:
            for child in self._running.values():
                assert child.stdin is not None
                child.stdin.close()
            for slot in list(self._running):
                self._end(slot)

    def _start(self, group: Group, devices: Sequence[str]) -> subprocess.Popen[bytes]:
        own = ["--lane", group.name, "--no-progress", *(["--lane-devices", ",".join(devices)] if devices else [])]
        return subprocess.Popen(isolated.command("harness", *sys.argv[1:], *own), stdin=subprocess.PIPE)

    def _end(self, slot: int) -> None:
        child = self._running.pop(slot)
        try:
            child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdin is not None:
            child.stdin.close()
