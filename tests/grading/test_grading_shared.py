"""The labelled sets: at least the agreement that the documentation states. Skipped where the data is not at hand."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.answers.boxed import without_boxes
from harness.core.records import Grade
from harness.grading.processes.pool import grade_all
from harness.grading.selftest import self_test
from tests.budget import share_of
from tests.grading import labelled
from tests.grading.given import question, sample
from tests.grading.labelled import Labelled

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


def judged(rows: list[Labelled]) -> list[tuple[Labelled, Grade]]:
    questions = {str(i): question(row.reference, name=str(i)) for i, row in enumerate(rows)}
    samples = [sample(row.response, name=str(i)) for i, row in enumerate(rows)]
    return list(zip(rows, grade_all(questions, samples, workers=1, deadline_s=2.0), strict=True))


def agreement(results: list[tuple[Labelled, Grade]]) -> float:
    return sum(row.correct == (grade.verdict == "correct") for row, grade in results) / len(results)


def false_accepts(results: list[tuple[Labelled, Grade]]) -> list[str]:
    return [row.name for row, grade in results if grade.verdict == "correct" and not row.correct]


@pytest.mark.parametrize(("kind", "least"), [("equality", 1.0), ("extraction", 1.0), ("hostile", 1.0)])
def test_hand_made_rows(shared_data: Path, kind: str, least: float) -> None:
    results = judged(labelled.hand_made(shared_data, kind))
    assert agreement(results) >= least
    assert false_accepts(results) == []


def test_hostile_rows_end_in_time_and_memory_and_touch_no_file(shared_data: Path) -> None:
    before = set(Path("/tmp").glob("grader_pwn_*"))
    # The largest child of an earlier test counts for ever: one forked from a large process is as large as that.
    earlier = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    results = judged(labelled.hand_made(shared_data, "hostile"))
    assert {grade.rule for _, grade in results}.isdisjoint(("time", "memory", "crash"))
    assert set(Path("/tmp").glob("grader_pwn_*")) == before
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(1 << 20, earlier)  # KiB


@pytest.mark.parametrize(
    ("source", "least"),
    # Five of Math-Verify's replies are undecided: four in no form of a sentence, and x≈11 beside 11.
    [("", 0.974), ("huggingface/Math-Verify", 0.944), ("uw-nsl/TinyV", 0.98)],
    ids=["all", "mv", "tinyv"],
)
def test_public_pairs(shared_data: Path, source: str, least: float) -> None:
    results = judged(labelled.public(shared_data, source))
    assert agreement(results) >= least
    assert false_accepts(results) == []


@pytest.mark.parametrize(("prefix", "least"), [("", 0.99), ("own", 0.99), ("MathCoder", 0.99)])
def test_pairs_of_the_second_collection(shared_data: Path, prefix: str, least: float) -> None:
    results = judged([row for row in labelled.second_round(shared_data) if row.name.startswith(prefix)])
    assert agreement(results) >= least
    assert false_accepts(results) == []


def test_our_own_pairs(shared_data: Path) -> None:
    results = judged(labelled.third_round(shared_data))
    assert agreement(results) >= 0.995
    assert false_accepts(results) == []
    assert [row.name for row, grade in results if row.correct and grade.verdict == "wrong"] == []


def test_real_outputs(shared_data: Path) -> None:
    results = judged(labelled.outputs(shared_data))
    assert agreement(results) >= 0.998


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
