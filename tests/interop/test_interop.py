"""Each format of `harness export`, opened by the real package."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import harness
from harness.benchmarks import catalog, questions
from harness.runs import RunFolder, grades, read_samples
from harness.scoring.score import Score
from tests.benchmarks.hub_server import Dataset, jsonl, serve
from tests.benchmarks.test_benchmarks_eval_yaml import CHOICE, COLUMNS, IN_COLUMNS, LISTED, MATHS, SUMS, text
from tests.interop.conftest import Asking


@pytest.fixture
def score(run: RunFolder) -> Score:
    stored_score = Score.load(run.benchmark("math500"))
    assert stored_score is not None
    return stored_score


def right(run: RunFolder) -> set[tuple[str, int]]:
    return {tuple(g.key) for g in grades.read(run.benchmark("math500")) if g.verdict == "correct"}


def test_inspect_reads_the_log(run: RunFolder, score: Score, tmp_path: Path, ask: Asking) -> None:
    path = harness.export(run, "inspect", out=tmp_path).files[0].path
    program = """
import json
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
from inspect_ai.analysis import samples_df
log = read_eval_log(PATH)
one = read_eval_log_sample(PATH, id="q1", epoch=1)
scores = log.results.scores[0]
print(json.dumps({
    "status": log.status, "model": log.eval.model, "accuracy": scores.metrics["accuracy"].value,
    "stderr": scores.metrics["stderr"].value, "interval": scores.metadata["sampling_interval"],
    "samples": [[s.id, s.epoch, s.output.completion, s.scores["harness"].value] for s in log.samples],
    "summaries": len(read_eval_log_sample_summaries(PATH)),
    "reasoning": one.output.choices[0].message.content[0].reasoning,
    "frame": len(samples_df(PATH)),
}))
"""
    log = json.loads(ask(program, str(path)))
    assert (log["status"], log["model"]) == ("success", "openai-api/org/model-7b")
    assert (log["accuracy"], log["stderr"]) == (score.accuracy.value, score.question_error)
    assert log["interval"] == list(score.accuracy.sampling or ())
    assert {(i, epoch - 1) for i, epoch, _, value in log["samples"] if value == "C"} == right(run)
    texts = {
        (sample.question_id, sample.sample_index): sample.text for sample in read_samples(run.benchmark("math500"))
    }
    assert {(i, epoch - 1) for i, epoch, _, _ in log["samples"]} == set(texts)
    assert all(text == (texts[i, epoch - 1] or "") for i, epoch, text, _ in log["samples"] if "\ufffd" not in text)
    assert log["summaries"] == log["frame"] == len(texts)
    assert log["reasoning"] == "\nOne and one.\n"


@pytest.mark.parametrize("model", ["org/model-7b", "model-7b"])
@pytest.mark.parametrize("engine", ["vllm", "llama.cpp", None])
@pytest.mark.parametrize(("to", "source"), [("inspect", "inspect"), ("lm-eval", "lm_eval")])
def test_every_eval_evers_converters_read_our_files(
    run: RunFolder, tmp_path: Path, python: Path, model: str, engine: str | None, to: str, source: str
) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    named = RunFolder(tmp_path / "run")
    servers = {"a": {"model": {}, "host": {} if engine is None else {"engine": engine}}}
    manifest = json.loads(named.manifest.read_bytes()) | {"model": model, "provenance": {"servers": servers}}
    named.manifest.write_text(json.dumps(manifest))
    log = harness.export(named, to, out=tmp_path / "log").files[0].path
    words = [python, "-m", "every_eval_ever", "convert", source, "--log_path", log, "--output_dir", tmp_path / "out"]
    source_words = ["--source_organization_name", "x", "--evaluator_relationship", "first_party"]
    source_words += ["--include_samples"] if source == "lm_eval" else []
    done = subprocess.run([*words, *source_words], capture_output=True, text=True, check=False, cwd=tmp_path)
    if source == "lm_eval" and "/" not in model:  # docs/exports.md names this limit of theirs
        assert (done.returncode, "model_info.developer is required" in done.stderr) == (1, True)
        return
    assert done.returncode == 0, done.stderr[-3000:]
    assert any(path.suffix == ".json" for path in (tmp_path / "out").rglob("*.json"))


@pytest.mark.parametrize("to", ["sharegpt", "alpaca", "trl"])
def test_datasets_loads_training_data(run: RunFolder, tmp_path: Path, ask: Asking, to: str) -> None:
    file = harness.export(run, to, out=tmp_path, i_know=True).files[0]
    program = """
from datasets import load_dataset
print(len(load_dataset("json", data_files=PATH, split="train", cache_dir=PATH + ".cache")))
"""
    assert int(ask(program, str(file.path)).split()[-1]) == file.n


def test_duckdb_and_pandas_read_the_table(run: RunFolder, tmp_path: Path, ask: Asking) -> None:
    path = harness.export(run, "parquet", out=tmp_path).files[0].path
    program = """
import duckdb, pandas
(n, right), = duckdb.sql(f"SELECT count(*), sum(correct::INT) FROM '{PATH}'").fetchall()
print(n, right, int(pandas.read_parquet(PATH)["correct"].sum()))
"""
    assert ask(program, str(path)).split() == ["20", str(len(right(run))), str(len(right(run)))]


def test_inspect_reads_eval_yaml_the_same_way(tmp_path: Path, ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = {"listed": (CHOICE, LISTED), "columns": (COLUMNS, IN_COLUMNS), "sums": ({**MATHS, "id": "sums"}, SUMS)}
    for name, (_, rows) in tasks.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "test.jsonl").write_bytes(jsonl(rows))
    path = tmp_path / "eval.yaml"
    path.write_bytes(text(*({**task, "config": name} for name, (task, _) in tasks.items())))
    program = """
import json, pathlib, yaml
from inspect_ai._eval.task.hf import HFTask, _record_to_sample_hf
found = {}
for said in yaml.safe_load(open(PATH))["tasks"]:
    task = HFTask.model_validate(said)
    rows = map(json.loads, open(pathlib.Path(PATH).parent / task.config / "test.jsonl"))
    samples = [_record_to_sample_hf(row, task.field_spec) for row in rows]
    found[task.id] = [[one.input, one.target, one.choices] for one in samples]
print(json.dumps(found))
"""
    theirs = json.loads(ask(program, str(path)))
    files = {file.relative_to(tmp_path).as_posix(): file.read_bytes() for file in tmp_path.rglob("*.*l*")}
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    built = {}
    with serve() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.datasets["someone/sums"] = Dataset({"a" * 40: files})
        for name in theirs:
            built[name] = questions.build(catalog.load(f"hf://datasets/someone/sums#{name}")).questions
    for name, samples in theirs.items():
        ours = built[name]
        assert len(ours) == len(samples) > 0
        for question, (asked, target, choices) in zip(ours, samples, strict=True):
            assert asked in question.messages[-1].content
            if choices is None:
                assert question.references == (target,)
            else:
                right = question.choices["ABCDEFGHIJ".index(question.references[0])]
                assert right == choices["ABCDEFGHIJ".index(target)]
                assert sorted(question.choices) == sorted(choices)
