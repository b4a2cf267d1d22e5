"""A Ray cluster of several nodes on this machine, as a program: commands on standard input, one answer a line.

Started by the interpreter that has Ray. `kill N`: the N-th worker that runs a task, by SIGKILL. `lose N`: the N-th
node, with all that runs on it; another takes its place. Each answers how many tasks ran, and does nothing where none
did. The address is told first.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import psutil
from ray.cluster_utils import Cluster

TRIES = 5
"""How often a node is begun."""


def workers() -> list[psutil.Process]:
    """Processes of this cluster that run a task of ours, in the order of their start."""
    ours = psutil.Process().children(recursive=True)
    return sorted((one for one in ours if _runs_a_task(one)), key=lambda one: (one.create_time(), one.pid))


def _runs_a_task(process: psutil.Process) -> bool:
    try:
        return process.cmdline()[:1] == ["ray::_task"]
    except psutil.Error:
        return False


def _added(cluster: Any) -> Any:
    """A node with one processor. One that is not up after 30 s has ended, and on a busy machine the next try may do."""
    for _ in range(TRIES - 1):
        try:
            return cluster.add_node(num_cpus=1)
        except Exception:  # noqa: BLE001  Ray raises no kind of its own
            continue
    return cluster.add_node(num_cpus=1)


def main(n_nodes: int, client_port: int) -> None:
    """Until standard input ends. client_port: of the server for `ray://`."""
    head = {"num_cpus": 0, "include_dashboard": False, "ray_client_server_port": client_port}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    nodes = [_added(cluster) for _ in range(n_nodes)]
    say(cluster.address)
    for line in sys.stdin:
        verb, _, number = line.strip().partition(" ")
        running = workers()
        if verb == "kill" and running:
            os.kill(running[int(number) % len(running)].pid, signal.SIGKILL)
        elif verb == "lose" and running:
            node = nodes.pop(int(number) % len(nodes))
            cluster.remove_node(node, allow_graceful=False)
            nodes.append(_added(cluster))
        say(str(len(running)))
    cluster.shutdown()


def say(line: str) -> None:
    """To the test."""
    sys.stdout.write(f"cluster: {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
