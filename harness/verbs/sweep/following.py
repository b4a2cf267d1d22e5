"""A sweep that follows a folder: each checkpoint is run and scored once it appears and is written whole.

    a folder fits the pattern ──▶ no file of it changes for `SETTLED_S` ──▶ the sweep goes on with it ──▶ wait again

A training run writes a checkpoint for minutes, and a server that starts from an incomplete checkpoint fails. So a
checkpoint without a run is left out of the sweep until no file of it has changed for `SETTLED_S` seconds; one with a
run keeps its row, and is run later. The sweep is planned anew each time it goes on, and cells that are done are not run
again. A checkpoint whose files change later is run again, since its server may have failed because a file was missing;
without a change, a server that did not start is not started again. While another process uses the sweep's folder, such
as a second sweep that makes more samples, following waits; also while the sweep's own file is wrong, such as half
written. A checkpoint that is deleted before it was run is named. If a folder with the step of another checkpoint
appears, such as a merged copy, it is named and the sweep goes on.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from harness.asking.watching import Watcher
from harness.core.errors import InUse, Sentence, UsageError
from harness.core.inert import visible
from harness.core.nouns import are, count_noun
from harness.reports.series import listed_steps
from harness.verbs.sweep import training
from harness.verbs.sweep.checkpoints import why_no_step
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


class FileInWork(UsageError):
    """The sweep's file, or what it names, is wrong at a later reading: an editor may be writing it."""


def follow(
    file: SweepFile,
    out: Path,
    run: Callable[[Collection[Path], Collection[Path]], int],
    patience_s: float,
    watcher: Watcher | None = None,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Call `run` whenever new checkpoints are written, until none has appeared or changed for `patience_s` seconds.

    Returns the last exit code of `run`. out: the sweep's folder. run: gets the paths of the checkpoints that are
    completely written, and those of them whose files have not changed since it last got them; it is called again later
    if it raises `InUse`, or `FileInWork`, which is raised if it still stands when the patience ends. watcher: gets a
    sentence before each wait and at the end, one for each pattern that fits nothing yet while another does, and a
    warning for a file in work and for each checkpoint that was deleted before it was run or that has a twin. now:
    returns the seconds since the epoch, the clock of the files' times. Raises `UsageError` if the file names no
    checkpoints, if two of those that exist now have the same step or name, or if none appears in time.
    """
    if "checkpoints" not in file.content:
        raise UsageError(f"{file.path}: a sweep that follows a folder needs the key 'checkpoints', such as ck/step_*")
    patterns, minutes = visible(str(file.content["checkpoints"]), 200), f"{patience_s / 60:g} min"
    waiting = _waiting(patterns, minutes)
    watcher = watcher or Watcher()
    looks: dict[Path, int] = {}
    settled: dict[Path, float] = {}  # time of each checkpoint's last change when it was last run
    warned: set[Path] = set()  # checkpoints that are left out because of a twin
    seen: set[Path] = set()  # the checkpoints of the last look, and of those during the last run
    awaited: set[str] = set()  # patterns that fitted nothing when another one did
    hindrance: InUse | FileInWork | None = None  # why the last call of `run` did nothing
    training.refuse_twins(file)
    watcher.standing(waiting)
    # since: when `run` last ended, or when following began.
    code, since = None, now()
    while True:
        existing, twins = _checkpoints(file), training.left_out_twins(file, out)
        _warn_deleted(seen - {*existing} - settled.keys(), out, watcher)
        seen = {*existing}
        _warn_once(twins, warned, watcher)
        changed = {path: changed_at(path) for path in existing if path not in twins}
        later = {path: time_s for path, time_s in changed.items() if time_s > settled.get(path, -1.0)}
        news = {path: time_s for path, time_s in later.items() if looks.get(path, 0) < MAX_LOOKS}
        whole = {path: time_s for path, time_s in changed.items() if now() - time_s >= SETTLED_S}
        if written := news.keys() & whole.keys():
            _say_awaited(file, out, awaited, watcher)
            with _looking(file, seen):
                ended = _attempt(partial(run, whole.keys(), settled.keys() - later.keys()), hindrance, watcher)
            hindrance = None if isinstance(ended, int) else ended
            if isinstance(ended, int):
                code, since = ended, now()
                looks |= {path: looks.get(path, 0) + 1 for path in written}
                settled |= whole
                watcher.standing(waiting)
                continue
            if isinstance(ended, InUse):  # However long the other process takes.
                sleep(POLL_S)
                continue
        # A checkpoint that is still being written is waited for, however short the patience is; each change of its
        # files starts the wait anew.
        if news.keys() <= whole.keys() and now() - max([since, *news.values()]) >= patience_s:
            break
        sleep(POLL_S)
    if isinstance(hindrance, FileInWork):
        raise hindrance
    if code is None:
        raise _nothing_came(file, patterns, minutes)
    watcher.standing(_at_end(file, out, settled.keys(), minutes))
    return code


def _attempt(run: Callable[[], int], before: InUse | FileInWork | None, watcher: Watcher) -> int | InUse | FileInWork:
    """Return the exit code of `run`, or the error for which the sweep waits; the watcher is told of a new one.

    before: the error of the last attempt.
    """
    try:
        return run()
    except InUse as error:
        if before is None or before.sentence != error.sentence:
            watcher.standing(Sentence(f"{error.sentence} The sweep waits until the folder is free"))
        return error
    except FileInWork as error:
        if before is None or before.sentence != error.sentence:
            watcher.warn(Sentence(f"{error.sentence.marked.rstrip('.')}. The sweep waits, and reads the file again"))
        return error


def _warn_deleted(deleted: Collection[Path], out: Path, watcher: Watcher) -> None:
    """Warn of the deleted checkpoints that have no run in the sweep's folder `out`."""
    for path in sorted(deleted):
        if not training.has_run(out, path):
            watcher.warn(Sentence(f"{visible(str(path), 200)} is left out: {training.DELETED}"))


def _warn_once(left_out: Mapping[Path, str], warned: set[Path], watcher: Watcher) -> None:
    """Warn of the checkpoints that are left out and not among `warned`, and add them. left_out: path → the reason."""
    for path in sorted(left_out.keys() - warned):
        watcher.warn(Sentence(f"{visible(str(path), 200)} is left out: {left_out[path]}"))
    warned.update(left_out)


def _say_awaited(file: SweepFile, out: Path, awaited: set[str], watcher: Watcher) -> None:
    """Say which patterns fit nothing yet and are not among `awaited`, and add them. out: the sweep's folder."""
    for pattern in training.patterns_without_match(file, out):
        if pattern not in awaited:
            shown = visible(pattern, 200)
            watcher.standing(Sentence(f"no file or folder fits {shown} yet: the sweep goes on without it, and waits"))
        awaited.add(pattern)


def _waiting(patterns: str, minutes: str) -> Sentence:
    """The sentence before each wait. patterns, minutes: as shown in messages."""
    return Sentence(
        f"waiting for checkpoints that fit {patterns}, seen from {Path.cwd()}: each is run once it has not changed for "
        f"{SETTLED_S:g} s; the sweep ends when none has appeared for {minutes}"
    )


def _at_end(file: SweepFile, out: Path, ran: Collection[Path], minutes: str) -> Sentence:
    """The sentence at the end of a sweep that followed. ran: the checkpoints that it was given to run."""
    n_gone = sum(not path.exists() for path in ran)
    gone = f", {n_gone:,} of which {are(n_gone)} deleted now" if n_gone else ""
    unmet = "".join(f"; nothing fits {visible(name, 200)}" for name in training.patterns_without_match(file, out))
    n = count_noun(len(ran), "checkpoint")
    return Sentence(f"no new checkpoint for {minutes}: the sweep ends; it found {n} in the folder{gone}{unmet}")


def _nothing_came(file: SweepFile, patterns: str, minutes: str) -> UsageError:
    """The error of a sweep that followed without a checkpoint. patterns, minutes: as shown in messages."""
    stepless = [path for path, checkpoint in training.present(file).items() if checkpoint is None]
    without = "".join(f". {visible(str(path), 200)}: {why_no_step(path)}" for path in stepless[:1])
    return UsageError(f"{file.path}: no checkpoint that fits {patterns} appeared in {minutes}{without}")


def warn_of_fresh(paths: Iterable[Path], watcher: Watcher, now: Callable[[], float] = time.time) -> None:
    """Warn of the checkpoints that changed less than `SETTLED_S` seconds ago: their servers may load half of one."""
    if fresh := [visible(str(path), 200) for path in paths if 0 <= now() - changed_at(path) < SETTLED_S]:
        watcher.warn(
            Sentence(
                f"{listed_steps(fresh)} changed less than {SETTLED_S:g} s ago and {are(len(fresh))} run now: if the "
                "training is still writing, stop this command and let the sweep follow the folder: then it "
                "waits until a checkpoint is written whole"
            )
        )


def _checkpoints(file: SweepFile) -> list[Path]:
    """The paths that match the file's patterns now and show their step."""
    return [path for path, checkpoint in training.present(file).items() if checkpoint is not None]


@contextmanager
def _looking(file: SweepFile, seen: set[Path]) -> Iterator[None]:
    """Add to `seen`, every `POLL_S` seconds of the block, the checkpoints that exist.

    A run may take hours, and the training may write and delete several checkpoints meanwhile.
    """
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(POLL_S):
            with contextlib.suppress(OSError):  # a folder that is deleted while it is listed
                seen.update(_checkpoints(file))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


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
