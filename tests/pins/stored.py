"""Run folders that the version of 2026-11-21 stored, for the scenes that read runs: `stored/NAME`.

They are not written anew: their timings are what makes the pinned numbers exact.
"""

from __future__ import annotations

import shutil
from pathlib import Path

FOLDER = Path(__file__).with_name("stored")
SCORED = ("grades.jsonl", "scores.json")
"""Files that scoring wrote."""


def copy(name: str, folder: Path, *, scored: bool = False) -> str:
    """Copy a stored run into the folder, with its grades and scores or without; its name."""
    left_out = shutil.ignore_patterns(*(() if scored else SCORED))
    shutil.copytree(FOLDER / name, folder / name, ignore=left_out)
    return name
