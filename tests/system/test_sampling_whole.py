"""Sampling is said whole: what a request leaves open is sent neutral where the server would fill it, or told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.core.errors import StoreError
from harness.testing import FakeServer, Request, Step, completion, http, models

VLLM = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


def engine(owner: str) -> Any:
    def answer(request: Request) -> Iterator[Step]:
        if request.path.endswith("/models"):
            yield models("m", owned_by=owner, max_model_len=40960)
        elif request.method == "POST":
            yield from completion(r"so \boxed{2}", tokens=5)
        else:
            yield http(404, {})

    return answer


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text('{"id": "q", "problem": "1+1?", "answer": "2"}\n')

    def run(server: FakeServer, samples: int = 1, **more: Any) -> harness.Run:
        return harness.run(
            data=path, question_key="problem", answer_key="answer", base_url=server.base_url, samples=samples,
            canary=False, out=tmp_path / "run", fingerprint=False, **more,
        )  # fmt: skip

    return run


def sent(server: FakeServer) -> list[dict[str, Any]]:
    fields = {*VLLM}
    bodies = [request.json for request in server.requests if request.method == "POST"]
    return [{name: value for name, value in body.items() if name in fields} for body in bodies]


def record(run: harness.Run) -> dict[str, Any]:
    return dict(json.loads((run.path / "manifest.json").read_bytes())["benchmarks"]["sums"])


def test_an_old_run_goes_on_as_it_was_asked_and_says_what_the_server_fills(ask: Any) -> None:
    with FakeServer(engine("vllm")) as server:
        run = ask(server)
        path = run.path / "manifest.json"
        old = json.loads(path.read_bytes())
        del old["benchmarks"]["sums"]["identity"]["neutral"], old["provenance"]
        path.write_text(json.dumps(old))
        run = ask(server, samples=2)
    assert sent(server) == [VLLM, {}]
    assert "neutral" not in record(run)["identity"]
    assert record(run)["settings"]["filled_by_server"] == [*VLLM]


def test_a_new_run_goes_on_with_its_values_also_where_the_engine_is_not_told(ask: Any) -> None:
    with FakeServer(engine("vllm")) as server, FakeServer(engine("")) as silent:
        ask(server)
        ask(silent, samples=2)
        assert sent(silent) == [VLLM]
        with pytest.raises(StoreError, match="top_k"):
            ask(server, samples=3, top_k=5)
