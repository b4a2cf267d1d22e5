"""`harness plan` before any run: from the spread of published runs, in both directions.

For: harness.verbs.plan_typical.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.core.errors import UsageError
from harness.scoring.differences import samples_to_detect
from harness.scoring.published import load_published
from harness.verbs.plan import detectable
from harness.verbs.plan_typical import typical_spread
from tests.system.command import harness


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with no run in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_typical_spread_is_the_median_of_published_runs() -> None:
    published = [
        score.run_deviation**2 * 30
        for score in load_published()
        if (score.benchmark, score.metric) == ("aime24", "pass@1") and score.run_deviation
    ]
    spread = typical_spread("aime24")
    assert spread.n_questions == 30
    assert math.isclose(spread.variance, float(np.median(published)))
    assert spread.variance < spread.wide <= 0.25 * 1.3
    assert not spread.of_all
    assert typical_spread("hmmt_feb25").of_all, "nobody published deviations of it"


def test_both_directions_agree(empty: Path) -> None:
    (answer,) = detectable("aime24", 64)
    spread = typical_spread("aime24")
    assert samples_to_detect(spread.variance, 30, answer.difference * 1.0001, None, 2) == 64
    assert samples_to_detect(spread.variance, 30, answer.difference * 0.99, None, 2) != 64
    assert answer.run is None
    assert answer.wide is not None
    assert detectable("aime24", 16)[0].difference > 1.9 * answer.difference
    assert detectable("aime24", 64, other_samples=4)[0].difference > 2 * answer.difference


def test_the_command_answers_both_and_never_names_two_numbers(empty: Path) -> None:
    done = harness(empty, "plan", "aime24:64")
    assert done.code == 0, done.err
    assert done.out.startswith(
        "aime24: 64 samples a question in each of two runs find a difference of 2.6 points on the same 30"
    )
    assert "  2 points: 101 samples a question" in done.out
    back = harness(empty, "plan", "aime24", "--detect", "2")
    assert "aime24: 101 samples a question in each of two runs find a difference of 2 points" in back.out
    assert "the spread is the median of 65 published models on this benchmark" in back.out
    assert "64:2" not in done.out + back.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("aime24", "or a number of samples behind the name, as in aime24:64"),
        ("aime24:64 aime25", "or a number of samples behind the name, as in aime25:64"),
        ("aime24:64:2", "one number of samples"),
        ("aime24:0", "one number of samples"),
        ("aime24:many", "unknown benchmark 'aime24:many'. Did you mean aime24"),
        ("aime,aime25:64", "unknown benchmark 'aime,aime25'. Did you mean aime25"),
        ("nothing", "unknown benchmark 'nothing'"),
        ("nothing:4", "unknown benchmark 'nothing'"),
        ("results/nothing:4", "there is no run at"),
        ("aime24:64 --json", "--json prints only"),
    ],
)
def test_what_is_no_plan_is_refused(empty: Path, words: str, expected: str) -> None:
    done = harness(empty, "plan", *words.split())
    assert done.code != 0
    assert done.out == ""
    assert expected in done.err


def test_several_benchmarks_are_planned_in_their_order(empty: Path) -> None:
    alone = [harness(empty, "plan", words).out for words in ("aime25:16", "aime24:64")]
    assert harness(empty, "plan", "aime25:16", "aime24:64").out == "".join(alone)
    both = json.loads(harness(empty, "plan", "aime25", "aime24", "--detect", "2", "--json").out)
    assert [plan["benchmark"] for plan in both] == ["aime25", "aime24"]


def test_a_run_of_ones_own_goes_before_the_published_ones(empty: Path) -> None:
    stored = Path(__file__).parents[1] / "pins" / "stored"
    (run,) = sorted(path.parent for path in stored.rglob("manifest.json") if path.parent.name == "first")[:1] or [None]
    if run is None:
        pytest.skip("no stored run")
    shutil.copytree(run, empty / "results" / "first")
    (answer,) = detectable("sums", 8)
    assert (answer.run, answer.wide, answer.typical) == (str(empty / "results" / "first"), None, None)
    assert detectable("results/first", 8) == [answer]
    done = harness(empty, "plan", "results/first:8")
    assert done.out.startswith("sums: 8 samples a question"), done.err
    with pytest.raises(UsageError):
        detectable("nothing", 8)


def test_a_printed_difference_is_one_that_the_samples_find(empty: Path) -> None:
    """It is rounded up: the plan for the printed difference never asks for more samples."""
    for samples in range(1, 200, 7):
        printed = float(harness(empty, "plan", f"aime24:{samples}").out.split("difference of ")[1].split()[0])
        spread = typical_spread("aime24")
        needed = samples_to_detect(spread.variance, 30, printed / 100, None, 2)
        assert needed is not None
        assert needed <= samples
