"""Verifiers that come with the harness: grids, puzzles, needles, instructions; each is given the whole reply.

For: harness.grading.verifiers.grids, harness.grading.verifiers.needles, harness.grading.verifiers.instructions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

from harness.core.errors import UsageError
from harness.core.records import GradeRules, Question
from harness.grading import grade, verifier
from harness.grading.processes.pool import grader_names
from harness.grading.selftest import self_test
from reasoning_answers.bounds import MAX_WHOLE_REPLY_CHARS
from tests.grading.given import question, sample

ROOM = "harness.grading.verifiers."
GRID = "[[1, 2], [3, 0]]"
TABLE = {"House 1": {"Name": "Arnold", "Drink": "tea"}, "House 2": {"Name": "Peter", "Drink": "water"}}


def asked(reference: Any, verifier: str) -> Question:
    text = reference if isinstance(reference, str) else json.dumps(reference)
    return question(text, kind="text", rules=GradeRules(grader=ROOM + verifier, whole_reply=True))


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (GRID, "correct"),
        ("<think>[[9]]</think>The output is\n```json\n[[1,2],\n [3,0]]\n```", "correct"),
        ("first [[0, 0], [0, 0]], no: [[1, 2], [3, 0]] is it [see 1].", "correct"),
        (r"\boxed{[[1, 2], [3, 0]]} and then again [[1, 2], [3, 1]]", "wrong"),
        ("[[1, 2], [3, 0]", "wrong"),
        ("[[1, 2], [3, false]]", "wrong"),
        ("[[1, 2], [3, 0], []]", "wrong"),
        ("[[1, 2, 3, 0]]", "wrong"),
        ("[[0, 0]] or rather [[[[1, 2], [3, 0]]]]", "correct"),
        ("[[1, 2], [3, 0]] or rather [[[1, 2], [3, 1]]]", "wrong"),
        ("[[[9]], [[1, 2], [3, 0]]]", "wrong"),
        ("[[[1, 2], [3, 0]], [[1, 2], [3, 0]]]", "wrong"),
        ("[" * 5_000, "wrong"),
        ("I do not know", "wrong"),
        ("<think>" + GRID, "no_answer"),
        (" \n", "no_answer"),
        ("x" * (MAX_WHOLE_REPLY_CHARS + 1), "no_answer"),
    ],
)
def test_a_grid_is_right_if_the_last_one_of_the_reply_is(reply: str, verdict: str) -> None:
    assert grade(asked(GRID, "grids:same_grid"), sample(reply)).verdict == verdict


@pytest.mark.parametrize(
    ("solution", "right"),
    [
        (TABLE, 4),
        ({"House 2": {"Drink": " Water", "Name": ["peter"]}, "House 1": {"Name": "ARNOLD", "Drink": "Tea "}}, 4),
        (TABLE | {"House 2": {"Name": "Peter", "Drink": None}}, 3),
        ({"House 1": {"Name": "Arnold"}}, 1),
        ({"House 1": "Arnold", "House 2": {"Name": []}}, 0),
        (["Arnold"], 0),
        (None, 0),
    ],
)
def test_a_puzzle_is_solved_if_every_cell_is_right(solution: Any, right: int) -> None:
    reply = f"An example: {{}}\n```json\n{json.dumps({'reasoning': 'a { brace', 'solution': solution})}\n```\nDone."
    judged = grade(asked(TABLE, "grids:solved_puzzle"), sample(reply))
    assert (judged.verdict, judged.parts) == ("correct" if right == 4 else "wrong", (right, 4))


def test_the_last_table_counts_and_a_reply_without_one_is_wrong() -> None:
    right, wrong = (json.dumps({"solution": table}) for table in (TABLE, {"House 1": {}}))
    puzzle = asked(TABLE, "grids:solved_puzzle")
    assert grade(puzzle, sample(wrong + right)).verdict == "correct"
    assert grade(puzzle, sample(right + wrong)).verdict == "wrong"
    assert grade(puzzle, sample(json.dumps(TABLE))).verdict == "wrong"


@pytest.mark.parametrize(
    ("reference", "reply", "right"),
    [
        ({"any": ["Centre"]}, "It says:\nTHE CENTRE.", True),
        ({"any": ["17 May", "May 17"]}, "on may\n17", True),
        ({"any": ["Centre"]}, "It says CENTER.", False),
        ({"formulas": ["x ^ { 2 }"]}, "$x^{2}$", True),
        ({"formulas": ["X ^ { 2 }"]}, "$x^{2}$", False),
        ({"any": ["x ^ 2"]}, "x^2", False),
    ],
)
def test_a_reading_contains_one_of_the_texts_and_a_formula_without_blanks(
    reference: Any, reply: str, right: bool
) -> None:
    assert (grade(asked(reference, "needles:read_off"), sample(reply)).verdict == "correct") == right


@pytest.mark.parametrize(
    ("reference", "reply", "verdict", "parts"),
    [
        ({"all": ["7421", "Apple"]}, "They are 7421 and apple.", "correct", (2, 2)),
        ({"all": ["7421", "Apple"]}, "It is 7421.", "wrong", (1, 2)),
        ({"all": ["7421", "Apple"]}, "", "no_answer", (0, 2)),
        ({"any": ["Paris", "the city of Paris"]}, "PARIS", "correct", (1, 1)),
        ({"any": ["Paris"]}, "Rome", "wrong", (0, 1)),
    ],
)
def test_needles_are_named_all_of_them_or_any(reference: Any, reply: str, verdict: str, parts: tuple[int, int]) -> None:
    judged = grade(asked(reference, "needles:named"), sample(reply))
    assert (judged.verdict, judged.parts) == (verdict, parts)


class NoComma:
    """A check in the form of the authors' package."""

    def __init__(self, name: str) -> None:
        self.words = 0

    def build_description(self, num_words: int = 0, prompt: str = "") -> None:
        self.words = num_words or self.words

    def get_instruction_args(self) -> dict[str, Any] | None:
        return None

    def check_following(self, reply: str) -> bool:
        return "," not in reply and len(reply.split()) >= self.words


@pytest.fixture
def ifbench() -> Iterator[dict[str, Any]]:
    """The modules of the process, from which the verifier is imported anew."""
    with mock.patch.dict(sys.modules):
        for name in [name for name in sys.modules if name.partition(".")[0] in ("ifbench", "if_verifiable")]:
            del sys.modules[name]
        sys.modules.pop(ROOM + "instructions", None)
        yield sys.modules


@pytest.mark.parametrize(
    ("reply", "strictly", "loosely"),
    [
        ("one two three", "correct", "correct"),
        ("Sure, here it is:\none two three", "wrong", "correct"),
        ("one, two three", "wrong", "wrong"),
        ("one two", "wrong", "wrong"),
    ],
)
def test_instructions_are_checked_by_their_authors_package(
    ifbench: dict[str, Any], reply: str, strictly: str, loosely: str
) -> None:
    registry = ModuleType("ifbench.instructions_registry")
    vars(registry)["INSTRUCTION_DICT"] = {"punctuation:no_comma": NoComma}
    ifbench |= {"ifbench": ModuleType("ifbench"), "ifbench.instructions_registry": registry}
    reference = [["punctuation:no_comma", {"num_words": 3}]]
    assert grade(asked(reference, "instructions:followed_strictly"), sample(reply)).verdict == strictly
    two = grade(asked([*reference, ["punctuation:no_comma", {}]], "instructions:followed_strictly"), sample("one two"))
    assert (two.verdict, two.parts) == ("wrong", (1, 2))
    assert grade(asked(reference, "instructions:followed_loosely"), sample(reply)).verdict == loosely


def test_where_the_package_cannot_be_had_a_copy_of_its_checks_decides(
    ifbench: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for suite, checks in (("ifbench", ""), ("ifeval", "'punctuation:no_comma': Check")):
        (tmp_path / "if_verifiable" / suite).mkdir(parents=True)
        (tmp_path / "if_verifiable" / suite / "instructions_registry.py").write_text(
            f"from tests.grading.test_grading_verifiers import NoComma as Check\nINSTRUCTION_DICT = {{{checks}}}\n"
        )
    # The whole package is not imported: it writes files, and a worker may not.
    (tmp_path / "if_verifiable" / "__init__.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(tmp_path)
    instructed = asked([["punctuation:no_comma", {}]], "instructions:followed_strictly")
    assert grade(instructed, sample("one two")).verdict == "correct"
    assert grade(asked([["a:b", {}]], "instructions:followed_strictly"), sample("one")).verdict == "undecided"


def test_without_the_package_a_run_is_refused_and_told_what_to_install() -> None:
    instructed = asked([["a:b", {}]], "instructions:followed_strictly")
    with pytest.raises(UsageError, match="`pip install ifbench`"):
        grader_names([instructed])


def test_whole_replies_vote_only_with_their_equals() -> None:
    votes = [grade(asked(GRID, "grids:same_grid"), sample(reply)).vote for reply in (GRID, GRID, GRID + ".")]
    assert votes[0] == votes[1] != votes[2]


def test_the_self_test_leaves_out_references_that_are_no_replies() -> None:
    tested = self_test([asked({"all": ["apple"]}, "needles:named"), question("5")])
    assert (tested.n_references, tested.n_changed, tested.passed) == (1, 1, True)
    assert tested.verifiers == ["harness.grading.verifiers.needles:named"]


@pytest.mark.parametrize(("rule", "seconds"), [("2 s", 2.0), ("0.4 s", 0.4), ("x s", None), ("", None)])
def test_a_rule_of_foreign_grades_that_names_no_deadline_has_none(rule: str, seconds: float | None) -> None:
    assert verifier.seconds_of(f"verifier took longer than {rule}") == seconds
