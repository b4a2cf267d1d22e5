"""Golden files: JSON laid out for a reader's diff, compared as text."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("golden")
WIDTH = 118
MAX_LINES_OF_DIFF = 60


def as_json(text: str) -> Any:
    """The value of a JSON text where dumping the value gives the text again, byte for byte; else the text's lines.

    The first form diffs better. It hides nothing: a change of layout, of a key's order or of a digit changes either the
    value, or the form. A number that Python would spell otherwise (0.00001 for 1e-05) stands as text.
    """
    try:
        value = json.loads(text, parse_float=lambda digits: f"{DIGITS}{digits}")
    except ValueError:
        return text.splitlines()
    for name, layout in LAYOUTS.items():
        dumped = QUOTED_DIGITS.sub(r"\1", json.dumps(value, ensure_ascii=False, **layout))
        for end in ("", "\n"):
            if dumped + end == text:
                return {f"{name} JSON{' and a line end' if end else ''}": _numbers(value)}
    return text.splitlines()


DIGITS = "\x00"
QUOTED_DIGITS = re.compile(r'"\\u0000([^"]*)"')
LAYOUTS: Mapping[str, dict[str, Any]] = {"indented": {"indent": 2}, "compact": {"separators": (",", ":")}, "spaced": {}}


def _numbers(value: Any) -> Any:
    """The value with numbers in place of their digits."""
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, str) and value.startswith(DIGITS):
        digits = value.removeprefix(DIGITS)
        return float(digits) if repr(float(digits)) == digits else f"number {digits}"
    return value


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


def path(name: str) -> Path:
    """The golden file of a scene."""
    return FOLDER / f"{name}.json"


def write(name: str, value: Any) -> bool:
    """Write the golden file; whether it changed."""
    text = laid_out(value) + "\n"
    file = path(name)
    if file.exists() and file.read_text("utf-8") == text:
        return False
    file.write_text(text, "utf-8")
    return True


def difference(name: str, value: Any) -> str:
    """A unified diff between the golden file and the value; empty where they are equal."""
    text = laid_out(value) + "\n"
    file = path(name)
    if not file.exists():
        return f"{file} is missing: write it with `python -m tests.pins.write {name}`"
    return unified(file.read_text("utf-8"), text, "pinned", "now")


def unified(one: str, second: str, *names: str) -> str:
    """A unified diff of two texts, its beginning; empty where they are equal."""
    if one == second:
        return ""
    lines = list(difflib.unified_diff(one.splitlines(), second.splitlines(), *names, lineterm="", n=4))
    more = len(lines) - MAX_LINES_OF_DIFF
    return "\n".join(lines[:MAX_LINES_OF_DIFF]) + (f"\n… {more} more lines" if more > 0 else "")
