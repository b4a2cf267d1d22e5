"""Processes of our programs that skip the start: forks of a process that has imported them.

    the test's process ── socket: program, words, folder, variables, descriptors ──▸ the warm process
                                                                                      │ fork
                       ◂── pid, then exit status ──────────────────────────────────── the program, as __main__ runs it

A start of Python with the imports of `harness run` costs half a second of the processor, a fork some milliseconds. The
grading workers of commands that are forks are forks, too; so are the processes that score the cells of a sweep. The
forked process has what a process has: its own number, signals, limits, streams, death and exit status. It differs from
a new interpreter in its imports, its parent, and what `/proc` shows as its command line and first variables. Tests of
these, and variables that Python reads when it starts, need a new interpreter: `subprocess`.

The warm process ends with the test process that started it, and kills what is left.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import inspect
import json
import os
import resource
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from server_launchers import isolated
from tests.patience import PATIENCE_SECONDS

CHECKOUT = Path(__file__).resolve().parent.parent

COMMANDS, WORKERS = "commands", "workers"
"""The two warm processes, by what they fork: commands, and isolated children, above all the workers that grade."""

IMPORTED = {
    COMMANDS: (
        *(f"harness.cli.{name}" for name in ("main", "run", "score", "status", "follower", "sweep", "view", "dry_run")),
        *(f"harness.cli.{name}" for name in ("serve", "sweep")),
        *("harness.commands.run", "harness.commands.score", "harness.judges.judge"),
        "harness.sweeps.execution",
        *("harness.generation.runner", "harness.client.transport", "harness.client.facts.page"),
        *("harness.progress.running_score", "harness.reports.inputs", "harness.viewer.app"),
        *("harness.grading.processes.pool", "harness.reports.formats", "harness.scoring.table_cells"),
        *("harness.progress.display", "harness.progress.lines"),
        *(f"server_launchers.{name}" for name in ("lifecycle.launch", "engines.command")),
        *(f"server_launchers.engines.{name}" for name in ("llama_cpp", "sglang", "vllm_ascend")),
        *("httpx", "httpcore", "h11", "anyio", "certifi", "uvloop", "rich.console", "rich.table", "numpy.ma"),
        "harness.testing",
    ),
    WORKERS: (
        *("harness.grading.verifier", "reasoning_answers.verdict"),
        "reasoning_answers.votes",
        *("jinja2.sandbox", "jinja2.ext"),
    ),
}
"""What a warm process imports: most of what the programs of tests need. A program imports the rest by itself."""

STARTED_WITH: dict[str, tuple[list[str], dict[str, str]]] = {
    COMMANDS: (["-W", "error"], {}),
    WORKERS: ([], {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}),
}
"""Flags and variables of a warm process's interpreter: those that its programs are started with."""

AT_HAND = hasattr(os, "pidfd_open") and not any(name.startswith("COVERAGE_") for name in os.environ)
"""Whether there is a warm process: coverage begins with an interpreter."""

PYTHONPATH = os.environ.get("PYTHONPATH", "")
"""The folders of modules before any test: those of the test that starts a warm process must not stay in its forks."""

MAX_REQUEST_BYTES = 1 << 18


def started(args: list[str], *, limits: Mapping[int, int] | None = None, **options: Any) -> subprocess.Popen[str]:
    """Start a program as a fork of the warm process, or by a new interpreter where there is no such process.

    args: a module that runs as `__main__`, and its words. limits: resource limits of the process, each to be both the
    soft and the hard one. options: those of `Popen`.
    """
    begin_process = WarmProcess if AT_HAND else started_cold
    return begin_process(args, limits=limits, **options)


def started_cold(args: list[str], *, limits: Mapping[int, int] | None = None, **options: Any) -> subprocess.Popen[str]:
    """Start a program by a new interpreter, for tests of what an interpreter does when it starts."""

    def narrow() -> None:
        _narrow(limits or {})

    line = [sys.executable, "-W", "error", "-m", *args]
    return subprocess.Popen(line, text=True, preexec_fn=narrow if limits else None, **options)


def isolated_started(line: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start the child whose line `isolated.command` wrote as a fork of the warm process that has its imports."""
    program = str(Path(isolated.__file__).absolute())
    return WarmProcess(line[line.index(program) :], kind=WORKERS, text=False, **options)


def with_popen(popen: Callable[..., subprocess.Popen[bytes]]) -> types.SimpleNamespace:
    """What stands in the place of the module `subprocess` in a module whose children `popen` starts, `run` too."""
    names = {**vars(subprocess), "Popen": popen}
    names["run"] = types.FunctionType(subprocess.run.__code__, names, "run")
    names["run"].__kwdefaults__ = subprocess.run.__kwdefaults__
    return types.SimpleNamespace(**names)


def _narrow(limits: Mapping[int, int]) -> None:
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))


class WarmProcess(subprocess.Popen[Any]):
    """A `Popen` whose program a warm process forks. kind: the warm process; text: whether the streams are of text."""

    def __init__(
        self,
        args: list[str],
        *,
        limits: Mapping[int, int] | None = None,
        kind: str = COMMANDS,
        text: bool = True,
        **options: Any,
    ) -> None:
        self._limits = dict(limits or {})
        self._kind = kind
        self._status: int | None = None
        super().__init__(args, text=text, **options)

    def _execute_child(self, *args: Any) -> None:
        """In the place of a fork of this process."""
        names = list(inspect.signature(subprocess.Popen._execute_child).parameters)[1:]  # type: ignore[attr-defined]
        given = dict(zip(names, args, strict=True))
        # As a `Popen` does: `tools.mutants` counts who starts processes.
        sys.audit("subprocess.Popen", sys.executable, given["args"], given["cwd"], given["env"])
        streams = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.connect(begin(self._kind))
        asks = {
            "words": list(map(str, given["args"])),
            "folder": str(given["cwd"] or Path.cwd()),
            "variables": dict(os.environ if given["env"] is None else given["env"]),
            "limits": self._limits,
            "session": given["start_new_session"],
        }
        ours = [number if stream == -1 else stream for number, stream in enumerate(streams)]
        socket.send_fds(self._channel, [json.dumps(asks).encode()], ours)
        self.pid = json.loads(self._channel.recv(100))
        assert self.pid > 0, "it ended before it began"
        self._child_created = True
        for stream, end in zip(streams, ("p2cwrite", "c2pread", "errread"), strict=True):
            if stream != -1 and given[end] != -1:
                os.close(stream)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """(pid, wait status), as `os.waitpid` has it; (0, 0) where it still runs and must not be waited for.

        Raises TimeoutError where it runs longer than any program of a test.
        """
        if self._status is None:
            with contextlib.suppress(BlockingIOError):
                self._channel.settimeout(0 if wait_flags & os.WNOHANG else PATIENCE_SECONDS)
                # Nothing: the warm process has ended, at the exit of the tests, and has killed what was left.
                self._status = -json.loads(self._channel.recv(100) or str(-signal.SIGKILL))
                self._channel.close()
        return (0, 0) if self._status is None else (self.pid, self._status)

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        # `wait` holds the lock: a status that another thread's read took would leave this one waiting.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode


_addresses: dict[str, str] = {}
"""Addresses of the warm processes by their kinds."""

_begun_here: list[subprocess.Popen[bytes]] = []
"""The warm processes; a fork of their owner holds them too, since it forgets what is to be done at the exit."""


def begin(kind: str = COMMANDS) -> str:
    """Start the warm process of this kind at the first call; return the address of its socket."""
    if kind not in _addresses:
        _addresses[kind] = _begun(kind)
    return _addresses[kind]


def _begun(kind: str) -> str:
    workers = begin(WORKERS) if kind == COMMANDS else ""
    address = f"\0harness-tests-{os.getpid()}-{time.monotonic_ns()}"
    ready, theirs = os.pipe()
    code = f"from tests.warm import serve; serve({kind!r}, {address!r}, {theirs}, {workers!r})()"
    flags, variables = STARTED_WITH[kind]
    child = subprocess.Popen(
        [sys.executable, *flags, "-c", code],
        env={**os.environ, "PYTHONPATH": PYTHONPATH, **variables},
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        pass_fds=[theirs],
        start_new_session=True,
    )
    os.close(theirs)
    assert os.read(ready, 1) == b".", "the warm process did not begin"
    os.close(ready)
    _begun_here.append(child)
    atexit.register(_end, child, os.getpid())
    return address


def _end(child: subprocess.Popen[bytes], owner: int) -> None:
    """End the warm process where this process started it, and not the one that this is a fork of."""
    if os.getpid() == owner:
        child.communicate()


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, bool | None, bool | None]:
    """Begin before the tests' processes are forked (`tests.processes`, whose loop is the only one): all use it."""
    if AT_HAND and session.config.getoption("processes") > 1 and not session.config.option.collectonly:
        begin(COMMANDS)
    return (yield)


# -- in the warm process ----------------------------------------------------------------------------------------------


def serve(kind: str, address: str, ready: int, workers: str) -> Callable[[], object]:
    """Fork what is asked for; in a fork, return what it is to do. Ends when standard input does.

    workers: the address of the warm process that forks the grading workers of commands; "" in that process.
    A process that has ended stays a zombie until its test knows: its number is not given to another one before.
    """
    _import(IMPORTED[kind])
    if workers:
        _addresses.update({WORKERS: workers, COMMANDS: address})
        sys.modules["harness.grading.processes.pool"].subprocess = with_popen(isolated_started)  # type: ignore[attr-defined]
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    os.write(ready, b".")
    os.close(ready)
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == 0:
                    _kill(running)
                elif key.fileobj is listener:
                    channel = listener.accept()[0]
                    message, streams, _, _ = socket.recv_fds(channel, MAX_REQUEST_BYTES, 3)
                    pid = os.fork()
                    if pid == 0:
                        _close(selector, listener, *running.values())
                        return functools.partial(_run, json.loads(message), streams, channel)
                    for stream in streams:
                        os.close(stream)
                    running[pid] = channel
                    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
                elif isinstance(key.fileobj, int):  # the file that tells a process's end
                    selector.unregister(key.fd)
                    _tell(running[key.data], -_status(key.fd))  # no pid, should it have ended before it told its own
                    os.close(key.fd)
                    selector.register(running[key.data], selectors.EVENT_READ, key.data)
                else:  # the test knows, or is gone
                    selector.unregister(key.fileobj)
                    running.pop(key.data).close()
                    os.waitpid(key.data, 0)


def _close(selector: selectors.BaseSelector, *sockets: socket.socket) -> None:
    """Close in a fork what the warm process waits for."""
    for key in selector.get_map().values():
        if isinstance(key.fileobj, int) and key.fd != 0:
            os.close(key.fd)
    for held in sockets:
        held.close()


def _status(pidfd: int) -> int:
    """The wait status of a process that has ended; it stays a zombie."""
    ended = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_status << 8 if ended.si_code == os.CLD_EXITED else ended.si_status


def _import(modules: Iterable[str]) -> None:
    # As `harness.__main__` begins.
    for unused in ("httpx._main", "trio"):
        sys.modules[unused] = None  # type: ignore[assignment]
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is never looked at for garbage is not copied either


def _tell(channel: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # the test's process is gone
        channel.sendall(json.dumps(number).encode())


def _kill(pids: Iterable[int]) -> NoReturn:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _run(asks: dict[str, Any], streams: list[int], channel: socket.socket) -> None:
    """Become the program; what it raises, SystemExit above all, ends this process as it ends any."""
    if asks["session"]:
        os.setsid()
    _tell(channel, os.getpid())
    channel.close()
    os.chdir(asks["folder"])
    os.environ.clear()
    os.environ.update(asks["variables"])
    time.tzset()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # The interpreter opened its streams for the files that were there when it started.
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    _narrow({int(kind): limit for kind, limit in asks["limits"].items()})
    program, *sys.argv[1:] = asks["words"]
    if program.endswith(".py"):
        sys.path.remove("")  # a file's folder is searched, or nothing; never the folder of the process
        run = sys.argv[1] if len(sys.argv) > 1 else ""
        if not hasattr(sys.modules.get(run), "__path__"):
            sys.modules.pop(run, None)  # `runpy` warns of a module that was imported before it runs
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
