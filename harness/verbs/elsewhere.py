"""The protocols of extensions that run work on other machines: a cluster (`on`) or a job scheduler (`slurm`).

The extensions themselves are `harness.extensions.clusters` and `harness.extensions.schedulers`, found by name; the core
knows only the two protocols in this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness.core import plugins
from harness.core.errors import UsageError

if TYPE_CHECKING:
    from harness.asking.options import RunOptions
    from harness.asking.session import Ran
    from harness.asking.watching import Watcher
    from harness.presets.grading import GradingOptions
    from harness.runs import RunFolder
    from server_launchers.spec import ServerSpec

HOST, FILE = "@host@", "@file@"
"""Placeholders in a command. Each node puts in the address that its server listens on, and the file in which the server
registers.
"""

RANK, HEAD, PORT, NODE = "@rank@", "@head@", "@port@", "@node@"
"""Placeholders in the command of a server over several nodes: the node's rank, the address of the first node, a port
that was free on the first node, and the node's own address.
"""


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """Equal servers to start on a cluster.

    words: the words after `harness serve`, with the placeholders HOST and FILE, and if a replica has several nodes with
    RANK, HEAD, PORT and NODE. count: number of replicas. nodes: number of nodes of each replica. resources: resources
    held on each of these nodes, by the cluster's names. host: the address to listen on; None: the node's own. folder:
    where the replicas register and write their logs.
    """

    name: str
    words: tuple[str, ...]
    count: int
    nodes: int
    resources: Mapping[str, float]
    host: str | None
    folder: Path


class ServedReplicas(Protocol):
    """Replicas that a cluster is starting, or has started."""

    def until_ready(self) -> None:
        """Wait until all replicas are ready. Raises `ServerError` for a replica that cannot be started."""

    def hold(self) -> None:
        """Watch the replicas, and report each that is lost or ready again. Raises `ServerError` when none is left."""


class ClusterExtension(Protocol):
    """A kind of cluster, such as Ray. on (in its methods): the kind's name, or NAME://HOST:PORT of a cluster."""

    def checked(self, options: RunOptions) -> RunOptions:
        """The options of a run, with a server's address that other nodes can reach.

        Raises `UsageError` for options that have a meaning for a single client only.
        """

    def run(self, on: str, options: RunOptions, n_shards: int | None, watcher: Watcher) -> Ran:
        """Run the benchmarks from the nodes of the cluster, in `n_shards` shards.

        n_shards: None: as many as in the session before; in the first session, one per node.
        """

    def grade(self, on: str, folder: RunFolder, grading: GradingOptions, watcher: Watcher) -> GradingOptions:
        """Grade the run's samples on the cluster. Return the settings for grading the rest on this machine."""

    def resources_of(self, spec: ServerSpec, gpus: float | None) -> Mapping[str, float]:
        """The resources that one server holds on each of its nodes.

        gpus: number of GPUs of the whole server; None: as many as its parallel sizes need.
        """

    def serve(
        self, on: str, replicas: Replicas, watcher: Watcher, *, detach: bool
    ) -> AbstractContextManager[ServedReplicas]:
        """Start the replicas. They end with the `with` block, unless `detach` is set."""

    def stop(self, on: str, name: str | None, *, everything: bool) -> Sequence[str]:
        """Stop the servers called `name`, or everything. Return the names of the stopped servers.

        name: None: the only servers there are.
        """


class SchedulerExtension(Protocol):
    """A job scheduler."""

    def script(
        self,
        command: Sequence[str],
        members: int,
        folder: Path,
        directives: Sequence[str] = (),
        *,
        nodes: int = 1,
        head_port: int | None = None,
    ) -> str:
        """The script of a job with `members` servers. Each is started by `command` (argv) and registers in `folder`.

        directives: options of the scheduler, such as its partition. nodes: number of nodes of each server. head_port:
        the port that a server of several nodes uses on its first node; None: any free port.
        """

    def submit(self, text: str, folder: Path) -> str:
        """Submit the script. Returns the job's number."""


def cluster(on: str) -> ClusterExtension:
    """Return the extension for the kind of cluster that `on` names, such as `ray`. Raises `UsageError` without one."""
    extension: ClusterExtension | None = plugins.extension("cluster", on.partition("://")[0])
    if extension is None:
        names = [f"{name} or {name}://HOST:PORT" for name in plugins.extensions("cluster")]
        expected = f"expected {', '.join(names)}" if names else "no extension for clusters is installed"
        raise UsageError(expected, field="on", value=on)
    return extension


def scheduler(name: str) -> SchedulerExtension:
    """The extension for the job scheduler of that name. Raises `UsageError` if none is installed."""
    extension: SchedulerExtension | None = plugins.extension("scheduler", name)
    if extension is None:
        raise UsageError(f"no extension for {name} is installed")
    return extension
