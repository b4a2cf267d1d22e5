"""Values of several blanks that are numbered: （1）3 （2）5, 第一空填3，第二空填5. A list whose order is stated."""

from __future__ import annotations

import re

_BLANK = r"(?:第([一二三四五六])个?空(?:应?填|是|为)?|(?:（|(?<![^\s,，;；、。])\()([1-6])[)）]|([①-⑥]))\s*[:：]?\s*"
# A value, or a point: behind a sign of operation, (1) is a factor, as in (1)+(2).
_IN_BLANK = (
    r"([(（][^()（）;；]{1,20}[,，][^()（）;；]{1,20}[)）]|(?=[-−]?(?:\w|[.√]|\\d?frac|\\sqrt|\\pi|\\text))"
    r"(?:[^()（）①-⑥;；,，、。\s第]|\s(?=[=＝+−-])|(?<=[=＝+−-])\s){1,40}(?<![=＝+−*/-]))"
)
BLANKS = re.compile(rf"(?:{_BLANK}{_IN_BLANK}[\s,，;；、。]*){{2,6}}")
_EACH_BLANK = re.compile(rf"{_BLANK}{_IN_BLANK}")


def values_of_blanks(match: re.Match[str]) -> str | None:
    """Return the values of numbered blanks as a list; None unless the numbers are 1, 2, 3 and so on."""
    blanks = [blank.groups() for blank in _EACH_BLANK.finditer(match[0])]
    numbers = [
        "一二三四五六".find(word) + 1 if word else int(digit or "①②③④⑤⑥".index(sign) + 1)
        for word, digit, sign, _ in blanks
    ]
    in_order = numbers == list(range(1, len(blanks) + 1))
    return ", ".join(value for *_, value in blanks) if in_order else None
