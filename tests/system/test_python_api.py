"""The Python front door does what the command does.

For: harness.results.
"""

from __future__ import annotations

import asyncio
import doctest
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import harness
from harness.core.options import options_of
from harness.options.run import RunOptions
from harness.runs import RunFolder, read_samples
from harness.testing import FAULTS, FakeServer, Pause, Request, Said, Step, scripted, serving
from server_launchers.lifecycle import servers
from tests.conftest import CHECKOUT
from tests.pins.scenes.decide import PUBLISHED
from tests.pins.server import solving

ABLE = CHECKOUT / "tests" / "commands" / "able_server.py"


answering = serving(Said(r"so \boxed{2}", 5), "m")
"""Lists one model; answers every question with 2."""


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(4)))
    return path


def test_a_run_is_sampled_scored_and_reported_from_python(questions: Path) -> None:
    seen = []
    with FakeServer(answering) as server:
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
    assert {path.suffix for path in Path("plots").iterdir()} == {".csv", ".png", ".svg"}
    assert "sums" in report.markdown()
    assert {path.suffix for path in Path("report").iterdir()} == {".csv", ".html", ".md", ".tex"}


def test_a_server_is_started_and_stopped_for_a_run(questions: Path) -> None:
    options: dict[str, Any] = {"data": questions, "id_key": "id", "max_tokens": 4, "limit": 2, "samples": 1}
    options |= {"canary": False, "fingerprint": False}
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
        yield from answering(request)

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


def test_a_budget_is_for_all_stages_of_a_run_with_a_target_error(questions: Path) -> None:
    asked = {"data": questions, "out": "staged", "canary": False, "samples": 64, "target_error": 0.2}
    asked |= {"prices": (1, 1)}
    with FakeServer(answering) as server:

        def n_tokens() -> int:
            return 5 * sum(request.method == "POST" for request in server.requests)

        with pytest.raises(harness.StoppedByRule, match=r"stopped by the budget: \d+ of 300 tokens used") as stopped:
            harness.run(**asked, base_url=server.base_url, max_tokens=5, budget_tokens=300)
        assert 5 * 4 * 8 < n_tokens() <= 300
        assert f": {n_tokens()} of 300" in str(stopped.value)
        assert "All sessions" not in str(stopped.value)
        n_before = n_tokens()
        with pytest.raises(harness.StoppedByRule, match=r"of 300 tokens used.* All sessions"):
            harness.run(**asked, base_url=server.base_url, max_tokens=5, budget_tokens=300)
        assert 0 < n_tokens() - n_before <= 300, "the next command has a budget of its own"


def test_progress_is_shown_where_it_is_asked_for_also_if_the_run_is_ended(
    questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(_progress: Any) -> None:
        raise RuntimeError("enough")

    with FakeServer(answering) as server:
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


CLIENT = "harness.client.spelling, harness.client.facts.discovery, harness.generation.dispatch.retry"


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
        run = harness.run(
            "demo:2", limit=2, base_url=server.base_url, out=tmp_path / "run", canary=False, fingerprint=False
        )
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
