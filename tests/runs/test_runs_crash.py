"""Real processes that really die: no acknowledged sample is lost, none is doubled, every crash can be resumed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.records import Key
from harness.runs import BenchmarkRecord, Journal, Manifest, Plan, RunFolder, RunLock, record
from tests.runs.recorded import BENCHMARK, intact_lines, sample

pytestmark = pytest.mark.slow


def acknowledged_in(output: bytes) -> set[Key]:
    """The keys that the program printed, the last line only if it is whole."""
    lines = output.decode().split("\n")[:-1]
    return {Key(q, int(i)) for q, _, i in (line.partition("/") for line in lines if line != "open")}


CALLS = ["open", "mkdir", "write", "fsync", "fdatasync", "ftruncate", "replace", "unlink", "chmod", "pwrite"]


def die_at(number: int, *, after: bool) -> list[int]:
    """From now on count calls that change the disk; leave this process at the given one, just before or after it.

    Returns a list whose only element is the count.
    """
    count = [0]

    def counted(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object, **named: object) -> object:
            count[0] += 1
            if count[0] == number and not after:
                os._exit(77)
            try:
                return real(*arguments, **named)
            finally:
                if count[0] == number:
                    os._exit(77)

        setattr(os, name, call)

    for name in CALLS:
        counted(name)
    return count


def scenario(folder: RunFolder, report: int) -> None:
    """A resume after a crash: a torn tail to repair, a manifest to extend, samples to append, each told to `report`."""
    with RunLock(folder):
        manifest = Manifest.start(folder, model="m", harness_version="1")
        identity = {"model": "m"}
        manifest.extend("second", BenchmarkRecord(identity=identity, plan=Plan(samples=1))).save(folder)
        with Journal.open(folder.benchmark(BENCHMARK)) as journal:
            for i in range(3):
                journal.append(sample("new", i, "t" * 400_000 if i == 1 else "t"))
                _tell(report, f"new/{i}\n".encode())


_tell = os.write  # taken before any call is counted


def prepare(path: Path) -> RunFolder:
    """A run that died in the middle of its third record."""
    folder = RunFolder(path)
    record_of = BenchmarkRecord(identity={"model": "m"}, plan=Plan(samples=3))
    Manifest.start(folder, model="m", harness_version="1").extend(BENCHMARK, record_of).save(folder)
    with Journal.open(folder.benchmark(BENCHMARK)) as journal:
        journal.append(sample("old", 0))
        journal.append(sample("old", 1))
    with folder.benchmark(BENCHMARK).samples.open("ab") as file:
        file.write(record.encode(sample("old", 2))[:-9])
    return folder


def crash(folder: RunFolder, number: int, *, after: bool) -> tuple[int, set[Key]]:
    """Run the scenario in a forked child that dies at its `number`-th call. Returns exit code and acknowledged keys."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            count = die_at(number, after=after)
            scenario(folder, writing)
            os._exit(0 if count[0] < number else 1)
        except BaseException:  # noqa: BLE001 - a child must never return into the tests
            os._exit(2)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        output = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), acknowledged_in(output)


@pytest.mark.parametrize("after", [False, True])
def test_death_at_every_call_that_changes_the_disk_can_be_resumed(quick_path: Path, after: bool) -> None:
    """A child of a process without threads is needed to fork: so the loop itself runs in one of its own."""
    program = f"import test_runs_crash; test_runs_crash.die_everywhere({str(quick_path)!r}, {after})"
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20, "the scenario makes that many calls at least"


def die_everywhere(parent: str, after: bool) -> None:
    """Kill at call 1, 2, … until the scenario outlives the number; check and resume each time. Prints the count."""
    number = 0
    while True:
        number += 1
        folder = prepare(Path(parent) / str(number))
        code, acknowledged = crash(folder, number, after=after)
        assert code in (0, 77), (number, code)
        acknowledged |= {Key("old", 0), Key("old", 1)}
        samples = folder.benchmark(BENCHMARK).samples
        on_disk = [Key(line["question_id"], line["sample_index"]) for line in intact_lines(samples.read_bytes())]
        assert len(on_disk) == len(set(on_disk)), number
        assert acknowledged <= set(on_disk), number
        assert BENCHMARK in Manifest.load(folder).benchmarks, number
        with RunLock(folder):
            with Journal.open(folder.benchmark(BENCHMARK)) as journal:
                assert journal.keys == set(on_disk), number
            assert not list(folder.path.glob(".*.tmp")), number
        shutil.rmtree(folder.path)
        if code == 0:
            sys.stdout.write(str(number))
            return
