"""Run the harness on the nodes of a Ray cluster: shards of a run and parts of a grading.

Each node has the same version of this package, and sees the working folder and the run folder under the same paths. Ray
transfers paths, options and counts between the nodes, never a model's text. The package ray is imported on first use.
"""

from __future__ import annotations

from harness.core.plugins import LateFunctions

# Grading imports no module of a run.
CLUSTER = LateFunctions(__name__, {"check": "sampling", "run_on": "sampling", "grade_on": "grading"})
"""The extension (`harness.commands.cluster_interface.ClusterExtension`)."""
