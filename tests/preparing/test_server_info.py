"""The look at the servers before the first sample: one deadline for all of them, whatever they send; their keys; and
the warning of one that is started for everybody in the network.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import harness
from harness.client.facts.server_info import ServerInfo
from harness.core.errors import ServerError, UsageError
from harness.options.run import RunOptions
from harness.preparing import servers
from harness.preparing.server_start import launch_server
from harness.preparing.servers import discover
from harness.progress.events import Collecting
from harness.testing import FakeServer, Pause, Request, Step, scripted, serving
from server_launchers.spec import ServerSpec
from tests.patience import PATIENCE_SECONDS
from tests.pins.server import solving


def interim(_: Request) -> Iterable[Step]:
    while True:
        yield b"HTTP/1.1 102 Processing\r\n\r\n"
        yield Pause(0.05)


def a_header_now_and_then(_: Request) -> Iterable[Step]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X: y\r\n"
        yield Pause(0.05)


well = serving("", "m", "n")


@contextlib.contextmanager
def options(*answers: object) -> Iterator[RunOptions]:
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(FakeServer(answer)).base_url for answer in answers]  # type: ignore[arg-type]
        yield RunOptions(base_url=urls, model="m")


DEADLINES_SECONDS = (1.5, 20.0, 80.0)
"""Of a look: a longer one only where a busy machine was late with the answer that has an end."""


def look(monkeypatch: pytest.MonkeyPatch, *answers: object) -> tuple[ServerInfo, Collecting]:
    """At servers of which the last lists its models."""
    for seconds in DEADLINES_SECONDS:
        monkeypatch.setattr("harness.client.facts.server_info.DISCOVERY_S", seconds)
        watcher = Collecting()
        with options(*answers) as run_options, contextlib.suppress(ServerError):
            server_info = discover(servers.find(run_options), run_options, watcher)
            if server_info.each[-1].failure is None:
                return server_info, watcher
    pytest.fail("the server that answers was not taken")


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_servers_without_an_end_share_one_deadline_and_the_others_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    server_info, watcher = look(monkeypatch, *[interim, a_header_now_and_then] * 4, well)
    assert [one.failure is None for one in server_info.each] == [False] * 8 + [True]
    assert len(watcher.warnings) == 8


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_a_server_whose_own_pages_have_no_end_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[str] = []

    def answer(request: Request) -> Iterable[Step]:
        asked_for.append(request.path)
        return well(request) if request.path.endswith("/models") else interim(request)

    server_info, _ = look(monkeypatch, answer)
    assert server_info.model == "m"
    assert server_info.concurrency is None


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_unfinished_model_lists_are_explained_and_a_named_model_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.client.facts.server_info.DISCOVERY_S", 3.0)
    watcher = Collecting()
    with options(interim, interim) as run_options:
        server_info = discover(servers.find(run_options), run_options, watcher)
        assert [one.failure for one in server_info.each] == [None, None]
        assert all("did not finish its response" in said and "m is used anyway" in said for said in watcher.warnings)
        run_options = RunOptions(base_url=run_options.base_url)
        with pytest.raises(ServerError, match="did not finish its response"):
            discover(servers.find(run_options), run_options, Collecting())


def test_the_number_of_pages_does_not_grow_with_the_models_that_are_listed() -> None:
    def counted(n: int) -> int:
        with FakeServer(serving("", "m", *(f"m{i}" for i in range(n)))) as server:
            run_options = RunOptions(base_url=[server.base_url], model="m")
            discover(servers.find(run_options), run_options, Collecting())
            return len(server.requests)

    assert counted(2) == counted(2000)


KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize("text", [KEY, f"\ufeff{KEY}\r\n", f" {KEY}\u200b"])
def test_the_ends_of_a_key_lose_invisible_characters(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MY_KEY", text)
    key = servers._from_environment("MY_KEY")
    assert key is not None
    assert key.reveal() == KEY


@pytest.mark.parametrize(("odd", "named"), [("\u2014", r"U\+2014"), ("\u200b", r"U\+200B"), ("\x07", r"U\+0007")])
def test_what_no_header_can_carry_is_named(monkeypatch: pytest.MonkeyPatch, odd: str, named: str) -> None:
    monkeypatch.setenv("MY_KEY", f"sk-012345{odd}6789abcdef")
    with pytest.raises(UsageError, match=f"the environment variable MY_KEY contains {named}") as refused:
        servers._from_environment("MY_KEY")
    assert "012345" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "key", "warned"),
    [("0.0.0.0", None, True), ("::", None, True), ("0.0.0.0", "KEY", False), ("127.0.0.1", None, False)],
)
def test_a_server_without_a_key_on_every_network_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, key: str | None, warned: bool
) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KEY", "sk-0123456789")
    monkeypatch.setenv("PATH", "")
    listener = Collecting()
    spec = ServerSpec(engine="llama_cpp", model=str(tmp_path / "none.gguf"), host=host, api_key_env=key)
    with pytest.raises(ServerError):
        launch_server(spec, listener)
    assert ["anyone on the network" in one for one in listener.warnings] == ([True] if warned else [])


# -- settings of each API ----------------------------------------------------------------------------------------------


ANSWER = r"As of 2026-10-21 it is \boxed{4}"
NAMED_KEY = {"api_key_env": "KEY_OF_A_TEST"}


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
    assert (identity["api"], identity["seed"]) == (api, None)
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
    _, settings, request = asked(tmp_path, **NAMED_KEY, **options)
    assert {name: request.json.get(name) for name in fields} == fields
    assert [name for name in settings["filled_by_server"] if name in ("temperature", "top_p")] == left


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"api": "responses", "top_k": 20}, "top_k: this server's api=responses does not accept this option: omit it"),
    ({"api": "responses", "seed": 3}, "seed: this server's api=responses does not accept this option: omit it"),
    ({"api": "responses", "preset": "qwen3"}, "omit it with `drop=min_p`"),
    ({"api": "responses", "thinking": "off"}, "does not accept chat template arguments"),
    ({"api": "responses", "extra_body": {"store": True}}, "replies are not stored"),
    ({"api": "messages", "drop": "max_tokens"}, "`api=messages` needs `max_tokens`"),
    ({"api": "messages", "thinking": "off"}, "cannot send chat template arguments"),
    ({"api": "messages", "header": {"Anthropic-Version": "sk-ant-api03-AbCd0123456789xyz"}}, "looks like a key"),
    ({"api": "messages", "batch": True}, "batches are not supported with `api=messages`"),
    (
        {"api": "messages", "provider": "anthropic", "model": "claude-opus-5", "temperature": 1.0, **NAMED_KEY},
        "claude-opus-5 does not accept this option",
    ),
    (
        {"api": "responses", "provider": "openai", "model": "gpt-5", "thinking_tokens": 99, **NAMED_KEY},
        "no known request field",
    ),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_settings_the_api_cannot_take_are_refused_before_any_request(
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
