r"""Several values of one answer, each on a line, in a sentence or behind a mark of its own: `(a) 91 (b) 30`,
`x = 91⏎y = 30`, `- 91⏎- 30`, `The first is 91. The second is 30.`
"""

from __future__ import annotations

import re

from reasoning_answers.patterns import regex
from reasoning_answers.words import without_text_commands

MAX_CHARS = 2_000
"""Number of characters that are read; the values of an answer are short."""

_MAX_WORDS = 2
"""Largest number of words in a value, such as a unit; more make a sentence."""

BOLD = regex(r"(?<![\w)\]}])\*\*(?=\S)|(?<=\S)\*\*(?![\w(])")
"""The marks of bold text, `**84**`, but not the mark between the parts of a power, `2**3`."""

_ORDERS = ("abcdefgh", *(tuple(marks.split()) for marks in ("1 2 3 4 5 6 7 8 9", "i ii iii iv v", "① ② ③ ④ ⑤")))
"""Marks in the order in which they must follow each other."""

_SEVERAL = regex(r"\n|[.;；]\s|\(\s?(?:b|2|ii)\s?\)|②")
"""Occurs in every text with several items."""

_MATRIX = regex(r"[\s$]*\[[^\[\]]*\][\s$]*")
"""A text in square brackets, whose semicolons end rows."""

_STOP = r"[.,;，；]?[ \t]*(?:\\\\)?\n\s*|(?<!\n[\da-h])(?<!\A[\da-h])[.;；][ \t]+"
_BREAK = regex(_STOP)
_BREAK_OR_MARK = regex(
    rf"{_STOP}|(?<!art)(?<!art\s)[,;，；]?\s*(?=(?:[Pp]art\s)?\(\s?(?:[b-h]|[2-9]|i[iv]+|v)\s?\)|[②-⑤])"
)
"""The end of an item: that of a line or a sentence, or the next mark."""

_NAME = r"\s?([a-h]|[iv]+)\s?"
_LABEL = regex(
    rf"\((?:\$|\\\(|\*\*){_NAME}(?:\$|\\\)|\*\*)\)|(?:\$|\\\()\({_NAME}\)(?:\$|\\\))"
    rf"|(\$|\\\()?\\(?:text|math)[a-z]*\{{\({_NAME}\)\s?\}}(?(3)(?:\$|\\\)))"
)
"""The name of a part in mathematics or in bold: ($a$), $(a)$, (**a**)."""

_SPACE = regex(r"\\[ ,;:]|\\q?quad(?![a-z])")

_FIRST_MARK = regex(r"(?i)\s*(?:part\s)?(?:\(\s?(?:a|1|i)\s?\)|①)")
_ITEM = regex(
    r"""(?xi) \s* (?:part\s)? (?P<mark> [-*•–](?=\s) | [①-⑤] | \(\s?(?:[a-h]|(?:\d|[iv]+)(?=\s?\)[\s$\\]))\s?\)
        | (?:[a-h]|\d|[iv]+)(?:[)、:]|\.(?=\s)) )? [\s:]*
    (?: (?:the\s)? (?:first|second|third|fourth|last|other)(?:\s[a-z]+)? \s* (?:is|[:：]) \s
      | (?P<name>[a-z]) (?: \s(?:is|are) | [:：] ) \s )?
    (?P<value> [^\s=+*/].*? ) [\s.,;，。；]*""",
    re.DOTALL,
)
_WORD = regex(r"(?<!\\)\b[A-Za-z]{2,}")
_NO_VALUE = regex(
    r"[,;，；、&]|[A-Za-z]{2,}\s*[:：]|\A[A-Za-z]{2,}\s(?![A-Za-z\s]*=)"
    r"|(?:\bor|或|[-+*/=^×÷·]|\\(?:cdot|times|div))\s*\Z|\A(?:\^|\\(?:cdot|times|div))"
)
"""Signs of several values, of a sentence, or of a part of a value."""

_SEPARATED = regex(r"\([^()]*\)|\[[^\[\]]*\]|\\\{.*?\\\}")
"""A comma in it separates no values."""


def items_of(text: str) -> tuple[list[str], str]:
    """Return the values of an answer that has several items, and the first of their marks, without brackets and empty
    if they have none; no values for any other answer.
    """
    if _SEVERAL.search(text := _with_plain_labels(text)) is None or _MATRIX.fullmatch(text):
        return [], ""
    text = _SPACE.sub(" ", without_text_commands(text)).strip()
    text = text[1:-1] if text[:1] == text[-1:] == "$" and text.count("$") == 2 else text
    values, end, mark = items_in(text, 0, len(text))
    return ([], "") if text[end:].strip(" \n.$*_") else (values, mark)


def items_in(text: str, start: int, end: int) -> tuple[list[str], int, str]:
    """Return the values of the items that text[start:end] begins with, where they end, and their first mark; no values
    if there are fewer than two.
    """
    read = text[start : min(end, start + MAX_CHARS)].partition("</")[0].rstrip()
    read = BOLD.sub("  ", _with_plain_labels(read))
    values, marks, position, finish = list[str](), list[str](), 0, 0
    is_marked = _FIRST_MARK.match(read) is not None
    breaks = (_BREAK_OR_MARK if is_marked else _BREAK).finditer(read)
    for stop in [*(match.span() for match in breaks), (len(read), len(read))]:
        if stop[0] <= position:  # a mark at the beginning of a line
            continue
        item = _ITEM.fullmatch(read, position, stop[0])
        if item is None or (is_marked and not item["mark"]):
            break
        mark = (item["mark"] or "").strip("().、: ").lower()
        value = f"{item['name']} = {item['value']}" if item["name"] else item["value"]
        if not _follows([*marks, mark]) or not _is_value(value, is_named=bool(mark) and mark.isalnum()):
            break
        marks.append(mark)
        values.append(value)
        position, finish = stop[1], stop[0]
    return (values, start + finish, marks[0]) if len(values) > 1 else ([], start, "")


def _with_plain_labels(text: str) -> str:
    """Return `text` with (a) for ($a$), of the same length."""
    return _LABEL.sub(lambda label: f"({label[1] or label[2] or label[4]})".ljust(len(label.group())), text)


def _follows(marks: list[str]) -> bool:
    """Whether marks of items are all the same, or letters or numbers in order."""
    is_same = len(set(marks)) == 1 and not marks[0].isalnum()
    return is_same or any(tuple(order[: len(marks)]) == tuple(marks) for order in _ORDERS)


def _is_value(text: str, *, is_named: bool) -> bool:
    """Whether the text of an item is a single value. is_named: behind a letter or number, it needs no digit."""
    if _NO_VALUE.search(_SEPARATED.sub("", text)):
        return False
    return is_named or (len(_WORD.findall(text)) <= _MAX_WORDS and re.search(r"[\d$\\]", text) is not None)
