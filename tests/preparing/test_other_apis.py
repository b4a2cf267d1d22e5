"""What a run sends by each API, what it leaves to the server, and what it refuses before its first request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

import harness
from harness.core.errors import UsageError
from harness.testing import FakeServer, Request, scripted
from tests.pins.server import solving

ANSWER = r"As of 2026-10-21 it is \boxed{4}"
KEY = {"api_key_env": "KEY_OF_A_TEST"}


def asked(folder: Path, **options: Any) -> tuple[dict[str, Any], dict[str, Any], Request]:
    """(identity, other settings, first request) of a run of one question."""
    with FakeServer(scripted(ANSWER, model=options.get("model", "test-model"))) as server:
        named: dict[str, Any] = {"base_url": server.base_url, "out": folder / "run", "canary": False}
        harness.run("demo:1", limit=1, **named, **options)
        request = next(each for each in server.requests if each.method == "POST")
    record = json.loads((folder / "run" / "manifest.json").read_text("utf-8"))["benchmarks"]["demo"]
    return record["identity"], record["settings"], request


@pytest.mark.parametrize("transport", ["http", "openai"])
@pytest.mark.parametrize("api", ["responses", "messages"])
def test_a_run_by_another_api(tmp_path: Path, api: str, transport: str) -> None:
    identity, settings, request = asked(tmp_path, api=api, transport=transport, system_prompt="Be brief.")
    body = request.json
    system = {"responses": "instructions", "messages": "system"}[api]
    assert request.path == f"/v1/{api}"
    assert body[system] == "Be brief."
    assert {"seed", "top_k", "stream_options"}.isdisjoint(body)
    assert (body.get("store"), body.get("max_output_tokens"), body.get("max_tokens")) == (
        (False, 64, None) if api == "responses" else (None, None, 64)
    )
    version = {} if api == "responses" else {"anthropic-version": "2023-06-01"}
    assert identity.get("api_headers", {}) == version
    assert version.items() <= request.headers.items()
    assert (identity["api"], identity["seed"], settings["salvage"]) == (api, None, "off")
    assert settings["deadlines"]["idle"] == 600
    sample = json.loads(next(tmp_path.rglob("samples.jsonl")).read_text("utf-8").splitlines()[0])
    assert (sample["text"], sample["seed"]) == (ANSWER, None)


SENT: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    # options, fields of the body (None: not sent), what is left to the server besides top_k, min_p and the penalty
    ({"provider": "openai", "model": "gpt-5.4", "api": "responses", "thinking": "high"},
     {"reasoning": {"effort": "high"}, "temperature": None, "top_p": None}, ["temperature", "top_p"]),
    ({"provider": "openai", "model": "gpt-5.4", "api": "responses", "thinking": "off", "temperature": 0.5},
     {"reasoning": {"effort": "none"}, "temperature": 0.5}, []),
    ({"provider": "openai", "model": "gpt-5", "api": "responses", "thinking": "low",
      "extra_body": {"reasoning": {"summary": "auto"}}},
     {"reasoning": {"effort": "low", "summary": "auto"}}, ["temperature", "top_p"]),
    ({"provider": "deepseek", "model": "deepseek-flash", "api": "responses", "thinking": "low"},
     {"reasoning": {"effort": "low"}, "thinking": None, "reasoning_effort": None}, []),
    ({"provider": "anthropic", "model": "claude-opus-4-8", "api": "messages", "thinking": "max"},
     {"output_config": {"effort": "max"}, "temperature": None, "top_p": None}, ["temperature", "top_p"]),
    ({"provider": "anthropic", "model": "claude-sonnet-4-6", "api": "messages", "thinking_tokens": 2000},
     {"thinking": {"type": "enabled", "budget_tokens": 2000}, "temperature": 0.6, "top_p": None}, ["top_p"]),
    ({"provider": "anthropic", "model": "claude-sonnet-4-6", "api": "messages", "top_p": 0.9},
     {"temperature": None, "top_p": 0.9}, ["temperature"]),
    ({"provider": "anthropic", "model": "claude-opus-4-20250514", "api": "messages", "thinking": "on"},
     {"thinking": {"type": "adaptive"}, "temperature": 0.6, "top_p": 0.95}, []),
    ({"provider": "zai", "model": "glm-5.2", "api": "messages", "thinking": "high"},
     {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}, []),
    ({"provider": "moonshot", "model": "kimi-k3", "api": "messages", "thinking": "low"},
     {"output_config": {"effort": "low"}, "thinking": None}, []),
    ({"api": "messages", "top_k": 20, "stop": ["END"]}, {"top_k": 20, "stop_sequences": ["END"], "stop": None}, []),
    ({"provider": "deepseek", "model": "deepseek-flash", "api": "messages", "thinking": "off"},
     {"thinking": {"type": "disabled"}}, []),
]  # fmt: skip


@pytest.mark.parametrize(("options", "fields", "left"), SENT)
def test_what_an_api_and_a_model_take_is_sent_and_the_rest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], fields: dict[str, Any], left: list[str]
) -> None:
    monkeypatch.setenv("KEY_OF_A_TEST", "sk-of-a-test-0123456789")
    _, settings, request = asked(tmp_path, fingerprint=False, **KEY, **options)
    assert {name: request.json.get(name) for name in fields} == fields
    assert [name for name in settings["filled_by_server"] if name in ("temperature", "top_p")] == left


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"api": "responses", "top_k": 20}, "top_k: this server's api=responses does not accept this option: omit it"),
    ({"api": "responses", "seed": 3}, "seed: this server's api=responses does not accept this option: omit it"),
    ({"api": "responses", "preset": "qwen3"}, "omit it with `drop` (--drop min_p)"),
    ({"api": "responses", "thinking": "off"}, "does not accept chat template arguments"),
    ({"api": "responses", "extra_body": {"store": True}}, "replies are not stored"),
    ({"api": "messages", "drop": "max_tokens"}, "api=messages needs max_tokens"),
    ({"api": "messages", "thinking": "off"}, "cannot send chat template arguments"),
    ({"api": "messages", "header": {"Anthropic-Version": "sk-ant-api03-AbCd0123456789xyz"}}, "looks like a key"),
    ({"api": "messages", "batch": True}, "batches are not supported with api=messages"),
    (
        {"api": "messages", "provider": "anthropic", "model": "claude-opus-5", "temperature": 1.0, **KEY},
        "claude-opus-5 does not accept this option",
    ),
    (
        {"api": "responses", "provider": "openai", "model": "gpt-5", "thinking_tokens": 99, **KEY},
        "no known request field",
    ),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_what_the_user_gave_and_is_not_taken_is_refused_before_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: str
) -> None:
    monkeypatch.setenv("KEY_OF_A_TEST", "sk-of-a-test-0123456789")
    with FakeServer(scripted(ANSWER, model=options.get("model", "test-model"))) as server:
        with pytest.raises(UsageError) as refusal:
            harness.run("demo:1", limit=1, base_url=server.base_url, out=tmp_path / "run", **options)
        assert [each for each in server.requests if each.method == "POST"] == []
    assert words in str(refusal.value)
    assert "AbCd0123" not in str(refusal.value)


def test_another_version_of_messages_is_sent_and_recorded(tmp_path: Path) -> None:
    version = {"anthropic-version": "2026-10-21"}
    identity, _, request = asked(tmp_path, api="messages", header={"Anthropic-Version": "2026-10-21"})
    assert identity["api_headers"] == version
    assert version.items() <= request.headers.items()
    sample = json.loads(next(tmp_path.rglob("samples.jsonl")).read_text("utf-8").splitlines()[0])
    assert sample["text"] == ANSWER, "a version is no key that a reply may not repeat"


def test_a_prompt_that_an_api_cannot_carry_is_refused(tmp_path: Path) -> None:
    turns = [{"role": role, "content": "x"} for role in ("user", "system", "user")]
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": "q", "prompt": turns, "answer": "4"}), encoding="utf-8")
    rows: dict[str, Any] = {"data": tmp_path / "q.jsonl", "id_key": "id", "question_key": "prompt"}
    with FakeServer(scripted(ANSWER)) as server:
        with pytest.raises(UsageError, match="a system message that is not first"):
            harness.run(base_url=server.base_url, api="messages", out=tmp_path / "a", **rows)
        harness.run(base_url=server.base_url, api="responses", out=tmp_path / "b", canary=False, **rows)
        items = server.requests[-1].json["input"]
    assert [item["role"] for item in items] == ["user", "system", "user"]


def test_two_runs_that_differ_by_their_api_alone_are_compared_as_such(tmp_path: Path) -> None:
    with FakeServer(solving(60, "vllm")) as server:
        apis: tuple[Literal["chat", "messages"], ...] = ("chat", "messages")
        for api in apis:
            out = tmp_path / api
            harness.run("demo:1", limit=8, base_url=server.base_url, model="pinned", api=api, out=out, canary=False)
            harness.score(out, workers=1)
    (compared,) = harness.compare([tmp_path / "chat", tmp_path / "messages"])
    assert [each for each in compared.decision.warnings if "differ" in each] == [
        "the runs differ only in their API: the difference and its intervals show the effect of api=messages compared "
        "with api=chat"
    ]


def test_a_finished_run_needs_no_server_to_know_what_its_servers_take(tmp_path: Path) -> None:
    options: dict[str, Any] = {"api": "responses", "out": tmp_path / "run", "model": "pinned", "canary": False}
    with FakeServer(solving(60, "vllm")) as server:
        harness.run("demo:1", limit=1, base_url=server.base_url, **options)
        assert "seed" in server.requests[-1].json
    harness.run("demo:1", limit=1, base_url=server.base_url, **options)
