"""A real SGLang on the CPU, started by its launcher: replies, refusals, deaths, and that nothing of it stays."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server_launchers.supervisor import RunningServer
from tests.servers.conftest import engine_processes
from tests.servers.running import (
    RUN,
    assert_complete,
    engine,
    harness,
    health,
    kill,
    known,
    launched,
    named,
    title,
    wait_for_restart,
    wait_until,
)
from tests.servers.specs import ANSWER, THOUGHT, sglang_spec
from tests.servers.streams import ask, begin

KEY = "key-of-the-test"
SCHEDULER = "sglang::scheduler"


@pytest.fixture(scope="module")
def server(sglang: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One that thinks and wants a key."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGLANG_TEST_KEY", KEY)
        spec = sglang_spec(sglang, models, reasoning_parser="deepseek_r1", api_key_env="SGLANG_TEST_KEY")
        with launched(spec) as server:
            yield server


@pytest.fixture(scope="module")
def mortal(sglang: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One to kill: it is started again as often as the tests need."""
    spec = sglang_spec(sglang, models, restarts=9, name="mortal", reasoning_parser="deepseek_r1")
    with launched(spec) as server:
        yield server


def test_thinking_arrives_in_reasoning_content(server: RunningServer) -> None:
    reply = ask(server, key=KEY)
    assert (reply.text("reasoning_content"), reply.text("content")) == (THOUGHT, ANSWER)
    assert (reply.finish, reply.done, reply.broken) == (["stop"], True, None)
    assert reply.text("reasoning") == ""
    assert reply.events[-1]["choices"] == []
    assert [usage["completion_tokens"] for usage in reply.usage] == [15]
    assert reply.usage[0]["completion_tokens_details"]["reasoning_tokens"] == 6


def test_a_reply_cut_inside_its_thinking_says_length_and_has_no_content(server: RunningServer) -> None:
    reply = ask(server, key=KEY, max_tokens=3)
    assert reply.finish == ["length"]
    assert THOUGHT.startswith(reply.text("reasoning_content"))
    assert reply.text("content") == ""


def test_a_prompt_that_is_too_long_is_refused_without_an_error_object(server: RunningServer) -> None:
    reply = ask(server, "one two three " * 4000, key=KEY)
    assert reply.status == 400
    body = json.loads(reply.body)
    assert body["object"] == "error"
    assert "longer than the model's context length (8192 tokens)" in body["message"]


def test_any_model_name_is_taken_and_a_missing_key_is_not(server: RunningServer) -> None:
    assert ask(server, key=KEY, model="other").finish == ["stop"]
    assert ask(server).status == 401


def test_the_key_stands_in_no_command_line_state_file_or_log(server: RunningServer) -> None:
    state = known(server)
    everyone = named(server, "")
    assert not [pid for pid in everyone if KEY in title(pid)]
    assert KEY not in state.model_dump_json()
    assert KEY not in state.log.read_text()


def test_the_state_tells_the_version_and_the_processor(server: RunningServer) -> None:
    assert known(server).versions["sglang"] == "0.5.23"
    assert known(server).versions["devices"]


def test_a_run_of_the_harness_gets_every_key_once_with_thinking_apart(server: RunningServer, tmp_path: Path) -> None:
    done = harness(tmp_path, *RUN, "--base-url", server.base_urls[0], "--api-key-env", "SGLANG_TEST_KEY")
    assert done.code == 0, done.err
    assert_complete(tmp_path / "run", 20)


def test_a_killed_scheduler_cuts_streams_after_a_stall_and_the_server_comes_back(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal)
    kill(named(mortal, SCHEDULER)[0])
    reading.join()
    assert (stream.status, stream.finish, stream.errors, stream.done) == (200, [], [], False)
    assert stream.broken == "RemoteProtocolError"
    wait_for_restart(mortal, restarts + 1)
    assert ask(mortal).finish == ["stop"]


def test_a_killed_http_process_takes_its_scheduler_along_and_the_server_comes_back(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal)
    schedulers = named(mortal, "sglang::")
    assert len(schedulers) == 2
    kill(engine(mortal).pid)
    reading.join()
    assert (stream.finish, stream.broken) == ([], "RemoteProtocolError")
    wait_for_restart(mortal, restarts + 1)
    assert not set(schedulers) & set(engine_processes())


def test_told_to_end_it_finishes_what_it_is_saying_first(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal, tokens=1500)
    kill(engine(mortal).pid, signal.SIGTERM)
    reading.join()
    assert (stream.finish, stream.done, stream.broken) == (["length"], True, None)
    wait_for_restart(mortal, restarts + 1)


def test_stopping_does_not_wait_for_a_client_that_stays(sglang: Path, models: Path, private_state: Path) -> None:
    before = set(engine_processes())
    with launched(sglang_spec(sglang, models, stop_grace=3.0)) as server:
        stream, reading = begin(server, tokens=8000)
        told = len(stream.events)
        log = known(server).log
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun >= 3
        reading.join()
    # It went on talking between TERM and KILL.
    assert len(stream.events) > told + 10
    assert (stream.finish, stream.broken) == ([], "RemoteProtocolError")
    assert "still running after 3 s, KILL" in log.read_text()
    assert set(engine_processes()) <= before


def test_harness_serve_and_run_work_with_replicas_behind_the_router(
    sglang: Path, routers: Path, models: Path, private_state: Path, tmp_path: Path
) -> None:
    spec = sglang_spec(
        sglang, models, engine="sglang_router", dp=2, router_python=routers, reasoning_parser="deepseek_r1", restarts=1
    )
    with launched(spec) as server:
        assert [member.role for member in known(server).members] == ["engine", "engine", "router"]
        assert len(server.base_urls) == 1
        stream, reading = begin(server)
        other = begin(server)
        kill(named(server, SCHEDULER)[0])
        for thread in (reading, other[1]):
            thread.join()
        # The router takes the streams of a dead replica for ended; those of the other one go on.
        assert sorted((stream.finish, other[0].finish)) == [[], ["length"]]
        done = harness(tmp_path, *RUN, "--base-url", server.base_urls[0])
        assert done.code == 0, done.err
        assert_complete(tmp_path / "run", 20)
