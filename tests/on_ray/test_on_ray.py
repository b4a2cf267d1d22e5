"""Runs and gradings on a real Ray cluster: what comes of them is what one client here makes, whatever is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.runs import RunFolder, read_samples
from harness.testing import FakeServer, Request, Step
from tests.faults.able import able, sums
from tests.on_ray.conftest import NODES, Nodes

SEEDS = int(os.environ.get("HARNESS_RAY_SEEDS", "3"))
N, M = 24, 4


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A model of known ability, slow enough to be interrupted: every reply waits."""
    with FakeServer(slow(able(0.6))) as running:
        yield running


def slow(answer: Callable[[Request], Iterator[Step]]) -> Callable[[Request], Iterator[Step]]:
    def later(request: Request) -> Iterator[Step]:
        if request.method != "GET":
            time.sleep(0.1)
        yield from answer(request)

    return later


def words(folder: Path, server: FakeServer, out: str = "run") -> list[str]:
    data = sums(folder, N)
    return [
        "run", "--data", str(data), "--id-key", "id", "--samples", str(M), "--model", "test-model", "--base-url",
        server.base_url, "--concurrency", "1", "--no-canary", "--out", out,
    ]  # fmt: skip


def stored(folder: Path) -> dict[tuple[str, int], str | None]:
    """What is stored; a key that stands there twice is a failure."""
    place = RunFolder(folder).benchmark("sums")
    samples = list(read_samples(place))
    assert len(samples) == len(place.samples.read_bytes().splitlines())
    return {(one.question_id, one.sample_index): one.text for one in samples}


def shards_hold(run: Path) -> int:
    """Samples that the shards have stored."""
    return sum(len(path.read_bytes().splitlines()) for path in run.glob("shards/*/sums/samples.jsonl"))


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=600)
    assert "Traceback" not in err, err
    return process.returncode, out + err


def until(fact: Callable[[], bool]) -> None:
    while not fact():
        time.sleep(0.05)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_workers_and_nodes_cost_nothing(nodes: Nodes, server: FakeServer, tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    alone = nodes.harness(tmp_path, *words(tmp_path, server, "alone"), "--concurrency", "16")
    assert ended(alone)[0] == 0
    before = len(server.requests)
    process = nodes.harness(tmp_path, *words(tmp_path, server), "--on", "ray")
    for verb in chosen.choice([("kill", "lose"), ("lose", "kill"), ("kill", "kill"), ("lose", "lose")]):
        more = chosen.randrange(5, 25)
        until(lambda n=before + more: len(server.requests) >= n or process.poll() is not None)  # type: ignore[misc]
        before += more
        loss = f"{verb} {chosen.randrange(NODES)}"
        until(lambda told=loss: process.poll() is not None or nodes.tell(told) > 0)  # type: ignore[misc]
    assert process.poll() is None, "they came while shards were under way"
    code, stderr = ended(process)
    assert code == 0, stderr
    assert f"complete: {N * M} of {N * M} samples" in stderr
    assert stored(tmp_path / "run") == stored(tmp_path / "alone")

    assert ended(nodes.harness(tmp_path, "score", "alone"))[0] == 0
    assert ended(nodes.harness(tmp_path, "score", "run"))[0] == 0
    here = (tmp_path / "alone/sums/grades.jsonl").read_bytes()
    assert (tmp_path / "run/sums/grades.jsonl").read_bytes() == here


def test_grades_of_a_cluster_are_those_made_here(nodes: Nodes, server: FakeServer, tmp_path: Path) -> None:
    assert ended(nodes.harness(tmp_path, *words(tmp_path, server), "--concurrency", "16"))[0] == 0
    assert ended(nodes.harness(tmp_path, "score", "run"))[0] == 0
    place = tmp_path / "run/sums"
    here = [(place / name).read_bytes() for name in ("grades.jsonl", "scores.json")]
    for fresh in (True, False):
        (place / "scores.json").unlink()
        program = f"""
import harness
from harness.extensions.clusters.ray import grading
grading.PART_BYTES, cut, seen = 4_000, grading._spans, []
grading._spans = lambda *given: seen.append(cut(*given)) or seen[-1]
harness.score("run", on="ray", fresh={fresh})
print(len(seen[0]))
"""
        assert int(nodes.python_says(tmp_path, program)) > 3, "in several parts, and nothing of Ray's is printed"
        assert [(place / name).read_bytes() for name in ("grades.jsonl", "scores.json")] == here
        assert not list(place.glob("grading-parts"))


def test_ctrl_c_ends_shards_in_order_and_the_command_resumes(nodes: Nodes, server: FakeServer, tmp_path: Path) -> None:
    command = [*words(tmp_path, server), "--on", nodes.client_address]
    process = nodes.harness(tmp_path, *command)
    until(lambda: shards_hold(tmp_path / "run") >= 4 or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    code, stderr = ended(process)
    assert code == 130, stderr
    assert "the same command" in stderr
    begun = shards_hold(tmp_path / "run")
    assert 0 < begun < N * M
    n_asked = len(server.requests)
    code, stderr = ended(nodes.harness(tmp_path, *command))
    assert code == 0, stderr
    assert len(stored(tmp_path / "run")) == N * M
    posts = [one for one in server.requests[n_asked:] if one.method == "POST" and "max_tokens" not in one.json]
    assert len(posts) <= N * M - begun, "only what was missing is asked"
