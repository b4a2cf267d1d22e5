"""Literals of numbers: from the digits as written to their exact value, within the bounds, or `Unreadable`."""

from __future__ import annotations

from fractions import Fraction

from harness.answers.bounds import MAX_DECIMAL_EXPONENT, MAX_LITERAL_DIGITS

_POINT = "."


class Unreadable(ValueError):
    """The grammar cannot read the answer, or the answer exceeds a bound; the message names the obstacle."""


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
            raise Unreadable("too large an exponent")
        value *= Fraction(10) ** int(exponent)
    return value


def places_of(digits: str) -> int:
    """Return the decimal places of a literal as written, minus its exponent: `1.5` has 1, `1.5e3` has -2.

    -1 for an integer and a repeating decimal, which are not rounded; `1.5e2` has -1 too. digits: the literal as it
    stands in the text, or "repeating".
    """
    mantissa, _, exponent = digits.lower().partition("e")
    if digits == "repeating":
        return -1
    if _POINT not in mantissa and not exponent:
        return -1
    return len(mantissa.partition(_POINT)[2]) - (int(exponent) if exponent else 0)


def repeating_value(whole: str, fixed: str, block: str) -> Fraction:
    """Return the value of the decimal `whole.fixed` followed by `block` for ever: 0.1(6) is 1/6.

    Raises `Unreadable` for too many digits.
    """
    if len(whole) + len(fixed) + len(block) > MAX_LITERAL_DIGITS:
        raise Unreadable("too many digits")
    head = Fraction(int((whole or "0") + fixed), 10 ** len(fixed))
    return head + Fraction(int(block), (10 ** len(block) - 1) * 10 ** len(fixed))
