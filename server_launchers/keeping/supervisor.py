"""Starts a server and waits until it works.

`launch` returns when every replica has generated a token, or raises LaunchError with one plain cause and the end of the
log. Used as a context manager, the server ends with the block. If this process ends in any way, the server ends too,
unless it was launched detached: a process of its own, the guard, watches both (see `guard`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import subprocess
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from harness.core.about import state_folder
from harness.core.nouns import count_noun
from server_launchers import isolated, replicas, shown
from server_launchers.deployment import Deployment
from server_launchers.engines import table
from server_launchers.errors import LaunchError, ModelError
from server_launchers.keeping import private_files, processes, servers, waiting
from server_launchers.keeping.servers import MemberState, ServerState
from server_launchers.keeping.waiting import OnProgress
from server_launchers.machine import accelerators
from server_launchers.machine.programs import run_quietly
from server_launchers.spec import ServerSpec

DRY_PORT = 8000
"""The first port of a dry run whose spec names none."""
MAX_PORT = 65_535
"""Largest number of a TCP port."""
POLL_SECONDS = 0.5
"""Seconds between two looks in `RunningServer.wait`."""


@dataclass
class RunningServer:
    """A ready server. `stop` ends it; so does leaving the `with` block, unless the server is detached."""

    name: str
    base_urls: tuple[str, ...]
    """Addresses for requests, without `/v1`."""
    model: str
    """The model name for requests."""
    pid: int
    """Process number of the guard that keeps this server."""
    log: Path
    detached: bool
    _lifeline: IO[bytes] | None = field(repr=False)
    _guard: subprocess.Popen[bytes] | None = field(repr=False)

    @property
    def state(self) -> ServerState | None:
        """The current content of the state file: exit codes, restarts, versions."""
        return servers.read(servers.path_of(self.name))

    @property
    def ended(self) -> str | None:
        """Why the server has ended for good by itself, in a sentence; None while it runs or restarts."""
        return servers.why_ended(self.name, self.pid)

    def stop(self) -> None:
        """End the server and forget it; does nothing if it has ended."""
        # The guard is our child, so it must be waited for here. After that `servers.end` only removes the state file.
        if self._guard is not None:
            _end_guard(self._guard, self._lifeline)
            self._guard = self._lifeline = None
        if (now := self.state) is not None and now.guard_pid == self.pid:
            servers.end(now)

    def wait(self) -> str | None:
        """Wait until the server has ended. Returns why it ended by itself, in a sentence; None if it was stopped."""
        # The guard ends last, and outlives no server. The state file tells less: `stop` removes it.
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

    Raises LaunchError if the engine is missing, a port is taken (by whom), the process ended (why), or its log did not
    grow for `spec.start_timeout` seconds. Whatever is raised, also KeyboardInterrupt, no process stays behind. stem:
    beginning of the server's name if the spec has none; empty: the model's name. detach: leave the server running when
    this process ends.
    """
    facts = table.inspect(spec)
    numbers = choose_ports(spec, replicas.ports_needed(spec))
    deployment = replicas.deploy(spec, numbers, facts)
    _check_programs(spec, deployment)
    for port in numbers:
        refuse_taken_port(spec.host, port)
    try:
        guard, starting = _start_guard(spec, deployment, stem)
    except OSError as error:
        raise LaunchError(f"cannot start a server from {servers.servers_folder()}: {error.strerror or error}") from None
    lifeline = guard.stdin
    assert lifeline is not None
    try:
        model = waiting.until_ready(spec, deployment, guard, starting, on_progress or (lambda _progress: None))
        # The guard may have died since the last look; `until_known` then reports it with its log.
        with contextlib.suppress(BrokenPipeError):
            lifeline.write(b"ready\ndetach\n" if detach else b"ready\n")
            lifeline.flush()
        waiting.until_known(spec, guard, starting, detach)
        if detach:
            lifeline.close()
            # The guard outlives this process on purpose; without this, Popen would warn about an unfinished child.
            guard.returncode = 0
    # BaseException, because Ctrl-C during a start of several minutes is the usual way out.
    except BaseException:
        _end_guard(guard, lifeline)
        servers.end(starting)
        raise
    return RunningServer(
        name=starting.name,
        base_urls=deployment.base_urls,
        model=model,
        pid=guard.pid,
        log=starting.log,
        detached=detach,
        _lifeline=None if detach else lifeline,
        _guard=None if detach else guard,
    )


def dry_run(spec: ServerSpec) -> list[str]:
    """The commands of `launch`, one line per process, ready for a shell; for several nodes, the lines of every node.

    A missing engine is no error: then the newest version that was tried counts.
    """
    facts = table.assumed_facts(spec)
    facts = msgspec.structs.replace(facts, device_ids=accelerators.allowed(table.accelerator(spec)))
    if spec.engine_version is None:
        with contextlib.suppress(LaunchError):
            facts = table.inspect(spec)
    return replicas.lines(spec, following_ports(spec.port or DRY_PORT, replicas.ports_needed(spec)), facts)


def remarks(spec: ServerSpec) -> list[str]:
    """What prevents a start of `spec` on this machine, and which devices it would not use, a sentence each."""
    sentences = [f"cannot be started here: {why}"] if (why := obstacle(spec)) else []
    idle = replicas.idle_devices(spec, accelerators.find(table.accelerator(spec)).ids)
    if idle:
        sentences.append(f"idle: {count_noun(len(idle), 'device')} ({', '.join(idle)})")
    return sentences


def obstacle(spec: ServerSpec, *, any_model: bool = False) -> str:
    """Why `spec` cannot be started on this machine, as far as can be checked without a start.

    Examples: a missing engine, model file or option. Empty if nothing is known that prevents the start. any_model: the
    model stands for one that comes later, so that it may be missing.
    """
    try:
        table.inspect(spec)
    except ModelError as error:
        return "" if any_model else str(error)
    except LaunchError as error:
        return str(error)
    return ""


def _start_guard(spec: ServerSpec, deployment: Deployment, stem: str) -> tuple[subprocess.Popen[bytes], ServerState]:
    """Start the guard, write the server's first state, and send the guard its configuration.

    stem: as in `launch`. Returns (process of the guard, first state). Raises LaunchError, OSError.
    """
    empty = state_folder() / "empty"
    private_files.make_folder(empty)
    with servers.naming_lock():
        name = _free_name(spec, stem or stem_of(spec))
        for log in servers.log_files(name, len(deployment.processes)):
            os.close(private_files.create(log))
        with os.fdopen(private_files.create(servers.guard_log(name)), "wb") as guard_log:
            guard = subprocess.Popen(
                isolated.command("server_launchers.keeping.guard"),
                stdin=subprocess.PIPE,
                stdout=guard_log,
                stderr=guard_log,
                cwd=empty,
                # Ctrl-C and a closing terminal go to the whole session; the guard must outlive them to end its engine.
                start_new_session=True,
            )
        try:
            starting = _first_state(spec, deployment, name, guard.pid)
            servers.write(starting)
        except BaseException:
            _end_guard(guard, guard.stdin)
            raise
    assert guard.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError):
            # Over the pipe and not by argv: every user of the machine can read arguments in /proc.
            guard.stdin.write(json.dumps(_guard_config(spec, deployment, starting, empty)).encode() + b"\n")
            guard.stdin.flush()
    except BaseException:
        _end_guard(guard, guard.stdin)
        servers.end(starting)
        raise
    return guard, starting


def _first_state(spec: ServerSpec, deployment: Deployment, name: str, guard_pid: int) -> ServerState:
    """The state of a server whose processes have not started yet.

    guard_pid: the process that starts the server and watches it.
    """
    return ServerState(
        name=name,
        engine=spec.engine,
        model=table.client_name(spec),
        source=spec.model,
        base_urls=list(deployment.base_urls),
        api_key_env=spec.api_key_env,
        created=datetime.now(UTC),
        mark=secrets.token_hex(8),
        grace=spec.stop_grace,
        guard_pid=guard_pid,
        # "gone" for a guard that died at once: no process has it as its start, so nothing is signalled.
        guard_started=processes.start_of(guard_pid) or "gone",
        status="starting",
        members=[
            MemberState(
                role=process.role,
                argv=list(shown.words(process.command.argv)),
                port=process.port,
                devices=None if process.devices is None else list(process.devices),
                container=process.command.container,
            )
            for process in deployment.processes
        ],
        versions=dict(deployment.versions),
    )


def _guard_config(spec: ServerSpec, deployment: Deployment, starting: ServerState, empty: Path) -> dict[str, Any]:
    """The configuration that the guard reads from its pipe. It stands in no file, since its variables may be secret.

    starting: the first state of the server. empty: the empty folder in which engines start.
    """
    record = msgspec.to_builtins(starting)
    for member, process, log in zip(record["members"], deployment.processes, starting.logs, strict=True):
        member["log"] = str(log)
        member["engine_argv"] = list(process.command.argv)
        member["environment"] = process.command.resolved()
        # An engine started in the user's folder would import modules that lie there by chance, such as a `json.py`.
        member["folder"] = str(Path.cwd() if process.keeps_folder else empty)
    return {
        "state_path": str(servers.path_of(starting.name)),
        "state": record,
        "mark": starting.mark,
        "grace": spec.stop_grace,
        "restarts": spec.restarts,
        "secret_names": [spec.api_key_env] if spec.api_key_env else [],
        "secrets": shown.secrets_of(spec.environment),
    }


def _check_programs(spec: ServerSpec, deployment: Deployment) -> None:
    """Check that the router's environment has the router and that the variables of all keys are set.

    Raises LaunchError.
    """
    for process in deployment.processes:
        if process.role == "router":
            router = table.engine_of(spec).router
            python = process.command.argv[0]
            done = run_quietly((python, "-c", f"import importlib.util as u; exit(not u.find_spec('{router.module}'))"))
            if done is None or done.returncode != 0:
                raise LaunchError(f"the environment of {python} has no {router.module}; {router.install}")
        # `resolved` raises for a missing key; later only a line of the guard's log would report that.
        process.command.resolved()


def stem_of(spec: ServerSpec) -> str:
    """A name for the server from its model's name: lower case, at most 60 characters."""
    return (
        re.sub(r"[^a-z0-9.]+", "-", Path(table.client_name(spec) or spec.engine).name.lower()).strip("-.")[:60]
        or "server"
    )


def _free_name(spec: ServerSpec, stem: str) -> str:
    """The name of the new server: the spec's, else `stem`, with a number if that is taken.

    Raises LaunchError if a server with the spec's name runs.
    """
    running = {server.name for server in servers.read_all() if server.running}
    if spec.name is not None:
        if spec.name in running:
            raise LaunchError(f"a server called {spec.name} is running; stop it or choose another name")
        return spec.name
    name = stem
    number = 1
    while name in running:
        number += 1
        name = f"{stem}-{number}"
    return name


def _end_guard(guard: subprocess.Popen[bytes], lifeline: IO[bytes] | None) -> None:
    """Close the lifeline, which makes the guard end its server in bounded time, and wait for the guard.

    The lifeline is the pipe to the guard. A second Ctrl-C ends only the waiting: the guard goes on.
    """
    if lifeline is not None:
        with contextlib.suppress(BrokenPipeError):
            lifeline.close()
    try:
        guard.wait()
    except BaseException:
        guard.returncode = 0  # it outlives this process for a moment; Popen would warn about an unfinished child
        raise


# ---- ports


def choose_ports(spec: ServerSpec, count: int) -> list[int]:
    """Return `count` ports: from the one in the spec on, or free ones.

    Raises LaunchError where this machine does not own the host address.
    """
    if spec.port:
        return [*following_ports(spec.port, count)]
    probes, ports = [], []
    # All ports are bound at the same time, so that no two are equal.
    for _ in range(count):
        probe = socket.socket(_family(spec.host))
        probes.append(probe)
        try:
            # Port 0 lets the kernel choose one that is free now; a random number could hit one in use.
            probe.bind((spec.host, 0))
        except OSError as error:
            raise LaunchError(f"cannot listen on {spec.host}: {error.strerror}; correct --host") from None
        ports.append(int(probe.getsockname()[1]))
    for probe in probes:
        probe.close()
    return ports


def following_ports(first: int, count: int) -> range:
    """The `count` ports from `first` on. Raises LaunchError where the last of them would be no port."""
    last = first + count - 1
    if last > MAX_PORT:
        raise LaunchError(
            f"--port {first}: {count} ports are needed, up to {last}, and there is none above {MAX_PORT}; give at most "
            f"{MAX_PORT - count + 1}"
        )
    return range(first, last + 1)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def refuse_taken_port(host: str, port: int) -> None:
    """Raise LaunchError if `port` is taken; the message names the program that holds it."""
    with socket.socket(_family(host)) as probe:
        # Servers set this option too: a port that only an ended connection occupies counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            owners = ", ".join(processes.describe(pid) for pid in sorted(processes.listeners(port) or ()))
            raise LaunchError(
                f"cannot listen on {host} port {port}: {error.strerror}{f', held by {owners}' if owners else ''}; "
                "stop that program or choose another --port"
            ) from None
