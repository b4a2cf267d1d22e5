"""A real vLLM on the CPU, started by its launcher: what it answers and what it refuses."""

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
    health,
    known,
    launched,
    named,
)
from tests.servers.specs import ANSWER, CONTEXT, KEY, THOUGHT, TOO_LONG, vllm_spec
from tests.servers.streams import ask


@pytest.fixture(scope="module")
def server(vllm: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One that thinks, wants a key, and comes back when it dies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_TEST_KEY", KEY)
        spec = vllm_spec(vllm, models, reasoning_parser="deepseek-r1", api_key_env="VLLM_TEST_KEY", name="vllm")
        with launched(spec) as server:
            yield server


def test_thinking_arrives_in_reasoning_and_the_answer_in_content(server: RunningServer) -> None:
    reply = ask(server, key=KEY)
    assert (reply.text("reasoning"), reply.text("content")) == (THOUGHT, ANSWER)
    assert (reply.finish, reply.done, reply.broken) == (["stop"], True, None)
    assert reply.text("reasoning_content") == ""
    assert reply.events[-1]["choices"] == []
    assert [usage["completion_tokens"] for usage in reply.usage] == [15]


def test_a_reply_cut_inside_its_thinking_says_length_and_has_no_content(server: RunningServer) -> None:
    reply = ask(server, key=KEY, max_tokens=3)
    assert reply.finish == ["length"]
    assert THOUGHT.startswith(reply.text("reasoning"))
    assert reply.text("content") == ""


def test_a_prompt_that_is_too_long_is_refused_in_the_servers_words(server: RunningServer) -> None:
    reply = ask(server, TOO_LONG, key=KEY)
    assert reply.status == 400
    assert f"maximum context length is {CONTEXT} tokens" in reply.body


def test_an_unknown_model_and_a_missing_key_are_refused(server: RunningServer) -> None:
    assert ask(server, key=KEY, model="other").status == 404
    assert ask(server).status == 401
    assert health(server) == 200


def test_the_key_stands_in_no_command_line_state_file_or_log(server: RunningServer) -> None:
    state = known(server)
    texts = [repr(state), *(log.read_text() for log in state.logs)]
    assert not [text for text in texts if KEY in text]
    assert not named(server, KEY)


def test_the_state_tells_the_version_and_the_processor(server: RunningServer) -> None:
    versions = known(server).versions
    assert versions["vllm"] == "0.32.0+cpu"
    assert versions["devices"]


def test_a_run_of_the_harness_gets_every_key_once_with_thinking_apart(server: RunningServer, tmp_path: Path) -> None:
    done = harness(tmp_path, *RUN, "--base-url", server.base_urls[0], "--api-key-env", "VLLM_TEST_KEY")
    assert done.code == 0, done.err
    assert_complete(tmp_path / "run", 20)
    assert harness(tmp_path, "score", "run").code == 0


def test_a_prompt_that_is_too_long_is_told_and_the_run_owes_it(server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "long.jsonl").write_text(json.dumps({"question": TOO_LONG, "answer": "1"}))
    words = ("--data", "long.jsonl", "--question-key", "question", "--answer-key", "answer", "--out", "run")
    more = ("--base-url", server.base_urls[0], "--api-key-env", "VLLM_TEST_KEY", "--samples", "1")
    done = harness(tmp_path, "run", *words, *more, "--max-tokens", "100")
    assert done.code not in (0, None)
    assert "Traceback" not in done.err
    assert "context" in done.err
