"""The protocol of extensions that run work on the machines of a cluster (`on`).

They are in `harness.extensions.clusters`, or entry points of other packages (group `harness.clusters`), and found by
name; the core knows only this protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harness.core import plugins
from harness.core.errors import UsageError

if TYPE_CHECKING:
    from harness.generation.outcome import Outcome
    from harness.options.run import RunOptions
    from harness.presets.grading import GradingOptions
    from harness.progress.events import Watcher
    from harness.runs import RunFolder


class ClusterExtension(Protocol):
    """A kind of cluster, such as Ray. on (in its methods): the kind's name, or NAME://HOST:PORT of a cluster."""

    def check(self, options: RunOptions) -> RunOptions:
        """The options of a run, with a server's address that other nodes can reach.

        Raises `UsageError` for options that make sense only for a single client.
        """

    def run_on(self, on: str, options: RunOptions, watcher: Watcher) -> Outcome:
        """Run the benchmarks on the cluster's nodes, in as many shards as there were nodes in the first session."""

    def grade_on(self, on: str, folder: RunFolder, grading: GradingOptions, watcher: Watcher) -> GradingOptions:
        """Grade the run's samples on the cluster. Return the settings for grading the rest on this machine."""


def cluster(on: str) -> ClusterExtension:
    """The extension for the kind of cluster that `on` names, such as `ray`. Raises `UsageError` if there is none."""
    kind = on.partition("://")[0]
    extension: ClusterExtension | None = plugins.extension("cluster", kind) or plugins.load("cluster", kind)
    if extension is None:
        known = (*plugins.extensions("cluster"), *plugins.names("cluster"))
        names = [f"{name} or {name}://HOST:PORT" for name in known]
        expected = f"expected {', '.join(names)}" if names else "no cluster extension is installed"
        raise UsageError(expected, field="on", value=on)
    return extension
