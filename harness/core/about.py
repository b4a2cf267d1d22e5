"""Facts about this installation: version, commit, cache folder, and the command that adds an extra."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

__version__ = "0.1.0"
_DISTRIBUTION = "reasoning-harness"

_PACKAGE = Path(__file__).resolve().parent.parent


def commit() -> str | None:
    """The git commit of this code, its first 12 digits, for a run's manifest; None if neither git nor pip recorded one.

    A checkout asks git; an installation from a git URL reads what pip wrote into `direct_url.json` (PEP 610).
    """
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
    """The command that installs the packages of an extra, for the message that says that one is missing.

    It names the packages and not the extra: an index may have them and not this harness. here: True: it installs into
    the running Python's environment; False: it is the short form for a page or another machine.
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
    """The folder for downloaded data: `$HARNESS_CACHE`, else `reasoning-harness` in `$XDG_CACHE_HOME` or `~/.cache`.

    The folder may not exist yet.
    """
    return _folder("HARNESS_CACHE", "XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    """The folder for the state of running servers: `$HARNESS_STATE`, else `reasoning-harness` in `$XDG_STATE_HOME` or
    `~/.local/state`.

    The folder may not exist yet.
    """
    return _folder("HARNESS_STATE", "XDG_STATE_HOME", ".local/state")


def _folder(own: str, xdg: str, fallback: str) -> Path:
    """The folder in our variable `own`, else ours in the one of `xdg`, else ours in `fallback` of the home folder."""
    if value := os.environ.get(own):
        return Path(value).expanduser().absolute()
    base = Path(os.environ.get(xdg, ""))
    # The XDG specification says to ignore a relative path in the variable.
    return (base if base.is_absolute() else Path.home() / fallback) / "reasoning-harness"
