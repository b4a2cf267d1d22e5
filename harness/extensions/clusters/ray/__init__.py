"""Runs the harness on the nodes of a Ray cluster: shards of a run, parts of a grading, servers.

Each node has this package in the same version, and sees the working folder and the run folder under the same paths. Ray
carries paths, options and counts between the nodes, never a model's text. The package ray is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.asking.options import RunOptions
    from harness.asking.session import Ran
    from harness.asking.watching import Watcher
    from harness.extensions.clusters.ray.serving import Served
    from harness.presets.grading import GradingOptions
    from harness.runs import RunFolder
    from harness.verbs.elsewhere import Replicas
    from server_launchers.spec import ServerSpec


class Ray:
    """The extension for Ray. Each method imports its own module when it is called: grading needs no module of a run."""

    def checked(self, options: RunOptions) -> RunOptions:
        """The options, with an address that other nodes reach. Raises `UsageError` for an option that a run on a
        cluster refuses."""
        from harness.extensions.clusters.ray.sampling import check

        return check(options)

    def run(self, on: str, options: RunOptions, n_shards: int | None, watcher: Watcher) -> Ran:
        """Run the benchmarks in shards, each a Ray task. n_shards: their number; None: as many as in the earlier
        session, or one for each node."""
        from harness.extensions.clusters.ray.sampling import run_on

        return run_on(on, options, n_shards, watcher)

    def grade(self, on: str, folder: RunFolder, grading: GradingOptions, watcher: Watcher) -> GradingOptions:
        """Grade the run's samples in Ray tasks. Returns the options for the scoring on this machine, which follows and
        keeps these grades."""
        from harness.extensions.clusters.ray.grading import grade_on

        return grade_on(on, folder, grading, watcher)

    def resources_of(self, spec: ServerSpec, gpus: float | None) -> dict[str, float]:
        """The Ray resources that one server takes on each of its nodes. gpus: devices of the whole server; None: the
        number that its parallel sizes need."""
        from harness.extensions.clusters.ray.serving import resources_of

        return resources_of(spec, gpus)

    def serve(self, on: str, replicas: Replicas, watcher: Watcher, *, detach: bool) -> Served:
        """Start the replicas, each an actor. They end with the `with` block, unless `detach` is set."""
        from harness.extensions.clusters.ray.serving import Served

        return Served(on, replicas, watcher, detach=detach)

    def stop(self, on: str, name: str | None, *, everything: bool) -> list[str]:
        """Stop the servers called `name`, or all servers. Returns their names.

        name: None if all servers on the cluster have the same name. everything: stop servers of every name.
        """
        from harness.extensions.clusters.ray.serving import stop

        return stop(on, name, everything=everything)


CLUSTER = Ray()
