"""Work of ours on the nodes of a Ray cluster: shards of a run, parts of a grading, servers. Ray is imported late.

What runs there is this package in the same version; Ray carries paths, options and counts between the nodes, never a
text of a model. Every node sees the working folder and the run folder under the same paths.
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
    """See `harness.verbs.elsewhere.ClusterExtension`. A method loads its own module: grading needs none of a run."""

    def checked(self, options: RunOptions) -> RunOptions:
        """See `ClusterExtension`."""
        from harness.extensions.clusters.ray.sampling import checked

        return checked(options)

    def run(self, on: str, options: RunOptions, n_shards: int | None, watcher: Watcher) -> Ran:
        """See `ClusterExtension`."""
        from harness.extensions.clusters.ray.sampling import run_on

        return run_on(on, options, n_shards, watcher)

    def grade(self, on: str, folder: RunFolder, grading: GradingOptions, watcher: Watcher) -> GradingOptions:
        """See `ClusterExtension`."""
        from harness.extensions.clusters.ray.grading import grade_on

        return grade_on(on, folder, grading, watcher)

    def resources_of(self, spec: ServerSpec, gpus: float | None) -> dict[str, float]:
        """See `ClusterExtension`."""
        from harness.extensions.clusters.ray.serving import resources_of

        return resources_of(spec, gpus)

    def serve(self, on: str, replicas: Replicas, watcher: Watcher, *, detach: bool) -> Served:
        """See `ClusterExtension`."""
        from harness.extensions.clusters.ray.serving import Served

        return Served(on, replicas, watcher, detach=detach)

    def stop(self, on: str, name: str | None, *, everything: bool) -> list[str]:
        """See `ClusterExtension`."""
        from harness.extensions.clusters.ray.serving import stop

        return stop(on, name, everything=everything)


CLUSTER = Ray()
