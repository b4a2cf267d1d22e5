"""`export`: a run in another tool's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.commands.imported_runs import open_scored
from harness.core.errors import UsageError
from harness.exports import Written
from harness.exports import export as export_run
from harness.options.finished_runs import ExportOptions


def export(sources: Sequence[Path], options: ExportOptions) -> Written:
    """Export runs: their folders, or scored outputs of other tools. Raises `UsageError`, `StoreError`."""
    if not sources:
        raise UsageError("specify at least one run", field="runs")
    folders = [open_scored(source) for source in sources]
    return export_run(folders, **{**dict(options), "i_know": options.i_know})
