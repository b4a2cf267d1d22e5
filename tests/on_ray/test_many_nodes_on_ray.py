"""One model over several nodes of a real Ray cluster: all of its ranks or none, and nothing left at the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from tests.on_ray import engines
from tests.on_ray.conftest import NODES, Nodes
from tests.on_ray.test_serving_on_ray import SEEDS, answering, registered, until


def serve(nodes: Nodes, folder: Path, engine: str, *words: str, n_nodes: int = NODES) -> subprocess.Popen[str]:
    own = ["--name", "large", "--on", "ray"]
    return nodes.harness(folder, "serve", *engines.words(folder, engine, n_nodes), *own, *words)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_lost_rank_begins_the_whole_again_and_ctrl_c_leaves_nothing(nodes: Nodes, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    process = serve(nodes, tmp_path, "sglang" if seed % 2 else "vllm")
    assert process.stderr is not None
    assert any("Ctrl-C stops them." in line for line in process.stderr), "it ended before it was ready"
    before, url = engines.alive(tmp_path), registered(tmp_path)
    assert engines.whole(before, NODES)
    assert len(url) == 1, "one model has one address"
    assert answering(tmp_path) == 1
    for verb in chance.sample(["end", "kill", "lose"], 2):
        if verb == "end":  # the engine's own process, and the others go on as if nothing were
            os.kill(before[chance.randrange(NODES)].pid, signal.SIGKILL)
        else:
            assert nodes.tell(f"{verb} {chance.randrange(NODES)}") == NODES, "each runs on a node"
        until(lambda known=url: registered(tmp_path) not in (known, set()), process)  # type: ignore[misc]
        until(lambda: len(engines.alive(tmp_path)) == NODES, process)
        now, url = engines.alive(tmp_path), registered(tmp_path)
        assert engines.whole(now, NODES)
        assert not set(now) & set(before), "no part of the old one is in the new one"
        assert answering(tmp_path) == 1
        before = now
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    assert registered(tmp_path) == set()
    until(lambda: not engines.alive(tmp_path))
    assert len(engines.started(tmp_path)) == 3 * NODES


def test_a_detached_one_begins_again_by_itself_until_it_is_stopped(nodes: Nodes, tmp_path: Path) -> None:
    process = serve(nodes, tmp_path, "vllm", "--detach", "--on", nodes.client_address, n_nodes=2)
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    first = engines.alive(tmp_path)
    assert engines.whole(first, 2)
    url = registered(tmp_path)
    os.kill(first[1].pid, signal.SIGKILL)
    until(lambda: registered(tmp_path) not in (url, set()))
    until(lambda: engines.whole(engines.alive(tmp_path), 2))
    assert answering(tmp_path) == 1
    assert not set(engines.alive(tmp_path)) & set(first)
    ended = nodes.harness(tmp_path, "serve", "stop", "large", "--on", "ray")
    assert ended.communicate()[0] == "stopped large\n"
    assert registered(tmp_path) == set()
    until(lambda: not engines.alive(tmp_path))


def test_too_few_nodes_and_a_rank_that_cannot_start_are_one_sentence(nodes: Nodes, tmp_path: Path) -> None:
    process = serve(nodes, tmp_path, "vllm", n_nodes=NODES + 1)
    err = process.communicate()[1]
    assert process.returncode == 2
    assert f"a replica needs {NODES + 1} nodes (1 CPU on each), and {NODES} of the cluster have that" in err
    assert len(err.splitlines()) == 1
    assert engines.started(tmp_path) == []
    process = serve(nodes, tmp_path, "vllm", "--env", "DIES=1")
    err = process.communicate()[1]
    assert process.returncode == 2
    assert "replica 1 of 1 did not start: rank 1: " in err
    assert "flash_attn" in err
    assert f"its log is {tmp_path}/endpoints/large-1.rank-1.log" in err
    assert registered(tmp_path) == set()
    until(lambda: not engines.alive(tmp_path))
    assert len(engines.started(tmp_path)) <= NODES
    stopped = nodes.harness(tmp_path, "serve", "stop", "--on", "ray")
    assert "on the cluster are: none" in stopped.communicate()[1]
