"""Rewards in the caller's process: references as trainers pass them, completions of any type, formulas.

For: reasoning_answers.rewards.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from asked import bare_rows, examples, question, share_of
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoning_answers import rewards
from reasoning_answers.find.values import Extraction
from reasoning_answers.verdict import decide, simple_outcome


def message(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


ANYTHING = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda part: st.lists(part) | st.dictionaries(st.sampled_from(["content", "text", "role"]), part),
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(ANYTHING, max_size=3))
def test_a_completion_of_any_type_costs_no_other_its_reward(odd: list[Any]) -> None:
    batch, solution = [*odd, r"\boxed{5}", message(r"\boxed{5}"), message("no")], ["5"] * (len(odd) + 3)
    assert rewards.accuracy_reward(batch, solution)[-3:] == [1.0, 1.0, 0.0]
    assert rewards.compute_scores(solution, batch, solution)[-3:] == [1.0, 1.0, 0.0]
    assert len(rewards.format_reward(batch)) == len(batch)


def test_answers_are_graded_as_scores_are() -> None:
    completions = [
        message(r"<think>1/3?</think> So \boxed{0.5}."),
        r"The answer is \boxed{\frac{1}{3}}.",
        r"<think>\boxed{\frac12}",  # it stands in the reasoning only
        r"\boxed{2}",
        message("no answer"),
    ]
    solution = [r"\frac{1}{2}", r"\frac{1}{2}", r"\frac{1}{2}", "$2$", "7"]
    columns = {"prompts": ["?"] * 5, "completion_ids": [[1]] * 5, "trainer_state": object()}
    assert rewards.accuracy_reward(completions, solution, **columns) == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_a_reward_is_given_exactly_for_a_correct_grade() -> None:
    rows = share_of(bare_rows()[::2])
    given = rewards.accuracy_reward([row.reply for row in rows], [row.reference for row in rows])
    # None: a reference that cannot be read.
    expected = [(None, float(row.says == "correct")) for row in rows]
    assert [row for row, reward, values in zip(rows, given, expected, strict=True) if reward not in values] == []
    assert {0.0, 1.0} <= set(given)


@pytest.mark.parametrize("solution", ["2", ["2"], ["2", "2", "2"]])
@pytest.mark.parametrize("ask", [rewards.accuracy_reward, rewards.len_reward])
def test_a_column_of_another_length_is_refused(ask: Any, solution: Any) -> None:
    with pytest.raises(ValueError, match=r"^solution: .* one for each completion"):
        ask([r"\boxed{2}"] * 2, solution)


def test_what_cannot_be_said_is_none_and_never_a_reward() -> None:
    assert rewards.accuracy_reward([r"\boxed{2}", r"\boxed{2}"], ["", "2"]) == [None, 1.0]
    assert rewards.len_reward([r"\boxed{2}", r"so \boxed{2}"], ["", "2"]) == [None, -0.5]


SOLUTION = "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\nIn all she sold 48+24 = 72 clips."
FORMS: dict[str, Any] = {
    "TRL with GSM8K": SOLUTION + "\n#### 1,072",
    "open-r1 with NuminaMath": SOLUTION + r" Hence $\boxed{1072}$.",
    "R1-V": "<answer> 1072 </answer>",
    "Minerva": "Final Answer: The final answer is $1072$. I hope it is correct.",
    "answer": r"$1072$",
    "verl, one": "1072",
    "verl, of Parquet": np.array(["1072"], dtype=object),
    "verl, its column": {"style": "rule", "ground_truth": np.array(["1072"])},
    "Skywork": '["1072"]',
    "tuple": ("1072",),
    "numpy": np.int64(1072),
    "numpy, no axis": np.array(1072.0),
    "numpy, nested": np.array([["1072"]]),
    "decimal": Decimal("1072.0"),
    "fraction": Fraction(2144, 2),
}
"""References as trainers and their data sets pass them; each is 1072."""
UNREADABLE = (
    SOLUTION, "", None, True, np.bool_(True), b"1072", np.array([]), {1072}, {"ground_truth": None}, "####", math.nan,
    10**5000, object(),
)  # fmt: skip


def test_a_trainers_reference_is_read_or_gives_none_and_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewards, "_has_warned", False)
    for reply, reward in ((r"\boxed{1072}", 1.0), (r"\boxed{72}", 0.0)):
        given = rewards.accuracy_reward([reply] * len(FORMS), [*FORMS.values()])
        assert dict(zip(FORMS, given, strict=True)) == dict.fromkeys(FORMS, reward)
    assert rewards.accuracy_reward([r"\boxed{1072}"] * 2, np.array([1072, 72])) == [1.0, 0.0]
    assert not caplog.records
    for reference in UNREADABLE:
        monkeypatch.setattr(rewards, "_has_warned", False)
        caplog.clear()
        assert rewards.accuracy_reward([r"\boxed{1072}"] * 2, [reference] * 2) == [None, None], reference
        assert rewards.compute_score("gsm8k", r"\boxed{1072}", reference) == 0.0
        (record,) = caplog.records
        assert "a reference cannot be read" in record.getMessage()


def test_parts_of_a_message_are_one_text() -> None:
    parts = [{"type": "text", "text": r"so \boxed"}, {"type": "image"}, {"type": "text", "text": "{2}"}]
    assert rewards.accuracy_reward([[{"role": "assistant", "content": parts}]], ["2"]) == [1.0]


def test_verl_asks_one_by_one_and_in_batches() -> None:
    assert rewards.compute_score("aime", r"\boxed{2}", "2", {"split": "train"}) == 1.0
    assert rewards.compute_score("aime", r"\boxed{3}", "2") == 0.0
    replies, references = [r"\boxed{2}", "", r"\boxed{2}"], ["2", "2", ""]
    assert rewards.compute_scores(["a"] * 3, replies, references, [{}] * 3) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("<think>\na\n</think>\n<answer>\nb\n</answer>", 1.0),
        ("<think>\na\n</think>\n<answer>\nb\n</answer>\nmore", 0.0),
        ("<think>a</think>\n<answer>\nb\n</answer>", 0.0),
        ("", 0.0),
    ],
)
def test_format(text: str, format_: float) -> None:
    assert rewards.format_reward([message(text)]) == [format_]


@given(st.lists(st.sampled_from(["<think>\n", "\n</think>\n<answer>\n", "\n</answer>", "\n", "a"]), max_size=6))
def test_the_format_is_what_the_pattern_says(parts: list[str]) -> None:
    text = "".join(parts)
    pattern = r"<think>\n.*?\n</think>\n<answer>\n.*?\n</answer>\Z"
    assert rewards.format_reward([text]) == [float(re.match(pattern, text, re.DOTALL) is not None)]


def test_a_completion_that_never_ends_does_not_stall_the_trainer() -> None:
    """A pattern would take minutes."""
    text = "<think>\n" + "\n</think>\n<answer>\n" * 50_000
    assert rewards.format_reward([text]) == [0.0]


def test_lengths() -> None:
    right, wrong = r"\boxed{2}", r"\boxed{3}"
    longer, longest = right + " " * 10, wrong + " " * 20
    assert rewards.len_reward([right, longer, longest, wrong], ["2"] * 4) == [0.5, 0.0, -0.5, 0.0]
    assert rewards.len_reward([right, wrong], ["2"] * 2) == [0.0, 0.0]


def test_the_columns_that_a_trainer_logs_are_those_of_trl() -> None:
    logged: dict[str, list[str]] = {}
    rewards.accuracy_reward([r"so \boxed{0.5}", "", r"\boxed{2}"], ["1/2", "1/2", ""], log_extra=logged.__setitem__)
    assert logged == {
        "solution": ["1/2", "1/2", ""],
        "gold_parsed": ["1/2", "1/2", "[unparseable]"],
        "answer_parsed": ["0.5", "[unparseable]", "[unparseable]"],
    }


_SMALL = st.integers(1, 12)
FRACTION = st.tuples(st.sampled_from(["", "-"]), st.sampled_from("dt ").map(str.strip), _SMALL, _SMALL).map(
    lambda parts: rf"{parts[0]}\{parts[1]}frac{{{parts[2]}}}{{{parts[3]}}}"
)

DECIMAL = st.tuples(st.integers(-3, 3), st.integers(1, 7), st.integers(0, 10**7)).map(
    lambda parts: f"{parts[0]}.{parts[2]:07}"[: len(str(parts[0])) + 1 + parts[1]]
)

SIMPLE = st.one_of(
    st.integers(-12, 12).map(str),
    FRACTION,
    DECIMAL,
    st.integers(-(10**15), 10**15).map(str),
    st.integers(0, 99).map(lambda n: f"{n:03}"),
    st.sampled_from(
        [r"\frac{1}{2}", "0.50", "x^2+1", "2", "-2", "+2", "2.0", "1,000", "1000", "x=2", "{1,2}", "A", ""]
    ),
)


def at_once(reference: str, answer: str) -> str | None:
    """The outcome of an answer in a box, if it needs no comparison."""
    return simple_outcome(question(reference), Extraction(answer, 0, len(answer), "box"))


@given(SIMPLE.filter(bool), SIMPLE)
def test_what_is_told_at_once_is_what_a_comparison_says(reference: str, answer: str) -> None:
    simple = at_once(reference, answer)
    assert simple is None or simple == decide(question(reference), answer).outcome


@pytest.mark.parametrize(
    ("reference", "answer", "outcome"),
    [
        ("12", "12", "correct"),
        ("12", "13", "wrong"),
        ("12", "12.0", None),
        ("12", "012", None),
        ("12", "9^{9^{9^{9}}}", None),
        ("1, 2", "1, 2", None),
        (r"\frac{6}{4}", "2", "wrong"),
        (r"\frac{6}{4}", r"-\frac{3}{2}", "wrong"),
        (r"\frac{6}{4}", r"\frac{3}{2}", None),  # equal: the rules have the word
        ("2", r"\frac{4}{0}", None),
        ("0.50", "-0.5", "wrong"),
        ("0.50", "0.500001", "wrong"),
        ("0.50", "0.5", None),
        ("0.501", "0.500999", None),  # 0.501 may be its rounded value
        ("27.00", "26.999", "wrong"),
        (r"\frac{1}{3}", "0.333", "wrong"),
        (r"\frac{1}{3}", "0.333333333333333", None),  # as floating point prints it: equal
    ],
)
def test_most_answers_need_no_comparison_and_doubtful_ones_do(reference: str, answer: str, outcome: str | None) -> None:
    assert at_once(reference, answer) == outcome
