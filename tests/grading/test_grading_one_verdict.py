"""`harness grade`, `harness score` and the pool say one thing of one response, and the steps end in it.

For: harness.cli.grade.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import harness
from harness.cli.main import cli
from harness.core.errors import UsageError
from harness.core.records import GradeRules
from harness.grading import GRADER, Verdict
from harness.grading.grades import grade_of
from harness.grading.processes.pool import Pool, question_on
from harness.grading.selftest import self_test
from harness.presets.grading import DEADLINE_SECONDS
from reasoning_answers.search import search
from tests.grading.given import sample
from tests.pins.verdicts import Row, pinned, shared

pytestmark = pytest.mark.slow

SPOKEN = {"correct": "correct", "wrong": "wrong", "no_answer": "no answer", "undecided": "undecided"}
EVERY = 200
"""One of so many pairs goes through the command `harness grade`, which starts a process each time."""

PAIRS_EVERY = 32
"""One of so many pairs is graded and scored."""


def graded(rows: list[Row]) -> list[Verdict]:
    """What `harness grade` says of each row, by one pool."""
    asked = [(question_on(row.reference, name=str(i)), sample(row.reply, name=str(i))) for i, row in enumerate(rows)]
    with Pool(1, DEADLINE_SECONDS) as pool:
        found = [pool.ask_about(*each, search(*each, with_steps=True), GRADER, with_steps=True) for each in asked]
        return [pending.verdict() for pending in found]


def scored(rows: list[Row], folder: Path) -> list[dict[str, object]]:
    """What `harness score FILE` stores for each row."""
    source = folder / "outputs.jsonl"
    lines = [{"id": str(i), "response": row.reply, "answer": row.reference} for i, row in enumerate(rows)]
    source.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    words = ["score", str(source), "--response-key", "response", "--answer-key", "answer", "--id-key", "id"]
    done = CliRunner().invoke(cli, [*words, "--workers", "1"])
    assert done.exit_code == 0, done.output
    grades = folder / "outputs.jsonl.scored/outputs/grades.jsonl"
    return [json.loads(line) for line in grades.read_bytes().splitlines()]


def check(rows: list[Row], folder: Path) -> None:
    rows = [row for row in rows if row.reference.strip() and row.reply.isascii() | row.reply.isprintable()]
    by_grade, stored = graded(rows), scored(rows, folder)
    assert len(by_grade) == len(stored) == len(rows)
    for row, verdict, grade in zip(rows, by_grade, stored, strict=True):
        what = (verdict.outcome, verdict.rule, verdict.extracted, verdict.vote)
        assert what == (grade["verdict"], grade["rule"], grade["extracted"], grade["vote"]), row
        assert verdict.steps[-1] == SPOKEN[str(grade["verdict"])], row
        assert all(step.isprintable() for step in verdict.steps), row


def plain_rows() -> list[Row]:
    """The pinned rows that have nothing but a reference and a reply."""
    return [row for rows in pinned().values() for row in rows if row.more.keys() <= {"says", "group", "note"}]


def test_grade_prints_what_score_stores_for_pinned_pairs(tmp_path: Path) -> None:
    check(plain_rows()[::PAIRS_EVERY], tmp_path)


def test_grade_prints_what_score_stores_for_shared_pairs(shared_data: Path, tmp_path: Path) -> None:
    check([row for rows in shared(shared_data).values() for row in rows][::PAIRS_EVERY], tmp_path)


SOLUTION = "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nIn all she sold 48+24 = 72 clips."
STATED = ("{}\n#### {}", r"{} Hence $\boxed{{{}}}$.", "<think>{}</think><answer>{}</answer>", "{} The answer is {}.")
UNSTATED = (SOLUTION, "#### A heading\n" + SOLUTION)
"""Texts that state no answer: nothing is read out of them."""


def test_a_worked_solution_is_the_answer_that_it_states_for_every_door(tmp_path: Path) -> None:
    answers = (
        ("18", "18.0", "72"),
        (r"\frac{3}{4}", "0.75", "72"),
        ("x+1", "1+x", "x-1"),
        ("(-1,2]", "(-1, 2]", "(-1,2)"),
    )
    rows = [
        Row(form.format(SOLUTION, answer), rf"\boxed{{{reply}}}", verdict, {})
        for form in STATED
        for answer, right, wrong in answers
        for reply, verdict in ((right, "correct"), (wrong, "wrong"))
    ]
    check(rows, tmp_path)
    assert [verdict.outcome for verdict in graded(rows)] == [row.verdict for row in rows]
    unread = [Row(text, r"\boxed{18}", "", {}) for text in UNSTATED]
    assert [verdict.outcome for verdict in graded(unread)] == ["undecided", "undecided"]
    tested = self_test(question_on(row.reference, name=str(at)) for at, row in enumerate(rows))
    assert not tested.not_itself + tested.not_distinct + tested.unread


def test_the_command_prints_the_steps_of_the_same_verdict() -> None:
    rows = [row for row in plain_rows()[::EVERY] if row.reference.strip()]
    for row, verdict in zip(rows, graded(rows), strict=True):
        done = CliRunner().invoke(cli, ["grade", "--", row.reference, row.reply])
        assert (done.exit_code, done.output.splitlines()) == (0, list(verdict.steps)), row


def test_an_option_that_there_is_not_is_no_reference() -> None:
    refused = CliRunner().invoke(cli, ["grade", "--whole-repl", "5", "5"])
    assert refused.exit_code == 2
    assert "No such option: --whole-repl. Did you mean --whole-reply?" in refused.output
    for words in (["-5", "-5"], ["--", "--x", "--x"]):
        assert CliRunner().invoke(cli, ["grade", *words]).output.splitlines()[-1] == "correct"


def test_a_reference_of_several_parts_is_a_list_for_both(tmp_path: Path) -> None:
    source, out = tmp_path / "outputs.jsonl", tmp_path / "made/outputs/grades.jsonl"
    source.write_text(json.dumps({"response": r"\boxed{4} and \boxed{3}", "answer": [3, 4]}) + "\n")
    done = CliRunner().invoke(cli, ["score", str(source), "--out", str(tmp_path / "made")])
    assert done.exit_code == 0, done.output
    assert (
        json.loads(out.read_bytes())["verdict"]
        == harness.grade([3, 4], r"\boxed{4} and \boxed{3}").outcome
        == "correct"
    )


def test_letters_up_to_the_last_option_of_the_question_count() -> None:
    texts = tuple(f"option {n}" for n in range(12))
    verdict = harness.grade("K", "The answer is K.", kind="choice", choices=texts)
    assert (verdict.outcome, verdict.extracted) == ("correct", "K")
    assert harness.grade("K", "The answer is L.", kind="choice", choices=texts).outcome == "wrong"


def test_an_own_verifier_decides_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_GRADERS", "tests.grading.verifiers")
    even = GradeRules(grader="tests.grading.verifiers:is_even")
    assert [harness.grade("any", rf"\boxed{{{n}}}", grader=even.grader).outcome for n in (4, 5)] == ["correct", "wrong"]
    words = ["grade", "any", r"\boxed{4}", "--grader", even.grader]
    assert CliRunner().invoke(cli, words).output.splitlines()[-1] == "correct"
    monkeypatch.setenv("HARNESS_GRADERS", "")
    assert CliRunner().invoke(cli, words).exit_code != 0


def test_an_exception_of_a_library_is_named_with_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_GRADERS", "tests.grading.verifiers")
    rules = GradeRules(grader="tests.grading.verifiers:is_pattern")
    assert harness.grade("any", r"\boxed{a}", grader=rules.grader).outcome == "correct"
    name = re.error.__name__  # PatternError, from Python 3.13 on
    assert harness.grade("any", r"\boxed{(}", grader=rules.grader).rule.startswith(
        f"verifier raised re.{name} (verifiers.py:"
    )


def test_a_verdict_is_a_value() -> None:
    right, wrong = harness.grade("1/2", r"so \boxed{0.5}"), harness.grade(0.5, r"so \boxed{0.6}")
    assert (bool(right), right.correct, bool(wrong)) == (True, True, False)
    assert right == harness.grade("1/2", r"so \boxed{0.5}")
    assert grade_of(right, sample("x")).grader == GRADER


@pytest.mark.parametrize("reference", ["", " ", None, True, float("nan"), [], [None]])
def test_no_reference_is_refused(reference: object) -> None:
    with pytest.raises(UsageError, match="the reference answer"):
        question_on(reference)


@pytest.mark.parametrize("imported", ["from harness import grade, Verdict, UsageError", "import harness.rewards"])
def test_to_grade_alone_loads_no_client_no_statistics_and_no_reports(imported: str) -> None:
    code = f"{imported}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}}, *sys.modules)"
    names = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {"numpy", "httpx", "pydantic", "rich", "click", "harness.api", "harness.scoring"}.isdisjoint(names)
