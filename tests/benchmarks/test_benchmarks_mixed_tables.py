"""One table with questions of several kinds: rules by row, and rows with options beside rows without.

For: harness.benchmarks.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.benchmarks import catalogue, questions
from harness.benchmarks.card import Card, from_mapping
from harness.benchmarks.row_rules import FORMS, ORDERS, with_rules_of_row
from harness.core.errors import UsageError
from harness.core.records import GradeRules, Question
from harness.grading.selftest import boxed_sample
from harness.grading.verdict import grade

HEAD = "no,task,A,B,C,answer,keep"
PAPER = f"""{HEAD}
1,How many litres are 2 m3?,,,,2000,
2,Simplify 12:8,,,,3:2,simplest
3,Factor x^2-1,,,,(x+1)(x-1),factored
4,Fill 3:4=( ):12=15:( ),,,,9;20,ordered
5,Which is prime?,9,15,17,C,
6,Which is even? (A) 3 (B) 4,,,,B,
7,Is 7 prime?,,,,yes,
8,Solve x^2=4,,,,2;-2,unordered
"""
CARD: dict[str, Any] = {
    "name": "paper",
    "title": "Paper",
    "columns": {"question": "task", "answer": "answer", "id": "no", "rules": "keep"},
    "choices": {"options": ["A", "B", "C"]},
    "kind": "auto",
    "prompt": "boxed_mixed",
}


def paper(folder: Path, table: str = PAPER, **changes: Any) -> Card:
    path = folder / "paper.csv"
    path.write_text(table, encoding="utf-8")
    return from_mapping(CARD | {"source": {"kind": "file", "path": str(path)}} | changes, "test")


def by_id(card: Card) -> dict[str, Question]:
    return {question.question_id: question for question in questions.build(card).questions}


@pytest.mark.parametrize(
    ("question_id", "right", "wrong"),
    [
        ("1", "2000", "200"),
        ("2", "3:2", "12:8"),
        ("3", "(x-1)(x+1)", "x^2-1"),
        ("4", "9;20", "20;9"),
        ("5", "C", "B"),
        ("6", "B", "A"),
        ("7", "yes", "no"),
        ("8", "-2;2", "2;3"),
    ],
)
def test_one_table_holds_questions_of_all_kinds(tmp_path: Path, question_id: str, right: str, wrong: str) -> None:
    question = by_id(paper(tmp_path))[question_id]
    assert grade(question, boxed_sample(question, right)).verdict == "correct"
    assert grade(question, boxed_sample(question, wrong)).verdict != "correct"


def test_only_a_row_with_options_shows_options(tmp_path: Path) -> None:
    rows = by_id(paper(tmp_path))
    assert [name for name, question in rows.items() if question.choices] == ["5"]
    assert "A) 9\nB) 15\nC) 17\n" in rows["5"].last_turn
    assert all("letter of the right option" in question.last_turn for question in rows.values())


def test_a_cell_changes_its_own_row_only_and_adds_to_the_rules_of_the_card(tmp_path: Path) -> None:
    rows = by_id(paper(tmp_path, rules={"round_to_reference": True}))
    plain = GradeRules(round_to_reference=True)
    changed = {name: question.rules for name, question in rows.items() if question.rules != plain}
    assert changed == {
        "2": msgspec.structs.replace(plain, form="simplest", of_row=("form",)),
        "3": msgspec.structs.replace(plain, form="factored", of_row=("form",)),
        "4": msgspec.structs.replace(plain, ordered=True, of_row=("ordered",)),
        "8": msgspec.structs.replace(plain, ordered=False, of_row=("ordered",)),
    }


@pytest.mark.parametrize(("form", "between", "order"), [*itertools.product(FORMS, " ,，;；、", ORDERS)])
def test_a_cell_names_a_form_an_order_or_both(form: str, between: str, order: str) -> None:
    for names in ([form, order], [order, form]):
        both = with_rules_of_row(GradeRules(), between.join(names))
        assert (both.form, both.ordered) == (form, ORDERS[order])
    for ordered in (None, True, False):
        alone = with_rules_of_row(GradeRules(form="decimal", ordered=ordered), form)
        assert (alone.form, alone.ordered) == (form, ordered)
        assert with_rules_of_row(GradeRules(form="decimal", ordered=ordered), order).form == "decimal"


@pytest.mark.parametrize("cell", [None, "", " ", "，"])
def test_an_empty_cell_leaves_the_rules_of_the_card(cell: str | None) -> None:
    rules = GradeRules(form="simplest", ordered=True)
    assert with_rules_of_row(rules, cell) is rules


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("9,Factor,,,,x(x+1),factorred", r"paper.csv:2: the column 'keep' .*found 'factorred'. Did you mean factored"),
        ("9,Factor,,,,x(x+1),factored simplest", r"names 2 forms \(factored, simplest\); an answer has one"),
        ("9,Factor,,,,x(x+1),ordered unordered", "names both ordered and unordered"),
        ("9,Factor,,,,x(x+1),os:system", r"must name rules of a row \(.*, unordered\) or be empty, found 'os:system'"),
        ("9,Which?,9,15,17,C,simplest", "must be empty, because the answer is an option's letter, found 'simplest'"),
        ("9,Which? (A) 1 (B) 2,,,,B,ordered", "must be empty, because the answer is an option's letter"),
        ("9,Is it?,,,,yes,ordered", "must be empty, because the answer is in words, found 'ordered'"),
        ("9,Which?,9,,,A,", "expected 2 to 26 options, found 1"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused_in_one_sentence(tmp_path: Path, row: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        questions.build(paper(tmp_path, f"{HEAD}\n{row}\n"))


def test_a_card_of_choices_still_needs_options_in_every_row(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="or use a card of `kind: auto`, whose table may hold both"):
        questions.build(paper(tmp_path, kind="choice"))


def test_a_column_of_rules_must_exist_and_needs_the_grader_of_rules(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no column 'keep' for the rules"):
        questions.build(paper(tmp_path, "no,task,A,B,C,answer\n1,One?,,,,1\n"))
    with pytest.raises(UsageError, match=r"`columns.rules` are rules of the grader"):
        paper(tmp_path, rules={"grader": "some.module:verify"})


def test_a_card_without_the_column_keeps_its_recipe(tmp_path: Path) -> None:
    columns = {name: column for name, column in CARD["columns"].items() if name != "rules"}
    assert "rules" not in paper(tmp_path, columns=columns).ingredients["columns"]
    assert "rules" in paper(tmp_path).ingredients["columns"]


def regraded_by(folder: Path, began: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any, bool]]:
    """Question id → (form, ordered, round_to_reference) of a run that began with some rules, by its card's new ones."""
    rows = questions.build(paper(folder, rules=began)).questions
    file = folder / "paper.yaml"
    corrected = {**CARD, "source": {"kind": "file", "path": "paper.csv"}, "rules": now}
    file.write_text(json.dumps({name: value for name, value in corrected.items() if name != "name"}))
    regraded, warning = catalogue.apply_card_rules("paper", {"card": str(file)}, rows)
    assert (warning is None) == (began == now)
    rules = {question.question_id: question.rules for question in regraded}
    return {name: (each.form, each.ordered, each.round_to_reference) for name, each in rules.items()}


OF_ROWS = {"2": {"form": "simplest"}, "3": {"form": "factored"}, "4": {"ordered": True}, "8": {"ordered": False}}
"""The rules that rows of the table state, by the question's id."""

OF_CARDS: list[dict[str, Any]] = [
    {},
    {"round_to_reference": True},
    *({"ordered": ordered} for ordered in (True, False)),
    *({"form": form} for form in ("simplest", "decimal")),
    {"form": "factored", "ordered": True},
]


@pytest.mark.parametrize(("began", "now"), [*itertools.product(OF_CARDS, OF_CARDS)])
def test_a_corrected_card_grades_anew_and_its_rows_keep_only_what_they_state(
    tmp_path: Path, began: dict[str, Any], now: dict[str, Any]
) -> None:
    """A row that states what the card stated, too, keeps it when the card changes."""
    for name, found in regraded_by(tmp_path, began, now).items():
        rules = {"form": None, "ordered": None, "round_to_reference": False} | now | OF_ROWS.get(name, {})
        assert found == (rules["form"], rules["ordered"], rules["round_to_reference"]), name


def test_a_card_cannot_say_which_rules_are_the_rows(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown rule 'of_row'"):
        paper(tmp_path, rules={"of_row": ["form"]})
