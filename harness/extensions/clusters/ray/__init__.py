"""Runs the harness on the nodes of a Ray cluster: shards of a run and parts of a grading.

Each node has this package in the same version, and sees the working folder and the run folder under the same paths. Ray
carries paths, options and counts between the nodes, never a model's text. The package ray is imported on first use.
"""

from __future__ import annotations

import sys

from harness.core.late import import_on_use

# Grading imports no module of a run.
__getattr__ = import_on_use(__name__, {"check": "sampling", "run_on": "sampling", "grade_on": "grading"})

CLUSTER = sys.modules[__name__]
"""The extension (`harness.verbs.elsewhere.ClusterExtension`): this module with the functions above."""
