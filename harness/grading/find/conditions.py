r"""Conditions in the sentence that states an answer: "If n is even, the answer is 12", "the answer is 12 unless n = 2".

Such an answer holds for some cases only, so its condition is kept with it, as `12 if n is even`, and compared. A clause
is a condition in two cases:

    it begins with a word that only conditions begin with                    if, unless, assuming, 如果
    it begins with a word that also opens times and examples (when, for, 当),
    and relates a letter of mathematics                                      "when x > 0", not "when rounded"

A condition belongs to the answer only if nothing but "the answer is" stands between the two: in "If x = 3, then y is 7,
so the answer is 7" the condition is a step of the solution, and repeats the question.

A number does not answer alone, either, if the words before its box make it the bound of a strict inequality: "less than
\boxed{4}".
"""

from __future__ import annotations

import re

_ALWAYS = (
    r"(?:if|unless|provided|providing|assuming|assume|suppose|supposing|(?:as|so)\s+long\s+as|in\s+case"
    r"|on\s+condition)\b"
)
_LETTER = r"(?<![A-Za-z\\])[A-Za-z](?:_\{?\w{1,8}\}?)?(?![A-Za-z])"
_RELATES = (
    rf"(?=[^,，。\n]{{0,60}}{_LETTER}\s*(?:[=<>≤≥≠∈]|\\(?:[lg]eq?q?|[lg]eqslant|lt|gt|neq?|in|equiv|mid)(?![a-zA-Z])"
    r"|(?:is|are|be|为|是)\b))"
)
_CONDITION = (
    rf"(?:{_ALWAYS}|(?:when|whenever|for|with|where){_RELATES}(?![a-zA-Z])"
    rf"|(?:如果|若|假设|假如|倘若|要是|除非|只要)|(?:当|对于?){_RELATES})"
)
_LEADS = r"(?:(?:(?:so|then|thus|hence|therefore|but|however|and|now|finally)\b|那么|否则|则|因此|所以)[,，]?\s*)"

_HEAD = re.compile(rf"(?i)[\s*_]*+{_LEADS}?{_CONDITION}")
_BEFORE = re.compile(
    rf"""(?xi) [\s*_]*+ {_LEADS}?
    (?P<condition> {_CONDITION} (?: [^,，$\n] | \$[^$\n]{{0,80}}\$ ){{1,120}}? ) \s*[,，]?\s* {_LEADS}?
    (?: (?:we|you|one)\s+(?:get|have|find|conclude)\s+(?:that\s+)? )?
    (?: (?:the|our|my|its|this|your)\s+ )? (?: (?:final|correct|right|exact)\s+ )? \Z"""
)
_BEHIND = re.compile(
    rf"(?i)[ \t,，$*)]*+(?:\\[)\]][ \t,，]*+)?(?:but\s+)?"
    rf"((?:(?:only\s+)?{_ALWAYS}|only\s+(?:when|for|in|with|where)\b)[^.!?。！？\n]*)"
)
_SENTENCE_STOPS = (". ", "! ", "? ", "\n")
_CHINESE_STOPS = ("。", "！", "？")
_IF = re.compile(r"(?i)\Aif\s+")
_MAX_CHARS = 240
"""A sentence is looked at this far before its answer, in characters."""

_STRICT = re.compile(
    r"(?i)(?:(?<!\bno )(?<!\bnot )\b(?:(?:less|more|greater|fewer|larger|smaller|bigger|higher|lower)\s+than"
    r"|not\s+equal\s+to|unequal\s+to)"
    r"|(?:[大小多少高低]于|超过|不足|不到))[\s:：]*\Z"
)
"""Words that make the number behind them the bound of a strict inequality."""
LAYOUT = (
    r"(?:\\(?:text(?:bf|rm|it)?|mbox|mathrm|mathbf|operatorname|rm|bf|left|right|displaystyle)(?![A-Za-z])"
    r"|\\[()\[\]]|[{}$*_`])"
)
"""The layout of a formula or of Markdown that may stand between a word and a box."""

_BEFORE_BOX_CHARS = 60
"""Longest text before a box that is read."""


def conditional_sentence(text: str, lo: int, position: int) -> int:
    """Return where the sentence around `position` begins if it begins with a condition, else -1.

    lo: the first position that may belong to the sentence.
    """
    first = max(lo, position - _MAX_CHARS)
    stops = _SENTENCE_STOPS if text.isascii() else _SENTENCE_STOPS + _CHINESE_STOPS
    begin = max(first, 1 + max([text.rfind(stop, first, position) for stop in stops]))
    return begin if _HEAD.match(text, begin, position) is not None else -1


def condition_before(text: str, lo: int, phrase: int) -> tuple[str, int] | None:
    """Return the condition under which a phrase states an answer, and where its sentence begins; None without one.

    phrase: the position of "answer" or 答案. lo: the first position that may belong to the sentence.
    """
    begin = conditional_sentence(text, lo, phrase)
    match = _BEFORE.fullmatch(text, begin, phrase) if begin >= 0 else None
    return None if match is None else (_IF.sub("", match["condition"].strip()), begin)


def condition_behind(text: str, end: int, hi: int) -> str | None:
    """Return the condition that follows an answer in its sentence: "12 if the dice are fair"; None without one."""
    match = _BEHIND.match(text, end, hi)
    return None if match is None else match[1].strip(" *_")


def is_strict_bound(text: str, start: int, lo: int) -> bool:
    """Whether words make the box that begins at position `start` of text[lo:] the bound of a strict inequality."""
    before = re.sub(LAYOUT, "", text[max(lo, start - _BEFORE_BOX_CHARS) : start])
    return _STRICT.search(before) is not None
