r"""Words next to a value, and which of them add nothing to it.

The parser drops the words listed here; `9 for all real x` is 9. All other words stay in the tree, as
`given(value, words)` or as the name of the value, and are compared: `9 for n > 3` is 9 under a condition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reasoning_answers.grammar.tokens import MathToken
from reasoning_answers.grammar.tree import names

_EXACT = names("exactly is are only just equals precisely point vertex coordinates")
"""Words before a value that add nothing to it."""

APPROXIMATE = names("approximately about approx roughly around 约 大约 约为 大约为 大约是 约是 约等于")
"""Words before a value that is rounded."""

_CHINESE_LEAD = re.compile(r"(?:因此|所以|从而|综上|故|则|即|答案|结果|一共|总共|总计|共计|共|计|有|等于|是|为)+")
"""Chinese words before a value that only introduce it."""

_COPULA = re.compile(r"(?i)(?<!\s)\s*+(?:(?<!:):|\b(?:is|are|equals|was|will\s+be)|等于|为|是|：)[\s:]*+\Z")
"""Matches the last word or colon of a text that names the value after it: "The area is", 最大值是."""

_DENIES = re.compile(r"(?i)\b(?:not|no|nor|neither|never|wrong|incorrect|except)\b|n't|[不非没无否]")
"""Words that deny a value or exclude part of it."""

_KIND = (
    r"(?:real|complex|positive|negative|non-?negative|non-?zero|integers?|integral|natural|whole|rational|numbers?|"
    r"constants?|values?|of|an?|any|all|every|each|some|arbitrary)"
)
"""A kind of number, or a word before one: part of a remark that adds nothing."""

_LETTER = r"\$\w+'*"
"""A variable as `words_of_remark` writes it."""

_PASSED = re.compile(
    r"(?:(?:for|where|with|over|其中|为任意)\b ?)?"
    rf"(?:{_KIND} )*(?:{_KIND}|{_LETTER}(?:(?: ,)?(?: and)? {_LETTER})*)"
    rf"(?: ∈ \$[RZNQC](?: [_^] [-+*<>=!0 ]+)?| (?:is|are|be|为|是)(?: {_KIND})+| {_KIND})?"
)
"""A remark that only specifies for which letters a value is valid, or what kind of numbers they are."""

_DEFINES = re.compile(
    rf"for (?:all|any|every|each) (?:{_KIND} )*{_LETTER} >= [01]|where {_LETTER} (?:is|denotes) the number of [a-z ]+"
)
"""A remark that repeats what the question says about a letter: "for all n ≥ 1", "where n is the number of points"."""


def leads_to_value(words: str) -> bool:
    """Whether words before a value add nothing to it: "exactly", 因此共有."""
    return words.lower() in _EXACT or _CHINESE_LEAD.fullmatch(words) is not None


def is_name(words: str) -> bool:
    """Whether words name the value that follows: "The area is", 最大值是. False if they deny the value or change it."""
    return _COPULA.search(words) is not None and _DENIES.search(words) is None and not leads_to_value(words)


def name_in(words: str) -> str:
    """Return words that name a value, without their verb or colon."""
    return _COPULA.sub("", words)


def says_nothing(tokens: Sequence[MathToken]) -> bool:
    """Whether a remark after a value adds nothing: it only names letters or the kind of numbers they represent, as in
    "for all real x" and "where C is a constant".
    """
    return _PASSED.fullmatch(words_of_remark(tokens)) is not None


def defines_only(remark: str) -> bool:
    """Whether a remark, as `words_of_remark` writes it, only repeats what the question says about a letter."""
    return _DEFINES.fullmatch(remark) is not None


def words_of_remark(tokens: Sequence[MathToken]) -> str:
    """Return a remark as one line for comparison: words in lower case, and a dollar sign before each variable."""
    words = (
        f"${token.text}" if token.kind == "sym" else token.text.strip().lower()
        for token in tokens
        if token.kind not in ("{", "}")
    )
    return " ".join(" ".join(words).split())
