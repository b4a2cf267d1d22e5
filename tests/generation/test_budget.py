"""A budget: nothing is begun that could exceed what is left of it, and the end says what was used.

For: harness.generation.dispatch.budget, harness.client.spelling.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from harness.client.spelling import prompt_bytes
from harness.core.money import Prices
from harness.core.records import Usage
from harness.generation.dispatch.budget import Billing, Budget
from harness.generation.plan import SessionPlan
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.generation.spending import Account
from harness.presets.sampling import Sampling
from harness.runs.record import Owed, Task
from tests.generation.small_runs import run_settings
from tests.runs import recorded

PROMPT_BYTES = 36
"""Bytes of each prompt; with the template's share a prompt has at most 100 tokens."""


class Limits(Budget):
    """The budget of a session of ten questions, and what its replies are billed."""

    def __init__(self, settings: RunSettings, rows: list[Owed]) -> None:
        prompts = dict.fromkeys(((row.benchmark, row.question_id) for row in rows), PROMPT_BYTES)
        self.billing = Billing(settings, SessionPlan(owed=rows, done={}, total={}, prompt_bytes=prompts))
        self.flights: set[Task] = set()
        super().__init__(settings, rows, self.billing, Account(), self.flights)


def budget(max_tokens: int | None = None, rounds: int = 4, **limits: object) -> Limits:
    """Of a session of ten questions."""
    benchmarks = {"sums": BenchmarkSettings(samples=rounds, sampling=Sampling(max_tokens=max_tokens))}
    settings: RunSettings = replace(run_settings(Path("nowhere")), benchmarks=benchmarks, **limits)  # type: ignore[arg-type]
    return Limits(settings, [Owed("sums", f"q{n}", tuple(range(rounds))) for n in range(10)])


def send(limits: Limits, n: int, index: int = 0) -> list[Task]:
    """As many requests as fit, at most `n`."""
    sent: list[Task] = []
    while len(sent) < n and limits.fits():
        sent.append(Task("sums", f"q{len(sent)}", index))
        limits.sent(sent[-1], 1)
        limits.flights.add(sent[-1])
    return sent


def finish(limits: Limits, task: Task, tokens: int | None, prompt: int | None = 10) -> None:
    usage = Usage(prompt_tokens=prompt, completion_tokens=tokens)
    sample = recorded.sample(task.question_id, task.sample_index, "4", benchmark="sums", usage=usage)
    limits.flights.discard(task)
    limits.finished(task, limits.billing.billed(sample))


def test_without_max_tokens_the_longest_reply_so_far_bounds_the_next() -> None:
    limits = budget(budget_tokens=500)
    (first,) = send(limits, 64)
    finish(limits, first, 27)
    for _ in range(17):
        (task,) = send(limits, 1)
        finish(limits, task, 27)
    assert not limits.fits()
    assert limits.sentence() == "stopped by the budget: 486 of 500 tokens used, and the next sample could take 27"


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


def test_a_budget_in_money_reserves_the_most_that_an_unknown_prompt_can_have() -> None:
    limits = budget(100, budget_usd=0.01, prices=Prices(10.0, 20.0))
    sent = send(limits, 64)
    assert len(sent) == 3, "a prompt of up to 100 tokens and a reply of 100 are 0.003 USD"
    finish(limits, sent[0], 100, prompt=50)
    assert limits.sentence().startswith("stopped by the budget: 0.0025 of 0.01 USD used, and the next ")
    finish(limits, sent[1], None, prompt=None)
    assert limits.sentence().startswith("stopped by the budget: at most 0.0055 of 0.01 USD used")


def test_a_prompt_that_a_reply_shows_to_be_longer_is_reserved_for() -> None:
    limits = budget(100, budget_usd=0.05, prices=Prices(10.0, 20.0))
    for prompt, longest in ((50, 100), (None, 100), (160, 160)):
        (task,) = send(limits, 1)
        finish(limits, task, 100, prompt=prompt)
        assert limits.billing.longest_prompt == longest


def test_all_texts_of_a_request_can_be_a_part_of_its_prompt_and_no_number() -> None:
    plain = {"model": "m", "messages": [{"role": "user", "content": "four"}]}
    assert prompt_bytes(plain) == len('[{"role":"user","content":"four"}]')
    assert prompt_bytes({**plain, "max_tokens": 10**9, "stream": True, "seed": None}) <= prompt_bytes(plain) + 4
    assert prompt_bytes({**plain, "tools": ["é"]}) == prompt_bytes(plain) + len('["é"]'.encode())


def test_a_budget_below_the_first_round_says_which_would_do_and_that_budget_does() -> None:
    small = budget(64, budget_tokens=50)
    assert not small.fits()
    assert small.sentence() == (
        "stopped by the budget: 0 of 50 tokens used. Nothing is begun that could exceed it, and a reply may take "
        "64. The "
        "first round has 10 replies: give budget_tokens at least 640, or a smaller max_tokens"
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
