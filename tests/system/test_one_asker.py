"""One maker of requests: a run, a judge, a judge of a file and a probe ask every server alike."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.client.address import providers
from harness.judges import judge as judging
from harness.judges.judge import score_with_judge
from harness.options.judge import JudgeOptions
from harness.options.probing import ProbeOptions
from harness.presets.grading import GradingOptions
from harness.probes import probe
from harness.runs import RunFolder
from harness.scoring.pipeline import grade_run, score_run
from harness.testing import FakeServer, Reply, Request, Said, Step, http, serving
from server_launchers.engines import table as engines
from server_launchers.spec import ENGINES, EngineName
from tests.budget import thinned
from tests.commands.judged_runs import PROSE, write_run
from tests.faults.able import sums

KEY = "sk-one-asker-0123456789"
HEADER = {"X-Team": "blue"}


@dataclass(frozen=True)
class Kind:
    """A kind of server. entry: of its model in its list; pages: what else it tells of itself; sent: the neutral values
    that every request to it holds."""

    entry: Mapping[str, Any] = field(default_factory=dict)
    pages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sent: str | None = None
    provider: str | None = None
    model: str = "m"


VLLM = Kind({"owned_by": "vllm", "max_model_len": 40960}, {"/version": {"version": "0.33.0"}}, "vllm")
SGLANG_PAGES = {"/get_server_info": {"version": "0.5.23"}, "/get_model_info": {"model_path": "/models/m"}}


def _by_profile(name: EngineName) -> Kind:
    """What an engine's servers tell of themselves, as far as its file says."""
    profile = engines.by_name(name).profile
    if profile is None:
        return Kind()
    return Kind({"owned_by": profile.owned_by}, {}, profile.name if profile.neutral is not None else None)


KINDS: dict[str, Kind] = {
    **{name: _by_profile(name) for name in ENGINES},
    "llama_cpp": Kind({"owned_by": "llamacpp"}, {"/props": {"total_slots": 4}}, "llama.cpp"),
    "vllm": VLLM,
    "sglang behind its router": Kind({}, SGLANG_PAGES, model="unknown"),
    "transformers": Kind({"owned_by": "HuggingFaceTB"}),
    "an older llama.cpp": Kind({"meta": {"n_ctx_train": 1}}, {"/props": {"total_slots": 4}}, "llama.cpp"),
    **{f"provider {name}": Kind(provider=name) for name in providers.names()},
    "provider openai, a model that thinks": Kind(provider="openai", model="gpt-5.1"),
    "provider together, which serves by vLLM": Kind(VLLM.entry, sent="vllm", provider="together"),
}
"""Engines that are started here, by what their files say of their servers or more than that; and hosted ones."""


def test_every_engine_and_every_provider_is_here() -> None:
    filling = {one.name for one in engines.profiles() if one.neutral is not None}
    assert {one.sent for one in KINDS.values()} - {None} == filling
    assert {one.provider for one in KINDS.values()} - {None} == {*providers.names()}


def recording(kind: Kind) -> Callable[[Request], Iterator[Step]]:
    """A server of that kind; it answers every question with a box, and every judge's with a verdict."""

    def reply(request: Request) -> Reply:
        said = Said("So \\boxed{2}\n**VERDICT: CORRECT**" if request.json.get("stream") else "So it is.", 5)
        return said if request.path.partition("?")[0].endswith("/chat/completions") else [http(404, {})]

    return serving(reply, kind.model, pages=kind.pages, **kind.entry)


OWN = {"messages", "prompt", "temperature", "top_p", "logprobs", "top_logprobs"}
"""What each asks for by itself: a run what its card says, a judge greedy replies."""

SEEDS, LENGTHS = {"seed", "random_seed"}, {"max_tokens", "max_completion_tokens"}
SHOWN = {"authorization", "api-key", "accept-encoding", "content-type", "user-agent", *map(str.lower, HEADER)}


def spelled(request: Request) -> dict[str, Any]:
    """How a request is written. common: all fields but what is each one's own; stream: its options, "" for a whole
    reply; headers: with keys and what the user adds."""
    body = request.json
    own = OWN | {"stream", "stream_options"} | SEEDS | LENGTHS
    return {
        "common": {name: value for name, value in body.items() if name not in own},
        "length": LENGTHS & body.keys(),
        "headers": {name: value for name, value in request.headers.items() if name in SHOWN},
        "seed": next(iter(SEEDS & body.keys()), None),
        "stream": json.dumps(body.get("stream_options")) if body["stream"] else "",
    }


BASE = tuple(one for one in probe.CHECKS if one.name in ("streaming", "seeds"))
"""Checks that are about nothing but the sampling and the form of a reply."""


def asked(server: FakeServer) -> list[dict[str, Any]]:
    """How the requests since the last look are written."""
    posted = [spelled(one) for one in server.requests if one.path.endswith("/chat/completions")]
    server.requests.clear()
    return posted


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with an answer that the rules leave undecided; it is graded once, for all."""
    folder = tmp_path_factory.mktemp("graded")
    score_run(write_run(folder / "judged", {"q": (PROSE, [r"\boxed{\text{sugar}}"])}), GradingOptions(workers=1))
    return folder


@pytest.fixture
def folder(graded: Path, tmp_path: Path) -> Path:
    """A copy of it, whose sample no judge has seen."""
    return shutil.copytree(graded, tmp_path / "graded")


def ask_all(kind: Kind, server: FakeServer, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """By who asks, how the requests are written."""
    who = {"model": kind.model, "base_url": server.base_url, "header": HEADER, "api_key_env": "ONE_ASKER_KEY"}
    who |= {"provider": kind.provider} if kind.provider else {}
    drop = ("temperature", "top_p") if "gpt-5" in kind.model else "top_p"
    data = {"data": sums(folder, 1), "samples": 1, "drop": drop, "canary": False}
    harness.run(**data, **who, out=folder / "run")  # type: ignore[arg-type]
    run = asked(server)
    judge = judging.judge_of(JudgeOptions.of(**who))
    judged = RunFolder(folder / "judged")
    score_with_judge(judged, grade_run(judged, GradingOptions(workers=1)), judge)
    judges = asked(server)
    probe.probe(ProbeOptions.of(**who))
    return {"run": run, "judge": judges, "probe": asked(server)}


@pytest.fixture(autouse=True)
def _around(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ONE_ASKER_KEY", KEY)
    monkeypatch.setattr(probe, "select", lambda *_, **__: BASE)


@pytest.mark.parametrize("name", thinned(KINDS))
def test_all_who_ask_write_their_requests_alike(name: str, folder: Path) -> None:
    kind = KINDS[name]
    with FakeServer(recording(kind)) as server:
        by_command = ask_all(kind, server, folder)
    (first,) = by_command["run"]
    assert KEY in "".join(first["headers"].values())
    assert first["headers"]["x-team"] == "blue"
    filled = engines.profile(kind.sent).neutral
    neutral = {} if filled is None else dict(filled.values)
    assert {n: v for n, v in first["common"].items() if n != "model"} == neutral
    for who, requests in by_command.items():
        assert requests, f"{who} asked nothing"
        for one in requests:
            assert {**one, "seed": first["seed"], "stream": first["stream"]} == first, who
            assert (one["seed"] in (first["seed"], None), one["stream"] in (first["stream"], "")) == (True, True), who
