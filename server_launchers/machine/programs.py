"""Asks other programs short questions; a program that fails gives no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

ASK_SECONDS = 30.0
"""Seconds that a program may take; later, what it was asked counts as unknown."""


def run_quietly(argv: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Run a program to its end, outside the caller's folder; None if it cannot run or takes over `ASK_SECONDS`."""
    import subprocess  # Imported late: code that only reads facts about engines does not need it.

    try:
        return subprocess.run(
            argv,
            # A program that asks a question must not wait for the user's terminal.
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_SECONDS,
            check=False,
            # Python also imports from its folder: a file of the user called `vllm.py` would run here.
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def output_of(*argv: str) -> str:
    """The output of a program; empty if it cannot run, fails or takes too long."""
    completed = run_quietly(argv)
    return "" if completed is None or completed.returncode != 0 else completed.stdout
