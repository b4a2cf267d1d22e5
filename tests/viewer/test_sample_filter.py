"""Each filter of samples keeps those that it names, and no other.

For: harness.viewer.sample_filter.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.runs import RunFolder
from harness.scoring.opened import OpenBenchmark, OpenRun
from harness.viewer.rows import ListedSample, Mark
from harness.viewer.sample_filter import SampleFilter, matching_samples
from tests.viewer.small_run import SMALL, RunReply, write_run

PLAIN = ListedSample(
    index=0, verdict="wrong", extracted="3", vote="3", rule="integer", anomalies=(), tokens=7, stored=True,
    marks={},
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[OpenBenchmark, OpenBenchmark]:
    """A run, and one in which the second sample of a question is right instead."""
    folder = tmp_path_factory.mktemp("filtered")
    first, _, *others = SMALL["q1"].replies
    turned = dataclasses.replace(SMALL["q1"], replies=[first, RunReply(r"$\boxed{42}$."), *others])
    paths: list[RunFolder] = [write_run(folder / "a"), write_run(folder / "b", {"demo": {**SMALL, "q1": turned}})]
    a, b = (OpenRun("run", path).benchmark("demo") for path in paths)
    return a, b


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, ["q1 0", "q1 1", "q1 2", "q2/odd id 0", "q2/odd id 1", "q2/odd id 2"]),
        ({"verdicts": frozenset({"correct"})}, ["q1 0", "q2/odd id 1"]),
        ({"verdicts": frozenset({"wrong", "correct"})}, ["q1 0", "q1 1", "q1 2", "q2/odd id 1"]),
        ({"marks": frozenset({"cut"})}, ["q2/odd id 0"]),
        ({"columns": (("level", "Level 5"),), "verdicts": frozenset({"wrong"})}, ["q1 1", "q1 2"]),
        ({"columns": (("level", "Level 1"),), "text": "thoughts"}, ["q2/odd id 2"]),
        ({"text": "halve"}, ["q1 0"]),
        ({"text": "in no sample"}, []),
        ({"columns": (("level", "3"),)}, []),
    ],
)
def test_of_a_run_those_are_listed_that_pass(
    runs: tuple[OpenBenchmark, OpenBenchmark], changes: dict[str, Any], kept: list[str]
) -> None:
    names = [f"{key.question_id} {key.sample_index}" for _, key in matching_samples(runs[0], SampleFilter(**changes))]
    assert names == kept


def test_of_two_runs_those_are_listed_whose_verdicts_differ(runs: tuple[OpenBenchmark, OpenBenchmark]) -> None:
    for own, other in (runs, runs[::-1]):
        sample_filter = SampleFilter(other_run=other)
        keys = [(question.question_id, key) for question, key in matching_samples(own, sample_filter)]
        assert keys == [("q1", ("q1", 1))]
        ungraded = dataclasses.replace(PLAIN, index=1, verdict=None)
        assert not sample_filter.sample("q1", ungraded)
        assert not sample_filter.sample("of no run", PLAIN)


def test_of_one_question_only_its_samples_are_listed(runs: tuple[OpenBenchmark, OpenBenchmark]) -> None:
    indices = [key.sample_index for _, key in matching_samples(runs[0], SampleFilter(), "q1")]
    assert indices == [0, 1, 2]
    with pytest.raises(UsageError, match="q9"):
        list(matching_samples(runs[0], SampleFilter(), "q9"))


@pytest.mark.parametrize("mark", ["cut", "near", "odd", "disputed"])
def test_a_mark_is_asked_for_or_does_not_matter(mark: Mark) -> None:
    marked, wanted = dataclasses.replace(PLAIN, marks={mark: "words"}), SampleFilter(marks=frozenset({mark}))
    assert [wanted.sample("q", row) for row in (PLAIN, marked)] == [False, True]
    assert [SampleFilter().sample("q", row) for row in (PLAIN, marked)] == [True, True]
    assert (wanted.everything, wanted.of_grades) == (False, mark != "cut")


def test_which_filters_need_grades(runs: tuple[OpenBenchmark, OpenBenchmark]) -> None:
    assert SampleFilter().everything
    assert not SampleFilter(columns=(("level", "5"),), text="x").of_grades
    assert SampleFilter(verdicts=frozenset({"wrong"})).of_grades
    assert SampleFilter(other_run=runs[0]).of_grades
