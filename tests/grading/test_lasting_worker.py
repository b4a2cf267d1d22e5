"""The worker behind `harness.grade`: one for all calls, under the bounds of a worker, safe in threads and forks.

For: harness.grading.processes.persistent_workers.
"""

from __future__ import annotations

import os
import pickle  # noqa: TID251 - a verdict crosses to other processes by it
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import harness
from harness.core.errors import UsageError
from harness.grading.processes import persistent_workers
from harness.grading.processes.pool import Pool, question_on, sample_of, verdict_on

pytestmark = pytest.mark.slow  # it starts processes

TREE = r"so \boxed{\left[x+1\right]^2}"


def workers() -> list[int]:
    """Process ids of the lasting workers."""
    pool = persistent_workers._lasting._pool
    return [] if pool is None else [worker.process.pid for worker in pool.workers]


@pytest.fixture(autouse=True)
def _ends() -> Any:
    persistent_workers._lasting.close()  # that of another file's tests
    yield
    persistent_workers._lasting.close()


def test_all_calls_share_a_worker() -> None:
    assert [harness.grade("x^2+2x+1", rf"\boxed{{\left[x+{n}\right]^2}}").outcome for n in (1, 2)] == [
        "correct",
        "wrong",
    ]
    [worker] = workers()
    assert harness.grade("1, x", r"\boxed{x}, \boxed{1}").outcome == "correct"
    assert workers() == [worker]


def test_a_verdict_and_its_steps_are_those_of_a_worker_of_its_own() -> None:
    for reference, response in (
        ("1/2", r"\boxed{0.5}"),
        ("7", "it is 8"),
        ("7", ""),
        ("x+1", TREE),
        ("a sentence of many words", "?"),
    ):
        verdict, explained = harness.grade(reference, response), verdict_on(question_on(reference), sample_of(response))
        copied = pickle.loads(pickle.dumps(harness.grade(reference, response)))
        assert verdict == explained
        assert verdict.steps == explained.steps == copied.steps
        assert len(verdict.steps) > 1


@pytest.mark.parametrize("answer", ["((x^9+1)^9+1)^9", r"\sqrt{x}", "99999"])
def test_an_answer_that_may_take_long_goes_to_a_worker(answer: str) -> None:
    harness.grade("x^2+1", rf"\boxed{{{answer}+y}}")
    assert len(workers()) == 1


def test_equal_answers_to_different_references_are_decided_apart() -> None:
    assert [harness.grade(reference, TREE).correct for reference in ("(1+x)^2", "x^2", "(1+x)^2")] == [
        True,
        False,
        True,
    ]
    assert harness.grade("3.14159", r"\boxed{\pi}").correct is False
    assert harness.grade("3.14159", r"\boxed{\pi}", round_to_reference=True).correct is True


def test_short_numbers_need_no_worker() -> None:
    assert harness.grade("1/2", r"\boxed{0.5}").correct
    assert not harness.grade("12", r"\boxed{\frac{25}{2}}").correct
    assert workers() == []


def test_threads_get_their_own_verdicts() -> None:
    def right(n: int) -> bool:
        return (
            harness.grade(f"{n}x", rf"so \boxed{{\left({n}x\right)}}").correct
            and not harness.grade(f"{n}x", r"\boxed{x}").correct
        )

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(right, range(2, 60)))
    assert len(workers()) == 1


def test_a_worker_outlives_the_thread_that_needed_it_first() -> None:
    thread = threading.Thread(target=lambda: harness.grade("x+1", TREE))
    thread.start()
    thread.join()
    before = workers()
    time.sleep(0.05)
    assert harness.grade("x+2", r"\boxed{\left[2+x\right]}").correct
    assert workers() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_process_starts_a_worker_of_its_own() -> None:
    harness.grade("x+1", TREE)
    [worker] = workers()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            right = harness.grade("x+2", r"\boxed{\left[2+x\right]}").correct
            code = 0 if right and worker not in workers() else 2
            persistent_workers._lasting.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert harness.grade("x+3", r"\boxed{\left[3+x\right]}").correct
    assert workers() == [worker]


def test_a_killed_worker_is_replaced() -> None:
    harness.grade("x+1", TREE)
    [worker] = workers()
    os.kill(worker, signal.SIGKILL)
    persistent_workers._lasting._pool.workers[0].process.wait()
    assert harness.grade("x+2", r"\boxed{\left[2+x\right]}").correct
    assert workers() != [worker]


def test_a_late_answer_is_undecided_and_the_next_one_is_not() -> None:
    harness.grade("x+1", TREE)
    [worker] = workers()
    os.kill(worker, signal.SIGSTOP)  # as one that gets nowhere: on a busy machine it may be faster than any deadline
    late = harness.grade("x+2", TREE, deadline=0.1)
    assert (late.outcome, late.rule) == ("undecided", "time")
    assert any("timed out" in step for step in late.steps)  # not those of another try
    assert harness.grade("x+2", r"\boxed{\left[2+x\right]}").correct


def test_a_longer_deadline_than_before_is_obeyed() -> None:
    harness.grade("x+1", TREE, deadline=1)
    assert harness.grade("x+1", TREE, deadline=30).outcome == "wrong"
    with pytest.raises(UsageError):
        harness.grade("x+1", TREE, deadline=0)


def test_an_interrupt_leaves_no_reply_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    harness.grade("x+1", TREE)
    pump = Pool.pump

    def interrupted(self: Pool, timeout: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Pool, "pump", interrupted)
    with pytest.raises(KeyboardInterrupt):
        harness.grade("x+2", r"\boxed{\left[2+x\right]}")
    monkeypatch.setattr(Pool, "pump", pump)
    assert workers() == []
    assert not harness.grade("x+3", r"\boxed{\left[2+x\right]}").correct


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_worker_has_its_bounds() -> None:
    harness.grade("x+1", TREE)
    [worker] = workers()
    with open(f"/proc/{worker}/limits", encoding="ascii") as limits:  # noqa: PTH123
        lines = {line[:25].strip(): line.split()[-3] for line in limits}
    assert lines["Max address space"] == str(1 << 30)
    assert lines["Max file size"] == "0"
