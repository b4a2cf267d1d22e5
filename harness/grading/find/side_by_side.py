r"""Several values with nothing between them but a space or a line break: `x=5 y=2`, `4\quad -4`, a line for each.

The grammar reads a space as a product, and the search takes the last line or formula alone. Both would read one value
of several. Where the reference has several values, the values side by side are therefore written as a list:

    within an answer   x=5\ y=2 · $x=5$ $y=2$ · 4 \quad -4       4 -4 is undecided: it may be a difference
    at the end         解得：⏎ x=5 ⏎ y=2 · \[x=5\]\[y=2\]         undecided if the reference has more or fewer values

An item is a number, or a value of a name (a letter, perhaps numbered); the items of one list are of one kind.
"""

from __future__ import annotations

import re
from itertools import pairwise

from harness.answers.boxed import has_box
from harness.grading.find.extract import UNSTATED, Extraction

MAX_TAIL_CHARS = 600
"""The end of a reply in which values are looked for, in characters."""

_NAME = r"[A-Za-z](?:[₀-₉]{1,2}|_\{?[0-9A-Za-z]\}?|[0-9])?(?:\([a-z]\))?"
_TERM = r"(?:\\(?!q?quad)[a-z]+|[0-9A-Za-z.√π°%(){}^²³±])+"
_VALUE = rf"(?:[-−+]\s?)?{_TERM}(?:[ ]?[-−+*/·×][ ]?{_TERM})*+"
_NUMBER = r"[-−+]?(?:[0-9]+(?:\.[0-9]+|/[0-9]+)?|[0-9]*(?:\\[dt]?frac\{[0-9]+\}\{[0-9]+\}|\\sqrt\{[0-9]+\}|√[0-9]+))%?"

_BULLET = r"(?<=\n)(?:[-•]|[0-9][.)、]|[①-⑨]|[（(][0-9][)）])[ \t]*"
_NAMED = re.compile(rf"(?:(?<=\*\*)|(?<![A-Za-z0-9\\_{{}}^+*/=<>≈-]))({_NAME}\s*=\s*{_VALUE})(?!\s*[=<>≤≥≈≠(（])")
_BARE = re.compile(rf"(?:(?<![^\s$\[(，,；;、。:：）①-⑨])|(?<=\\quad)|(?<=\\qquad))({_NUMBER})(?![^\s$\\，,；;、。.])")

_GAP = re.compile(
    r"(?:\s|\$|\\[()\[\]]|\\(?:q?quad(?![a-z])|[\\ ,;])|[,，;；、.。*])*+"
    rf"(?:或|和|且|与|(?:or|and)\b)?(?:\s|\$|\\[(\[])*+(?:{_BULLET})?(?:\*\*)?"
)
"""The signs and words that may stand between two values."""

_BREAK = re.compile(r"\n|\\\\|\\q?quad|\\\]\s*\\\[|\$\$\s*\$\$")
"""A gap that parts two numbers for certain: `4 -4` is also a difference."""

_LINK = re.compile(r"[,，;；、]|或|和|且|与|\b(?:or|and)\b")
_OR, _TOGETHER = re.compile(r"或|\bor\b"), "且"
_END = re.compile(r"[\s$*.。,，;；]*(?:\\[)\]])?[\s$*.。]*")
_WHOLE = re.compile(r"[\s${}]*(?:\\[(\[])?[\s$]*")
_STATING = re.compile(
    r"""(?xi)
    (?:解|答|答案|最终答案|answer|solution)? \s* [:：]? \s*
    (?: [由把将从联立代入式①-⑨0-9()（）,，+−*×=a-z两相加减]*+ (?:[,，]|因此|所以)? (?:可|解|可以|求)?得 (?:到)?
      | (?:∴|所以|因此|因而|故|则|即|于是)? [,，]? (?:原|这个|该|此)? (?:方程组?|不等式组?)? (?:的|有)?
        (?:两个|两|唯一)? (?:(?:解|根|答案)(?:分别)?[是为]?)?
      | (?:(?:so|therefore|thus|hence|then)\b[,\s]*)? (?:we\s+(?:get|have|obtain|find))?
        (?: (?:the\s+)?(?:final\s+)?(?:solution|root|answer|value)s?
            (?:\s+(?:of|to)\s+the\s+(?:equation|system))?\s+(?:is|are))?
    ) [\s,，:：]*"""
)
"""Words that state the values behind them."""

_FIRST_BULLET = re.compile(rf"(?:{_BULLET}|\A(?:[-•]|1[.)、]|①|[（(]1[)）])[ \t]*)\Z")
_LAYOUT = re.compile(r"\$|\\[(\[]|\*")
_WORDS = re.compile(r"[\u3400-\u9fff]|[A-Za-z]{3,}")


def with_values_beside(extraction: Extraction, text: str, lo: int, hi: int, parts: int) -> Extraction:
    """Return the answer with all values of text[lo:hi] that stand side by side with it. parts: values of the reference,
    at least 2.
    """
    if extraction.method not in ("box", "boxes", "open box"):
        lines = _at_end(text, lo, hi, extraction, parts)
        if lines is not None:
            return lines
    if len(extraction.answer) > MAX_TAIL_CHARS or (values := _as_list(extraction.answer)) is None:
        return extraction
    return extraction._replace(method=UNSTATED) if not values else extraction._replace(answer=values)


def _as_list(answer: str) -> str | None:
    """Return the values of an answer with spaces between them as a list; empty if they may be a product or difference.

    None if the answer has no such values: `x=5, y=2` is a list as it stands.
    """
    for pattern in (_NAMED, _BARE):
        # Values with names come first, since the number of each of them is a bare number as well.
        items = list(pattern.finditer(answer))
        if len(items) < 2 or not _WHOLE.fullmatch(answer, 0, items[0].start()):
            continue
        gaps = _gaps(items, answer)
        if None in gaps or not _END.fullmatch(answer.rstrip("}"), min(items[-1].end(), len(answer.rstrip("}")))):
            continue
        if all(gap is not None and _LINK.search(gap) for gap in gaps):
            continue
        # Two equations are no product, but 4 -4 may be a difference and 2 3 a product.
        certain = pattern is _NAMED or all(_BREAK.search(gap) or _LINK.search(gap) for gap in gaps if gap)
        return _join(items, answer) if certain else ""
    return None


def _at_end(text: str, lo: int, hi: int, extraction: Extraction, parts: int) -> Extraction | None:
    """Return the values side by side at the end of text[lo:hi] as one answer; None if the search has read all of them.

    extraction: the answer of the search, which must be one of the values. parts: how many values the reference has;
    with more or fewer lines it is open which of them are the answer.
    """
    begin = extraction.start
    lo = max(lo, hi - MAX_TAIL_CHARS)
    tail = text[lo:hi]
    # Beside a box, lines are work.
    if has_box(text, lo, hi):
        return None
    for pattern in (_NAMED, _BARE):
        items = _last_chain(list(pattern.finditer(tail)), tail)
        if len(items) < 2 or not items[0].start() <= begin - lo + _MAX_MARKS_CHARS or begin - lo > items[-1].end():
            continue
        gaps = [gap or "" for gap in _gaps(items, tail)]
        # A link such as a comma in one line is read by the search already.
        in_lines = any("\n" in gap for gap in gaps)
        if not in_lines and all(_LINK.search(gap) for gap in gaps):
            return None
        # A line of its own that holds as many values as the reference restates the lines before it.
        last_line = len(items) - max((index + 1 for index, gap in enumerate(gaps) if "\n" in gap), default=0)
        if in_lines and last_line > 1 and last_line >= parts:
            return None
        if pattern is _BARE and not all(_BREAK.search(gap) for gap in gaps):
            return None
        # Lines before the values, such as given numbers, may look like further values.
        stands = len(items) == parts and _is_stated(tail[: items[0].start()])
        start, end = lo + items[0].start(), lo + items[-1].end()
        return Extraction(_join(items, tail), start, end, "line" if stands else UNSTATED)
    return None


_MAX_MARKS_CHARS = 4
"""Signs of a formula or of bold type that the search may take with a value, in characters."""


def _gaps(items: list[re.Match[str]], text: str) -> list[str | None]:
    """Return the text between each two items; None for one that parts no values of one answer."""
    gaps: list[str | None] = []
    for item, following in pairwise(items):
        gap = text[item.end() : following.start()]
        gaps.append(gap if gap and _GAP.fullmatch(gap) else None)
    return gaps


def _last_chain(items: list[re.Match[str]], tail: str) -> list[re.Match[str]]:
    """Return the items at the end of `tail` with nothing but gaps between them; none if other text ends it."""
    # Words behind the last value may deny it, or check it.
    if not items or not _END.fullmatch(tail, items[-1].end()):
        return []
    gaps = _gaps(items, tail)
    first = len(items) - 1
    while first > 0 and gaps[first - 1] is not None:
        first -= 1
    return items[first:]


def _join(items: list[re.Match[str]], text: str) -> str:
    """Return the items as a list; an "or" and 且 between two of them stay."""
    gaps = [gap or "" for gap in _gaps(items, text)]
    joined = items[0][1]
    for gap, item in zip(gaps, items[1:], strict=True):
        joined += ("或" if _OR.search(gap) else _TOGETHER if _TOGETHER in gap else ", ") + item[1]
    return joined


def _is_stated(before: str) -> bool:
    """Whether the text before values states them: they begin the text, or words of the closed list lead to them."""
    plain = _FIRST_BULLET.sub("", _LAYOUT.sub("", before).rstrip(" \t"))
    begins_line = not plain or plain.endswith("\n")
    line = plain.rstrip().rpartition("\n")[2].strip()
    # A line of formulas or a finished sentence supposes nothing that goes on in the next line.
    if begins_line and (_WORDS.search(line) is None or line[-1:] in "。.!！"):
        return True
    return _STATING.fullmatch(line.rpartition("。")[2].strip()) is not None
