"""What the package says of itself: its version, the data that ship with it, the folder of what it fetches."""

from __future__ import annotations

import os
from pathlib import Path

__version__ = "0.1.0"

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped_folder(name: str, in_checkout: str) -> Path:
    """Folder of shipped data: `name` inside the installed package, else `in_checkout` relative to the checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / in_checkout


def cache_folder() -> Path:
    """`$HARNESS_CACHE`, else `reasoning-harness` in `$XDG_CACHE_HOME` or `~/.cache`. Not created here."""
    if own := os.environ.get("HARNESS_CACHE"):
        return Path(own).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG rule: a relative path there is to be ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "reasoning-harness"
