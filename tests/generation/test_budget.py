"""A budget: nothing is begun that could exceed what is left of it, and the end says what was used and what it cost.

For: harness.generation.dispatch.budget, harness.client.spelling, harness.core.nouns.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.client.spelling import TEMPLATE_TOKENS, prompt_bytes
from harness.core.errors import StoppedByRule
from harness.core.nouns import Prices
from harness.core.records import Usage
from harness.generation.dispatch.budget import Billing, Budget
from harness.generation.dispatch.flight import SessionPlan
from harness.generation.run_progress import Account, Spent
from harness.generation.settings import BenchmarkSettings, RunSettings, Salvage
from harness.presets.sampling import Sampling
from harness.runs.layout import RunFolder, RunLog
from harness.runs.log_events import spent_so_far
from harness.runs.missing import Missing, Task
from harness.testing import FakeServer, Request, delta, event_stream
from tests.generation.small_runs import question_set, run, run_settings, samples_of, well
from tests.runs import recorded

PROMPT_BYTES = 36
"""Bytes of each prompt; with the template's share a prompt has at most 100 tokens."""


class Limits(Budget):
    """The budget of a session of ten questions, and what its replies are billed."""

    def __init__(self, settings: RunSettings, rows: list[Missing]) -> None:
        prompts = dict.fromkeys(((row.benchmark, row.question_id) for row in rows), PROMPT_BYTES)
        self.billing = Billing(settings, SessionPlan(missing=rows, done={}, total={}, prompt_bytes=prompts))
        self.flights: set[Task] = set()
        super().__init__(settings, rows, self.billing, Account(), self.flights)


def budget(*max_tokens: int | None, rounds: int = 4, **limits: object) -> Limits:
    """Of a session of ten questions. max_tokens: of its benchmark, and of others that are done."""
    benchmarks = {
        name: BenchmarkSettings(samples=rounds, sampling=Sampling(max_tokens=most))
        for name, most in zip(("sums", "done"), max_tokens, strict=False)
    }
    settings: RunSettings = replace(run_settings(Path("nowhere")), benchmarks=benchmarks, **limits)  # type: ignore[arg-type]
    return Limits(settings, [Missing("sums", f"q{n}", tuple(range(rounds))) for n in range(10)])


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


def test_the_first_to_finish_do_not_pass_for_all() -> None:
    for last, is_known in ((19, False), (20, True)):
        limits = budget(1000, budget_tokens=40_000)
        sent = send(limits, 40)
        for task in [*sent[:last], *sent[last + 1 :]]:
            finish(limits, task, 780)
        # 30,420 and either 11 × 1000, since one of the first 20 is out, or 10 × 780, the mean, and 1000 for the last
        assert limits.may_start(1) is is_known
        finish(limits, sent[last], 780)
        assert not limits.holds_round
        assert limits.may_start(1)


def test_a_written_part_that_is_sent_again_is_reserved_for_at_the_price_of_prompts() -> None:
    for mode, each in (("off", 0.003), ("exact", 0.004)):
        salvage = Salvage(mode=mode, engine="vllm")  # type: ignore[arg-type]
        limits = budget(100, budget_usd=0.0121, prices=Prices(20.0, 10.0), salvage=salvage)
        assert len(send(limits, 64)) == 0.0121 // each, "100 tokens of prompt, and 100 of a reply or of its first part"


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
        "stopped by the budget: 0 of 50 tokens used. No request may exceed the budget, and a reply may use "
        "64. The "
        "first round has 10 replies: set budget_tokens to at least 640, or lower max_tokens"
    )
    assert not small.has_begun
    assert not budget(64, budget_tokens=639).may_start(0)
    enough = budget(64, budget_tokens=640)
    assert enough.may_start(0)
    assert len(send(enough, 64)) == 10


PRICES = Prices(1.0, 10.0)


def silent(request: Request) -> Iterator[bytes]:
    """A reply that states no usage."""
    return event_stream(delta(f"seed {request.json.get('seed')}"), delta(finish="stop"))


def test_samples_without_usage_count_with_the_most_that_they_can_cost(tmp_path: Path) -> None:
    benchmarks = {"sums": BenchmarkSettings(samples=2, sampling=Sampling(max_tokens=30))}
    with FakeServer(silent) as server:
        settings = run_settings(tmp_path / "run", server.base_url, prices=PRICES, benchmarks=benchmarks)
        outcome = run(settings, question_set(tmp_path, 3))
        bodies = [request.body for request in server.requests if request.method == "POST"]
    text = json.loads(bodies[0])["messages"][0]["content"]
    spent = outcome.spent
    assert len(text.encode()) * 6 <= spent.prompt_tokens <= sum(map(len, bodies)) + 6 * TEMPLATE_TOKENS
    assert (spent.completion_tokens, spent.n_unstated) == (6 * 30, 6)
    assert re.match(
        r"at most 0\.00\d\d USD for at most [\d,]+ tokens in, 180 out; 6 requests without reported ",
        spent.sentence(PRICES),
    )


def test_the_cost_of_all_sessions_is_summed(tmp_path: Path) -> None:
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, prices=PRICES, samples=1)
        first = run(settings, question_set(tmp_path, 3))
        assert first.spent_before == Spent()
        benchmarks = {"sums": BenchmarkSettings(samples=4, sampling=Sampling(temperature=0.6))}
        small = replace(settings, benchmarks=benchmarks, budget_usd=PRICES.usd(9, 7) * 2, concurrency=1)
        with pytest.raises(StoppedByRule):
            run(small, question_set(tmp_path, 3))
        last = run(replace(settings, benchmarks=benchmarks), question_set(tmp_path, 3))
    assert last.spent_before.plus(last.spent).prompt_tokens == 12 * 9


def test_an_end_of_a_session_with_many_words_is_read(tmp_path: Path) -> None:
    spent = {"prompt_tokens": 7}
    with RunLog(RunFolder(tmp_path)) as log:
        log.write("session_ended", notes={"n" * 1000 + str(n): 1 for n in range(500)}, spent=spent)
    assert list(spent_so_far(RunFolder(tmp_path))) == [spent]
    former = [{"prompt_tokens": 7, "n_bounded": 1}, {"n_estimated": 2}, {"n_unstated": 4}]
    assert Spent.of_all(former) == Spent(7, 0, 1 + 2 + 4), "of earlier versions"


def test_a_budget_that_pays_for_no_prompt_says_which_would_do(tmp_path: Path) -> None:
    benchmarks = {"sums": BenchmarkSettings(samples=1, sampling=Sampling(max_tokens=48))}
    with FakeServer(well) as server:
        settings = run_settings(
            tmp_path / "run", server.base_url, prices=Prices(20.0, 2.0), budget_usd=0.001, benchmarks=benchmarks
        )
        with pytest.raises(StoppedByRule, match="a reply with its prompt of up to") as stopped:
            run(settings, question_set(tmp_path, 3))
        assert not [request for request in server.requests if request.method == "POST"]
        assert "again" not in str(stopped.value), "the same command would end alike"
        (least,) = re.findall(r"at least (\S+),", str(stopped.value))
        assert run(replace(settings, budget_usd=float(least)), question_set(tmp_path, 3)).complete


def test_a_session_that_a_budget_stops_tells_its_warnings(tmp_path: Path) -> None:
    benchmarks = {"sums": BenchmarkSettings(samples=4, sampling=Sampling(max_tokens=7))}
    warnings: list[str] = []

    def cut(request: Request) -> Iterator[bytes]:
        return event_stream(delta(f"seed {request.json.get('seed')}"), delta(finish="length"))

    with FakeServer(cut) as server:
        settings = run_settings(
            tmp_path / "run", server.base_url, budget_tokens=30, benchmarks=benchmarks, fingerprint=True, canary=False
        )
        with pytest.raises(StoppedByRule):
            run(settings, question_set(tmp_path, 4), on_warning=lambda warning: warnings.append(str(warning)))
    assert len(warnings) == 2
    assert warnings[0].startswith("a session with a budget skips the fingerprint")
    assert warnings[1].startswith("4 of 4 samples (100%) are truncated")


@pytest.mark.parametrize("thought", [0, 400])
def test_a_thought_that_is_only_in_the_total_counts_to_the_budget(tmp_path: Path, thought: int) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17 + thought}
    with FakeServer(lambda _: event_stream(delta("42"), delta(finish="stop", usage=usage))) as server:
        benchmarks = {"sums": BenchmarkSettings(samples=4, sampling=Sampling(max_tokens=450))}
        settings = run_settings(
            tmp_path / "run", server.base_url, budget_tokens=6000, benchmarks=benchmarks, canary=False
        )
        with contextlib.suppress(StoppedByRule):
            run(settings, question_set(tmp_path, 5))
    assert {sample.usage.completion_tokens for sample in samples_of(settings)} == {8 + thought}
    assert (len(samples_of(settings)) == 20) == (not thought)


def test_a_budget_in_money_ends_at_a_whole_round_and_says_what_was_spent(tmp_path: Path) -> None:
    each = PRICES.usd(9, 7)
    with FakeServer(well) as server:
        settings = run_settings(
            tmp_path / "run", server.base_url, samples=10, concurrency=3, prices=PRICES, budget_usd=each * 28
        )
        with pytest.raises(StoppedByRule, match=r"0.001185 of .* USD used.* for 135 tokens in, 105 out\).* 15 of 50"):
            run(settings, question_set(tmp_path, 5))
    assert set(Counter(s.question_id for s in samples_of(settings)).values()) == {3}
