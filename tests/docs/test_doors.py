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
import yaml

from harness.testing import FakeServer, serving
from tests.docs.pages import ROOT
from tests.docs.test_howto import DEMO, made_up_answers
from tests.docs.test_links import made_up
from tests.exports.test_lm_eval import READERS
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
    recovery, low, high, copy, of_base = map(float, re.findall(r"[\d.]+(?=%| to|\))", done.stdout))
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


def test_vllms_nightly_samples_with_the_harness(tmp_path: Path) -> None:
    with FakeServer(ANSWERS) as server:
        url, args = server.base_url.removesuffix("/v1"), "num_concurrent=4,max_length=2048,max_gen_toks=64"
        line = f'set -euo pipefail; source "$DOOR"; run_lm_eval smollm2-135m {url} demo:2 5 {args} results'
        done = run(["bash", "-c", line], tmp_path, DOOR=str(DOORS / "perf_eval_run_lm_eval.sh"))
    assert done.returncode == 0, done.stderr
    # What ingest.py looks for below the folder of the task.
    (path,) = (tmp_path / "results" / "demo:2").glob("**/results_*.json")
    assert len([*(tmp_path / "results" / "demo:2").glob("**/samples_*.jsonl")]) == 1
    record = json.loads(path.read_bytes())
    assert record["configs"]["demo"]["generation_kwargs"] == {"temperature": 0.0, "top_p": 1.0, "max_tokens": 64}
    assert record["n-samples"]["demo"]["effective"] == len(DEMO)


@pytest.mark.parametrize("concurrency", ["4", "2 4"])
def test_inferencex_samples_with_the_harness(tmp_path: Path, concurrency: str) -> None:
    library = READERS / "InferenceX" / "benchmarks" / "benchmark_lib.sh"
    if not library.is_file():
        pytest.skip("HARNESS_READERS names no folder with a checkout of InferenceX")
    script = f"""source {library}; source {DOORS / "inferencex_run_lm_eval.sh"}
        run_eval --port $OWN --task utils/evals/demo.yaml && append_lm_eval_summary"""
    with FakeServer(ANSWERS) as server:
        own = {"OWN": server.base_url.removesuffix("/v1").rpartition(":")[2], "MODEL": "smollm2-135m"}
        own |= {"EVAL_CONCURRENT_REQUESTS": concurrency, "EVAL_MAX_MODEL_LEN": "2048", "CONC": concurrency.split()[0]}
        done = run(["bash", "-c", script], tmp_path, **own)
    assert done.returncode == 0, done.stderr
    suffixes = [f"_conc{n}.json" for n in concurrency.split()] if " " in concurrency else [".json"]
    found = sorted(re.sub(r"results_.*\.\d{6}", "", path.name) for path in tmp_path.glob("results_*.json"))
    assert (found, (tmp_path / "meta_env.json").is_file()) == (suffixes, True)


def test_a_step_of_inferencex_leaves_the_results_in_its_folder(tmp_path: Path) -> None:
    with FakeServer(ANSWERS) as server:
        port = server.base_url.removesuffix("/v1").rpartition(":")[2]
        line = f'source "$DOOR"; run_lm_eval --port {port} --task evals/demo.yaml --results-dir out'
        done = run(
            ["bash", "-c", line],
            tmp_path,
            MODEL="smollm2-135m",
            CONC="4",
            DOOR=str(DOORS / "inferencex_run_lm_eval.sh"),
        )
    assert done.returncode == 0, done.stderr
    assert sorted(path.suffix for path in (tmp_path / "out").rglob("*.json*")) == [".json", ".jsonl"]


@pytest.mark.parametrize(("share", "code"), [(30.0, 0), (95.0, 1)])
@pytest.mark.parametrize("name", ["gitlab.yml", "buildkite.yml"])
def test_a_template_of_ci_gates_a_server(tmp_path: Path, name: str, share: float, code: int) -> None:
    template = yaml.safe_load((DOORS / name).read_text("utf-8"))
    if name == "gitlab.yml":
        script = "\n".join([f'export OUT="{template["gate"]["variables"]["OUT"]}"', *template["gate"]["script"]])
    else:
        script = template["steps"][0]["command"].replace("$$", "$")
    (tmp_path / "buildkite-agent").write_text('#!/bin/sh\necho "$@" && cat > annotated\n')
    (tmp_path / "buildkite-agent").chmod(0o755)
    with FakeServer(ANSWERS) as server:
        policy = {"run": {"base_url": server.base_url}, "benchmarks": {"demo": {"floor": share, "loss": 25}}}
        (tmp_path / "gate.yaml").write_text(yaml.safe_dump({"name": "t", "power": 50, "run_deviation": 0.5, **policy}))
        own = {"CI_PIPELINE_ID": "7", "BUILDKITE_BUILD_NUMBER": "7"}
        done = run(["bash", "-ec", f"PATH={tmp_path}:$PATH\n{script}"], tmp_path, **own)
    assert done.returncode == code, done.stdout + done.stderr
    reports = template["gate"]["artifacts"]["reports"]["junit"] if name == "gitlab.yml" else "results/gate-*/gate.md"
    assert [*tmp_path.glob(reports)]
    assert (name == "gitlab.yml") or (tmp_path / "annotated").read_text() == next(tmp_path.glob(reports)).read_text()
