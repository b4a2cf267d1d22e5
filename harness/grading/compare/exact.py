r"""Exact values of closed forms: rationals, radicals, powers of pi and e, and the imaginary unit.

A value is a sum of rational multiples of monomials. A monomial is a product of primes to exponents in (0, 1), a power
of pi, a power of e and possibly i; distinct monomials are linearly independent over the rationals (for the radicals
a theorem of Besicovitch; pi and e are taken to be independent). So two values are equal exactly when their sums are,
and the sum is a canonical form. What has no such form raises `NotExact` and is left to numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb, factorial, gcd, isqrt, lcm, prod
from typing import NamedTuple

from harness.answers.bounds import MAX_DEPTH
from harness.answers.grammar.tree import Node, num
from harness.grading.bounds import MAX_BITS, MAX_FACTORIAL, MAX_RANGE, MAX_TERMS, MAX_TRIAL_DIVISOR

Radical = tuple[tuple[int, Fraction], ...]


class Monomial(NamedTuple):
    """prod(prime ** exponent) · pi**pi · e**e · i**i with 0 < exponent < 1 and i in (0, 1)."""

    radical: Radical
    pi: Fraction
    e: Fraction
    i: int


ONE = Monomial((), Fraction(0), Fraction(0), 0)
Value = dict[Monomial, Fraction]


class NotExact(ValueError):
    """The node has no exact form here, or a bound would be broken."""


class Undefined(NotExact):
    """Division by zero, infinity minus infinity: the node has no value at all."""


def exact(node: Node, _depth: int = 0) -> Value:
    """The canonical value of a closed form. Raises `NotExact`, `Undefined`."""
    if _depth > 4 * MAX_DEPTH:
        raise NotExact("nested too deeply")
    rule = _RULES.get(node.op)
    if rule is None:
        raise NotExact(node.op)
    value = rule(node, _depth + 1)
    if len(value) > MAX_TERMS:
        raise NotExact("too many terms")
    return value


def rational(value: Value) -> Fraction | None:
    """The rational number that `value` is, or None."""
    if not value:
        return Fraction(0)
    return value.get(ONE) if len(value) == 1 else None


def freeze(value: Value) -> str:
    """A text that is the same for equal values and no others."""
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
    """Decimal, or hexadecimal where the interpreter refuses to write that many decimal digits."""
    top, bottom = number.numerator, number.denominator
    if max(top.bit_length(), bottom.bit_length()) > 10_000:
        return f"{top:#x}/{bottom:#x}"
    return str(number)


def of(number: Fraction | int) -> Value:
    """The value of a rational number."""
    return {ONE: Fraction(number)} if number else {}


def add(left: Value, right: Value) -> Value:
    """Sum."""
    total = dict(left)
    for monomial, coefficient in right.items():
        together = total.get(monomial, Fraction(0)) + coefficient
        if together:
            total[monomial] = together
        else:
            total.pop(monomial, None)
    return total


def scale(value: Value, factor: Fraction) -> Value:
    """Rational multiple."""
    return {monomial: coefficient * factor for monomial, coefficient in value.items()} if factor else {}


def multiply(left: Value, right: Value) -> Value:
    """Product. Raises `NotExact` beyond the bounds."""
    if len(left) * len(right) > MAX_TERMS * 10:
        raise NotExact("too many terms")
    total: Value = {}
    for one, a in left.items():
        for other, b in right.items():
            monomial, factor = _combine(one, other)
            coefficient = total.get(monomial, Fraction(0)) + a * b * factor
            _check_size(coefficient)
            if coefficient:
                total[monomial] = coefficient
            else:
                total.pop(monomial, None)
    return total


def divide(left: Value, right: Value) -> Value:
    """Quotient; a divisor of several terms is made rational by its conjugates. Raises `Undefined`, `NotExact`."""
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
    """`base` to a rational exponent. Raises `Undefined`, `NotExact`."""
    if exponent.denominator == 1:
        return _whole_power(base, exponent.numerator)
    plain = rational(base)
    if plain is not None:
        return _radical(plain, exponent)
    if len(base) == 1:
        ((monomial, coefficient),) = base.items()
        if monomial.i == 0 and coefficient > 0:
            primes = [((prime, Fraction(1)), e * exponent) for prime, e in monomial.radical]
            result = _radical(coefficient, exponent)
            for (prime, _), whole in primes:
                result = multiply(result, _prime_power(prime, whole))
            return multiply(result, {Monomial((), monomial.pi * exponent, monomial.e * exponent, 0): Fraction(1)})
    if exponent.denominator == 2:
        return _whole_power(_denested(base), exponent.numerator)
    raise NotExact("a root of a sum")


# --- pieces ---
def _combine(one: Monomial, other: Monomial) -> tuple[Monomial, Fraction]:
    factor = Fraction(1)
    imaginary = one.i + other.i
    if imaginary == 2:
        imaginary, factor = 0, -factor
    if not one.radical:
        radical = other.radical
    elif not other.radical:
        radical = one.radical
    else:
        exponents = dict(one.radical)
        for prime, exponent in other.radical:
            exponents[prime] = exponents.get(prime, Fraction(0)) + exponent
        kept = []
        for prime, exponent in sorted(exponents.items()):
            if exponent >= 1:
                factor *= prime
                exponent -= 1
            if exponent:
                kept.append((prime, exponent))
        radical = tuple(kept)
    return Monomial(radical, one.pi + other.pi, one.e + other.e, imaginary), factor


def _inverse(monomial: Monomial) -> tuple[Monomial, Fraction]:
    factor = Fraction(-1) if monomial.i else Fraction(1)
    for prime, _ in monomial.radical:
        factor /= prime
    radical = tuple((prime, 1 - exponent) for prime, exponent in monomial.radical)
    return Monomial(radical, -monomial.pi, -monomial.e, monomial.i), factor


def _conjugate(value: Value) -> Value:
    """`value` with one square root, or i, of opposite sign, so that it vanishes from the product."""
    if any(monomial.pi or monomial.e for monomial in value):
        raise NotExact("a sum with pi or e as a divisor")
    if any(monomial.i for monomial in value):
        return {monomial: -c if monomial.i else c for monomial, c in value.items()}
    half = Fraction(1, 2)
    for monomial in value:
        for prime, exponent in monomial.radical:
            if exponent == half and all(other == half for m in value for p, other in m.radical if p == prime):
                return {m: -c if any(p == prime for p, _ in m.radical) else c for m, c in value.items()}
    raise NotExact("higher roots as a divisor")


def _check_size(number: Fraction) -> None:
    if number.numerator.bit_length() > MAX_BITS or number.denominator.bit_length() > MAX_BITS:
        raise NotExact("too large")


def _whole_power(base: Value, exponent: int) -> Value:
    if not base:
        if exponent <= 0:
            raise Undefined("a power of zero")
        return {}
    if exponent < 0:
        return divide(of(1), _whole_power(base, -exponent))
    if len(base) > 1 and exponent > 64:
        raise NotExact("a high power of a sum")
    largest = max(max(abs(c.numerator), c.denominator).bit_length() for c in base.values())
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
    whole = exponent.numerator // exponent.denominator
    if abs(whole) * prime.bit_length() > MAX_BITS:
        raise NotExact("too large a power")
    rest = exponent - whole
    radical = ((prime, rest),) if rest else ()
    return {Monomial(radical, Fraction(0), Fraction(0), 0): Fraction(prime) ** whole}


def _radical(number: Fraction, exponent: Fraction) -> Value:
    """`number ** exponent`, principal value: a negative number has an imaginary square root."""
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
            # The real root, as school mathematics has it: the cube root of -8 is -2.
            result = of(-1 if exponent.numerator % 2 else 1)
        else:
            raise NotExact("a complex root")
        number = -number
    for part, sign in ((number.numerator, 1), (number.denominator, -1)):
        for prime, count in _factors(part):
            result = multiply(result, _prime_power(prime, count * sign * exponent))
    return result


def _factors(number: int) -> list[tuple[int, int]]:
    if number.bit_length() > 400:
        raise NotExact("too large a radicand")
    found = []
    divisor = 2
    while divisor * divisor <= number:
        if divisor > MAX_TRIAL_DIVISOR:
            root = isqrt(number)
            if root * root == number and root < MAX_TRIAL_DIVISOR**2:
                found.append((root, 2))
                return found
            raise NotExact("a radicand that is hard to factor")
        count = 0
        while number % divisor == 0:
            number //= divisor
            count += 1
        if count:
            found.append((divisor, count))
        divisor += 1 if divisor == 2 else 2
    if number > 1:
        found.append((number, 1))
    return found


def _denested(value: Value) -> Value:
    r"""The square root of a + b√c when it is √x + √y with rational x and y: \sqrt{3+2\sqrt2} = 1+\sqrt2."""
    if len(value) != 2 or ONE not in value:
        raise NotExact("a nested root")
    a = value[ONE]
    ((monomial, b),) = ((m, c) for m, c in value.items() if m != ONE)
    if monomial.i or monomial.pi or monomial.e or any(exponent != Fraction(1, 2) for _, exponent in monomial.radical):
        raise NotExact("a nested root")
    discriminant = a * a - b * b * prod(prime for prime, _ in monomial.radical)
    root = _square_root(discriminant)
    if root is None or a <= 0:
        raise NotExact("a nested root")
    x, y = _radical((a + root) / 2, Fraction(1, 2)), _radical((a - root) / 2, Fraction(1, 2))
    return add(x, y if b > 0 else scale(y, Fraction(-1)))


def _square_root(number: Fraction) -> Fraction | None:
    if number < 0:
        return None
    top, bottom = isqrt(number.numerator), isqrt(number.denominator)
    return Fraction(top, bottom) if top * top == number.numerator and bottom * bottom == number.denominator else None


# --- one rule for each kind of node ---
def _add(node: Node, depth: int) -> Value:
    total: Value = {}
    for term in node.args:
        total = add(total, exact(term, depth))
    return total


def _mul(node: Node, depth: int) -> Value:
    result = of(1)
    for factor in node.args:
        result = multiply(result, exact(factor, depth))
    return result


def _pow(node: Node, depth: int) -> Value:
    base, exponent = node.args
    raised = rational(exact(exponent, depth))
    if base.op == "const" and base.args[0] == "e":
        if raised is None:
            raise NotExact("a power of e")
        return {Monomial((), Fraction(0), raised, 0): Fraction(1)}
    if raised is None:
        raise NotExact("an irrational exponent")
    if raised == 0 and (value := exact(base, depth)):
        del value
        return of(1)
    return power(exact(base, depth), raised)


def _root(node: Node, depth: int) -> Value:
    degree = rational(exact(node.args[0], depth))
    if degree is None or degree.denominator != 1 or not 0 < degree.numerator < 1000:
        raise NotExact("the degree of a root")
    return power(exact(node.args[1], depth), 1 / degree)


def _const(node: Node, _depth: int) -> Value:
    name = node.args[0]
    if name == "pi":
        return {ONE._replace(pi=Fraction(1)): Fraction(1)}
    if name == "e":
        return {ONE._replace(e=Fraction(1)): Fraction(1)}
    if name == "i":
        return {ONE._replace(i=1): Fraction(1)}
    raise NotExact(name)


def _base(node: Node, _depth: int) -> Value:
    digits, base = node.args
    value = digits_in_base(digits, base)
    if value is None:
        raise NotExact("digits that the base has not")
    return of(value)


def digits_in_base(digits: str, base: int) -> Fraction | None:
    """The value of `digits` written in `base` (2 to 36), or None."""
    if not 2 <= base <= 36 or len(digits) > 400:
        return None
    whole, _, fraction = digits.lower().partition(".")
    try:
        return Fraction(int(whole + fraction, base), base ** len(fraction))
    except ValueError:
        return None


def _fn(node: Node, depth: int) -> Value:
    name, *arguments = node.args
    rule = _FUNCTIONS.get(name)
    if rule is None:
        raise NotExact(name)
    values = [rational(exact(argument, depth)) for argument in arguments]
    if any(value is None for value in values):
        raise NotExact(name)
    try:
        return rule(*(value for value in values if value is not None))
    except TypeError as error:  # a function written with the wrong number of arguments
        raise NotExact(name) from error


def _integers(*values: Fraction) -> list[int]:
    if any(value.denominator != 1 for value in values):
        raise NotExact("integers expected")
    return [value.numerator for value in values]


def _factorial(value: Fraction) -> Value:
    (number,) = _integers(value)
    if number < 0 or number > MAX_FACTORIAL:
        raise NotExact("a factorial")
    return of(factorial(number))


def _binomial(upper: Fraction, lower: Fraction) -> Value:
    n, k = _integers(upper, lower)
    if n < 0 or k < 0 or min(k, n - k) * max(n, 1).bit_length() > MAX_BITS:
        raise NotExact("a binomial coefficient")
    return of(comb(n, k))


def _arrangements(upper: Fraction, lower: Fraction) -> Value:
    n, k = _integers(upper, lower)
    if not 0 <= k <= n <= 2_000:
        raise NotExact("arrangements")
    return of(factorial(n) // factorial(n - k))


def _mod(left: Fraction, right: Fraction) -> Value:
    if right == 0:
        raise Undefined("modulo zero")
    return of(left % right)


def _logarithm(value: Fraction, base: Fraction = Fraction(10)) -> Value:
    """log of a rational power of the base; anything else is left to numbers."""
    if value <= 0 or base <= 0 or base == 1:
        raise NotExact("a logarithm")
    if value == 1:
        return {}
    tops, bottoms = dict(_signed_factors(value)), dict(_signed_factors(base))
    if tops.keys() != bottoms.keys():
        raise NotExact("a logarithm")
    ratios = {Fraction(tops[prime], bottoms[prime]) for prime in tops}
    if len(ratios) != 1:
        raise NotExact("a logarithm")
    return of(ratios.pop())


def _natural_logarithm(value: Fraction) -> Value:
    if value == 1:
        return {}
    raise NotExact("a logarithm")


def _signed_factors(value: Fraction) -> list[tuple[int, int]]:
    return _factors(value.numerator) + [(prime, -count) for prime, count in _factors(value.denominator)]


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "factorial": _factorial,
    "binom": _binomial,
    "arrangements": _arrangements,
    "floor": lambda value: of(value.numerator // value.denominator),
    "ceil": lambda value: of(-((-value.numerator) // value.denominator)),
    "abs": lambda value: of(abs(value)),
    "sgn": lambda value: of((value > 0) - (value < 0)),
    "mod": _mod,
    "gcd": lambda *values: of(gcd(*_integers(*values))),
    "lcm": lambda *values: of(lcm(*_integers(*values))),
    "max": lambda *values: of(max(values)),
    "min": lambda *values: of(min(values)),
    "log": _logarithm,
    "lg": _logarithm,
    "ln": _natural_logarithm,
    "exp": lambda value: {Monomial((), Fraction(0), value, 0): Fraction(1)},
}


def _sum(node: Node, depth: int) -> Value:
    """A sum or product with numeric limits, expanded."""
    name, variable, start, end, body = node.args
    limits = [rational(exact(limit, depth)) for limit in (start, end)]
    if any(limit is None or limit.denominator != 1 for limit in limits) or variable.op not in ("sym", "const"):
        raise NotExact("limits")
    low, high = (int(limit) for limit in limits if limit is not None)
    if high - low > MAX_RANGE:
        raise NotExact("too many terms")
    total = of(0) if name == "sum" else of(1)
    for step in range(low, high + 1):
        term = exact(substitute(body, variable, num(step)), depth)
        total = add(total, term) if name == "sum" else multiply(total, term)
    return total


def substitute(node: Node, variable: Node, value: Node) -> Node:
    """The tree with every place of `variable` taken by `value`."""
    if node == variable:
        return value
    if not any(isinstance(part, Node) for part in node.args):
        return node
    return Node(
        node.op, tuple(substitute(part, variable, value) if isinstance(part, Node) else part for part in node.args)
    )


def _determinant(node: Node, depth: int) -> Value:
    rows = [[exact(cell, depth) for cell in row] for row in node.args[0].args]
    if len(rows) > 6 or any(len(row) != len(rows) for row in rows):
        raise NotExact("a determinant")
    return _expand(rows)


def _expand(rows: list[list[Value]]) -> Value:
    if len(rows) == 1:
        return rows[0][0]
    total: Value = {}
    for column, cell in enumerate(rows[0]):
        if cell:
            minor = multiply(cell, _expand([row[:column] + row[column + 1 :] for row in rows[1:]]))
            total = add(total, minor if column % 2 == 0 else scale(minor, Fraction(-1)))
    return total


_RULES: dict[str, Callable[[Node, int], Value]] = {
    "num": lambda node, _depth: of(node.args[0]),
    "const": _const,
    "neg": lambda node, depth: scale(exact(node.args[0], depth), Fraction(-1)),
    "add": _add,
    "mul": _mul,
    "div": lambda node, depth: divide(exact(node.args[0], depth), exact(node.args[1], depth)),
    "pow": _pow,
    "root": _root,
    "base": _base,
    "det": _determinant,
    "fn": lambda node, depth: _sum(node, depth) if node.args[0] in ("sum", "prod") else _fn(node, depth),
    "pct": lambda node, depth: scale(exact(node.args[0], depth), Fraction(1, 100)),
}
