"""Numbers in words ("thirteen", "two thirds", 十二, 三分之二, 三万, 百分之十二点五), and literals: from digits as
written to their exact value, within the limits, or `Unreadable`.

Words for more than one number yield None.
"""

from __future__ import annotations

import re
from fractions import Fraction

from reasoning_answers.bounds import MAX_DECIMAL_EXPONENT, MAX_LITERAL_DIGITS
from reasoning_answers.patterns import regex

_UP_TO_NINETEEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_SMALL = {word: number for number, word in enumerate(_UP_TO_NINETEEN.split())}
_TENS = {
    word: 10 * tens
    for tens, word in enumerate(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2)
}
_GROUPS = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
"""Words that multiply the number below 1,000 before them."""

_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "fifteenth": 15, "sixteenth": 16, "twentieth": 20, "hundredth": 100,
}  # fmt: skip
"""Ordinals that are also the denominator of a fraction."""

_MAX_WORDS = 16
"""Longest number in English words, in words."""

_WORD = "|".join(
    (*_SMALL, *_TENS, "hundred", *_GROUPS, r"hal(?:f|ves)", *(rf"{part}s?" for part in _PARTS if part != "half"))
)
IN_WORDS = regex(rf"(?i)(?<![\w-])(?:{_WORD})(?:[\s-]+(?:and[\s-]+)?(?:a[\s-]+)?(?:{_WORD}))*(?![\w-])")
"""A run of English words that may be a number, for `number_in_words` to read."""

_CHINESE_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_TENS = {"十": 10, "百": 100, "千": 1000}
_CHINESE_GROUPS = (("亿", 10**8), ("万", 10**4))
_NUMERAL = r"([零〇一二两三四五六七八九十百千万亿]{1,24})"
"""A run of Chinese digits, tens and groups, as a pattern group."""

_CHINESE = regex(
    rf"(负?)(?:(百分之)?{_NUMERAL}(?:点([零〇一二三四五六七八九]{{1,12}}))?|(?:{_NUMERAL}又)?{_NUMERAL}分之{_NUMERAL})"
)
"""A numeral, perhaps with a decimal point or as a percentage, or a fraction, perhaps with an integer: 三又三分之二."""


def number_in_words(words: str) -> str | None:
    """Return a number in words as digits, perhaps with a fraction bar or percent sign: "two thirds" is "2/3".

    None if the words as a whole are not a number.
    """
    text = words.strip().casefold()
    if (chinese := _CHINESE.fullmatch(text)) is not None:
        return _in_chinese(*chinese.groups())
    parts = text.replace("-", " ").split()
    sign = "-" if parts[:1] in (["minus"], ["negative"]) else ""
    parts = parts[1:] if sign else parts
    if not 0 < len(parts) <= _MAX_WORDS:
        return None
    if (fraction := _fraction(parts) or _mixed_number(parts)) is not None:
        return f"{sign}{fraction[0]}/{fraction[1]}"
    value = _cardinal(_with_one(parts))
    return None if value is None else f"{sign}{value}"


def _with_one(parts: list[str]) -> list[str]:
    """Return one or more words with "one" in place of their article, even where `words_of` has dropped the article:
    "one hundred" for "a hundred" and "hundred", "one half" for "half".
    """
    if parts[0] in ("a", "an") and len(parts) > 1:
        return ["one", *parts[1:]]
    return ["one", *parts] if parts[0] in ("hundred", *_GROUPS, "half") else parts


def _fraction(parts: list[str]) -> tuple[int, int] | None:
    """Return numerator and denominator of "two thirds", split into words; None if the words are not a fraction."""
    *count, part = _with_one(parts)
    top, bottom = _cardinal(count) if count else None, _PARTS.get(part.removesuffix("s").replace("halve", "half"))
    # Singular and plural must agree: "one thirds" and "two third" are not fractions.
    return None if top is None or bottom is None or (top == 1) == part.endswith("s") else (top, bottom)


def _mixed_number(parts: list[str]) -> tuple[int, int] | None:
    """Return "two and a half" as (5, 2); None unless the words are an integer and a proper fraction joined by "and"."""
    whole, _, part = " ".join(parts).rpartition(" and ")
    if not whole:
        return None
    # `words_of` has dropped the article of "a quarter". Words such as "third" get none: they may be ordinals.
    integer, fraction = _cardinal(whole.split()), _fraction(["a", part] if part == "quarter" else part.split())
    if not integer or fraction is None or fraction[0] >= fraction[1]:
        return None
    top, bottom = fraction
    return integer * bottom + top, bottom


def _cardinal(parts: list[str]) -> int | None:
    """Return the value of "two hundred and five", split into words; None if they are not a number.

    total: the value of the groups that are complete, such as "two thousand". below: the value of the words after the
    last group, less than 1,000. last_group: the group that was read last; the next one must be smaller.
    """
    total, below, last_group = 0, 0, 10**12
    before = ""  # the word before this one
    for word in parts:
        if word == "and" and before in ("hundred", *_GROUPS):
            pass
        # A small number comes first, after a hundred, or as a digit after a ten: "twenty-five".
        elif word in _SMALL and (below % 100 == 0 or (below % 10 == 0 and below % 100 > 10 and 0 < _SMALL[word] < 10)):
            if before in _SMALL:
                return None
            below += _SMALL[word]
        elif word in _TENS and below % 100 == 0 and before not in _SMALL:
            below += _TENS[word]
        elif word == "hundred" and 0 < below < 10:
            below *= 100
        elif word in _GROUPS and 0 < below < 1000 and _GROUPS[word] < last_group:
            last_group = _GROUPS[word]
            total, below = total + below * last_group, 0
        else:
            return None
        before = word
    return None if before == "and" else total + below


def _in_chinese(
    minus: str, percent: str | None, number: str | None, decimals: str | None, whole: str | None, below: str, above: str
) -> str | None:
    """Return a Chinese numeral or fraction in digits, as LaTeX; None if it is malformed.

    The parameters are the groups of `_CHINESE`. number, decimals: the digits before and after the decimal point; None
    for a fraction, whose denominator comes first: `below` 分之 `above`, perhaps after an integer, `whole` 又.
    """
    sign = "-" if minus else ""
    if number is not None:
        value = _chinese_integer(number)
        places = "".join(str(_CHINESE_DIGITS[digit]) for digit in decimals or "")
        point = "." if places else ""
        return None if value is None else f"{sign}{value}{point}{places}" + ("\\%" if percent else "")
    bottom, top, integer = _chinese_integer(below), _chinese_integer(above), _chinese_integer(whole) if whole else 0
    if not bottom or top is None or integer is None or (integer and top >= bottom):
        return None
    return f"{sign}{integer}\\frac{{{top}}}{{{bottom}}}" if integer else f"{sign}{top}/{bottom}"


def _chinese_integer(text: str) -> int | None:
    """Return the value of a numeral such as 三万二千零五; None if its characters are not in a valid order.

    Also None for a spoken form that omits its last unit: 三万二 is 32,000, and 二百五 is 250.
    """
    for group, size in _CHINESE_GROUPS:
        if group in text:
            high, _, low = text.partition(group)
            upper = _chinese_integer(high)
            lower = _chinese_integer(low.removeprefix("零")) if low else 0
            if not upper or lower is None or lower >= size or len(low) == 1:  # 三万二
                return None
            return upper * size + lower
    if text[-2:-1] in ("百", "千") and text[-1] in _CHINESE_DIGITS:
        return None  # 二百五
    value = 0
    digit: int | None = None  # the digit still waiting for its 十, 百 or 千
    step = 10**4  # the ten, hundred or thousand that was read last; the next must be smaller
    for sign in text:
        if sign in _CHINESE_DIGITS:
            if digit:
                return None
            digit = _CHINESE_DIGITS[sign]
            continue
        tens = _CHINESE_TENS.get(sign)
        if digit is None and tens == 10:
            digit = 1  # 十 alone is 10; 百 and 千 follow a digit
        if tens is None or tens >= step or not digit:
            return None
        value, digit, step = value + digit * tens, None, tens
    return value + (digit or 0) if text else None


def numeral(words: str) -> int | None:
    """Return the whole number that `words` spell out, as in `5 (five)`; None if they do not spell one out."""
    digits = number_in_words(words)
    return int(digits) if digits is not None and digits.isdigit() else None


# --- literals ---
_POINT = "."


class Unreadable(ValueError):
    """The grammar cannot read the answer, or the answer exceeds a limit; the message says why."""


def number_value(digits: str) -> Fraction:
    """Return the exact value of a literal such as `10080`, `.5`, `1.2e5`.

    Raises `Unreadable` for too many digits or too large an exponent.
    """
    mantissa, _, exponent = digits.lower().partition("e")
    if len(mantissa) > MAX_LITERAL_DIGITS:
        raise Unreadable("too many digits")
    whole, _, fraction = mantissa.partition(_POINT)
    value = Fraction(int((whole or "0") + fraction), 10 ** len(fraction)) if fraction else Fraction(int(whole or "0"))
    if exponent:
        if len(exponent) > 6 or abs(int(exponent)) > MAX_DECIMAL_EXPONENT:
            raise Unreadable("an exponent that is too large")
        value *= Fraction(10) ** int(exponent)
    return value


def places_of(digits: str) -> int:
    """Return the decimal places of a literal as written, minus its exponent: `1.5` has 1, `1.5e3` has -2.

    -1 for an integer and a repeating decimal, which are not rounded; `1.5e2` has -1 as well. digits: the literal as in
    the text, or "repeating".
    """
    mantissa, _, exponent = digits.lower().partition("e")
    if digits == "repeating":
        return -1
    if _POINT not in mantissa and not exponent:
        return -1
    return len(mantissa.partition(_POINT)[2]) - (int(exponent) if exponent else 0)


def repeating_value(whole: str, fixed: str, block: str) -> Fraction:
    """Return the value of the decimal `whole.fixed` followed by `block` forever: 0.1(6) is 1/6.

    Raises `Unreadable` for too many digits.
    """
    if len(whole) + len(fixed) + len(block) > MAX_LITERAL_DIGITS:
        raise Unreadable("too many digits")
    head = Fraction(int((whole or "0") + fixed), 10 ** len(fixed))
    return head + Fraction(int(block), (10 ** len(block) - 1) * 10 ** len(fixed))


# --- numbers in digits ---
_LATEX_GROUPED = re.compile(r"\d{1,3}(?:(?:'|\{,\}|,\s?\\[!,]|\\[,!;: ]|~|\{\\,\}|\{ \})\s?\d{3})+(?!\d)(?:\.\d+)?")
"""A number whose digits are grouped by LaTeX commands, apostrophes or ~: `1\\,234`, `1{,}234`."""


_COMMA_GROUPED = re.compile(
    r"(?<!\d,)\d{1,3}(?:,\d{3})+(?![\d])(?!,\d)(?:\.\d+)?|(?<!\d,)\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])(?:\.\d+)?"
)
"""1,234,567, and 12,34,567 as in India."""


_SPACE_GROUPED = re.compile(r"(?<!\d,)\d{1,3}(?: \d{3})+(?![\d/]| *\\d?frac)(?:\.\d+)?")
"""1 234 567; before a fraction, 1 234/5, the digits are two numbers."""


_REPEATING = re.compile(
    r"(\d*)\.(\d*)\s?(?:\\(?:overline|bar|dot|overset\{\\?\.\})\s?(?:\{(\d+)\}|(\d))(?:(\d*)\\dot\s?\{?(\d)\}?)?|\((\d+)\))"
)
"""A repeating decimal: `0.\\overline{12}`, `0.\\bar 3`, `0.(12)`, or `0.\\dot1 4\\dot2`, with dots over the first
and the last digit of its block.
"""


_GOES_ON = re.compile(r"(\d*)\.(\d{0,12}?)(\d{1,6}?)\3{2,30}\s?(?:\.{3}|\\[cl]?dots(?![a-z])\s?)")
"""A decimal whose last digits occur three times before dots: 0.333…"""


_ONLY_DIGITS = re.compile(r"\d++(?![.,'{\\~ eE])")
"""A number that none of the patterns of grouped, repeating or decimal numbers can continue."""


_NUMBER = re.compile(r"(?:\d+(?:\.\d+|\.(?![\d.]))?|\.\d+)(?:[eE][+-]?\d+(?!\w|\.\w))?")


def number_at(source: str, start: int, *, may_group: bool) -> tuple[int, str, Fraction]:
    """Return (end, digits, value) of the number at `start`; the digits of a repeating decimal are "repeating".

    may_group: whether a plain comma or space may group digits. Raises `Unreadable`.
    """
    # Most numbers end here, which saves five searches.
    match = _ONLY_DIGITS.match(source, start) or _LATEX_GROUPED.match(source, start)
    if match is None and may_group:
        match = _COMMA_GROUPED.match(source, start) or _SPACE_GROUPED.match(source, start)
    if match is not None:
        digits = re.sub(r"[^\d.]", "", match.group())
        return match.end(), digits, number_value(digits)
    if (match := _REPEATING.match(source, start)) is not None:
        whole, fixed, braced, digit, middle, last, bracketed = match.groups()
        block = braced or digit or bracketed
        if last:
            block += (middle or "") + last
        return match.end(), "repeating", repeating_value(whole, fixed, block)
    if (match := _GOES_ON.match(source, start)) is not None:
        return match.end(), "repeating", repeating_value(*match.groups())
    if (match := _NUMBER.match(source, start)) is not None:
        return match.end(), match.group(), number_value(match.group())
    raise Unreadable("not a number")
