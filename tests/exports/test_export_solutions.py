"""A benchmark's own solutions as training data: which rows, in which form, and what is refused.

For: harness.exports.solutions, harness.verbs.export.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import harness
from harness.core.errors import UsageError

ROWS = [
    {"question": "What is 1 + 1?", "solution": "One and one make two: \\boxed{2}", "answer": "2"},
    {"question": "What is 2 + 2?", "solution": " ", "answer": "4"},
]


def card(folder: Path, name: str = "mine") -> str:
    """The path of a card whose rows have solutions."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    columns = {"question": "question", "answer": "answer"}
    content = {"name": name, "title": "T", "source": {"kind": "file", "path": "rows.jsonl"}, "columns": columns}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content | {"prompt": "boxed"}))
    return str(path)


def test_each_solution_becomes_the_reply_to_its_question_in_llama_factory_s_form(tmp_path: Path) -> None:
    written = harness.export(card(tmp_path), "alpaca", solution_key="solution", out=tmp_path / "data")
    (line,) = (tmp_path / "data" / "mine.jsonl").read_text("utf-8").splitlines()
    row = json.loads(line)
    assert row["output"] == ROWS[0]["solution"]
    assert "What is 1 + 1?" in row["instruction"]
    assert "boxed" in row["instruction"], "as a run would ask it"
    info = json.loads((tmp_path / "data" / "dataset_info.json").read_text("utf-8"))["mine"]
    assert (info["file_name"], info["columns"]["response"]) == ("mine.jsonl", "output")
    assert written.files[0].n == 1, "a row without a solution is left out"


def test_solutions_stand_beside_the_prompt_that_is_asked_for(tmp_path: Path) -> None:
    given = {"solution_key": "solution", "prompt": "qwen_boxed"}
    harness.export(card(tmp_path), "alpaca", out=tmp_path / "data", **given)  # type: ignore[arg-type]
    row = json.loads((tmp_path / "data" / "mine.jsonl").read_text("utf-8"))
    assert (row["instruction"], "boxed" in row["system"]) == ("What is 1 + 1?", True)
    with pytest.raises(UsageError, match="exported as they were asked"):
        harness.export(tmp_path, "alpaca", prompt="qwen_boxed")


def test_trl_gets_the_prompt_and_the_reference(tmp_path: Path) -> None:
    harness.export(card(tmp_path), "trl", solution_key="solution", out=tmp_path / "data")
    row = json.loads((tmp_path / "data" / "mine.jsonl").read_text("utf-8"))
    assert (row["solution"], row["prompt"][0]["role"]) == ("2", "user")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"to": "alpaca", "solution_key": "proof"},
            "has no column 'proof' for any question, nor has any other row; it has question, solution",
        ),
        ({"to": "parquet", "solution_key": "solution"}, "parquet holds samples"),
        ({"to": "alpaca", "solution_key": "solution", "shortest": 1}, "shortest chooses samples of a run"),
    ],
)
def test_what_makes_no_training_data_is_refused(tmp_path: Path, given: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        harness.export(card(tmp_path), out=tmp_path / "data", **given)  # type: ignore[arg-type]


def test_a_test_set_is_refused_unless_it_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card(tmp_path, "aime24")
    monkeypatch.setenv("HARNESS_DATASETS", str(tmp_path))
    with pytest.raises(UsageError, match="can no longer be tested"):
        harness.export("aime24", "alpaca", solution_key="solution", out=tmp_path / "data")
    harness.export("aime24", "alpaca", solution_key="solution", out=tmp_path / "data", i_know=True)
    assert (tmp_path / "data" / "aime24.jsonl").is_file()
