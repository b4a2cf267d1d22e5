"""Numbers in words: "thirteen", "two thirds", 十二, 三分之二, 三万, 百分之十二点五.

Words that are more than one number give None.
"""

from __future__ import annotations

from harness.core.patterns import regex

_SMALL = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_GROUPS = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "fifteenth": 15, "sixteenth": 16, "twentieth": 20, "hundredth": 100,
}  # fmt: skip
"""Ordinals that are also the denominator of a fraction."""

_MAX_WORDS = 16
_WORD = "|".join(
    (*_SMALL, *_TENS, "hundred", *_GROUPS, r"hal(?:f|ves)", *(rf"{part}s?" for part in _PARTS if part != "half"))
)
IN_WORDS = regex(rf"(?i)(?<![\w-])(?:{_WORD})(?:[\s-]+(?:and[\s-]+)?(?:a[\s-]+)?(?:{_WORD}))*(?![\w-])")
"""A run of English words that may be a number, for `number_in_words` to read."""

_CHINESE_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_TENS = {"十": 10, "百": 100, "千": 1000}
_CHINESE_GROUPS = (("亿", 10**8), ("万", 10**4))
_SIGNS = r"([零〇一二两三四五六七八九十百千万亿]{1,24})"
_CHINESE = regex(
    rf"(负?)(?:(百分之)?{_SIGNS}(?:点([零〇一二三四五六七八九]{{1,12}}))?|(?:{_SIGNS}又)?{_SIGNS}分之{_SIGNS})"
)
"""A numeral, perhaps with a decimal point or as a percentage, or a fraction, perhaps with an integer: 三又三分之二."""


def number_in_words(words: str) -> str | None:
    """Return a number in words as digits, perhaps with a fraction bar or percent sign: "two thirds" is "2/3".

    None if the words, taken as a whole, are no number.
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
    """Return words with "one" for their article, which `words_of` may have dropped: "a hundred", "half"."""
    if parts[0] in ("a", "an") and len(parts) > 1:
        return ["one", *parts[1:]]
    return ["one", *parts] if parts[0] in ("hundred", *_GROUPS, "half") else parts


def _fraction(parts: list[str]) -> tuple[int, int] | None:
    """Return numerator and denominator of "two thirds", split into words; None if they are no fraction."""
    *count, part = _with_one(parts)
    above, below = _cardinal(count) if count else None, _PARTS.get(part.removesuffix("s").replace("halve", "half"))
    # Singular and plural must agree: "one thirds" and "two third" are no fractions.
    return None if above is None or below is None or (above == 1) == part.endswith("s") else (above, below)


def _mixed_number(parts: list[str]) -> tuple[int, int] | None:
    """Return "two and a half" as a fraction; None if the words are no integer and a proper fraction."""
    if "and" not in parts[:-1]:
        return None
    last = len(parts) - 1 - parts[::-1].index("and")
    rest = parts[last + 1 :]
    integer, fraction = _cardinal(parts[:last]), _fraction(["a", *rest] if rest == ["quarter"] else rest)
    if not integer or fraction is None or fraction[0] >= fraction[1]:
        return None
    return integer * fraction[1] + fraction[0], fraction[1]


def _cardinal(parts: list[str]) -> int | None:
    """Return the value of "two hundred and five", split into words; None if they are no number."""
    total, below, last_group = 0, 0, 10**12
    before = ""
    for word in parts:
        if word == "and" and before in ("hundred", *_GROUPS):
            pass
        # A small number comes first, behind a hundred, or as a digit behind a ten: "twenty-five".
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
    """Return the value of a Chinese numeral or fraction, the groups of `_CHINESE`; None if it is malformed."""
    sign = minus and "-"
    if number is not None:
        value, places = _chinese_integer(number), "".join(f"{_CHINESE_DIGITS[digit]}" for digit in decimals or "")
        return None if value is None else f"{sign}{value}{places and '.'}{places}" + ("\\%" if percent else "")
    bottom, top, ones = _chinese_integer(below), _chinese_integer(above), _chinese_integer(whole) if whole else 0
    if not bottom or top is None or ones is None or (ones and top >= bottom):
        return None
    return f"{sign}{ones}\\frac{{{top}}}{{{bottom}}}" if ones else f"{sign}{top}/{bottom}"


def _chinese_integer(text: str) -> int | None:
    """Return the value of a numeral such as 三万二千零五; None if its signs are not in the order of a number."""
    for group, size in _CHINESE_GROUPS:
        if group in text:
            high, _, low = text.partition(group)
            upper = _chinese_integer(high)
            lower = _chinese_integer(low.removeprefix("零")) if low else 0
            if not upper or lower is None or lower >= size or len(low) == 1:  # 三万二 is 32,000
                return None
            return upper * size + lower
    # step: the ten, hundred or thousand that was read last; the next must be smaller.
    value, digit, step = 0, None, 10**4
    if text[-2:-1] in ("百", "千") and text[-1] in _CHINESE_DIGITS:
        return None  # 二百五 is 250
    for sign in text:
        if sign in _CHINESE_DIGITS:
            if digit:
                return None
            digit = _CHINESE_DIGITS[sign]
        # A digit stands before each of 十, 百, 千; only 十 may be without one.
        elif (
            (tens := _CHINESE_TENS.get(sign)) is not None and tens < step and (digit or (digit is None and tens == 10))
        ):
            value, digit, step = value + (1 if digit is None else digit) * tens, None, tens
        else:
            return None
    return value + (digit or 0) if text else None


def numeral(words: str) -> int | None:
    """Return the whole number that `words` name, as in `5 (five)`; None if they name none."""
    digits = number_in_words(words)
    return int(digits) if digits is not None and digits.isdigit() else None
