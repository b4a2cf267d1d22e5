"""A sweep that follows a folder: each checkpoint is run and scored once it appears and is written whole.

    a folder fits the pattern ──▶ no file of it changes for `SETTLED_S` ──▶ the sweep goes on with it ──▶ wait again

A training run writes a checkpoint for minutes, and a server that starts from an incomplete checkpoint fails. So a
checkpoint is left out of the sweep until no file of it has changed for `SETTLED_S` seconds. The sweep is planned anew
each time it goes on, and cells that are done are not run again. A checkpoint whose files change later is run again,
since its server may have failed because a file was missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path

from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.verbs.sweep import training
from harness.verbs.sweep.checkpoints import NO_STEP, checkpoint_at
from harness.verbs.sweep.file import SweepFile

WRITING = "it is still being written; the sweep comes back to it"
"""Why a checkpoint is left out for now."""

SETTLED_S = 30.0
"""Seconds without a change after which a checkpoint counts as written."""

POLL_S = 10.0
"""Seconds between two readings of the folders."""

MAX_LOOKS = 5
"""The sweep goes on at most this many times because of changes in one checkpoint: its server may itself write into the
folder of its model, and that must not go on forever.
"""


def follow(
    file: SweepFile,
    run: Callable[[Collection[Path]], int],
    patience_s: float,
    say: Callable[[str], None] = lambda _sentence: None,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Call `run` whenever new checkpoints are written, until none has appeared or changed for `patience_s` seconds.

    Returns the last exit code of `run`. run: gets the paths of the checkpoints that are completely written. say: gets a
    sentence before each wait and at the end. now: returns the seconds since the epoch, the clock of the files' times.
    Raises `UsageError` if the file names no checkpoints, or if none appears in time.
    """
    if "checkpoints" not in file.content:
        raise UsageError(f"{file.path}: a sweep that follows a folder needs the key 'checkpoints', such as ck/step_*")
    patterns = visible(str(file.content["checkpoints"]), 200)
    minutes = f"{patience_s / 60:g} min"
    waiting = (
        f"waiting for checkpoints that fit {patterns}, seen from {Path.cwd()}: each is run once it has not changed for "
        f"{SETTLED_S:g} s; the sweep ends when none has appeared for {minutes}"
    )
    looks: dict[Path, int] = {}
    settled: dict[Path, float] = {}  # time of each checkpoint's last change when it was last run
    say(waiting)
    # since: when `run` last ended, or when following began.
    code, since = None, now()
    while True:
        changed = {path: changed_at(path) for path in training.paths(file) if checkpoint_at(path) is not None}
        news = {
            path: time_s
            for path, time_s in changed.items()
            if time_s > settled.get(path, -1.0) and looks.get(path, 0) < MAX_LOOKS
        }
        whole = {path: time_s for path, time_s in changed.items() if now() - time_s >= SETTLED_S}
        if written := news.keys() & whole.keys():
            # A checkpoint that was run before stays in the tables, even while its files change.
            code = run({*whole, *settled})
            looks |= {path: looks.get(path, 0) + 1 for path in written}
            settled |= whole
            since = now()
            say(waiting)
            continue
        # `news` also holds checkpoints that are still being written: each change of their files starts the wait anew.
        if now() - max([since, *news.values()]) >= patience_s:
            break
        sleep(POLL_S)
    if code is None:
        without = "".join(f". {visible(str(path), 200)}: {NO_STEP}" for path in training.paths(file)[:1])
        raise UsageError(f"{file.path}: no checkpoint that fits {patterns} appeared in {minutes}{without}")
    say(f"no new checkpoint for {minutes}: the sweep ends after {count_noun(len(settled), 'checkpoint')}")
    return code


def changed_at(path: Path) -> float:
    """The time of the last change of a folder or of any file in it, in seconds since the epoch; 0 once it is gone."""
    times = [0.0]
    for file in (path, *path.rglob("*")):
        try:
            times.append(file.stat().st_mtime)
        except OSError:
            # The training run may delete or rename a file between the listing and this line.
            continue
    return max(times)
