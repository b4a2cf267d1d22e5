r"""Several boxes that are one answer: `x=\boxed{1}` and `x=\boxed{-1}`, joined where the reference has several parts.

Boxes belong together when nothing lies between them but commas, "and", names of the values and of the parts asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.answers.boxed import Box
from harness.answers.patterns import regex
from harness.grading.compare.plain_numbers import plain_number

_MAX_GAP_CHARS = 80
"""Longest text between two boxes of one answer, in characters."""

_MAX_BOXES = 64
"""Largest number of boxes that are joined to one answer."""

_BETWEEN = regex(
    r"""(?xi)
    (?: [\s~$,;、，；.()\[\]*&:|{}] | \\[()\[\],;:!&\\ ] | \\q?quad | \\(?:text|mathrm|mbox|textbf)(?![a-z])
      | \b(?:and|or|also|as\s+well\s+as|respectively|for|in|the|other|another|second|third|part|case|question|root
           |solution|value|one|is|are|we\s+have)\b
      | 和 | 或 | 及 | 与
      | (?:\\[a-z]+ | [a-z]) (?:_\{?\w{1,3}\}?|[₀-₉]{1,3})? (?:\(\w{1,3}\))? \s* =
      | \(?(?:[a-h] | i{1,3} | iv | v | \d)[).]
    )*"""
)
"""Everything that may stand between two boxes of one answer."""

_JOINS = regex(
    r"(?xi) (?:[\s~$*,，]|\\[)\]])* (?: (?P<or>\bor\b|或者?) | (?P<and>\band\b|[和及与]) | (?P<both>并?且) )"
    r" (?:[\s~$*]|\\[(\[])* (?:(?:\\[a-z]+|[a-z])(?:_\{?\w{1,3}\}?|[₀-₉]{1,3})?\s*=[\s$]*)?"
)
"""A word that joins two boxes, perhaps with the name of the second value."""

_RELATION = regex(r"[<>≤≥≠∈]|\\(?:leq?|geq?|neq?|lt|gt|in)(?![a-z])")
_WORD_OF_LINK = {"or": r"\text{ or }", "and": ", ", "both": "且"}
"""Group of `_JOINS` → what the joined answer has in place of the word."""

_OR = regex(r"(?i)\bor\b|或")
_LABEL = regex(
    r"(?<![A-Za-z\\])((?:\\[A-Za-z]+|[A-Za-z])(?:_(?:\w|\{\w{1,3}\})|[₀-₉]{1,3})?(?:\(\w{1,3}\))?)\s*=\s*\$?\s*\Z"
)
"""The name before a box: the x of `x=\\boxed{1}`."""

_APPROXIMATE = regex(r"\s*(?:\\approx|\\simeq|≈|\\text\{\s*(?:about|approximately)\s*\})")
_CONNECTED = regex(
    r"(?:\s|\\text\{\s*|(?<=[\d}\)]))(?:and|or|或|和|及)(?:\s|\s*\}|(?=[-−]?[\d\\(√]|[A-Za-z][₀-₉\d]?\s*=))"
)
"""A word between two values of one answer."""

_THOUSANDS = regex(r"\d{3}(?!\d)")
_SEPARATORS = frozenset(",;，；、")
"""Signs between two values; a comma may also group digits."""


def join_boxes(text: str, last: Box, earlier: Iterable[Box], parts: int) -> Box:
    r"""Join the last box with the earlier boxes that belong to it; the contents in the order of the text, with commas,
    or with "or" where it stands between two boxes.

    earlier: boxes before the last one, from the end of the text. parts: how many values the reference has; a last box
    that holds all of several values stays alone. Boxes join beside a reference of one value too: a reply that boxes two
    values has another answer, although its last box alone may hold the right one. If each box has a name before it
    (`x=\boxed{1}`), the result has the names too.
    """
    if 1 < parts <= parts_of(last.content):
        return last
    chain = [last]
    for box in earlier:
        gap = text[box.outer_end : chain[-1].outer_start]
        if len(gap) > _MAX_GAP_CHARS or _BETWEEN.fullmatch(gap) is None or len(chain) >= _MAX_BOXES:
            break
        chain.append(box)
    if len(chain) == 1:
        return last
    chain.reverse()
    # Twenty-four characters hold the longest name, and bound the search before each box.
    labels = [_LABEL.search(text, max(0, box.outer_start - 24), box.outer_start) for box in chain]  # the x of `x=`
    # Names only if every box has one: `x = 1, 2` would name the first value alone.
    all_named = None not in labels
    contents = []
    for box, label in zip(chain, labels, strict=True):
        if all_named and label is not None and "=" not in box.content:
            contents.append(f"{label[1]} = {box.content}")
        else:
            contents.append(box.content)
    joined = contents[0]
    for before, box, content in zip(chain, chain[1:], contents[1:], strict=False):
        has_or = _OR.search(text, before.outer_end, box.outer_start) is not None
        joined += f"\\text{{ or }}{content}" if has_or else f", {content}"
    return Box(joined, chain[0].start, last.end, chain[0].outer_start, last.outer_end)


def with_box_before(text: str, last: Box, earlier: Iterable[Box]) -> tuple[Box, bool]:
    r"""Join the last two boxes if the last is a rounded form, `\boxed{\sqrt2}`, `\boxed{\approx 1.41}`, or if both hold
    relations that nothing but a word joins, `\boxed{k<1}且\boxed{k≠0}`; else return the last box. Second, whether that
    box is an answer: of two values that a word joins, `\boxed{2} or \boxed{3}`, none is.

    earlier: the boxes before the last one, the nearest first.
    """
    before = next(iter(earlier), None)
    if before is None:
        return last, True
    gap = text[before.outer_end : last.outer_start]
    if (word := _JOINS.fullmatch(gap)) is not None and not _is_same(before.content, last.content):
        if not all(_RELATION.search(box.content) for box in (before, last)):
            return last, False
        joined = f"{before.content}{_WORD_OF_LINK[word.lastgroup or '']}{last.content}"
        return Box(joined, before.start, last.end, before.outer_start, last.outer_end), True
    if _APPROXIMATE.match(last.content) is None:
        return last, True
    joined = f"{before.content} {last.content}"
    return Box(joined, before.start, last.end, before.outer_start, last.outer_end), True


def _is_same(first: str, second: str) -> bool:
    """Whether two boxes hold the same text or the same plain number: 3/4 and 0.75."""
    left, right = plain_number(first), plain_number(second)
    same_value = left is not None and right is not None and left.top * right.bottom == right.top * left.bottom
    return first.strip() == second.strip() or same_value


def parts_of(answer: str) -> int:
    """Count the values of an answer by its commas and "and"; ± doubles the count, and a tuple is one value."""
    answer = answer.strip().strip("$").strip()
    for opening, closing in (("\\{", "\\}"), ("\\left\\{", "\\right\\}"), ("{", "}")):
        # A second opening brace means two sets, which are two values.
        if answer.startswith(opening) and answer.endswith(closing) and opening not in answer[len(opening) :]:
            answer = answer[len(opening) : -len(closing)]
            break
    depth = commas = 0
    # Most answers have no separator, and need not be read sign by sign.
    for index, sign in enumerate("" if _SEPARATORS.isdisjoint(answer) else answer):
        depth += (sign in "([{") - (sign in ")]}")
        # A comma inside brackets separates coordinates of one value.
        if depth == 0 and sign in _SEPARATORS and not (sign == "," and _groups_digits(answer, index)):
            commas += 1
    connected = len(_CONNECTED.findall(answer))
    signs = 2 if "\\pm" in answer or "±" in answer else 1
    # "1, and 2" has a comma and a word at one boundary.
    return (1 + max(commas, connected)) * signs


def _groups_digits(answer: str, comma: int) -> bool:
    """Whether the comma at index `comma` groups digits, as in 1,234."""
    return comma > 0 and answer[comma - 1].isdigit() and _THOUSANDS.match(answer, comma + 1) is not None
