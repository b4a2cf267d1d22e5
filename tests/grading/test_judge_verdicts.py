"""What a judge's ruling does to a grade, and which request stands for which answers."""

from __future__ import annotations

import msgspec
import pytest

from harness.benchmarks.judge_forms import form_named
from harness.core.records import Grade, Message, Question, VerdictName
from harness.grading.second.judge_messages import (
    JudgeRuling,
    answer_for_judge,
    apply_ruling,
    in_scope,
    judge_name,
    judge_question,
)

VERDICT = form_named("verdict")
LIMO = form_named("limo")

QUESTION = Question(
    benchmark="b",
    question_id="q",
    messages=(Message("system", "Think."), Message("user", "An example"), Message("user", "What is 1 + 1?")),
    references=("2",),
    kind="integer",
    row_digest="r",
    prompt_digest="p",
)


def grade_of(verdict: VerdictName) -> Grade:
    return Grade(
        benchmark="b",
        question_id="q",
        sample_index=0,
        verdict=verdict,
        extracted="2",
        rule="integer",
        grader="rules/1",
        unextracted=True,
    )


@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        ("undecided", {"undecided"}),
        ("wrong", {"undecided", "wrong"}),
        ("all", {"undecided", "wrong", "correct", "no_answer"}),
    ],
)
def test_the_scope_says_whose_answers_are_shown(scope: str, seen: set[str]) -> None:
    verdicts: list[VerdictName] = ["correct", "wrong", "no_answer", "undecided"]
    assert {v for v in verdicts if in_scope(grade_of(v), scope)} == seen  # type: ignore[arg-type]


@pytest.mark.parametrize("verdict", ["correct", "wrong", "no_answer", "undecided"])
@pytest.mark.parametrize("ruling", [JudgeRuling("correct"), JudgeRuling("wrong"), None])
def test_a_ruling_changes_only_what_it_may(verdict: VerdictName, ruling: JudgeRuling | None) -> None:
    grade = grade_of(verdict)
    unchanged = apply_ruling(grade, ruling, "g")
    assert (unchanged == grade) == (verdict != "undecided" or ruling is None)
    replaced = apply_ruling(grade, ruling, "g", override=True)
    if ruling is None:
        assert replaced == grade
    else:
        is_right = ruling.verdict == "correct"
        assert (replaced.verdict == "correct") == is_right
        assert (replaced.rule, replaced.grader) == ("judge", "rules/1+g"), "decided by the judge, also if both agree"
        assert (replaced.verdict == verdict) == (verdict != "undecided" and (verdict == "correct") == is_right)


@pytest.mark.parametrize("verdict", ["correct", "wrong", "no_answer", "undecided"])
def test_a_judge_that_finds_no_answer_is_heard_whatever_the_rules_said(verdict: VerdictName) -> None:
    missed = msgspec.structs.replace(grade_of(verdict), near_miss="another box" if verdict == "wrong" else None)
    silent = apply_ruling(missed, JudgeRuling("no_answer"), "g", override=True)
    assert (silent.verdict, silent.near_miss) == ("no_answer", None)
    wrong = apply_ruling(missed, JudgeRuling("wrong"), "g", override=True)
    assert wrong.verdict == ("no_answer" if verdict == "no_answer" else "wrong"), "a labelled verdict never tells them"


@pytest.mark.parametrize(("rule", "shown"), [("integer", "2"), ("sentence", None)])
def test_the_judge_reads_a_sentence_that_has_no_known_form(rule: str, shown: str | None) -> None:
    assert answer_for_judge(msgspec.structs.replace(grade_of("undecided"), rule=rule)) == shown


def test_one_request_stands_for_equal_answers_and_no_others() -> None:
    ids = [judge_question(VERDICT, QUESTION, answer).question_id for answer in ("2", "3", "2")]
    assert ids[0] == ids[2] != ids[1]
    assert judge_question(LIMO, QUESTION, "2").question_id != ids[0]
    another = msgspec.structs.replace(QUESTION, references=("3",))
    assert judge_question(VERDICT, another, "2").question_id != ids[0]


def test_the_judge_reads_the_last_turn_of_the_user() -> None:
    [message] = judge_question(VERDICT, QUESTION, "2").messages
    assert "What is 1 + 1?" in message.content
    assert "An example" not in message.content
    raw = msgspec.structs.replace(QUESTION, messages=(), prompt="Raw text")
    assert "Raw text" in judge_question(VERDICT, raw, "2").messages[0].content


def test_the_name_of_a_judge_has_its_model_and_prompt() -> None:
    assert judge_name("org/m", LIMO) == "judge:org/m@limo"


def test_a_judged_sample_names_who_left_it_open_and_then_the_judge() -> None:
    by_verifier = msgspec.structs.replace(grade_of("undecided"), grader="mine:right@1f88ba22c3e8")
    assert (
        apply_ruling(by_verifier, JudgeRuling("correct"), "judge:m@verdict").grader
        == "mine:right@1f88ba22c3e8+judge:m@verdict"
    )
    assert apply_ruling(by_verifier, None, "judge:m@verdict").grader == "mine:right@1f88ba22c3e8"
