"""A budget: nothing is begun that could exceed what is left of it, and the end says what was used.

For: harness.generation.dispatch.budget.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import option
from harness.core.records import Sample, Timing, Usage
from harness.generation.dispatch.budget import KNOWN, Budget
from harness.generation.settings import RunSettings
from harness.generation.spending import Prices
from harness.runs.record import Owed, Task
from tests.generation.small_runs import run_settings


def budget(max_tokens: int | None = None, rounds: int = 4, **limits: object) -> Budget:
    """Of a session of ten questions."""
    settings: RunSettings = replace(run_settings(Path("nowhere")), **limits)  # type: ignore[arg-type]
    rows = [Owed("sums", f"q{n}", tuple(range(rounds))) for n in range(10)]
    return Budget(settings, rows, [max_tokens] if max_tokens else [])


def send(limits: Budget, n: int, index: int = 0) -> list[Task]:
    """As many requests as fit, at most `n`."""
    sent: list[Task] = []
    while len(sent) < n and limits.fits():
        sent.append(Task("sums", f"q{len(sent)}", index))
        limits.sent(sent[-1], 1)
    return sent


def finish(limits: Budget, task: Task, tokens: int, prompt: int | None = 10) -> None:
    usage = Usage(prompt_tokens=prompt, completion_tokens=tokens)
    timing = Timing(started=0, total=1)
    sample = Sample(
        benchmark="sums", question_id=task.question_id, sample_index=task.sample_index, text="4", reasoning=None,
        finish_reason="stop", usage=usage, timing=timing, endpoint="http://a/v1",
    )  # fmt: skip
    limits.finished(task, sample)


def test_requests_in_flight_are_as_many_as_their_max_tokens_fit() -> None:
    limits = budget(100, budget_tokens=500)
    sent = send(limits, 64)
    assert len(sent) == 5
    finish(limits, sent[0], 27)
    assert not limits.fits(), "27 + 5 × 100 is too much"
    limits.failed()
    assert limits.fits(), "27 + 4 × 100 is not"


def test_without_max_tokens_the_longest_reply_so_far_bounds_the_next() -> None:
    limits = budget(budget_tokens=500)
    (first,) = send(limits, 64)
    finish(limits, first, 27)
    for _ in range(17):
        (task,) = send(limits, 1)
        finish(limits, task, 27)
    assert not limits.fits()
    assert limits.sentence() == "stopped by the budget: 486 of 500 tokens used, and the next sample could take 27"


@given(st.integers(200, 3000), st.integers(1, 200), st.lists(st.integers(0, 200), min_size=1, max_size=300), st.data())
def test_replies_never_exceed_the_budget_whatever_their_lengths(
    total: int, max_tokens: int, lengths: list[int], data: st.DataObject
) -> None:
    limits = budget(max_tokens, budget_tokens=total)
    waiting: list[Task] = []
    used = 0
    for length in lengths:
        waiting += send(limits, data.draw(st.integers(0, 64)))
        if waiting:
            completion = min(length, max_tokens)
            finish(limits, waiting.pop(data.draw(st.integers(0, len(waiting) - 1))), completion)
            used += completion
        assert used + len(waiting) * max_tokens <= total


def test_short_replies_do_not_bound_the_later_ones() -> None:
    limits = budget(64, budget_tokens=500)
    for _ in range(25):
        (task,) = send(limits, 1)
        finish(limits, task, 5)
    assert len(send(limits, 16)) == 5, "125 + 5 × 64"


def test_the_first_to_finish_do_not_pass_for_all() -> None:
    limits = budget(1000, budget_tokens=40_000)
    sent = send(limits, 64)
    assert len(sent) == 40
    for task in sent[10:]:
        finish(limits, task, 700)
    assert not limits.may_start(1), "21,000 + 20 × 1000: ten of the first are out, so their length is not known"
    for task in sent[:10]:
        finish(limits, task, 700)
    assert limits.may_start(1), "28,000 + 9 × 700, the mean, and 1000 for the last"


def test_a_round_begins_if_all_of_it_fits_and_what_is_in_flight_may_make_room() -> None:
    limits = budget(100, budget_tokens=2500)
    first = send(limits, 10)
    assert limits.may_start(1), "20 × 100"
    second = send(limits, 10, 1)
    assert not limits.may_start(2), "30 × 100"
    assert limits.holds_round
    for task in first + second:
        finish(limits, task, 40)
    assert not limits.holds_round
    assert limits.may_start(2), "800 + 10 × 40"
    third = send(limits, 10, 2)
    for task in third:
        finish(limits, task, 100)
    assert limits.may_start(3), "1800 + 10 × 60, the mean"
    assert len(send(limits, 10, 3)) == 7, "and no request that could exceed the rest: 1800 + 7 × 100"


def test_a_budget_in_money_counts_prompts_and_unstated_usage_as_the_longest() -> None:
    limits = budget(100, budget_usd=0.01, prices=Prices(10.0, 20.0))
    sent = send(limits, 64)
    assert len(sent) == 5, "100 tokens are 0.002 USD, and no prompt is known"
    finish(limits, sent[0], 100, prompt=50)
    finish(limits, sent[1], 100, prompt=None)
    assert limits.sentence().startswith("stopped by the budget: 0.005 of 0.01 USD used")


def test_without_a_budget_everything_fits() -> None:
    limits = budget()
    assert not limits
    assert len(send(limits, 1000)) == 1000
    assert limits.order("longest") == "longest"
    assert budget(budget_tokens=5).order("longest") == "rounds"


@pytest.mark.parametrize("n", [KNOWN - 1, KNOWN])
def test_the_mean_of_twenty_replies_is_what_a_round_is_expected_to_take(n: int) -> None:
    limits = budget(100, budget_tokens=300 + n)
    for _ in range(n):
        (task,) = send(limits, 1)
        finish(limits, task, 1)
    assert limits.may_start(1) is (n == KNOWN), "9 × 1 and 100 for the last; with one reply fewer 10 × 100"


def test_a_budget_below_the_first_round_says_which_would_do_and_that_budget_does() -> None:
    small = budget(64, budget_tokens=50)
    assert not small.fits()
    assert small.sentence() == (
        "stopped by the budget: 0 of 50 tokens used. Nothing is begun that could exceed it, and a reply may take "
        "64. The "
        f"first round has 10 replies: give {option('budget_tokens')} at least 640, or a smaller {option('max_tokens')}"
    )
    assert not small.has_begun
    assert not budget(64, budget_tokens=639).may_start(0)
    enough = budget(64, budget_tokens=640)
    assert enough.may_start(0)
    assert len(send(enough, 64)) == 10


def test_a_budget_in_money_that_is_named_as_enough_is_enough() -> None:
    prices = Prices(1.0, 3.7)
    small = budget(97, budget_usd=0.0001, prices=prices)
    assert not small.fits()
    (least,) = re.findall(r"at least (\S+),", small.sentence())
    assert budget(97, budget_usd=float(least), prices=prices).may_start(0)
    assert not budget(97, budget_usd=0.99 * float(least), prices=prices).may_start(0)
