"""Runs that end before their time: killed, interrupted, told to stop. What is stored counts, the rest is asked.

For: harness.generation.network.control.
"""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from harness.generation.machine_limits import SPARE_DESCRIPTORS
from harness.testing import STALL, FakeServer, Pause, Request, Step
from tests import warm
from tests.budget import rounds
from tests.generation.small_runs import expected_keys, keys_of, question_set, run, run_settings, well
from tests.patience import PATIENCE_SECONDS

CHECKOUT = Path(__file__).parents[2]


def start(
    folder: Path, questions: int, samples: int, *urls: str, grace: float = 20.0, limits: Mapping[int, int] | None = None
) -> subprocess.Popen[str]:
    """A run as a child."""
    words = map(str, (folder, questions, samples, grace, *urls))
    return warm.started(["tests.generation.child", *words], limits=limits, cwd=CHECKOUT, stderr=subprocess.PIPE)


def ended(child: subprocess.Popen[str]) -> tuple[int, str]:
    """(exit code, what it said)."""
    _, stderr = child.communicate(timeout=PATIENCE_SECONDS)
    return child.returncode, stderr


def goes_on_to_its_end(folder: Path, questions: int, samples: int, *urls: str) -> None:
    """Go on with the run in this process."""
    settings = run_settings(folder / "run", *urls, samples=samples)
    assert run(settings, question_set(folder, questions)).complete


def unhurried(request: Request) -> Iterator[Step]:
    """A reply in pieces, so that there is time to be killed in."""
    for step in well(request):
        yield step
        if request.number % 5 == 0:
            yield Pause(0.002)


def more_requests(server: FakeServer, n: int) -> bool:
    """Wait for `n` requests from now on."""
    before = len(server.requests)
    return server.wait_for(lambda: len(server.requests) >= before + n)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_lets_requests_in_flight_end_and_says_how_to_resume(tmp_path: Path, signum: int) -> None:
    def answer(request: Request) -> Iterator[Step]:
        steps = list(well(request))
        yield from steps[:2]
        if request.number == 8:
            child.send_signal(signum)
        yield Pause(0.4)
        yield from steps[2:]

    with FakeServer(answer) as server:
        child = start(tmp_path, 10, 10, server.base_url)
        code, stderr = ended(child)
        n_asked = len(server.requests)
        assert server.aborted == 0
        assert code == 128 + signum
        assert "Resume with: harness run again" in stderr
        assert f"{n_asked} of 100 samples" in stderr
        assert len(keys_of(run_settings(tmp_path / "run"))) == n_asked < 100
        server.answer = well
        goes_on_to_its_end(tmp_path, 10, 10, server.base_url)
    assert keys_of(run_settings(tmp_path / "run")) == expected_keys(10, 10)


MOMENTS = rounds(1)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("signums", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)], ids=["one", "two"])
def test_a_signal_at_any_moment_leaves_a_valid_journal_and_a_run_that_resumes(
    tmp_path: Path, signums: tuple[signal.Signals, ...]
) -> None:
    chance = random.Random(55)
    with FakeServer(unhurried) as server:
        for moment in range(MOMENTS):
            folder = tmp_path / str(moment)
            folder.mkdir()
            child = start(folder, 6, 20, server.base_url)
            assert server.wait_for((folder / "run" / "log.jsonl").exists)
            time.sleep(chance.uniform(0.0, 0.25))
            for signum in signums:
                child.send_signal(signum)
            code, stderr = ended(child)
            assert "Traceback" not in stderr, stderr
            # A second signal after the session's end, while the process leaves, ends it as any other process.
            assert code in (0, 128 + signums[0], *(-signum for signum in signums[1:]))
            stored = (
                keys_of(run_settings(folder / "run")) if (folder / "run" / "sums" / "samples.jsonl").exists() else set()
            )
            assert stored <= expected_keys(6, 20)
            assert (code == 0) == (stored == expected_keys(6, 20))
            goes_on_to_its_end(folder, 6, 20, server.base_url)
            assert keys_of(run_settings(folder / "run")) == expected_keys(6, 20)


def stalls_after_20(request: Request) -> Iterable[Step]:
    return [*list(well(request))[:3], STALL] if request.number > 20 else well(request)


@pytest.mark.parametrize(("grace", "signals"), [(0.1, 1), (60.0, 2)], ids=["grace over", "second signal"])
def test_a_stalled_server_does_not_hold_up_the_end(tmp_path: Path, grace: float, signals: int) -> None:
    with FakeServer(stalls_after_20) as server:
        child = start(tmp_path, 10, 10, server.base_url, grace=grace)
        assert server.wait_for(lambda: len(server.requests) >= 28)
        for _ in range(signals):
            child.send_signal(signal.SIGINT)
            time.sleep(0.1)
        code, stderr = ended(child)
        assert (code, "20 of 100 samples" in stderr) == (130, True)
    with FakeServer(well) as server:
        goes_on_to_its_end(tmp_path, 10, 10, server.base_url)
    assert keys_of(run_settings(tmp_path / "run")) == expected_keys(10, 10)


def test_a_low_limit_of_open_files_lowers_the_concurrency_and_says_so(tmp_path: Path) -> None:
    with FakeServer(well) as server:
        child = start(tmp_path, 5, 4, server.base_url, limits={resource.RLIMIT_NOFILE: SPARE_DESCRIPTORS + 3})
        assert ended(child) == (0, "")
        assert server.connections <= 3 + 1
    log = (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8")
    assert "lowers `concurrency` to 3" in log
    assert keys_of(run_settings(tmp_path / "run")) == expected_keys(5, 4)
