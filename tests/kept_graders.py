"""Grading workers that serve one score after another, and that are forks of a process which has their imports.

Not each of some 600 starts costs a fifth of a second of the processor then.

A pool that ends hands back a worker that owes nothing; the next pool of the same deadline and environment takes it. A
worker decides each answer by itself, so verdicts do not depend on what it decided before. The tests of the workers'
own processes, in `OF_PROCESSES`, start and end them as often as the product does; those of what an interpreter does
when it starts, in `NOT_FORKED`, start a new one for each.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness.grading.processes import pool
from harness.grading.processes.pool import Pool, _Worker
from server_launchers import isolated
from tests import warm

OF_PROCESSES = (
    "tests/grading/test_grading_pool.py",
    "tests/grading/test_lasting_worker.py",
    "tests/rewards/",
    "tests/system/test_isolated_children.py",
    "tests/system/test_no_dumps.py",
    "tests/system/test_secrets.py",
)
"""Beginnings of the names of tests whose workers are not kept."""

NOT_FORKED = (
    "tests/grading/test_grading_pool.py::test_a_worker_that_is_killed",
    "tests/grading/test_grading_pool.py::test_no_process_is_left_running",
    "tests/grading/test_grading_pool.py::test_pool_closed_early",
    "tests/system/test_isolated_children.py",
    "tests/system/test_no_dumps.py",
    "tests/system/test_secrets.py",
)
"""Beginnings of the names of tests whose workers are children of the tests' process, each a new interpreter."""

MAX_KEPT = 4


class KeptWorkers:
    """Idle workers, each with what it was started with."""

    def __init__(self) -> None:
        self.idle: list[tuple[object, _Worker]] = []
        self.started_with: dict[_Worker, object] = {}
        self.on = False
        self.forked = False

    def take(self, deadline: float) -> _Worker:
        """An idle worker of this deadline and environment, or a new one."""
        wish = (deadline, isolated.environment(pool.verifier.TRUST_VARIABLE))
        for entry in list(self.idle):
            started_with, worker = entry
            if started_with == wish:
                self.idle.remove(entry)
                if worker.process.poll() is None:
                    return worker
                self.end(worker)
        worker = _Worker(deadline)
        # The kernel ends a worker with the thread that started it; a person's verifier is loaded once for all.
        if (
            self.on
            and not os.environ.get(pool.verifier.TRUST_VARIABLE)
            and threading.current_thread() is threading.main_thread()
        ):
            self.started_with[worker] = wish
        return worker

    def leave(self, ended: Pool) -> None:
        """End a pool as `Pool.__exit__` does, but keep the workers that owe nothing."""
        for worker in list(ended.workers) if self.on else ():
            sound = worker.ready and not worker.assigned and not worker.buffer and worker.process.poll() is None
            if sound and worker in self.started_with and len(self.idle) < MAX_KEPT:
                self.idle.append((self.started_with[worker], worker))
                ended.workers.remove(worker)
        for worker in ended.workers:
            self.started_with.pop(worker, None)
        _end_pool(ended)

    def end(self, worker: _Worker) -> None:
        """End a worker for good."""
        self.started_with.pop(worker, None)
        worker.kill()


_kept = KeptWorkers()
_end_pool = Pool.__exit__


def _started(line: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a worker, or another child that reads answers, as a fork; for a test of processes as the product does."""
    if not (_kept.forked and warm.AT_HAND):
        return subprocess.Popen(line, **options)
    return warm.isolated_started(line, **options)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say whether the workers of this test are kept, and whether they are forks."""
    _kept.on = not item.nodeid.startswith(OF_PROCESSES)
    _kept.forked = not item.nodeid.startswith(NOT_FORKED)


@pytest.fixture(scope="session", autouse=True)
def _grading_workers_are_kept() -> Iterator[None]:
    """Put `KeptWorkers` between all pools of this process and their workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "subprocess", warm.with_popen(_started))
        patch.setattr(pool, "_Worker", _kept.take)
        patch.setattr(Pool, "__exit__", lambda self, *_: _kept.leave(self))
        yield
    for _, worker in _kept.idle:
        worker.kill()
