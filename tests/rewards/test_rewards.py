"""Rewards as a trainer calls them: right and wrong twins, hostile batches, threads and forks.

For: harness.rewards.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle  # noqa: TID251 - of what the test has made
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import psutil
import pytest

from harness import rewards
from harness.core.errors import UsageError
from reasoning_answers import rewards as bare
from tests.patience import PATIENCE_SECONDS


@pytest.fixture(autouse=True, scope="module")
def one_worker() -> Iterator[None]:
    """One worker that lives as long as these tests."""
    rewards.configure(workers=1)
    yield
    rewards._pool.close()


def test_errors_of_rewards_are_usage_errors() -> None:
    for ask in (rewards.accuracy_reward, rewards.len_reward):
        with pytest.raises(UsageError, match="one for each completion"):
            ask([r"\boxed{2}"] * 2, ["2"])


@pytest.mark.parametrize("module", [rewards, bare])
@pytest.mark.parametrize("name", ["tag_count_reward", "get_cosine_scaled_reward"])
def test_a_former_reward_says_where_it_is(module: ModuleType, name: str) -> None:
    with pytest.raises(ImportError, match=rf"^the reward `{name}` no longer exists; import it from `open_r1"):
        getattr(module, name)
    assert not hasattr(module, f"{name}s")


@pytest.mark.parametrize("module", [rewards, bare])
def test_trainers_can_send_every_reward_to_another_process(module: ModuleType) -> None:
    for name in ("accuracy_reward", "format_reward", "len_reward", "compute_score", "compute_scores"):
        function = getattr(module, name)
        assert pickle.loads(pickle.dumps(function)) is function


def test_verl_asks_one_by_one_and_in_batches() -> None:
    assert [rewards.compute_score("aime", rf"\boxed{{{n}}}", "2", {"split": "train"}) for n in (2, 3)] == [1.0, 0.0]
    assert rewards.compute_scores(["a"] * 3, [r"\boxed{2}", "", r"\boxed{2}"], ["2", "2", ""]) == [1.0, 0.0, 0.0]


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
