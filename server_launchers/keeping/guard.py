"""The process that stands between the harness and an engine, so that nothing of the engine is left running.

    harness ──lifeline (a pipe)──▶ guard ──▶ members: one engine, or several replicas and their router
                                     │ ◀── their output, into bounded, terminal-safe logs
                                     └──▶ NAME.json, the state file

One guard keeps one server. It goes through these states:

    starting ──"ready" on the lifeline──▶ ready ──────────────────────────────────────────────────▶ exited
       └──────────────────────────────────────────────────────────────────────────────────────────▶ exited
    the way to `exited` is the stop ladder; it begins when
      SIGTERM, SIGINT or SIGHUP comes, or "stop" on the lifeline       always
      the lifeline closes, or the guard's parent changes               until "detach" came
      the last member has ended and is not to be started again         always

A member that dies while the server is ready is started again, as often as allowed; a router is not.
The stop ladder: TERM to each member's group, a grace, KILL, then a sweep for what moved to a group or session of its
own.

Invariant: for each process that a member started, one of three things holds, so that the sweep finds it. It is a
descendant of the guard (which adopts orphans, as their subreaper), it was one at an earlier look (`KeptProcess.seen`),
or it carries the member's mark, an environment variable that all processes of a member inherit (`MARK`).

Guarantees: a killed harness (also by SIGKILL, also while starting) leaves nothing. A killed guard takes the engine's
main process with it (Linux), and `stop` finds the rest by recorded number, descent and mark. Not covered: processes
that are not descendants (a container's are ended through its client).

No thread and few imports, so that it starts in a fraction of a second and may fork safely.
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
from typing import IO, Any

from server_launchers.keeping import private_files, processes
from server_launchers.keeping.log_file import LogFile
from server_launchers.machine import containers
from server_launchers.variables import MARK

TICK_SECONDS = 0.25
"""Seconds between two looks at the guard's parent and at restarts that are due."""
SURVEY_SECONDS = 2.0
"""Seconds between two searches for new descendants."""
SWEEP_SECONDS = 5.0
"""Seconds that killed processes get to disappear; those that stay are reported."""
READ_BYTES = 1 << 16
"""Most bytes of output that are read at once."""
RESTART_SECONDS = 2.0
"""Seconds between a member's death and its restart."""
# Numbers from linux/prctl.h; Python's standard library has no prctl.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class KeptProcess:
    """One process of the server (a member), with its log and its known descendants.

    record: what the state file says of the member (`state.MemberState`). pipe: its output; None once it is closed.
    main: the process itself; None before its start and after its end. seen: its descendants at the last look.
    restart_at: when it is started again, in seconds of the monotonic clock; None if no restart is due.
    """

    def __init__(self, record: dict[str, Any], secrets: list[str], mark: str) -> None:
        self.record = record
        # The values popped here stay in memory only: the record is saved, and arguments and variables may hold keys.
        self.mark = mark
        self.argv: list[str] = record.pop("engine_argv")
        self.environment: dict[str, str] = record.pop("environment")
        self.folder: str = record.pop("folder")
        self.log = LogFile(Path(record.pop("log")), secrets)
        self.pipe: IO[bytes] | None = None
        self.main: processes.Process | None = None
        self.seen: set[processes.Process] = set()
        self.restart_at: float | None = None

    def start(self) -> None:
        """Start the program in a process group of its own; raises OSError where it cannot be run."""
        child = subprocess.Popen(
            self.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            # Without PYTHONUNBUFFERED a Python engine keeps its last lines, the cause of a crash, in a buffer on a
            # pipe.
            env={**os.environ, **self.environment, MARK: self.mark, "PYTHONUNBUFFERED": "1"},
            # A group of its own: Ctrl-C in the terminal reaches the guard alone, and killpg takes an engine with its
            # workers.
            process_group=0,
            # The parent's number is taken before the fork; in the child getppid may already name whoever adopted it.
            preexec_fn=partial(_die_with, os.getpid()),
        )
        # The guard reaps all descendants in one place, so Popen must not wait for this one.
        child.returncode = 0
        assert child.stdout is not None
        # A blocking read of one silent member would stop the loop, and with it signals, restarts and the other members.
        os.set_blocking(child.stdout.fileno(), False)
        self.pipe = child.stdout
        # A child that died at once has no start time; "gone" equals none, so this number is never signalled.
        self.main = processes.process(child.pid) or processes.Process(child.pid, "gone")
        self.seen = set()
        self.restart_at = None
        self.record |= {"pid": child.pid, "started": self.main.started, "exit_code": None}

    def survey(self) -> bool:
        """Add new descendants to `seen` and to the record; return whether `seen` changed.

        To be called again and again, because descent can be seen only while the parent lives. The mark does not find
        all workers, because engines overwrite their environment with a title.
        """
        if self.main is None:
            return False
        family = map(processes.process, processes.descendants(self.main.pid))
        # An orphan stays in `seen`: nothing else shows later which member started it.
        seen = {member for member in self.seen if member.alive()} | {member for member in family if member is not None}
        changed = seen != self.seen
        self.seen = seen
        self.record["family"] = sorted([member.pid, member.started] for member in seen)
        return changed

    def end_container(self) -> None:
        """Remove this member's container, if it has one; killing docker's client would leave the container running."""
        if self.record.get("container"):
            containers.end(self.record["container"], self.mark)

    def everyone(self) -> list[processes.Process]:
        """Return all living processes of this member: its main process, its process group, and those that left it."""
        if self.main is None:
            return []
        # The group finds workers that overwrote their environment, the mark those that left the group.
        numbers = {*processes.group(self.main.pid), *processes.find_marked(self.mark)}
        living = {process for process in map(processes.process, numbers) if process is not None}
        return [process for process in living | self.seen | {self.main} if process.alive()]


class Guard:
    """Keeps one server: watches its pipes, its processes and the signals, until all processes have ended."""

    def __init__(self, config: dict[str, Any], rest: bytes) -> None:
        self.state_path = Path(config["state_path"])
        self.state: dict[str, Any] = config["state"]
        self.grace: float = config["grace"]
        self.restarts: int = config["restarts"]
        # The configuration holds only the name of a key's variable; the value is read here.
        keys = [os.environ.get(name) for name in config["secret_names"]]
        secrets = [key for key in keys if key] + config["secrets"]
        self.members = [
            KeptProcess(record, secrets, f"{config['mark']}:{index}")
            for index, record in enumerate(self.state["members"])
        ]
        self.selector = selectors.DefaultSelector()
        self.parent: int | None = os.getppid()
        self.lifeline: IO[bytes] | None = None
        self.stopping = False
        self.told_to_stop = False
        self.ready = False
        self._rest = rest

    def run(self, lifeline: IO[bytes]) -> int:
        """Start the members and keep them until all have ended or a stop is requested. Returns the exit status."""
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
                # A child of a killed harness may still hold the lifeline open; then only our new parent shows the
                # harness's death.
                if self.parent is not None and os.getppid() != self.parent:
                    break
                if time.monotonic() >= next_survey:
                    next_survey = time.monotonic() + SURVEY_SECONDS
                    changed = [member.survey() for member in self.members]
                    if any(changed):
                        self._save()
        finally:
            # In `finally`: an error in the loop itself must not leave an engine on the devices.
            self._ladder()
        return 0

    def _stop(self, *_: object) -> None:
        # A signal handler only sets flags, on which the loop acts after the turn, so no lock is needed.
        self.stopping = self.told_to_stop = True

    def _read_lifeline(self) -> None:
        """Obey the words that the harness wrote: ready, detach, stop. A closed pipe means stop."""
        assert self.lifeline is not None
        data = os.read(self.lifeline.fileno(), 4096)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line == b"ready":
                self.ready = True
                self.state["status"] = "ready"
                self._save()
            elif line == b"detach":
                # The parent will end on purpose now, so a new parent no longer means that the harness was killed.
                self.parent = None
                self.selector.unregister(self.lifeline)
                return
            elif line == b"stop":
                self._stop()
        if not data:
            self._stop()
            self.selector.unregister(self.lifeline)

    def _start(self, member: KeptProcess) -> None:
        """Start one process of the server, and read its output."""
        try:
            member.start()
        except OSError as error:
            member.log.note(f"cannot run {member.argv[0]}: {error.strerror}")
            # The status that a shell gives to a command that it cannot run.
            member.record["exit_code"] = 127
            return
        assert member.pipe is not None
        self.selector.register(member.pipe, selectors.EVENT_READ, lambda: self._drain(member))

    def _turn(self, seconds: float) -> None:
        """Wait at most `seconds` for output, signals and orders of the harness, and handle them.

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

    def _drain(self, member: KeptProcess) -> None:
        """Read once from the process's output into its log; close the pipe at its end."""
        assert member.pipe is not None
        data = os.read(member.pipe.fileno(), READ_BYTES)
        if data:
            member.log.feed(data)
        else:
            self._close_pipe(member)

    def _close_pipe(self, member: KeptProcess) -> None:
        if member.pipe is not None:
            self.selector.unregister(member.pipe)
            member.pipe.close()
            member.pipe = None

    def _reap(self) -> dict[int, int]:
        """Exit codes (negative: the signal) of all ended children, including orphans that the guard inherited."""
        ended: dict[int, int] = {}
        with contextlib.suppress(ChildProcessError):
            while True:
                # -1, not the members' numbers: as subreaper the guard must also reap orphans, or they stay as zombies.
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                ended[pid] = os.waitstatus_to_exitcode(status)
        return ended

    def _died(self, member: KeptProcess, code: int) -> None:
        """Handle a member whose main process ended: end its leftover processes, and restart it if allowed.

        code: exit status of the process.
        """
        # Leftover workers are ended before the pipe is closed, so that their last output is read.
        left = processes.end(member.everyone(), SWEEP_SECONDS)
        if member.pipe is not None:
            with contextlib.suppress(BlockingIOError):
                while member.pipe is not None:
                    self._drain(member)
            self._close_pipe(member)
        member.end_container()
        member.main = None
        member.record["exit_code"] = code
        member.log.note(f"the process ended with {_exit_text(code)}")
        if left:
            member.log.note("still there: " + ", ".join(processes.describe(process.pid) for process in left))
        # A member that dies before the server is ready is not restarted: the launcher reports the failed start.
        if self.ready and not self.stopping and member.record["restarts"] < self.restarts:
            member.record["restarts"] += 1
            member.restart_at = time.monotonic() + RESTART_SECONDS
            nth = f"restart {member.record['restarts']} of {self.restarts}"
            member.log.note(f"the process is started again in {RESTART_SECONDS:g} s ({nth})")
        elif not self.stopping and member.record["role"] == "router":
            # Replicas without their router answer on no address that a client knows.
            self.stopping = True
        self._save()

    def _ladder(self) -> None:
        """End all processes of the server by the stop ladder, and record what is left of them.

        The ladder: SIGTERM, after the grace SIGKILL, then a sweep for processes that left their group.
        """
        self.state["stopped"] = self.told_to_stop
        self.stopping = True
        groups = [member for member in self.members if member.main is not None]
        for member in groups:
            assert member.main is not None
            # Before TERM: once the main process is gone, its workers have another parent and are no descendants of it.
            member.survey()
            member.log.note("stopping: TERM")
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # The whole group at once: some engines leave their workers running when only the main process gets
                # TERM.
                os.killpg(member.main.pid, signal.SIGTERM)
        deadline = time.monotonic() + self.grace
        while any(member.main for member in self.members) and time.monotonic() < deadline:
            self._turn(min(TICK_SECONDS, 0.05))
        for member in groups:
            if member.main is not None:
                member.log.note(f"stopping: still running after {self.grace:g} s, KILL")
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(member.main.pid, signal.SIGKILL)
                # Killing docker's client leaves its container running.
                member.end_container()
        # Processes that left their group or lost their parent are found by descent and by the mark.
        numbers = {*processes.descendants(os.getpid())}
        for member in self.members:
            numbers |= {*processes.find_marked(member.mark)}
        family = {process for process in map(processes.process, numbers - {os.getpid()}) if process is not None}
        left = processes.end(family, SWEEP_SECONDS)
        # A last turn reaps the killed and reads their output before the logs close.
        self._turn(0)
        for member in self.members:
            # The processes that are left belong to the whole server; the first log, which people read first, names
            # them.
            if left and member is self.members[0]:
                member.log.note("still there: " + ", ".join(processes.describe(process.pid) for process in left))
            member.log.close()
        self.state["survivors"] = [processes.describe(process.pid) for process in left]
        # "exited" is written last: `servers.end` waits for it.
        self.state["status"] = "exited"
        self._save()

    def _save(self) -> None:
        # The guard must end its engine even if the state folder has disappeared.
        with contextlib.suppress(OSError):
            private_files.replace(self.state_path, json.dumps(self.state, indent=1).encode())


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exit status {code}"
    with contextlib.suppress(ValueError):
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"signal {-code}"


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        # Without prctl the guard's stop ladder still ends the engine.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _die_with(guard: int) -> None:
    """Ask the kernel to kill this process when its parent ends; called in a child before it becomes the engine.

    guard: number of the parent.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The guard may have died before the call above.
    if os.getppid() != guard:
        os._exit(1)


def main() -> int:
    """Read the configuration, one line of JSON, from the lifeline, and keep the server that it describes."""
    lifeline = sys.stdin.buffer.raw if hasattr(sys.stdin.buffer, "raw") else sys.stdin.buffer
    line = b""
    while b"\n" not in line:
        data = os.read(lifeline.fileno(), READ_BYTES)
        if not data:
            return 1
        line += data
    # As subreaper the guard inherits all orphans of members that start from now on; else init would.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    config, _, rest = line.partition(b"\n")
    return Guard(json.loads(config), rest).run(lifeline)


if __name__ == "__main__":
    sys.exit(main())
