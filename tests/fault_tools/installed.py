"""Tools of the tests, installed once into the cache folder at fixed versions, by npm and pip as set up here."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.core.about import cache_folder

AIMOCK = "@copilotkit/aimock@1.43.0"
MITMPROXY = "mitmproxy==11.0.2"
AXE = "axe-core@4.10.3"
INSTALL_SECONDS = 600

Find = Callable[[], list[str]]


class NotInstalled(Exception):
    """The tool cannot be had here; the text says why."""


def llmock() -> list[str]:
    """aimock's server, a script for node."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NotInstalled(f"{AIMOCK} needs node and npm on PATH")

    def make(home: Path) -> None:
        _run(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home), AIMOCK)

    home = _installed("aimock-1.43.0", make)
    return [node, "--require", str(Path(__file__).with_name("even.cjs")), str(home / "node_modules/.bin/llmock")]


def axe() -> str:
    """The source of axe-core, which looks for what keeps people from using a page."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled(f"{AXE} needs npm on PATH")

    def make(home: Path) -> None:
        _run(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home), AXE)

    home = _installed(AXE.replace("@", "-"), make)
    return (home / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def mitmdump() -> list[str]:
    """mitmproxy in an environment of its own: it pins libraries that other packages want newer."""

    def make(home: Path) -> None:
        _run(sys.executable, "-m", "venv", str(home))
        _run(str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", MITMPROXY)

    home = _installed(f"mitmproxy-11.0.2-py{sys.version_info.major}{sys.version_info.minor}", make)
    return [str(home / "bin" / "mitmdump")]


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
