"""Servers on a real Ray cluster: lost ones come back elsewhere, and at the end nothing is left of any."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.on_ray.conftest import NODES, Nodes
from tests.servers import environments

SEEDS = int(os.environ.get("HARNESS_RAY_SEEDS", "3"))
PROGRAM = str(Path(__file__).parent / "small_server.py")


def serve(nodes: Nodes, folder: Path, *words: str, habits: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    (folder / "pids").mkdir(exist_ok=True)
    program = [str(nodes.python), PROGRAM, "{port}", str(folder / "pids"), *habits]
    own = ["--name", "small", "--served-name", "small", "--on", "ray", *words]
    return nodes.harness(folder, "serve", "command", *own, "--", *program)


def until(fact: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    while not fact():
        if process is not None and process.poll() is not None:
            pytest.fail(str(process.communicate()))
        time.sleep(0.05)


def registered(folder: Path) -> set[str]:
    return {one.name for one in (folder / "endpoints").glob("*.url")}


def answering(folder: Path) -> int:
    """Registered servers that answer."""
    n = 0
    for file in (folder / "endpoints").glob("*.url"):
        try:
            port = urlsplit(file.read_text().strip()).port
            n += httpx.get(f"http://127.0.0.1:{port}/v1/models").status_code == 200
        except (httpx.HTTPError, FileNotFoundError):
            continue
    return n


def left(folder: Path) -> list[int]:
    return [int(one.name) for one in (folder / "pids").iterdir() if psutil.pid_exists(int(one.name))]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_lost_servers_come_back_and_ctrl_c_leaves_nothing(nodes: Nodes, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    process = serve(nodes, tmp_path, "--replicas", str(NODES))
    assert process.stderr is not None
    assert any("Ctrl-C stops them." in line for line in process.stderr), "it ended before all were ready"
    assert answering(tmp_path) == NODES
    before = registered(tmp_path)
    assert len(before) == NODES
    for verb in chance.choice([("kill", "lose"), ("lose", "kill"), ("kill", "kill"), ("lose", "lose")]):
        assert nodes.tell(f"{verb} {chance.randrange(NODES)}") == NODES, "each runs on a node"
        until(lambda known=before: registered(tmp_path) != known, process)  # type: ignore[misc]
        until(lambda: answering(tmp_path) == NODES, process)
        now = registered(tmp_path)
        assert len(now - before) == 1
        before = now
    process.send_signal(signal.SIGINT if seed % 2 else signal.SIGTERM)
    out, err = process.communicate()
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    assert len(list((tmp_path / "pids").iterdir())) == NODES + 2
    assert registered(tmp_path) == set()
    until(lambda: not left(tmp_path))


def test_detached_ones_stay_until_they_are_stopped(nodes: Nodes, tmp_path: Path) -> None:
    process = serve(nodes, tmp_path, "--replicas", "2", "--detach")
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    assert "all are ready" in err
    assert answering(tmp_path) == 2
    twin = serve(nodes, tmp_path, "--detach")
    assert "servers called small run on the cluster (2)" in twin.communicate()[1]
    stopped = nodes.harness(tmp_path, "serve", "stop", "large", "--on", "ray")
    assert "none is called large; on the cluster are: small" in stopped.communicate()[1]
    ended = nodes.harness(tmp_path, "serve", "stop", "--on", "ray")
    out, err = ended.communicate()
    assert (ended.returncode, out) == (0, "stopped small\n"), err
    assert registered(tmp_path) == set()
    until(lambda: not left(tmp_path))


def test_one_that_cannot_start_is_one_sentence_and_ends_the_others(nodes: Nodes, tmp_path: Path) -> None:
    process = serve(nodes, tmp_path, "--replicas", "2", habits=("dies",))
    out, err = process.communicate()
    assert process.returncode == 2, out + err
    assert "of 2 did not start: " in err
    assert "flash_attn" in err
    assert "Traceback" not in err
    assert registered(tmp_path) == set()
    until(lambda: not left(tmp_path))
    too_large = serve(nodes, tmp_path, "--gpus-per-replica", "8")
    assert "no node of the cluster has what a replica needs (1 CPU, 8 GPU)" in too_large.communicate()[1]


def test_a_caller_that_is_killed_takes_its_servers_with_it(nodes: Nodes, tmp_path: Path) -> None:
    process = serve(nodes, tmp_path, "--replicas", "2")
    until(lambda: answering(tmp_path) == 2, process)
    process.kill()
    process.communicate()
    until(lambda: not left(tmp_path))


@pytest.mark.parametrize("through_client", [False, True])
def test_a_cluster_that_ends_ends_the_command_and_its_servers(tmp_path: Path, through_client: bool) -> None:
    short = Nodes(environments.python_of(environments.RAY), tmp_path / "state")
    try:
        process = serve(short, tmp_path, *(["--on", short.client_address] if through_client else []))
        assert process.stderr is not None
        assert any("Ctrl-C stops them." in line for line in process.stderr), "it ended before all were ready"
    finally:
        short.close()
    _, err = process.communicate()
    assert process.returncode in {1, 2}, err
    if through_client:
        assert "the Ray cluster does not answer any more" in err
        assert "Traceback" not in err
    else:
        assert "Failed to connect to GCS" in err, "Ray itself ends the program, after a minute"
    until(lambda: not left(tmp_path))
