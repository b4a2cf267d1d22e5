r"""Whole answers that have a spelling of their own, brought to the spelling that the grammar reads.

    每小时60千米                          60千米/小时
    30 m2, 12 cm3, 30 sq m              30 m^2, 12 cm^3, 30 square m
    \$18\frac34, $3/4                   18\frac34 dollars, 3/4 dollars
    2046 (base 7)                       2046_{7}
    36 degrees 15 minutes, 36度15分       36^\circ 15'
    one out of three, 百分之25, 3分之2      1/3, 25%, 2/3
    3又1/2米, 三又三分之二, 3……2           3\frac{1}{2} 米, 3\frac{2}{3}, 3 remainder 2
    x1=1, x2=-2                         x_1=1, x_2=-2
    2 kg 500 g, 2 h 30 m                2 kg 500 g with units in place of letters
    x is odd                            x \equiv 1 \pmod{2}
    A=2 \quad B=-1                      A=2, B=-1
    so 14, it equals 6, exactly six     14, 6, six
    \{x \in \mathbb{R} : -7 \le x\}     \{x : -7 \le x\}

Each form applies to a whole answer only, so that no part of another answer changes its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from harness.answers.grammar.numerals import number_in_words, with_joined_scales
from harness.answers.grammar.units import is_counted, smaller_unit, unit_of

_TEXT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_SPACE = re.compile(r"\\[,;! ]|~|\s+")
_NUMBER = r"-?\d+(?:[.,]\d+)*(?:/\d+)?"

_EACH = re.compile(rf"每(?P<of>[\u3400-\u9fff]{{1,4}}?)\s*(?P<n>{_NUMBER})\s*(?P<unit>[\u3400-\u9fffA-Za-z]{{1,6}})")
_SPEED = re.compile(rf"(?P<of>[时分秒])速\s*[是为]?\s*(?P<n>{_NUMBER})\s*(?P<unit>[\u3400-\u9fffA-Za-z]{{1,6}})")
_POWER = re.compile(rf"({_NUMBER})\s*(mm|cm|dm|km|m|in|ft|yd|mi)\s?([23])")
_SQUARE = re.compile(rf"(?i)({_NUMBER})\s*(sq|cu)\.?\s*(mm|cm|dm|km|m|in|ft|yd|mi)\.?")
_MIXED_MONEY = re.compile(r"\\?\$\s*(\d+\s*\\[dt]?frac\s*(?:\{\d+\}\s*\{\d+\}|\d\s*\d)|\d+/\d+)")
_BASE = re.compile(r"([0-9A-Za-z]+)\s*(?:\(\s*(?:in\s+)?base[ -](\d{1,2})\s*\)|(?:in\s+)?base[ -](\d{1,2}))")
_DEGREES = re.compile(
    r"(-?\d+) ?(?:degrees?|度|°|\^ ?\{? ?\\circ ?\}?),? ?(?:and )?(\d+) ?(?:minutes?|分)"
    r"(?:,? ?(?:and )?(\d+) ?(?:seconds?|秒))?"
)
_NUMERAL = r"[零〇一二两三四五六七八九十百千]{1,8}"
_COMPOUND = re.compile(r"(?:\d++\s*+[A-Za-z]++\s*+){1,3}\d++(?:\.\d++)?\s*+[A-Za-z]++")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_PERCENT = re.compile(r"百分之(\d+(?:\.\d+)?)")
_PARTS = re.compile(r"(\d+)分之(\d+)")
_REMAINDER = re.compile(r"商?(\d+)\s*(?:余|\s[Rr]\s|remainder|…{1,2}|\.{3,6}|⋯{1,2}|(?:\\[cl]?dots\s*){1,2})\s*(\d+)")
_MIXED = re.compile(
    rf"([-−负]?)\s*(\d+|{_NUMERAL})又(?:(\d+)/(\d+)|(\d+|{_NUMERAL})分之(\d+|{_NUMERAL}?))\s*([\u3400-\u9fff]{{0,6}})"
)
_TERM = r"(?:\\[a-z]+|[-−+\d./{}()√ ])+"
_ROOTS = re.compile(rf"([a-zA-Z])1\s*=({_TERM})(?:[,，;；]|或|和|\bor\b|\band\b)\s*\1(?:2)\s*=({_TERM})")
_OUT_OF = re.compile(r"(?i)([a-z]+(?:-[a-z]+)?)\s+out\s+of\s+([a-z]+(?:-[a-z]+)?)")
_PARITY = re.compile(r"([a-zA-Z])\s+is\s+(?:an\s+)?(odd|even)(?:\s+integer|\s+number)?")
_QUAD_LIST = re.compile(r"(?:\\q?quad\s*|(?:(?<=\d)|(?<=\d\}))\s+)(?=\\?[A-Za-z]+(?:_\{?\w+\}?)?\s*=)")
_LEAD = re.compile(
    r"(?i)\s*(?P<open>\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{\s*)?"
    r"(?:so|thus|hence|therefore|exactly|it\s+(?:is|equals)|the\s+(?:final\s+)?answer(?:\s+is|\s*:))[:,]?"
    r"(?P<end>(?(open)\s*\}|(?!))|[\s~]+(?=[^\s}]))"
)
_WORDS = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{2,}")
_REAL_SET = re.compile(r"(\\\{\s*)([a-z])\s*\\in\s*(?:\\mathbb\s*\{?\s*R\s*\}?|ℝ)\s*(:|\\mid|\|)")
_ZERO_FUNCTION = re.compile(r"([a-zA-Z]\([a-z]\))\s*\\equiv")
_FOR_ALL = re.compile(
    r"(?:[\s,;]|\\[ ,;]|\\q?quad)*\\forall\s*(?:\\[,;:!]\s*)?([a-z])\s*\\in\s*(?:\\mathbb\s*\{?\s*R\s*\}?|ℝ)\s*\Z"
)


def _each(match: re.Match[str]) -> str | None:
    """Return 60 千米/小时 for 每小时60千米; None if a part is no unit."""
    are_units = unit_of(match["of"]) is not None and unit_of(match["unit"]) is not None
    return rf"{match['n']}\text{{ {match['unit']}/{match['of']}}}" if are_units else None


def _power(match: re.Match[str]) -> str:
    return rf"{match[1]}\text{{ {match[2]}^{match[3]}}}"


def _square(match: re.Match[str]) -> str:
    return rf"{match[1]}\text{{ {'square' if match[2].lower() == 'sq' else 'cubic'} {match[3]}}}"


def _with_base(match: re.Match[str]) -> str | None:
    """Return `2046_{7}` for `2046 (base 7)`; None if a digit does not exist in this base."""
    base = int(match[2] or match[3])
    try:
        int(match[1], base)
    except ValueError:
        return None
    return f"{match[1]}_{{{base}}}"


def _degrees(match: re.Match[str]) -> str | None:
    """Return `36°15'` for `36 degrees 15 minutes`; None for 60 minutes or seconds and more."""
    small = [int(part) for part in match.groups()[1:] if part is not None]
    if any(part >= _SIXTY for part in small):
        return None
    signs = ("'", "''")
    return rf"{match[1]}^\circ " + " ".join(f"{part}{sign}" for part, sign in zip(small, signs, strict=False))


def _out_of(match: re.Match[str]) -> str | None:
    parts = number_in_words(match[1]), number_in_words(match[2])
    return None if None in parts else f"{parts[0]}/{parts[1]}"


def _parity(match: re.Match[str]) -> str:
    return rf"{match[1]} \equiv {int(match[2] == 'odd')} \pmod{{2}}"


def _count(text: str) -> int | None:
    """Return the value of a number in digits or Chinese numerals; None for numerals that are no number: 二百五."""
    if text.isascii():
        return int(text)
    digits = number_in_words(text)
    return int(digits) if digits is not None and digits.isdigit() else None


def _compound(match: re.Match[str]) -> str | None:
    """Return `2 kg 500 g` with its units marked as units, since bare letters are variables.

    None unless each unit is known and smaller than the unit before it. An m behind hours is minutes.
    """
    parts = [(number, unit) for number, unit in _QUANTITY.findall(match[0])]
    parts = [
        (number, "min" if unit == "m" and last and unit_of(last[1]) == unit_of("h") else unit)
        for (number, unit), last in zip(parts, [None, *parts], strict=False)
    ]
    if any(smaller_unit(larger[1], smaller[1]) is None for larger, smaller in pairwise(parts)):
        return None
    return "".join(rf"{number}\text{{ {unit} }}" for number, unit in parts)


def _is_unit(words: str) -> bool:
    return words.replace("/", "").isalpha() and (unit_of(words) is not None or is_counted(words))


def _mixed_number(match: re.Match[str]) -> str | None:
    r"""Return `3\frac{2}{3}` for 3又2/3 and 三又三分之二, perhaps with a unit; None for an improper fraction."""
    sign, unit = "-" if match[1] else "", match[7]
    whole, above, below = (_count(part or "") for part in (match[2], match[3] or match[6], match[4] or match[5]))
    if whole is None or below is None or above is None or not 0 < above < below or (unit and not _is_unit(unit)):
        return None
    return rf"{sign}{whole}\frac{{{above}}}{{{below}}}" + (rf"\text{{ {unit} }}" if unit else "")


_SIXTY = 60
"""Minutes of a degree, and seconds of a minute."""

_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...] = (
    (re.compile(r"(\d+) in (\d+)"), lambda match: rf"\frac{{{match[1]}}}{{{match[2]}}}"),
    (_EACH, _each),
    (_SPEED, _each),
    (_POWER, _power),
    (_SQUARE, _square),
    (_MIXED_MONEY, lambda match: rf"{match[1]}\text{{ dollars}}"),
    (_BASE, _with_base),
    (_DEGREES, _degrees),
    (_OUT_OF, _out_of),
    (_PARITY, _parity),
    (_COMPOUND, _compound),
    (_PERCENT, lambda match: rf"{match[1]}\%"),
    (_PARTS, lambda match: rf"\frac{{{match[2]}}}{{{match[1]}}}"),
    (_MIXED, _mixed_number),
    (_REMAINDER, lambda match: rf"{match[1]}\text{{ remainder }}{match[2]}"),
    (_ROOTS, lambda match: rf"{match[1]}_1={match[2]}, {match[1]}_2={match[3]}"),
    (re.compile(r"(-?\d{0,9})根号下?(\d{1,9})"), lambda match: rf"{match[1]}\sqrt{{{match[2]}}}"),
)


def _flat(source: str) -> str:
    """Return an answer without commands of text, with single spaces."""
    return _SPACE.sub(" ", _TEXT.sub(r"\1", source)).strip()


@lru_cache(maxsize=1_024)
def is_own_spelling(source: str) -> bool:
    """Whether an answer is as a whole one of the forms above that name a value, such as 每小时60千米."""
    flat = _flat(source).rstrip(".。")
    matches = ((form.fullmatch(flat), rewritten) for form, rewritten in _FORMS)
    return any(match is not None and rewritten(match) is not None for match, rewritten in matches)


def usual_spelling(source: str) -> str:
    """Return an answer in the spelling that the grammar reads; `source` itself if it has none of the forms above."""
    source = with_joined_scales(source)
    flat = _flat(source).rstrip(".")
    for form, rewritten in _FORMS:
        if (match := form.fullmatch(flat)) is not None:
            return rewritten(match) or source
    # Words that only lead to the answer ("so 14") are dropped if a number in words, or no words at all, remain.
    if (lead := _LEAD.match(source)) is not None and "=" not in source and source[lead.end() :].strip():
        # A command that holds the lead and the answer is opened anew for the answer.
        within = lead["open"] is not None and not lead["end"].rstrip().endswith("}")
        rest = f"{lead['open'] if within else ''}{source[lead.end() :]}"
        plain = _TEXT.sub(r"\1", rest).strip()
        if (digits := number_in_words(plain)) is not None:
            return digits
        if _WORDS.search(plain) is None:
            return rest
    if "quad" in source or source.count("=") > 1:
        source = _QUAD_LIST.sub(", ", source)
    if r"\in" in source and (real := _REAL_SET.match(source)) is not None:
        return f"{real[1]}{real[2]} {real[3]}{source[real.end() :]}"
    if r"\equiv" in source and "mod" not in source:
        source = _ZERO_FUNCTION.sub(r"\1=", source)
    if r"\forall" in source:
        source = _FOR_ALL.sub(r"\\text{ for all real }\1", source)
    return source
