"""A run beside its model's card: what the card speaks against is a warning; a reply may be begun for the model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.testing import FakeServer, Request, Step, completion, http
from tests.system.command import harness as command


class LlamaCpp:
    """A server that says it is llama.cpp, with a chat template that opens a reasoning or does not."""

    def __init__(self, model: str, *, opens: bool) -> None:
        self.model = model
        self.end = "<think>\n" if opens else ""

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.path.endswith("/models"):
            yield http(200, {"data": [{"id": self.model, "owned_by": "llamacpp", "meta": {"n_params": 1}}]})
        elif request.path.endswith("/apply-template"):
            yield http(200, {"prompt": f"<|user|>…<|assistant|>{self.end}"})
        elif request.path.endswith("/tokenize"):
            yield http(200, {"tokens": [1, 2, 3]})
        elif request.path.endswith("/completions"):
            yield from completion(r"so \boxed{2}", tokens=5)
        else:
            yield http(404, {})


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "q.jsonl").write_text('{"id": "a", "problem": "1+1?", "answer": "2"}\n')
    return {
        "data": tmp_path / "q.jsonl", "question_key": "problem", "answer_key": "answer", "samples": 1,
        "canary": False, "fingerprint": False, "out": tmp_path / "run",
    }  # fmt: skip


@pytest.mark.parametrize("opens", [True, False])
def test_a_template_that_opens_no_reasoning_is_warned_of_with_the_flag(tmp_path: Path, opens: bool) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": "a", "problem": "1+1?", "answer": "2"}\n')
    with FakeServer(LlamaCpp("deepseek-ai/DeepSeek-R1", opens=opens)) as server:
        done = command(
            tmp_path, "run", "--data", "q.jsonl", "--question-key", "problem", "--answer-key", "answer", "--samples",
            "1", "--base-url", server.base_url, "--no-canary", "--no-fingerprint", "--out", "run",
        )  # fmt: skip
    assert done.code == 0, done.err
    assert ("chat_template=FILE" in done.err) != opens
    assert "the model card asks for" not in done.err  # the defaults are this card's own sampling


def test_what_the_card_speaks_against_is_warned_of_and_asked_all_the_same(asked: dict[str, Any]) -> None:
    with FakeServer(LlamaCpp("openai/gpt-oss-20b", opens=False)) as server:
        run = harness.run(base_url=server.base_url, **asked)
        body = json.loads(next(r for r in server.requests if r.path.endswith("/chat/completions")).body)
    warnings = " ".join(run.warnings)
    assert run.complete
    assert "temperature 1 (not 0.6), top_p 1 (not 0.95)" in warnings
    assert "no effort is set" in warnings
    assert body["temperature"] == 0.6


def test_thinking_that_is_switched_by_hand_is_not_missed(asked: dict[str, Any]) -> None:
    with FakeServer(LlamaCpp("deepseek-ai/DeepSeek-V3.2", opens=False)) as server:
        switched = {"chat_template_kwargs": {"thinking": True}}
        by_hand = harness.run(base_url=server.base_url, extra_body=switched, **asked)
        missed = harness.run(base_url=server.base_url, **{**asked, "out": asked["out"].with_name("other")})
    assert not any("thinks only where" in one for one in by_hand.warnings)
    assert any("no thinking: the model's template thinks only where it is told to" in one for one in missed.warnings)
