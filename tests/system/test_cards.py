"""A run beside its model's card: what the card speaks against is a warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.testing import Answer, FakeServer, completion, models


def listing(model: str) -> Answer:
    return lambda request: [models(model)] if request.method == "GET" else completion(r"so \boxed{2}", tokens=5)


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "q.jsonl").write_text('{"id": "a", "problem": "1+1?", "answer": "2"}\n')
    return {
        "data": tmp_path / "q.jsonl", "question_key": "problem", "answer_key": "answer", "samples": 1,
        "canary": False, "fingerprint": False, "out": tmp_path / "run",
    }  # fmt: skip


def test_what_the_card_speaks_against_is_warned_of_and_asked_all_the_same(asked: dict[str, Any]) -> None:
    with FakeServer(listing("openai/gpt-oss-20b")) as server:
        run = harness.run(base_url=server.base_url, **asked)
        body = json.loads(next(r for r in server.requests if r.path.endswith("/chat/completions")).body)
    warnings = " ".join(run.warnings)
    assert run.complete
    assert "temperature 1 (not 0.6), top_p 1 (not 0.95)" in warnings
    assert "no effort is set" in warnings
    assert body["temperature"] == 0.6


def test_thinking_that_is_switched_by_hand_is_not_missed(asked: dict[str, Any]) -> None:
    with FakeServer(listing("deepseek-ai/DeepSeek-V3.2")) as server:
        switched = {"chat_template_kwargs": {"thinking": True}}
        by_hand = harness.run(base_url=server.base_url, extra_body=switched, **asked)
        missed = harness.run(base_url=server.base_url, **{**asked, "out": asked["out"].with_name("other")})
    assert not any("thinks only where" in one for one in by_hand.warnings)
    assert any("no thinking: the model's template thinks only where it is told to" in one for one in missed.warnings)
