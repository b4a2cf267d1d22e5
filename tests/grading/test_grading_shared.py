"""The labelled sets: at least the agreement that the documentation states. Skipped where the data is not at hand."""

from __future__ import annotations

import base64
import json
import resource
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.answers.boxed import bare
from harness.core.records import Grade
from harness.grading.processes.pool import grade_all
from harness.grading.selftest import self_test
from tests.grading.given import question, sample

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


def judged(labelled: list[tuple[str, str, bool]]) -> list[tuple[bool, Grade]]:
    questions = {str(i): question(reference, name=str(i)) for i, (reference, _, _) in enumerate(labelled)}
    samples = [sample(text, name=str(i)) for i, (_, text, _) in enumerate(labelled)]
    grades = grade_all(questions, samples, workers=1, deadline_s=2.0)
    return [(expected, g) for (_, _, expected), g in zip(labelled, grades, strict=True)]


def agreement(results: list[tuple[bool, Grade]]) -> float:
    return sum(expected == (g.verdict == "correct") for expected, g in results) / len(results)


def handmade(data: Path, kind: str) -> list[tuple[str, str, bool]]:
    def text(row: dict[str, Any]) -> str:
        packed = row.get("response_zlib_b64")
        return zlib.decompress(base64.b64decode(packed)).decode("utf-8", "surrogatepass") if packed else row["response"]

    found = [row for row in rows(data / "equivalence_handmade.jsonl") if row["kind"] == kind and not row["ambiguous"]]
    return [(row["gold"], text(row), row["expected"]) for row in found]


@pytest.mark.parametrize(("kind", "least"), [("equality", 0.98), ("extraction", 0.95), ("hostile", 0.95)])
def test_hand_made_rows(shared_data: Path, kind: str, least: float) -> None:
    results = judged(handmade(shared_data, kind))
    assert agreement(results) >= least
    assert [g.extracted for expected, g in results if g.verdict == "correct" and not expected] == []


def test_hostile_rows_end_in_time_and_memory_and_touch_no_file(shared_data: Path) -> None:
    before = set(Path("/tmp").glob("grader_pwn_*"))
    results = judged(handmade(shared_data, "hostile"))
    assert {g.rule for _, g in results}.isdisjoint(("time", "memory", "crash"))
    assert set(Path("/tmp").glob("grader_pwn_*")) == before
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1 << 20  # KiB


@pytest.mark.parametrize(
    ("source", "least"),
    [("", 0.95), ("huggingface/Math-Verify", 0.99), ("uw-nsl/TinyV", 0.92)],
    ids=["all", "mv", "tinyv"],
)
def test_public_pairs(shared_data: Path, source: str, least: float) -> None:
    found = [row for row in rows(shared_data / "equivalence.jsonl") if row["source"].startswith(source)]
    labelled = [
        (row["gold"], row["pred"] if row["kind"] == "text" else f"\\boxed{{{row['pred']}}}", row["expected"])
        for row in found
    ]
    assert agreement(judged(labelled)) >= least


def test_real_outputs(shared_data: Path) -> None:
    labelled = [
        (row["gold"], row["response"], row["label"])
        for path in sorted((shared_data / "outputs").glob("*.jsonl"))
        for row in rows(path)
        if row["label"] is not None
    ]
    results = judged(labelled)
    assert agreement(results) >= 0.997
    assert sum(g.rule == "symbolic" for _, g in results) <= 0.05 * len(results)


@pytest.mark.parametrize("name", FILES)
def test_references_equal_themselves_and_not_a_changed_answer(shared_data: Path, name: str) -> None:
    result = self_test(question(reference) for reference in references(shared_data / f"{name}.jsonl"))
    assert result.n_references > 0
    assert (result.not_itself, result.not_distinct) == ([], [])


def references(path: Path) -> Iterator[str]:
    for row in rows(path):
        if path.stem == "gsm8k":
            yield row["answer"].partition("####")[2].strip()
        elif path.stem == "olympiadbench":
            yield row["final_answer"][0]
        elif path.stem == "minerva_math":
            yield bare(row["solution"])
        else:
            answer = row.get("answer", row.get("expected_answer"))
            parts = answer.values() if isinstance(answer, dict) else [answer]
            for part in parts:
                yield ", ".join(map(str, part)) if isinstance(part, list) else str(part)
