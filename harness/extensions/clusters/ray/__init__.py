"""Runs the harness on the nodes of a Ray cluster: shards of a run and parts of a grading.

Each node has this package in the same version, and sees the working folder and the run folder under the same paths. Ray
carries paths, options and counts between the nodes, never a model's text. The package ray is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.asking.options.run import RunOptions
    from harness.asking.session import Ran
    from harness.asking.watching import Watcher
    from harness.presets.grading import GradingOptions
    from harness.runs import RunFolder


class Ray:
    """The extension for Ray. Each method imports its own module when it is called: grading needs no module of a run."""

    def checked(self, options: RunOptions) -> RunOptions:
        """The options, with an address that other nodes reach. Raises `UsageError` for an option that a run on a
        cluster refuses."""
        from harness.extensions.clusters.ray.sampling import check

        return check(options)

    def run(self, on: str, options: RunOptions, watcher: Watcher) -> Ran:
        """Run the benchmarks in shards, each a Ray task: as many as in the earlier session, or one for each node."""
        from harness.extensions.clusters.ray.sampling import run_on

        return run_on(on, options, watcher)

    def grade(self, on: str, folder: RunFolder, grading: GradingOptions, watcher: Watcher) -> GradingOptions:
        """Grade the run's samples in Ray tasks. Returns the options for the scoring on this machine, which follows and
        keeps these grades."""
        from harness.extensions.clusters.ray.grading import grade_on

        return grade_on(on, folder, grading, watcher)


CLUSTER = Ray()
