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
from harness.benchmarks import catalog, questions
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


@pytest.mark.parametrize(("verdict", "accuracy"), [("yes", 1.0), ("no", 0.0)])
def test_the_last_turn_is_judged_with_the_conversation_before_it(tmp_path: Path, verdict: str, accuracy: float) -> None:
    seen = list[str]()

    def reply(request: Request) -> Said:
        text = history_of(request.json)[-1][1]
        if "Reply to judge" not in text and "Say of" not in text and "verdict" not in text.lower():
            return Said(f"said {len(history_of(request.json))}", 9)
        seen.append(text)
        return Said(json.dumps({"reasoning": "x", "verdict": verdict}), 9)

    row = {"QUESTION_ID": "a", "AXIS": "x", "TARGET_QUESTION": "Does it?", "PASS_CRITERIA": "YES"}
    said = [{"role": "user", "content": "First."}, {"role": "user", "content": "Second."}]
    (tmp_path / "c.jsonl").write_text(json.dumps(row | {"CONVERSATION": said}) + "\n", encoding="utf-8")
    with FakeServer(serving(reply)) as server:
        url = server.base_url
        words = ["run", "multichallenge", "--data", "c.jsonl", "--turns", "live", "--base-url", url, "--out", "r"]
        done = command(tmp_path, *words, "--no-canary")
        assert done.code == 0, done.err
        judged = command(tmp_path, "score", "r", "--judge", f"test-model@{url}")
        assert judged.code == 0, judged.err
    (score,) = [json.loads(path.read_text("utf-8")) for path in (tmp_path / "r").glob("*/scores.json")]
    assert score["accuracy"]["value"] == accuracy
    assert any("said 3" in text and "Does it?" in text for text in seen)


def test_a_dry_run_says_how_a_conversation_is_asked(tmp_path: Path) -> None:
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    with FakeServer(serving(lambda _: Said("x"))) as server:
        words = ["run", "--data", "talks.jsonl", "--base-url", server.base_url, "--dry-run"]
        shown = " ".join(command(tmp_path, *words).out.split())
    assert "It has 3 turns, asked one after the other; each reply's answer is sent back" in shown


CARD = """
name: talks
title: Talks
source: {kind: file, path: talks.jsonl}
columns: {turns: turns, answer: answer, id: id}
id_rule: column
kind: text
rules: {grader: "harness.grading.verifiers.needles:named", whole_reply: true}
prompt: none
"""


def test_the_parts_of_each_turn_are_counted_as_by_hand(tmp_path: Path) -> None:
    """As Multi-IF counts instructions: by turn, the share of prompts with all of them, and of all instructions."""
    (tmp_path / "card.yaml").write_text(CARD, encoding="utf-8")
    wanted = [[["a"], ["a", "b"], ["a", "b", "c"]], [["x"], ["x", "y"], ["x", "y", "z"]]]
    rows = [
        {"id": f"q{n}", "turns": [f"Say {n}.", "More.", "More."],
         "answer": [json.dumps({"all": texts}) for texts in each]} for n, each in enumerate(wanted)
    ]  # fmt: skip
    said = {"Say 0.": ["a", "a b", "a c"], "Say 1.": ["x", "y", "z"]}

    def reply(request: Request) -> Said:
        history = history_of(request.json)
        return Said(said[history[0][1]][len(history) // 2], 9)

    (tmp_path / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with FakeServer(serving(reply)) as server:
        done = command(tmp_path, "run", "card.yaml", "--base-url", server.base_url, "--out", "r", "--no-canary")
        assert done.code == 0, done.err
    assert command(tmp_path, "score", "r").code == 0
    score = json.loads((tmp_path / "r" / "talks" / "scores.json").read_text("utf-8"))
    by_turn = {turn: (one["accuracy"]["value"], one["parts"]) for turn, one in score["turns"].items()}
    assert by_turn == {"1": (1.0, 1.0), "2": (0.5, pytest.approx(3 / 4)), "3": (0.0, pytest.approx(3 / 6))}
    assert score["accuracy"]["value"] == 0.0
    assert score["measures"]["share of all parts"]["value"] == pytest.approx((5 + 3) / 12)


def test_a_row_of_multi_if_is_its_turns_and_their_instructions(tmp_path: Path) -> None:
    row = {
        "key": "k",
        "language": "English",
        "turn_1_prompt": json.dumps({"role": "user", "content": "A"}),
        "turn_1_instruction_id_list": ["i:a"],
        "turn_1_kwargs": [json.dumps({"n": 1, "m": None})],
        "turn_2_prompt": json.dumps({"role": "user", "content": "B"}),
        "turn_2_instruction_id_list": ["i:a", "i:b"],
        "turn_2_kwargs": [json.dumps({"n": 1}), "{}"],
        "turn_3_prompt": "",
    }
    (tmp_path / "m.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (question,) = questions.build(catalog.load("multi_if").with_data(str(tmp_path / "m.jsonl"))).questions
    turns = question.turns or ()
    assert [question.messages[-1].content, turns[1].messages[-1].content] == ["A", "B"]
    assert [json.loads(turn.references[0]) for turn in turns] == [[["i:a", {"n": 1}]], [["i:a", {"n": 1}], ["i:b", {}]]]
