"""A cell's jobs, with sandboxes that are a thread of the test: what is asked again, kept, closed and refused.

For: reasoning_programs.cells.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sandboxed import PATIENCE_SECONDS

from reasoning_programs.cells import SandboxCell, SandboxFailedError
from reasoning_programs.inside import frames

LIMITS = {"memory": 1 << 20, "tests_memory": 1 << 10, "cpu_total": 3, "sleep": 1}
JOB = {"style": "python", "limits": LIMITS}
WORK = {"tests": [1, 2]}
Answer = Callable[[int, dict[str, Any]], None]
"""What a sandbox does with a job, over the descriptor of its end."""


def speaks(*messages: object, reports: bool = True) -> Answer:
    """A sandbox that begins and reports what its work is, and sends these messages, or only these."""

    def answer(fd: int, job: dict[str, Any]) -> None:
        if reports:
            frames.send(fd, {"begun": job["style"]})
            frames.send(fd, {"report": frames.receive(fd)})
        for message in messages:
            if isinstance(message, Exception):
                raise message
            frames.send(fd, message)

    return answer


good, messy = speaks({"over": 0}), speaks({"noise": 1}, {"over": 0, "used": True})
ended_early = speaks({"end": "python"}, {"over": 0}, reports=False)
reports_and_dies, dead = speaks(ConnectionError()), speaks(ConnectionError(), reports=False)
over_too_soon, listing = speaks({"over": 9}, reports=False), speaks([1], reports=False)


class Maker:
    """Starts processes that sleep, each with a thread that speaks in its place. answers: one for each job to come."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.memories: list[int] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.threads: list[threading.Thread] = []
        self.n_ended = 0

    def start(self, channel: int, memory: int, packages: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        self.memories.append(memory)
        words = ["/bin/sh", "-c", "exec sleep 600"]
        self.processes.append(subprocess.Popen(words, stderr=subprocess.PIPE, start_new_session=True))
        thread = threading.Thread(target=self.serve, args=(os.dup(channel),), daemon=True)
        self.threads.append(thread)
        thread.start()
        return self.processes[-1]

    def end(self, process: subprocess.Popen[bytes]) -> None:
        self.n_ended += process is self.processes[-1]

    def serve(self, fd: int) -> None:
        try:
            frames.send(fd, {"ready": "3.12.1"})
            while os.read(fd, 1) == b"j":
                self.answers.pop(0)(fd, frames.receive(fd))
        except (OSError, frames.ClosedError):
            pass
        finally:
            os.close(fd)


@pytest.fixture
def cell_of() -> Iterator[Callable[[Maker], SandboxCell]]:
    pairs: list[tuple[SandboxCell, Maker]] = []

    def cell(maker: Maker) -> SandboxCell:
        pairs.append((SandboxCell(maker), maker))
        return pairs[-1][0]

    yield cell
    for cell_, maker in pairs:
        cell_.close()
        for thread in maker.threads:
            thread.join(PATIENCE_SECONDS)
        assert [process.returncode for process in maker.processes] == [-signal.SIGKILL] * len(maker.processes)


CellOf = Callable[[Maker], SandboxCell]


def test_one_sandbox_does_one_job_after_the_other(cell_of: CellOf) -> None:
    maker = Maker(good, good, ended_early)
    cell = cell_of(maker)
    assert cell.version == ""
    assert cell.run_job(JOB, WORK) == {"report": WORK}
    assert cell.run_job(JOB, {"tests": []}) == {"report": {"tests": []}}
    assert cell.run_job(JOB, WORK) == {"end": "python", "begun": False}, "the program ended before its tests"
    assert (len(maker.processes), maker.n_ended, cell.version) == (1, 0, "3.12.1")
    cell.close()
    assert maker.n_ended == 1


def test_a_sandbox_with_files_left_in_it_is_not_used_again(cell_of: CellOf) -> None:
    maker = Maker(messy, good)
    cell = cell_of(maker)
    assert cell.run_job(JOB, WORK) == {"report": WORK}
    assert maker.n_ended == 1
    assert cell.run_job(JOB, WORK) == {"report": WORK}
    assert len(maker.processes) == 2


def test_a_job_is_done_again_once_in_a_new_sandbox(cell_of: CellOf) -> None:
    for failing, message in (
        (dead, "the sandbox ended: "),
        (over_too_soon, "the job ended without a report \\(wait status 9"),
        (listing, "the sandbox sent a message that is not a JSON object"),
    ):
        maker = Maker(failing, good, failing, failing, good)
        cell = cell_of(maker)
        assert cell.run_job(JOB, WORK) == {"report": WORK}
        assert len(maker.processes) == 2
        with pytest.raises(SandboxFailedError, match=message):
            cell.run_job(JOB, WORK)
        assert (len(maker.processes), maker.n_ended) == (3, 3)
        assert cell.run_job(JOB, WORK) == {"report": WORK}, "the failed ones left nothing"


def test_a_sandbox_that_dies_behind_its_report_is_replaced(cell_of: CellOf) -> None:
    maker = Maker(reports_and_dies, good, good)
    cell = cell_of(maker)
    assert cell.run_job(JOB, WORK) == {"report": WORK}
    assert (len(maker.processes), maker.n_ended) == (2, 1)
    assert cell.run_job(JOB, {"tests": []}) == {"report": {"tests": []}}


def test_a_job_that_is_interrupted_ends_its_sandbox(cell_of: CellOf, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    maker = Maker(good, good)
    cell = cell_of(maker)
    with monkeypatch.context() as patched:
        patched.setattr(SandboxCell, "exchange", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cell.run_job(JOB, WORK)
    assert maker.n_ended == 1
    assert cell.run_job(JOB, {"tests": []}) == {"report": {"tests": []}}, "no message of the other job is read"


def test_a_job_that_needs_more_gets_another_sandbox(cell_of: CellOf) -> None:
    maker = Maker(*[good] * 6)
    cell = cell_of(maker)
    larger = {**JOB, "limits": {**LIMITS, "memory": 2 << 20}}
    for job in (JOB, JOB, larger, JOB):
        assert cell.run_job(job, WORK) == {"report": WORK}
    margin = 512 << 20
    assert maker.memories == [(1 << 20) + (1 << 10) + margin, (2 << 20) + (1 << 10) + margin]
