"""Grades of conversations: each turn by its reference, the table by turn, and what other commands make of them.

For: harness.grading.turns, harness.scoring.measures, harness.exports.selection, harness.viewer.rows.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.testing import FakeServer, Request, Said, http, serving
from tests.system.command import harness as command
from tests.turns.test_asked_turns import history_of

ROWS = [
    {"id": "q0", "turns": ["Say 5.", "Add 3.", "Double it."], "answer": ["5", "8", "16"]},
    {"id": "q1", "turns": ["Say 7.", "Add 3.", "Double it."], "answer": ["7", "", "20"]},
    {"id": "q2", "turns": ["Say 1.", "Add 1.", "Double it."], "answer": ["1", "2", "4"]},
    {"id": "q3", "turns": ["Say 9.", "Add 1."], "answer": ["9", "10"]},
]
REPLIES = {"q0": ["5", "8", "16"], "q1": ["7", "11", "20"], "q2": ["1", "3", "6"], "q3": ["9", "11"]}
FIRST = {"Say 5.": "q0", "Say 7.": "q1", "Say 1.": "q2", "Say 9.": "q3"}


def scored(folder: Path, replies: dict[str, list[str]] = REPLIES, rows: Any = ROWS) -> Any:
    """The score of the conversations with these replies, in the run folder `r`."""

    def reply(request: Request) -> Said:
        history = history_of(request.json)
        name = FIRST[history[0][1].splitlines()[0]]
        return Said(rf"It is \boxed{{{replies[name][len(history) // 2]}}}.", 9, reasoning="Hm.")

    (folder / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with FakeServer(serving(reply)) as server:
        words = ["run", "--data", "talks.jsonl", "--id-key", "id", "--base-url", server.base_url, "--out", "r"]
        done = command(folder, *words, "--no-canary")
        assert done.code == 0, done.err
    assert command(folder, "score", "r").code == 0
    return json.loads((folder / "r" / "talks" / "scores.json").read_text("utf-8"))


def test_a_conversation_is_right_if_all_its_turns_are(tmp_path: Path) -> None:
    score = scored(tmp_path)
    assert score["accuracy"]["value"] == pytest.approx(2 / 4)  # q0, and q1, whose wrong turn has no reference
    by_turn = {turn: one["accuracy"]["value"] for turn, one in score["turns"].items()}
    assert by_turn == {"1": 1.0, "2": pytest.approx(1 / 3), "3": pytest.approx(2 / 3)}
    assert {turn: (one["n"], one["n_reached"]) for turn, one in score["turns"].items()} == {
        "1": (4, 4), "2": (3, 3), "3": (3, 3)}  # fmt: skip
    assert score["measures"]["share of parts"]["value"] == pytest.approx((1 + 1 + 1 / 3 + 1 / 2) / 4)


def test_the_table_by_turn_is_printed_and_reported(tmp_path: Path) -> None:
    scored(tmp_path)
    assert "By turn" in command(tmp_path, "score", "r").out
    assert command(tmp_path, "report", "r").code == 0
    for name in ("report.md", "report.html"):
        assert "By turn" in (tmp_path / "r" / name).read_text("utf-8")
    shown = command(tmp_path, "show", "r", "q2:0").out
    for words in ("[turn 2: user]", "[turn 2: wrong", "[turn 1: correct", "Double it."):
        assert words in shown


def test_changed_references_grade_again_and_others_do_not(tmp_path: Path) -> None:
    scored(tmp_path)
    path = tmp_path / "r" / "talks" / "grades.jsonl"
    before = path.read_bytes()
    assert command(tmp_path, "score", "r").code == 0
    assert path.read_bytes() == before
    turns = [json.loads(line)["turns"] for line in before.splitlines()]
    assert [len(each) for each in turns] == [3, 2, 3, 2]


@pytest.mark.parametrize("to", ["sharegpt", "alpaca", "trl"])
def test_an_export_has_all_turns(tmp_path: Path, to: str) -> None:
    scored(tmp_path)
    done = command(tmp_path, "export", "r", "--to", to, "--out", "x")
    assert done.code == 0, done.err
    text = (tmp_path / "x" / "talks.jsonl").read_text("utf-8")
    assert text.count("Add 3.") == 2
    assert text.count(r"\\boxed{8}") == 1


def test_an_inspect_log_has_all_turns(tmp_path: Path) -> None:
    scored(tmp_path)
    done = command(tmp_path, "export", "r", "--to", "inspect", "--out", "x")
    assert done.code == 0, done.err
    (log,) = (tmp_path / "x").rglob("*.eval")
    with zipfile.ZipFile(log) as file:
        samples = [json.loads(file.read(name)) for name in file.namelist() if name.startswith("samples/")]
    (first,) = [sample for sample in samples if sample["id"] == "q0"]
    assert [message["role"] for message in first["messages"]] == ["user", "assistant"] * 3


def test_a_comparison_pairs_conversations(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, replies in ((one, REPLIES), (other, REPLIES | {"q2": ["1", "2", "4"]})):
        folder.mkdir()
        scored(folder, replies)
    (pair,) = harness.compare([one / "r", other / "r"])
    assert pair.decision.paired is not None
    assert pair.decision.paired.difference.value == pytest.approx(1 / 4)


def test_a_turn_that_was_not_reached_is_wrong(tmp_path: Path) -> None:
    rows = [{"id": "q0", "turns": ["Say 5.", "x"], "answer": ["5", "6"]}]
    (tmp_path / "talks.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")

    def reply(request: Request) -> Any:
        if len(history_of(request.json)) > 1:
            return [http(400, {"error": {"message": "no"}})]
        return Said(r"\boxed{5}", 9)

    with FakeServer(serving(reply)) as server:
        done = command(tmp_path, "run", "--data", "talks.jsonl", "--base-url", server.base_url, "--out", "r")
        assert done.code == 0, done.err
    assert command(tmp_path, "score", "r").code == 0
    score = json.loads((tmp_path / "r" / "talks" / "scores.json").read_text("utf-8"))
    assert {turn: (one["accuracy"]["value"], one["n_reached"]) for turn, one in score["turns"].items()} == {
        "1": (1.0, 1), "2": (0.0, 0)}  # fmt: skip
    assert (
        "1 of 1 sample (100.0%) was truncated by a turn that the server rejected"
        in " ".join(warning["text"] for warning in score["warnings"])
        or score["n_truncated"] == 1
    )
