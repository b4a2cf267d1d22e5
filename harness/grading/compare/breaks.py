"""Where functions with steps and corners break: the points at which an identity with |x|, ⌊x⌋ or max must be tried.

Between its breaks such a function is smooth, so points that look random decide there. They miss a short piece, as
between the jumps of ⌊x⌋ and ⌊x + 10⁻⁴⁰⌋. So the breaks themselves are solved for, one letter at a time, the others at
fixed values: |u|, sgn u and max(a, b) break where u or a − b is 0, ⌊u⌋ and u mod m where u or u / m is an integer. They
are exact rational numbers if u is a product of factors that are linear in the letter. For any other u points of all
sizes must do, and only if the numbers in the expression are neither very small nor very large (`is_of_usual_size`).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from zlib import crc32

from harness.answers.grammar.tree import Node, is_scalar, neg, num, substitute, sym, symbols, walk
from harness.grading.compare.exact import exact
from harness.grading.compare.numeric import number_of
from harness.grading.compare.point import NotNumeric
from harness.grading.compare.radicals import NotExact, rational

CORNERS = frozenset(("abs", "sgn", "max", "min"))
JUMPS = frozenset(("floor", "ceil", "mod"))
_STEPS = (-1, 0, 1, 2)
"""Values at which a function that jumps at all integers is tried."""


_USUAL_SIZE = 1_000.0


class NoBreaks(ValueError):
    """The breaks of an expression cannot be solved for."""


def trial_pairs(left: Node, right: Node, *, integers: bool) -> Iterator[tuple[Node, Node]]:
    """Yield both trees, with numbers for their letters, at every break of either, between breaks and beyond them.

    integers: letters are integers, so only the integers next to these points count. Raises `NoBreaks`.
    """
    conditions = [condition for tree in (left, right) for node in walk(tree) for condition in _conditions(node)]
    letters = sorted(symbols(left) | symbols(right))
    for letter in letters:
        fixed = {name: _fixed_value(name, integers) for name in letters if name != letter}
        points = {
            point
            for argument, values in conditions
            for point in _solutions(_with_values(argument, fixed), letter, values)
        }
        for point in _around(points, integers):
            values_of_letters = {**fixed, letter: point}
            yield _with_values(left, values_of_letters), _with_values(right, values_of_letters)


def is_of_usual_size(*trees: Node) -> bool:
    """Whether all numbers in the trees are 0, or between 1/1000 and 1000 in size."""
    closed = {node for tree in trees for node in walk(tree) if is_scalar(node) and not symbols(node)}
    try:
        sizes = [abs(number_of(node)) for node in closed]
    except NotNumeric:
        return False
    return all(not size or 1 / _USUAL_SIZE <= size <= _USUAL_SIZE for size in sizes)


def _conditions(node: Node) -> Iterator[tuple[Node, tuple[int, ...]]]:
    """Yield (u, values): the node breaks where u takes one of the values."""
    if node.op != "fn":
        return
    name, *arguments = node.args
    if name in ("abs", "sgn", "floor", "ceil"):
        yield arguments[0], (0,) if name in CORNERS else _STEPS
    elif name == "mod":
        yield Node("div", tuple(arguments)), _STEPS
    elif name in ("max", "min"):
        for first, second in pairwise(arguments):
            yield Node("add", (first, neg(second))), (0,)


def _solutions(expression: Node, letter: str, values: tuple[int, ...]) -> list[Fraction]:
    """Return the values of `letter` at which `expression` takes one of `values`. Raises `NoBreaks`."""
    if letter not in symbols(expression):
        return []
    # A product or quotient is tried at the zeros of its parts, so that it need not be linear as a whole.
    if values == (0,) and expression.op in ("mul", "div", "neg"):
        return [point for part in expression.args for point in _solutions(part, letter, values)]
    if values == (0,) and expression.op == "pow" and letter not in symbols(expression.args[1]):
        return _solutions(expression.args[0], letter, values)
    start, first, second, fifth = (_rational_at(expression, letter, point) for point in (0, 1, 2, 5))
    # At 0, 1 and 2 the cubic x + x(x − 1)(x − 2) looks linear; 5 shows that it is none.
    slope = first - start
    if second - first != slope or fifth - start != 5 * slope:
        raise NoBreaks("not linear")
    return [(value - start) / slope for value in values] if slope else []


def _rational_at(expression: Node, letter: str, point: int) -> Fraction:
    """Return the value of `expression` with `point` for `letter`. Raises `NoBreaks` if it is not rational."""
    try:
        value = rational(exact(substitute(expression, sym(letter), num(point))))
    except NotExact as error:
        raise NoBreaks("no exact value") from error
    if value is None:
        raise NoBreaks("irrational")
    return value


def _around(points: set[Fraction], integers: bool) -> list[Fraction]:
    """Return the points themselves, the middles between neighbours, and points at several distances beyond the ends."""
    if not points:
        return []
    ordered = sorted(points)
    middles = [(low + high) / 2 for low, high in pairwise(ordered)]
    beyond = [end for step in (Fraction(1, 3), Fraction(7)) for end in (ordered[0] - step, ordered[-1] + step)]
    everywhere = {*ordered, *middles, *beyond}
    if integers:
        return sorted({Fraction(whole(point)) for point in everywhere for whole in (floor, ceil)})
    return sorted(everywhere)


def _fixed_value(name: str, integers: bool) -> Fraction:
    # A checksum and not `hash`, whose values of texts change with each process: a grade must repeat.
    state = crc32(f"break {name}".encode("utf-8", "surrogatepass"))
    # Over a prime, so that a fixed value is hardly ever a break itself.
    return Fraction(2 + state % 11) if integers else Fraction(state % 1_999 + 300, 997)


def _with_values(tree: Node, values: dict[str, Fraction]) -> Node:
    for name, value in values.items():
        tree = substitute(tree, sym(name), num(value))
    return tree
