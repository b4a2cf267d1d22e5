"""Copies what judges replied about a file of outputs into a run that is made of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.core.errors import StoreError
from harness.core.files import open_untrusted, replacing
from harness.runs import RunFolder
from harness.runs.layout import OutputsFolder


def take_over(scored: OutputsFolder, run: RunFolder) -> None:
    """Copy the replies of judges about a file into its run, so that no judge is asked, and paid, about an answer again.

    A reply is known by the checksum of its request, so it is about no other answer. Raises `StoreError`.
    """
    judges = scored.path / "judge"
    if judges.is_dir() and not judges.is_symlink():
        try:
            _copy_folder(judges, run.path / "judge")
        except OSError as error:
            raise StoreError(f"the judge's replies in {judges} could not be copied to {run.path}: {error}") from error


def _copy_folder(folder: Path, to: Path) -> None:
    """Copy a judge's folder, without links, which may lead out of it, and locks, which are of that folder."""
    lock = RunFolder(folder).lock.name
    for path in folder.iterdir():
        if path.is_symlink() or path.name.startswith(lock):
            continue
        if path.is_dir():
            _copy_folder(path, to / path.name)
        else:
            with open_untrusted(path) as original, replacing(to / path.name) as copy:
                shutil.copyfileobj(original, copy)
