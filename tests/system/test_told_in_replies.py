"""Log-probabilities of replies that are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from tests.faults.server import FaultServer, Request, Step, delta, event, event_stream, http, models


class Answers:
    """Answers; logprobs: of each token, if any."""

    def __init__(self, logprobs: list[Any] | None) -> None:
        self.logprobs = logprobs

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.path.endswith("/models"):
            yield models("m", owned_by="else", max_model_len=40960)
        elif request.method != "POST":
            yield http(404, {})
        else:
            text = r"so \boxed{2}"
            choice = {"index": 0, "delta": {"content": text}}
            if self.logprobs is not None:
                choice["logprobs"] = {"content": self.logprobs}
            last = delta(finish="stop", usage={"prompt_tokens": 9, "completion_tokens": 5})
            yield from event_stream(event({"choices": [choice]}), last)


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(4)))

    def run(*servers: FaultServer, samples: int = 1, **more: Any) -> harness.Run:
        return harness.run(
            data=path, question_key="problem", answer_key="answer", base_url=[one.base_url for one in servers],
            samples=samples, canary=False, **{"concurrency": 1, "out": tmp_path / "run", **more},
        )  # fmt: skip

    return run


SOUND = [{"token": "so", "logprob": -0.1}]


@pytest.mark.parametrize(
    ("asked", "logprobs", "odd"),
    [
        (True, SOUND, None),
        (True, [*SOUND, {"token": "x", "logprob": None}], "not numbers"),
        (True, [], "none"),
        (True, None, "none"),
        (False, None, None),
        (False, [{"token": "x", "logprob": None}], None),
    ],
)
def test_log_probabilities_that_are_none_are_noted(ask: Any, asked: bool, logprobs: Any, odd: str | None) -> None:
    with FaultServer(Answers(logprobs)) as server:
        run = ask(server, **({"extra_body": {"logprobs": True}} if asked else {}))
    assert {sample.odd_logprobs for sample in run.samples()} == {odd}
