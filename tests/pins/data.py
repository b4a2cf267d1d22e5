"""The data of the pins: a file a scene, JSON laid out for a reader's diff.

A field that an earlier step of the scene has word for word stands as `as in STEP`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("data")
WIDTH = 118
AS_IN = "as in "
MIN_CHARACTERS_TO_FOLD = 80

Steps = dict[str, dict[str, Any]]


def path(name: str) -> Path:
    """The file of a scene."""
    return FOLDER / f"{name}.json"


def load(name: str) -> Steps:
    """What is pinned of a scene; nothing where it was never written."""
    if not path(name).exists():
        return {}
    steps: Steps = json.loads(path(name).read_text("utf-8"))
    for step in steps.values():
        for field, value in step.items():
            if isinstance(value, str) and value.startswith(AS_IN):
                step[field] = steps[value.removeprefix(AS_IN)][field]
    return steps


def text_of(steps: Steps) -> str:
    """The text of a scene's file."""
    first: dict[tuple[str, str], str] = {}
    folded: Steps = {}
    for key, step in steps.items():
        folded[key] = {}
        for field, value in step.items():
            text = json.dumps(value, ensure_ascii=False, sort_keys=True)
            earlier = first.setdefault((field, text), key)
            long = len(text) > max(MIN_CHARACTERS_TO_FOLD, len(earlier) + 20)
            folded[key][field] = AS_IN + earlier if long and earlier != key else value
    return laid_out(folded) + "\n"


def laid_out(value: Any, depth: int = 0) -> str:
    """The JSON text of a value: what fits stands on one line, the rest has a line an item."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + 2 * depth <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    pad, end = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict):
        items = [f"{pad}{json.dumps(key, ensure_ascii=False)}: {laid_out(v, depth + 1)}" for key, v in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{end}}}"
    return "[\n" + ",\n".join(pad + laid_out(item, depth + 1) for item in value) + f"\n{end}]"
