"""Which model was measured: what servers tell goes into the manifest, and two models under one name are not mixed."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import harness
from harness.core.errors import StoreError
from harness.generation.network import admission
from harness.testing import FakeServer, Request, Step, completion, http

KEY = "sk-0123456789abcdef"


class Engine:
    """A server of vLLM's kind: one listed model with its root, and pages of its own."""

    def __init__(self, root: str, pages: dict[str, Any] | None = None, **entry: Any) -> None:
        self.entry = {"id": "m", "owned_by": "vllm", "root": root, "parent": None, "max_model_len": 40960, **entry}
        self.pages = {"/version": {"version": "0.33.0"}, **(pages or {})}

    def __call__(self, request: Request) -> Iterator[Step]:
        path = urlsplit(request.path).path
        if path.endswith("/models"):
            yield http(200, {"data": [self.entry]}, server="uvicorn")
        elif request.method == "POST":
            yield from completion(r"so \boxed{2}", tokens=5)
        else:
            page = self.pages.get(path)
            yield http(200, page) if page is not None else http(404, {})


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of three questions in one folder; samples grow with each call, so that something is owed."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(3)))

    def run(*urls: str, samples: int = 1, **more: Any) -> harness.Run:
        return harness.run(
            data=path, question_key="problem", answer_key="answer", base_url=urls, samples=samples, canary=False,
            out=tmp_path / "run", **more,
        )  # fmt: skip

    return run


def manifest(run: harness.Run) -> dict[str, Any]:
    return dict(json.loads((run.path / "manifest.json").read_bytes()))


def told(run: harness.Run) -> list[dict[str, Any]]:
    return list(manifest(run)["provenance"]["servers"].values())


def test_another_root_under_the_same_name_is_refused_and_nothing_is_lost(ask: Any, tmp_path: Path) -> None:
    with FakeServer(Engine("org/model")) as first, FakeServer(Engine("org/model-int4")) as other:
        ask(first.base_url)
        before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.json*") if path.name != "log.jsonl"}
        with pytest.raises(StoreError) as refused:
            ask(other.base_url, samples=2)
        assert f'{other.base_url}: root was "org/model", now "org/model-int4"' in str(refused.value)
        assert "accept_server_change" in str(refused.value)
        assert not [request for request in other.requests if request.method == "POST"]
        assert {path: path.read_bytes() for path in before} == before


def test_what_the_user_accepts_goes_on_and_is_recorded(ask: Any) -> None:
    with FakeServer(Engine("a")) as first, FakeServer(Engine("b")) as other, FakeServer(Engine("c")) as third:
        ask(first.base_url)
        run = ask(other.base_url, samples=2, accept_server_change=True)
        (accepted,) = manifest(run)["provenance"]["sessions"][-1]["accepted"]
        assert 'root was "a", now "b"' in accepted
        assert any("another model continues the run" in warning for warning in run.outcome.warnings)
        assert ask(first.base_url, other.base_url, samples=3).outcome.complete
        with pytest.raises(StoreError, match='root was "b", now "c"'):
            ask(third.base_url, samples=4)


@pytest.mark.parametrize(
    ("field", "before", "now"),
    [
        ("quantization", None, "fp8"),
        ("chat_template", None, "{{ messages }}"),
        ("reasoning_parser", "qwen3", "deepseek-r1"),
        ("sampling_defaults", "openai", "model"),
        ("kv_cache_dtype", "auto", "fp8_e5m2"),
    ],
)
def test_what_changes_the_distribution_is_refused(ask: Any, field: str, before: Any, now: Any) -> None:
    def sglang(value: Any) -> Engine:
        info = {"version": "0.5.23", "context_length": 40960, field: value}
        return Engine("m", {"/get_model_info": {"model_path": "m"}, "/get_server_info": info}, owned_by="sglang")

    with FakeServer(sglang(before)) as first, FakeServer(sglang(now)) as other:
        ask(first.base_url)
        with pytest.raises(StoreError, match=json.dumps(now).replace("{", r"\{")):
            ask(other.base_url, samples=2)


def test_another_version_or_context_only_warns(ask: Any) -> None:
    newer = Engine("m", {"/version": {"version": "0.34.0"}}, max_model_len=50000)
    with FakeServer(Engine("m")) as first, FakeServer(newer) as other:
        ask(first.base_url)
        run = ask(other.base_url, samples=2)
    assert run.outcome.complete
    warned = " ".join(run.outcome.warnings)
    assert 'version was "0.33.0", now "0.34.0"' in warned
    assert "context was 40960, now 50000" in warned
    assert len(told(run)) == 2


def test_two_models_among_the_endpoints_of_one_run_are_refused(ask: Any) -> None:
    with FakeServer(Engine("a")) as one, FakeServer(Engine("b")) as other, FakeServer(Engine("a")) as twin:
        with pytest.raises(StoreError, match='root was "a", now "b"'):
            ask(one.base_url, other.base_url)
        assert ask(one.base_url, twin.base_url).outcome.complete


def test_a_run_without_provenance_takes_any_server(ask: Any, tmp_path: Path) -> None:
    with FakeServer(Engine("a")) as first, FakeServer(Engine("b")) as other:
        run = ask(first.base_url)
        path = run.path / "manifest.json"
        old = json.loads(path.read_bytes())
        del old["provenance"]
        path.write_text(json.dumps(old))
        run = ask(other.base_url, samples=2)
    assert run.outcome.complete
    assert [server["model"]["root"] for server in told(run)] == ["b"]


def test_what_a_hostile_server_tells_is_bounded_and_holds_no_key(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    nested: Any = "x"
    for _ in range(400):
        nested = {"root": nested}
    hostile = Engine(
        f"key {KEY}",
        {"/version": {"version": ["v" * 10**6]}, "/server_info": {"vllm_config": {"model_config": nested}}},
        parent={"api_key": "hidden?", "note": "\x1b[31m"},
    )
    with FakeServer(hostile) as server:
        run = ask(server.base_url)
    text = (run.path / "manifest.json").read_text("utf-8")
    assert KEY not in text
    assert "hidden?" not in text
    assert len(text) < 20_000
    (server_facts,) = told(run)
    assert server_facts["host"]["version"].startswith("sha256:")


class Slow(Engine):
    """Answers samples only once `go` is set, so that others can join."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.go = threading.Event()
        self.entry["owned_by"] = "else"

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.method == "POST":
            self.go.wait(20)
        yield from super().__call__(request)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(("root", "joins"), [("a", True), ("b", False)])
def test_an_endpoint_that_joins_or_comes_late_is_looked_at_first(
    ask: Any, tmp_path: Path, root: str, joins: bool, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """listed: it joins a file of endpoints while the run goes on; else it was down as the run began."""
    monkeypatch.setattr(admission, "RETRY_S", 0.1)
    nodes, log, engine, late = tmp_path / "nodes", tmp_path / "run" / "log.jsonl", Slow("a"), Slow(root)
    late.go.set()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    started: list[FakeServer] = []
    with FakeServer(engine) as first:
        nodes.write_text(f"{first.base_url}\n")

        def then() -> None:
            first.wait_for(lambda: any(r.method == "POST" for r in first.requests))
            started.append(FakeServer(late, port=port).__enter__())
            nodes.write_text(f"{first.base_url}\n{started[0].base_url}\n")
            event = "endpoints_changed" if joins else "endpoint_refused"
            first.wait_for(lambda: event in log.read_text("utf-8"))
            engine.go.set()

        helper = threading.Thread(target=then)
        helper.start()
        urls = [str(nodes)] if listed else [first.base_url, f"http://127.0.0.1:{port}"]
        run = ask(*urls, samples=8, concurrency=2)
        helper.join()
    (second,) = started
    second.stop()
    assert run.outcome.complete
    assert any(r.method == "POST" for r in second.requests) == joins
    assert any("does not join" in warning for warning in run.outcome.warnings) != joins
    endpoints = manifest(run)["provenance"]["sessions"][-1]["endpoints"]
    assert (second.base_url in endpoints) == joins
