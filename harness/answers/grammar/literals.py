"""Literals of numbers: from the digits as written to their exact value, within the bounds, or `Unreadable`."""

from __future__ import annotations

from fractions import Fraction

from harness.answers.bounds import MAX_DECIMAL_EXPONENT, MAX_LITERAL_DIGITS

_POINT = "."


class Unreadable(ValueError):
    """The grammar cannot read the answer, or the answer exceeds a bound; the message names the obstacle."""


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
    """Decimal places of a literal as written, less its exponent (`1.5e3` has -2); -1 for an integer or a fraction."""
    mantissa, _, exponent = digits.lower().partition("e")
    if digits == "repeating":
        return -1
    if _POINT not in mantissa and not exponent:
        return -1
    return len(mantissa.partition(_POINT)[2]) - (int(exponent) if exponent else 0)


def repeating(whole: str, fixed: str, block: str) -> Fraction:
    """The value of `whole.fixed` with `block` repeated without end. Raises `Unreadable` beyond the bounds."""
    if len(whole) + len(fixed) + len(block) > MAX_LITERAL_DIGITS:
        raise Unreadable("too many digits")
    head = Fraction(int((whole or "0") + fixed), 10 ** len(fixed))
    return head + Fraction(int(block), (10 ** len(block) - 1) * 10 ** len(fixed))


def repeated_block(digits: str) -> tuple[str, str] | None:
    """(digits before, block) of digits that end in a repeated block: `333`, `1666`, `142857142857`; else None.

    A single digit must stand three times or more, a longer block (up to 20 digits) twice.
    """
    for size in range(1, min(len(digits) // 2, 20) + 1):
        block = digits[-size:]
        count = 1
        while digits.endswith(block * (count + 1)):
            count += 1
        if count >= (3 if size == 1 else 2):
            return digits[: len(digits) - size * count], block
    return None
