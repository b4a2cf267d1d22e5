r"""Boxes: `\boxed{…}`, `\fbox{…}`, `\framebox{…}`, found from the end of a text in linear time.

The search runs from the end of the text, by `str.rfind` for the letters "box": the last box in a text of ten megabytes
is found at once. At each hit the search looks back for the command and ahead for the closing brace. All hits share one
budget of braces, so that a text full of unclosed boxes cannot make the search quadratic. Positions are character
offsets in the whole text; `lo` and `hi` delimit the part that is searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from reasoning_answers.bounds import MAX_ANSWER_CHARS, MAX_BOX_CHARS, MAX_BOX_SEARCHES, MAX_BRACES, MAX_OPEN_BOXES

_BRACE_OR_BACKSLASH = re.compile(r"[{}\\]")
_UNBRACED_CONTENT = re.compile(r"\\[A-Za-z]+|(?![A-Za-z]{2})[^\s\\$.,;:(){}\[\]]+")
r"""The content of `\boxed 5` and `\boxed\pi`; two letters are a word, as in "the \boxed command"."""

_COMMANDS = ("\\boxed", "\\fbox", "\\framebox")
_OPENING = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
"""A box command with its opening brace."""

_END_OF_FORMULA = re.compile(r"\$|\\\)|\\\]|\n")
_MAX_MISSING_BRACES = 3
"""Largest number of closing braces added to the content of an open box; a box missing more is not an answer."""


class Box(NamedTuple):
    """A box: its content, and the start and end offsets in the text of the content and of the whole command."""

    content: str
    start: int
    end: int
    outer_start: int
    outer_end: int


def boxes_from_end(text: str, lo: int = 0, hi: int | None = None) -> Iterator[Box]:
    """Yield the complete boxes of text[lo:hi], the last box first.

    Stops early after `MAX_OPEN_BOXES` unclosed boxes, `MAX_BOX_SEARCHES` hits of "box", or `MAX_BRACES` braces.
    """
    hi = len(text) if hi is None else hi
    letters, unclosed = hi, 0  # position of the last "box" found
    budget = [MAX_BRACES]  # a list, so that the searches for closing braces share it
    for _ in range(MAX_BOX_SEARCHES):
        letters = text.rfind("box", lo, letters)
        if letters < 0:
            return
        box = _box_at(text, letters, lo, hi, budget)
        if box is not None:
            yield box
        elif _command_start(text, letters, lo) >= 0:
            unclosed += 1
            if unclosed > MAX_OPEN_BOXES or budget[0] <= 0:
                return


def without_boxes(source: str) -> str:
    """Return the contents of the boxes in `source`, a reference or an answer; `source` itself if it has no box.

    If several boxes have different contents, the contents are joined by commas, in the order of the text.
    """
    if "box" in source:
        contents = [box.content for box in boxes_from_end(source)]
        if contents:
            # Only a reference may have several boxes; the search leaves one box of an answer.
            return ", ".join(reversed(contents)) if len(set(contents)) > 1 else contents[0]
    return source


def opening_behind(text: str, box: Box, hi: int) -> int | None:
    r"""Return where an unclosed box after `box`, the last complete box of text[:hi], begins; None if there is none."""
    opening = _OPENING.search(text, box.outer_end, hi)
    return None if opening is None else opening.start()


def unclosed_box(text: str, lo: int, hi: int) -> Box | None:
    """Return the only box of text[lo:hi] if it has no closing brace; its content ends with the formula or the line.

    None if there is no open box or a second box, or if the content is empty, too long, or is missing more than 3
    braces.
    """
    letters = text.rfind("box", lo, hi)  # position of the letters "box"
    if letters < 0:
        return None
    outer = _command_start(text, letters, lo)
    # Only a few spaces may separate the letters "boxed" from the brace.
    brace = text.find("{", letters, min(hi, letters + 8))
    if outer < 0 or brace < 0 or has_box(text, lo, outer):
        return None
    stop = _END_OF_FORMULA.search(text, brace + 1, hi)
    end = stop.start() if stop else hi
    content = text[brace + 1 : end].strip()
    if not content or len(content) > MAX_ANSWER_CHARS:
        return None
    if content.endswith("\\}") and "\\{" not in content:
        return Box(content[:-2], brace + 1, end - 2, outer, end)  # a stray backslash escaped the closing brace
    missing = content.count("{") - content.count("\\{") - content.count("}") + content.count("\\}")
    if missing > _MAX_MISSING_BRACES:
        return None
    return Box(content + "}" * max(missing, 0), brace + 1, end, outer, end)


def has_box(text: str, lo: int, hi: int) -> bool:
    """Whether text[lo:hi] contains a box command, complete or not."""
    return any(text.find(command, lo, hi) >= 0 for command in _COMMANDS)


def _command_start(text: str, letters: int, lo: int) -> int:
    """Return where the box command around `letters`, the position of "box", begins; -1 if there is none.

    lo: the first position that may belong to the command.
    """
    if text.startswith("boxed", letters) and letters > lo and text[letters - 1] == "\\":
        return letters - 1
    for prefix in ("\\f", "\\frame"):
        start = letters - len(prefix)
        if start >= lo and text.startswith(prefix, start):
            return start
    return -1


def _box_at(text: str, letters: int, lo: int, hi: int, budget: list[int]) -> Box | None:
    """Return the complete box with the letters "box" at `letters`; None if there is no box or no closing brace.

    lo, hi: the part of the text that is searched. budget: a list of one number, the steps left for the whole text.
    """
    outer = _command_start(text, letters, lo)
    if outer < 0:
        return None
    start = letters + (5 if text.startswith("boxed", letters) else 3)
    while start < hi and text[start] in " \t\n\r":
        start += 1
    if start >= hi:
        return None
    if text[start] == "{":
        end = _closing_brace(text, start, min(hi, start + MAX_BOX_CHARS), budget)
        return None if end < 0 else Box(text[start + 1 : end], start + 1, end, outer, end + 1)
    content = _UNBRACED_CONTENT.match(text, start, hi)
    return Box(content.group(), start, content.end(), outer, content.end()) if content else None


def _closing_brace(text: str, opening: int, hi: int, budget: list[int]) -> int:
    """Return the position of the brace that closes the one at `opening`.

    -1 if there is none before `hi`, or if the budget of braces is spent.
    """
    depth = 0
    position = opening
    while (stop := _BRACE_OR_BACKSLASH.search(text, position, hi)) is not None:
        position = stop.end()
        budget[0] -= 1
        if budget[0] < 0:
            return -1
        mark = stop.group()
        if mark == "\\":
            position += 1  # the character after a backslash: `\{` opens nothing
        elif mark == "{":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return stop.start()
    return -1
