"""What a session costs, what a budget in money stops, and what a limit per minute holds back.

For: harness.asking.prices.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import ServerError, StoppedByRule, UsageError
from harness.core.records import Usage
from harness.generation.spending import Prices, Spent
from tests.faults.server import FaultServer, Request, delta, event_stream, http
from tests.generation.small_runs import expected_keys, keys_of, question_set, run, run_settings, samples_of, well

PRICES = Prices(1.0, 10.0)


def silent(request: Request) -> Iterator[bytes]:
    """A reply that states no usage."""
    return event_stream(delta(f"seed {request.json.get('seed')}"), delta(finish="stop"))


def test_the_cost_is_counted_by_stated_usage(tmp_path: Path) -> None:
    with FaultServer(well) as server:
        outcome = run(run_settings(tmp_path / "run", server.base_url, prices=PRICES), question_set(tmp_path, 3))
    assert outcome.spent == Spent(prompt_tokens=6 * 9, completion_tokens=6 * 7, n_stated=6)
    assert outcome.spent.sentence(PRICES) == "0.0005 USD for 54 tokens in, 42 out"


def test_samples_without_usage_are_said_not_to_be_covered(tmp_path: Path) -> None:
    with FaultServer(silent) as server:
        outcome = run(run_settings(tmp_path / "run", server.base_url, prices=PRICES), question_set(tmp_path, 3))
    assert "6 of 6 samples state no usage" in outcome.spent.sentence(PRICES)


@given(st.lists(st.tuples(st.none() | st.integers(0, 10**6), st.none() | st.integers(0, 10**6)), max_size=20))
def test_nothing_unknown_is_counted_as_zero(usages: list[tuple[int | None, int | None]]) -> None:
    spent = Spent()
    for prompt, completion in usages:
        spent.add(Usage(prompt_tokens=prompt, completion_tokens=completion))
    stated = [(p, c) for p, c in usages if p is not None and c is not None]
    assert (spent.n_stated, spent.n_unstated) == (len(stated), len(usages) - len(stated))
    assert PRICES.usd(spent.prompt_tokens, spent.completion_tokens) == pytest.approx(
        sum(p + 10 * c for p, c in stated) / 1e6
    )


def test_a_budget_in_money_ends_at_a_whole_round_and_says_what_was_spent(tmp_path: Path) -> None:
    each = PRICES.usd(9, 7)
    with FaultServer(well) as server:
        settings = run_settings(
            tmp_path / "run", server.base_url, samples=10, concurrency=3, prices=PRICES, budget_usd=each * 5 * 4
        )
        with pytest.raises(StoppedByRule, match=r"0.00158 of .* USD for 180 tokens in, 140 out.* 20 of 50"):
            run(settings, question_set(tmp_path, 5))
    assert set(Counter(s.question_id for s in samples_of(settings)).values()) == {4}


@pytest.mark.parametrize(
    ("prices", "cost"),
    [(PRICES, ". This session: 0.0004 USD for 45 tokens in, 35 out. Resume with: harness run sums"), (None, "")],
)
def test_an_empty_account_ends_a_run_with_its_cost(tmp_path: Path, prices: Prices | None, cost: str) -> None:
    numbers = itertools.count()
    empty = http(402, {"error": {"message": "insufficient balance"}})
    with FaultServer(lambda request: well(request) if next(numbers) < 5 else [empty]) as server:
        settings = run_settings(tmp_path / "run", server.base_url, concurrency=1, prices=prices)
        with pytest.raises(ServerError, match="5 of 20 samples are stored") as refused:
            run(settings, question_set(tmp_path, 10), resume_command="harness run sums")
    assert str(refused.value).endswith(cost)
    assert ("USD" in str(refused.value)) == bool(prices)


def test_a_budget_in_money_needs_prices(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="price_in"):
        run_settings(tmp_path / "run", budget_usd=1.0)


def test_requests_are_held_to_the_limit_per_minute(tmp_path: Path) -> None:
    with FaultServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=4, requests_per_minute=1200)
        outcome = run(settings, question_set(tmp_path, 6))
    assert keys_of(settings) == expected_keys(6, 4)
    # 20 at once, and 19.7 a second from then on.
    assert outcome.elapsed_s > (24 - 20) / 20


def test_tokens_per_minute_hold_back_what_a_reply_is_expected_to_cost(tmp_path: Path) -> None:
    with FaultServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=2, tokens_per_minute=600_000)
        outcome = run(settings, question_set(tmp_path, 3))
        first = [r for r in server.requests if r.method == "POST"]
    assert outcome.complete
    assert len(first) == 6
