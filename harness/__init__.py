"""Benchmark harness for reasoning models: start a server, run the client, score, report.

The Python front door: `load_benchmark` → `build_questions` → `generate` → `score_run` → `report`, and `grade` for a
single sample. Each name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from harness.core.about import __version__

if TYPE_CHECKING:
    from harness.benchmarks.catalogue import load as load_benchmark
    from harness.benchmarks.questions import build as build_questions
    from harness.client.address.endpoint import Endpoint
    from harness.generation.runner import generate
    from harness.generation.settings import BenchmarkSettings, RunSettings
    from harness.grading import grade
    from harness.reports.report import report
    from harness.runs import RunFolder
    from harness.scoring.pipeline import Grading, score_run

__all__ = [
    "BenchmarkSettings",
    "Endpoint",
    "Grading",
    "RunFolder",
    "RunSettings",
    "__version__",
    "build_questions",
    "generate",
    "grade",
    "load_benchmark",
    "report",
    "score_run",
]

_PLACES = {
    "BenchmarkSettings": ("harness.generation.settings", "BenchmarkSettings"),
    "Endpoint": ("harness.client.address.endpoint", "Endpoint"),
    "Grading": ("harness.scoring.pipeline", "Grading"),
    "RunFolder": ("harness.runs", "RunFolder"),
    "RunSettings": ("harness.generation.settings", "RunSettings"),
    "build_questions": ("harness.benchmarks.questions", "build"),
    "generate": ("harness.generation.runner", "generate"),
    "grade": ("harness.grading", "grade"),
    "load_benchmark": ("harness.benchmarks.catalogue", "load"),
    "report": ("harness.reports", "report"),
    "score_run": ("harness.scoring.pipeline", "score_run"),
}


def __getattr__(name: str) -> Any:
    try:
        module, attribute = _PLACES[name]
    except KeyError:
        raise AttributeError(f"module 'harness' has no attribute {name!r}") from None
    return getattr(importlib.import_module(module), attribute)
