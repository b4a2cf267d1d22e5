"""Literals of numbers: digits as written to an exact value, within bounds, or `Unreadable`."""

from __future__ import annotations

from fractions import Fraction

from harness.answers.bounds import MAX_DECIMAL_EXPONENT, MAX_LITERAL_DIGITS

_POINT = "."


class Unreadable(ValueError):
    """The answer is not of the grammar, or exceeds one of its bounds."""


def number_value(digits: str) -> Fraction:
    """The exact value of a literal such as `10080`, `.5`, `1.2e5`. Raises `Unreadable` beyond the bounds."""
    mantissa, _, exponent = digits.lower().partition("e")
    if len(mantissa) > MAX_LITERAL_DIGITS:
        raise Unreadable("too many digits")
    whole, _, fraction = mantissa.partition(_POINT)
    value = Fraction(int((whole or "0") + fraction), 10 ** len(fraction)) if fraction else Fraction(int(whole or "0"))
    if exponent:
        if len(exponent) > 6 or abs(int(exponent)) > MAX_DECIMAL_EXPONENT:
            raise Unreadable("too large an exponent")
        value *= Fraction(10) ** int(exponent)
    return value


def places_of(digits: str) -> int:
    """Digits after the decimal point as written, less the exponent; -1 without a point."""
    mantissa, _, exponent = digits.lower().partition("e")
    if digits == "repeating":
        return -1
    if _POINT not in mantissa and not exponent:
        return -1
    return len(mantissa.partition(_POINT)[2]) - (int(exponent) if exponent else 0)


def repeating(whole: str, fixed: str, block: str) -> Fraction:
    if len(whole) + len(fixed) + len(block) > MAX_LITERAL_DIGITS:
        raise Unreadable("too many digits")
    head = Fraction(int((whole or "0") + fixed), 10 ** len(fixed))
    return head + Fraction(int(block), (10 ** len(block) - 1) * 10 ** len(fixed))


def repeated_block(digits: str) -> tuple[str, str] | None:
    """(fixed, block) when the digits end in a block that is plainly repeating: `333`, `1666`, `142857142857`."""
    for size in range(1, min(len(digits) // 2, 20) + 1):
        block = digits[-size:]
        times = 1
        while digits.endswith(block * (times + 1)):
            times += 1
        if times >= (3 if size == 1 else 2):
            return digits[: len(digits) - size * times], block
    return None
