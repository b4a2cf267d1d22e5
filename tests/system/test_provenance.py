"""Which model was measured: what servers tell and how they reply is kept with the run, and models are not mixed."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import harness
from harness.core.errors import StoreError
from harness.generation import fingerprint
from harness.generation.network import admission
from harness.testing import STALL, Answer, FakeServer, Request, Step, completion, http
from server_launchers.machine import ports
from tests.patience import PATIENCE_SECONDS
from tests.system.command import harness as command

KEY = "sk-0123456789abcdef"
NEUTRAL = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
"""What is sent to a server of vLLM, so that its own defaults stay out."""


class Engine:
    """A server of vLLM's kind: one listed model with its root, and pages of its own.

    It replies to a greedy prompt by `weights`; `odd` of the prompts come out otherwise, as in a batch. penalty: of its
    generation_config.json, which it fills in where a request leaves it open. go: it waits for it before each sample.
    """

    def __init__(
        self,
        root: str = "m",
        weights: str = "a",
        *,
        pages: dict[str, Any] | None = None,
        odd: int = 0,
        penalty: float = 1.0,
        stalls: bool = False,
        go: threading.Event | None = None,
        **entry: Any,
    ) -> None:
        self.entry = {"id": "m", "owned_by": "vllm", "root": root, "parent": None, "max_model_len": 40960, **entry}
        self.pages = {"/version": {"version": "0.33.0"}, **(pages or {})}
        self.weights, self.odd, self.penalty, self.stalls, self.go = weights, odd, penalty, stalls, go

    def __call__(self, request: Request) -> Iterator[Step]:
        path = urlsplit(request.path).path
        if path.endswith("/models"):
            yield http(200, {"data": [self.entry]}, server="uvicorn")
        elif request.method != "POST":
            yield http(200, self.pages[path]) if path in self.pages else http(404, {})
        elif self.go is not None and not self.go.wait(PATIENCE_SECONDS):
            return
        elif not greedy(request):
            yield from completion(r"so \boxed{2}", tokens=5)
        elif self.stalls:
            yield STALL
        else:
            asked = request.json["messages"][0]["content"]
            noise = "!" if asked in fingerprint.PROMPTS[: self.odd] else ""
            penalty = request.json.get("repetition_penalty", self.penalty)
            yield from completion(reply(self.weights, asked, noise, penalty), tokens=16)


def reply(weights: str, asked: str, noise: str = "", penalty: float = 1.0) -> str:
    return hashlib.sha256(f"{weights}{asked}{noise}{f' {penalty}' if penalty != 1 else ''}".encode()).hexdigest()


def greedy(request: Request) -> bool:
    return request.method == "POST" and request.json["temperature"] == 0


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], FakeServer]]:
    """Starts a server, which ends with the test."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(FakeServer(answer))


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of one question in one folder; tests ask for more samples with each call, so that something is missing."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text('{"id": "q", "problem": "1+1?", "answer": "2"}\n')

    def run(*servers: FakeServer | str, samples: int = 1, **more: Any) -> harness.Run:
        urls = [one if isinstance(one, str) else one.base_url for one in servers]
        return harness.run(data=path, base_url=urls, samples=samples, canary=False, out=tmp_path / "run", **more)

    return run


@pytest.fixture
def sample(ask: Any) -> Any:
    """`ask` without a fingerprint."""
    return partial(ask, fingerprint=False)


def manifest(run: harness.Run) -> dict[str, Any]:
    return dict(json.loads((run.path / "manifest.json").read_bytes()))


def session(run: harness.Run) -> dict[str, Any]:
    """What the manifest says of the last session."""
    return dict(manifest(run)["provenance"]["sessions"][-1])


def told(run: harness.Run) -> list[dict[str, Any]]:
    return list(manifest(run)["provenance"]["servers"].values())


def warned(run: harness.Run, words: str = "gives different replies") -> list[str]:
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


def sent(server: FakeServer, of: Callable[[Request], bool] = lambda r: r.method == "POST") -> list[dict[str, Any]]:
    """The neutral values of each request, one value for all that are alike."""
    bodies = [{name: r.json[name] for name in NEUTRAL if name in r.json} for r in server.requests if of(r)]
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


# ---- how they reply: fingerprints


def test_other_weights_that_tell_nothing_of_themselves_are_named(ask: Any, serve: Any, tmp_path: Path) -> None:
    first, other = serve(Engine()), serve(Engine(weights="b"))
    assert not warned(ask(first))
    before = contents(tmp_path / "run")
    with pytest.raises(StoreError, match=r"0 of 8 replies at temperature 0(.|\n)*accept_server_change"):
        ask(other, samples=2)
    assert contents(tmp_path / "run") == before
    shown = command(tmp_path, "status", "run").out
    assert ["1/1 sample (100%)" in shown, "a run never mixes models" in shown, "killed" in shown] == [True, True, False]
    ask(first)  # which asks for nothing, and is no killed session either
    assert "killed" not in command(tmp_path, "status", "run").out
    run = ask(other, samples=2, accept_server_change=True)
    assert session(run)["same"] == {other.base_url: 0}
    (warning,) = warned(run)
    assert (other.base_url in warning, "0 of 8" in warning, run.outcome.complete) == (True, True, True)


@pytest.mark.parametrize(("odd", "named"), [(4, False), (5, True)])
def test_what_a_batch_may_do_is_no_warning(ask: Any, serve: Any, odd: int, named: bool) -> None:
    ask(serve(Engine()))
    run = ask(other := serve(Engine(odd=odd)), samples=2)
    assert (session(run)["same"], bool(warned(run))) == ({other.base_url: 8 - odd}, named)


def test_a_server_that_does_not_repeat_itself_is_untested_and_runs_on(ask: Any, serve: Any) -> None:
    numbers = itertools.count()
    server = serve(lambda request: Engine(weights=str(next(numbers)))(request))
    assert not warned(ask(server))
    run = ask(server, samples=2)
    (warning,) = warned(run, "sent twice at temperature 0, only 0 of 8 replies matched")
    assert (run.outcome.complete, session(run)["same"], "cannot detect" in warning) == (True, {}, True)


def spent(run: harness.Run) -> tuple[int, int, int]:
    used = run.outcome.spent
    return used.prompt_tokens, used.completion_tokens, used.n_unstated


PRICES = {"prices": (1.0, 10.0)}


def test_what_a_fingerprint_costs_is_in_the_sessions_cost(ask: Any, serve: Any) -> None:
    server = serve(Engine())
    assert spent(ask(server, samples=2, **PRICES)) == (8 * 9 + 2 * 9, 8 * 16 + 2 * 5, 0)
    assert spent(ask(server, samples=4, fingerprint=False, **PRICES)) == (2 * 9, 2 * 5, 0)


def test_a_refused_request_leaves_an_endpoint_without_a_fingerprint(ask: Any, serve: Any) -> None:
    engine, numbers = Engine(), itertools.count(1)

    def answer(request: Request) -> Iterator[Step]:
        if greedy(request) and next(numbers) == 4:
            yield http(429, {"error": {"message": "slow down"}}, retry_after="1")
        else:
            yield from engine(request)

    run = ask(serve(answer), **PRICES)
    assert (run.outcome.complete, session(run)["same"]) == (True, {})
    assert spent(run)[1] == 7 * 16 + 5, "each reply is billed, a refusal never"
    (missed,) = warned(run, "gave no fingerprint")
    assert "slow down" in missed


def test_a_signal_during_the_fingerprint_keeps_the_most_that_it_can_cost(ask: Any, serve: Any) -> None:
    numbers, engine = itertools.count(1), Engine()

    def answer(request: Request) -> Iterator[Step]:
        if not greedy(request):
            yield from engine(request)
            return
        if next(numbers) == 8:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        yield STALL

    server = serve(answer)
    with pytest.raises(harness.Interrupted, match="stopped by SIGINT"):
        ask(server, **PRICES)
    again = ask(server, fingerprint=False, **PRICES).outcome
    assert (again.complete, again.spent_before.completion_tokens) == (True, 8 * 16)


def test_one_of_several_endpoints_that_replies_otherwise_is_named(ask: Any, serve: Any) -> None:
    one, twin, other = serve(Engine()), serve(Engine()), serve(Engine(weights="b"))
    run = ask(one, twin, other)
    assert session(run)["same"] == {one.base_url: 8, twin.base_url: 8, other.base_url: 0}
    assert [other.base_url in warning for warning in warned(run)] == [True]


def test_it_is_requested_of_self_hosted_engines_and_where_it_is_enabled(ask: Any, serve: Any) -> None:
    known, unknown = serve(Engine()), serve(Engine(owned_by="somebody"))
    short = {"max_tokens": 5}
    ask(unknown, **short)
    ask(known, samples=2, fingerprint=False, **short)
    bounded = ask(known, samples=3, budget_tokens=15, **short)
    assert warned(bounded, "a session with a budget skips the fingerprint")
    assert not [r for r in (*known.requests, *unknown.requests) if greedy(r)]
    ask(unknown, samples=4, fingerprint=True, **short)
    asked = [r.json for r in unknown.requests if greedy(r)]
    assert (len(asked), sum(body["max_tokens"] for body in asked)) == (8, 128)
    assert sum(len(body["messages"][0]["content"]) for body in asked) < 2000


@pytest.mark.parametrize("busy", [False, True])
def test_a_slow_server_is_asked_anyway(ask: Any, serve: Any, monkeypatch: pytest.MonkeyPatch, busy: bool) -> None:
    """busy: so much that the request's own deadline is noticed before that of the fingerprint."""
    monkeypatch.setattr(fingerprint, "SECONDS", 0.3)
    if busy:
        monkeypatch.setattr("asyncio.wait_for", lambda reply, _: reply)
    run = ask(server := serve(Engine(stalls=True)))
    assert (run.outcome.complete, session(run)["same"], warned(run)) == (True, {}, [])
    (missed,) = warned(run, "did not finish its fingerprint within 0.3 s")
    assert server.base_url in missed


def test_a_target_error_takes_the_fingerprint_once_for_all_stages(ask: Any, serve: Any, tmp_path: Path) -> None:
    server = serve(Engine())
    ask(server, samples=40, target_error=5, fingerprint=True)
    assert sum(map(greedy, server.requests)) == len(fingerprint.PROMPTS), "one fingerprint for all stages"
    (tmp_path / "run").rename(tmp_path / "target")
    ask(server, samples=40, fingerprint=True)
    log = (tmp_path / "target" / "log.jsonl").read_text(encoding="utf-8")
    stages = [one.get("stage", 0) for one in map(json.loads, log.splitlines()) if one["event"] == "session_started"]
    assert 1 < len(stages) == stages[-1] + 1, "the error needs more than the first eight samples"
    for run in ("target", "run"):
        assert command(tmp_path, "score", run).code == 0
    compared = command(tmp_path, "compare", "run", "target")
    assert "no difference seen between " in compared.out, compared.err
    assert "greedy replies are stored" not in compared.out


def test_an_old_fingerprint_is_compared_by_the_requests_of_its_time(ask: Any, serve: Any) -> None:
    """Before neutral values were sent with it: with them, another penalty in a server's files accuses no weights."""
    assert fingerprint.version({}) == "7526db7c656d", "what all runs before have"
    first, server, other = serve(Engine()), serve(Engine(penalty=1.05)), serve(Engine(weights="b", penalty=1.05))
    run = ask(first)
    assert manifest(run)["provenance"]["fingerprint"]["neutral"] == NEUTRAL
    run = ask(server, samples=2)
    assert sent(first, greedy) == sent(server, greedy) == [NEUTRAL]
    assert session(run)["same"] == {server.base_url: 8}

    was = manifest(run)
    old = was["provenance"]["fingerprint"]
    del old["neutral"]
    old |= {"version": "7526db7c656d", "beginnings": [reply("a", text, penalty=1.05) for text in fingerprint.PROMPTS]}
    (run.path / "manifest.json").write_text(json.dumps(was))
    server.requests.clear()
    run = ask(server, samples=3)
    assert sent(server, greedy) == [{}]
    assert session(run)["same"] == {server.base_url: 8}
    assert "neutral" not in manifest(run)["provenance"]["fingerprint"]
    assert warned(ask(other, samples=4, accept_server_change=True)), "other weights are still found"
