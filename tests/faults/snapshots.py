"""Every state in which a folder stood while something wrote to it: what a kill at any system call would have left.

A process that is killed leaves its files as its last call made them; its locks go with it. So the states of one quiet
run are all that kills can leave, and each can be put back and gone on from, without a process for each.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

CALLS = ("open", "mkdir", "write", "pwrite", "fsync", "fdatasync", "ftruncate", "replace", "rename", "unlink", "link")
"""Calls of `os` by which the product changes a disk; what a buffered file writes is on disk at its fsync."""

State = dict[str, bytes | None]
"""By path below the folder: what a file holds, None for a folder."""


def state_of(folder: Path) -> State:
    """What stands in `folder`; sockets, pipes and links left out."""
    state: State = {}
    for path in sorted(folder.rglob("*")):
        try:
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                state[str(path.relative_to(folder))] = path.read_bytes()
            elif stat.S_ISDIR(mode):
                state[str(path.relative_to(folder))] = None
        except FileNotFoundError:  # a server's file, which goes as it likes
            continue
    return state


def put(state: State, folder: Path) -> None:
    """Make `folder` hold `state` and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in state.items():
        path = folder / name
        if data is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def shape(state: State) -> tuple[tuple[str, str], ...]:
    """Which files stand there, temporary ones without their random part, and whether each is empty, torn or whole."""
    kinds = set()
    for name, data in state.items():
        parts = Path(name).name.split(".")
        plain = f"{'.'.join(parts[:-2])}.tmp" if parts[-1] == "tmp" else name
        kinds.add((plain, "folder" if data is None else "empty" if not data else "torn" if data[-1:] != b"\n" else ""))
    return tuple(sorted(kinds))


@contextmanager
def every_state(folder: Path) -> Iterator[list[State]]:
    """The states of `folder` before each call of `CALLS` while the block runs, on any thread, equal ones once."""
    states: list[State] = []
    seen: set[int] = set()
    lock, looking = threading.RLock(), threading.local()

    def look() -> None:
        if getattr(looking, "now", False):
            return
        looking.now = True
        try:
            with lock:
                state = state_of(folder)
                if (mark := hash(tuple(state.items()))) not in seen:
                    seen.add(mark)
                    states.append(state)
        finally:
            looking.now = False

    def watched(real: object) -> object:
        def call(*given: object, **named: object) -> object:
            look()
            return real(*given, **named)  # type: ignore[operator]

        return call

    patches = [patch.object(os, name, watched(getattr(os, name))) for name in CALLS]
    for replacement in patches:
        replacement.start()
    try:
        yield states
    finally:
        for replacement in patches:
            replacement.stop()
        look()
