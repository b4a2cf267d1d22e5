"""Waiting for a start: until every replica generated a token, or until one plain cause says that it will not.

Two sources are looked at in turn, every `POLL_SECONDS`: what the guard wrote of the processes, and what each address
answers. The first row that holds decides:

    what is seen                                            what follows
    a member has ended                                      failed: the cause from its log
    the guard has ended                                     failed: its own log is named
    health, model list and one token are right, and the     this replica is ready; the next address
      port belongs to a process of ours
    another model, or another program, answers              failed: another server is on the port
    a fatal line ends the log, and nothing came after it    failed: the engine hangs
      for `HANGING_SECONDS`
    the log has not grown for `--start-timeout`             failed: too slow
    anything else                                           wait

Time alone fails no start: weights may load for an hour, as long as the log of any member grows.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from server_launchers.deployment import Deployment
from server_launchers.engines import table
from server_launchers.errors import LOG_TAIL, LaunchError
from server_launchers.keeping import engine_log, processes, readiness, state
from server_launchers.keeping.progress import OnProgress, StartProgress
from server_launchers.keeping.state import MemberState, ServerState
from server_launchers.machine import accelerators
from server_launchers.spec import ServerSpec

POLL_SECONDS = 0.2
HANGING_SECONDS = 30.0
"""Seconds of silence behind a fatal error in the log after which a start has failed.

SGLang on a taken port, for example, neither serves nor ends.
"""
HANGING_LINES = 4
"""Number of lines at the end of the log in which a fatal error is looked for."""
ACKNOWLEDGE_SECONDS = 10.0
"""Seconds that the guard may take to record that its server is ready."""


def until_ready(
    spec: ServerSpec,
    deployment: Deployment,
    guard: subprocess.Popen[bytes],
    starting: ServerState,
    on_progress: OnProgress,
) -> str:
    """Wait until every replica is ready; return the name of the served model.

    Raises LaunchError once the start has failed.
    """
    model = table.client_name(spec)
    begun = last_growth = time.monotonic()
    sizes: list[int] = []
    # Addresses are checked one after the other: a token of the last replica is worth nothing while the first loads.
    waiting = list(deployment.base_urls)
    while waiting:
        now = state.read(state.path_of(starting.name)) or starting
        # The processes are looked at before the address: another program that answers there must not hide a dead
        # engine.
        if now.ended is not None:
            raise LaunchError(_failure(spec, *now.ended))
        if guard.poll() is not None:
            raise LaunchError(f"the process that watches the server ended; see {state.guard_log(starting.name)}")
        try:
            model = readiness.check(waiting[0], deployment.readiness, model, spec.api_key_env)
            # `readiness.check` would also accept an equal server of another user; whose port it is can be seen only now
            # that somebody listens.
            _check_owner(deployment, waiting[0], guard.pid)
            waiting.pop(0)
            continue
        except readiness.NotReady as error:
            why, answers = str(error), isinstance(error, readiness.NoCompletion)
        except readiness.Foreign as error:
            raise LaunchError(_unfit(deployment, waiting[0], guard.pid, error)) from None
        # Unequal, not larger: a rotated log gets smaller, and that is progress too. Lines about our requests are not.
        new_sizes = [_size(log) for log in starting.logs]
        if new_sizes != sizes:
            sizes = new_sizes
            last_growth = last_growth if answers else time.monotonic()
        lines = engine_log.tail(starting.log)
        last_line = lines[-1] if lines else ""
        on_progress(StartProgress(time.monotonic() - begun, engine_log.phase(lines) or why, last_line))

        silent = time.monotonic() - last_growth
        end_of_log = lines[-HANGING_LINES:]
        if silent > HANGING_SECONDS and engine_log.is_fatal(end_of_log):
            cause = engine_log.known_cause(end_of_log)
            raise LaunchError(f"{spec.engine} did not start, and does not end: {cause}{_tail_text(starting.log)}")
        if silent > spec.start_timeout:
            silence = "has answered without a completion" if answers else "is not ready and its log did not advance"
            limit = f"for {spec.start_timeout:g} s (--start-timeout)"
            raise LaunchError(f"{spec.engine} {silence} {limit}: {why}{_tail_text(starting.log)}")
        time.sleep(POLL_SECONDS)
    return model


def until_known(spec: ServerSpec, guard: subprocess.Popen[bytes], starting: ServerState, detach: bool) -> None:
    """Return when the guard has recorded that its server is ready. Raises LaunchError if the guard or the server ends.

    detach: the launcher ends next, so a guard that cannot write its state (full disk) is an error too; else this
    function returns after `ACKNOWLEDGE_SECONDS`.
    """
    deadline = time.monotonic() + ACKNOWLEDGE_SECONDS
    path = state.path_of(starting.name)
    while (now := state.read(path)) is None or now.status != "ready":
        if now is not None and now.status == "exited":
            raise LaunchError(_failure(spec, *(now.ended or (now.members[0], now.log))))
        if guard.poll() is not None:
            raise LaunchError(f"the process that watches the server ended; see {state.guard_log(starting.name)}")
        if time.monotonic() > deadline:
            if detach:
                raise LaunchError(
                    f"the process that watches the server cannot record in {path} that it is ready; is the disk full?"
                )
            return
        time.sleep(0.01)


def _check_owner(deployment: Deployment, url: str, guard_pid: int) -> bool:
    """Check that the port in `url` belongs to the guard or one of its descendants. Raises `readiness.Foreign`.

    Returns whether it could be checked.
    """
    port = int(url.rpartition(":")[2])
    # A container's processes are children of docker's daemon, not of the guard; `owns_port` is off for them.
    if not deployment.readiness.owns_port or not (owners := processes.listeners(port)):
        return False
    ours = {guard_pid, *processes.descendants(guard_pid)}
    if not owners & ours:
        raise readiness.Foreign(", ".join(processes.describe(pid) for pid in sorted(owners)))
    return True


def _unfit(deployment: Deployment, url: str, guard_pid: int, error: readiness.Foreign) -> str:
    """The sentence for a server that answers and cannot be used: another program, or our own with other settings.

    error: why it cannot be used.
    """
    try:
        is_ours = _check_owner(deployment, url, guard_pid)
    except readiness.Foreign:
        is_ours = False
    if is_ours:
        return f"the server that was started answers at {url}, but {error}: change its command, or the name asked for"
    return f"another server answers at {url}: {error}; choose another --port"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        # The log is created with the state, but may be moved to `.1` between two looks.
        return 0


def _failure(spec: ServerSpec, member: MemberState, log: Path) -> str:
    cause = engine_log.cause(log, member.exit_code)
    # Only for memory: nvidia-smi takes seconds, and other causes have nothing to do with holders.
    holders = accelerators.memory_holders() if "memory" in cause else []
    held = f"\ndevice memory is held by: {'; '.join(holders)}" if holders else ""
    return f"{spec.engine} did not start: {cause}{held}{_tail_text(log)}"


def _tail_text(log: Path) -> str:
    lines = engine_log.tail(log)[-engine_log.TAIL_LINES :]
    if not lines:
        return f" (empty log {log})"
    return "\n".join([f"\n{LOG_TAIL} {log}:", *(f"  {line}" for line in lines)])
