r"""Whole answers that have a spelling of their own, brought to the spelling that the grammar reads.

    每小时60千米                          60 千米/小时
    30 m2                               30 m^2
    2046 (base 7)                       2046_{7}
    百分之25, 3分之2                      25%, 2/3
    3又1/2米, 3又2分之1, 3……2             3\frac{1}{2}米, 3\frac{1}{2}, 3 remainder 2
    A=2 \quad B=-1                      A=2, B=-1

Each form applies to a whole answer only, so that no part of another answer changes its meaning.
"""

from __future__ import annotations

import re

_TEXT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
"""A command that marks words; what it holds is read without it."""

_SPACE = re.compile(r"\\[,;! ]|~|\s+")
_NUMBER = r"-?\d+(?:[.,]\d+)*(?:/\d+)?"
_FORMS = (
    (rf"每([\u3400-\u9fff]{{1,4}}?) ?({_NUMBER}) ?([\u3400-\u9fffA-Za-z]{{1,6}})", r"\2\\text{ \3/\1}"),
    (rf"({_NUMBER}) ?(mm|cm|dm|km|m|in|ft|yd|mi)([23])", r"\1\\text{ \2^\3}"),
    (r"([0-9A-Za-z]+) ?(?:\( ?(?:in )?base[ -](\d{1,2}) ?\)|(?:in )?base[ -](\d{1,2}))", r"\1_{\2\3}"),
    (r"百分之(\d+(?:\.\d+)?)", r"\1\\%"),
    (r"(\d+)分之(\d+)", r"\\frac{\2}{\1}"),
    (r"(-?)(\d+)又(\d+)/(\d+)([\u3400-\u9fff]{0,6})", r"\1\2\\frac{\3}{\4}\5"),
    (r"(-?)(\d+)又(\d+)分之(\d+)([\u3400-\u9fff]{0,6})", r"\1\2\\frac{\4}{\3}\5"),
    (
        r"商?(\d+) ?(?:余| [Rr] |remainder|…{1,2}|\.{3,6}|⋯{1,2}|(?:\\[cl]?dots ?){1,2}) ?(\d+)",
        r"\1\\text{ remainder }\2",
    ),
)
"""Forms of a whole answer, each with the spelling that it is brought to."""

_COMPILED = [(re.compile(form), template) for form, template in _FORMS]
_GAP_BEFORE_NAME = re.compile(r"(?:\\q?quad\s*|(?:(?<=\d)|(?<=\d\}))\s+)(?=\\?[A-Za-z]+(?:_\{?\w+\}?)?\s*=)")
"""The space between two equations, as in `A=2 \\quad B=-1`; a comma takes its place."""


def usual_spelling(source: str) -> str:
    """Return an answer in the spelling that the grammar reads; `source` itself if it has none of the forms above."""
    flat = _SPACE.sub(" ", _TEXT.sub(r"\1", source)).strip().rstrip(".")
    for form, template in _COMPILED:
        if (match := form.fullmatch(flat)) is not None:
            return match.expand(template)
    return _GAP_BEFORE_NAME.sub(", ", source) if "quad" in source or source.count("=") > 1 else source
