"""What is found in a reply, and the numbers, formulas and sentences of a text, as all readers of replies use them."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from reasoning_answers.bounds import MAX_VALUES, TAIL_CHARS
from reasoning_answers.patterns import regex
from reasoning_answers.records import CallSign

Method = Literal[
    "box", "boxes", "open box", "phrase", "formula", "number", "letter", "line", "sentence", "reply", "calls", "none"
]
"""How an answer was found.

box, boxes, open box: in a box, in several that are one answer, in a box without its closing brace. phrase: after a
label. formula, number: the last one in a reply. letter: a stated choice. line: the last line. sentence: `UNSTATED`.
reply: the whole reply, for a verifier. calls: the function calls of a reply. none: there is no answer.
"""

UNSTATED: Method = "sentence"
"""Method of an answer that no sentence states, or that the text leaves open."""


class Extraction(NamedTuple):
    """The answer as written in a reply: its text, its start and end, and the form in which it was found; `NOTHING` for
    a reply without an answer.

    opened_by: what leaves it open, in words that are safe to print; empty if nothing does. behind: values that the text
    after it states as an answer, or all values of the reply if no sentence states this one; each must get the same
    verdict. other_boxes: the contents of the other boxes, the last first; empty if none can change the verdict. steps:
    the search in words; empty unless requested. call_signs: the signs that need no schema; None for any other kind of
    answer.
    """

    answer: str
    start: int
    end: int
    method: Method
    opened_by: str = ""
    behind: tuple[str, ...] = ()
    other_boxes: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    call_signs: tuple[CallSign, ...] | None = None


NOTHING = Extraction("", 0, 0, "none")
"""The extraction of a reply without an answer."""

MAX_SENTENCE_CHARS = 240
"""Number of characters of a sentence that are read on each side of a value."""

FORMULA = regex(
    r"\$\$(.{1,2000}?)\$\$|(?<!\\)\$((?>(?:[^$\n\\]++|\\[^\n])+))\$"
    r"|(?<!\\)\$(?=(\s))?((?>(?:[^$\n\\A-Za-z]|\n(?![ \t]*\n)|(?<![A-Za-z])[A-Za-z](?![A-Za-z])"
    r"|\\(?:text|mathrm|begin|end)\{[^{}\n]*\}|\\(?:[A-Za-z]++|.)){1,2000}))(?(3)(?<=\n)|(?<!\s))\$(?!\d)"
    r"|\\\(((?>(?:[^\\]|\\[^()]){1,2000}))\\\)|\\\[((?>(?:[^\\]|\\[^\[\]]){1,2000}))\\\]",
    re.DOTALL,
)
r"""A formula between $, $$, \( \) or \[ \].

Between single dollar signs it may span several lines of a paragraph, if it cannot contain prose or a price.
"""

NUMBER = regex(
    r"""(?x) (?<![A-Za-z0-9_.]) (?:[-−–](?=[\d.$]))? [$€£¥￥＄]? [-−]?
    (?: \d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?(?!\d) | \d++/\d++ | \d++(?:\.\d++)? | \.\d++ ) (?:[eE][+-]?\d++)? %?
    (?:\ (?i:hundred|thousand|million|billion|trillion|dozen)\b | [万亿萬億]){0,3} """
)
"""A number in a text, with its sign, currency, exponent, percent sign and scale word."""

_EXPRESSION = regex(
    r"(?<![\w.,*/^×·÷+−-])\d[\d.,]*+(?>(?:\s?[-+−*/×·÷^]\s?[-−]?\d[\d.,]*+){1,20})(?!\s?(?:=|is\b|equals\b))"
)
"""A calculation without its result, which may be the answer."""

_LINK = regex(r"(?:\s?([A-Za-z]{1,12}))?\s(?:and\s)?\d")
"""A link between two numbers that may be one number, with a unit or none: the ` ft ` of 5 ft 3."""

MAX_UNIT_CHARS = 24
"""Number of characters after a number that are searched for a unit."""

_OUTSIDE_FORMULAS = regex(
    r"(?i)[\\√π∑∫½⅓⅔¼¾²³\u3040-\u9fff]|\d\s?(?:[:：]\s?\d|!\s?[a-z])"
    r"|\b(?:dozens?|half|halves|out\s+of|past|times|plus|minus|squared?|cubed?|root|couple|pairs?|twice|double|triple)\b"
)
"""Signs of a value that is not a number or formula: LaTeX without dollar signs, roots, times, operator words."""

WORD = regex(r"[A-Za-z]{2,}")
"""A word of two letters or more; a single letter is a variable."""

COMMAND = regex(r"\\[A-Za-z]+")
"""A LaTeX command."""

STOP = regex(r"(?<![.!?])[.!?]+(?=[\s\"'*)$]|\\[)\]]|\Z)|[\n。！？]|\$\$(?=\s[A-Z])")
"""The end of a sentence or a line."""


def values_in(text: str, lo: int, hi: int, *, only_all: bool) -> tuple[str, ...]:
    """Return the last `MAX_VALUES` values that text[lo:hi] states, without duplicates.

    only_all: return none if there are more, or if a value may be written in a way that is not recognized.
    """
    # Imported here: most answers are in a box or after a label.
    from reasoning_answers.find.box_context import unit_behind
    from reasoning_answers.grammar.numerals import IN_WORDS
    from reasoning_answers.grammar.units import unit_of

    if only_all and (hi - lo > TAIL_CHARS or _OUTSIDE_FORMULAS.search(FORMULA.sub(" ", text[lo:hi])) is not None):
        return ()
    lo = max(lo, hi - TAIL_CHARS)
    values = [match.group() for pattern in (FORMULA, IN_WORDS, _EXPRESSION) for match in pattern.finditer(text, lo, hi)]
    previous: int | None = None  # start of the number before, if both may be one: 3 1/2, 1 hour 20 minutes
    for number in NUMBER.finditer(text, lo, hi):
        unit = unit_behind(number.group(), text[number.end() : number.end() + MAX_UNIT_CHARS])
        values += [text[start : number.end()] + unit for start in (number.start(), previous) if start is not None]
        link = _LINK.match(text, number.end(), hi)
        previous = number.start() if link is not None and (not link[1] or unit_of(link[1])) else None
    distinct = tuple(dict.fromkeys(values))
    return () if only_all and len(distinct) > MAX_VALUES else distinct[-MAX_VALUES:]


def sentence_around(text: str, start: int, end: int, lo: int, hi: int) -> tuple[int, int]:
    """Return where the sentence of text[start:end] begins and ends, at most `MAX_SENTENCE_CHARS` away from it.

    lo, hi: the part of the text that is read.
    """
    first, last = max(lo, start - MAX_SENTENCE_CHARS), min(hi, end + MAX_SENTENCE_CHARS)
    before, behind = last_match(STOP, text, first, start), STOP.search(text, end, last)
    return first if before is None else before.end(), last if behind is None else behind.start()


def last_match(pattern: re.Pattern[str], text: str, lo: int, hi: int) -> re.Match[str] | None:
    """Return the last match of `pattern` in text[lo:hi]; None if there is none."""
    match = None
    for match in pattern.finditer(text, lo, hi):  # noqa: B007  only the last one is used
        pass
    return match
