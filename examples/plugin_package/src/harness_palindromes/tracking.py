"""A tracker: a function of a scored run, which sends it somewhere and says where it can be seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def lines(run: Any) -> str:
    """A line a run, appended to a file of this folder."""
    path = Path("tracked.jsonl")
    told = {"key": run.key, "name": run.name, **run.facts, **run.scores}
    with path.open("a") as file:
        file.write(json.dumps(told) + "\n")
    return str(path)
