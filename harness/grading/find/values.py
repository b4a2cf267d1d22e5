"""Numbers, formulas and sentences in a text, as every reader of replies sees them."""

from __future__ import annotations

import re

from harness.core.patterns import regex

MAX_SENTENCE_CHARS = 240
"""A sentence is read this far on either side of a value, in characters."""

FORMULA = regex(
    r"\$\$(.{1,2000}?)\$\$|(?<!\\)\$((?:[^$\n\\]|\\[^\n])++)\$|\\\(((?:[^\\]|\\[^()]){1,2000}+)\\\)"
    r"|\\\[((?:[^\\]|\\[^\[\]]){1,2000}+)\\\]",
    re.DOTALL,
)
r"""A formula between $, $$, \( \) or \[ \]."""

NUMBER = regex(
    r"""(?x) (?<![A-Za-z0-9_.]) (?:[-−–](?=[\d.$]))? [$€£¥￥＄]? [-−]?
    (?: \d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?(?!\d) | \d++/\d++ | \d++(?:\.\d++)? | \.\d++ ) (?:[eE][+-]?\d++)? %?
    (?:\ (?i:hundred|thousand|million|billion|trillion|dozen)\b | [万亿萬億]){0,3} """
)
"""A number in a text, with its sign, currency, exponent, percent sign and numeral of scale."""

WORD = regex(r"[A-Za-z]{2,}")
COMMAND = regex(r"\\[A-Za-z]+")
STOP = regex(r"(?<![.!?])[.!?]+(?=[\s\"'*)$]|\\[)\]]|\Z)|[\n。！？]|\$\$(?=\s[A-Z])")
"""The end of a sentence or a line."""


def sentence_around(text: str, start: int, end: int, lo: int, hi: int) -> tuple[int, int]:
    """Return where the sentence of text[start:end] begins and ends, at most `MAX_SENTENCE_CHARS` away from it.

    lo, hi: the part of the text that is read.
    """
    begin = first = max(lo, start - MAX_SENTENCE_CHARS)
    for stop in STOP.finditer(text, first, start):
        begin = stop.end()
    last = min(hi, end + MAX_SENTENCE_CHARS)
    ending = STOP.search(text, end, last)
    return begin, last if ending is None else ending.start()


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match of `pattern`; None without one."""
    matches = [*pattern.finditer(text)]
    return matches[-1] if matches else None
