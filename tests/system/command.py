"""The installed command, driven as a user drives it: a process, its output, its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.system.json_schemas import hold_to_schema

TIMEOUT_SECONDS = 280


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    code: int
    out: str
    err: str


def environment(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The test's environment without settings of the person who runs it, and with a state folder of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_") and k != "HARNESS_DATASETS"}
    return kept | {"HARNESS_STATE": str(folder / "state"), "NO_COLOR": "1"} | dict(extra or {})


def argv(*words: str) -> list[str]:
    """The command line of `harness`, in this interpreter."""
    return [sys.executable, "-W", "error", "-m", "harness", *words]


def harness(folder: Path, *words: str, extra: Mapping[str, str] | None = None) -> Result:
    """Run `harness WORDS` in `folder` to its end. What it prints with `--json` is held to the command's schema."""
    done = subprocess.run(
        argv(*words),
        cwd=folder,
        env=environment(folder, extra),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    if "--json" in words:
        hold_to_schema(words, done.stdout, done.returncode)
    return Result(done.returncode, done.stdout, done.stderr)


def start(folder: Path, words: Sequence[str]) -> subprocess.Popen[str]:
    """Start `harness WORDS` in `folder`, in a session of its own."""
    return subprocess.Popen(
        argv(*words),
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
