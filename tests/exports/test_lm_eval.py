"""Results in lm-eval's form: its keys and names, the errors that it means, and its readers.

The readers run unchanged where HARNESS_READERS names a folder with them: checkouts `InferenceX`
(SemiAnalysisAI/InferenceX) and `perf-eval` (vllm-project/perf-eval), and lm_eval from
`pip install --target FOLDER lm_eval`.

For: harness.extensions.exporters.lm_eval.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.core.errors import UsageError
from harness.runs import RunFolder, grades
from harness.scoring.score import Score
from harness.testing import FakeServer, http
from tests.budget import examples
from tests.exports.graded_runs import complete, sample, varied, write_run
from tests.system.command import harness as command

READERS = Path(os.environ.get("HARNESS_READERS", "/nowhere"))
needs = pytest.mark.skipif(
    not READERS.is_dir(), reason="HARNESS_READERS names no folder with readers of lm-eval's form"
)


def results(run: RunFolder | list[RunFolder], out: Path) -> dict[str, Any]:
    return json.loads(harness.export(run, "lm_eval", out=out).files[0].path.read_bytes())  # type: ignore[no-any-return]


def gsm8k(folder: Path, n: int = 30, **more: Any) -> RunFolder:
    return write_run(folder, {"gsm8k": complete("gsm8k", n)}, questions=n, of_each=1, **more)


def test_the_form_is_lm_evals_and_names_its_writer(tmp_path: Path) -> None:
    runs = [gsm8k(tmp_path / "a"), write_run(tmp_path / "b", varied())]
    done = command(tmp_path, "export", "a", "b", "--to", "lm_eval", "--out", "out", "--json")
    assert done.code == 0, done.err
    moment = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}"
    names = sorted(re.sub(moment, "TIME", path.name) for path in (tmp_path / "out" / "org__model-7b").iterdir())
    assert names == ["results_TIME.json", "samples_gsm8k_TIME.jsonl", "samples_own_TIME.jsonl"]
    record = results(runs, tmp_path / "out")
    assert re.fullmatch(r"0\.4\.\d+\+reasoning-harness", record["lm_eval_version"])
    assert [*record["n-samples"].values()] == [{"original": n, "effective": m} for n, m in ((1319, 30), (3, 3))]
    assert json.loads(done.out)["left_out"] == {"own": {"missing from the run": 2}}
    for run, task in zip(runs, record["results"], strict=True):
        score, values = Score.load(run.benchmark(task)), record["results"][task]
        assert score is not None
        assert score.accuracy is not None
        metric = record["configs"][task]["metric_list"][0]["metric"]
        assert values[f"{metric},none"] == values["acc"] == score.accuracy.value
        assert values[f"{metric}_stderr,none"] == values["acc_stderr"] == score.question_error
        # What lm-eval's own table would print as a metric is a number or a text.
        assert all(isinstance(value, int | float | str) for value in values.values())
        own = record["reasoning_harness"][task]
        assert own["question_interval"] == list(score.accuracy.question or ())
        assert (own["n_missing"], own["warnings"] or "") == (score.n_missing, "; ".join(score.sentences))


def test_an_error_is_that_of_new_questions_with_one_sample_or_many(tmp_path: Path) -> None:
    for number in range(examples(12)):
        chance = random.Random(seed := random.getrandbits(32))
        n, of_each = chance.randint(2, 40), chance.choice([1, 1, 4])
        rights = [[chance.random() < 0.7 for _ in range(of_each)] for _ in range(n)]
        replies = [
            sample(q, i, rf"\boxed{{{q + right}}}") for q, row in enumerate(rights) for i, right in enumerate(row)
        ]
        record = results(write_run(tmp_path / str(number), replies, questions=n, of_each=of_each), tmp_path / "out")
        means = [statistics.mean(row) for row in rights]
        values = record["results"]["own"]
        assert values["exact_match,none"] == pytest.approx(statistics.mean(means)), seed
        # lm_eval/api/metrics.py: mean_stderr is the sample's standard deviation over the root of n.
        assert values["exact_match_stderr,none"] == pytest.approx(statistics.stdev(means) / math.sqrt(n)), seed


def test_its_samples_come_back_with_their_verdicts(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", varied())
    path = harness.export(run, "lm_eval", out=tmp_path / "out").files[1].path
    verdicts = [grade.verdict for grade in grades.read(run.benchmark("own"))]
    (score,) = harness.score(path, workers=1)
    assert (score.n_correct, score.n_samples + score.n_missing) == (verdicts.count("correct"), len(verdicts))
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert sum(row["exact_match"] * len(row["resps"][0]) for row in rows) == verdicts.count("correct")


def test_questions_that_may_not_be_shown_have_results_and_no_samples(tmp_path: Path) -> None:
    run = gsm8k(tmp_path / "run", settings={"publish_questions": False})
    written = harness.export([run, write_run(tmp_path / "b", varied())], "lm_eval", out=tmp_path / "out")
    assert [re.sub("_20.*", "", file.path.name) for file in written.files] == ["results", "samples_own"]
    assert written.left_out["gsm8k"] == {"of questions whose authors ask that they not be published": 30}
    assert "What is 7 + 1" not in written.files[0].path.read_text("utf-8")


def test_a_file_is_refused_that_would_mix_or_guess(tmp_path: Path) -> None:
    run = gsm8k(tmp_path / "run")
    other = write_run(tmp_path / "other", varied(), identity={"model": "org/model-8b"})
    with pytest.raises(UsageError, match=r"only one model, not org/model-7b, org/model-8b"):
        harness.export([run, other], "lm_eval", out=tmp_path / "out")
    for to in ("lm_eval", "parquet"):
        with pytest.raises(UsageError, match=r"gsm8k is in both .*again: export one run at a time"):
            harness.export([run, gsm8k(tmp_path / f"{to}-again")], to, out=tmp_path / "out")
    with pytest.raises(UsageError, match="has not been graded"):
        harness.export([run, write_run(tmp_path / "new", varied(), scored=False)], "lm_eval", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    files = harness.export([run, other], "csv", out=tmp_path / "out").files  # a table names the model of no file
    assert {file.path.stem for file in files} >= {"gsm8k", "own"}


@pytest.mark.parametrize("model", ["..", "/", "../../x", "a\nb", "-x", ""])
def test_a_models_name_leads_out_of_no_folder(tmp_path: Path, model: str) -> None:
    run = write_run(tmp_path / "run", varied(), identity={"model": model})
    files = harness.export(run, "lm_eval", out=tmp_path / "out").files
    assert all(len(file.path.resolve().relative_to(tmp_path / "out").parts) == 2 for file in files)


def reader(*words: str | Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(READERS), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@needs
def test_lm_evals_own_table_has_our_value_and_error(tmp_path: Path) -> None:
    path = harness.export(gsm8k(tmp_path / "run"), "lm_eval", out=tmp_path / "out").files[0].path
    program = "import json, sys; from lm_eval.utils import make_table; print(make_table(json.load(open(sys.argv[1]))))"
    done = reader("-c", program, path, folder=tmp_path)
    assert re.search(r"\|gsm8k *\|(?s:.*)\|none +\|.*exact_match *\|↑ *\|0\.6667\|± *\|0\.0875\|", done.stdout), done


@needs
def test_inferencex_collects_and_validates_it(tmp_path: Path) -> None:
    (tmp_path / "results" / "job").mkdir(parents=True)
    for concurrency in (4, 64):
        path = harness.export(gsm8k(tmp_path / f"run-{concurrency}"), "lm_eval", out=tmp_path / "out").files[0].path
        path.rename(tmp_path / "results" / "job" / f"{path.stem}_conc{concurrency}.json")
    batch: dict[str, list[int]] = {"eval_concs": [4, 64], "completed_eval_concs": [4, 64], "failed_eval_concs": []}
    (tmp_path / "results" / "job" / "meta_env.json").write_text(json.dumps({"tp": 8, "hw": "h200", **batch}))
    utils = READERS / "InferenceX" / "utils"
    done = reader(utils / "collect_eval_results.py", tmp_path / "results", "all", folder=tmp_path)
    rows = json.loads((tmp_path / "agg_eval_all.json").read_bytes())
    assert [(row["conc"], row["n_eff"], row["model"]) for row in rows] == [
        (4, 30, "org/model-7b"),
        (64, 30, "org/model-7b"),
    ]
    assert all((row["score"], row["score_se"]) == pytest.approx((2 / 3, 0.0875), abs=1e-4) for row in rows), done
    validate = (utils / "evals" / "validate_scores.py", "--expected-concs", "4 64")
    for least, code in ((0.6, 0), (0.7, 1)):
        (tmp_path / "t.json").write_text(json.dumps({"gsm8k": least}))
        done = reader(*validate, "--thresholds", tmp_path / "t.json", folder=tmp_path / "results" / "job")
        assert done.returncode == code, done


@needs
def test_vllms_nightly_posts_it(tmp_path: Path) -> None:
    harness.export(gsm8k(tmp_path / "run"), "lm_eval", out=tmp_path / "out")
    with FakeServer(lambda _: [http(200, {})]) as endpoint:
        words = ("--results-dir", "out", "--workload", "w", "--task", "gsm8k")
        variables = {"INGEST_BEARER_TOKEN": "none", "INGEST_URL": endpoint.base_url}
        done = reader(READERS / "perf-eval" / "lib" / "ingest.py", *words, folder=tmp_path, **variables)
    result, samples = (request.json for request in endpoint.requests)
    assert [result["kind"], samples["kind"]] == ["results", "samples"], done
    assert (result["data"]["results"]["gsm8k"]["acc"], len(samples["samples"])) == (pytest.approx(2 / 3), 30)
