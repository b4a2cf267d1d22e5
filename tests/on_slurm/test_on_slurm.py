"""The job of the guide, run by its shell as Slurm's batch step does: the signal of the time limit, then a requeue."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.testing import FakeServer, Request, Step
from tests.faults.able import able, sums
from tests.patience import PATIENCE_SECONDS, until

GUIDE = Path(__file__).parents[2] / "docs" / "scaling.md"


@pytest.mark.wide
@pytest.mark.slow
def test_the_job_of_the_guide_ends_in_order_at_its_signal_and_goes_on(tmp_path: Path) -> None:
    """Its own lines; the run asks a server that is there."""
    data = sums(tmp_path, 8)

    def slow(request: Request) -> Iterator[Step]:
        if request.method != "GET":
            time.sleep(0.4)
        yield from able(0.6)(request)

    (script,) = re.findall(r"```sh\n(#!/bin/bash\n.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    with FakeServer(slow) as server:
        words = ["run", "--data", str(data), "--id-key", "id", "--samples", "4", "--model", "test-model"]
        words += ["--base-url", server.base_url, "--no-canary", "--concurrency", "1", "--out", "results/qwq"]
        command = f"{sys.executable} -m harness"
        job = re.sub(r"harness run .* &", f"{command} {' '.join(words)} &", script)
        (tmp_path / "job.sh").write_text(job.replace("harness score", f"{command} score"))
        samples = tmp_path / "results" / "qwq" / "sums" / "samples.jsonl"

        def stored() -> int:
            return len(samples.read_bytes().splitlines()) if samples.exists() else 0

        def submitted() -> subprocess.Popen[str]:
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            return subprocess.Popen(["bash", "job.sh"], cwd=tmp_path, text=True, **pipes)

        first = submitted()
        until(lambda: stored() >= 3, "the first samples")
        first.send_signal(signal.SIGTERM)  # as `--signal=B:TERM@180` has it: to the shell alone
        log = first.communicate(timeout=PATIENCE_SECONDS)[0]
        assert "stopped by SIGTERM" in log
        assert "samples missing" in log or "of 32" in log, "the score says how much is missing"
        assert 3 <= stored() < 32
        log = submitted().communicate(timeout=PATIENCE_SECONDS)[0]
    assert stored() == 32
    assert "complete: 32 of 32 samples" in log
