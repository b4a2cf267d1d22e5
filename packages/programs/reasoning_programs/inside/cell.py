"""The first process of a sandbox, which serves all jobs and forks a new supervisor and a new program for each job.

    caller ═ socket ═ cell (stores no part of a job)
                        └─ supervisor (reads the job; runs the tests; sees the program die)
                             └─ program (its own namespace; confined; runs the reply)

One job: the byte `j` and the job's message, which contains the program; a first report; the tests; and a last report.
Function tests are read once the program has been forked and has run, because it must not see them; the first report
then lists what the program defines. A program that reads standard input is forked with its input, so its first report
is only `started`. At the end the cell kills every process except itself, waits until none is left, and reports `over`.

What could leak from one program to the next: the cell's memory, which a job never enters; files, which are in a mount
that disappears with the program; processes, none of which survive; System V objects, which the filter denies.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import platform
import signal
import sys
import time
from typing import Any

from reasoning_programs.inside import confinement, frames, program_process, test_process
from reasoning_programs.inside.process_limits import LimitedProcess
from reasoning_programs.inside.test_process import ProgramEndedError

MAX_ERROR_CHARS = 2_000
"""Number of characters kept from the end of a program's standard error."""

_PIPE_BYTES = 1 << 20
"""Number of bytes of a program's standard error that are read at a time; a pipe holds no more."""

_MAX_THREADS = 64
"""Maximum number of threads of a program, if the kernel enforces such a limit for the sandbox's user."""

_INTERRUPT_SECONDS = {"cpu": 1.0, "sleep": 5.0}
"""Seconds of CPU and of sleep within which an interrupted call must end. On a busy machine it may have to wait for a
processor."""

_CPU_GRACE_SECONDS = 3
"""CPU seconds above a program's limit at which the kernel kills it, in case the supervisor has not done so."""

_LIBRARIES = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io json "
    "typing array atexit cmath dataclasses decimal enum fractions queue threading traceback linecache ast"
)
"""Modules that are imported once, before the first program is forked, so that programs start quickly: the modules that
LiveCodeBench imports for every program, and other common ones."""


def serve(*, name_spaces: bool, alone: bool, packages: tuple[str, ...] = ()) -> None:
    """Execute jobs from standard input, and report to standard output, until the caller closes the channel.

    The last message of a job is {"over": the supervisor's wait status, "used": whether the sandbox must be closed}.

    name_spaces: whether each program runs in its own Linux namespaces, such as mount and process namespaces. alone:
    whether all visible processes belong to this sandbox, which kills any that a job leaves behind. packages: a tool's
    packages, imported like `_LIBRARIES`; the first message contains their versions.
    """
    channel = frames.Channel(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):  # Only the channel uses the streams, so that only messages reach the caller.
        os.dup2(null, fd)
    for name in _LIBRARIES.split():
        importlib.import_module(name)
    versions = program_process.imported(packages)
    # Since 3.11 Python refuses to print integers of more than 4300 digits; LiveCodeBench sets the same limit.
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(50_000)
    confinement.call("prctl", 36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: a job's orphans are adopted here
    confinement.hide()  # protects the memory of this process from the programs
    gc.collect()
    # Frozen objects are not touched by a collection, so forked programs share their pages instead of copying them.
    gc.freeze()
    ready: dict[str, Any] = {"ready": platform.python_version()}
    frames.send(channel.sends, ready | {"packages": versions} if packages else ready)
    while os.read(channel.receives, 1) == b"j":
        pid = os.fork()
        if pid == 0:
            try:
                _Supervisor(channel, name_spaces).work()
                # os._exit: exit handlers and buffers belong to the cell, not to its fork.
                os._exit(0)
            except frames.ClosedError:  # the caller is gone
                os._exit(2)
            except BaseException:  # the job failed; `over` reports the wait status
                os._exit(3)
        status = os.waitpid(pid, 0)[1]
        _reap(alone)
        # "used": a program without its own namespace left files in /tmp, where the next program would find them. If
        # other processes are visible, /tmp may be theirs too, and files in it say nothing about the program.
        frames.send(channel.sends, {"over": status, "used": alone and bool(os.listdir("/tmp"))})


def _reap(alone: bool) -> None:
    """Kill the processes that a job left behind, and wait for them.

    alone: whether all processes visible to this one belong to the sandbox; if not, it waits only for its own children.
    """
    if alone:
        with contextlib.suppress(ProcessLookupError):
            # -1 means every visible process: in a separate process namespace, only the sandbox's processes.
            os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


class _Supervisor:
    """The process that handles one job: it forks the program, watches its limits, and runs the tests.

    _user: the user that both processes become if this one is root. _program: the program's process. _status: its wait
    status once it has ended. _requests, _replies: descriptors of the pipes to and from the program.
    """

    def __init__(self, channel: frames.Channel, name_spaces: bool) -> None:
        self._channel, self._name_spaces = channel, name_spaces
        # Each job has its own user, because the limit on threads counts all processes of a user.
        self._user = 10_000 + int.from_bytes(os.urandom(4), "big") % 50_000
        self._program = LimitedProcess()
        self._status = 0
        self._replies = self._requests = -1

    def work(self) -> None:
        """Receive the job, execute it and send the report. Raises `frames.ClosedError` if the caller is gone."""
        job = frames.receive(self._channel.receives)
        self._program.limits = job["limits"]
        confinement.hide()
        styles = {"stdin": self._do_stdin, "interpreter": self._do_calls}
        try:
            styles.get(job["style"], self._do_tests)(job)
        finally:
            if self._program.pid:
                os.kill(self._program.pid, signal.SIGKILL)
                os.waitpid(self._program.pid, 0)

    # --- one program on standard input and output ---
    def _do_stdin(self, job: dict[str, Any]) -> None:
        """Execute a job that uses standard input: fork the program with the test's input, and send back what it printed
        and how it ended.

        The report's `end` is "closed" if the program ended within its limits, and `code` or `signal` says how;
        otherwise it is the rule of the limit that the program exceeded, and `out`, what it printed, is empty.

        Its input and output are files in memory, which the kernel limits like any file that it writes. Its standard
        error is a pipe, of which only the last bytes are kept, because a program may write any amount. Another pipe,
        whose writing end only the program holds, closes with the program.
        """
        frames.send(self._channel.sends, {"started": True})  # asks for the input, which the program may see
        stdin, stdout = (os.memfd_create("stream") for _ in range(2))
        errors, stderr = os.pipe()
        os.set_blocking(errors, False)
        text = frames.receive(self._channel.receives)["input"]
        os.pwrite(stdin, text.encode("utf-8", "surrogatepass"), 0)  # the program reads from the beginning
        alive, held_open = os.pipe()
        self._fork({0: stdin, 1: stdout, 2: stderr, 3: held_open}, job)
        for fd in (stderr, held_open):  # A copy left open here would keep the pipe open after the program ends.
            os.close(fd)
        self._program.start_clock()
        end, written = self._wait_for_end(alive, errors)
        error = written.decode("utf-8", "replace")[-MAX_ERROR_CHARS:]
        n_bytes = os.fstat(stdout).st_size
        # A program that continues after the kernel has rejected its output has still printed too much.
        end = "output limit" if end == "closed" and n_bytes >= self._program.limits["file"] else end
        # latin-1 preserves any byte in JSON.
        status = {
            "end": end,
            "cpu": self._program.cpu_seconds(),
            "err": error,
            "out": os.pread(stdout, n_bytes, 0).decode("latin-1") if end == "closed" else "",
        }
        if end == "closed":
            killed = os.WIFSIGNALED(self._status)
            status |= {"signal": os.WTERMSIG(self._status)} if killed else {"code": os.WEXITSTATUS(self._status)}
        frames.send(self._channel.sends, status)

    def _wait_for_end(self, alive: int, errors: int) -> tuple[str, bytes]:
        """Wait until the program ends. Returns "closed", or the rule of the limit that it exceeded; and the end of what
        the program wrote to `errors`, because the last line of a traceback names the exception.

        alive: a pipe that closes with the program, or earlier if the program closes its end.
        """
        error, watched = b"", [alive, errors]
        while True:
            over = self._program.over()
            pid, status = os.waitpid(self._program.pid, os.WNOHANG)
            if pid:
                self._program.pid, self._status = 0, status
            try:
                piece = os.read(errors, _PIPE_BYTES)
                watched = [alive, errors] if piece else [alive]
            except BlockingIOError:
                piece = b""
            error = (error + piece)[-4 * MAX_ERROR_CHARS :]
            # An end within the sleep limit counts, even if the limit has been exceeded since.
            if pid and over != "time limit":
                return "closed", error
            if over:
                return over, error
            if not piece and frames.readable(watched, self._program.wait_seconds()) == [alive]:
                time.sleep(0.0005)

    # --- one interpreter ---
    def _do_calls(self, job: dict[str, Any]) -> None:
        """Run the code of one request after another in one interpreter, until a request has no code or the interpreter
        ends.

        Between calls the interpreter is stopped with all its threads. A request specifies the seconds of CPU and of
        sleep that its call may take. A call that takes longer is interrupted, as by Ctrl-C; if that does not end it
        soon, the interpreter ends. Each report contains how the call ended ("ran", "failed", or the rule of the limit
        that it exceeded), what it printed, its seconds of CPU and of sleep, the interpreter's memory growth since its
        start, and whether the interpreter has ended.
        """
        code = os.memfd_create("code")
        to_program, self._requests = os.pipe()
        self._replies, answered = os.pipe()
        printed, out = os.pipe()
        os.set_blocking(printed, False)
        null = os.open(os.devnull, os.O_RDWR)
        self._fork({0: null, 1: out, 2: out, 3: code, 4: to_program, 5: answered, 6: out}, job)
        for fd in (to_program, answered, out):
            os.close(fd)
        frames.receive(self._replies)  # it has started: startup time does not count for any call
        frames.send(self._channel.sends, {"started": True})
        number, memory = 0, self._memory()
        while (text := (request := frames.receive(self._channel.receives)).get("code")) is not None:
            number += 1
            self._program.limits |= {"cpu": request["seconds"], "sleep": request["seconds"]}
            self._program.start_clock()
            self._program.forget()
            os.kill(self._program.pid, signal.SIGCONT)
            shown = program_process.Printed(int(self._program.limits["characters"]))
            try:
                data = text.encode("utf-8", "surrogatepass")
                os.ftruncate(code, 0)
                os.pwrite(code, data, 0)
                frames.send(self._requests, {"bytes": len(data), "call": number})
                end = self._call_end(number, printed, shown)
            except (ProgramEndedError, frames.ClosedError, OSError) as error:
                shown.drain(printed)
                end = error.rule if isinstance(error, ProgramEndedError) else self._end_rule()
            is_over = end not in ("ran", "failed") and not self._interrupt(end, number, printed, shown)
            cpu = self._program.cpu_seconds() - self._program.base
            slept = self._program.sleeping()
            if not is_over:
                os.kill(self._program.pid, signal.SIGSTOP)
            report = {"end": end, "out": shown.text, "cpu": cpu, "slept": slept, "ended": is_over}
            frames.send(self._channel.sends, {**report, "memory": max(0, self._memory() - memory)})
            if is_over:
                return

    def _interrupt(self, end: str, number: int, printed: int, shown: program_process.Printed) -> bool:
        """Interrupt a call that has exceeded its CPU or sleep limit; return whether the interpreter survives."""
        if end not in ("time limit", "sleep limit"):
            return False
        self._program.limits |= {name: self._program.limits[name] + more for name, more in _INTERRUPT_SECONDS.items()}
        try:
            os.kill(self._program.pid, signal.SIGINT)
            self._call_end(number, printed, shown, says=False)
        except (ProgramEndedError, frames.ClosedError, OSError):
            return False
        return True

    def _memory(self) -> int:
        """Bytes of memory that only the program uses: its anonymous pages; 0 after its end."""
        try:
            with open(f"/proc/{self._program.pid}/statm") as file:
                _, resident, shared, *_ = map(int, file.read().split())
        except (OSError, ValueError):
            return 0
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")

    def _call_end(self, number: int, printed: int, shown: program_process.Printed, *, says: bool = True) -> str:
        """Collect what the interpreter prints until it reports how this call ended. Raises `ProgramEndedError`.

        says: whether to show the value or traceback that it reports.
        """
        watched, reply = [printed, self._replies], dict[str, Any]()
        while reply.get("call") != number:  # code that writes to all descriptors may have written here
            ready = frames.readable(watched, self._program.wait_seconds())
            if over := self._program.over():
                raise ProgramEndedError(over)
            if self._replies in ready:
                reply = self._reply()
            elif ready and not shown.take(printed):
                watched = [self._replies]  # it has closed all that it could print to
        shown.drain(printed)
        if says:
            shown.add(str(reply.get("shown")).encode("utf-8", "backslashreplace").decode())
        return "ran" if reply.get("end") == "ran" else "failed"

    # --- functions of a program ---
    def _do_tests(self, job: dict[str, Any]) -> None:
        """Start the program, drop this process's privileges too, run the tests here, and send the report.

        The tests are calls of a function, whose results are compared here, or the benchmark's test code. job: the
        message that began the job.
        """
        to_program, self._requests = os.pipe()
        self._replies, answered = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        self._fork({0: null, 1: null, 2: null, 3: to_program, 4: answered}, job)
        for fd in (to_program, answered):
            os.close(fd)
        begun = self._begin()
        frames.send(self._channel.sends, begun)
        if "end" in begun:
            return
        work, limits = frames.receive(self._channel.receives), self._program.limits
        # The tests are the benchmark's code, but values from the program can make them run forever.
        confinement.limit(int(limits["tests_memory"]), int(limits["tests_cpu"]), 0, _MAX_THREADS)
        confinement.leave_root(self._user)
        confinement.confine(supervises=True)
        os.dup2(null, 1)
        os.dup2(null, 2)  # Nobody reads standard error: the tests would hang once its pipe was full.
        if job["style"] == "calls":
            report = test_process.run_calls(work["function"], work["cases"], self._ask)
        else:
            report = test_process.run_tests(work["setup"], work["tests"], work["own"], begun["names"], self._ask)
        frames.send(self._channel.sends, {**report, "cpu": self._program.cpu_seconds()})

    def _begin(self) -> dict[str, Any]:
        """Wait until the program's code has run. Returns {"names": […]}, the functions and classes that it defines, or
        {"end": the rule, "message": …} if it failed."""
        self._program.start_clock()
        try:
            reply = self._reply()
        except ProgramEndedError as ended:
            return {"end": ended.rule, "message": ""}
        if "raised" in reply:
            return {"end": "exception", "message": f"{reply['raised']}: {reply.get('message', '')}"[:MAX_ERROR_CHARS]}
        # A list arrives as ["l", items], but a hostile program may have sent anything.
        value = reply.get("value")
        names = value[1] if isinstance(value, list) and len(value) == 2 and isinstance(value[1], list) else []
        return {"names": [name for name in names if isinstance(name, str)][:100_000]}

    def _ask(self, request: dict[str, Any]) -> Any:
        """Send a request to the program and return its answer. Raises `ProgramEndedError`."""
        self._program.start_clock()
        # "each": the limits apply to each test, so usage by earlier tests no longer counts.
        if self._program.limits["each"]:
            self._program.forget()
        try:
            frames.send(self._requests, request)
        except frames.ClosedError:
            raise ProgramEndedError(self._end_rule()) from None
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        """Wait for the program's next answer. Raises `ProgramEndedError` if it ends or exceeds a limit first."""

        def wait() -> None:
            while not frames.readable([self._replies], self._program.wait_seconds()):
                over = self._program.over()
                if over:
                    raise ProgramEndedError(over)

        try:
            reply = frames.receive(self._replies, frames.MAX_REPLY_BYTES, wait)
        except frames.ClosedError:
            raise ProgramEndedError(self._end_rule()) from None
        if not isinstance(reply, dict):
            raise ProgramEndedError("bad value")
        # The program may have exceeded its limit after the last clock check and before this read.
        over = self._program.over()
        if over == "time limit":
            raise ProgramEndedError(over)
        self._program.slept += self._program.sleeping()
        return reply

    def _end_rule(self) -> str:
        """The rule by which the program failed: how its process ended, or "bad value" if it still runs."""
        # The pipe closes before the process can be waited for, so its exit status arrives a moment later.
        deadline = time.monotonic() + 0.2
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self._program.pid, os.WNOHANG)
            if pid:
                self._program.pid, self._status = 0, status
                if os.WIFEXITED(status) and os.WEXITSTATUS(status) == program_process.EXIT_MEMORY:
                    return "memory limit"
                # RLIMIT_CPU kills a process at its hard limit with SIGKILL.
                return "time limit" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else "ended"
            time.sleep(0.001)
        return "bad value"

    # --- the process ---
    def _fork(self, descriptors: dict[int, int], job: dict[str, Any]) -> None:
        """Start the process in which the job's program runs.

        descriptors: number in the new process → our descriptor; it has no others.
        """
        if self._name_spaces:
            confinement.call("unshare", 0x20000000)  # CLONE_NEWPID: the next child begins a new process namespace
        pid = os.fork()
        if pid:
            self._program.pid = pid
            return
        try:
            if self._name_spaces:
                confinement.own_name_space()
                os.chdir("/tmp")
            # First to descriptors above all others: a source may have the same number as another pair's target.
            top = max([*descriptors.values(), *descriptors, *self._channel]) + 1
            copies = {target: os.dup2(source, top + target) for target, source in descriptors.items()}
            for target, source in copies.items():
                os.dup2(source, target)
            # Above all, the program must not have the channel to the caller.
            os.closerange(max(descriptors) + 1, 4_096)
            confinement.leave_root(self._user)
            self._become_program(job)
        finally:
            # Whatever happens, the fork must not return into the supervisor's code.
            os._exit(program_process.EXIT_EXCEPTION)

    def _become_program(self, job: dict[str, Any]) -> None:
        """Confine this process and run the job's program in it; does not return."""
        limits = self._program.limits
        confinement.limit(
            int(limits["memory"]), int(limits["cpu_total"]) + _CPU_GRACE_SECONDS, int(limits["file"]), _MAX_THREADS
        )
        confinement.confine()
        # Python ignores SIGPIPE: without this, writing to a closed pipe would never end the program.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        sys.setrecursionlimit(int(limits["recursion"]))
        # None of these calls returns.
        if job["style"] == "stdin":
            program_process.run_script(job["code"], job["header"])
        if job["style"] == "interpreter":
            program_process.serve_calls()
        program_process.ServedProgram(3, 4).serve(job["code"], job["header"])
