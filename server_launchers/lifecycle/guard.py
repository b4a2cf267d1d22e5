"""The process between the harness and an engine, which ensures that no part of the engine is left running.

    harness ──lifeline (a pipe)──▶ guard ──▶ members: one engine, or several replicas and their router
                                     │ ◀── their output, into size-limited, terminal-safe logs
                                     └──▶ NAME.json, the state file

Each guard manages one server, which goes through these states:

    starting ──"ready" on the lifeline──▶ ready ──────────────────────────────────────────────────▶ exited
       └──────────────────────────────────────────────────────────────────────────────────────────▶ exited
    the way to `exited` is the stop ladder; it begins when
      SIGTERM, SIGINT or SIGHUP arrives                                always
      the lifeline closes, or the guard's parent changes               until "detach" arrives
      the last member has ended and is not to be started again         always

A member that dies while the server is ready is restarted, as often as allowed; a router is not. The stop ladder: TERM
to each member's group, a grace period, KILL, then a sweep for processes that moved to their own group or session.

Invariant: the sweep finds each process that a member started, because at least one of three conditions is true. It is a
descendant of the guard (which adopts orphans, as their subreaper), it was recorded as the member's descendant at an
earlier check (`MemberState.family`), or it has the member's mark, a variable that all processes of a member inherit
(`MARK`).

Guarantees: a killed harness (even by SIGKILL, even during startup) leaves nothing running. If the guard is killed, the
engine's main process dies with it (Linux), and `stop` finds the rest by recorded process id, descent and mark. Not
covered: processes that are not descendants (a container's processes are stopped through its client).

No threads, so that it can fork safely.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import IO

import msgspec

from server_launchers.errors import describe_exit
from server_launchers.lifecycle import servers
from server_launchers.lifecycle.log_file import LogFile
from server_launchers.lifecycle.servers import MemberState, ServerState
from server_launchers.machine import processes
from server_launchers.machine.processes import MARK, Process
from server_launchers.machine.programs import end_container

TICK_SECONDS = 0.25
"""Seconds between checks of the guard's parent and of due restarts."""
SURVEY_SECONDS = 2.0
"""Seconds between searches for new descendants."""
SWEEP_SECONDS = 5.0
"""Seconds within which killed processes must disappear; any that remain are reported."""
READ_BYTES = 1 << 16
"""Maximum number of bytes of output read at once."""
RESTART_SECONDS = 2.0
"""Seconds between a member's death and its restart."""
# Constants from linux/prctl.h; Python's standard library has no prctl.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class MemberStart(msgspec.Struct, frozen=True):
    """How to start a member. It is not written to any file, because arguments and variables may contain keys."""

    argv: list[str]
    environment: dict[str, str]
    folder: str
    log: str
    """Path of the file for its output."""


class GuardOrders(msgspec.Struct, frozen=True):
    """The guard's configuration at startup.

    path: the state file. starts: one for each member of `state`. restarts: how often a member may be restarted.
    secrets: texts that no log may contain.
    """

    path: str
    state: ServerState
    starts: list[MemberStart]
    restarts: int
    secrets: list[str]


class Member:
    """One process of the server: its part of the state file, and state that only the guard has.

    mark: value of the variable `MARK` of all its processes. log: its output, safe to show. pipe: its raw output; None
    once it is closed. main: the process itself; None before its start and after its end. restart_at: time of the next
    restart, in seconds of the monotonic clock; None if no restart is due.
    """

    def __init__(self, state: MemberState, start: MemberStart, log: LogFile, mark: str) -> None:
        self.state = state
        self.mark = mark
        self._start = start
        self.log = log
        self.pipe: IO[bytes] | None = None
        self.main: Process | None = None
        self.restart_at: float | None = None

    def start(self) -> None:
        """Start the program in its own process group; write to the log if it cannot be run."""
        try:
            child = subprocess.Popen(
                self._start.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._start.folder,
                # Without PYTHONUNBUFFERED a Python engine keeps its last lines, the cause of a crash, in a buffer on a
                # pipe.
                env={**os.environ, **self._start.environment, MARK: self.mark, "PYTHONUNBUFFERED": "1"},
                # In its own group: Ctrl-C in the terminal reaches only the guard, and killpg kills an engine with its
                # workers.
                process_group=0,
                # The parent's id is read before the fork; in the child, getppid may already return the id of whoever
                # adopted it.
                preexec_fn=partial(_die_with, os.getpid()),
            )
        except OSError as error:
            self.log.note(f"cannot run {self._start.argv[0]}: {error.strerror}")
            # The status that a shell gives to a command that it cannot run.
            self.state.exit_code = 127
            return
        # The guard reaps all descendants in one place, so Popen must not wait for this one.
        child.returncode = 0
        assert child.stdout is not None
        # A blocking read of one silent member would stop the loop, and with it signals, restarts and the other members.
        os.set_blocking(child.stdout.fileno(), False)
        self.pipe = child.stdout
        # A child that died at once has no start time; "gone" equals none, so this process id is never signaled.
        self.main = processes.process(child.pid) or Process(child.pid, "gone")
        self.state.pid, self.state.started, self.state.exit_code = self.main.pid, self.main.started, None
        self.state.family = []

    def survey(self) -> bool:
        """Add new descendants to the record; return whether it changed.

        Call this repeatedly, because descent is visible only while the parent is alive. The mark does not find all
        workers, because engines overwrite their environment with a title.
        """
        if self.main is None:
            return False
        # An orphan stays recorded: nothing else shows later which member started it.
        orphans = {process for process in self.state.recorded - {self.main} if process.alive()}
        family = sorted((process.pid, process.started) for process in orphans | processes.descendants(self.main.pid))
        changed = family != self.state.family
        self.state.family = family
        return changed

    def end_container(self) -> None:
        """Remove this member's container, if it has one; killing docker's client would leave the container running."""
        if self.state.container and (problem := end_container(self.state.container, self.mark)):
            self.log.note(problem)

    def all_processes(self) -> set[Process]:
        """All processes of this member, dead or alive: the recorded ones, its process group, and processes that left
        it."""
        if self.main is None:
            return set()
        # The group finds workers that overwrote their environment; the mark finds workers that left the group.
        return self.state.recorded | processes.group(self.main.pid) | processes.find_marked(self.mark)


class Guard:
    """Manages one server: watches its pipes, its processes and signals until all processes have ended.

    state: the content of the state file `_path`. selector: each pipe that is read, with the function that reads it.
    parent: id of the harness's process; None once the server may outlive it. lifeline: the pipe from the harness.
    stopping: whether the stop ladder begins after this iteration. _restarts: how often a member may be restarted.
    _rest: the bytes on the lifeline since its last line end.
    """

    def __init__(self, orders: GuardOrders, rest: bytes) -> None:
        self._path = Path(orders.path)
        self.state = orders.state
        self._restarts = orders.restarts
        self.members = [
            Member(state, start, LogFile(Path(start.log), orders.secrets), f"{self.state.mark}:{index}")
            for index, (state, start) in enumerate(zip(self.state.members, orders.starts, strict=True))
        ]
        self.selector = selectors.DefaultSelector()
        self.parent: int | None = os.getppid()
        self.lifeline: IO[bytes] | None = None
        self.stopping = False
        self._rest = rest

    def run(self, lifeline: IO[bytes]) -> int:
        """Start the members and manage them until all have ended or a stop is requested. Returns the exit status."""
        wake_read, wake_write = os.pipe()
        for descriptor in (wake_read, wake_write):
            # A full wakeup pipe must not block in the signal handler: one unread byte already wakes the loop.
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake_write)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        # SIG_IGN would make the kernel reap children and lose their exit codes; a handler wakes `select` at a death.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(wake_read, selectors.EVENT_READ, lambda: os.read(wake_read, 4096))
        self.lifeline = lifeline
        os.set_blocking(lifeline.fileno(), False)
        self.selector.register(lifeline, selectors.EVENT_READ, self._read_lifeline)
        try:
            for member in self.members:
                self._start(member)
            self._save()
            next_survey = 0.0
            while not self.stopping and any(member.main or member.restart_at for member in self.members):
                self._turn(TICK_SECONDS)
                # A child of a killed harness may still keep the lifeline open; then only our new parent reveals the
                # harness's death.
                if self.parent is not None and os.getppid() != self.parent:
                    break
                if time.monotonic() >= next_survey:
                    next_survey = time.monotonic() + SURVEY_SECONDS
                    changed = [member.survey() for member in self.members]
                    if any(changed):
                        self._save()
        finally:
            # In `finally`, because an error in the loop itself must not leave an engine on the devices.
            self._ladder()
        return 0

    def _stop(self, *_: object) -> None:
        """Ask the loop to stop the server; also called as a signal handler."""
        # A signal handler only sets flags, which the loop checks after the iteration, so no lock is needed.
        self.stopping = self.state.stopped = True

    def _read_lifeline(self) -> None:
        """Execute the commands that the harness wrote: ready, detach. A closed pipe means stop."""
        assert self.lifeline is not None
        data = os.read(self.lifeline.fileno(), 4096)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line == b"ready":
                self.state.status = "ready"
                self._save()
            elif line == b"detach":
                # The parent will now exit intentionally, so a new parent no longer means that the harness was killed.
                self.parent = None
                self.selector.unregister(self.lifeline)
                return
        if not data:
            self._stop()
            self.selector.unregister(self.lifeline)

    def _start(self, member: Member) -> None:
        """Start one process of the server, and read its output."""
        member.start()
        if member.pipe is not None:
            self.selector.register(member.pipe, selectors.EVENT_READ, lambda: self._drain(member))

    def _turn(self, seconds: float) -> None:
        """Wait at most `seconds` for output, signals and commands from the harness, and handle them.

        Then react to processes that have ended, and start members whose restart is due.
        """
        for key, _ in self.selector.select(seconds):
            # Another member's handler may have emptied the pipe since `select` answered.
            with contextlib.suppress(BlockingIOError):
                key.data()
        died = self._reap()
        for member in self.members:
            if member.main is not None and member.main.pid in died:
                self._died(member, died[member.main.pid])
            # A member restarted while the server stops would be missed by the stop ladder.
            elif member.restart_at is not None and time.monotonic() >= member.restart_at and not self.stopping:
                member.restart_at = None
                self._start(member)
                self._save()

    def _drain(self, member: Member) -> None:
        """Read once from the process's output into its log; close the pipe at its end."""
        assert member.pipe is not None
        data = os.read(member.pipe.fileno(), READ_BYTES)
        if data:
            member.log.feed(data)
        else:
            self._close_pipe(member)

    def _close_pipe(self, member: Member) -> None:
        """Stop reading the process's output; does nothing if its pipe is already closed."""
        if member.pipe is not None:
            self.selector.unregister(member.pipe)
            member.pipe.close()
            member.pipe = None

    def _reap(self) -> dict[int, int]:
        """Exit codes (negative: the signal) of all children that have ended, including orphans that the guard
        inherited."""
        ended: dict[int, int] = {}
        with contextlib.suppress(ChildProcessError):
            while True:
                # -1, not the members' ids: as subreaper the guard must also reap orphans, or they remain zombies.
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                ended[pid] = os.waitstatus_to_exitcode(status)
        return ended

    def _died(self, member: Member, code: int) -> None:
        """Handle a member whose main process ended: stop its leftover processes, and restart it if allowed.

        code: exit status of the process.
        """
        # Leftover workers are ended before the pipe is closed, so that their last output is read.
        survivors = processes.kill_all(member.all_processes(), SWEEP_SECONDS)
        with contextlib.suppress(BlockingIOError):
            while member.pipe is not None:
                self._drain(member)
        self._close_pipe(member)
        member.end_container()
        member.main = None
        member.state.exit_code = code
        member.log.note(f"the process ended with {describe_exit(code)}")
        self._note_survivors(member, survivors)
        # A member that dies before the server is ready is not restarted: the launcher reports the failed start.
        if self.state.status == "ready" and not self.stopping and member.state.restarts < self._restarts:
            member.state.restarts += 1
            member.restart_at = time.monotonic() + RESTART_SECONDS
            nth = f"restart {member.state.restarts} of {self._restarts}"
            member.log.note(f"restarting the process in {RESTART_SECONDS:g} s ({nth})")
        elif member.state.role == "router":
            # Without their router, replicas are not reachable at any address that a client knows.
            self.stopping = True
        self._save()

    def _ladder(self) -> None:
        """Stop all processes of the server with the stop ladder, and record any that remain.

        The ladder is SIGTERM, SIGKILL after the grace period, then a sweep for processes that left their
        group.
        """
        self.stopping = True
        # Before TERM: once the main process is gone, its workers have another parent and are no longer its descendants.
        for member in self.members:
            member.survey()
        # The whole group at once: some engines leave their workers running when only the main process gets TERM.
        self._signal_groups(signal.SIGTERM, "stopping: TERM")
        deadline = time.monotonic() + self.state.grace
        while any(member.main for member in self.members) and time.monotonic() < deadline:
            self._turn(min(TICK_SECONDS, 0.05))
        for member in self._signal_groups(
            signal.SIGKILL, f"stopping: still running after {self.state.grace:g} s, sending SIGKILL"
        ):
            member.end_container()
        # Processes that left their group or lost their parent are found by descent and by the mark.
        family = processes.descendants(os.getpid()).union(*(processes.find_marked(each.mark) for each in self.members))
        survivors = processes.kill_all(family, SWEEP_SECONDS)
        # A last iteration reaps the killed processes and reads their output before the logs close.
        self._turn(0)
        # The remaining processes belong to the whole server; the first log, which people read first, lists them.
        self._note_survivors(self.members[0], survivors)
        for member in self.members:
            member.log.close()
        # "exited" is written last: `servers.end_server` waits for it.
        self.state.status = "exited"
        self._save()

    def _signal_groups(self, number: int, note: str) -> list[Member]:
        """Signal the process group of each running member; return these members."""
        running = [(member, member.main.pid) for member in self.members if member.main is not None]
        for member, group in running:
            member.log.note(note)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
        return [member for member, _ in running]

    def _note_survivors(self, member: Member, survivors: list[Process]) -> None:
        """Report the processes that could not be stopped to the member's log."""
        if survivors:
            member.log.note("still there: " + ", ".join(processes.describe(process.pid) for process in survivors))

    def _save(self) -> None:
        """Write the state file if possible."""
        # The guard must end its engine even if the state folder has disappeared.
        with contextlib.suppress(OSError):
            servers.write(self._path, self.state)


def _prctl(option: int, value: int) -> None:
    """Set a kernel option of this process; does nothing on systems other than Linux."""
    if sys.platform == "linux":
        # Without prctl the guard's stop ladder still ends the engine.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _die_with(guard: int) -> None:
    """Ask the kernel to kill this process when its parent ends; called in a child before it becomes the engine.

    guard: id of the parent process.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The guard may have died before the call above.
    if os.getppid() != guard:
        os._exit(1)


def main() -> int:
    """Read the configuration, one line of JSON, from the lifeline, and manage the server that it describes."""
    lifeline = sys.stdin.buffer.raw if hasattr(sys.stdin.buffer, "raw") else sys.stdin.buffer
    line = b""
    while b"\n" not in line:
        data = os.read(lifeline.fileno(), READ_BYTES)
        if not data:
            return 1
        line += data
    # As subreaper the guard inherits all orphans of members that start from now on; otherwise init would.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    config, _, rest = line.partition(b"\n")
    # Not with msgspec alone, which rejects anything that is not UTF-8: a variable may contain any bytes.
    return Guard(msgspec.convert(json.loads(config), GuardOrders), rest).run(lifeline)


if __name__ == "__main__":
    sys.exit(main())
