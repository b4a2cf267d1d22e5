"""Rewards as a trainer calls them: right and wrong twins, hostile batches, threads and forks.

For: harness.rewards.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import threading
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
import reasoning_answers.rewards
from harness import rewards
from harness.core.errors import UsageError
from harness.core.records import Question
from harness.grading.processes.pool import question_on
from reasoning_answers.find.values import Extraction
from reasoning_answers.verdict import decide, simple_outcome
from tests.budget import share_of
from tests.patience import PATIENCE_SECONDS
from tests.pins import verdicts


@pytest.fixture(autouse=True, scope="module")
def one_worker() -> Iterator[None]:
    """One worker that lives as long as these tests."""
    rewards.configure(workers=1)
    yield
    rewards._pool.close()


def message(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


ANYTHING = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda part: st.lists(part) | st.dictionaries(st.sampled_from(["content", "text", "role"]), part),
)


@given(st.lists(ANYTHING, max_size=3))
def test_a_completion_of_any_type_costs_no_other_its_reward(odd: list[Any]) -> None:
    batch, solution = [*odd, r"\boxed{5}", message(r"\boxed{5}"), message("no")], ["5"] * (len(odd) + 3)
    assert rewards.accuracy_reward(batch, solution)[-3:] == [1.0, 1.0, 0.0]
    assert rewards.compute_scores(solution, batch, solution)[-3:] == [1.0, 1.0, 0.0]
    for reward in (rewards.format_reward, rewards.tag_count_reward, rewards.reasoning_steps_reward):
        assert len(reward(batch)) == len(batch)


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
    rows = [row for rows in verdicts.pinned().values() for row in rows if "options" not in row.more]
    pairs = [(row.reference, row.reply) for row in share_of(rows)]
    given = rewards.accuracy_reward([reply for _, reply in pairs], [reference for reference, _ in pairs])
    for (reference, reply), reward in zip(pairs, given, strict=True):
        if reward is not None:  # a reference that cannot be read
            assert reward == (harness.grade(reference, reply).outcome == "correct"), (reference, reply)
    assert {0.0, 1.0} <= set(given)


def test_what_cannot_be_said_is_none_and_never_a_reward() -> None:
    assert rewards.accuracy_reward([r"\boxed{2}", r"\boxed{2}"], ["", "2"]) == [None, 1.0]
    assert rewards.len_reward([r"\boxed{2}", r"so \boxed{2}"], ["", "2"]) == [None, -0.5]
    assert rewards.get_cosine_scaled_reward()([r"\boxed{2}"], [""]) == [None]


@pytest.mark.parametrize("solution", ["2", ["2"], ["2", "2", "2"]])
def test_a_column_of_another_length_is_refused(solution: Any) -> None:
    with pytest.raises(UsageError, match="one for each completion"):
        rewards.accuracy_reward([r"\boxed{2}"] * 2, solution)


def test_a_hostile_batch_costs_itself_its_reward_and_the_next_is_graded() -> None:
    rewards.configure(deadline_s=0.5)
    try:
        hostile = [
            r"\boxed{9^{9^{9^{9}}}}",
            r"\boxed{" * 20_000,
            "\\boxed{__import__('os').system('x')}",
            "\ud800\0" * 99,
        ]
        values = rewards.accuracy_reward([*hostile, r"\boxed{2}"], ["2"] * 5)
        assert values[:4] == [0.0] * 4
        assert values[4] == 1.0
        assert rewards.accuracy_reward([r"\boxed{3}", r"\boxed{2}"], ["2", "2"]) == [0.0, 1.0]
    finally:
        rewards.configure(deadline_s=2.0)


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
    SOLUTION,
    "",
    None,
    True,
    np.bool_(True),
    b"1072",
    np.array([]),
    {1072},
    {"ground_truth": None},
    "####",
    math.nan,
    10**5000,
    object(),
)


def test_a_reference_as_trainers_pass_it_is_read_or_gives_none_and_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reasoning_answers.rewards, "_has_warned", False)
    for reply, reward in ((r"\boxed{1072}", 1.0), (r"\boxed{72}", 0.0)):
        given = rewards.accuracy_reward([reply] * len(FORMS), [*FORMS.values()])
        assert dict(zip(FORMS, given, strict=True)) == dict.fromkeys(FORMS, reward)
    assert rewards.accuracy_reward([r"\boxed{1072}"] * 2, np.array([1072, 72])) == [1.0, 0.0]
    assert not caplog.records
    for reference in UNREADABLE:
        monkeypatch.setattr(reasoning_answers.rewards, "_has_warned", False)
        caplog.clear()
        assert rewards.accuracy_reward([r"\boxed{1072}"] * 2, [reference] * 2) == [None, None], reference
        assert rewards.compute_score("gsm8k", r"\boxed{1072}", reference) == 0.0
        (record,) = caplog.records
        assert "a reference cannot be read" in record.getMessage()


def test_parts_of_a_message_are_one_text() -> None:
    parts = [{"type": "text", "text": r"so \boxed"}, {"type": "image"}, {"type": "text", "text": "{2}"}]
    assert rewards.accuracy_reward([[{"role": "assistant", "content": parts}]], ["2"]) == [1.0]


def test_workers_live_on_and_many_threads_may_ask() -> None:
    rewards.accuracy_reward([r"\boxed{2}"], ["2"])
    before = {child.pid for child in psutil.Process().children()}
    by_thread: dict[int, list[float | None]] = {}

    def ask(n: int) -> None:
        by_thread[n] = rewards.accuracy_reward([rf"\boxed{{{k}}}" for k in range(20)], [str(n)] * 20)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert {n: row.index(1.0) for n, row in by_thread.items()} == {n: n for n in range(8)}
    assert {child.pid for child in psutil.Process().children()} == before


def _graded_in_child(results: Any) -> None:
    results.put((os.getpid(), rewards.accuracy_reward([r"\boxed{2}", r"\boxed{3}"], ["2", "2"])))
    rewards._pool.close()


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_trainer_has_workers_of_its_own() -> None:
    rewards.accuracy_reward([r"\boxed{2}"], ["2"])
    fork = multiprocessing.get_context("fork")
    results = fork.SimpleQueue()
    child = fork.Process(target=_graded_in_child, args=(results,))
    child.start()
    pid, values = results.get()
    child.join(PATIENCE_SECONDS)
    assert (pid != os.getpid(), values) == (True, [1.0, 0.0])
    assert rewards.accuracy_reward([r"\boxed{3}", r"\boxed{2}"], ["2", "2"]) == [0.0, 1.0]


def test_verl_asks_one_by_one_and_in_batches() -> None:
    assert rewards.compute_score("aime", r"\boxed{2}", "2", {"split": "train"}) == 1.0
    assert rewards.compute_score("aime", r"\boxed{3}", "2") == 0.0
    assert rewards.compute_scores(["a"] * 3, [r"\boxed{2}", "", r"\boxed{2}"], ["2", "2", ""], [{}] * 3) == [
        1.0,
        0.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("text", "format_", "tags"),
    [
        ("<think>\na\n</think>\n<answer>\nb\n</answer>", 1.0, 1.0),
        ("<think>\na\n</think>\n<answer>\nb\n</answer>\nmore", 0.0, 1.0),
        ("<think>a</think>\n<answer>\nb\n</answer>", 0.0, 0.5),
        ("<think>\na\n</think>\n<think>\n", 0.0, 0.25),
        ("", 0.0, 0.0),
    ],
)
def test_format_and_tags(text: str, format_: float, tags: float) -> None:
    assert rewards.format_reward([message(text)]) == [format_]
    assert rewards.tag_count_reward([text]) == [tags]


@given(st.lists(st.sampled_from(["<think>\n", "\n</think>\n<answer>\n", "\n</answer>", "\n", "a"]), max_size=6))
def test_the_format_is_what_the_pattern_says(parts: list[str]) -> None:
    text = "".join(parts)
    pattern = r"<think>\n.*?\n</think>\n<answer>\n.*?\n</answer>\Z"
    assert rewards.format_reward([text]) == [float(re.match(pattern, text, re.DOTALL) is not None)]


def test_a_completion_that_never_ends_its_answer_does_not_stall_the_trainer() -> None:
    """A pattern would take minutes."""
    text = "<think>\n" + "\n</think>\n<answer>\n" * 50_000
    assert rewards.format_reward([text]) == [0.0]


def test_steps_lengths_cosines_and_repetition() -> None:
    assert rewards.reasoning_steps_reward(["Step 1: a\n- b\nFirst, c\n* d", "plain", "1. a"]) == [1.0, 0.0, 1 / 3]
    right, wrong = r"\boxed{2}", r"\boxed{3}"
    longer, longest = right + " " * 10, wrong + " " * 20
    assert rewards.len_reward([right, longer, longest, wrong], ["2"] * 4) == [0.5, 0.0, -0.5, 0.0]
    assert rewards.len_reward([right, wrong], ["2"] * 2) == [0.0, 0.0]
    cosine = rewards.get_cosine_scaled_reward(max_len=2 * len(right))
    assert cosine([right, wrong, right + " " * 99], ["2"] * 3) == pytest.approx([0.75, -0.75, 0.5])
    repetition = rewards.get_repetition_penalty_reward(2, -1.0)
    assert repetition(["a b a b a b", "a b c d", "a", ""]) == pytest.approx([-0.6, 0.0, 0.0, 0.0])
    with pytest.raises(UsageError, match="at most 0"):
        rewards.get_repetition_penalty_reward(2, 0.1)


@given(st.integers(0, 5000), st.integers(1, 2000), st.booleans())
def test_a_cosine_reward_stays_between_its_values_and_falls_with_length(length: int, max_len: int, right: bool) -> None:
    cosine = rewards.get_cosine_scaled_reward(max_len=max_len)
    text = (r"\boxed{2}" if right else r"\boxed{3}").ljust(length)
    (short,), (long,) = cosine([text], ["2"]), cosine([text + " " * 100], ["2"])
    assert short is not None
    assert long is not None
    low, high = (0.5, 1.0) if right else (-1.0, -0.5)
    assert low <= min(short, long) <= max(short, long) <= high
    assert math.copysign(1.0, long - short) == (-1.0 if right else 1.0) or math.isclose(short, long)


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


def outcome_at_once(question: Question, answer: str) -> str | None:
    """The outcome of an answer in a box, if it needs no worker."""
    return simple_outcome(question, Extraction(answer, 0, len(answer), "box"))


@given(SIMPLE, SIMPLE)
def test_what_is_told_without_a_worker_is_what_a_worker_says(reference: str, answer: str) -> None:
    try:
        question = question_on(reference)
    except UsageError:
        return
    simple = outcome_at_once(question, answer)
    assert simple is None or simple == decide(question, answer).outcome


def test_most_answers_need_no_worker_and_doubtful_ones_do() -> None:
    assert outcome_at_once(question_on("12"), "12") == "correct"
    assert outcome_at_once(question_on("12"), "13") == "wrong"
    assert outcome_at_once(question_on("12"), "12.0") is None
    assert outcome_at_once(question_on("12"), "012") is None
    assert outcome_at_once(question_on("12"), "9^{9^{9^{9}}}") is None
    assert outcome_at_once(question_on("1, 2"), "1, 2") is None
    assert outcome_at_once(question_on(r"\frac{6}{4}"), "2") == "wrong"
    assert outcome_at_once(question_on(r"\frac{6}{4}"), r"-\frac{3}{2}") == "wrong"
    assert outcome_at_once(question_on(r"\frac{6}{4}"), r"\frac{3}{2}") is None  # equal: the rules have the word
    assert outcome_at_once(question_on("2"), r"\frac{4}{0}") is None
    assert outcome_at_once(question_on("0.50"), "-0.5") == outcome_at_once(question_on("0.50"), "0.500001") == "wrong"
    assert outcome_at_once(question_on("0.50"), "0.5") is None
    assert outcome_at_once(question_on("0.501"), "0.500999") is None  # 0.501 may be its rounded value
    assert outcome_at_once(question_on("27.00"), "26.999") == "wrong"
    assert outcome_at_once(question_on(r"\frac{1}{3}"), "0.333") == "wrong"
    assert (
        outcome_at_once(question_on(r"\frac{1}{3}"), "0.333333333333333") is None
    )  # as floating point prints it: equal
