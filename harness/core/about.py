"""What the package says of itself: its version, the data that ship with it, the folder of what it fetches."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

__version__ = "0.1.0"
_DISTRIBUTION = "reasoning-harness"

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped_folder(name: str, in_checkout: str) -> Path:
    """Folder of shipped data: `name` inside the installed package, else `in_checkout` relative to the checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / in_checkout


def commit() -> str | None:
    """The commit of which this is a checkout or an installation, abbreviated; None where nothing tells."""
    import contextlib
    import json
    import subprocess
    from importlib import metadata

    git = _PACKAGE.parent / ".git"  # a folder, or a file in a worktree
    if git.exists():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            argv = ["git", "rev-parse", "HEAD"]
            environment = {**os.environ, "GIT_DIR": str(git)}
            head = subprocess.run(argv, env=environment, check=True, capture_output=True, timeout=5)
            return head.stdout.decode()[:12]
    try:
        origin = json.loads(metadata.distribution(_DISTRIBUTION).read_text("direct_url.json") or "{}")
        return str(origin["vcs_info"]["commit_id"])[:12]
    except (metadata.PackageNotFoundError, KeyError, ValueError, OSError):
        return None


def install_line(extra: str, *, here: bool = True) -> str:
    """The line that installs what an extra needs, by its packages: they are on every index, also where this is not.

    here: into the environment that runs, by its path.
    """
    from importlib import metadata, util

    try:
        lines = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        lines = []
    requirements = [line.partition(";") for line in lines]
    names = [name.strip() for name, _, marker in requirements if re.search(rf"""extra == ['"]{extra}['"]""", marker)]
    packages = " ".join(shlex.quote(name) for name in names) or shlex.quote(f"{_DISTRIBUTION}[{extra}]")
    if not here:
        return f"pip install {packages}"
    if util.find_spec("pip") is None:
        return f"uv pip install -p {shlex.quote(sys.executable)} {packages}"
    return f"{shlex.quote(sys.executable)} -m pip install {packages}"


def cache_folder() -> Path:
    """`$HARNESS_CACHE`, else `reasoning-harness` in `$XDG_CACHE_HOME` or `~/.cache`. Not created here."""
    if own := os.environ.get("HARNESS_CACHE"):
        return Path(own).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG rule: a relative path there is to be ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "reasoning-harness"
