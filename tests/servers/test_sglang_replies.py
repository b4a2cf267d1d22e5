"""A real SGLang on the CPU, started by its launcher: what it answers and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from server_launchers.keeping.supervisor import RunningServer
from tests.servers.running import (
    RUN,
    assert_complete,
    harness,
    known,
    launched,
    named,
    title,
)
from tests.servers.specs import ANSWER, CONTEXT, KEY, THOUGHT, TOO_LONG, sglang_spec
from tests.servers.streams import ask


@pytest.fixture(scope="module")
def server(sglang: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One that thinks and wants a key."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGLANG_TEST_KEY", KEY)
        spec = sglang_spec(sglang, models, reasoning_parser="deepseek_r1", api_key_env="SGLANG_TEST_KEY")
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
    reply = ask(server, TOO_LONG, key=KEY)
    assert reply.status == 400
    body = json.loads(reply.body)
    assert body["object"] == "error"
    assert f"longer than the model's context length ({CONTEXT} tokens)" in body["message"]


def test_any_model_name_is_taken_and_a_missing_key_is_not(server: RunningServer) -> None:
    assert ask(server, key=KEY, model="other").finish == ["stop"]
    assert ask(server).status == 401


def test_the_key_stands_in_no_command_line_state_file_or_log(server: RunningServer) -> None:
    state = known(server)
    everyone = named(server, "")
    assert not [pid for pid in everyone if KEY in title(pid)]
    assert KEY not in repr(state)
    assert KEY not in state.log.read_text()


def test_the_state_tells_the_version_and_the_processor(server: RunningServer) -> None:
    assert known(server).versions["sglang"] == "0.5.23"
    assert known(server).versions["devices"]


def test_a_run_of_the_harness_gets_every_key_once_with_thinking_apart(server: RunningServer, tmp_path: Path) -> None:
    done = harness(tmp_path, *RUN, "--base-url", server.base_urls[0], "--api-key-env", "SGLANG_TEST_KEY")
    assert done.code == 0, done.err
    assert_complete(tmp_path / "run", 20)
