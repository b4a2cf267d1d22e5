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

import os
import ssl
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from harness.core.inert import visible
from server_launchers.deployment import Deployment, Readiness
from server_launchers.engines import table
from server_launchers.errors import LOG_TAIL, LaunchError
from server_launchers.keeping import engine_log, processes, servers
from server_launchers.keeping.servers import MemberState, ServerState
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


BEAT_SECONDS = 15.0
"""Seconds between two lines of output while the phase stays the same."""


@dataclass(frozen=True)
class StartProgress:
    """The progress of a start."""

    seconds: float
    """Seconds since the start."""
    phase: str
    """The work of the engine, by its log; else the event that the start is waiting for."""
    line: str
    """The last line of the log, safe to print."""


OnProgress = Callable[[StartProgress], None]


class Heartbeat:
    """Prints a line when the phase changes, and one every `BEAT_SECONDS` while it stays."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._phase = ""
        self._next = 0.0

    def __call__(self, progress: StartProgress) -> None:
        if progress.phase != self._phase or progress.seconds >= self._next:
            self._phase = progress.phase
            self._next = progress.seconds + BEAT_SECONDS
            self._say(f"{progress.seconds:5.0f} s  {progress.phase}")


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
        now = servers.read(servers.path_of(starting.name)) or starting
        # The processes are looked at before the address: another program that answers there must not hide a dead
        # engine.
        if now.ended is not None:
            raise LaunchError(_failure(spec, *now.ended))
        if guard.poll() is not None:
            raise LaunchError(f"the process that watches the server ended; see {servers.guard_log(starting.name)}")
        try:
            model = check_ready(waiting[0], deployment.readiness, model, spec.api_key_env)
            # `check_ready` would also accept an equal server of another user; whose port it is can be seen only now
            # that somebody listens.
            _check_owner(deployment, waiting[0], guard.pid)
            waiting.pop(0)
            continue
        except NotReady as error:
            why, answers = str(error), isinstance(error, NoCompletion)
        except Foreign as error:
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
    path = servers.path_of(starting.name)
    while (now := servers.read(path)) is None or now.status != "ready":
        if now is not None and now.status == "exited":
            raise LaunchError(_failure(spec, *(now.ended or (now.members[0], now.log))))
        if guard.poll() is not None:
            raise LaunchError(f"the process that watches the server ended; see {servers.guard_log(starting.name)}")
        if time.monotonic() > deadline:
            if detach:
                raise LaunchError(
                    f"the process that watches the server cannot record in {path} that it is ready; is the disk full?"
                )
            return
        time.sleep(0.01)


def _check_owner(deployment: Deployment, url: str, guard_pid: int) -> bool:
    """Check that the port in `url` belongs to the guard or one of its descendants. Raises `Foreign`.

    Returns whether it could be checked.
    """
    port = int(url.rpartition(":")[2])
    # A container's processes are children of docker's daemon, not of the guard; `owns_port` is off for them.
    if not deployment.readiness.owns_port or not (owners := processes.listeners(port)):
        return False
    ours = {guard_pid, *processes.descendants(guard_pid)}
    if not owners & ours:
        raise Foreign(", ".join(processes.describe(pid) for pid in sorted(owners)))
    return True


def _unfit(deployment: Deployment, url: str, guard_pid: int, error: Foreign) -> str:
    """The sentence for a server that answers and cannot be used: another program, or our own with other settings.

    error: why it cannot be used.
    """
    try:
        is_ours = _check_owner(deployment, url, guard_pid)
    except Foreign:
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


# ---- one look at a server

PAGE_SECONDS = 5.0
"""Seconds that the health page and the model list may take, each."""
_LOADING = 503
TOKEN_SECONDS = 120.0
"""Seconds that the first token may take; it may wait for kernels to be compiled."""

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""An empty set of certificates for plain http; loading the system's at every look would take longer than the page."""


class NotReady(Exception):
    """The server does not answer yet; the text says what is missing."""


class NoCompletion(NotReady):
    """The server answers a first request with something else than a completion, and does not say that it still loads
    (503). Each such request may add lines to its log, so that a growing log is no progress then.
    """


class Foreign(Exception):
    """Something answers that cannot be the server that we started."""


def check_ready(base_url: str, readiness: Readiness, model: str, api_key_env: str | None) -> str:
    """Look once whether the server at `base_url` is ready, and return its model's name; else raise NotReady or Foreign.

    model: the expected name; if empty, the first name that the server lists counts. readiness: the signs that a server
    of this engine is ready. api_key_env: the environment variable with the key.
    """
    key = os.environ.get(api_key_env, "") if api_key_env else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # Proxies from the environment are for other hosts, not for a server that we started.
    verify = NO_CERTIFICATES if base_url.startswith("http://") else True
    with httpx.Client(
        base_url=base_url, headers=headers, timeout=PAGE_SECONDS, verify=verify, trust_env=False
    ) as client:
        try:
            if readiness.health_path is not None:
                answer = client.get(readiness.health_path)
                if answer.status_code != 200:
                    raise NotReady(f"{readiness.health_path} answers {answer.status_code}")
            if readiness.lists_models or not model:
                model = _check_listed(client, model)
            _check_token(client, model)
        except httpx.HTTPError as error:
            raise NotReady(_why(error)) from None
    return model


def _check_listed(client: httpx.Client, model: str) -> str:
    """The name under which the server lists the model (if `model` is empty, the first name in the list).

    Raises NotReady, or Foreign for a server that is not ours.
    """
    answer = client.get("/v1/models")
    # A server of ours would know the key: another program has taken the port.
    if answer.status_code == 401:
        raise Foreign("it refuses our key (401)")
    if answer.status_code != 200:
        raise NotReady(f"/v1/models answers {answer.status_code}")
    try:
        names = [str(entry["id"]) for entry in answer.json()["data"]]
    # A list of another form comes from another program, and waiting would not change it.
    except (ValueError, KeyError, TypeError):
        raise Foreign("its /v1/models is not an OpenAI-compatible list") from None
    if not model and names:
        return names[0]
    if model not in names:
        listed = ", ".join(visible(name, 80) for name in names[:5]) or "no model"
        raise Foreign(f"it serves {listed}, not {model}")
    return model


def _check_token(client: httpx.Client, model: str) -> None:
    """Generate one token by a chat request; by completions where the model has no chat template."""
    body: dict[str, Any] = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
    answer = client.post("/v1/chat/completions", json=body, timeout=TOKEN_SECONDS)
    # A base model has no chat template: vLLM answers 400 then, servers without a chat page 404.
    if answer.status_code in (400, 404):
        body = {"model": model, "max_tokens": 1, "prompt": "Hi"}
        answer = client.post("/v1/completions", json=body, timeout=TOKEN_SECONDS)
    text = visible(answer.text.strip(), 200)
    if answer.status_code != 200:
        kind = NotReady if answer.status_code == _LOADING else NoCompletion
        raise kind(f"a first request answers {answer.status_code}: {text}")
    try:
        answer.json()["choices"][0]
    except (ValueError, KeyError, IndexError, TypeError):
        form = visible(answer.headers.get("content-type", "no content type"), 80)
        raise NoCompletion(
            f"a first request (POST {answer.request.url.path} without `stream`) gets no completion in JSON, but "
            f"{form}: {text}"
        ) from None


def _why(error: httpx.HTTPError) -> str:
    # A refused connection is the usual state for minutes and gets words; the rest is named by its class.
    return "it does not listen yet" if isinstance(error, httpx.ConnectError) else type(error).__name__
