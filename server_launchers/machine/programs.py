"""A short question to another program: it runs, or there is no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

ASK_SECONDS = 60.0
"""A short question may take this many seconds."""


def run_quietly(argv: Sequence[str], seconds: float = ASK_SECONDS) -> subprocess.CompletedProcess[str] | None:
    """Run a program to its end, away from the caller's folder. Returns None where it cannot be run or takes longer."""
    import subprocess  # not paid by who only reads what engines are

    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def output_of(*argv: str, seconds: float = ASK_SECONDS) -> str:
    """What a program prints; nothing where it fails or takes longer."""
    done = run_quietly(argv, seconds=seconds)
    return "" if done is None or done.returncode else done.stdout
