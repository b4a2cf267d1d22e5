"""The folders that launchers keep between calls: caches, and the state of running servers."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The cache folder: `$HARNESS_CACHE`, else `reasoning-harness` in `$XDG_CACHE_HOME` or `~/.cache`.

    Does not create it.
    """
    return _folder("HARNESS_CACHE", "XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """The state folder: `$HARNESS_STATE`, else `reasoning-harness` in `$XDG_STATE_HOME` or `~/.local/state`.

    Does not create it.
    """
    return _folder("HARNESS_STATE", "XDG_STATE_HOME", ".local/state")


def _folder(own: str, xdg: str, fallback: str) -> Path:
    """The folder that our own variable names, else the harness's folder in the XDG base folder.

    fallback: the XDG base folder, below the home folder, if the variable `xdg` names none.
    """
    if value := os.environ.get(own):
        return Path(value).expanduser().absolute()
    base = os.environ.get(xdg, "")
    # The XDG specification says to ignore a relative path in the variable.
    root = Path(base) if Path(base).is_absolute() else Path.home() / fallback
    return root / "reasoning-harness"
