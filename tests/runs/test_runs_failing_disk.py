"""Every file of a run on a disk that fails or is short at any call of a kind, in a process of its own.

The faults come from a library between the program and the kernel, so that Python's own reads and writes meet them too.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.core.records import Key
from harness.runs import RunFolder, read_samples
from tests.budget import rounds
from tests.conftest import CHECKOUT, TESTS
from tests.runs.recorded import BENCHMARK, EVERY, FILES, appended

pytestmark = pytest.mark.slow

SOURCE = TESTS / "faults" / "failing_disk.c"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("a library that is loaded before others needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("library") / "failing_disk.so"
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return library


def append(run: RunFolder, first: int, last: int, library: Path, **disk: object) -> tuple[set[str], str]:
    """Appends to every file, by a process whose disk fails: what was acknowledged, and why the rest was refused."""
    faults = {f"DISK_{name.upper()}": str(value) for name, value in disk.items()}
    faults |= {"LD_PRELOAD": library.name, "LD_LIBRARY_PATH": str(library.parent)}  # LD_PRELOAD is split at blanks
    done = subprocess.run(
        [sys.executable, "-m", "tests.runs.recorded", str(run.path), str(first), str(last)],
        cwd=CHECKOUT,
        env={**os.environ, **faults},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return told(done.stdout.splitlines())


def told(lines: Iterable[str]) -> tuple[set[str], str]:
    listed = list(lines)
    refused = [line for line in listed if line.startswith("refused")]
    return set(listed) - set(refused), "\n".join(refused)


def stored(run: RunFolder) -> set[str]:
    """The records that count, each once."""
    records = [f"{name}/{number}" for name, file in FILES.items() if name != "log" for number in file.read(run)]
    with run.log.open("rb") as log:
        numbered = [json.loads(line)["number"] for line in log if b'"numbered"' in line]
    records += [f"log/{number}" for number in numbered]
    records += [f"samples/{sample.question_id[1:]}" for sample in read_samples(run.benchmark(BENCHMARK))]
    assert len(records) == len(set(records)), "nothing counts twice"
    return set(records)


@pytest.mark.parametrize("call", ["read", "write"])
def test_short_reads_and_writes_change_nothing(call: str, run: RunFolder, library: Path) -> None:
    run.create()
    acknowledged, refused = append(run, 0, 3, library, path=run.path, call=call, when=0, errno=0)
    assert refused == ""
    assert stored(run) == acknowledged == {f"{name}/{number}" for name in EVERY for number in range(3)}
    for path in (run.batches, run.benchmark(BENCHMARK).samples):  # a torn tail
        path.write_bytes(path.read_bytes()[:-9])
    append(run, 3, 4, library, path=run.path, call=call, when=0, errno=0)
    left = {f"{name}/{number}" for name in EVERY for number in range(4)} - {"batches/2", "samples/2"}
    assert stored(run) == left


@pytest.mark.parametrize("call", ["read", "write", "fsync"])
def test_a_disk_that_fails_at_every_call_refuses_every_record(call: str, run: RunFolder, library: Path) -> None:
    run.create()
    told(appended(run, 0, 1))
    acknowledged, refused = append(run, 1, 2, library, path=run.path, call=call, when=0, errno=errno.EIO)
    assert acknowledged == ({"log/1"} if call == "fsync" else set()), "an event waits for no sync"
    assert refused.count(os.strerror(errno.EIO)) == len(EVERY) - len(acknowledged)
    before = {f"{name}/0" for name in EVERY}
    assert before | acknowledged <= stored(run) <= before | acknowledged


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("call", "error"),
    [("read", errno.EIO), ("write", errno.EIO), ("write", errno.ENOSPC), ("fsync", errno.EIO), ("truncate", errno.EIO)],
)
def test_a_failed_call_loses_nothing_acknowledged(call: str, error: int, run: RunFolder, library: Path) -> None:
    """Then the disk is well again, and everything can be appended."""
    for when in random.sample(range(1, 25), rounds(1)):
        shutil.rmtree(run.path, ignore_errors=True)
        run.create()
        before, _ = told(appended(run, 0, 1))
        during, refused = append(run, 1, 3, library, path=run.path, call=call, when=when, errno=error)
        hint = f"{call} {when}: {refused}"
        assert before | during <= stored(run), hint
        assert os.strerror(error) in refused or not refused, hint
        after, again = told(appended(run, 3, 4))
        assert again == "", hint
        assert before | during | after <= stored(run), hint
        assert Key("q3", 0) in {sample.key for sample in read_samples(run.benchmark(BENCHMARK))}
        assert 3 in [json.loads(line).get("number") for line in run.log.read_bytes().splitlines()], hint
