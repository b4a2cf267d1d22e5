"""Every shipped card reads rows of its files' layouts, with the traps that those files hold; its references grade."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.benchmarks import catalogue, questions
from harness.benchmarks.prompts import BOXED
from harness.benchmarks.questions import QuestionSet
from harness.core.records import Question
from tests.benchmarks.made_up import INSTRUCTION, LAYOUTS, asked
from tests.benchmarks.test_benchmarks_self_graded import verdict

Load = Callable[..., QuestionSet]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Reads an invented file by the card of its layout."""

    def read(file: str, **options: str) -> QuestionSet:
        (tmp_path / file).write_bytes(LAYOUTS[file].jsonl())
        return questions.build(catalogue.load(LAYOUTS[file].card).with_data(str(tmp_path / file)), **options)

    return read


def text(question: Question) -> str:
    return question.messages[-1].content


@pytest.mark.parametrize("file", LAYOUTS)
def test_a_card_reads_the_layouts_of_its_files(load: Load, file: str) -> None:
    layout, built = LAYOUTS[file], load(file)
    assert [question.references for question in built.questions] == layout.references
    ids = tuple(question.question_id for question in built.questions)
    assert len(set(ids)) == len(layout.rows)
    assert ids == (layout.ids or ids)
    kinds = tuple(question.kind for question in built.questions)
    assert kinds == (layout.kinds or kinds)


@pytest.mark.parametrize("file", LAYOUTS)
def test_the_instruction_is_asked_exactly_once(load: Load, file: str) -> None:
    built = load(file, prompt="boxed")
    assert all(text(question).count(r"\boxed{}") == 1 for question in built.questions)
    assert all(text(question).endswith("\n" + BOXED) for question in built.questions)
    carried = INSTRUCTION in str(LAYOUTS[file].rows[0].get("prompt"))
    assert any("carry the instruction" in note for note in built.notes) == carried


@pytest.mark.parametrize("file", [name for name, layout in LAYOUTS.items() if not layout.ids])
def test_rows_without_ids_keep_their_identity_in_any_order(load: Load, tmp_path: Path, file: str) -> None:
    built = load(file)
    turned = tmp_path / f"turned-{file}"
    turned.write_bytes(b"\n".join(reversed(LAYOUTS[file].jsonl().split(b"\n"))))
    in_turn = questions.build(catalogue.load(LAYOUTS[file].card).with_data(str(turned)))
    names = [{q.question_id: q.row_digest for q in question_set.questions} for question_set in (built, in_turn)]
    assert names[0] == names[1]
    assert (in_turn.rows_digest, in_turn.dataset_digest) == (built.rows_digest, built.dataset_digest)


@pytest.mark.parametrize("file", LAYOUTS)
def test_every_reference_is_right_against_itself_and_a_number_that_no_row_has_is_not(load: Load, file: str) -> None:
    for question in load(file).questions:
        assert [verdict(question, reference) for reference in question.references] == ["correct"] * len(
            question.references
        )
        unread = question.kind in ("text", "choice")  # a number is neither shown to be such words nor such an option
        assert verdict(question, "987654321") == ("undecided" if unread else "wrong")


@pytest.mark.parametrize("file", ["aime24.jsonl", "aime26.jsonl", "amc23.jsonl", "gsm8k.jsonl"])
def test_a_neighbouring_number_is_wrong(load: Load, file: str) -> None:
    for question in load(file).questions:
        assert verdict(question, str(float(question.references[0]) + 1).removesuffix(".0")) == "wrong"


def test_what_stands_beside_a_question_reaches_its_rules_and_its_metadata(load: Load) -> None:
    of_one, _, with_unit = load("olympiadbench.jsonl").questions
    assert (with_unit.metadata["unit"], with_unit.rules.absolute_tolerance) == ("km", 0.1)
    assert (of_one.rules.absolute_tolerance, of_one.metadata["answer_type"]) == (0, "Numerical")
    assert all(question.rules.relative_tolerance == 0.01 for question in load("minerva_math.jsonl").questions)
    assert load("math500_with_solutions.jsonl", filters=["level=2"]).questions[0].metadata["level"] == 2


def test_chinese_sets_ask_in_chinese_and_write_line_breaks(load: Load) -> None:
    assert all("请逐步推理" in text(question) for question in load("gaokao.jsonl").questions)
    first = text(load("kaoyan.jsonl", prompt="none").questions[0])
    assert first == "设$x \\neq 1$\nA. 1\nB. 2"


def test_figures_and_a_question_that_stands_there_twice_stay(load: Load) -> None:
    assert "[asy]" in text(load("aime24_with_solutions.jsonl").questions[0])
    kaoyan = load("kaoyan.jsonl", prompt="none").questions
    assert text(kaoyan[2]) == text(kaoyan[3]) == asked(2)
    assert kaoyan[2].row_digest != kaoyan[3].row_digest
