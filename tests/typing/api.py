"""The public signatures, as `mypy --strict` sees them from outside (`make check`); never run.

A line with `type: ignore[…]` must be an error: an ignore that is not needed is one itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import harness
from harness.generation.run_progress import Progress
from harness.scoring.score import Score
from server_launchers.lifecycle.launch import RunningServer


def runs(progressed: Callable[[Progress], None]) -> None:
    run = harness.run("aime24:64,math500", base_url="http://127.0.0.1:8000", temperature=0.6, thinking="on", seed=None)
    assert_type(run, harness.Run)
    assert_type(run.path, Path)
    assert_type(run.complete, bool)
    assert_type(run.warnings, tuple[str, ...])
    harness.run(["aime24"], base_url=["http://a", "http://b"], header={"X-Team": "a"}, on_progress=progressed)
    harness.run("aime24", model="m", serve="vllm")
    harness.run("aime24", model="m", serve={"engine": "vllm", "tp": 8}, out=Path("results/a"), target_error=1)
    harness.run("aime24", temprature=0.6)  # type: ignore[call-arg]
    harness.run("aime24", thinking="maybe")  # type: ignore[arg-type]
    harness.run("aime24", samples="4")  # type: ignore[arg-type]


def scores(run: harness.Run) -> None:
    found = harness.score(run, judge=harness.Judge(model="judge", scope="all"), workers=4)
    assert_type(found, harness.Scores)
    assert_type(harness.merge([run, "results/b"], out="results/c"), harness.Merged)
    harness.score(harness.merge([run, "results/b"], out=Path("results/c")))
    assert_type(found["aime24"], Score)
    assert_type(found[0], Score)
    assert_type([score.accuracy and score.accuracy.value for score in found], list[float | None])
    harness.score(run, judge=harness.Judge(model="judge"), prices=(0.5, 2))
    harness.score("outputs.jsonl", response_key="gen", tool="lm_eval")
    harness.score(run, judge="judge")  # type: ignore[arg-type]
    assert_type(harness.report([run, "results/b"], out="report"), harness.Report)
    assert_type(harness.report(run).markdown(), str)


def experiments(run: harness.Run) -> None:
    assert_type(harness.compare(["a", "b"])[0].decision.run, str)
    assert_type(harness.plan("results/run", 2)[0].samples, int | None)
    swept = harness.sweep("limo10", model="GAIR/LIMO", serve="vllm", judge=harness.Judge(model="judge"))
    assert_type(swept, harness.Swept)
    assert_type(swept.lost, dict[str, str])
    assert_type(swept.records(), list[dict[str, Any]])
    harness.sweep("limo10", modle="GAIR/LIMO")  # type: ignore[call-arg]
    harness.score(run, k=10)
    harness.report([run])


def grades() -> None:
    verdict = harness.grade("1/2", r"so \boxed{0.5}", kind="number")
    assert_type(verdict, harness.Verdict)
    assert_type(verdict.correct, bool)
    assert_type(verdict.extracted, str | None)


def probes() -> None:
    report = harness.probe("http://127.0.0.1:8000", checks="sampling")
    assert_type(report.passed, bool)
    assert_type([finding.fix for finding in report.findings], list[str])
    harness.probe("http://127.0.0.1:8000", serve="vllm")  # type: ignore[call-arg]


def serves() -> None:
    with harness.serve("vllm", "Qwen/QwQ-32B", tp=8) as server:
        assert_type(server, RunningServer)
        harness.run("aime24", base_url=server.name)


def fails() -> None:
    try:
        harness.run("aime24")
    except harness.UsageError as error:
        assert_type(error.field, str | None)
    except harness.HarnessError as error:
        assert_type(error.exit_code, int)
