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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.core.errors import StoreError
from harness.runs import RunFolder, RunLock

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


def test_a_killed_holder_holds_nothing(run: RunFolder) -> None:
    with holder(run) as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
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


@pytest.fixture
def with_idle_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that grants every lock."""
    monkeypatch.setattr(fcntl, "flock", lambda descriptor, operation: None)


@pytest.mark.parametrize("kind", ["without_locks", "with_idle_locks"])
def test_where_locks_do_not_lock_a_file_stands_in_with_a_warning(
    run: RunFolder, kind: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(kind)
    with RunLock(run) as lock:
        assert lock.warning is not None
        assert "without working locks" in lock.warning
        with pytest.raises(StoreError, match=f"in use by process {os.getpid()} on"):
            RunLock(run).acquire()
    with RunLock(run):
        pass


def forged(run: RunFolder, **fields: object) -> Path:
    """A stand-in that someone left."""
    run.create()
    path = run.path / "run.lock.held"
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "started": "2026-01-01T00:00:00+00:00", **fields}
    path.write_text(json.dumps(holder))
    return path


def started_at(pid: int) -> str:
    """The kernel's start time of a process, in clock ticks since boot; empty where there is no /proc."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.read_text().rpartition(")")[2].split()[19] if stat.exists() else ""


def dead_process() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    return child.pid


@pytest.mark.usefixtures("without_locks")
def test_a_stand_in_of_a_dead_process_is_taken_over(run: RunFolder) -> None:
    path = forged(run, pid=dead_process())
    with RunLock(run):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert not path.exists()


@pytest.mark.skipif(not started_at(os.getpid()), reason="this system does not say when a process began")
@pytest.mark.usefixtures("without_locks")
def test_a_stand_in_whose_process_number_was_reused_is_taken_over(run: RunFolder) -> None:
    path = forged(run, process_start="1")
    with RunLock(run):
        held = json.loads(path.read_text())
        assert (held["pid"], held["process_start"]) == (os.getpid(), started_at(os.getpid()))
    assert not path.exists()


@pytest.mark.usefixtures("without_locks")
def test_a_stand_in_of_a_living_process_is_respected(run: RunFolder) -> None:
    for parent in ({}, {"process_start": started_at(os.getppid())}):
        path = forged(run, pid=os.getppid(), **parent)
        for break_lock in (False, True):
            with pytest.raises(StoreError, match=f"process {os.getppid()} on"):
                RunLock(run, break_lock=break_lock).acquire()
        assert json.loads(path.read_text())["pid"] == os.getppid()


@pytest.mark.usefixtures("without_locks")
def test_a_stand_in_of_another_host_is_broken_on_demand_only(run: RunFolder) -> None:
    path = forged(run, host="\x1b[31mnode7")
    with pytest.raises(StoreError, match=r"on \\x1b\[31mnode7 since .* give break_lock"):
        RunLock(run).acquire()
    with RunLock(run, break_lock=True):
        assert json.loads(path.read_text())["pid"] == os.getpid()


@pytest.mark.usefixtures("without_locks")
def test_a_stand_in_that_says_nothing_is_respected(run: RunFolder) -> None:
    forged(run).write_text("")
    with pytest.raises(StoreError, match="in use by another process"):
        RunLock(run).acquire()


def test_a_planted_link_is_not_locked_or_written_through(run: RunFolder, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    run.create()
    run.lock.symlink_to(victim)
    with pytest.raises(StoreError, match="symbolic link"):
        RunLock(run).acquire()
    assert victim.read_text() == "precious"
