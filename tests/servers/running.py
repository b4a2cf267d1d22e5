"""What tests do to running engines: find their processes, wait for them, and run the harness against them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from server_launchers.lifecycle import launch
from server_launchers.lifecycle.launch import RunningServer
from server_launchers.lifecycle.servers import MemberState, ServerState
from server_launchers.machine import processes
from server_launchers.spec import ServerSpec
from tests.patience import until
from tests.servers.specs import ANSWER, THOUGHT
from tests.system.command import process

LIMIT_SECONDS = 900.0
"""A restart with imports of several minutes on a machine that does other things too."""


@contextmanager
def launched(spec: ServerSpec) -> Iterator[RunningServer]:
    """The server while the block runs; afterwards none of its processes is alive."""
    with launch.launch(spec) as server:
        yield server
        everyone = family(server) if server.state is not None else []
    assert [processes.describe(pid) for pid, started in everyone if processes.start_of(pid) == started] == []


def known(server: RunningServer) -> ServerState:
    """Its state file."""
    state = server.state
    assert state is not None
    return state


def engine(server: RunningServer, replica: int = 0) -> MemberState:
    """Its process number `replica`."""
    return known(server).members[replica]


def family(server: RunningServer) -> list[tuple[int, str]]:
    """Number and start of every living process of the server."""
    mains = [member.pid for member in known(server).members if member.pid is not None]
    living = {process for main in mains for process in (processes.process(main), *processes.descendants(main))}
    return [(process.pid, process.started) for process in living if process is not None]


def title(pid: int) -> str:
    """The command line, which engines overwrite with what a process does."""
    return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")


def named(server: RunningServer, text: str) -> list[int]:
    """Its processes whose title holds `text`."""
    return [pid for pid, _ in family(server) if text in title(pid)]


def kill(pid: int | None, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that must be there."""
    assert pid is not None
    os.kill(pid, number)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """As `until`, for what takes minutes."""
    until(condition, what, pause=0.1, seconds=LIMIT_SECONDS)


def health(server: RunningServer, replica: int = 0) -> int:
    """Status of the health page; 0 where nothing answers."""
    try:
        return httpx.get(f"{server.base_urls[replica]}/health", timeout=5, trust_env=False).status_code
    except httpx.HTTPError:
        return 0


def wait_for_restart(server: RunningServer, restarts: int, replica: int = 0) -> None:
    """Until the process was started again so often and is healthy."""
    wait_until(lambda: engine(server, replica).restarts == restarts, f"restart {restarts}")
    wait_until(lambda: health(server, replica) == 200, "health after a restart")


RUN = ("run", "demo:2", "--limit", "10", "--out", "run", "--no-canary")
"""A run against the scripted model, whose equal answers the harness would take for a fault."""


harness = partial(process, seconds=LIMIT_SECONDS)
"""Runs `harness WORDS` in a folder to its end."""


def samples(run: Path, benchmark: str = "demo") -> list[dict[str, Any]]:
    """The records of a run's journal."""
    return [json.loads(line) for line in (run / benchmark / "samples.jsonl").read_bytes().splitlines()]


def assert_complete(run: Path, n: int) -> None:
    """Every key once, every sample the script of the model, thinking apart from the answer."""
    stored = samples(run)
    assert len({(one["question_id"], one["sample_index"]) for one in stored}) == len(stored) == n
    assert {one["finish_reason"] for one in stored} == {"stop"}
    assert {one["reasoning"].strip() for one in stored} == {THOUGHT}
    assert {one["text"].strip() for one in stored} == {ANSWER.strip()}
    assert all(one["usage"]["completion_tokens"] > 10 for one in stored)
