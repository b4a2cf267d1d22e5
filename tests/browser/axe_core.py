"""axe-core, installed once into the cache folder at a fixed version, by npm as set up here."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from harness.core.installation import cache_folder

AXE = "axe-core@4.10.3"
INSTALL_SECONDS = 600


class NotInstalled(Exception):
    """The tool cannot be had here; the text says why."""


def axe() -> str:
    """The source of axe-core, which looks for what keeps people from using a page."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled(f"{AXE} needs npm on PATH")

    def make(home: Path) -> None:
        _run(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home), AXE)

    home = _installed(AXE.replace("@", "-"), make)
    return (home / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def _installed(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of a tool; `make` fills it on the first call, and a half-filled one is made anew."""
    tools = cache_folder() / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    home = tools / name
    with (tools / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / ".complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            make(home)
            (home / ".complete").touch()
    return home


def _run(*argv: str) -> None:
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", check=False, timeout=INSTALL_SECONDS, env=os.environ
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{argv[0]}: {error}") from error
    if done.returncode != 0:
        raise NotInstalled(f"{' '.join(argv[:3])} …: {done.stderr.strip()[-800:]}")
