"""Start a server, wait until it works, and stop it.

`launch` returns when every replica has generated a token, or raises LaunchError with a single clear cause and the end
of the log. If the server is used as a context manager, it stops at the end of the block. If this process ends in any
way, the server stops too, unless it was launched detached: a separate process, the guard, watches both (see `guard`).

A start waits for the guard's record of the processes and for each address to respond, and checks both every
`POLL_SECONDS`. The first row that applies determines the result:

    observation                                             result
    a member has ended                                      failed: the cause from its log
    the guard has ended                                     failed: its own log is cited
    health, model list and one token are right, and the     this replica is ready; the next address
      port belongs to a process of ours
    another model, or another program, answers              failed: another server is on the port
    the log has not grown for `--start-timeout`             failed: too slow
    every replica is ready                                  the guard records it
    anything else                                           wait

Elapsed time alone never fails a start: weights may load for an hour, as long as the log of any member grows.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import secrets
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import msgspec

from harness.core import channel
from harness.core.codec import digest
from harness.core.errors import UsageError
from harness.core.files import write_atomically
from harness.core.installation import state_folder
from server_launchers import isolated, replicas
from server_launchers.command_line import assignments, secrets_of, shown_words
from server_launchers.engines import table
from server_launchers.errors import LOG_TAIL, LaunchError, log_cause
from server_launchers.lifecycle import servers
from server_launchers.lifecycle.guard import GuardOrders, MemberStart
from server_launchers.lifecycle.servers import MemberState, ServerState
from server_launchers.machine import accelerators, ports, processes
from server_launchers.readiness import NoCompletion, NotReady, WrongServer, check_ready
from server_launchers.spec import ServerSpec

POLL_SECONDS = 0.2
"""Seconds between checks of a server that is starting or being waited for."""
ACKNOWLEDGE_SECONDS = 10.0
"""Seconds that the guard may take to record that its server is ready."""
TAIL_LINES = 15
"""Number of lines from the end of a log that a message shows."""

OnProgress = Callable[[float, str], None]
"""A function that is called at each check of a starting server, with the seconds since the start and the last line of
the log, safe to print; before the first line, what the start is waiting for."""


@dataclass
class RunningServer:
    """A ready server. `stop` stops it; so does leaving the `with` block, unless the server is detached."""

    name: str
    base_urls: tuple[str, ...]
    """Addresses for requests, without `/v1`."""
    model: str
    """The model name for requests."""
    pid: int
    """Process id of the guard that manages this server."""
    log: Path
    detached: bool
    _guard: subprocess.Popen[bytes] | None = field(repr=False)
    """The guard, with the lifeline as its standard input; None if it is no longer a child of this process."""

    @property
    def state(self) -> ServerState | None:
        """The current content of the state file: exit codes, restarts, versions."""
        return servers.read(servers.path_of(self.name))

    @property
    def ended(self) -> str | None:
        """Why the server has permanently ended on its own, in a sentence; None while it runs or restarts."""
        return servers.why_ended(self.name, self.pid)

    def stop(self) -> None:
        """Stop the server and remove its state; does nothing if it has ended."""
        _end(self.name, self.pid, self._guard)
        self._guard = None

    def wait(self) -> str | None:
        """Wait until the server has ended. Returns why it ended on its own, in a sentence; None if it was stopped."""
        # The guard ends last, and never outlives its server. The state file is less reliable: `stop` removes it.
        while processes.start_of(self.pid) if self._guard is None else self._guard.poll() is None:
            time.sleep(POLL_SECONDS)
        return self.ended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if not self.detached:
            self.stop()


def launch(
    spec: ServerSpec, *, stem: str = "", detach: bool = False, on_progress: OnProgress | None = None
) -> RunningServer:
    """Start `spec` and wait until it works.

    Raises LaunchError if the key's variable is empty, the engine is missing, a port is taken (with its owner), the
    process ended (with the cause), or its log did not grow for `spec.start_timeout` seconds. Whatever is raised,
    including KeyboardInterrupt, no process is left behind. stem: beginning of the server's name if the spec has none;
    empty: the model's name. detach: leave the server running when this process ends.
    """
    if spec.api_key_env is not None and not os.environ.get(spec.api_key_env):
        raise LaunchError(
            f"the environment variable {spec.api_key_env} (`api_key_env`) is unset or empty: set it to the key"
        )
    engine = table.engine_of(spec)
    facts = engine.actual_facts(spec)
    if spec.routed and engine.router.module not in facts.versions:
        raise LaunchError(
            f"{engine.router.module} is not installed in the environment of {facts.router_python}; "
            f"{engine.router.install}"
        )
    if facts.machine.problem:
        channel.warn(f"not all devices of this machine are known: {facts.machine.problem}")
    listening = ports.free_ports(spec.host, spec.port, replicas.ports_needed(spec))
    deployment = replicas.deploy(spec, engine, listening, facts)
    # Whatever is raised from here on, the server is stopped; this is canceled if the block completes.
    with contextlib.ExitStack() as undo:
        try:
            guard, starting = _start_guard(spec, deployment, stem, undo)
        except OSError as error:
            folder = servers.servers_folder()
            raise LaunchError(f"cannot start a server from {folder}: {error.strerror or error}") from None
        model = _until_ready(spec, deployment, guard, starting, on_progress or (lambda _seconds, _line: None))
        _write_lifeline(guard, b"ready\ndetach\n" if detach else b"ready\n")
        _until_recorded(spec, guard, starting, detach=detach)
        undo.pop_all()
    if detach:
        assert guard.stdin is not None
        guard.stdin.close()
        # The guard intentionally outlives this process; without this, Popen would warn about an unfinished child.
        guard.returncode = 0
    return RunningServer(
        name=starting.name,
        base_urls=deployment.base_urls,
        model=model,
        pid=guard.pid,
        log=starting.log,
        detached=detach,
        _guard=None if detach else guard,
    )


# ---- the guard


def _start_guard(
    spec: ServerSpec, deployment: replicas.Deployment, stem: str, undo: contextlib.ExitStack
) -> tuple[subprocess.Popen[bytes], ServerState]:
    """Start the guard, write the server's first state, and send the guard its configuration. stem: as in `launch`.
    undo: receives the action that stops the guard. Returns (process of the guard, first state). Raises LaunchError,
    OSError.
    """
    empty = state_folder() / "empty"
    servers.make_folder(empty)
    with servers.naming_lock():
        name = _free_name(spec, stem, deployment.model or spec.engine)
        with os.fdopen(servers.create(servers.guard_log(name)), "wb") as guard_log:
            guard = subprocess.Popen(
                isolated.command("server_launchers.lifecycle.guard"),
                stdin=subprocess.PIPE,
                stdout=guard_log,
                stderr=guard_log,
                cwd=empty,
                # Ctrl-C and a closing terminal go to the whole session; the guard must outlive them to end its engine.
                start_new_session=True,
            )
        undo.callback(_end, name, guard.pid, guard)
        starting = _first_state(spec, deployment, name, guard.pid)
        for log in starting.logs:
            servers.older_log(log).unlink(missing_ok=True)  # of an earlier server
            os.close(servers.create(log))
        path = servers.path_of(name)
        servers.write(path, starting)
    starts = [
        MemberStart(
            argv=list(process.command.argv),
            environment=process.command.resolved(),
            # An engine started in the user's folder would import modules that happen to be there, such as a `json.py`.
            folder=str(Path.cwd() if process.keeps_folder else empty),
            log=str(log),
        )
        for process, log in zip(deployment.processes, starting.logs, strict=True)
    ]
    hidden = secrets_of(spec.environment) + ([os.environ[spec.api_key_env]] if spec.api_key_env else [])
    orders = GuardOrders(str(path), starting, starts, spec.restarts, hidden)
    # Over the pipe and not in argv, because every user of the machine can read arguments in /proc.
    _write_lifeline(guard, json.dumps(msgspec.to_builtins(orders)).encode() + b"\n")
    return guard, starting


def _first_state(spec: ServerSpec, deployment: replicas.Deployment, name: str, guard_pid: int) -> ServerState:
    """The state of a server whose processes have not started yet.

    guard_pid: the process that starts the server and watches it.
    """
    return ServerState(
        name=name,
        engine=spec.engine,
        model=deployment.model,
        source=spec.model,
        base_urls=list(deployment.base_urls),
        api_key_env=spec.api_key_env,
        created=datetime.now(UTC),
        mark=secrets.token_hex(8),
        grace=spec.stop_grace,
        guard_pid=guard_pid,
        # "gone" for a guard that died at once: no process has it as its start time, so nothing is signaled.
        guard_started=processes.start_of(guard_pid) or "gone",
        status="starting",
        members=[
            MemberState(
                role=process.role,
                argv=list(shown_words(process.command.argv)),
                port=process.port,
                devices=None if process.devices is None else list(process.devices),
                container=process.command.container,
            )
            for process in deployment.processes
        ],
        versions=dict(deployment.versions),
        environment=digest(assignments(spec.environment)),
    )


def _free_name(spec: ServerSpec, stem: str, model: str) -> str:
    """The new server's name: the spec's name, `stem`, or one made from the model's name; with a number if it is taken.

    Raises LaunchError if a server with the spec's name is running.
    """
    running = {server.name for server in servers.status() if server.running}
    if spec.name is not None:
        if spec.name in running:
            raise LaunchError(f"a server named {spec.name} is already running; stop it or choose another name")
        return spec.name
    stem = stem or re.sub(r"[^a-z0-9.]+", "-", Path(model).name.lower()).strip("-.")[:60] or "server"
    names = (stem if number == 1 else f"{stem}-{number}" for number in itertools.count(1))
    return next(name for name in names if name not in running)


def _write_lifeline(guard: subprocess.Popen[bytes], words: bytes) -> None:
    """Write to the lifeline. A guard that has died is reported with its log at the next check."""
    assert guard.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        guard.stdin.write(words)
        guard.stdin.flush()


def _end(name: str, guard_pid: int, guard: subprocess.Popen[bytes] | None) -> None:
    """Stop the server called `name`, if `guard_pid` is its guard, and remove its state.

    guard: the guard, if it is a child of this process; it stops its server within a limited time. A second Ctrl-C ends
    only the waiting: the guard continues.
    """
    if guard is not None:
        assert guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            guard.stdin.close()
        # A guard that was told to outlive its launcher no longer watches the lifeline.
        guard.terminate()
        try:
            guard.wait()
        except BaseException:
            guard.returncode = 0  # it outlives this process for a moment; Popen would warn about an unfinished child
            raise
    # A later server may have the name.
    if (now := servers.read(servers.path_of(name))) is not None and now.guard_pid == guard_pid:
        servers.end_server(now)


# ---- waiting until the server works


def _until_ready(
    spec: ServerSpec,
    deployment: replicas.Deployment,
    guard: subprocess.Popen[bytes],
    starting: ServerState,
    on_progress: OnProgress,
) -> str:
    """Wait until every replica is ready; return the name of the served model.

    Raises LaunchError once the start has failed.
    """
    model = starting.model
    begun = last_growth = time.monotonic()
    sizes: list[int] = []
    # Addresses are checked one after another: a token from the last replica is useless while the first is loading.
    for url in deployment.base_urls:
        while True:
            # The processes are checked before the address: another program that answers there must not hide a dead
            # engine.
            _refuse_ended(spec, guard, starting)
            try:
                model = _model_at(url, spec, deployment, guard.pid, model)
                break
            except NotReady as error:
                problem = error
            # Unequal, not larger: a rotated log gets smaller, and that is progress too.
            new_sizes = [_size(log) for log in starting.logs]
            # Lines about our own requests are not progress.
            if new_sizes != sizes and not isinstance(problem, NoCompletion):
                last_growth = time.monotonic()
            sizes = new_sizes
            lines = servers.log_tail(starting.log)
            on_progress(time.monotonic() - begun, lines[-1] if lines else str(problem))
            if time.monotonic() - last_growth > spec.start_timeout:
                answers = isinstance(problem, NoCompletion)
                silence = "has not returned a completion" if answers else "is not ready, and its log has not grown"
                limit = f"for {spec.start_timeout:g} s (`start_timeout`)"
                raise LaunchError(f"{spec.engine} {silence} {limit}: {problem}{_tail_text(starting.log)}")
            time.sleep(POLL_SECONDS)
    return model


def _model_at(url: str, spec: ServerSpec, deployment: replicas.Deployment, guard_pid: int, model: str) -> str:
    """The name of the model that the ready replica at `url` serves.

    model: the expected name; empty: any. Raises NotReady, or LaunchError if the wrong server answers.
    """
    foreign, served = "", model
    try:
        served = check_ready(url, deployment.readiness, model, spec.api_key_env)
    except WrongServer as error:
        foreign = str(error)
    # `check_ready` also accepts an equal server of another user; the port's owner is visible only now that somebody
    # listens. A container's processes are children of docker's daemon, not of the guard; `owns_port` is off for them.
    port = int(url.rpartition(":")[2])
    strangers = processes.other_listeners(port, guard_pid) if deployment.readiness.owns_port else None
    if foreign and strangers == []:
        raise LaunchError(f"the new server responds at {url}, but {foreign}: change its command, or the requested name")
    if foreign or strangers:
        who = foreign or ", ".join(map(processes.describe, strangers or ()))
        raise LaunchError(f"another server already responds at {url}: {who}; choose another `port`")
    return served


def _until_recorded(spec: ServerSpec, guard: subprocess.Popen[bytes], starting: ServerState, *, detach: bool) -> None:
    """Return when the guard has recorded that its server is ready. Raises LaunchError if the guard or the server ends.

    detach: the launcher ends next, so a guard that cannot write its state (full disk) is an error too; otherwise this
    function returns after `ACKNOWLEDGE_SECONDS`.
    """
    deadline = time.monotonic() + ACKNOWLEDGE_SECONDS
    path = servers.path_of(starting.name)
    while (now := servers.read(path)) is None or now.status != "ready":
        _refuse_ended(spec, guard, starting)
        if time.monotonic() > deadline:
            if detach:
                raise LaunchError(f"the server's guard process cannot write to {path}; is the disk full?")
            return
        time.sleep(0.01)


def _refuse_ended(spec: ServerSpec, guard: subprocess.Popen[bytes], starting: ServerState) -> None:
    """Raise LaunchError if a process of the server, or its guard, has ended."""
    now = servers.read(servers.path_of(starting.name)) or starting
    if now.ended is not None or now.status == "exited":
        member, log = now.ended or (now.members[0], now.log)
        cause = log_cause(servers.log_tail(log), member.exit_code, table.engine_of(spec).takes)
        # Only for memory: nvidia-smi takes seconds, and other causes do not depend on which processes use memory.
        holders = accelerators.memory_holders() if "memory" in cause else []
        raise LaunchError("\n".join([f"{spec.engine} did not start: {cause}", *holders]) + _tail_text(log))
    if guard.poll() is not None:
        raise LaunchError(f"the server's guard process exited; see {servers.guard_log(starting.name)}")


def _size(path: Path) -> int:
    """Bytes of a file; 0 if it is missing."""
    try:
        return path.stat().st_size
    except OSError:
        # The log is created with the state, but may be moved to `.1` between two checks.
        return 0


def _tail_text(log: Path) -> str:
    """The last lines of a log, as the end of a message."""
    lines = [f"  {line}" for line in servers.log_tail(log)[-TAIL_LINES:]]
    return "\n".join([f"\n{LOG_TAIL} {log}:", *lines]) if lines else f" (empty log {log})"


# ---- the address in a file, for other machines

_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound
"""Host addresses that mean every interface."""
_LOOPBACK = ("localhost", "::1")
"""Hosts that only this machine can reach, in addition to 127.…"""


def refuse_unreachable(spec: ServerSpec) -> None:
    """Raise `UsageError` if other machines could not reach the server."""
    if spec.host in _LOOPBACK or spec.host.startswith("127."):
        raise UsageError(
            "other machines cannot reach this address: use 0.0.0.0, or this machine's address",
            field="host",
            value=spec.host,
        )


@contextlib.contextmanager
def registered(file: Path | None, spec: ServerSpec, base_urls: Sequence[str]) -> Iterator[None]:
    """Context manager in which `file` contains the server's addresses, one per line, as reachable from other machines.
    The file is removed at the end. No file is written if `file` is None, or if there are no addresses, as on a node
    that only lends its devices to the first node. Raises StoreError.
    """
    if file is None or not base_urls:
        yield
        return
    urls = list(base_urls)
    if spec.host in _EVERYWHERE:
        # Under Slurm, the node's own name, which other nodes can resolve; they may not know the host name.
        host = spec.node_address or os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        host = f"[{host}]" if ":" in host else host
        urls = [urlunsplit(urlsplit(url)._replace(netloc=f"{host}:{urlsplit(url).port}")) for url in urls]
    # One `try` from before the file exists until after it is removed: a signal may come between any two of these lines.
    try:
        write_atomically(file, "".join(f"{url}\n" for url in urls).encode())
        yield
    finally:
        # The job's folder may have been cleaned up already, and the server ends either way.
        with contextlib.suppress(OSError):
            file.unlink()
