"""A Ray cluster of several nodes on this machine, as a program: commands on standard input, one answer a line.

Started by the interpreter that has Ray. `kill N`: the N-th worker that runs a task, by SIGKILL. `lose N`: the N-th
node, with all that runs on it; another takes its place. Each answers how many tasks ran, and does nothing where none
did. The address is told first.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import psutil
from ray._private import services
from ray.cluster_utils import Cluster


def workers() -> list[psutil.Process]:
    """Processes of this cluster that run a task of ours, in the order of their start."""
    ours = psutil.Process().children(recursive=True)
    return sorted((one for one in ours if _runs_a_task(one)), key=lambda one: (one.create_time(), one.pid))


def _runs_a_task(process: psutil.Process) -> bool:
    try:
        return process.cmdline()[:1] == ["ray::_task"] or process.cmdline()[0].startswith(
            ("ray::Replica", "ray::Member")
        )
    except IndexError:  # it is ending
        return False
    except psutil.Error:
        return False


def _patiently(node_of_cluster: Any) -> Any:
    """Ray gives a node 30 s to come up, which on a busy machine are too few; a node that never comes hangs the test."""

    def wait(*given: Any) -> Any:
        while True:
            try:
                return node_of_cluster(*given)
            except RuntimeError:  # it is not known yet
                time.sleep(0.5)

    return wait


def main(n_nodes: int, client_port: int) -> None:
    """Until standard input ends. client_port: of the server for `ray://`."""
    services.get_node = _patiently(services.get_node)
    head = {"num_cpus": 0, "include_dashboard": False, "ray_client_server_port": client_port}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=1) for _ in range(n_nodes)]
    say(cluster.address)
    for line in sys.stdin:
        verb, _, number = line.strip().partition(" ")
        running = workers()
        if verb == "kill" and running:
            os.kill(running[int(number) % len(running)].pid, signal.SIGKILL)
        elif verb == "lose" and running:
            chosen = nodes.pop(int(number) % len(nodes))
            cluster.remove_node(chosen, allow_graceful=False)
            nodes.append(cluster.add_node(num_cpus=1))
        say(str(len(running)))
    cluster.shutdown()


def say(line: str) -> None:
    """To the test."""
    sys.stdout.write(f"cluster: {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
