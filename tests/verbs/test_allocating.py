"""`harness run --allocate`: samples of each question by a former run, printed, stored, resumed and scored.

For: harness.asking.allocating, harness.scoring.allocation.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import harness as reasoning_harness
from harness.core.errors import UsageError
from harness.scoring.allocation import allocate, saving
from tests.faults.able import able, sums
from tests.faults.server import FaultServer
from tests.system.command import harness

GIVEN = ("run", "--data", "sums.jsonl", "--id-key", "id", "--no-canary", "--quiet")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return sums(tmp_path, 12)


def stored(folder: Path) -> Counter[str]:
    lines = (folder / "sums" / "samples.jsonl").read_text().splitlines()
    return Counter(json.loads(line)["question_id"] for line in lines)


def test_samples_follow_the_spread_and_every_question_gets_two() -> None:
    right, n = np.array([8.0, 8, 4, 0]), np.full(4, 8.0)
    counts = allocate(right, n, 8, 1000)
    # p = 17/18, 9/18, 1/18: spreads 0.229, 0.5, 0.229; three parts of 0.229 and one of 0.5 share 32.
    assert counts.tolist() == [6, 6, 13, 6]
    # Σ p(1−p) = 0.407 over Σ p(1−p)/n = 3 · 0.0525/6 + 0.25/13 is 8.96, and 31/4 samples are 86 % of it.
    assert saving(right, n, counts) == pytest.approx((8.96, 0.865), abs=0.005)
    assert allocate(np.array([64.0, 32]), np.full(2, 64.0), 2, 1000).tolist() == [2, 2]
    assert allocate(np.array([64.0] * 9 + [32]), np.full(10, 64.0), 4, 10).tolist() == [3] * 9 + [10]


@pytest.mark.usefixtures("questions")
def test_a_run_by_a_former_one_is_stored_resumed_and_scored(tmp_path: Path) -> None:
    with FaultServer(able(0.5)) as first, FaultServer(able(0.5, shift=1)) as other:
        assert harness(tmp_path, *GIVEN, "--samples", "4", "--base-url", first.base_url, "--out", "former").code == 0
        assert harness(tmp_path, "score", "former").code == 0
        given = (*GIVEN, "--samples", "6", "--seed", "5", "--base-url", other.base_url, "--out", "new")
        dry = harness(tmp_path, *given, "--allocate", "former", "--dry-run")
        asked = harness(tmp_path, *given, "--allocate", "former")
        again = harness(tmp_path, *given, "--allocate", "former")
        n_asked = len([r for r in other.requests if r.method == "POST"])
    assert (dry.code, asked.code, again.code) == (0, 0, 0), asked.err + again.err
    plan = json.loads((tmp_path / "new" / "manifest.json").read_text())["benchmarks"]["sums"]
    counts = plan["plan"]["allocated"]
    assert stored(tmp_path / "new") == counts
    assert n_asked == sum(counts.values())
    assert abs(sum(counts.values()) - 72) <= 6
    assert min(counts.values()) >= 2 < max(counts.values()) == plan["plan"]["samples"]
    sentence = f"{min(counts.values())} to {max(counts.values())} samples a question, {sum(counts.values())} in all"
    assert sentence in asked.err.replace("\n", " ")
    assert f"{min(counts.values())}–{max(counts.values())} per question" in dry.out
    assert "as this run began" in again.err.replace("\n", " ")
    scored = harness(tmp_path, "score", "new", "--json")
    (score,) = json.loads(scored.out)
    grades = [json.loads(line) for line in (tmp_path / "new" / "sums" / "grades.jsonl").read_text().splitlines()]
    right = Counter(grade["question_id"] for grade in grades if grade["verdict"] == "correct")
    # Each question weighs the same, however many samples it has.
    assert score["accuracy"] == pytest.approx(sum(right[q] / counts[q] for q in counts) / 12)
    assert (score["n_missing"], score["partial"], score["samples_per_question"]) == (0, False, None)
    assert not [warning for warning in score["warnings"] if "samples, and those with" in warning]


@pytest.mark.usefixtures("questions")
def test_a_stored_plan_holds_though_the_former_run_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with FaultServer(able(0.5)) as server:
        given = {"data": "sums.jsonl", "id_key": "id", "canary": False, "samples": 5, "base_url": server.base_url}
        ids = [json.loads(line)["id"] for line in (tmp_path / "sums.jsonl").read_text().splitlines()]
        rows = "".join(f"{name},{i % 5},4\n" for i, name in enumerate(ids[:9]))
        (tmp_path / "items.csv").write_text("question_id,correct,samples\n" + rows)
        reasoning_harness.run(**given, model="test-model", out="new", allocate="items.csv")
        counts = stored(tmp_path / "new")
        assert counts[ids[0]] < counts[ids[2]] == counts[ids[11]]  # never right, half right, unknown
        with (tmp_path / "new" / "sums" / "samples.jsonl").open("r+") as file:
            file.truncate(file.read().rindex("\n", 0, -1) + 1)
        (tmp_path / "new" / "sums" / "samples.index").unlink(missing_ok=True)
        (tmp_path / "items.csv").unlink()
        reasoning_harness.run(**given, model="test-model", out="new", allocate="items.csv")
    assert stored(tmp_path / "new") == counts


@pytest.mark.usefixtures("questions")
def test_what_would_bias_or_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with FaultServer(able(0.5)) as server:
        given = (*GIVEN, "--base-url", server.base_url)
        assert harness(tmp_path, *given, "--samples", "2", "--out", "former").code == 0
        unscored = harness(tmp_path, *given, "--samples", "4", "--seed", "1", "--allocate", "former", "--out", "new")
        assert harness(tmp_path, "score", "former").code == 0
        own = harness(tmp_path, *given, "--samples", "4", "--allocate", "former", "--out", "former")
        alike = harness(tmp_path, *given, "--samples", "4", "--allocate", "former", "--out", "new")
        single = harness(tmp_path, *given, "--samples", "1", "--allocate", "former", "--out", "new")
        rounds = harness(
            tmp_path, *given, "--samples", "4", "--allocate", "former", "--target-error", "2", "--out", "new"
        )
        (tmp_path / "bad.csv").write_text("question_id,correct,samples\nq1,5,4\n")
        table = harness(tmp_path, *given, "--samples", "4", "--allocate", "bad.csv", "--out", "new")
    for refused, words in (
        (unscored, "is not scored: score it with `harness score former`"),
        (own, "by its own samples"),
        (alike, "give another --seed"),
        (single, "is 1; give at least 2"),
        (rounds, "--target-error"),
        (table, "found q1, 5 and 4"),
    ):
        assert refused.code == 2, refused.err
        assert words in " ".join(refused.err.split()), refused.err
        assert "--allocate" in refused.err
    with pytest.raises(UsageError, match="a race samples whole rounds"):
        reasoning_harness.race("demo", candidates={"a": {}, "b": {}}, allocate="former")
