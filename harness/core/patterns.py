"""Names by pattern, case ignored: `*` stands for any text, `?` and `[…]` as in `fnmatch`."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def fits_one(name: str, patterns: Iterable[str]) -> bool:
    """Whether the whole name fits at least one pattern."""
    name = name.lower()
    return any(_fits(name, pattern.lower()) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    if "?" in pattern or "[" in pattern:
        return fnmatchcase(name, pattern)
    # A start compares a hundred patterns, and compiling each as an expression would take longer than all else here.
    first, *middle = pattern.split("*")
    if not middle:
        return name == first
    last = middle.pop()
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    start, end = len(first), len(name) - len(last)
    for part in middle:
        start = name.find(part, start, end)
        if start < 0:
            return False
        start += len(part)
    return True
