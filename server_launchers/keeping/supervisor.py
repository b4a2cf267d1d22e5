"""Start a server and know when it works; find, show and stop the servers that run.

`launch` returns when every replica generated a token, or raises LaunchError with one plain cause and the end of
the log. Used as a context manager the server ends with the block; whatever ends this process ends the server
too (see `guard`), unless it was launched detached.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from server_launchers.deployment import Deployment
from server_launchers.engines import devices, environments, routers, table
from server_launchers.errors import LaunchError
from server_launchers.folders import state_folder
from server_launchers.keeping import engine_log, processes, readiness, state
from server_launchers.keeping.state import Member, ServerState
from server_launchers.spec import ServerSpec

POLL_SECONDS = 0.2
DRY_PORT = 8000
HANGING_SECONDS = 30.0
"""A start whose log ends in a fatal error has failed when nothing follows for so long: SGLang whose port was taken
neither serves nor ends."""
HANGING_LINES = 4
SURE_SECONDS = 10.0
"""How much longer than the grace a guard may take to end its server."""


@dataclass(frozen=True)
class Progress:
    """How a start is going."""

    seconds: float
    """Since the start."""
    phase: str
    """What the log says is being done, else what is waited for."""
    line: str
    """The last line of the log, safe to print."""


OnProgress = Callable[[Progress], None]


@dataclass
class RunningServer:
    """A server that is ready. `stop` ends it; so does leaving the `with` block, unless it is detached."""

    name: str
    base_urls: tuple[str, ...]
    """Where clients send requests, without `/v1`."""
    model: str
    """The name that clients ask for."""
    pid: int | None
    """Of the guard that keeps it; None for a server that somebody else runs."""
    log: Path | None
    detached: bool
    _lifeline: IO[bytes] | None = field(repr=False)
    _guard: subprocess.Popen[bytes] | None = field(repr=False)

    @property
    def state(self) -> ServerState | None:
        """What the state file says now: exit codes, restarts, versions."""
        return state.read(state.path_of(self.name))

    def stop(self) -> None:
        """End the server and forget it; nothing happens where it has ended."""
        if self._guard is not None:
            _end_guard(self._guard, self._lifeline)
            self._guard = self._lifeline = None
        if self.pid is not None and (known := self.state) is not None and known.guard_pid == self.pid:
            _stop(known)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if not self.detached:
            self.stop()


def launch(spec: ServerSpec, *, detach: bool = False, on_progress: OnProgress | None = None) -> RunningServer:
    """Start `spec` and wait until it works.

    Raises LaunchError: the engine is missing, a port is taken (by whom), the process ended (why), nothing
    happened in its log for `spec.start_timeout` seconds. Whatever is raised, also KeyboardInterrupt, nothing
    stays behind.
    """
    facts = table.inspect(spec)
    ports = _ports(spec, table.ports_needed(spec))
    deployment = table.deploy(spec, ports, facts)
    if not deployment.processes:
        return _attach(spec, deployment)
    _check_programs(spec, deployment)
    for port in ports:
        _refuse_taken_port(spec.host, port)
    try:
        guard, known = _start_guard(spec, deployment)
    except OSError as error:
        raise LaunchError(f"cannot start a server from {state.servers_folder()}: {error.strerror or error}") from None
    lifeline = guard.stdin
    assert lifeline is not None
    try:
        model = _wait_until_ready(spec, deployment, guard, known, on_progress or (lambda _progress: None))
        with contextlib.suppress(BrokenPipeError):
            lifeline.write(b"ready\ndetach\n" if detach else b"ready\n")
            lifeline.flush()
        _wait_until_known(spec, guard, known, detach)
        if detach:
            lifeline.close()
            # The guard outlives us on purpose; Popen would warn about a child that was not waited for.
            guard.returncode = 0
    except BaseException:
        _end_guard(guard, lifeline)
        _stop(known)
        raise
    return RunningServer(
        name=known.name,
        base_urls=deployment.base_urls,
        model=model,
        pid=guard.pid,
        log=known.log,
        detached=detach,
        _lifeline=None if detach else lifeline,
        _guard=None if detach else guard,
    )


def dry_run(spec: ServerSpec, *, ask: bool = True) -> list[str]:
    """What `launch` would run, one line a process that a shell can run; for several nodes those of every node.

    `ask` = False looks at nothing on this machine: recorded options, devices numbered from 0. With it, an
    engine that is not installed is no error.
    """
    facts = table.recorded_facts(spec)
    if ask and spec.engine_version is None:
        with contextlib.suppress(LaunchError):
            facts = table.inspect(spec)
    count = table.ports_needed(spec)
    ports = list(range(spec.port or DRY_PORT, (spec.port or DRY_PORT) + count))
    return table.lines(spec, ports, facts)


def status() -> list[ServerState]:
    """All servers that run, and those that ended without being asked to."""
    return state.read_all()


def find(name: str | None = None) -> ServerState:
    """The one running server, or the one called `name`; raises LaunchError that names those there are."""
    running = [one for one in status() if one.status == "ready"]
    if name is not None:
        running = [one for one in running if one.name == name]
    if len(running) == 1:
        return running[0]
    names = ", ".join(one.name for one in status() if one.status == "ready") or "none"
    if name is not None:
        raise LaunchError(f"no server {name} is ready; running: {names}")
    raise LaunchError(f"cannot tell which server is meant; running: {names}")


def stop(name: str | None = None, *, all: bool = False) -> list[str]:
    """End the server called `name`, the only one there is, or all; returns what cannot be ended, as text.

    A process is signalled only where its number and start time are those that were recorded.
    """
    known = status()
    if all:
        chosen = known
    elif name is not None:
        chosen = [one for one in known if one.name == name]
        if not chosen:
            names = ", ".join(one.name for one in known) or "none"
            raise LaunchError(f"no server is called {name}; known: {names}")
    elif len(known) == 1:
        chosen = known
    else:
        names = ", ".join(one.name for one in known) or "none"
        raise LaunchError(f"say which server to stop, or --all; known: {names}")
    return [text for one in chosen for text in _stop(one)]


def logs(name: str | None = None) -> list[Path]:
    """The logs of the server called `name` (or the only one), one a process; also of one that has ended."""
    known = status()
    chosen = [one for one in known if name in (None, one.name)]
    if len(chosen) != 1:
        names = ", ".join(one.name for one in known) or "none"
        asked = "say whose log to show" if name is None else f"no server is called {name}"
        raise LaunchError(f"{asked}; known: {names}")
    return [member.log for member in chosen[0].members]


def _ports(spec: ServerSpec, count: int) -> list[int]:
    if spec.port:
        return list(range(spec.port, spec.port + count))
    held, ports = [], []
    # All are held at once, so that no two are the same.
    for _ in range(count):
        one = socket.socket(_family(spec.host))
        held.append(one)
        try:
            one.bind((spec.host, 0))
        except OSError as error:
            raise LaunchError(f"cannot listen on {spec.host}: {error.strerror}; correct --host") from None
        ports.append(int(one.getsockname()[1]))
    for one in held:
        one.close()
    return ports


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _refuse_taken_port(host: str, port: int) -> None:
    with socket.socket(_family(host)) as probe:
        # What a server does itself: a port that an ended connection still occupies is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            owners = ", ".join(processes.describe(pid) for pid in sorted(processes.listeners(port) or ()))
            raise LaunchError(
                f"cannot listen on {host} port {port}: {error.strerror}{f', held by {owners}' if owners else ''}; "
                "stop that program or choose another --port"
            ) from None


def _start_guard(spec: ServerSpec, deployment: Deployment) -> tuple[subprocess.Popen[bytes], ServerState]:
    folder = state.servers_folder()
    neutral = state_folder() / "empty"
    neutral.mkdir(exist_ok=True)
    with state.naming_lock():
        name = _free_name(spec)
        logs = [folder / f"{name}{_suffix(i, len(deployment.processes))}.log" for i in range(len(deployment.processes))]
        for log in logs:
            log.write_bytes(b"")
        with (folder / f"{name}.guard.log").open("wb") as guard_log:
            guard = subprocess.Popen(
                [sys.executable, "-P", "-m", "server_launchers.keeping.guard"],
                stdin=subprocess.PIPE,
                stdout=guard_log,
                stderr=guard_log,
                cwd=neutral,
                start_new_session=True,
            )
        guard_started = processes.start_of(guard.pid)
        known = ServerState(
            name=name,
            engine=spec.engine,
            model=spec.client_name,
            source=spec.model,
            base_urls=list(deployment.base_urls),
            api_key_env=spec.api_key_env,
            created=datetime.now(UTC),
            mark=secrets.token_hex(8),
            grace=spec.stop_grace,
            guard_pid=guard.pid,
            guard_started=guard_started or "gone",
            status="starting",
            members=[
                Member(
                    role=process.role,
                    argv=list(process.command.argv),
                    port=process.port,
                    log=log,
                    devices=None if process.devices is None else list(process.devices),
                    cleanup=None if process.command.cleanup is None else list(process.command.cleanup),
                )
                for process, log in zip(deployment.processes, logs, strict=True)
            ],
            versions=dict(deployment.versions),
        )
        state.write(known)
    # Variables may hold secrets: they go to the guard through the pipe and are no part of the state file.
    record = known.model_dump(mode="json")
    for member, process in zip(record["members"], deployment.processes, strict=True):
        member["environment"] = process.command.resolved()
        member["folder"] = str(Path.cwd() if process.keeps_folder else neutral)
    config = {
        "state_path": str(state.path_of(name)),
        "state": record,
        "mark": known.mark,
        "grace": spec.stop_grace,
        "restarts": spec.restarts,
        "secret_names": [spec.api_key_env] if spec.api_key_env else [],
    }
    assert guard.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        guard.stdin.write(json.dumps(config).encode() + b"\n")
        guard.stdin.flush()
    return guard, known


def _attach(spec: ServerSpec, deployment: Deployment) -> RunningServer:
    """A server that somebody else runs: looked at, never stopped."""
    url = deployment.base_urls[0]
    try:
        model = readiness.check(url, deployment.readiness, spec.client_name, spec.api_key_env)
    except (readiness.NotReady, readiness.Foreign) as error:
        raise LaunchError(f"the server at {url} cannot be used: {error}") from None
    return RunningServer(
        name=spec.name or url,
        base_urls=deployment.base_urls,
        model=model,
        pid=None,
        log=None,
        detached=True,
        _lifeline=None,
        _guard=None,
    )


def _check_programs(spec: ServerSpec, deployment: Deployment) -> None:
    """Find every program before the first one is started; a router is asked whether its environment has it."""
    for process in deployment.processes:
        if process.role == "router":
            kind = routers.kind_for(spec.engine)
            python = process.command.argv[0]
            done = environments.run_quietly(
                (python, "-c", f"import importlib.util as u; exit(not u.find_spec('{kind}'))")
            )
            if done is None or done.returncode != 0:
                raise LaunchError(f"the environment of {python} has no {kind}; {routers.install(kind)}")
        process.command.resolved()


def _suffix(index: int, count: int) -> str:
    return "" if count == 1 else f"-{index}"


def _free_name(spec: ServerSpec) -> str:
    """The spec's name, refused while it runs; else one from the model, numbered where that runs."""
    running = {one.name for one in state.read_all() if one.running}
    if spec.name is not None:
        if spec.name in running:
            raise LaunchError(f"a server called {spec.name} is running; stop it or choose another name")
        return spec.name
    stem = re.sub(r"[^a-z0-9.]+", "-", Path(spec.client_name or spec.engine).name.lower()).strip("-.")[:60] or "server"
    return next(
        name
        for number in range(1, len(running) + 2)
        if (name := stem if number == 1 else f"{stem}-{number}") not in running
    )


def _wait_until_ready(
    spec: ServerSpec,
    deployment: Deployment,
    guard: subprocess.Popen[bytes],
    known: ServerState,
    on_progress: OnProgress,
) -> str:
    """The name of the model that every replica serves; raises LaunchError where that will not be."""
    model = spec.client_name
    begun = moved = time.monotonic()
    sizes: list[int] = []
    waiting = list(deployment.base_urls)
    while waiting:
        now = state.read(state.path_of(known.name)) or known
        ended = next((member for member in now.members if member.exit_code is not None), None)
        if ended is not None:
            raise LaunchError(_failure(spec, ended))
        if guard.poll() is not None:
            raise LaunchError(f"the server's guard ended; see {known.log.with_name(f'{known.name}.guard.log')}")
        why = "starting"
        try:
            model = readiness.check(waiting[0], deployment.readiness, model, spec.api_key_env)
            _check_owner(deployment, waiting[0], guard.pid)
            waiting.pop(0)
            continue
        except readiness.NotReady as error:
            why = str(error)
        except readiness.Foreign as error:
            raise LaunchError(f"another server answers at {waiting[0]}: {error}; choose another --port") from None
        if (new := [_size(member.log) for member in known.members]) != sizes:
            sizes, moved = new, time.monotonic()
        lines = engine_log.tail(known.log)
        on_progress(Progress(time.monotonic() - begun, engine_log.phase(lines) or why, lines[-1] if lines else ""))
        silent = time.monotonic() - moved
        if silent > HANGING_SECONDS and engine_log.is_fatal(last := lines[-HANGING_LINES:]):
            cause = engine_log.known_cause(last)
            raise LaunchError(f"{spec.engine} did not start, and does not end: {cause}{_tail_text(known.log)}")
        if silent > spec.start_timeout:
            raise LaunchError(
                f"{spec.engine} is not ready and its log did not advance for {spec.start_timeout:g} s "
                f"(--start-timeout): {why}{_tail_text(known.log)}"
            )
        time.sleep(POLL_SECONDS)
    return model


def _wait_until_known(spec: ServerSpec, guard: subprocess.Popen[bytes], known: ServerState, detach: bool) -> None:
    """Return when the guard has heard that its server is ready: from here on `find` sees it.

    A launcher that ends right after `detach` must not be taken for one that was killed. Without `detach` a guard that
    cannot write its state (the disk is full) is borne with.
    """
    deadline = time.monotonic() + SURE_SECONDS
    path = state.path_of(known.name)
    while (now := state.read(path)) is None or now.status != "ready":
        if now is not None and now.status == "exited":
            ended = next((member for member in now.members if member.exit_code is not None), now.members[0])
            raise LaunchError(_failure(spec, ended))
        if guard.poll() is not None:
            raise LaunchError(f"the server's guard ended; see {known.log.with_name(f'{known.name}.guard.log')}")
        if time.monotonic() > deadline:
            if detach:
                raise LaunchError(
                    f"the server's guard does not say in {path} that the server is ready; is the disk full?"
                )
            return
        time.sleep(0.01)


def _check_owner(deployment: Deployment, url: str, guard_pid: int) -> None:
    """A port that answers like our server must also be held by a process that we started."""
    port = int(url.rpartition(":")[2])
    if deployment.readiness.owns_port and (owners := processes.listeners(port)):
        ours = {guard_pid, *processes.descendants(guard_pid)}
        if not owners & ours:
            raise readiness.Foreign(", ".join(processes.describe(pid) for pid in sorted(owners)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _failure(spec: ServerSpec, member: Member) -> str:
    cause = engine_log.cause(member.log, member.exit_code)
    holders = devices.memory_holders() if "memory" in cause else []
    held = f"\ndevice memory is held by: {'; '.join(holders)}" if holders else ""
    return f"{spec.engine} did not start: {cause}{held}{_tail_text(member.log)}"


def _tail_text(log: Path) -> str:
    lines = engine_log.tail(log)[-engine_log.TAIL_LINES :]
    return f"\nlast lines of {log}:\n" + "\n".join(f"  {line}" for line in lines) if lines else f" (empty log {log})"


def _end_guard(guard: subprocess.Popen[bytes], lifeline: IO[bytes] | None) -> None:
    """Close the lifeline, upon which the guard ends its server in bounded time, and wait for that.

    A second Ctrl-C ends the waiting only: the guard goes on.
    """
    if lifeline is not None:
        with contextlib.suppress(BrokenPipeError):
            lifeline.close()
    guard.wait()


def _stop(known: ServerState) -> list[str]:
    """End what lives of this server and forget it; what cannot be ended is returned and stays remembered."""
    known.guard.signal(signal.SIGTERM)
    deadline = time.monotonic() + SURE_SECONDS
    while known.guard.alive():
        time.sleep(0.02)
        # The guard's last act is to write its state; until then its ladder may still be running.
        if time.monotonic() > deadline + known.grace:
            known.guard.signal(signal.SIGKILL)
    known = state.read(state.path_of(known.name)) or known
    left = list(known.survivors)
    if known.status != "exited":
        # The guard was killed before it could end its server.
        left = [processes.describe(one.pid) for one in _end_orphans(known)]
    if not left:
        _forget(known.name)
        return []
    return left + [f"device memory is held by {row}" for row in devices.memory_holders()]


def _end_orphans(known: ServerState) -> list[processes.Process]:
    """End a server whose guard was killed: what is proven ours by number and start time, or carries the mark."""
    numbers: set[int] = set()
    for index, member in enumerate(known.members):
        proven = [processes.Process(pid, started) for pid, started in member.family]
        if member.pid is not None and member.started is not None:
            proven.append(processes.Process(member.pid, member.started))
        alive = [one.pid for one in proven if one.alive()]
        numbers |= {*alive, *processes.marked(f"{known.mark}:{index}")}
        numbers |= {below for pid in alive for below in processes.descendants(pid)}
        if member.cleanup:
            environments.run_quietly(tuple(member.cleanup))
    return processes.end([one for one in map(processes.process, numbers) if one is not None], SURE_SECONDS)


def _forget(name: str) -> None:
    with contextlib.suppress(OSError):
        state.path_of(name).unlink()
