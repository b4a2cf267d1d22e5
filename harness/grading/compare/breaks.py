"""Where functions with steps and corners break: the points at which an identity with |x|, ⌊x⌋ or max must be tried.

A break is a point at which the formula of a function changes, as |x| does at 0 and ⌊x⌋ at each integer. Between its
breaks such a function is smooth, so a few points that look random decide there whether two of them are equal. But such
points miss a short piece, as between the jumps of ⌊x⌋ and ⌊x + 10⁻⁴⁰⌋ or under the peak of max(0, 1 − (999x − 143)²).
So the breaks are computed:

    |u|, sgn u           break where u = 0                ⌊u⌋, ⌈u⌉     break where u is an integer
    max(a, b), min       break where a − b = 0            u mod m      breaks where u / m is an integer
    √u, arcsin u, …      as `branches` says: √(u²) is |u|

Each of these conditions is written as polynomials of the letters that are 0 at the break (|u| inside u stands for u and
for −u), and the polynomials are solved:

    one letter       the zeros of the polynomials; zeros that lie too close to tell apart cannot be solved for
    several letters  only if each polynomial has one letter or is linear: letters are eliminated one by one from pairs
                     of polynomials (Fourier and Motzkin), and then get values at and between the zeros

Anything else cannot be solved for: `NoBreaks`. Then an identity is decided only if all breaks come from one condition
u = 0 (`single_condition`), and points with both signs of u were tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import ceil, floor

from harness.answers.grammar.tree import Node, neg, num, substitute, sym, symbols, walk
from harness.grading.compare.branches import NoBreaks, conditions_of, free_parts
from harness.grading.compare.exact import exact
from harness.grading.compare.modular import proportional_in_field
from harness.grading.compare.radicals import NotExact, rational

CORNERS = frozenset(("abs", "sgn", "max", "min"))
JUMPS = frozenset(("floor", "ceil", "mod"))
_STEPS = (-1, 0, 1, 2)
"""Integers that stand for all integers, where a function jumps at each of them."""

_MAX_DEGREE = 8
_MAX_MONOMIALS = 60
_MAX_BRANCHES = 16
_MAX_TRIALS = 400
"""Largest number of points that one comparison tries because of breaks; an expression with more raises `NoBreaks`."""

_PRECISION = Fraction(1, 10**40)
"""An irrational zero is computed to within this distance."""

_MAX_ROOT_BOUND = 10**60

Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]
"""Monomial, as sorted pairs of a letter and its exponent → coefficient, never 0."""

_ONE: Polynomial = {(): Fraction(1)}


def trial_pairs(
    left: Node, right: Node, *, integers: bool = False, positive: bool = False
) -> Iterator[tuple[Node, Node]]:
    """Yield both trees, with numbers for their letters, at the breaks of either tree, between breaks and beyond them.

    integers: letters stand for integers, so the integers next to these points are tried instead. positive: letters are
    above 0. Raises `NoBreaks` if the breaks cannot be solved for, or are too many.
    """
    polynomials = [
        polynomial for tree in (left, right) for node in free_parts(tree) for polynomial in _polynomials_of(node)
    ]
    letters = sorted(
        {name for tree in (left, right) for node in free_parts(tree) if node.op == "sym" for name in node.args}
    )
    if positive:  # Points between 0 and the first break count, too.
        polynomials += [{((letter, 1),): Fraction(1)} for letter in letters]
    for number, values in enumerate(_trials(polynomials, letters, integers)):
        if number >= _MAX_TRIALS:
            raise NoBreaks("too many")
        if positive and min(values.values(), default=1) <= 0:
            continue
        yield _with_values(left, values), _with_values(right, values)


def single_condition(*trees: Node) -> Node | None:
    """Return u if |u|, or another corner at u = 0, is the only break of all trees; None for corners at several
    conditions, corners within a condition, and jumps.
    """
    steps = [node for tree in trees for node in walk(tree) if node.op == "fn" and node.args[0] in CORNERS | JUMPS]
    conditions = [condition for node in steps for condition, _ in _conditions(node)]
    if any(node.args[0] in JUMPS for node in steps) or any(
        inner in steps for condition in conditions for inner in walk(condition)
    ):
        return None
    first = conditions[0]
    same = all(condition == first or proportional_in_field(first, condition) for condition in conditions)
    return first if same else None


def _conditions(node: Node) -> Iterator[tuple[Node, tuple[int, ...]]]:
    """Yield (u, values) for each way in which a function may break: where the expression u takes one of the values.

    |x - 1| gives (x - 1, (0,)).
    """
    if node.op != "fn":
        return
    name, *arguments = node.args
    if name in ("abs", "sgn", "floor", "ceil"):
        yield arguments[0], (0,) if name in CORNERS else _STEPS
    elif name == "mod":
        yield Node("div", tuple(arguments)), _STEPS
    elif name in ("max", "min"):
        for first, second in combinations(arguments, 2):
            yield Node("add", (first, neg(second))), (0,)


# --- conditions as polynomials ---
def _polynomials_of(node: Node) -> Iterator[Polynomial]:
    """Yield polynomials such that at least one of them is 0 wherever the function `node` breaks: x - 1 for |x - 1|.

    Breaks of functions inside `node`, as of |x| in ||x| - 1|, are not covered. Raises `NoBreaks`.
    """
    for condition, values in _conditions(node):
        # A product is 0 where a factor is 0; where a product is 1 or 2, its factors say nothing.
        factors = _factors(condition) if values == (0,) else [condition]
        for factor in factors:
            for top, bottom in _quotients(factor):
                yield bottom
                yield from (_sum(top, _scale(bottom, -value)) for value in values)
    for condition in conditions_of(node):
        for factor in _factors(condition):
            yield from (part for pair in _quotients(factor) for part in pair)


def _factors(node: Node) -> list[Node]:
    """Return expressions of which one is 0, or divides by 0, wherever `node` is 0."""
    if node.op in ("mul", "div", "neg"):
        return [factor for part in node.args for factor in _factors(part)]
    if node.op == "pow" and not symbols(node.args[1]):
        return _factors(node.args[0])
    return [node]


def _quotients(node: Node) -> list[tuple[Polynomial, Polynomial]]:
    """Return `node` as (numerator, denominator), once for each choice of signs of the |u| in it. Raises `NoBreaks`."""
    op, args = node
    if not symbols(node):
        return [(_constant(node), _ONE)]
    if op == "sym":
        return [({((args[0], 1),): Fraction(1)}, _ONE)]
    if op == "neg":
        return [(_scale(top, -1), bottom) for top, bottom in _quotients(args[0])]
    if op == "fn" and args[0] == "abs":
        return [(_scale(top, sign), bottom) for top, bottom in _quotients(args[1]) for sign in (1, -1)]
    if op == "fn" and args[0] in ("max", "min"):
        return [branch for part in args[1:] for branch in _quotients(part)]
    if op == "pow" and args[1].op == "num" and args[1].args[0] in range(1, _MAX_DEGREE + 1):
        args, op = (args[0],) * int(args[1].args[0]), "mul"  # u³ as u · u · u
    if op not in ("add", "mul", "div"):
        raise NoBreaks(op)
    branches = list[tuple[Polynomial, Polynomial]]()
    for parts in product(*map(_quotients, args)):
        top, bottom = parts[0]
        for other_top, other_bottom in parts[1:]:
            if op == "add":
                top, bottom = (
                    _sum(_product(top, other_bottom), _product(other_top, bottom)),
                    _product(bottom, other_bottom),
                )
            else:
                factors = (other_top, other_bottom) if op == "mul" else (other_bottom, other_top)
                top, bottom = _product(top, factors[0]), _product(bottom, factors[1])
        branches.append((top, bottom))
        if len(branches) > _MAX_BRANCHES:
            raise NoBreaks("too many branches")
    return branches


def _constant(node: Node) -> Polynomial:
    """Return a number as a polynomial. Raises `NoBreaks` if it is not rational."""
    try:
        value = rational(exact(node))
    except NotExact as error:
        raise NoBreaks("no exact value") from error
    if value is None:
        raise NoBreaks("irrational")
    return {(): value} if value else {}


def _sum(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the sum of two polynomials."""
    total = dict(left)
    for monomial, coefficient in right.items():
        total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def _scale(polynomial: Polynomial, factor: int) -> Polynomial:
    """Return the polynomial times a number."""
    return {monomial: factor * coefficient for monomial, coefficient in polynomial.items()} if factor else {}


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the product of two polynomials. Raises `NoBreaks` for too high a degree or too many terms."""
    if left is _ONE or right is _ONE:
        return right if left is _ONE else left
    total: Polynomial = {}
    for (monomial, factor), (other_monomial, other_factor) in product(left.items(), right.items()):
        exponents = dict(monomial)
        for letter, exponent in other_monomial:
            exponents[letter] = exponents.get(letter, 0) + exponent
        if sum(exponents.values()) > _MAX_DEGREE:
            raise NoBreaks("a high degree")
        total = _sum(total, {tuple(sorted(exponents.items())): factor * other_factor})
    if len(total) > _MAX_MONOMIALS:
        raise NoBreaks("too many terms")
    return total


def _letters(polynomial: Polynomial) -> set[str]:
    """Return the letters of a polynomial."""
    return {letter for monomial in polynomial for letter, _ in monomial}


# --- points ---
def _trials(polynomials: list[Polynomial], letters: list[str], integers: bool) -> Iterator[dict[str, Fraction]]:
    """Yield points, letter → value, that show every combination of signs that the polynomials can have together.

    The first letter is eliminated, points of the remaining letters are computed by the same function, and each of them
    is completed by values of the first letter at, between and beyond the zeros. integers: letters stand for integers
    only. Raises `NoBreaks`.
    """
    if not letters:
        yield {}
        return
    letter, *rest = letters
    with_letter = [polynomial for polynomial in polynomials if letter in _letters(polynomial)]
    without_letter = [polynomial for polynomial in polynomials if letter not in _letters(polynomial)]
    if any(len(_letters(polynomial)) > 1 for polynomial in with_letter):
        if any(_degree(polynomial) > 1 for polynomial in with_letter):
            raise NoBreaks("a condition of several letters that is not linear")
        without_letter += [_without(letter, *pair) for pair in combinations(with_letter, 2)]
    for values in _trials(without_letter, rest, integers):
        factors = _coprime([_coefficients(_at(polynomial, values)) for polynomial in with_letter])
        for point in _around([zero for factor in factors for zero in _zeros(factor)], integers):
            yield {**values, letter: point}


def _degree(polynomial: Polynomial) -> int:
    """Return the total degree of a polynomial."""
    return max(sum(exponent for _, exponent in monomial) for monomial in polynomial)


def _without(letter: str, first: Polynomial, second: Polynomial) -> Polynomial:
    """Return the linear polynomial without `letter` that is 0 wherever `first` and `second` both are."""
    factor, other_factor = (polynomial[((letter, 1),)] for polynomial in (first, second))
    return _sum(
        {monomial: coefficient * other_factor for monomial, coefficient in first.items()},
        {monomial: -coefficient * factor for monomial, coefficient in second.items()},
    )


def _at(polynomial: Polynomial, values: dict[str, Fraction]) -> Polynomial:
    """Return the polynomial with numbers for some of its letters."""
    total: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        for letter, exponent in monomial:
            coefficient *= values.get(letter, Fraction(1)) ** exponent
        total = _sum(total, {tuple(pair for pair in monomial if pair[0] not in values): coefficient})
    return total


def _coefficients(polynomial: Polynomial) -> list[Fraction]:
    """Return the coefficients of a polynomial of one letter, the constant first."""
    coefficients = [Fraction(0)] * (_degree(polynomial) + 1 if polynomial else 1)
    for monomial, coefficient in polynomial.items():
        coefficients[monomial[0][1] if monomial else 0] = coefficient
    return coefficients


def _coprime(polynomials: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return polynomials that together have the zeros of the given ones: each zero simple, and in one polynomial only.

    Polynomials are lists of coefficients, the constant first.
    """
    factors = list[list[Fraction]]()
    while polynomials:
        polynomial = polynomials.pop()
        if len(polynomial) < 2:
            continue
        # A divisor shared with an earlier factor is a repeated zero; one shared with the derivative is a multiple zero.
        for factor in (*factors, _slope(polynomial)):
            common = _common_divisor(polynomial, factor)
            if len(common) > 1:
                polynomials += [common, _divide(polynomial, common)[0]]
                if factor in factors:
                    factors.remove(factor)
                    polynomials.append(_divide(factor, common)[0])
                break
        else:
            factors.append(polynomial)
    return factors


def _slope(coefficients: list[Fraction]) -> list[Fraction]:
    """Return the derivative of a polynomial."""
    return [exponent * coefficient for exponent, coefficient in enumerate(coefficients)][1:]


def _common_divisor(left: list[Fraction], right: list[Fraction]) -> list[Fraction]:
    """Return the greatest common divisor of two polynomials, by Euclid; its last coefficient is 1."""
    while len(right) > 1 or any(right):
        left, right = right, _divide(left, right)[1]
    return [coefficient / left[-1] for coefficient in left]


def _divide(top: list[Fraction], bottom: list[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """Return (quotient, remainder) of two polynomials, as lists of coefficients, the constant first."""
    rest, quotient = list(top), [Fraction(0)] * max(1, len(top) - len(bottom) + 1)
    for shift in range(len(top) - len(bottom), -1, -1):
        quotient[shift] = factor = rest[shift + len(bottom) - 1] / bottom[-1]
        for index, coefficient in enumerate(bottom):
            rest[shift + index] -= factor * coefficient
    while len(rest) > 1 and not rest[-1]:
        rest.pop()
    return quotient, rest


def _zeros(coefficients: list[Fraction]) -> list[Fraction]:
    """Return the real zeros of a polynomial without multiple zeros; an irrational zero to within `_PRECISION`.

    coefficients: the constant first.
    """
    if len(coefficients) == 2:
        return [-coefficients[0] / coefficients[1]]
    # All zeros are smaller than this (Cauchy).
    bound = 2 + max(abs(coefficient / coefficients[-1]) for coefficient in coefficients[:-1])
    if bound > _MAX_ROOT_BOUND:
        raise NoBreaks("zeros of many sizes")
    # Between two turns a polynomial is monotone.
    turns = [turn for factor in _coprime([_slope(coefficients)]) for turn in _zeros(factor)]
    ends = sorted({-bound, *turns, bound})
    zeros = [end for end in ends if not _value(coefficients, end)]
    for low, high in pairwise(ends):
        if _value(coefficients, low) * _value(coefficients, high) < 0:
            zeros.append(_bisect(coefficients, low, high))
    return zeros


def _bisect(coefficients: list[Fraction], low: Fraction, high: Fraction) -> Fraction:
    """Return the zero of a polynomial between two points at which its signs differ, by bisection.

    A zero that is a simple fraction is returned exactly, any other to within `_PRECISION`. coefficients: the constant
    first.
    """
    rises = _value(coefficients, high) > 0
    while high - low > _PRECISION:
        # A simple fraction, so that numbers stay short.
        middle = ((low + high) / 2).limit_denominator(int(4 / (high - low)) + 1)
        value = _value(coefficients, middle)
        if not value:
            return middle
        low, high = (low, middle) if (value > 0) == rises else (middle, high)
    simple = low.limit_denominator(10**12)
    return simple if not _value(coefficients, simple) else low


def _value(coefficients: list[Fraction], point: Fraction) -> Fraction:
    """Return the value of a polynomial at a point."""
    total = Fraction(0)
    for coefficient in reversed(coefficients):
        total = total * point + coefficient
    return total


def _around(points: list[Fraction], integers: bool) -> list[Fraction]:
    """Return the points themselves, the middles between neighbours, and points at several distances beyond the ends.

    integers: letters stand for integers only.
    """
    if not points:
        return [Fraction(5, 7) if not integers else Fraction(3)]
    ordered = sorted(points)
    if any(high - low < 4 * _PRECISION for low, high in pairwise(ordered)):
        raise NoBreaks("zeros too close to each other")
    middles = [(low + high) / 2 for low, high in pairwise(ordered)]
    beyond = [end for step in (Fraction(1, 3), Fraction(7)) for end in (ordered[0] - step, ordered[-1] + step)]
    everywhere = {*ordered, *middles, *beyond}
    if integers:
        return sorted({Fraction(whole(point)) for point in everywhere for whole in (floor, ceil)})
    return sorted(everywhere)


def _with_values(tree: Node, values: dict[str, Fraction]) -> Node:
    """Return the tree with numbers for its letters."""
    for name, value in values.items():
        tree = substitute(tree, sym(name), num(value))
    return tree
