"""A usage that states far fewer tokens than came as events is named by the score; others are not.

For: harness.core.reply_notes, harness.generation.outcome.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.core.reply_notes import TOO_FEW_STATED, states_too_few
from harness.testing import FakeServer, Request, Step, delta, event_stream, models
from tests.system.command import harness


@pytest.mark.parametrize(
    ("stated", "events", "false"),
    [
        (60, 120, True),
        (100, 126, True),
        (120, 120, False),
        (120, 60, False),
        (100, 125, False),
        (10, 25, False),
        (None, 120, False),
        (120, None, False),
    ],
)
def test_only_many_more_events_than_stated_tokens_prove_a_false_usage(
    stated: int | None, events: int | None, false: bool
) -> None:
    assert states_too_few(stated, events) is false


@pytest.mark.parametrize("stated", [30, 60])
def test_a_score_names_a_usage_of_half_the_tokens(tmp_path: Path, stated: int) -> None:
    def answer(request: Request) -> Iterable[Step]:
        if request.method == "GET":
            return [models("test-model")]
        usage = {"prompt_tokens": 9, "completion_tokens": stated}
        words = (delta(f" word{n}") for n in range(60))
        return event_stream(delta(role="assistant"), *words, delta(finish="stop", usage=usage))

    (tmp_path / "q.jsonl").write_text(json.dumps({"id": "q", "problem": "1 + 1 = ?", "answer": "2"}) + "\n")
    with FakeServer(answer) as server:
        words = ("run", "--data", "q.jsonl", "--samples", "2", "--base-url", server.base_url, "--out", "run")
        done = harness(tmp_path, *words, "--no-canary", "--no-fingerprint", "--temperature", "1")
    assert done.code == 0, done.err
    scored = harness(tmp_path, "score", "run")
    assert (f"2 replies of this run: {TOO_FEW_STATED}" in scored.out.replace("\n", " ")) is (stated == 30), scored.out
