"""What the package says of itself: its version, and where the data lie that ship with it."""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped_folder(name: str, in_checkout: str) -> Path:
    """Folder of shipped data: `name` inside the installed package, else `in_checkout` relative to the checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / in_checkout
