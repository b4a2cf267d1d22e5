"""Joins the run folders of one run into one folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.commands.imported_runs import open_scored
from harness.options.finished_runs import MergeOptions
from harness.runs import RunFolder
from harness.runs.merging import Merged, join_shards
from harness.runs.merging import merge as merge_folders


def merge(sources: Sequence[Path], options: MergeOptions) -> Merged:
    """Join run folders of one run, and their shards, into `options.out`.

    Raises `UsageError`, and `StoreError` with what differs.
    """
    folders: list[RunFolder] = []
    for source in sources:
        run, shards = RunFolder(source), RunFolder(source).shards()
        if run.manifest.is_file():
            join_shards(run, accept_server_change=options.accept_server_change)
            shards = []
        folders += shards or [open_scored(source)]
    return merge_folders(folders, RunFolder(options.out), accept_server_change=options.accept_server_change)
