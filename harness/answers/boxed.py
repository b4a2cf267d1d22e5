r"""Boxes: `\boxed{…}`, `\fbox{…}`, `\framebox{…}`, found from the end of a text in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from harness.answers.bounds import MAX_ANSWER_CHARS, MAX_BOX_CHARS, MAX_BOX_SEARCHES, MAX_BRACES, MAX_OPEN_BOXES

_STOP = re.compile(r"[{}\\]")
_BARE = re.compile(r"\\[A-Za-z]+|(?![A-Za-z]{2})[^\s\\$.,;:(){}\[\]]+")
_OPENED = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_ANNOUNCED = re.compile(r"(?i)\banswer\b|答案")
_OPENED_BEFORE = re.compile(r"\\(?:boxed|fbox|framebox)\s{0,3}\{\s{0,3}\Z")
_CLOSED_BEHIND = re.compile(r"[}\s]*")
_OPEN_END = re.compile(r"\$|\\\)|\\\]|\n")


class Box(NamedTuple):
    """A box: its content, where the content stands (start, end), and where the whole command begins and ends."""

    content: str
    start: int
    end: int
    outer_start: int
    outer_end: int


def boxes_from_end(text: str, lo: int = 0, hi: int | None = None) -> Iterator[Box]:
    """Complete boxes of text[lo:hi], the last first. Unclosed ones are passed over, at most `MAX_OPEN_BOXES`."""
    hi = len(text) if hi is None else hi
    at = hi
    unclosed = 0
    budget = [MAX_BRACES]
    for _ in range(MAX_BOX_SEARCHES):
        at = text.rfind("box", lo, at)
        if at < 0:
            return
        found = _box_at(text, at, lo, hi, budget)
        if found is not None:
            yield found
        elif _command_start(text, at, lo) >= 0:
            unclosed += 1
            if unclosed > MAX_OPEN_BOXES or budget[0] <= 0:
                return


def bare(source: str) -> str:
    """The content of the box when a reference is a boxed or long text, else the text itself."""
    if "boxed" in source or "fbox" in source:
        contents = [box.content for box in boxes_from_end(source)]
        if contents:
            # Several boxes of a reference are one list; of a response the extraction has already chosen.
            return ", ".join(reversed(contents)) if len(contents) > 1 and len(set(contents)) > 1 else contents[0]
    return source


def is_broken(text: str, box: Box, lo: int, hi: int) -> bool:
    """Does the last complete box of text[lo:hi] say nothing, since boxes around it or the answer's own box behind it
    are opened and never closed? One that is opened behind it for nothing takes nothing back."""
    if (opened := _OPENED.search(text, box.outer_end, hi)) is not None:
        announced = _ANNOUNCED.search(text, max(box.outer_end, opened.start() - 80), opened.start()) is not None
        return announced or bool(text[opened.end() : min(hi, opened.end() + MAX_ANSWER_CHARS)].strip())
    around, before = 0, box.outer_start
    while around < MAX_OPEN_BOXES and (opened := _OPENED_BEFORE.search(text, max(lo, before - 16), before)) is not None:
        around, before = around + 1, opened.start()
    closed = _CLOSED_BEHIND.match(text, box.outer_end, hi)
    return around - (closed.group().count("}") if closed else 0) > 1


def open_box(text: str, lo: int, hi: int) -> Box | None:
    """The only box when its closing brace is missing: its content up to the end of the formula or line."""
    at = text.rfind("box", lo, hi)
    if at < 0:
        return None
    outer = _command_start(text, at, lo)
    brace = text.find("{", at, min(hi, at + 8))
    if outer < 0 or brace < 0 or has_box(text, lo, outer):
        return None
    stop = _OPEN_END.search(text, brace + 1, hi)
    end = stop.start() if stop else hi
    content = text[brace + 1 : end].strip()
    if not content or len(content) > MAX_ANSWER_CHARS:
        return None
    if content.endswith("\\}") and "\\{" not in content:
        return Box(content[:-2], brace + 1, end - 2, outer, end)  # a stray backslash escaped the closing brace
    missing = content.count("{") - content.count("\\{") - content.count("}") + content.count("\\}")
    return Box(content + "}" * max(missing, 0), brace + 1, end, outer, end) if missing < 4 else None


def has_box(text: str, lo: int, hi: int) -> bool:
    """A box command stands in the text, complete or not."""
    at = text.rfind("boxed", lo, hi)
    return (at > lo and text[at - 1] == "\\") or text.rfind("\\fbox", lo, hi) >= 0


def _command_start(text: str, at: int, lo: int) -> int:
    if text.startswith("boxed", at) and at > lo and text[at - 1] == "\\":
        return at - 1
    for prefix in ("\\f", "\\frame"):
        start = at - len(prefix)
        if start >= lo and text.startswith(prefix, start):
            return start
    return -1


def _box_at(text: str, at: int, lo: int, hi: int, budget: list[int]) -> Box | None:
    outer = _command_start(text, at, lo)
    if outer < 0:
        return None
    start = at + (5 if text.startswith("boxed", at) else 3)
    while start < hi and text[start] in " \t\n\r":
        start += 1
    if start >= hi:
        return None
    if text[start] == "{":
        end = _closing_brace(text, start, min(hi, start + MAX_BOX_CHARS), budget)
        return None if end < 0 else Box(text[start + 1 : end], start + 1, end, outer, end + 1)
    bare = _BARE.match(text, start, hi)
    return Box(bare.group(), start, bare.end(), outer, bare.end()) if bare else None


def _closing_brace(text: str, opening: int, hi: int, budget: list[int]) -> int:
    depth = 0
    at = opening
    while (found := _STOP.search(text, at, hi)) is not None:
        at = found.end()
        budget[0] -= 1
        if budget[0] < 0:
            return -1
        mark = found.group()
        if mark == "\\":
            at += 1  # an escaped brace is no bracket
        elif mark == "{":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return found.start()
    return -1
