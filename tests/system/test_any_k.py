"""`--k`: pass@k, pass^k and maj@k for any k up to the samples of a question, in a score."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import harness as product
from harness.runs import RunFolder
from harness.scoring.score import score_benchmark
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


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "run", benchmarks=[("demo", 6, 12)])


def test_a_report_says_who_takes_a_k(tmp_path: Path, run: RunFolder) -> None:
    done = harness(tmp_path, "report", "run", "--k", "10")
    assert (done.code, "`harness score RUN` takes the k" in done.err) == (2, True), done.err


def test_a_k_above_the_samples_is_refused_in_one_sentence(tmp_path: Path, run: RunFolder) -> None:
    done = harness(tmp_path, "score", "run", "--k", "13")
    assert done.code == 2
    assert "k=13: demo: pass@13 needs 13 samples of every question" in done.err
    assert "take k from 1 to 12" in done.err
    with pytest.raises(product.UsageError, match="k=0"):
        product.score(run, k=0)
