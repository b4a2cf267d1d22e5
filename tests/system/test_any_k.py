"""`--k`: pass@k, pass^k and maj@k for any k up to the samples of a question, in a score and in a report."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

import harness as product
from harness.runs import RunFolder
from harness.scoring.score import Score, score_benchmark, with_ks
from harness.scoring.tally import tally
from tests.reports.run_folders import write_run
from tests.scoring.graded import graded
from tests.system.command import harness

ROWS = {"q0": "ccwwwwwwwwww", "q1": "cwwwwwwwwwww", "q2": "cccccccccccc"}


def chen(n: int, c: int, k: int) -> float:
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def test_any_k_stands_beside_the_powers_of_two() -> None:
    score = score_benchmark(*graded(**ROWS), 12, ks=[10])
    assert list(score.pass_at) == [1, 2, 4, 8, 10, 12]
    assert score.pass_at[10].value == pytest.approx((chen(12, 2, 10) + chen(12, 1, 10) + 1) / 3)
    assert score.pass_hat[10].value == pytest.approx(1 / 3)
    assert set(score.maj_at) == set(score.pass_at)


def test_a_report_adds_to_a_score_what_scoring_with_that_k_would_have_given() -> None:
    questions, grades = graded(**ROWS)
    plain, whole = score_benchmark(questions, grades, 12), score_benchmark(questions, grades, 12, ks=[3, 10])
    assert with_ks(plain, tally(questions, grades, 12).questions, (10, 3)) == whole
    assert plain != whole


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "run", benchmarks=[("demo", 6, 12)])


def test_the_report_has_the_k_that_was_asked_for_and_leaves_the_run_alone(tmp_path: Path, run: RunFolder) -> None:
    before = run.benchmark("demo").scores.read_bytes()
    done = harness(tmp_path, "report", "run", "--k", "10", "--k", "3", "--out", "out")
    assert done.code == 0, done.err
    assert "pass^k" in done.out
    (row,) = csv.DictReader((tmp_path / "out" / "report.csv").read_text("utf-8").splitlines())
    score = Score.load(run.benchmark("demo"))
    assert score is not None
    assert float(row["pass@8"]) < float(row["pass@10"]) <= float(row["pass@12"]) == score.pass_at[12].value
    assert run.benchmark("demo").scores.read_bytes() == before
    report = product.report(run, k=10)
    assert "pass@10" in report.csv()
    assert "pass@3" not in report.csv()


def test_a_k_above_the_samples_is_refused_in_one_sentence(tmp_path: Path, run: RunFolder) -> None:
    for words in (("report", "run", "--out", "out"), ("score", "run")):
        done = harness(tmp_path, *words, "--k", "13")
        assert done.code == 2
        assert "k=13: demo: pass@13 needs 13 samples of every question" in done.err
        assert "take k from 1 to 12" in done.err
    assert not (tmp_path / "out").exists()
    assert harness(tmp_path, "report", "run", "--k", "0").code == 2
    with pytest.raises(product.UsageError, match="k=13"):
        product.report(run, k=13)
    with pytest.raises(product.UsageError, match="k=0"):
        product.score(run, k=0)
