"""Runs the harness on the nodes of a Ray cluster: shards of a run and parts of a grading.

Each node has this package in the same version, and sees the working folder and the run folder under the same paths. Ray
carries paths, options and counts between the nodes, never a model's text. The package ray is imported on first use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

_MODULES = {"check": "sampling", "run_on": "sampling", "grade_on": "grading"}


def __getattr__(name: str) -> Any:
    """A function, from its module at first use: grading imports no module of a run."""
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


CLUSTER = sys.modules[__name__]
"""The extension (`harness.verbs.elsewhere.ClusterExtension`): this module with the functions above."""
