"""A real vLLM and a real SGLang on the CPU that are killed or stopped: how streams end, what comes back, what stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from server_launchers.lifecycle.launch import RunningServer
from server_launchers.spec import ServerSpec
from tests.servers.conftest import engine_processes
from tests.servers.running import engine, health, kill, known, launched, named, wait_for_restart, wait_until
from tests.servers.specs import sglang_spec, vllm_spec
from tests.servers.streams import ask, begin

SCHEDULER = "sglang::scheduler"


class Dies(NamedTuple):
    """How an engine dies. inner: the title of the process to kill. helpers: titles of what the first process leaves.

    done, broken: of a stream while the inner process dies; vLLM ends it as one that is complete, but for the reason.
    """

    spec: Callable[..., ServerSpec]
    inner: str
    helpers: tuple[str, ...]
    done: bool
    broken: str | None


ENGINES = {
    "vllm": Dies(vllm_spec, "VLLM::Worker", ("VLLM::Worker", "VLLM::EngineCore"), True, None),
    "sglang": Dies(sglang_spec, SCHEDULER, ("sglang::",), False, "RemoteProtocolError"),
}


@pytest.fixture(scope="module", params=ENGINES)
def dies(request: pytest.FixtureRequest) -> Dies:
    return ENGINES[request.param]


@pytest.fixture(scope="module")
def python(request: pytest.FixtureRequest, dies: Dies) -> Path:
    name = next(name for name, row in ENGINES.items() if row is dies)
    interpreter: Path = request.getfixturevalue(name)
    return interpreter


@pytest.fixture(scope="module")
def mortal(dies: Dies, python: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One to kill: it is started again as often as the tests need."""
    with launched(dies.spec(python, models, restarts=9, name="mortal", reasoning_parser="deepseek_r1")) as server:
        yield server


@pytest.fixture
def restarts(mortal: RunningServer) -> int:
    """How often it was started again, once it is well."""
    wait_until(lambda: health(mortal) == 200, "health")
    return engine(mortal).restarts


def test_a_killed_inner_process_ends_streams_and_restarts(mortal: RunningServer, dies: Dies, restarts: int) -> None:
    stream, reading = begin(mortal)
    api = engine(mortal).pid
    kill(named(mortal, dies.inner)[0])
    reading.join()
    assert (stream.status, stream.finish, stream.done, stream.broken) == (200, [], dies.done, dies.broken)
    assert [error["code"] for error in stream.errors] == ([500] if dies.done else [])
    # vLLM's API process answers for some seconds more, then ends by itself.
    wait_for_restart(mortal, restarts + 1)
    assert engine(mortal).pid != api
    assert ask(mortal).finish == ["stop"]


def test_a_killed_first_process_takes_the_others_and_restarts(mortal: RunningServer, dies: Dies, restarts: int) -> None:
    stream, reading = begin(mortal)
    others = [pid for title in dies.helpers for pid in named(mortal, title)]
    assert len(others) == 2
    kill(engine(mortal).pid)
    reading.join()
    assert (stream.finish, stream.done, stream.broken) == ([], False, "RemoteProtocolError")
    wait_for_restart(mortal, restarts + 1)
    assert not set(others) & set(engine_processes())


def test_stopping_during_a_stream_leaves_nothing(dies: Dies, python: Path, models: Path, private_state: Path) -> None:
    """TERM reaches SGLang's scheduler, which ends; its first process waits for its client until KILL."""
    before = set(engine_processes())
    with launched(dies.spec(python, models, stop_grace=3.0)) as server:
        stream, reading = begin(server)
        log, begun = known(server).log, time.monotonic()
        server.stop()
        reading.join()
        if dies is ENGINES["sglang"]:
            assert time.monotonic() - begun >= 3
            assert "still running after 3 s, sending SIGKILL" in log.read_text()
    # Which of the three comes is a race inside vLLM; none of them is a finished reply.
    assert set(stream.finish) <= {"abort"}
    assert stream.finish or stream.errors or stream.broken
    assert set(engine_processes()) <= before
