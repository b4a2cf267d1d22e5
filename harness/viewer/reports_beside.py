"""The reports in which a run stands: the one in its folder, and those of several runs that lie beside it.

`harness report A B` writes to the folder that holds A, or to a folder that the user names. A report says in its head
which run folders it is made of, relative to its own; only a report that names the run is shown as one of the run.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from harness.core.files import open_untrusted
from harness.runs.layout import REPORTED_RUNS, RunFolder

REPORT = "report.html"
"""Name of a report in its folder."""

MAX_FOLDERS = 1000
"""Largest number of folders beside a run in which a report is looked for."""

MAX_HEAD_BYTES = 256 * 1024
"""Part of a report that is searched for the names of its runs: its beginning."""

_RUNS = re.compile(rf'<meta name="{REPORTED_RUNS}" content="([^"]*)">')


def reports_of(folder: RunFolder) -> dict[str, Path]:
    """Name → path of each report in which the run stands; the name of the one in its own folder is empty, the others
    are named by their folder, and the one in the folder that holds the run is named `..`.
    """
    reports = {"": folder.path / REPORT} if (folder.path / REPORT).is_file() else {}
    above = folder.path.parent
    beside = [
        above / REPORT,
        *islice((path / REPORT for path in sorted(above.iterdir()) if path.is_dir()), MAX_FOLDERS),
    ]
    for path in beside:
        if path.parent != folder.path and path.is_file() and folder.path in _runs_of(path):
            reports[".." if path.parent == above else path.parent.name] = path
    return reports


def _runs_of(report: Path) -> set[Path]:
    """The run folders that a report names in its head; empty if it names none or cannot be read."""
    try:
        with open_untrusted(report) as file:
            head = file.read(MAX_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return set()
    named = _RUNS.search(head)
    names = named[1].split() if named else []
    return {Path(*_plain((*report.parent.parts, *unquote(name).split("/")))) for name in names}


def _plain(parts: tuple[str, ...]) -> list[str]:
    """The parts of a path without `..`."""
    plain: list[str] = []
    for part in parts:
        if part == "..":
            del plain[-1:]
        elif part != ".":
            plain.append(part)
    return plain
