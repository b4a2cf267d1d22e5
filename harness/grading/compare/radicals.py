r"""Exact values of closed forms: rationals, radicals, powers of pi and e, and the imaginary unit.

A value is a sum of rational multiples of monomials. A monomial is a product of primes with exponents between 0 and 1, a
power of pi, a power of e, and perhaps i. Equal sums are equal values. Different sums are different values, for distinct
monomials are linearly independent over the rationals: radicals by a theorem of Besicovitch (1940), powers of pi and e
by the conjecture (part of Schanuel's) that the two are algebraically independent.

    √12 + 3i/π  =  2 · 3^(1/2) + 3 · π^(-1) · i  =  {(3^½, π⁰, e⁰, i⁰): 2,  (1, π⁻¹, e⁰, i¹): 3}

A value without such a form raises `NotExact`.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt, prod
from typing import NamedTuple

from harness.grading.bounds import MAX_BITS, MAX_TERMS, MAX_TRIAL_DIVISOR

Radical = tuple[tuple[int, Fraction], ...]


class Monomial(NamedTuple):
    """A product of powers of primes, pi, e and i. radical: pairs (prime, exponent), ascending, 0 < exponent < 1.

    pi, e, i: the exponents of these three; that of i is 0 or 1.
    """

    radical: Radical
    pi: Fraction | int
    e: Fraction | int
    i: int


ONE = Monomial((), 0, 0, 0)  # ints, since they equal fractions and hash faster
Value = dict[Monomial, Fraction]
"""Monomial → its coefficient, never 0; the empty dict is the value 0."""


class NotExact(ValueError):
    """The node has no exact form here, or computing it would exceed a bound."""


class Undefined(NotExact):
    """The node has no value at all: a division by zero, or zero to a power that is not positive."""


def rational(value: Value) -> Fraction | None:
    """Return `value` as a rational number; None if it is irrational."""
    if not value:
        return Fraction(0)
    return value.get(ONE) if len(value) == 1 else None


def freeze(value: Value) -> str:
    """Return a text that is the same for equal values and different for different ones."""
    plain = rational(value)
    if plain is not None:
        return _plain(plain)
    parts = []
    for monomial in sorted(value):
        radical = "".join(f"*{prime}^{exponent}" for prime, exponent in monomial.radical)
        powers = (f"*pi^{monomial.pi}" if monomial.pi else "") + (f"*e^{monomial.e}" if monomial.e else "")
        parts.append(f"{_plain(value[monomial])}{radical}{powers}{'*i' if monomial.i else ''}")
    return " + ".join(parts)


def _plain(number: Fraction) -> str:
    """Return `number` in decimal digits, or in hexadecimal if Python refuses to write so many decimal digits."""
    top, bottom = number.numerator, number.denominator
    if max(top.bit_length(), bottom.bit_length()) > 10_000:
        return f"{top:#x}/{bottom:#x}"
    return str(number)


def of(number: Fraction | int) -> Value:
    """Return the value of a rational number."""
    return {ONE: number if type(number) is Fraction else Fraction(number)} if number else {}


def add(left: Value, right: Value) -> Value:
    """Return the sum of two values."""
    total = dict(left)
    for monomial, coefficient in right.items():
        together = total[monomial] + coefficient if monomial in total else coefficient
        if together:
            total[monomial] = together
        else:
            total.pop(monomial, None)
    return total


def scale(value: Value, factor: Fraction) -> Value:
    """Return the value times a rational number."""
    return {monomial: coefficient * factor for monomial, coefficient in value.items()} if factor else {}


def multiply(left: Value, right: Value) -> Value:
    """Return the product of two values. Raises `NotExact` beyond the bounds."""
    if len(left) * len(right) > MAX_TERMS * 10:
        raise NotExact("too many terms")
    for single, sums in ((left, right), (right, left)):
        if len(single) == 1 and (factor := single.get(ONE)):  # a rational factor, by far the most frequent
            scaled = scale(sums, factor)
            for coefficient in scaled.values():
                _check_size(coefficient)
            return scaled
    total: Value = {}
    for left_monomial, left_coefficient in left.items():
        for right_monomial, right_coefficient in right.items():
            monomial, factor = _combine(left_monomial, right_monomial)
            coefficient = total.get(monomial, Fraction(0)) + left_coefficient * right_coefficient * factor
            _check_size(coefficient)
            if coefficient:
                total[monomial] = coefficient
            else:
                total.pop(monomial, None)
    return total


def divide(left: Value, right: Value) -> Value:
    """Return the quotient of two values. A divisor of several terms is multiplied by its conjugates until one term is
    left.

    Raises `Undefined`: the divisor is 0. Raises `NotExact`: twelve conjugates do not suffice.
    """
    if not right:
        raise Undefined("division by zero")
    for _ in range(12):
        if len(right) == 1:
            ((monomial, coefficient),) = right.items()
            return multiply(left, {_inverse(monomial)[0]: _inverse(monomial)[1] / coefficient})
        conjugate = _conjugate(right)
        left, right = multiply(left, conjugate), multiply(right, conjugate)
        if not right:
            raise NotExact("a vanishing conjugate")
    raise NotExact("no conjugate")


def power(base: Value, exponent: Fraction) -> Value:
    """Return `base` to a rational exponent: a real root if there is one, as -2 for ∛-8, else the principal value.

    Raises `Undefined`: zero to a power that is not positive. Raises `NotExact`: the result has no exact form here.
    """
    if exponent.denominator == 1:
        return _whole_power(base, exponent.numerator)
    plain = rational(base)
    if plain is not None:
        return _radical(plain, exponent)
    if len(base) == 1:
        ((monomial, coefficient),) = base.items()
        # (ab)^r is a^r · b^r only for positive factors.
        if monomial.i == 0 and coefficient > 0:
            result = _radical(coefficient, exponent)
            for prime, part in monomial.radical:
                result = multiply(result, _prime_power(prime, part * exponent))
            return multiply(result, {Monomial((), monomial.pi * exponent, monomial.e * exponent, 0): Fraction(1)})
    if exponent.denominator == 2:
        return _whole_power(_denest(base), exponent.numerator)
    raise NotExact("a root of a sum")


# --- pieces ---
def _combine(left: Monomial, right: Monomial) -> tuple[Monomial, Fraction]:
    """Return the product of two monomials as a monomial and a rational factor: √6 · √2 is √3 times 2."""
    factor = Fraction(1)
    imaginary = left.i + right.i
    if imaginary == 2:
        imaginary, factor = 0, -factor
    if not left.radical:
        radical = right.radical
    elif not right.radical:
        radical = left.radical
    else:
        exponents = dict(left.radical)
        for prime, exponent in right.radical:
            exponents[prime] = exponents.get(prime, Fraction(0)) + exponent
        proper = []  # exponents below 1
        for prime, exponent in sorted(exponents.items()):
            if exponent >= 1:
                factor *= prime
                exponent -= 1
            if exponent:
                proper.append((prime, exponent))
        radical = tuple(proper)
    return Monomial(radical, left.pi + right.pi, left.e + right.e, imaginary), factor


def _inverse(monomial: Monomial) -> tuple[Monomial, Fraction]:
    """Return 1 / `monomial` as a monomial and a rational factor: 1/√2 is √2 times 1/2."""
    factor = Fraction(-1) if monomial.i else Fraction(1)
    for prime, _ in monomial.radical:
        factor /= prime
    radical = tuple((prime, 1 - exponent) for prime, exponent in monomial.radical)
    return Monomial(radical, -monomial.pi, -monomial.e, monomial.i), factor


def _conjugate(value: Value) -> Value:
    """Return `value` with the sign of i, or else of one square root, changed: 1 - √2 for 1 + √2.

    The product of `value` and its conjugate lacks that root. Raises `NotExact` if `value` holds pi, e or only higher
    roots.
    """
    # No conjugate removes pi or e, which are no roots.
    if any(monomial.pi or monomial.e for monomial in value):
        raise NotExact("no exact quotient by a sum that holds pi or e")
    if any(monomial.i for monomial in value):
        return {monomial: -c if monomial.i else c for monomial, c in value.items()}
    half = Fraction(1, 2)
    for monomial in value:
        for prime, exponent in monomial.radical:
            exponents = {power for m in value for p, power in m.radical if p == prime}
            if exponent == half and exponents == {half}:
                return {m: -c if any(p == prime for p, _ in m.radical) else c for m, c in value.items()}
    raise NotExact("higher roots as a divisor")


def _check_size(number: Fraction) -> None:
    """Raise `NotExact` for a number beyond `MAX_BITS`."""
    if number.numerator.bit_length() > MAX_BITS or number.denominator.bit_length() > MAX_BITS:
        raise NotExact("too large")


def _whole_power(base: Value, exponent: int) -> Value:
    """Return `base` to an integer exponent, its size estimated first. Raises `Undefined`, `NotExact`."""
    if not base:
        if exponent <= 0:
            raise Undefined("a power of zero")
        return {}
    if exponent < 0:
        return divide(of(1), _whole_power(base, -exponent))
    if len(base) > 1 and exponent > 64:
        raise NotExact("a high power of a sum")
    largest = max(max(abs(c.numerator), c.denominator).bit_length() for c in base.values())
    # A coefficient of ±1 without a radical, as in i or π, keeps its size at any power.
    if largest * exponent > MAX_BITS and not (largest == 1 and len(base) == 1 and not next(iter(base)).radical):
        raise NotExact("too large a power")
    if exponent.bit_length() > 64:
        raise NotExact("too large an exponent")
    if len(base) == 1:
        ((monomial, coefficient),) = base.items()
        result = of(coefficient**exponent) if abs(coefficient) != 1 else of(1 if exponent % 2 == 0 else coefficient)
        for prime, part in monomial.radical:
            result = multiply(result, _prime_power(prime, part * exponent))
        sign = (1, 1, -1, -1)[exponent % 4] if monomial.i else 1
        rest = Monomial((), monomial.pi * exponent, monomial.e * exponent, monomial.i * (exponent % 2))
        return multiply(result, {rest: Fraction(sign)})
    result = of(1)
    square = base
    while exponent:
        if exponent & 1:
            result = multiply(result, square)
        exponent >>= 1
        if exponent:
            square = multiply(square, square)
    return result


def _prime_power(prime: int, exponent: Fraction) -> Value:
    """Return `prime ** exponent`: its whole part as a coefficient, the rest as a radical."""
    whole = exponent.numerator // exponent.denominator
    if abs(whole) * prime.bit_length() > MAX_BITS:
        raise NotExact("too large a power")
    rest = exponent - whole
    radical = ((prime, rest),) if rest else ()
    return {Monomial(radical, 0, 0, 0): Fraction(prime) ** whole}


def _radical(number: Fraction, exponent: Fraction) -> Value:
    """Return `number ** exponent`; a negative number has an imaginary square root, but a real cube root."""
    if number == 0:
        if exponent <= 0:
            raise Undefined("a power of zero")
        return {}
    result = of(1)
    if number < 0:
        if exponent.denominator == 2:
            turns = exponent.numerator % 4
            result = {ONE._replace(i=1): Fraction(1 if turns == 1 else -1)}
        elif exponent.denominator % 2 == 1:
            # The real root, as in school: the cube root of -8 is -2.
            result = of(-1 if exponent.numerator % 2 else 1)
        else:
            raise NotExact("a complex root")
        number = -number
    for part, sign in ((number.numerator, 1), (number.denominator, -1)):
        for prime, count in factors(part):
            result = multiply(result, _prime_power(prime, count * sign * exponent))
    return result


def factors(number: int) -> list[tuple[int, int]]:
    """Factor a positive integer into (prime, exponent), primes ascending. Raises `NotExact` if it is hard to factor."""
    if number.bit_length() > 400:
        raise NotExact("too large a radicand")
    pairs = []
    divisor = 2
    while divisor * divisor <= number:
        if divisor > MAX_TRIAL_DIVISOR:
            root = isqrt(number)
            if root * root == number and root < MAX_TRIAL_DIVISOR**2:
                pairs.append((root, 2))
                return pairs
            raise NotExact("the number under the root is too hard to factor")
        count = 0
        while number % divisor == 0:
            number //= divisor
            count += 1
        if count:
            pairs.append((divisor, count))
        divisor += 1 if divisor == 2 else 2
    if number > 1:
        pairs.append((number, 1))
    return pairs


def _denest(value: Value) -> Value:
    r"""Return the square root of a + b√c if it is √x ± √y with rational x and y: \sqrt{3+2\sqrt2} = 1+\sqrt2.

    Then x, y = (a ± √(a² − b²c)) / 2. Raises `NotExact` if these are not rational or the value has another form.
    """
    if len(value) != 2 or ONE not in value:
        raise NotExact("a nested root")
    a = value[ONE]
    ((monomial, b),) = ((m, c) for m, c in value.items() if m != ONE)
    if monomial.i or monomial.pi or monomial.e or any(exponent != Fraction(1, 2) for _, exponent in monomial.radical):
        raise NotExact("a nested root")
    # A radical of square roots only, so that its square is the product of its primes.
    discriminant = a * a - b * b * prod(prime for prime, _ in monomial.radical)
    root = _square_root(discriminant)
    if root is None or a <= 0:
        raise NotExact("a nested root")
    x, y = _radical((a + root) / 2, Fraction(1, 2)), _radical((a - root) / 2, Fraction(1, 2))
    return add(x, y if b > 0 else scale(y, Fraction(-1)))


def _square_root(number: Fraction) -> Fraction | None:
    """Return the square root of a rational number if it is rational, else None."""
    if number < 0:
        return None
    top, bottom = isqrt(number.numerator), isqrt(number.denominator)
    return Fraction(top, bottom) if top * top == number.numerator and bottom * bottom == number.denominator else None
