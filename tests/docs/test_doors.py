"""The files of examples/doors work where others are to put them: a runner of srt-slurm, a CI step, a gate, a table."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.testing import FakeServer, serving
from tests.docs.pages import ROOT
from tests.docs.test_howto import made_up_answers
from tests.docs.test_printed import made_up
from tests.system.command import environment, harness

DOORS = ROOT / "examples" / "doors"

ANSWERS = serving(made_up_answers, "smollm2-135m")


def run(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program with `harness` on its path."""
    own = environment(folder, {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **variables})
    return subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False)


def test_the_runner_of_srt_slurm_runs_and_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = types.ModuleType("srtctl.benchmarks.base")
    vars(base).update(BenchmarkRunner=object, register_benchmark=lambda _name: lambda cls: cls)
    for name in ("srtctl", "srtctl.benchmarks"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, base.__name__, base)
    runner = runpy.run_path(str(DOORS / "srt_slurm_runner.py"))["HarnessRunner"]()
    variables = {"BENCHMARKS": "demo:1", "OUT": str(tmp_path / "out")}
    config = SimpleNamespace(benchmark=SimpleNamespace(env=variables), served_model_name="smollm2-135m")
    assert runner.validate_config(config) == []
    with FakeServer(ANSWERS) as server:
        port = int(server.base_url.removesuffix("/v1").rpartition(":")[2])
        command = runner.build_command(config, SimpleNamespace(frontend_port=port))
        done = run(command, tmp_path, **runner.get_environment(config, None))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").exists()


def test_a_change_of_vllm_is_compared_with_its_base(tmp_path: Path) -> None:
    with FakeServer(ANSWERS) as base, FakeServer(ANSWERS) as change:
        variables = {"BASE": base.base_url, "CHANGE": change.base_url, "MODEL": "smollm2-135m", "BENCHMARKS": "demo:4"}
        done = run([str(DOORS / "vllm_ci.sh")], tmp_path, **variables)
    assert done.returncode in (0, 1, 4), done.stderr
    assert all(words in done.stdout for words in ("same questions", "new questions", "margin 2 points")), done.stdout


def test_the_recovery_of_a_copy_has_its_interval(tmp_path: Path) -> None:
    for name, accuracy in (("base", 0.6), ("copy", 0.57)):
        made_up(tmp_path, name, accuracy, 7)
    done = run([sys.executable, str(DOORS / "recovery.py"), "base", "copy"], tmp_path)
    recovery, low, high, copy, of_base = map(float, re.findall(r"[\d.]+(?= %| to|\))", done.stdout))
    assert low < recovery < high
    assert recovery == pytest.approx(100 * copy / of_base, abs=0.2)


def test_the_gate_in_place_of_a_limit_keeps_what_it_promises(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"question": f"What is {n} + 1?", "answer": n + 1}) + "\n" for n in range(1319))
    (tmp_path / "rows.jsonl").write_text(rows)
    card = "title: t\nsource: {kind: file, path: rows.jsonl}\ncolumns: {question: question, answer: answer}\n"
    (tmp_path / "gsm8k.yaml").write_text(card)
    words = ["gate", str(DOORS / "gate_gsm8k.yaml"), "--dry-run"]
    result = harness(tmp_path, *words, extra={"HARNESS_DATASETS": str(tmp_path)})
    assert result.code == 0, result.out + result.err
