"""A short question to another program: it runs, or there is no answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

ASK_SECONDS = 60.0
"""Seconds that a short question may take."""


def run_quietly(
    argv: Sequence[str], environment: Mapping[str, str] | None = None, seconds: float = ASK_SECONDS
) -> subprocess.CompletedProcess[str] | None:
    """Run a program to its end, away from the folder of whoever runs us; None where it cannot be run or takes longer.

    environment: variables added to ours.
    """
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
            env=None if environment is None else {**os.environ, **environment},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def output_of(*argv: str, seconds: float = ASK_SECONDS) -> str:
    """What a program prints; nothing where it fails or takes longer."""
    done = run_quietly(argv, seconds=seconds)
    return "" if done is None or done.returncode else done.stdout
