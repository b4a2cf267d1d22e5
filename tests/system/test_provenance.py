"""Which model was measured: what servers tell is kept with the run, and models are not mixed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import harness
from harness.core.errors import StoreError
from harness.generation.network import admission
from harness.testing import Answer, FakeServer, Request, Step, completion, http
from server_launchers.machine import ports
from tests.patience import PATIENCE_SECONDS

KEY = "sk-0123456789abcdef"
NEUTRAL = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
"""What is sent to a server of vLLM, so that its own defaults stay out."""


class Engine:
    """A server of vLLM's kind: one listed model with its root, and pages of its own.

    go: it waits for it before each sample.
    """

    def __init__(
        self,
        root: str = "m",
        *,
        pages: dict[str, Any] | None = None,
        go: threading.Event | None = None,
        **entry: Any,
    ) -> None:
        self.entry = {"id": "m", "owned_by": "vllm", "root": root, "parent": None, "max_model_len": 40960, **entry}
        self.pages = {"/version": {"version": "0.33.0"}, **(pages or {})}
        self.go = go

    def __call__(self, request: Request) -> Iterator[Step]:
        path = urlsplit(request.path).path
        if path.endswith("/models"):
            yield http(200, {"data": [self.entry]}, server="uvicorn")
        elif request.method != "POST":
            yield http(200, self.pages[path]) if path in self.pages else http(404, {})
        elif self.go is None or self.go.wait(PATIENCE_SECONDS):
            yield from completion(r"so \boxed{2}", tokens=5)


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], FakeServer]]:
    """Starts a server, which ends with the test."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(FakeServer(answer))


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of one question in one folder; tests ask for more samples with each call, so that something is missing."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text('{"id": "q", "problem": "1+1?", "answer": "2"}\n')

    def run(*servers: FakeServer | str, samples: int = 1, **more: Any) -> harness.Run:
        urls = [one if isinstance(one, str) else one.base_url for one in servers]
        return harness.run(data=path, base_url=urls, samples=samples, canary=False, out=tmp_path / "run", **more)

    return run


def manifest(run: harness.Run) -> dict[str, Any]:
    return dict(json.loads((run.path / "manifest.json").read_bytes()))


def session(run: harness.Run) -> dict[str, Any]:
    """What the manifest says of the last session."""
    return dict(manifest(run)["provenance"]["sessions"][-1])


def told(run: harness.Run) -> list[dict[str, Any]]:
    return list(manifest(run)["provenance"]["servers"].values())


def warned(run: harness.Run, words: str) -> list[str]:
    return [warning for warning in run.outcome.warnings if words in warning]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.json*") if path.name != "log.jsonl"}


# ---- what servers tell


def test_another_root_is_refused_until_accepted_and_nothing_is_lost(sample: Any, serve: Any, tmp_path: Path) -> None:
    first, other, third = (serve(Engine(name)) for name in ("a", "b", "c"))
    with pytest.raises(StoreError, match='root was "a", now "b"'):
        sample(first, other)
    assert sample(first, serve(Engine("a"))).outcome.complete
    before = contents(tmp_path / "run")
    with pytest.raises(StoreError, match=f'{other.base_url}: root was "a", now "b"(.|\n)*accept_server_change'):
        sample(other, samples=2)
    assert not [request for request in other.requests if request.method == "POST"]
    assert contents(tmp_path / "run") == before
    run = sample(other, samples=2, accept_server_change=True)
    (accepted,) = session(run)["accepted"]
    assert 'root was "a", now "b"' in accepted
    assert warned(run, "the run continues with a different model")
    assert sample(first, other, samples=3).outcome.complete
    with pytest.raises(StoreError, match='root was "b", now "c"'):
        sample(third, samples=4)


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
def test_what_changes_the_distribution_is_refused(sample: Any, serve: Any, field: str, before: Any, now: Any) -> None:
    def sglang(value: Any) -> FakeServer:
        info = {"version": "0.5.23", "context_length": 40960, field: value}
        pages = {"/get_model_info": {"model_path": "m"}, "/get_server_info": info}
        server: FakeServer = serve(Engine(pages=pages, owned_by="sglang"))
        return server

    sample(sglang(before))
    with pytest.raises(StoreError, match=json.dumps(now).replace("{", r"\{")):
        sample(sglang(now), samples=2)


def test_another_version_or_context_only_warns(sample: Any, serve: Any) -> None:
    sample(serve(Engine()))
    run = sample(serve(Engine(pages={"/version": {"version": "0.34.0"}}, max_model_len=50000)), samples=2)
    assert run.outcome.complete
    for words in ('version was "0.33.0", now "0.34.0"', "context was 40960, now 50000"):
        assert warned(run, words)
    assert len(told(run)) == 2


def test_a_run_from_before_goes_on_as_it_was_asked_with_any_server(sample: Any, serve: Any) -> None:
    """Its manifest has no provenance and no neutral values: what the server fills in is said."""
    first, other, silent = serve(Engine("a")), serve(Engine("b")), serve(Engine("b", owned_by=""))
    run = sample(first)
    old = manifest(run)
    del old["provenance"], old["benchmarks"]["sums"]["identity"]["neutral"]
    (run.path / "manifest.json").write_text(json.dumps(old))
    run = sample(other, samples=2)
    assert [server["model"]["root"] for server in told(run)] == ["b"]
    assert [sent(server) for server in (first, other)] == [[NEUTRAL], [{}]]
    record = manifest(run)["benchmarks"]["sums"]
    assert ("neutral" in record["identity"], record["settings"]["filled_by_server"]) == (False, [*NEUTRAL])
    run.path.rename(run.path.with_name("old"))
    # A new run keeps its values also where the engine does not tell what it is.
    sample(other)
    sample(silent, samples=2)
    assert sent(silent) == [NEUTRAL]
    with pytest.raises(StoreError, match="top_k"):
        sample(other, samples=3, top_k=5)


def sent(server: FakeServer) -> list[dict[str, Any]]:
    """The neutral values of each request, one value for all that are alike."""
    bodies = [{name: r.json[name] for name in NEUTRAL if name in r.json} for r in server.requests if r.method == "POST"]
    return [body for i, body in enumerate(bodies) if body not in bodies[:i]]


def test_a_hostile_servers_words_are_short_and_safe(sample: Any, serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    nested: Any = "x"
    for _ in range(400):
        nested = {"root": nested}
    pages = {"/version": {"version": ["v" * 10**6]}, "/server_info": {"vllm_config": {"model_config": nested}}}
    run = sample(serve(Engine(f"key {KEY}", pages=pages, parent={"api_key": "hidden?", "note": "\x1b[31m"})))
    text = (run.path / "manifest.json").read_text("utf-8")
    assert (KEY in text, "hidden?" in text, len(text) < 20_000) == (False, False, True)
    (server_facts,) = told(run)
    assert server_facts["host"]["version"].startswith("sha256:")


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(("root", "joins"), [("a", True), ("b", False)])
def test_an_endpoint_that_joins_or_comes_late_is_looked_at_first(
    sample: Any, serve: Any, tmp_path: Path, root: str, joins: bool, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """listed: it joins a file of endpoints while the run goes on; else it was down as the run began."""
    monkeypatch.setattr(admission, "RETRY_S", 0.1)
    nodes, log, go = tmp_path / "nodes", tmp_path / "run" / "log.jsonl", threading.Event()
    (port,) = ports.free_ports("127.0.0.1", None, 1)
    started: list[FakeServer] = []
    first = serve(Engine("a", go=go, owned_by="else"))
    nodes.write_text(f"{first.base_url}\n")

    def then() -> None:
        first.wait_for(lambda: any(r.method == "POST" for r in first.requests))
        started.append(FakeServer(Engine(root, owned_by="else"), port=port).__enter__())
        nodes.write_text(f"{first.base_url}\n{started[0].base_url}\n")
        event = "endpoints_changed" if joins else "endpoint_refused"
        first.wait_for(lambda: event in log.read_text("utf-8"))
        go.set()

    helper = threading.Thread(target=then)
    helper.start()
    run = sample(*([str(nodes)] if listed else [first, f"http://127.0.0.1:{port}"]), samples=24, concurrency=2)
    helper.join()
    (second,) = started
    second.stop()
    assert run.outcome.complete
    asked = any(r.method == "POST" for r in second.requests)
    assert (asked, not warned(run, "cannot join"), second.base_url in session(run)["endpoints"]) == (joins,) * 3


def test_a_fingerprint_of_an_earlier_version_is_ignored(sample: Any, serve: Any) -> None:
    run = sample(server := serve(Engine()))
    old = manifest(run)
    old["provenance"]["fingerprint"] = {"version": "7526db7c656d", "beginnings": ["x"] * 8, "endpoint": "http://h/v1"}
    old["provenance"]["sessions"][0]["same"] = {server.base_url: 8}
    (run.path / "manifest.json").write_text(json.dumps(old))
    again = sample(server, samples=2)
    assert (again.outcome.complete, again.outcome.warnings) == (True, [])
    assert len([request for request in server.requests if request.method == "POST"]) == 2
