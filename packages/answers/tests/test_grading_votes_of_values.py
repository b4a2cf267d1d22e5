"""Votes are equal where `equal` says so of the answers, and answers with one vote have one verdict.

For: reasoning_answers.votes, reasoning_answers.grading.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from asked import SEED, examples
from rewritings import KINDS, Case

from reasoning_answers import Rules, Verdict, equal, grade, vote

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


def boxed(reference: str, *answers: str) -> list[Verdict]:
    return [grade(reference, rf"\boxed{{{answer}}}") for answer in answers]


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_answers_vote_together_where_they_are_equal(kind: str) -> None:
    for number in range(examples(80)):
        case = Case(kind, f"{SEED} {number}")
        for first, second in (case.pair(), case.different()):
            one, other = boxed("987654321 q", first, second)
            alike = first == second or equal(one.vote or "", second, kind="expression") is True
            assert (one.vote == other.vote) is alike, (f"HARNESS_FUZZ_SEED={SEED}", first, second)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (r"27\text{ km}", (r"26\text{ km}", r"26000\text{ m}")),
        ("y=2x+1", ("y=2x+5", "2x-y+5=0")),
        (r"\sin x", (r"2\cos 2x", r"2(1-2\sin^2 x)")),
        ("1, 2", ("3, 4", r"\{4, 3\}")),
        (r"\frac{\pi}{3}", (r"45^\circ", r"\frac{\pi}{4}")),
        ("x=1, y=2", ("(3, 4)", "y=4, x=3")),
    ],
)
def test_two_spellings_of_a_wrong_answer_outvote_the_right_one(right: str, wrong: tuple[str, str]) -> None:
    winner = vote(boxed(right, right, wrong[0], right, wrong[1], right, *wrong))
    assert winner is not None
    assert winner.outcome == "wrong"


def test_units_that_differ_are_votes_that_differ() -> None:
    verdicts = boxed(r"27\text{ km}", *[rf"26\text{{ {unit}}}" for unit in ("km", "m", "s")])
    assert sorted(Counter(verdict.vote for verdict in verdicts).values()) == [1, 1, 1]


def _outcomes_of_votes(verdicts: list[Verdict]) -> list[set[str]]:
    votes: dict[str | None, set[str]] = defaultdict(set)
    for verdict in verdicts:
        votes[verdict.vote].add(verdict.outcome)
    votes.pop(None, None)
    return [*votes.values()]


@pytest.mark.parametrize("reference", [form.format(7, 2) for form in (*FORMS[:4], *FORMS[5:8])])
def test_no_right_answer_votes_with_another(reference: str) -> None:
    assert all(len(each) == 1 for each in _outcomes_of_votes(boxed(reference, *ANSWERS)) if "correct" in each)


@pytest.mark.parametrize("reference", ["x=5，y=2", "a=1，b=2，c=-3", "(5, 2)"])
def test_a_right_reply_with_values_on_lines_votes_with_right_ones_only(reference: str) -> None:
    # Lines that may belong to the answer leave a reply undecided whatever its answer is.
    outcomes = _outcomes_of_votes([grade(reference, reply) for reply in REPLIES])
    assert not any({"correct", "wrong"} <= each for each in outcomes)


BARE = (
    "1", "2", "1, 2", "2, 1", "(1, 2)", "(2, 1)", "\\{1, 2\\}", "\\{2, 1\\}", "[1, 2]", "[2, 1]", "1, 1, 2",
    "\\{1, 1, 2\\}", "1 or 2", "1 and 2", "1; 2", "x=1, x=2", "x=1 or x=2", "x=1", "y=1", "x=1, y=2", "[1, 2)",
    "1<x<2", "1\\le x\\le 2", "x>1", "(1, \\infty)", "1/2", "0.5", "50", "50\\%", "0.5\\%", "0.75", "0.75\\%", "75",
    "30, 60", "30^\\circ, 60^\\circ", "30\\%, 60\\%", "1 cm, 2 cm", "1, 2 cm", "1 dollars, 2 dollars", "1 cm",
    "(1,2), (3,4)", "(3,4), (1,2)", "\\{(1,2), (3,4)\\}",
)  # fmt: skip
"""Answers that differ in signs, names, units, braces and repeated elements."""


@pytest.mark.parametrize("reference", BARE)
def test_no_bare_list_set_or_percentage_votes_with_a_right_one(reference: str) -> None:
    assert all(len(each) == 1 for each in _outcomes_of_votes(boxed(reference, *BARE)) if "correct" in each)


def test_right_answers_are_one_vote() -> None:
    written = [form.format(7, 2) for form in FORMS[:9] if "\\ " not in form and "X" not in form]
    assert len({verdict.vote for verdict in boxed("x=7, y=2", *written)}) == 1
    assert len({verdict.vote for verdict in boxed("1, 2", "1, 2", "2, 1", "\\{2, 1, 2\\}", "1 and 2", "1 or 2")}) == 1


def test_the_text_of_an_option_votes_for_its_letter() -> None:
    choices = ("0.25%", "0.5%", "0.75", "0.75%")
    votes = {
        answer: grade("D", rf"\boxed{{{answer}}}", kind="choice", choices=choices).vote
        for answer in ("D", "0.75\\%", "0.75 %", "0.75", "75%", "C")
    }
    assert votes == {"D": "D", "0.75\\%": "D", "0.75 %": "D", "0.75": "C", "75%": "C", "C": "C"}


ORDERED = ("9；20", "9，20", "9、20", "(9, 20)", "9和20", "20；9", "20, 9", "(20, 9)", "20和9", "9；21", "21；9", "9")


@pytest.mark.parametrize("ordered", [True, False])
def test_an_order_that_counts_makes_two_votes_and_separators_make_none(ordered: bool) -> None:
    verdicts = {each: grade("9；20", rf"\boxed{{{each}}}", rules=Rules(ordered=ordered)) for each in ORDERED}
    right = {verdict.vote for verdict in verdicts.values() if verdict}
    assert len(right) == 1
    other_order = {verdicts[answer].vote for answer in ("20；9", "20, 9", "20和9")}
    assert other_order == right if ordered is False else other_order.isdisjoint(right)
