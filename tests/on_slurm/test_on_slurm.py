"""The job of the guide on a real Slurm: `make test-slurm`, left out of plain `pytest` for the daemons it starts."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.testing import FakeServer, Request
from tests.faults.able import able, sums

pytestmark = pytest.mark.usefixtures("slurm")

GUIDE = Path(__file__).parents[2] / "docs" / "scaling.md"


def until(fact: Callable[[], bool]) -> None:
    while not fact():
        time.sleep(0.2)


def slurm_says(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def ended(job: str) -> bool:
    return not slurm_says("squeue", "--noheader", "--job", job)


def test_the_job_of_the_guide_ends_in_order_at_its_signal_and_goes_on(tmp_path: Path) -> None:
    """Its own lines; the run asks a server that is there, and the signal of the time limit is sent by hand."""
    data = sums(tmp_path, 8)

    def slow(request: Request):  # type: ignore[no-untyped-def]
        if request.method != "GET":
            time.sleep(0.4)
        yield from able(0.6)(request)

    (script,) = re.findall(r"```sh\n(#!/bin/bash\n.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    with FakeServer(slow) as server:
        words = ["run", "--data", str(data), "--id-key", "id", "--samples", "4", "--model", "test-model"]
        words += ["--base-url", server.base_url, "--no-canary", "--concurrency", "1", "--out", "results/qwq"]
        command = f"{sys.executable} -m harness"
        job = re.sub(r"harness run .* &", f"{command} {' '.join(words)} &", script)
        job = job.replace("harness score", f"{command} score").replace(" --gpus-per-node=8", "")
        (tmp_path / "job.sh").write_text(job)
        samples = tmp_path / "results" / "qwq" / "sums" / "samples.jsonl"

        def stored() -> int:
            return len(samples.read_bytes().splitlines()) if samples.exists() else 0

        def submitted() -> str:
            out = f"--output={tmp_path}/%j.log"
            return slurm_says("sbatch", "--parsable", f"--chdir={tmp_path}", out, str(tmp_path / "job.sh")).strip()

        first = submitted()
        until(lambda: stored() >= 3)
        slurm_says("scancel", "--batch", "--signal=TERM", first)
        until(lambda: ended(first))
        log = (tmp_path / f"{first}.log").read_text()
        assert "stopped by SIGTERM" in log
        assert "samples owed" in log or "of 32" in log, "the score says how much is missing"
        assert 3 <= stored() < 32
        second = submitted()
        until(lambda: ended(second))
    assert stored() == 32
    assert "complete: 32 of 32 samples" in (tmp_path / f"{second}.log").read_text()
