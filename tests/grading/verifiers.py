"""A benchmark's own verifiers, well-behaved and not, for the tests of the worker pool."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

from harness.core.records import Question


def is_even(answer: str, question: Question) -> bool:
    """Well-behaved."""
    return int(answer) % 2 == 0


def misbehaves(answer: str, question: Question) -> bool:
    """Does what the answer says, in the worst way."""
    if answer == "hang":
        while True:
            time.sleep(0.05)
    if answer == "spin":
        while True:
            pass
    if answer == "memory":
        return len(bytearray(4 << 30)) > 0
    if answer == "segfault":
        ctypes.string_at(0)
    if answer == "exit":
        os._exit(0)
    if answer == "print":
        sys.stdout.write("correct\n" * 10)
        os.write(1, b"\x00\x00\x00\x02{}")
    if answer == "raise":
        raise ValueError("a bug of the verifier")
    if answer.startswith("child "):
        subprocess.Popen(["sleep", "300"])
        while True:
            time.sleep(0.05)
    if answer.startswith("write "):
        try:
            Path(answer.removeprefix("write ")).write_text("x" * 100)
        except OSError:
            return False
    if answer.startswith("open "):
        Path(answer.removeprefix("open ")).open("w").close()
    if answer.startswith("folder "):
        Path(answer.removeprefix("folder ")).mkdir()
    if answer.startswith("returns "):
        return {"0.2": 0.2, "text": "wrong", "None": None, "1": 1}[answer.removeprefix("returns ")]  # type: ignore[return-value]
    if answer == "late":
        time.sleep(1)
    return answer in ("right", "late")


def is_pattern(answer: str, question: Question) -> bool:
    """Raises an exception of a library if the answer is no regular expression."""
    import re

    return re.compile(answer) is not None
