"""The runs that the viewer shows: all at or below the paths that it was given."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from harness.core.errors import UsageError, near_names
from harness.core.inert import visible
from harness.runs.layout import RunFolder, labels, runs_below
from harness.scoring.opened import OpenRun

MAX_RUNS = 10_000
"""Largest number of run folders that are opened below the given folders."""


class Library:
    """All runs at or below the given paths; each `refresh` looks through the folders again."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = [path.absolute() for path in paths]
        self.runs: dict[str, OpenRun] = {}
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Find the runs. Raises `StoreError` when a path is neither a run nor a folder."""
        with self._lock:
            by_path = {folder.path: RunFolder(folder.path) for path in self._paths for folder in _runs_at(path)}
            folders = list(by_path.values())[:MAX_RUNS]
            opened = {run.folder.path: run for run in self.runs.values()}
            self.runs = {}
            for label, folder in zip(labels(folders), folders, strict=True):
                run = opened.get(folder.path) or OpenRun(label, folder)
                run.label = label
                self.runs[label] = run

    def run(self, label: str) -> OpenRun:
        """Return the run with that label. Raises `UsageError` with near labels."""
        if label not in self.runs:
            self.refresh()
        try:
            return self.runs[label]
        except KeyError:
            raise UsageError(f"there is no run {visible(label, 100)!r} here.{near_names(label, self.runs)}") from None


def _runs_at(path: Path) -> list[RunFolder]:
    """Return the run at `path`, else the runs up to two folders below it. Raises `StoreError`."""
    if (path / "manifest.json").is_file() or not path.is_dir():
        return [RunFolder.open(path)]
    return runs_below(path)
