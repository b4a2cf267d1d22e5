"""Benchmark harness for reasoning models: start a server, run the client, score, report.

    run = harness.run("aime24:64", base_url="http://127.0.0.1:8000")
    harness.score(run)
    harness.report([run])
    harness.grade("1/2", r"so \boxed{0.5}")

Each name is imported when it is first used; docs/architecture.md describes the packages below.
"""

import sys

# `python -m harness` searches the current folder, perhaps a stranger's, before all others. Nothing is imported from
# there, `__future__` neither, unless this package itself was.
if sys.argv[0] == "-m" and not sys.flags.safe_path and [f"{sys.path[0]}/harness"] != __path__:
    del sys.path[0]

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api import (
        audit,
        compare,
        export,
        frame,
        merge,
        plan,
        probe,
        report,
        run,
        score,
        serve,
        sweep,
        verify,
    )
    from harness.commands.grade import grade
    from harness.core.errors import (
        HarnessError,
        HelperFailed,
        Interrupted,
        ServerError,
        StoppedByRule,
        StoreError,
        UsageError,
    )
    from harness.core.installation import __version__
    from harness.exports import Written
    from harness.grading import Verdict
    from harness.options.judge import JudgeOptions as Judge
    from harness.options.run import RunOptions
    from harness.reports.report import Report
    from harness.results import Run, Scores, Swept
    from harness.runs.merging import Merged

__all__ = [
    "HarnessError",
    "HelperFailed",
    "Interrupted",
    "Judge",
    "Merged",
    "Report",
    "Run",
    "RunOptions",
    "Scores",
    "ServerError",
    "StoppedByRule",
    "StoreError",
    "Swept",
    "UsageError",
    "Verdict",
    "Written",
    "__version__",
    "audit",
    "compare",
    "export",
    "frame",
    "grade",
    "merge",
    "plan",
    "probe",
    "report",
    "run",
    "score",
    "serve",
    "sweep",
    "verify",
]

_ERRORS = ("HarnessError", "HelperFailed", "Interrupted", "ServerError", "StoppedByRule", "StoreError", "UsageError")
_HOMES = {
    "__version__": "harness.core.installation",
    "grade": "harness.commands.grade",
    "Verdict": "harness.grading",
    **dict.fromkeys(_ERRORS, "harness.core.errors"),
}
"""Modules of names that a program may want alone, and fast; `harness.api` has the others."""

_FORMER = ("race",)
"""Functions of earlier versions; the error names the replacement of the command with the same name."""


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that a command which needs one of them does not load the others."""
    if name in _FORMER:
        from harness.cli.foreign.tables import COMMON, tables

        raise AttributeError(f"`harness.{name}` no longer exists: {tables()[COMMON].commands[name]}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "harness.api")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
