"""One road: both doors send the same bodies, servers are looked at once, the manifest says what happened.

For: harness.preparing, harness.options, harness.commands.run, harness.probes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harness
from harness.cli.main import main
from harness.reports.scored import read_without_grades
from harness.reports.settings import given_table
from harness.runs import RunFolder
from harness.testing import FakeServer, Said, serving
from tests.commands.toy_model import Fault, Toy, answering

SLOTS = {"total_slots": 3, "default_generation_settings": {"n_ctx": 40960}}


as_llama_cpp = serving(Said(r"so \boxed{2}", 5), "m", pages={"/props": SLOTS}, meta={"n_ctx_train": 1})
"""Lists one model of llama.cpp's kind, states its slots, answers."""


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(3)))
    return path


def command(monkeypatch: pytest.MonkeyPatch, *words: str, verb: str = "run") -> int:
    """`harness VERB WORDS` in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["harness", verb, *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def posted(server: FakeServer) -> list[Any]:
    """What was asked, in an order of its own."""
    return sorted((r.json for r in server.requests if r.method == "POST"), key=json.dumps)


# ---- Python = command


def test_a_probe_is_the_same_from_both_doors(
    questions: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--checks", "streaming,usage", "--context", "2048", "--seed", "3", "--header", "X: y")
    options = {"checks": ["streaming", "usage"], "context": 2048, "seed": 3, "header": {"X": "y"}}
    with FakeServer(answering(Toy(), Fault())) as python, FakeServer(answering(Toy(), Fault())) as line:
        by_python = harness.probe(python.base_url, quick=True, **options)
        words = (line.base_url, *words, "--quick", "--json")
        code = command(monkeypatch, *words, verb="probe")
    by_line = json.loads(capsys.readouterr().out)
    shown = json.loads(msgspec.json.encode(by_python))
    for report in (shown, by_line):
        del report["seconds"], report["address"]
    assert shown == by_line
    assert code == (0 if by_python.passed else 4)
    assert [finding["check"] for finding in by_line["findings"]] == ["streaming", "usage"]
    assert posted(python) == posted(line) != []
    assert {r.headers["x"] for server in (python, line) for r in server.requests if r.method == "POST"} == {"y"}


# ---- one look


def test_each_server_is_looked_at_once(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(as_llama_cpp) as one, FakeServer(as_llama_cpp) as other:
        words = ("--data", str(questions), "--base-url", one.base_url, "--base-url", other.base_url, "--no-canary")
        assert command(monkeypatch, *words, "--out", "run") == 0
        for server in (one, other):
            looked = [r.path for r in server.requests if r.method == "GET"]
            assert looked == ["/v1/models", "/props"]
    manifest = json.loads(Path("run/manifest.json").read_bytes())
    assert manifest["benchmarks"]["sums"]["settings"]["concurrency"] == 6


def test_a_server_that_is_down_is_no_error_where_nothing_is_owed(
    questions: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--data", str(questions), "--no-canary", "--out", "run", "--model", "m")
    with FakeServer(as_llama_cpp) as server:
        assert command(monkeypatch, *words, "--base-url", server.base_url) == 0
    assert command(monkeypatch, *words, "--base-url", server.base_url) == 0
    assert "no samples are missing" in capfd.readouterr().err
    assert command(monkeypatch, *words, "--base-url", server.base_url, "--samples", "2") == 2
    assert f"127.0.0.1:{server.port}" in capfd.readouterr().err
    assert command(monkeypatch, *words, "--base-url", server.base_url, "--dry-run") == 2


# ---- the manifest says what happened


def recorded(run: harness.Run, name: str = "sums") -> dict[str, Any]:
    return dict(json.loads((run.path / "manifest.json").read_bytes())["benchmarks"][name]["settings"])


def test_the_record_is_what_the_server_saw(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "sk-groq-0123456789")
    with FakeServer(serving("2", "qwen/qwen3-32b")) as server:
        run = harness.run(
            data=questions,
            base_url=server.base_url,
            provider="groq",
            model="qwen/qwen3-32b",
            out="run",
            canary=False,
            thinking="off",
            preset="r1",
            top_k=5,
            samples=1,
            extra_body={"service_tier": "auto"},
        )
    said = recorded(run)
    for body in posted(server):
        assert body["stream"] is said["stream"] is True
        assert ("stream_options" in body) is said["stream_usage"]
        assert {said["max_tokens_field"], said["seed_field"], "service_tier", "reasoning_effort"} <= body.keys()
        assert set(said["sampling_from"]) - {"max_tokens", "samples"} <= body.keys()
    assert said["sampling_from"] == {
        "temperature": "preset r1",
        "top_p": "preset r1",
        "top_k": "options",
        "max_tokens": "default",
        "samples": "options",
        "model": "options",
    }
    read = read_without_grades(RunFolder(run.path))
    rows = {setting: who for setting, _, who in given_table(read, "sums").rows}
    assert {rows[name] for name in ("extra_body.service_tier", "canary", "top_k", "samples", "model")} == {"options"}
    assert (rows["salvage"], rows["seed_field"], rows["temperature"]) == ("default", "server", "preset r1")
    manifest = (run.path / "manifest.json").read_text("utf-8")
    assert json.loads(manifest)["environment"]["provider"] == "groq"
    assert "sk-groq" not in manifest


def test_a_proxy_is_recorded_without_its_password(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with FakeServer(as_llama_cpp) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:pa%3Ass@127.0.0.1:{proxy.port}")
        run = harness.run(data=questions, base_url="http://api.example.test/v1", out="run", canary=False)
    assert {r.path for r in proxy.requests if r.method == "POST"} == {"http://api.example.test/v1/chat/completions"}
    (said,) = recorded(run)["endpoints"]
    assert (said["transport"], said["proxy"]) == ("http", f"127.0.0.1:{proxy.port}")
    manifest = (run.path / "manifest.json").read_text("utf-8")
    assert "pa:ss" not in manifest
    assert "pa%3Ass" not in manifest


# ---- what the model's card speaks against is a warning


@pytest.mark.parametrize(
    ("model", "given", "warned"),
    [
        ("openai/gpt-oss-20b", {}, ("temperature 1 (not 0.6), top_p 1 (not 0.95)", "no effort is set")),
        (
            "deepseek-ai/DeepSeek-V3.2",
            {},
            ("no thinking: the model thinks only if its chat template enables thinking",),
        ),
        ("deepseek-ai/DeepSeek-V3.2", {"extra_body": {"chat_template_kwargs": {"thinking": True}}}, ()),
    ],
)
def test_what_the_card_speaks_against_is_warned_of_and_asked_all_the_same(
    questions: Path, model: str, given: dict[str, Any], warned: tuple[str, ...]
) -> None:
    with FakeServer(serving("2", model)) as server:
        run = harness.run(data=questions, base_url=server.base_url, out="run", canary=False, **given)
    assert {body["temperature"] for body in posted(server)} == {0.6}
    warnings = " ".join(run.warnings)
    assert (run.complete, [one for one in warned if one not in warnings]) == (True, [])
    assert warned or "thinks only where" not in warnings
