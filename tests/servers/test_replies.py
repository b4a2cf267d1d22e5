"""A real vLLM and a real SGLang on the CPU, started by their launchers: what they answer and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from server_launchers.lifecycle.launch import RunningServer
from server_launchers.spec import ServerSpec
from tests.servers.running import RUN, assert_complete, harness, health, known, launched, named, samples
from tests.servers.specs import ANSWER, CONTEXT, KEY, THOUGHT, TOO_LONG, sglang_spec, vllm_spec
from tests.servers.streams import ask


class Says(NamedTuple):
    """What differs. thinking: the field of the thinking, not `other`. other_model: the status for an unknown model."""

    spec: Callable[..., ServerSpec]
    version: str
    thinking: str
    other: str
    too_long: str
    other_model: int


TOKENS = f"({CONTEXT} tokens)"
ENGINES = {
    "vllm": Says(
        vllm_spec, "0.32.0+cpu", "reasoning", "reasoning_content", f"maximum context length is {CONTEXT} tokens", 404
    ),
    "sglang": Says(
        sglang_spec, "0.5.23", "reasoning_content", "reasoning", f"longer than the model's context length {TOKENS}", 200
    ),
}

COUNTED = ("prompt", "completion")


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, engine: str, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One that thinks and wants a key."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SERVER_TEST_KEY", KEY)
        python = request.getfixturevalue(engine)
        spec = ENGINES[engine].spec(python, models, reasoning_parser="deepseek_r1", api_key_env="SERVER_TEST_KEY")
        with launched(spec) as server:
            yield server


def test_thinking_arrives_apart_from_the_answer(server: RunningServer, engine: str) -> None:
    says, reply = ENGINES[engine], ask(server, key=KEY)
    assert (reply.text(says.thinking), reply.text("content")) == (THOUGHT, ANSWER)
    assert (reply.finish, reply.done, reply.broken) == (["stop"], True, None)
    assert reply.text(says.other) == ""
    assert reply.events[-1]["choices"] == []
    assert [usage["completion_tokens"] for usage in reply.usage] == [15]


def test_a_reply_cut_inside_its_thinking_says_length_and_has_no_content(server: RunningServer, engine: str) -> None:
    reply = ask(server, key=KEY, max_tokens=3)
    assert reply.finish == ["length"]
    assert THOUGHT.startswith(reply.text(ENGINES[engine].thinking))
    assert reply.text("content") == ""


def test_what_a_server_refuses_is_said_in_its_words(server: RunningServer, engine: str) -> None:
    reply = ask(server, TOO_LONG, key=KEY)
    assert reply.status == 400
    assert ENGINES[engine].too_long in reply.body
    assert ask(server, key=KEY, model="other").status == ENGINES[engine].other_model
    assert ask(server).status == 401
    assert health(server) == 200


def test_the_state_has_the_version_and_no_key(server: RunningServer, engine: str) -> None:
    state = known(server)
    assert state.versions[engine] == ENGINES[engine].version
    assert state.versions["devices"]
    assert not [text for text in (repr(state), *(log.read_text() for log in state.logs)) if KEY in text]
    assert not named(server, KEY)


def test_a_run_gets_every_key_once_and_owes_a_prompt_that_is_too_long(server: RunningServer, tmp_path: Path) -> None:
    address = ("--base-url", server.base_urls[0], "--api-key-env", "SERVER_TEST_KEY")
    done = harness(tmp_path, *RUN, *address)
    assert done.code == 0, done.err
    assert_complete(tmp_path / "run", 20)
    assert harness(tmp_path, "score", "run").code == 0
    (tmp_path / "long.jsonl").write_text(json.dumps({"question": TOO_LONG, "answer": "1"}))
    long = harness(
        tmp_path, "run", "--data", "long.jsonl", "--out", "long", *address, "--samples", "1", "--max-tokens", "100"
    )
    assert long.code != 0
    assert "context" in long.err


def test_each_api_brings_the_same_texts_and_counts(server: RunningServer, tmp_path: Path) -> None:
    address = ("--base-url", server.base_urls[0], "--api-key-env", "SERVER_TEST_KEY", "--temperature", "0")
    said = {}
    for api in ("chat", "responses", "messages"):
        done = harness(tmp_path, "run", "demo:1", "--limit", "4", "--no-canary", "--out", api, "--api", api, *address)
        assert done.code == 0, done.err
        said[api] = {
            one["question_id"]: (one["reasoning"], one["text"], *(one["usage"][f"{of}_tokens"] for of in COUNTED))
            for one in samples(tmp_path / api)
        }
    assert len(said["chat"]) == 4
    assert said["responses"] == said["messages"] == said["chat"]
