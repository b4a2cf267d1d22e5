"""Servers and runs as jobs of a real Slurm: `make test-slurm`, left out of plain `pytest` for the daemons it starts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from tests.faults.able import able, sums
from tests.faults.server import FaultServer, Request
from tests.on_ray import engines
from tests.system.command import Result, harness

pytestmark = pytest.mark.usefixtures("slurm")

SERVER = Path(__file__).parents[1] / "on_ray" / "small_server.py"
GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "slurm.md"


def until(fact: Callable[[], bool]) -> None:
    while not fact():
        time.sleep(0.2)


def slurm_says(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def ended(job: str) -> bool:
    return not slurm_says("squeue", "--noheader", "--job", job)


def addresses(folder: Path) -> set[str]:
    return {path.read_text().strip() for path in (folder / "endpoints").glob("*.url")}


def run(folder: Path) -> Result:
    data = sums(folder, 4)
    return harness(
        folder, "run", "--data", str(data), "--id-key", "id", "--samples", "3", "--model", "small", "--no-stream",
        "--endpoints", "endpoints", "--no-canary", "--out", "run",
    )  # fmt: skip


def test_members_register_serve_come_back_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "pids").mkdir()
    words = [sys.executable, str(SERVER), "{port}", str(tmp_path / "pids")]
    started = harness(
        tmp_path, "serve", "command", "--served-name", "small", "--health-path", "/v1/models", "--slurm", "2",
        "--sbatch=--cpus-per-task=1", "--", *words,
    )  # fmt: skip
    assert started.code == 0, started.err
    named = re.match(r"job (\d+): 2 servers", started.out + started.err)
    assert named is not None, started.out + started.err
    job = named[1]
    try:
        until(lambda: len(addresses(tmp_path)) == 2)
        before = addresses(tmp_path)
        done = run(tmp_path)
        assert done.code == 0, done.err
        lines = (tmp_path / "run" / "sums" / "samples.jsonl").read_bytes().splitlines()
        assert len(lines) == 12
        assert {json.loads(line)["endpoint"].removesuffix("/v1") for line in lines} == before
        slurm_says("scontrol", "requeue", f"{job}_0")
        until(lambda: len(addresses(tmp_path)) == 1)
        assert addresses(tmp_path) < before
        slurm_says("scontrol", "update", f"job={job}_0", "starttime=now")  # else Slurm waits two minutes
        until(lambda: len(addresses(tmp_path)) == 2)
    finally:
        slurm_says("scancel", job)
    until(lambda: ended(job))
    until(lambda: not addresses(tmp_path))
    servers = [int(path.name) for path in (tmp_path / "pids").iterdir()]
    assert len(servers) == 3
    until(lambda: not any(psutil.pid_exists(pid) for pid in servers))


def submitted_over(folder: Path, engine: str, nodes: int) -> str:
    """The number of a job whose one member is a model over so many nodes."""
    words = engines.words(folder, engine, nodes)
    started = harness(folder, "serve", *words, "--slurm", "1", "--sbatch=--partition=two")
    assert started.code == 0, started.err
    (job,) = re.findall(r"job (\d+): 1 servers", started.out + started.err)
    return str(job)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_one_model_over_two_nodes_serves_as_one_and_ends_as_one(tmp_path: Path, engine: str) -> None:
    job = submitted_over(tmp_path, engine, 2)
    try:
        until(lambda: addresses(tmp_path) != set())
        ranks = engines.alive(tmp_path)
        assert engines.whole(ranks, 2)
        nodes = slurm_says("scontrol", "show", "hostnames", slurm_says("squeue", "-h", "-j", job, "-o", "%N").strip())
        assert ranks[0].address.partition(":")[0] == nodes.split()[0]
        assert len(nodes.split()) == 2
        (url,) = addresses(tmp_path)
        assert httpx.get(f"{url}/v1/models").json() == {"data": [{"id": "small"}]}
        if engine == "vllm":
            slurm_says("scancel", job)
        else:
            os.kill(ranks[1].pid, signal.SIGKILL)
        until(lambda: ended(job))
    finally:
        subprocess.run(["scancel", job], check=False)
    until(lambda: not engines.alive(tmp_path))
    assert engines.started(tmp_path) == ranks
    assert addresses(tmp_path) == set()


def test_more_nodes_than_there_are_wait_and_say_so(tmp_path: Path) -> None:
    job = submitted_over(tmp_path, "vllm", 3)
    try:
        until(lambda: "PartitionConfig" in slurm_says("squeue", "--noheader", "--job", job, "--format=%T %r"))
        assert engines.started(tmp_path) == []
    finally:
        slurm_says("scancel", job)
    until(lambda: ended(job))


def test_the_job_of_the_guide_ends_in_order_at_its_signal_and_goes_on(tmp_path: Path) -> None:
    """Its own lines; the run asks a server that is there, and the signal of the time limit is sent by hand."""
    data = sums(tmp_path, 8)

    def slow(request: Request):  # type: ignore[no-untyped-def]
        if request.method != "GET":
            time.sleep(0.4)
        yield from able(0.6)(request)

    (script,) = re.findall(r"```sh\n(#!/bin/bash\n.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    with FaultServer(slow) as server:
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
