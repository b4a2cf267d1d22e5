"""Benchmarks and hostile rows of others, where they are at hand. Labeled rows are pinned: `tests/pins`."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.grading.processes.pool import grade_all
from harness.grading.selftest import self_test
from reasoning_answers.boxed import without_boxes
from tests.budget import share_of
from tests.grading.given import question, sample
from tests.pins.verdicts import shared

pytestmark = pytest.mark.slow

FILES = [
    "aime24",
    "aime24_with_solutions",
    "aime25",
    "aime25_expected_answer",
    "aime26",
    "amc23",
    "hmmt_feb_2025",
    "math500",
    "math500_with_solutions",
    "gsm8k",
    "olympiadbench",
    "minerva_math",
    "minerva_limo",
    "gaokao",
    "kaoyan",
    "grade_school_math",
    "cn_math_2024",
]


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return [json.loads(line) for line in file]


def test_hostile_rows_end_in_time_and_memory_and_touch_no_file(shared_data: Path) -> None:
    before = set(Path("/tmp").glob("grader_pwn_*"))
    # The largest child of an earlier test counts for ever: one forked from a large process is as large as that.
    earlier = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    hostile = shared(shared_data)["hand-made, hostile"]
    questions = {str(i): question(row.reference, name=str(i)) for i, row in enumerate(hostile)}
    samples = [sample(row.reply, name=str(i)) for i, row in enumerate(hostile)]
    rules = {grade.rule for grade in grade_all(questions, samples, workers=1, deadline_s=2.0)}
    assert rules.isdisjoint(("time", "memory", "crash"))
    assert set(Path("/tmp").glob("grader_pwn_*")) == before
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(1 << 20, earlier)  # KiB


@pytest.mark.parametrize("name", FILES)
def test_references_equal_themselves_and_not_a_changed_answer(shared_data: Path, name: str) -> None:
    result = self_test(question(reference) for reference in share_of(references(shared_data / f"{name}.jsonl")))
    assert result.n_references > 0
    assert (result.not_itself, result.not_distinct) == ([], [])


def references(path: Path) -> Iterator[str]:
    for row in rows(path):
        if path.stem == "gsm8k":
            yield row["answer"].partition("####")[2].strip()
        elif path.stem == "olympiadbench":
            yield row["final_answer"][0]
        elif path.stem == "minerva_math":
            yield without_boxes(row["solution"])
        else:
            answer = row.get("answer", row.get("expected_answer"))
            parts = answer.values() if isinstance(answer, dict) else [answer]
            for part in parts:
                yield ", ".join(map(str, part)) if isinstance(part, list) else str(part)


@pytest.mark.parametrize(
    "statement", ["The answer is {}.", "#### {}", "Therefore, the answer is ${}$.", "**Answer:** {}"]
)
def test_a_statement_behind_any_published_solution_stands(shared_data: Path, statement: str) -> None:
    """Solutions of 1,319 word problems suppose, guess and quote; the statement behind them is the answer."""
    open_pairs = []
    for line in share_of((shared_data / "gsm8k.jsonl").read_text("utf-8").splitlines()):
        work, _, value = json.loads(line)["answer"].partition("####")
        reference = value.strip().replace(",", "")
        reply = f"{re.sub('<<.*?>>', '', work).strip()}\n{statement.format(reference)}"
        if harness.grade(reference, reply).outcome != "correct":
            open_pairs.append((reference, reply))
    assert open_pairs == []


def test_a_statement_behind_any_published_proof_stands(shared_data: Path) -> None:
    open_ids = []
    rows = [json.loads(line) for line in (shared_data / "math500_with_solutions.jsonl").read_text("utf-8").splitlines()]
    for number, row in enumerate(rows):
        work = row["solution"].replace("\\boxed", "")
        if harness.grade(row["answer"], f"{work} The answer is ${row['answer']}$.").outcome != "correct":
            open_ids.append(number)
    assert len(open_ids) <= 1, open_ids
