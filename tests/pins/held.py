"""Pins in a file of JSON lines, `["name", value]`, so that a diff names what changed.

`HARNESS_WRITE_PINS=servers pytest tests/pins/test_pinned_servers.py` writes `servers.jsonl` anew and prints what moved.
Only a change that a user is to see is written; the message of its commit says why each value moved.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.pins.meaning import differences

TO_WRITE = os.environ.get("HARNESS_WRITE_PINS", "").split(",")
"""Stems of the files to write."""


def read_pins(path: Path) -> dict[str, Any]:
    """Name → what is pinned."""
    return dict(json.loads(line) for line in path.read_text("utf-8").splitlines())


def hold(path: Path, now: Mapping[str, Any]) -> None:
    """Compare values with the file, or write them with ten digits of each number."""
    pinned = read_pins(path) if path.exists() else {}
    moved = "\n".join(differences(pinned, now))
    if moved and path.stem not in TO_WRITE:
        pytest.fail(f"{path.name} says otherwise:\n{moved}", pytrace=False)
    if moved:
        short = json.loads(json.dumps([*now.items()]), parse_float=lambda digits: float(f"{float(digits):.10g}"))
        lines = [json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in short]
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        sys.stderr.write(f"{moved}\n")
