"""Every file of a run that lines are appended to but its samples: how a record gets there, and what counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.runs import RunFolder, RunLog, overrides
from harness.runs.batches import BatchLedger
from harness.runs.overrides import Override
from tests.runs.recorded import BENCHMARK


@dataclass(frozen=True)
class Appended:
    """A file that something of ours appends to. append: adds the record of a number; read: the numbers that count."""

    path: Callable[[RunFolder], Path]
    append: Callable[[RunFolder, int], None]
    read: Callable[[RunFolder], list[int]]


def override(number: int) -> Override:
    return Override(
        benchmark=BENCHMARK, question_id=f"q{number}", sample_index=0, verdict="correct", graded="wrong", who="me",
        when="2026-01-02T03:04:05+00:00", why="é\u2028 " * (number + 1),
    )  # fmt: skip


def correct(run: RunFolder, number: int) -> None:
    overrides.append(run.benchmark(BENCHMARK), override(number))


def corrected(run: RunFolder) -> list[int]:
    return [int(correction.question_id[1:]) for correction in overrides.read(run.benchmark(BENCHMARK))]


def plan(run: RunFolder, number: int) -> None:
    BatchLedger(run).planned(str(number), "http://h/v1", [f"ask {number}"])


def planned(run: RunFolder) -> list[int]:
    return [int(name) for name in BatchLedger(run).batches]


def log(run: RunFolder, number: int) -> None:
    with RunLog(run) as events:
        events.write("numbered", number=number)


def logged(run: RunFolder) -> list[int]:
    with run.log.open("rb") as file:
        lines = [line for line in file.read().split(b"\n") if line]
    return [int(line.rpartition(b":")[2][:-1]) for line in lines if line.endswith(b"}")]


FILES = {
    "overrides": Appended(lambda run: run.benchmark(BENCHMARK).overrides, correct, corrected),
    "batches": Appended(lambda run: run.batches, plan, planned),
    "log": Appended(lambda run: run.log, log, logged),
}
