"""The command and Python send the same requests, and the manifest records what happened.

For: harness.preparing, harness.options, harness.commands.run, harness.probes, harness.results.
"""

from __future__ import annotations

import asyncio
import doctest
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import harness
from harness.cli.main import main
from harness.core.options import options_of
from harness.options.run import RunOptions
from harness.reports.inputs import read_without_grades
from harness.reports.settings import given_table
from harness.runs import RunFolder, read_samples
from harness.testing import FAULTS, FakeServer, Pause, Request, Said, Step, scripted, serving
from server_launchers.lifecycle import servers
from tests.commands.toy_model import Fault, Toy, answering
from tests.conftest import CHECKOUT
from tests.pins.scenes.decide import PUBLISHED
from tests.pins.server import solving

SLOTS = {"total_slots": 3, "default_generation_settings": {"n_ctx": 40960}}


as_llama_cpp = serving(Said(r"so \boxed{2}", 5), "m", pages={"/props": SLOTS}, meta={"n_ctx_train": 1})
"""Lists one model of llama.cpp's kind, states its slots, answers."""


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(4)))
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
    assert code == (0 if by_python.passed else 1)
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
    assert (rows["order"], rows["seed_field"], rows["temperature"]) == ("default", "server", "preset r1")
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


# -- calls from Python -------------------------------------------------------------------------------------------------


ABLE = CHECKOUT / "tests" / "commands" / "able_server.py"


given = serving(Said(r"so \boxed{2}", 5), "m")
"""Lists one model; answers every question with 2."""


def test_a_run_is_sampled_scored_and_reported_from_python(questions: Path) -> None:
    seen = []
    with FakeServer(given) as server:
        options: Any = {"data": questions, "id_key": "id", "base_url": server.base_url, "samples": 2, "out": "run"}
        run = harness.run(**options, canary=False, on_progress=seen.append)
        n_asked = len(server.requests)
        again = harness.run(**options, canary=False)
    assert run.complete
    assert again.complete
    assert again.outcome.tally.finished == 0
    assert n_asked == sum(r.method == "GET" for r in server.requests[:n_asked]) + 8
    assert seen[-1].done == 8
    assert repr(run) == f"<Run {run.path}: m, 8 of 8 samples, complete>"
    assert {sample.key for sample in run.samples()} == {(f"q{n}", i) for n in range(4) for i in (0, 1)}

    scores = harness.score(run, workers=1)
    assert scores["sums"].accuracy.value == 0.25
    assert [row["n_samples"] for row in scores.records()] == [8]
    assert "sums: 25.0%, 4.4 to 51.2 (same questions), " in repr(scores)
    assert "| sums" in scores._repr_markdown_()
    report = harness.report([run], out="report", plots="plots")
    assert {path.suffix for path in Path("plots").iterdir()} == {".csv", ".svg"}
    assert "sums" in report.markdown()
    assert {path.suffix for path in Path("report").iterdir()} == {".csv", ".html", ".md", ".tex"}


def test_a_server_is_started_and_stopped_for_a_run(questions: Path) -> None:
    options: dict[str, Any] = {"data": questions, "id_key": "id", "max_tokens": 4, "limit": 2, "samples": 1}
    options |= {"canary": False}
    program = (sys.executable, str(ABLE), "--port", "{port}")
    before = {server.name for server in servers.status()}
    with harness.serve("command", "able", extra_flags=program) as server:
        assert harness.run(base_url=server.name, out="a", **options).complete
    started = harness.run(model="able", serve={"engine": "command", "extra_flags": program}, out="b", **options)
    assert started.complete
    assert {server.name for server in servers.status()} == before, "a server was not stopped"
    with pytest.raises(harness.UsageError, match=r"threads=0: expected .*1"):
        harness.serve("llama_cpp", "m", threads=0)
    with pytest.raises(harness.UsageError, match=r"serve='lama_cpp': unknown engine; .* Did you mean llama_cpp"):
        harness.serve("lama_cpp", "m")


def test_a_run_in_a_thread_leaves_the_callers_loop_to_others(questions: Path) -> None:
    """The server answers only when a ticker on the loop has ticked on meanwhile."""
    ticks = 0

    def answer_after_ticks(request: Request) -> Iterator[Step]:
        before = ticks
        while request.method == "POST" and ticks < before + 3:
            yield Pause(0.001)
        yield from given(request)

    async def main(url: str) -> harness.Run:
        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticker = asyncio.create_task(tick())
        run = await asyncio.to_thread(harness.run, data=questions, base_url=url, out="run", canary=False)
        ticker.cancel()
        return run

    with FakeServer(answer_after_ticks) as server:
        assert asyncio.run(main(server.base_url)).complete


def test_a_budget_is_for_all_stages_and_sessions_of_a_run_folder(questions: Path) -> None:
    asked = {"data": questions, "out": "staged", "canary": False, "samples": 64, "target_error": 0.2}
    asked |= {"prices": (1, 1)}
    with FakeServer(given) as server:

        def n_tokens() -> int:
            return 5 * sum(request.method == "POST" for request in server.requests)

        with pytest.raises(harness.StoppedByRule, match=r"stopped by the budget: \d+ of 300 tokens used") as stopped:
            harness.run(**asked, base_url=server.base_url, max_tokens=5, budget_tokens=300)
        assert 5 * 4 * 8 < n_tokens() <= 300
        assert f": {n_tokens()} of 300" in str(stopped.value)
        n_before = n_tokens()
        for logged in (True, False):
            if not logged:  # as after a session that was killed: what is stored counts
                log = questions.parent / "staged" / "log.jsonl"
                lines = log.read_text("utf-8").splitlines(keepends=True)
                log.write_text("".join(line for line in lines if "session_ended" not in line), "utf-8")
            with pytest.raises(harness.StoppedByRule, match=rf": {n_before} of 300 tokens used.* raise it") as again:
                harness.run(**asked, base_url=server.base_url, max_tokens=5, budget_tokens=300)
            assert (n_tokens() - n_before, "same command" in str(again.value)) == (0, False)
        with pytest.raises(harness.StoppedByRule, match=r" of 600 tokens used"):
            harness.run(**asked, base_url=server.base_url, max_tokens=5, budget_tokens=600)
        assert n_before < n_tokens() <= 600, "what is raised is used"


def test_progress_is_shown_on_request_even_after_the_run(questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(_progress: Any) -> None:
        raise RuntimeError("enough")

    with FakeServer(given) as server:
        options: Any = {"data": questions, "base_url": server.base_url, "canary": False}
        harness.run(**options, out="silent")
        assert capsys.readouterr() == ("", "")
        harness.run(**options, out="shown", progress=True)
        out, err = capsys.readouterr()
        with pytest.raises(RuntimeError, match="enough"):
            harness.run(**options, out="ended", progress=True, on_progress=stop)
    assert (out, err.count("\n"), err.startswith("4/4 samples (100%) · 20 tokens")) == ("", 1, True)
    assert capsys.readouterr().err.count("/4 samples (") == 1


def test_the_keywords_of_run_are_the_fields_of_its_options() -> None:
    shown = inspect.signature(harness.run).parameters
    assert shown.keys() == options_of(RunOptions).keys() | {"on", "judge", "progress", "on_progress"}
    assert shown["canary"].default is True


CLIENT = "harness.client.request_fields, harness.client.facts.discovery, harness.generation.dispatch.retry"


@pytest.mark.parametrize(("names", "more"), [("harness; dir(harness)", "sympy pydantic click asyncio"), (CLIENT, "")])
def test_neither_the_package_nor_its_client_imports_what_is_heavy(names: str, more: str) -> None:
    heavy = ["openai", "httpx", "httpx2", "starlette", "numpy", *more.split()]
    code = f"import sys, {names}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_lists_its_names_each_of_which_is_there() -> None:
    assert dir(harness) == sorted(harness.__all__)
    assert [name for name in harness.__all__ if getattr(harness, name) is None] == []
    with pytest.raises(AttributeError, match="no attribute 'evaluate'"):
        harness.evaluate  # type: ignore[attr-defined]  # noqa: B018


def test_the_readmes_example_and_that_of_each_function_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (of_readme,) = re.findall("```python\n(.*?)```", (CHECKOUT / "README.md").read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    published = PUBLISHED.replace("sums: 6", "demo: 40").replace("sums", "demo").replace("30", "10")
    Path("our-scores.yaml").write_text(published, "utf-8")
    Path("temperatures.yaml").write_text("benchmarks: [demo:1]\nsampling: [{temperature: 0.2}]\nrun: {limit: 5}\n")
    functions = [
        inspect.unwrap(value) for name in harness.__all__ if inspect.isfunction(value := getattr(harness, name))
    ]
    with FakeServer(solving(60)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        here = {"http://127.0.0.1:8000": server.base_url, "able_server.py": str(ABLE), '"python"': repr(sys.executable)}
        names: dict[str, Any] = {"harness": harness}
        exec(compile(of_readme, "README.md", "exec"), names)
        assert names["run"].complete
        names["other"] = harness.run("demo:2", temperature=1.0, out="results/other")
        harness.score(names["other"], workers=1)
        runner, parser = doctest.DocTestRunner(), doctest.DocTestParser()
        for function in sorted(functions, key=lambda function: function.__code__.co_firstlineno):
            text = re.sub("|".join(here), lambda found: here[found[0]], inspect.getdoc(function) or "")
            example = parser.get_doctest(text, names, function.__name__, None, None)
            assert runner.run(example, clear_globs=False).attempted, f"{function.__name__} has no example"
            names |= example.globs
    assert runner.summarize(verbose=False).failed == 0


def test_the_page_of_the_python_door_names_all_that_is_public() -> None:
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text("utf-8")
    assert [name for name in harness.__all__ if not re.search(rf"`(?:harness\.|await )?{name}\b", page)] == []


def test_a_reference_may_be_a_number_or_the_parts_of_one_answer() -> None:
    parts: Any = ["1", "2"]
    half: Any = 0.5
    assert harness.grade(parts, r"\boxed{1, 2}")
    assert not harness.grade(parts, r"\boxed{1, 3}")
    assert harness.grade(half, r"\boxed{1/2}")


@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "silence"])
def test_the_public_fake_makes_each_fault_once_and_its_replies_in_turn(fault: str, tmp_path: Path) -> None:
    with FakeServer(scripted(r"\boxed{4}", r"\boxed{5}", faults=[fault])) as server:
        run = harness.run("demo:2", limit=2, base_url=server.base_url, out=tmp_path / "run", canary=False)
        requests = [request for request in server.requests if request.method == "POST"]
        whole = httpx.post(f"{server.base_url}/chat/completions", json={"messages": []}, timeout=None).json()
    assert run.complete
    assert len(requests) == 5
    assert sorted(sample.text or "" for sample in read_samples(RunFolder(tmp_path / "run").benchmark("demo"))) == [
        *[r"\boxed{4}"] * 2,
        *[r"\boxed{5}"] * 2,
    ]
    assert whole["choices"][0]["message"]["content"] == r"\boxed{4}"


@pytest.mark.parametrize("faults", ["429", ["404"]])
def test_a_fault_without_a_name_is_refused(faults: Any) -> None:
    with pytest.raises(ValueError, match="expected a list of names from 500, 502, 429, reset"):
        scripted("x", faults=faults)
