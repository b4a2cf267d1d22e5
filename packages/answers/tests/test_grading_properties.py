"""What holds for every answer: equality is reflexive and symmetric, and does not see how an answer is typeset."""

from __future__ import annotations

import re
from functools import partial

import pytest
from asked import RULES, SEED, answered, examples, pinned_pairs, question, share_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rewritings import KINDS, Case

from reasoning_answers.compare.equivalence import equal
from reasoning_answers.search import search
from reasoning_answers.verdict import conclude, decide

pytestmark = pytest.mark.fuzz
EXAMPLES = examples(150)
bounded = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=EXAMPLES <= 150
)

answers = st.sampled_from(sorted({text for pair in pinned_pairs() for text in pair}))
small = st.integers(-60, 60)


@st.composite
def closed_forms(draw: st.DrawFn, depth: int = 2) -> str:
    """LaTeX of a number: sums, products, fractions, roots and powers of small integers."""
    if depth == 0:
        return str(draw(st.integers(1, 30)))
    part = closed_forms(depth - 1)
    shape = draw(
        st.sampled_from(
            ["{}+{}", "{}-{}", r"({})\cdot({})", r"\frac{{{}}}{{{}}}", r"\sqrt{{{}+{}}}", r"{}+\pi\cdot({})"]
        )
    )
    return shape.format(draw(part), draw(part))


def same(reference: str, answer: str) -> bool | None:
    return equal(reference, answer, "expression", RULES).equal


@bounded
@given(answers)
def test_equality_is_reflexive(answer: str) -> None:
    assume(answer.strip() and answer != r"\quad")
    assert same(answer, answer) is True


@bounded
@given(answers, answers)
def test_equality_is_symmetric(left: str, right: str) -> None:
    # An answer may name what it computed ("a + b = 12"); a reference that is an equation is the equation.
    assume("=" not in left + right)
    assert bool(same(left, right)) == bool(same(right, left))


@bounded
@given(closed_forms())
def test_typesetting_does_not_matter(form: str) -> None:
    assert same(form, form.replace(r"\frac", r"\dfrac")) is True
    assert same(form, form.replace("+", r" + ").replace("(", r"\left(").replace(")", r"\right)")) is True
    assert same(form, form.translate({ord(c): ord(c) + 0xFEE0 for c in "0123456789+()"})) is True
    assert same(form, f"$ {form} $") is True
    assert same(form, rf"x = {form}") is True


@bounded
@given(closed_forms(), small.filter(bool))
def test_value_does_not_equal_the_value_moved(form: str, step: int) -> None:
    assume(same(form, form))
    assert same(form, f"{form}+{step}") is False
    assert same(form, rf"{form}+\frac{{{step}}}{{10^{{20}}}}") is False


@bounded
@given(st.integers(2, 16), st.integers(1, 10**6))
def test_number_in_a_base_equals_itself_only(base: int, number: int) -> None:
    def digits(value: int) -> str:
        return (digits(value // base) if value >= base else "") + "0123456789ABCDEF"[value % base]

    assert same(f"{digits(number)}_{base}", f"{digits(number)}_{{{base}}}") is True
    # A letter alone before a subscript (A_11) may be a name, so that it is undecided in place of wrong.
    assert same(f"{digits(number)}_{base}", f"{digits(number + 1)}_{base}") is not True


@bounded
@given(st.text(max_size=60))
def test_any_text_is_judged_without_an_exception(text: str) -> None:
    for reference in ("5", r"\frac{1}{2}", "(1,2)", "x^2", text):
        assert equal(reference, text, "expression", RULES).equal in (True, False, None)


def test_votes_and_steps_never_hold_internal_representations() -> None:
    rows = share_of(pinned_pairs())
    for reference, answer in rows:
        asked = question(reference)
        searched = search(asked, answered(f"\\boxed{{{answer}}}"), with_steps=True)
        verdict = conclude(asked, searched, partial(decide, asked, with_steps=True))
        steps = " ".join((*verdict.steps, verdict.vote or "", verdict.rule))
        assert not re.search(r"Node\(|Fraction\(|op=|args=|RealInterval\(|Monomial\(", steps)


VOTES_IN_UNITS = {
    "30平方米": (
        ["30", r"30\text{平方米}", "30 m^2", "3000平方分米", "S=30平方米"],
        ["30米", "30 m", "30%", "30平方厘米"],
    ),
    "60千米": (["60", "60 km", "60000米"], ["60米/秒", "60千克", "60米"]),
    "12元": (["12", "十二元", "1200分", "120角"], ["12角", "12分", "12千克"]),
    r"60^\circ": (["60", r"60^\circ"], ["60米", r"6^\circ"]),
    "30": (["30", "30米", "30平方米"], ["31米"]),
}
"""Reference → (right answers, others)."""


@pytest.mark.parametrize("reference", VOTES_IN_UNITS)
def test_right_answers_are_one_vote_that_no_other_answer_has(reference: str) -> None:
    right, others = VOTES_IN_UNITS[reference]
    decided = {answer: decide(question(reference, kind="expression"), answer) for answer in (*right, *others)}
    assert {answer for answer in decided if decided[answer].outcome == "correct"} == set(right)
    assert len({decided[answer].vote for answer in right}) == 1
    assert {decided[answer].vote for answer in right}.isdisjoint(decided[answer].vote for answer in others)


REASONING = ["", "<think>\nIs it \\boxed{{{other}}}? No.\n</think>\n\n", "Is it \\boxed{{{other}}}? No.</think>"]
BEFORE = [
    "",
    "Step 3 ",
    "The final answer is: {value} ",
    "&= {value} \\\\ ",
    "x = {value}, so in 2024 ",
    "(1) ",
    "- ",
    "The tag <think> is not needed.\n",
    "**Final Answer**\n\n",
    "We use `<think>` and `</think>` for notes: ",
]
BEHIND = [
    "",
    ".",
    "!",
    " as required.",
    "\n\nNo other value works.",
    "\n\nThey wait for 3 more hours.",
    ". QED",
    "\n\nPut notes between <think> and </think>.",
    ". Instead of a sum we took a product.",
    "\n\nI can also check it.",
]
TAKING_BACK = [
    ". Wait, that is wrong.",
    "\n\nActually, no.",
    "\nHmm, let me redo this.",
    " and then finally \\boxed{{",
    ". The final answer is \\boxed{{{other}",
    ". No, it is {other}.",
]
BOXES = ["\\boxed{{{value}}}", "$\\boxed{{{value}}}$", "\\[\\boxed{{{value}}}\\]", "\\boxed{{'{value}'}}"]


def outcome(reference: object, reply: str) -> str:
    of, said = question(str(reference)), answered(reply)
    return conclude(of, search(of, said), partial(decide, of)).outcome


@bounded
@given(st.integers(2, 10**6), *map(st.sampled_from, (REASONING, BEFORE, BOXES, BEHIND, TAKING_BACK)))
def test_a_reader_takes_the_boxed_value_unless_it_is_taken_back(
    value: int, reasoning: str, before: str, box: str, behind: str, taking_back: str
) -> None:
    words = {"value": value, "other": value + 7}
    reply = (reasoning + before + box).format(**words)
    assert outcome(value, reply + behind) == "correct"
    assert outcome(value + 1, reply + behind) == "wrong"
    assert outcome(value, reply + taking_back.format(**words)) in ("undecided", "wrong")


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_equals_its_spellings_and_no_answer_that_differs(kind: str) -> None:
    n = examples(300)
    refused: list[tuple[str, str]] = []
    for number in range(n):
        case = Case(kind, f"{SEED} {number}")
        same, different = case.pair(), case.different()
        refused += [] if outcome(same[0], rf"\boxed{{{same[1]}}}") == "correct" else [same]
        assert outcome(different[0], rf"\boxed{{{different[1]}}}") != "correct", (
            f"HARNESS_FUZZ_SEED={SEED}",
            different,
        )
    assert len(refused) <= n // 200, (f"HARNESS_FUZZ_SEED={SEED}", refused)
