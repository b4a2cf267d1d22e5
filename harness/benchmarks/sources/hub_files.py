"""Choose the files of a hub data set that belong to a configuration and a split, by their names. No I/O.

If the data set's card describes its files (`configs`), the description is used. Otherwise the file names are used, in
the layouts that the hub itself recognizes: `config/split-00000-of-00001.parquet`, `data/split.jsonl`, `split.csv`. If
no file names a split, all files are the split `train`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

from harness.core.errors import UsageError, near_names
from harness.core.sanitize import visible

_NAME_ONE = "with the address of a file or with `config` in a card"
"""How to name a configuration, for messages."""
_ENDINGS = {
    suffix: (suffix, f"{suffix}.gz", f"{suffix}.zst")
    for suffix in (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".arrow")
}
"""Format → its file suffixes, plain and compressed; formats are in order of preference."""
_SPLITS = {"train": "train", "test": "test", "validation": "validation", "valid": "validation", "dev": "validation"}
"""Word in a file name → the split that it indicates."""


def choose(files: list[str], configs: list[dict[str, Any]], config: str | None, split: str, name: str) -> list[str]:
    """The paths of the files that contain the rows of `config` and `split`, in order.

    files: all paths of the data set. configs: the `configs` entries in the data set's card. name: the data set's name,
    for messages. Raises a `UsageError` that lists what is available.
    """
    # Sorted, because shards are numbered in their names and the hub guarantees no order.
    files = sorted(f for f in files if f.endswith(tuple(chain(*_ENDINGS.values()))))
    described = [entry for entry in configs if isinstance(entry, dict) and entry.get("data_files")]
    if described:
        return _choose_described(files, described, config, split, name)
    inside = files if config is None else [f for f in files if _in_config(f, config)]
    if not inside:
        if not files:
            raise UsageError(f"{name} has no data files of a supported format (Parquet, JSONL, JSON, CSV)")
        raise UsageError(f"{name} has no configuration {visible(str(config))!r}; it contains {_show_files(files)}")
    paths = [f for f in inside if _split_of(f) == _SPLITS.get(split, split)]
    if not paths and split == "train" and not any(_split_of(f) for f in inside):
        paths = inside
    if not paths:
        raise UsageError(f"{name} has no split {visible(split)!r}; it contains {_show_files(inside)}")
    paths = _one_format(paths)
    if config is None and len({f.rpartition("/")[0] for f in paths}) > 1:
        raise UsageError(f"{name} has several configurations; choose one ({_NAME_ONE}): {_show_files(inside)}")
    return paths


def _choose_described(
    files: list[str], entries: list[dict[str, Any]], config: str | None, split: str, name: str
) -> list[str]:
    """The files of a split, as the data set's own description (`configs` in its README) names them.

    config: None = the only configuration, or the default one. Raises `UsageError`.
    """
    by_name = {str(entry.get("config_name", "default")): entry for entry in entries}
    if config is None:
        defaults = [key for key, entry in by_name.items() if entry.get("default") is True or key == "default"]
        candidates = list(by_name) if len(by_name) == 1 else defaults
        config = candidates[0] if len(candidates) == 1 else ""
    if config not in by_name:
        which = f"no configuration {config!r}" if config else "several configurations"
        listing = f"{', '.join(map(visible, by_name))}.{near_names(config, by_name)}"
        raise UsageError(f"{name} has {which}; choose one ({_NAME_ONE}): {listing}")
    splits: dict[str, list[str]] = {}
    data_files = by_name[config]["data_files"]
    # The hub allows a string, a mapping, or a list of either.
    for item in [data_files] if isinstance(data_files, str | dict) else data_files:
        if isinstance(item, dict):
            paths = item.get("path", [])
            splits.setdefault(str(item.get("split", "train")), []).extend([paths] if isinstance(paths, str) else paths)
        else:
            splits.setdefault("train", []).append(str(item))
    if split not in splits:
        raise UsageError(f"{name} has no split {visible(split)!r}; its splits are {', '.join(map(visible, splits))}")
    paths_of_split = [f for f in files if any(_matches(f, str(pattern)) for pattern in splits[split])]
    if not paths_of_split:
        raise UsageError(f"{name} has no files for its split {split!r}; it contains {_show_files(files)}")
    return paths_of_split


def _matches(file: str, pattern: str) -> bool:
    """Whether a path matches a pattern of the hub: `*` stays inside a folder, `**` crosses folders.

    In a pattern with `**` each `*` crosses folders.
    """
    pattern = pattern.removeprefix("./")
    # The `*` of fnmatch crosses folders, so a pattern without `**` must also have as many folders as the path.
    if "**" in pattern:
        return fnmatchcase(file, pattern.replace("**/", "*").replace("**", "*"))
    return file.count("/") == pattern.count("/") and fnmatchcase(file, pattern)


def _in_config(file: str, config: str) -> bool:
    """Whether a file belongs to a configuration, by the folder's name or by the beginning of the file's own name."""
    folder, _, base = file.rpartition("/")
    return folder == config or folder.endswith(f"/{config}") or base.split(".")[0].casefold() == config.casefold()


def _split_of(file: str) -> str | None:
    """The split indicated by a word in the file name or, failing that, the folder name; None if there is none."""
    folder, _, base = file.casefold().rpartition("/")
    words = re.split(r"[^a-z]+", f"{base.split('.')[0]}/{folder}")
    return next((_SPLITS[word] for word in words if word in _SPLITS), None)


def _one_format(files: list[str]) -> list[str]:
    """The files of one format; a data set may contain the same rows in several formats, and one copy is enough."""
    by_format = ([f for f in files if f.endswith(endings)] for endings in _ENDINGS.values())
    return next(filter(None, by_format), files)


def _show_files(files: list[str]) -> str:
    """The first of these files and the number of other files, for messages."""
    shown = ", ".join(visible(f, 100) for f in files[:12])
    return shown + (f" and {len(files) - 12} more" if len(files) > 12 else "")
