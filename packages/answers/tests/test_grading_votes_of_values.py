"""Answers with one vote have one verdict: values with names, in order and in any order.

For: reasoning_answers.compare.canonical.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from asked import question
from msgspec.structs import replace

from reasoning_answers import Rules, grade
from reasoning_answers import verdict as deciding

FORMS = (
    "x={0}, y={1}", "y={1}, x={0}", "x = {0}; y = {1}", "X={0}, Y={1}", "x={0}\\ y={1}", "(x, y) = ({0}, {1})",
    "\\begin{{cases}}x={0}\\\\y={1}\\end{{cases}}", "({0}, {1})", "{0}, {1}", "\\{{{0}, {1}\\}}", "{0}或{1}",
    "x={0}或y={1}",
    "x_1={0}, x_2={1}", "x={0}或x={1}", "a={0}, b={1}", "A={0}, a={1}", "({0}, {1}), ({1}, {0})",
    "x={0}, y={1}, x={1}, y={0}", "[{0}, {1}]", "{0}:{1}",
)  # fmt: skip
ANSWERS = [form.format(*values) for form in FORMS for values in ((7, 2), (2, 7), (7, 7))]
LINES = (("x=5", "y=2"), ("x=5", "y=3"), ("y=2", "x=5"), ("x=2", "y=5"), ("a=1", "b=2", "c=-3"), ("5", "2"))
REPLIES = [
    lead + between.join(values) for lead in ("", "解得：\n", "So\n") for between in ("\n", "，\n") for values in LINES
]


def _verdicts_of_votes(reference: str, replies: list[str]) -> dict[str | None, dict[str, str]]:
    votes: dict[str | None, dict[str, str]] = defaultdict(dict)
    for reply in replies:
        verdict = grade(reference, reply)
        votes[verdict.vote].setdefault(verdict.outcome, reply)
    return votes


@pytest.mark.parametrize("reference", [form.format(7, 2) for form in (*FORMS[:4], *FORMS[5:8])])
def test_no_two_answers_with_different_verdicts_share_a_vote(reference: str) -> None:
    votes = _verdicts_of_votes(reference, [f"\\boxed{{{answer}}}" for answer in ANSWERS])
    assert [verdicts for verdicts in votes.values() if len(verdicts) > 1] == []


@pytest.mark.parametrize("reference", ["x=5，y=2", "a=1，b=2，c=-3", "(5, 2)"])
def test_a_right_reply_with_values_on_lines_votes_with_right_ones_only(reference: str) -> None:
    votes = _verdicts_of_votes(reference, REPLIES)
    votes.pop(None, None)
    # Lines that may belong to the answer leave a reply undecided whatever its answer is, so that only right ones count.
    assert [verdicts for verdicts in votes.values() if "correct" in verdicts and len(verdicts) > 1] == []


def test_named_values_are_one_vote_however_they_are_written() -> None:
    written = [form.format(7, 2) for form in FORMS[:9] if "\\ " not in form and "X" not in form]
    assert {grade("x=7, y=2", f"\\boxed{{{answer}}}").vote for answer in written} == {"x = 7, y = 2"}
    assert grade("x=7, y=2", "\\boxed{x=2, y=7}").vote == "x = 2, y = 7"


BARE = (
    "1", "2", "1, 2", "2, 1", "(1, 2)", "(2, 1)", "\\{1, 2\\}", "\\{2, 1\\}", "[1, 2]", "[2, 1]", "1, 1, 2",
    "\\{1, 1, 2\\}", "1 or 2", "1 and 2", "1; 2", "x=1, x=2", "x=1 or x=2", "x=1", "y=1", "x=1, y=2", "[1, 2)",
    "1<x<2", "1\\le x\\le 2", "x>1", "(1, \\infty)", "1/2", "0.5", "50", "50\\%", "0.5\\%", "0.75", "0.75\\%", "75",
    "30, 60", "30^\\circ, 60^\\circ", "30\\%, 60\\%", "1 cm, 2 cm", "1, 2 cm", "1 dollars, 2 dollars", "1 cm",
    "(1,2), (3,4)", "(3,4), (1,2)", "\\{(1,2), (3,4)\\}",
)  # fmt: skip
"""Answers whose votes may leave something out: signs, names, units, braces and repeated elements."""


@pytest.mark.parametrize("reference", BARE)
def test_no_bare_list_set_or_percentage_votes_with_another_verdict(reference: str) -> None:
    problem, votes = question(reference), defaultdict[str | None, dict[str, str]](dict)
    for answer in BARE:
        decided = deciding.decide(problem, answer)
        votes[decided.vote].setdefault(decided.outcome, answer)
    assert [verdicts for verdicts in votes.values() if len(verdicts) > 1] == []


def test_sets_and_lists_in_any_order_are_one_vote_beside_a_list() -> None:
    problem = question("1, 2")
    written = ("1, 2", "2, 1", "\\{1, 2\\}", "\\{2, 1, 2\\}", "1 and 2", "1 or 2")
    assert {deciding.decide(problem, answer).vote for answer in written} == {"1, 2"}


def test_the_text_of_an_option_votes_for_its_letter() -> None:
    problem = replace(question("D"), kind="choice", choices=("0.25%", "0.5%", "0.75", "0.75%"))
    votes = {answer: deciding.decide(problem, answer).vote for answer in ("D", "0.75\\%", "0.75 %", "0.75", "75%", "C")}
    assert votes == {"D": "D", "0.75\\%": "D", "0.75 %": "D", "0.75": "C", "75%": "C", "C": "C"}


ORDERED = ("9；20", "9，20", "9、20", "(9, 20)", "9和20", "20；9", "20, 9", "(20, 9)", "20和9", "9；21", "21；9", "9")


@pytest.mark.parametrize("ordered", [True, False])
def test_an_order_that_counts_makes_two_votes_and_separators_make_none(ordered: bool) -> None:
    problem = replace(question("9；20"), rules=Rules(ordered=ordered))
    votes: dict[str | None, set[str]] = defaultdict(set)
    right: set[str | None] = set()
    for answer in ORDERED:
        decided = deciding.decide(problem, answer)
        votes[decided.vote].add(decided.outcome)
        right |= {decided.vote} if decided.outcome == "correct" else set()
    assert all(len(outcomes) == 1 for outcomes in votes.values())
    assert len(right) == 1
    other_order = {deciding.decide(problem, answer).vote for answer in ("20；9", "20, 9", "20和9")}
    assert other_order == right if ordered is False else other_order.isdisjoint(right)
