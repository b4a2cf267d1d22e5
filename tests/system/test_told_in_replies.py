"""What replies tell of their server beside their text: its build, and log-probabilities that are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from tests.faults.server import FaultServer, Request, Step, delta, event, event_stream, http, models


class Build:
    """Answers, each reply under the next of these builds, the last one for good; logprob: of each token, if any."""

    def __init__(self, *builds: str | None, logprobs: list[Any] | None = None) -> None:
        self.builds = list(builds)
        self.logprobs = logprobs

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.path.endswith("/models"):
            yield models("m", owned_by="else", max_model_len=40960)
        elif request.method != "POST":
            yield http(404, {})
        else:
            build = self.builds.pop(0) if len(self.builds) > 1 else self.builds[0]
            build_field = {} if build is None else {"system_fingerprint": build}
            text = r"so \boxed{2}"
            choice = {"index": 0, "delta": {"content": text}}
            if self.logprobs is not None:
                choice["logprobs"] = {"content": self.logprobs}
            last = delta(finish="stop", usage={"prompt_tokens": 9, "completion_tokens": 5})
            yield from event_stream(event({"choices": [choice], **build_field}), last)


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


def warned(run: harness.Run) -> list[str]:
    return [warning for warning in run.outcome.warnings if "system_fingerprint" in warning]


def builds(run: harness.Run) -> list[dict[str, list[str]]]:
    """Of each session, by base URL."""
    sessions = json.loads((run.path / "manifest.json").read_bytes())["provenance"]["sessions"]
    return [dict(one["builds"]) for one in sessions]


def test_another_build_is_named_within_a_session(ask: Any) -> None:
    with FaultServer(Build("b1", "b2")) as server:
        run = ask(server)
    (warning,) = warned(run)
    assert "'b2'" in warning
    assert "'b1'" in warning
    assert builds(run) == [{server.base_url: ["b1", "b2"]}]
    assert run.complete


def test_another_build_is_named_between_sessions_and_between_endpoints(ask: Any) -> None:
    with FaultServer(Build("b1")) as first, FaultServer(Build("b2")) as other, FaultServer(Build(None)) as silent:
        ask(first)
        assert not warned(ask(silent, samples=2))
        (later,) = warned(ask(other, samples=3))
        assert other.base_url in later
    with FaultServer(Build("b3")) as one, FaultServer(Build("b4")) as two:
        assert len(warned(ask(one, two, samples=6, concurrency=4))) == 2  # each is new to the run


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
    with FaultServer(Build(None, logprobs=logprobs)) as server:
        run = ask(server, **({"extra_body": {"logprobs": True}} if asked else {}))
    assert {sample.odd_logprobs for sample in run.samples()} == {odd}
