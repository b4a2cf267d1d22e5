"""Numbers in words: "thirteen", "two thirds", 十二, 三分之二, 三万, 百分之十二点五.

Words that are more than one number give None.
"""

from __future__ import annotations

from math import prod

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

_MULTIPLIES = regex(
    r"""(?xi) (?:
      [^\W\d_]*(?:drit|vier|f(?:ü|ue)nf|sechs|sieb|sieben|ach|neun|zehn|elf|zw(?:ö|oe)lf|(?:[zß]ig|hundert|tausend|ion)s)teln?
        |hälften?|haelften?|dutzenden?|hundert(?:en?)?|tausend(?:en?)?|(?:m|b|tr)illi(?:on|ard)en|promille|halbe[nrs]?
    | [^\W\d_]*i[eè]mes?|tiers|quarts?|demi[es]*|douzaines?|dizaines?|quinzaines?|vingtaines?|centaines?|milliers?
        |mille?|milliards?|(?:m|b|tr)illions?
    | [^\W\d_]*[eé]sim[oa]s?|[^\W\d_]*[eé]cim[oa]s?|tercios?|terceras?|cuart[oa]s?|medi[oa]s?|mitad(?:es)?|quint[oa]s?
        |sext[oa]s?|s[eé]ptim[oa]s?|octav[oa]s?|noven[oa]s?|onceav[oa]s?|[^\W\d_]*av[oa]s|docenas?|decenas?|centenas?
        |centenares|millar(?:es)?|(?:m|b|tr)ill(?:ón|ones)
    | (?:eleven|twelf|[a-z]*teen|[a-z]*tie|hundred|thousand|[a-z]+illion)ths | halves | doubles | triples
    )"""
)
"""A fraction or a numeral of scale, by its ending: 3 Fünftel, 3 dixièmes, 3 tercios are not 3."""

_CHINESE_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_TENS = {"十": 10, "百": 100, "千": 1000}
_CHINESE_GROUPS = (("亿", 10**8), ("万", 10**4))
_CHINESE = regex(
    r"负?(?:百分之)?[零〇一二两三四五六七八九十百千万亿]{1,24}(?:点[零〇一二三四五六七八九]{1,12})?"
    r"|负?[零〇一二两三四五六七八九十百千万亿]{1,24}分之[零〇一二两三四五六七八九十百千万亿]{1,24}"
)


def number_in_words(words: str) -> str | None:
    """Return a number in words as digits, perhaps with a fraction bar or percent sign: "two thirds" is "2/3".

    None if the words, taken as a whole, are no number.
    """
    text = words.strip().casefold()
    if _CHINESE.fullmatch(text):
        return _in_chinese(text)
    parts = text.replace("-", " ").split()
    sign = "-" if parts[:1] in (["minus"], ["negative"]) else ""
    parts = parts[1:] if sign else parts
    if not 0 < len(parts) <= _MAX_WORDS:
        return None
    if parts in (["half"], ["a", "half"]):
        return f"{sign}1/2"
    if (mixed := _mixed_number(parts)) is not None:
        return sign + mixed
    if parts[0] in ("a", "an") and len(parts) > 1:
        parts = ["one", *parts[1:]]
    elif parts[0] in ("hundred", *_GROUPS):
        parts = ["one", *parts]  # "a hundred" may come without its article, which `words_of` drops
    below = _PARTS.get(parts[-1].removesuffix("s").replace("halve", "half"))
    if below is not None and len(parts) > 1:
        above = _cardinal(parts[:-1])
        # Singular and plural must agree: "one thirds" and "two third" are no fractions.
        return None if above is None or (above == 1) == parts[-1].endswith("s") else f"{sign}{above}/{below}"
    value = _cardinal(parts)
    return None if value is None else f"{sign}{value}"


def _mixed_number(parts: list[str]) -> str | None:
    """Return "two and a half", split into words, as a fraction; None if the words are no integer and a proper fraction.

    "One hundred and two thirds" may be 102/3, and gives None.
    """
    if "and" not in parts:
        return None
    last_and = len(parts) - 1 - parts[::-1].index("and")
    whole, rest = parts[:last_and], parts[last_and + 1 :]
    if rest[-1:] in (["half"], ["quarter"]) and len(rest) == 1:
        rest = ["one", *rest]  # "two and a half" may come without its article, which `words_of` drops
    above = _cardinal(["one" if word == "a" else word for word in rest[:-1]])
    below = _PARTS.get(rest[-1].removesuffix("s").replace("halve", "half")) if len(rest) > 1 else None
    integer = _cardinal(whole) if whole and whole[-1] not in ("hundred", *_GROUPS) else None
    if integer is None or not above or below is None or above >= below or (above == 1) == rest[-1].endswith("s"):
        return None
    return f"{integer * below + above}/{below}"


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


def _in_chinese(text: str) -> str | None:
    """Return the value of a Chinese numeral or fraction; None if it is malformed."""
    sign, text = ("-", text[1:]) if text[0] == "负" else ("", text)
    if text.startswith("百分之"):
        hundredths = _chinese_decimal(text.removeprefix("百分之"))
        return None if hundredths is None else f"{sign}{hundredths}\\%"
    below, mark, above = text.partition("分之")
    if not mark:
        value = _chinese_decimal(text)
        return None if value is None else f"{sign}{value}"
    bottom, top = _chinese_integer(below), _chinese_integer(above)
    if not bottom or top is None:
        return None
    return f"{sign}{top}\\%" if bottom == 100 else f"{sign}{top}/{bottom}"


def _chinese_decimal(text: str) -> str | None:
    """Return the digits of a numeral, perhaps with a decimal point: 12.5 for 十二点五; None if it is malformed."""
    integer, point, digits = text.partition("点")
    value = _chinese_integer(integer)
    return (
        None if value is None else f"{value}{point and '.'}{''.join(str(_CHINESE_DIGITS[digit]) for digit in digits)}"
    )


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


_SCALE_OF = {"百": 100, "千": 1_000, "万": 10**4, "亿": 10**8}
_SCALES = r"[百千万亿]{1,3}(?![米克瓦])"
_JOINED = regex(rf"(?<![\d.,百千万亿])\d{{1,9}}{_SCALES}(?:\s?零?\d{{1,9}}(?:{_SCALES})?){{1,4}}(?![\d.百千万亿])")
_TERM_OF_JOINED = regex(r"(零?)(\d+)([百千万亿]*)")


def with_joined_scales(text: str) -> str:
    """Return a text with numbers such as 3亿5000万 and 3万5000 in plain digits: 350000000 and 35000.

    Each term must be less than the scale before it. A last term without a scale has 零 before it, or as many digits as
    the scale has zeros: 3万5 may be 35000 or 30005, and stays.
    """
    return _JOINED.sub(lambda match: _value_of_joined(match[0]) or match[0], text)


def _value_of_joined(text: str) -> str | None:
    """Return the digits of 3亿5000万; None if its terms do not go down."""
    total, above = 0, 10**16
    for zero, digits, scales in _TERM_OF_JOINED.findall(text):
        scale = prod(_SCALE_OF[sign] for sign in scales)
        value = int(digits) * scale
        if value >= above or scale >= above or not (scales or zero or 10 ** len(digits) == above):
            return None
        total, above = total + value, scale
    return str(total)


def numeral(words: str) -> int | None:
    """Return the whole number that `words` name, as in `5 (five)`; None if they name none."""
    digits = number_in_words(words)
    return int(digits) if digits is not None and digits.isdigit() else None


def multiplies(word: str) -> bool:
    """Whether a word behind a number is a fraction or a numeral of scale in English, German, Spanish or French."""
    return _MULTIPLIES.fullmatch(word) is not None
