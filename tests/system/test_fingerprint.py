"""How a server replies is kept with the run, and one that replies differently is named."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.generation import fingerprint
from harness.testing import STALL, FakeServer, Request, Step, completion, http, models
from tests.system.command import harness as command


class Engine:
    """Replies to a greedy prompt by `weights`; `odd` of the prompts come out otherwise, as in a batch.

    penalty: of its generation_config.json, which it fills in where a request leaves it open.
    """

    def __init__(
        self, weights: str = "a", *, odd: int = 0, owner: str = "vllm", stalls: bool = False, penalty: float = 1.0
    ) -> None:
        self.weights, self.odd, self.owner, self.stalls = weights, odd, owner, stalls
        self.penalty = penalty

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.path.endswith("/models"):
            yield models("m", owned_by=self.owner, max_model_len=40960)
        elif request.method != "POST":
            yield http(404, {})
        elif not greedy(request):
            yield from completion(r"so \boxed{2}", tokens=5)
        elif self.stalls:
            yield STALL
        else:
            asked = request.json["messages"][0]["content"]
            noise = "!" if asked in fingerprint.PROMPTS[: self.odd] else ""
            penalty = request.json.get("repetition_penalty", self.penalty)
            bent = f" {penalty}" if penalty != 1 else ""
            text = hashlib.sha256(f"{self.weights}{asked}{noise}{bent}".encode()).hexdigest()
            yield from completion(text, tokens=16)


def greedy(request: Request) -> bool:
    return request.method == "POST" and request.json["temperature"] == 0


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text('{"id": "q", "problem": "1+1?", "answer": "2"}\n')

    def run(*servers: FakeServer, samples: int = 1, **more: Any) -> harness.Run:
        return harness.run(
            data=path, question_key="problem", answer_key="answer", base_url=[one.base_url for one in servers],
            samples=samples, canary=False, out=tmp_path / "run", **more,
        )  # fmt: skip

    return run


def same(run: harness.Run) -> dict[str, int]:
    """Of the last session, by base URL."""
    return dict(json.loads((run.path / "manifest.json").read_bytes())["provenance"]["sessions"][-1]["same"])


def warned(run: harness.Run) -> list[str]:
    return [warning for warning in run.outcome.warnings if "replies differently" in warning]


def test_other_weights_that_tell_nothing_of_themselves_are_named(ask: Any) -> None:
    with FakeServer(Engine("a")) as first, FakeServer(Engine("b")) as other:
        assert not warned(ask(first))
        with pytest.raises(harness.StoreError, match="0 of 8 replies at temperature 0") as refused:
            ask(other, samples=2)
        assert "accept_server_change (--accept-server-change)" in str(refused.value)
        run = ask(other, samples=2, accept_server_change=True)
    assert same(run) == {other.base_url: 0}
    (warning,) = warned(run)
    assert other.base_url in warning
    assert "0 of 8" in warning
    assert run.outcome.complete


def test_a_refused_extension_leaves_a_finished_run_as_it_was(ask: Any, tmp_path: Path) -> None:
    with FakeServer(Engine("a")) as first, FakeServer(Engine("b")) as other:
        ask(first)
        files = [file for file in sorted((tmp_path / "run").rglob("*.json*")) if file.name != "log.jsonl"]
        before = [file.read_bytes() for file in files]
        with pytest.raises(harness.StoreError, match="0 of 8 replies at temperature 0"):
            ask(other, samples=2)
        assert [file.read_bytes() for file in files] == before
        shown = command(tmp_path, "status", "run").out
        assert "1/1 sample (100%)" in shown
        assert "a run never mixes models" in shown
        assert "killed" not in shown
        # The same command again, which asks for nothing, is no killed session either.
        ask(first)
        assert "killed" not in command(tmp_path, "status", "run").out
        # The twin: an extension that the server was accepted for.
        ask(first, samples=2)
    assert "2/2 samples (100%)" in command(tmp_path, "status", "run").out


@pytest.mark.parametrize(("odd", "named"), [(0, False), (4, False), (5, True)])
def test_what_a_batch_may_do_is_no_warning(ask: Any, odd: int, named: bool) -> None:
    with FakeServer(Engine()) as first, FakeServer(Engine(odd=odd)) as other:
        ask(first)
        run = ask(other, samples=2)
    assert same(run) == {other.base_url: 8 - odd}
    assert bool(warned(run)) == named


PRICES = {"prices": (1.0, 10.0)}


def test_what_a_fingerprint_costs_is_in_the_sessions_cost(ask: Any) -> None:
    with FakeServer(Engine()) as server:
        run = ask(server, samples=2, **PRICES)
        without = ask(server, samples=4, fingerprint=False, **PRICES)
    spent = run.outcome.spent
    assert (spent.prompt_tokens, spent.completion_tokens) == (8 * 9 + 2 * 9, 8 * 16 + 2 * 5)
    assert spent.n_unstated == 0
    assert (without.outcome.spent.prompt_tokens, without.outcome.spent.completion_tokens) == (2 * 9, 2 * 5)


def test_a_refused_request_leaves_an_endpoint_without_a_fingerprint(ask: Any) -> None:
    engine, numbers = Engine(), itertools.count(1)

    def reply(request: Request) -> Iterator[Step]:
        if greedy(request) and next(numbers) == 4:
            yield http(429, {"error": {"message": "slow down"}}, retry_after="1")
        else:
            yield from engine(request)

    with FakeServer(reply) as server:
        run = ask(server, **PRICES)
    assert run.outcome.complete
    assert same(run) == {}
    assert run.outcome.spent.completion_tokens == 7 * 16 + 5, "each reply is billed, a refusal never"
    (missed,) = [one for one in run.outcome.warnings if "gave no fingerprint" in one]
    assert "slow down" in missed


def test_a_signal_during_the_fingerprint_keeps_the_most_that_it_can_cost(ask: Any) -> None:
    lock, numbers, engine = threading.Lock(), itertools.count(1), Engine()

    def reply(request: Request) -> Iterator[Step]:
        if not greedy(request):
            yield from engine(request)
            return
        with lock:
            number = next(numbers)
        if number == 8:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        yield STALL

    with FakeServer(reply) as server:
        with pytest.raises(harness.Interrupted, match="stopped by SIGINT"):
            ask(server, **PRICES)
        again = ask(server, fingerprint=False, **PRICES)
    assert again.outcome.complete
    assert again.outcome.spent_before.completion_tokens == 8 * 16


def test_a_session_with_a_budget_takes_none_and_says_so(ask: Any) -> None:
    with FakeServer(Engine()) as server:
        run = ask(server, max_tokens=5, budget_tokens=5)
    assert not any(map(greedy, server.requests))
    assert [warning for warning in run.outcome.warnings if "a session with a budget takes no fingerprint" in warning]


def test_one_of_several_endpoints_that_replies_otherwise_is_named(ask: Any) -> None:
    with FakeServer(Engine()) as one, FakeServer(Engine()) as twin, FakeServer(Engine("b")) as other:
        run = ask(one, twin, other)
    assert same(run) == {one.base_url: 8, twin.base_url: 8, other.base_url: 0}
    assert [other.base_url in warning for warning in warned(run)] == [True]


def test_it_is_asked_of_engines_that_one_runs_oneself_and_where_it_is_asked_for(ask: Any) -> None:
    with FakeServer(Engine()) as known, FakeServer(Engine(owner="somebody")) as unknown:
        ask(unknown)
        ask(known, samples=2, fingerprint=False)
        assert not [r for r in (*known.requests, *unknown.requests) if greedy(r)]
        ask(unknown, samples=3, fingerprint=True)
        asked = [r.json for r in unknown.requests if greedy(r)]
    assert len(asked) == 8
    assert sum(body["max_tokens"] for body in asked) == 128
    assert sum(len(body["messages"][0]["content"]) for body in asked) < 2000


def test_a_server_that_does_not_answer_it_in_time_is_asked_all_the_same(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "SECONDS", 0.3)
    with FakeServer(Engine(stalls=True)) as server:
        run = ask(server)
    assert run.outcome.complete
    assert same(run) == {}
    assert not warned(run)
    (missed,) = [one for one in run.outcome.warnings if "did not finish its fingerprint within 0.3 s" in one]
    assert server.base_url in missed


# ---- with the values that keep the server's own defaults out, and from before they were sent

NEUTRAL = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


def neutral_sent(server: FakeServer) -> list[dict[str, Any]]:
    """Of each greedy request, one value for all that are alike."""
    bodies = [{name: r.json[name] for name in NEUTRAL if name in r.json} for r in server.requests if greedy(r)]
    return [body for i, body in enumerate(bodies) if body not in bodies[:i]]


def kept(run: harness.Run) -> dict[str, Any]:
    return dict(json.loads((run.path / "manifest.json").read_bytes())["provenance"]["fingerprint"])


def test_a_target_error_takes_the_fingerprint_once_and_its_later_stages_record_that(ask: Any, tmp_path: Path) -> None:
    with FakeServer(Engine()) as server:
        ask(server, samples=40, target_error=5, fingerprint=True)
        asked = sum(greedy(request) for request in server.requests)
        (tmp_path / "run").rename(tmp_path / "target")
        ask(server, samples=40, fingerprint=True)
    log = (tmp_path / "target" / "log.jsonl").read_text(encoding="utf-8")
    assert log.count('"session_started"') > 1, "the error needs more than the first eight samples"
    assert asked == len(fingerprint.PROMPTS), "one fingerprint for all stages"
    for run in ("target", "run"):
        assert command(tmp_path, "score", run).code == 0
    compared = command(tmp_path, "compare", "run", "target")
    assert "same questions" in compared.out, compared.err
    assert "greedy replies are stored" not in compared.out


def test_another_penalty_in_a_servers_files_does_not_accuse_its_weights(ask: Any) -> None:
    with FakeServer(Engine()) as first, FakeServer(Engine(penalty=1.05)) as other:
        assert kept(ask(first))["neutral"] == NEUTRAL
        run = ask(other, samples=2)
    assert neutral_sent(first) == neutral_sent(other) == [NEUTRAL]
    assert same(run) == {other.base_url: 8}


def as_before(run: harness.Run) -> None:
    """The run as it was written before neutral values were sent with a fingerprint."""
    path = run.path / "manifest.json"
    manifest = json.loads(path.read_bytes())
    old = manifest["provenance"]["fingerprint"]
    del old["neutral"]
    old["version"] = "7526db7c656d"
    penalty = " 1.05"
    old["beginnings"] = [hashlib.sha256(f"a{text}{penalty}".encode()).hexdigest() for text in fingerprint.PROMPTS]
    path.write_text(json.dumps(manifest))


def test_a_fingerprint_from_before_is_compared_by_requests_as_they_were_then(ask: Any) -> None:
    assert fingerprint.version({}) == "7526db7c656d", "what all runs before have"
    with FakeServer(Engine(penalty=1.05)) as server, FakeServer(Engine("b", penalty=1.05)) as other:
        as_before(ask(server))
        server.requests.clear()
        run = ask(server, samples=2)
        assert neutral_sent(server) == [{}]
        assert same(run) == {server.base_url: 8}
        assert "neutral" not in kept(run)
        assert warned(ask(other, samples=3, accept_server_change=True)), "other weights are still found"
