"""Questions and grades as whole files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import StoreError
from harness.core.records import Grade, GradeRules, Message
from harness.runs import BenchmarkFolder, grades, questions
from harness.runs.line_file import write_lines
from tests.budget import examples
from tests.runs.recorded import BENCHMARK, question


def grade(question_id: str, **fields: Any) -> Grade:
    defaults: dict[str, Any] = {"verdict": "correct", "extracted": "42", "rule": "exact", "grader": "rules 1"}
    return Grade(benchmark=BENCHMARK, question_id=question_id, sample_index=0, **{**defaults, **fields})


@given(text=st.text(), reference=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(30))
def test_questions_come_back_equal_and_in_order(folder: BenchmarkFolder, text: str, reference: str) -> None:
    folder.questions.unlink(missing_ok=True)
    written = [
        question("b", messages=(Message("user", text),), references=(reference,), metadata={"level": [1, None]}),
        question("a", rules=GradeRules(relative_tolerance=0.1), choices=(text, "x"), kind="choice"),
    ]
    questions.write(folder, written)
    assert questions.read(folder) == written


@pytest.mark.parametrize(
    ("first", "then", "stored"), [("ab", "b", "ba"), ("a", "ab", "ab"), ("a", "a", "a"), ("ab", "ab", "ab")]
)
def test_a_second_list_extends_the_first_and_loses_nothing(
    folder: BenchmarkFolder, first: str, then: str, stored: str
) -> None:
    questions.write(folder, [*map(question, first)])
    before = folder.questions.stat().st_ino
    questions.write(folder, [*map(question, then)])
    assert [row.question_id for row in questions.read(folder)] == [*stored]
    assert (folder.questions.stat().st_ino == before) is (first == then), "the same questions are not written again"


def test_one_id_for_two_questions_is_refused(folder: BenchmarkFolder) -> None:
    with pytest.raises(StoreError, match="question a of AIME 2024 occurs twice"):
        questions.write(folder, [question("a"), question("a")])
    assert not folder.questions.exists()


@pytest.mark.parametrize("fields", [{"prompt_digest": "other"}, {"references": ("43",)}])
def test_a_question_that_is_not_as_it_was_asked_is_refused(folder: BenchmarkFolder, fields: dict[str, Any]) -> None:
    questions.write(folder, [question("a")])
    with pytest.raises(StoreError, match="question a of AIME 2024 has changed since"):
        questions.write(folder, [question("a", **fields)])


def test_damage_is_refused_with_its_line_and_what_to_do(folder: BenchmarkFolder) -> None:
    questions.write(folder, [question("a"), question("b")])
    lines = folder.questions.read_bytes().splitlines(keepends=True)
    folder.questions.write_bytes(lines[0] + lines[1][:20])
    with pytest.raises(StoreError, match=r"questions\.jsonl, line 2 is damaged: .*Remove the file"):
        questions.read(folder)


def test_a_newer_schema_is_refused_with_its_version(folder: BenchmarkFolder) -> None:
    questions.write(folder, [question("a", schema=5)])
    with pytest.raises(StoreError, match="line 1 has schema 5; this harness reads schemas up to 1"):
        questions.read(folder)


def test_what_an_editor_adds_is_passed_over(folder: BenchmarkFolder) -> None:
    questions.write(folder, [question("a"), question("b")])
    folder.questions.write_bytes(b"\xef\xbb\xbf" + folder.questions.read_bytes().replace(b"\n", b"\r\n") + b"\n")
    assert [row.question_id for row in questions.read(folder)] == ["a", "b"]


def test_grades_come_back_equal_and_are_replaced_as_a_whole(folder: BenchmarkFolder) -> None:
    write_lines(folder.grades, [grade("a"), grade("b", vote="42", span=(1, 3), extracted="\u2028\ud800")])
    assert grades.read(folder)[1] == grade("b", vote="42", span=(1, 3), extracted="\u2028\ud800")
    write_lines(folder.grades, iter([grade("c", verdict="undecided", extracted=None)]))
    assert grades.read(folder) == [grade("c", verdict="undecided", extracted=None)]


@pytest.mark.parametrize(("read", "hint"), [(grades.read, "harness score"), (questions.read, "run's command")])
def test_a_missing_file_is_said_with_what_to_do(
    folder: BenchmarkFolder, read: Callable[[BenchmarkFolder], list[object]], hint: str
) -> None:
    with pytest.raises(StoreError, match=f"No such file.*{hint}"):
        read(folder)


@pytest.mark.parametrize("name", ["questions", "grades"])
def test_a_planted_link_is_not_written_through(folder: BenchmarkFolder, tmp_path: Path, name: str) -> None:
    (tmp_path / "victim").write_bytes(b"")
    folder.create()
    getattr(folder, name).symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match="symbolic link"):
        questions.write(folder, [question("a")]) if name == "questions" else write_lines(folder.grades, [grade("a")])
    assert (tmp_path / "victim").read_bytes() == b""
