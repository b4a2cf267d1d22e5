"""One writer a run, whoever dies and wherever it stands."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.core.errors import StoreError
from harness.runs import RunFolder, RunLock
from harness.runs.lock import hold, holder_of

HOLD = """
import sys
from harness.runs import RunFolder, RunLock
from harness.core.errors import StoreError
try:
    with RunLock(RunFolder(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
except StoreError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@contextmanager
def holder(run: RunFolder) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the run."""
    command = [sys.executable, "-c", HOLD, str(run.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        try:
            yield child
        finally:
            child.kill()


def test_a_second_process_is_refused_at_once_and_told_who_holds_the_run(run: RunFolder) -> None:
    with holder(run) as first:
        second = subprocess.run(
            [sys.executable, "-c", HOLD, str(run.path)], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert second.returncode == 3
        assert f"in use by process {first.pid} on {socket.gethostname()} since 20" in second.stdout


def test_a_second_lock_in_one_process_is_refused_too(run: RunFolder) -> None:
    with RunLock(run), pytest.raises(StoreError, match=f"process {os.getpid()} on"):
        RunLock(run).acquire()


def test_a_run_is_free_after_its_holder_ends(run: RunFolder) -> None:
    for _ in range(2):
        with RunLock(run) as lock:
            assert lock.warning is None
            assert json.loads(run.lock.read_text())["pid"] == os.getpid()


def test_the_holder_is_told_while_it_holds_the_run_and_a_killed_one_holds_nothing(run: RunFolder) -> None:
    assert holder_of(run) is None
    with holder(run) as first:
        told = holder_of(run)
        assert told is not None
        assert (told.pid, told.host) == (first.pid, socket.gethostname())
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert holder_of(run) is None
        with RunLock(run):
            pass
    run.lock.write_text("no holder")
    with RunLock(run), run.lock.open("w"):
        assert holder_of(run) is None


def test_who_asks_for_the_holder_keeps_nobody_from_the_run(run: RunFolder) -> None:
    run.create()
    run.lock.write_text("{}")
    with run.lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        threading.Timer(0.05, file.close).start()
        with RunLock(run):
            pass


FORK = """
import os, signal, sys
from harness.runs import RunFolder, RunLock
lock = RunLock(RunFolder(sys.argv[1]))
lock.acquire()
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, b"x")
    sys.stdin.read()
    os._exit(0)
os.read(reading, 1)
if sys.argv[2] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
lock.release()
"""


@pytest.mark.parametrize("end", ["die", "release"])
def test_a_forked_child_does_not_hold_the_run_beyond_its_parent(run: RunFolder, end: str) -> None:
    with subprocess.Popen([sys.executable, "-c", FORK, str(run.path), end], stdin=subprocess.PIPE) as parent:
        parent.wait()
        assert parent.stdin is not None
        with RunLock(run):
            assert parent.stdin.write(b"the child still reads")


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has no locks, as some network ones."""

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_a_planted_link_is_not_locked_or_written_through(run: RunFolder, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    run.create()
    run.lock.symlink_to(victim)
    with pytest.raises(StoreError, match="symbolic link"):
        RunLock(run).acquire()
    assert victim.read_text() == "precious"


def descriptors_of(path: Path) -> int:
    """How many descriptors of this process are open on the file."""
    state = path.stat()
    n_open = 0
    for number in Path("/dev/fd").iterdir():
        try:
            status = os.fstat(int(number.name))
        except OSError:  # the descriptor that lists them
            continue
        n_open += (status.st_dev, status.st_ino) == (state.st_dev, state.st_ino)
    return n_open


def test_a_lock_keeps_one_descriptor_and_none_after_its_release(run: RunFolder) -> None:
    with RunLock(run):
        assert descriptors_of(run.lock) == 1
    assert descriptors_of(run.lock) == 0


def test_a_release_without_a_lock_and_a_second_release_touch_nothing(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = RunLock(run)
    for taken in (False, True):
        if taken:
            lock.acquire()
            lock.release()
        closed: list[int] = []
        with monkeypatch.context() as patch:
            patch.setattr(os, "close", closed.append)
            lock.release()
        assert closed == []


def test_a_copied_descriptor_does_not_hold_the_run_beyond_the_release(run: RunFolder) -> None:
    """As a process has it that was forked without Python's knowledge."""
    lock = RunLock(run)
    lock.acquire()
    inode = run.lock.stat().st_ino
    copy = next(os.dup(n) for n in range(3, 256) if _inode(n) == inode)
    lock.release()
    with RunLock(run):
        pass
    os.close(copy)


def _inode(descriptor: int) -> int:
    try:
        return os.fstat(descriptor).st_ino
    except OSError:
        return -1


def test_nothing_of_a_longer_former_text_stays_in_the_lock_file(run: RunFolder) -> None:
    run.create()
    run.lock.write_text("x" * 2000)
    with RunLock(run):
        assert json.loads(run.lock.read_text())["pid"] == os.getpid()


def test_what_an_interrupted_write_left_is_removed_under_the_lock(run: RunFolder) -> None:
    run.create()
    leftover = run.path / ".manifest.json.0123456789abcdef.tmp"
    leftover.write_text("half")
    with RunLock(run):
        assert not leftover.exists()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_lock_that_could_not_be_finished_is_given_back(
    run: RunFolder, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    kind = StoreError if isinstance(error, OSError) else KeyboardInterrupt
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        with pytest.raises(kind) as caught:
            RunLock(run).acquire()
    if kind is StoreError:
        assert str(caught.value) == f"cannot lock {run.path}: No space left on device."
    assert descriptors_of(run.lock) == 0
    with RunLock(run):
        pass


def test_a_lock_that_fails_for_another_reason_is_no_missing_lock(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StoreError, match=r"cannot lock .*Input/output error"):
        RunLock(run).acquire()


def test_a_held_run_has_its_folder_and_the_warning_of_its_lock(
    run: RunFolder, request: pytest.FixtureRequest, quick_path: Path
) -> None:
    with hold(run) as ours:
        assert (ours.folder, ours.manifest, ours.warning) == (run, None, "")
    request.getfixturevalue("without_locks")
    with hold(run) as ours:
        assert "without working locks" in ours.warning
        assert holder_of(run) is None
    other = RunFolder(quick_path / "photos")
    other.path.mkdir()
    (other.path / "cat.jpg").write_text("")
    with pytest.raises(StoreError, match=r"cat\.jpg"), hold(other):
        pass
