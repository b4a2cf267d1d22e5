"""Functions with branches, such as √u: the places where their formula may change, which random points easily miss.

√(u²) is |u|. So √((2ˣ − 1024)²) and 1024 − 2ˣ are equal at all points up to x = 10, and differ beyond. A *break* is a
point at which a formula may change:

    an even root of u                  where u = 0
    arcsin u, arccos u, artanh u …     where u = ±1
    arctan u, arccot u                 where a denominator within u is 0; for arccot also where u = 0

Odd roots have no breaks: the real cube root of a product is the product of the cube roots, whatever the signs. An even
root has none either if its u is positive wherever it is defined (`is_positive`).

Sines and cosines of one letter are fractions of t = tan(x/2) (`without_waves`), whose breaks can be computed.

If the breaks of two expressions cannot be computed, the expressions are still equal if they stay equal with a letter in
place of each function with branches (`as_letters`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from harness.answers.grammar.tree import Node, integrand, names, neg, num, substitute, sym, symbols, walk
from harness.grading.compare.exact import exact
from harness.grading.compare.radicals import NotExact, rational

_WITHIN_ONE = names("arcsin arccos arcsec arccsc arccosh arctanh")
_WITHOUT_POLES = names("sin cos sinh cosh tanh exp arcsin arccos arctan arcsinh abs")
_BINDING = names("sum prod int lim")
"""Functions with a letter of their own, such as the n of a sum, which stands for no number outside of the function."""

_ONE = num(1)


class NoBreaks(ValueError):
    """The breaks of an expression cannot be computed."""


def conditions_of(node: Node) -> list[Node]:
    """Return expressions of which one is 0, or has no value, wherever the function `node` breaks.

    The list is empty if `node` has no breaks. Breaks of functions inside `node` are not covered. Raises `NoBreaks`.
    """
    root = root_of(node)
    if root is not None:
        return [] if is_positive(root[0]) else [root[0]]
    if node.op != "fn" or len(node.args) != 2 or not symbols(node):
        return []
    name, inner = node.args
    if name in _WITHIN_ONE:
        return [Node("add", (inner, neg(_ONE))), Node("add", (inner, _ONE))]
    if name in ("arctan", "arccot"):
        poles = list(_poles(inner))
        return [*poles, inner] if name == "arccot" else poles
    return []


def may_break(*trees: Node) -> bool:
    """Whether the trees hold a function that has breaks, or of which this is not known."""
    try:
        return any(conditions_of(node) for tree in trees for node in free_parts(tree))
    except NoBreaks:
        return True


def free_parts(tree: Node) -> list[Node]:
    """Return every node of the tree, except those whose only letters belong to a sum, product, integral or limit.

    Raises `NoBreaks` for a function with breaks that depends both on such a letter and on a free one, and for a letter
    of a sum that also stands outside of the sum.
    """
    own = bound_letters(tree)
    if not own:
        return walk(tree)
    if own & _letters_outside(tree):
        raise NoBreaks("a letter inside and outside of a sum")
    parts = []
    for node in walk(tree):
        letters = symbols(node)
        if letters & own and not letters <= own and conditions_of(node):
            raise NoBreaks("a letter of a sum")
        if not letters or letters - own:
            parts.append(node)
    return parts


def _letters_outside(tree: Node) -> set[str]:
    """Return the letters that stand outside of every sum, product, integral and limit."""
    letters: set[str] = set()
    pending: list[Any] = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, Node):
            if part.op == "sym":
                letters.add(part.args[0])
            elif not _own_letters(part):
                pending.extend(part.args)
        elif isinstance(part, tuple):
            pending.extend(part)
    return letters


def bound_letters(tree: Node) -> frozenset[str]:
    """Return the letters that belong to sums, products, integrals and limits in the tree, as n does to a sum over n."""
    return frozenset(name for node in walk(tree) for name in _own_letters(node))


def _own_letters(node: Node) -> frozenset[str]:
    """Return the letter that belongs to a sum, product, integral or limit; empty for any other node.

    An integral that cannot be read returns all of its letters.
    """
    if node.op != "fn" or node.args[0] not in _BINDING:
        return frozenset()
    if node.args[0] != "int":
        return symbols(node.args[1])
    inside = integrand(node.args[1:])
    return symbols(node) if inside is None else frozenset((inside[2], "d"))  # the d of dx is read as a letter


def root_of(node: Node) -> tuple[Node, Fraction | None] | None:
    """Return (u, exponent) if `node` is an even root of u, such as √u, u^(3/2) or u^(-0.25); None for any other node.

    A power with an irrational exponent counts as an even root, and its exponent is returned as None. A power or root
    with a letter in its exponent is taken for positive numbers only, as is usual, and has no branches.
    """
    if node.op == "root":
        degree, base = node.args
        exponent = Node("div", (_ONE, degree))
    elif node.op == "pow":
        base, exponent = node.args
    else:
        return None
    if not symbols(base) or symbols(exponent):
        return None
    value = _number(exponent)
    return None if value is not None and value.denominator % 2 else (base, value)


def _poles(node: Node) -> Iterator[Node]:
    """Yield expressions of which one is 0 wherever `node` has a pole. Raises `NoBreaks`."""
    for part in walk(node):
        if part.op == "div" and not is_positive(part.args[1]):
            yield part.args[1]
        elif part.op == "pow" and symbols(part.args[0]):
            base, exponent = part.args
            value = _number(exponent)
            if (value is None or value < 0) and not is_positive(base):
                yield base
        elif part.op == "fn" and part.args[0] not in _WITHOUT_POLES and symbols(part):
            raise NoBreaks(f"poles of {part.args[0]}")
        elif part.op not in ("add", "mul", "neg", "div", "pow", "root", "num", "sym", "const", "fn"):
            raise NoBreaks(f"poles of {part.op}")


def _number(node: Node) -> Fraction | None:
    """Return the rational number that an expression is; None if it is irrational or has no exact value."""
    if node.op == "num":
        value: Fraction = node.args[0]
        return value
    try:
        return rational(exact(node))
    except NotExact:
        return None


# --- signs ---
def is_positive(node: Node) -> bool:
    """Whether a real expression is known to be above 0 wherever it is defined, except at single points.

    A single point, as for x² + y², does not divide the plane into regions with different branches; a line, as for
    (x - y)², does.
    """
    op, args = node
    if op == "num":
        return bool(args[0] > 0)
    if op == "const":
        return args[0] in ("pi", "e")
    if op in ("mul", "div"):
        return all(map(is_positive, args))
    if op == "pow":
        return is_positive(args[0])
    if op == "root":
        return is_positive(args[1])
    if op == "fn":
        return args[0] in ("exp", "cosh")
    if op != "add":
        return False
    steady = sum((term.args[0] for term in args if term.op == "num"), Fraction(0))
    swings = [swing for term in args if (swing := _swing(term)) is not None]
    others = [term for term in args if term.op != "num" and _swing(term) is None]
    if not all(map(_is_at_least_zero, others)):
        return False
    if steady < sum(swings):
        return False
    if steady > sum(swings) or any(map(is_positive, others)):
        return True
    # Squares of different letters are 0 together at a single point.
    squared = {term.args[0] for term in others if term.op == "pow" and term.args[0].op == "sym"}
    return not swings and len(squared) >= 2


def _is_at_least_zero(node: Node) -> bool:
    """Whether a real expression is known to be nowhere below 0."""
    op, args = node
    if op == "num":
        return bool(args[0] >= 0)
    if op == "pow" and args[1].op == "num" and args[1].args[0].denominator == 1 and args[1].args[0] % 2 == 0:
        return True
    if op in ("mul", "div", "add"):
        return all(map(_is_at_least_zero, args))
    if op == "fn" and args[0] == "abs":
        return True
    return is_positive(node) or root_of(node) is not None


def _swing(node: Node) -> Fraction | None:
    """Return the largest absolute value of a number times sines and cosines; None for any other expression."""
    size = Fraction(1)
    n_waves = 0
    for factor in node.args if node.op == "mul" else (node,):
        inner = factor.args[0] if factor.op == "neg" else factor
        if inner.op == "num":
            size *= abs(inner.args[0])
        elif inner.op == "fn" and inner.args[0] in ("sin", "cos"):
            n_waves += 1
        else:
            return None
    return size if n_waves else None


# --- sines and cosines ---
_WAVES: dict[str, Callable[[Node, Node], Node]] = {
    "sin": lambda sine, _: sine,
    "cos": lambda _, cosine: cosine,
    "tan": lambda sine, cosine: Node("div", (sine, cosine)),
    "cot": lambda sine, cosine: Node("div", (cosine, sine)),
    "sec": lambda _, cosine: Node("div", (_ONE, cosine)),
    "csc": lambda sine, _: Node("div", (_ONE, sine)),
}
"""Name of a function → its value, from the values of the sine and the cosine."""

_MAX_WAVES = 4
"""Largest n of sin nx beside sin x: the degree of its polynomial is 2n."""


def without_waves(left: Node, right: Node) -> tuple[Node, Node] | None:
    """Return both trees with a letter t = tan(x/2) in place of a letter x that stands in sines and cosines only.

    sin x = 2t / (1 + t²) and cos x = (1 - t²) / (1 + t²), and t takes each real value once in a period. sin nx and
    cos nx follow from (cos x + i sin x)ⁿ. None if there is no such letter.
    """
    nodes = {node for tree in (left, right) for node in walk(tree)}
    for name in sorted(symbols(left) | symbols(right)):
        waves = {
            node: factor
            for node in nodes
            if node.op == "fn" and node.args[0] in _WAVES and (factor := _factor_of(node.args[1], name)) is not None
        }
        if not waves:
            continue
        # All waves are multiples of the slowest.
        slowest = Fraction(
            gcd(*(abs(factor.numerator) for factor in waves.values())),
            lcm(*(factor.denominator for factor in waves.values())),
        )
        numbers = {node: factor / slowest for node, factor in waves.items()}
        if any(number.denominator != 1 or abs(number) > _MAX_WAVES for number in numbers.values()):
            continue
        values = {node: _wave(node.args[0], int(number), sym(f"tan {name}")) for node, number in numbers.items()}
        rewritten = _with(left, right, values)
        if not any(name in symbols(tree) for tree in rewritten):
            return rewritten
    return None


def _factor_of(node: Node, name: str) -> Fraction | None:
    """Return the number c, not 0, such that `node` is c times the letter `name`; None for any other expression."""
    op, args = node
    if node == sym(name):
        return Fraction(1)
    if op == "neg":
        factor = _factor_of(args[0], name)
        return None if factor is None else -factor
    if op not in ("mul", "div"):
        return None
    total: Fraction | None = Fraction(1)
    for index, part in enumerate(args):
        factor = _number(part) if not symbols(part) else _factor_of(part, name)
        if not factor or total is None or (op == "div" and index and symbols(part)):
            return None
        total = total / factor if op == "div" and index else total * factor
    return total if sum(name in symbols(part) for part in args) == 1 else None


def _wave(function: str, number: int, letter: Node) -> Node:
    """Return sin nx, cos nx, tan nx … as a fraction of the letter t = tan(x/2). number: n, of either sign, not 0."""
    # (1 - t² + 2it)ⁿ, as coefficients of the powers of t, each a pair of real and imaginary part.
    power = [(1, 0)]
    for _ in range(abs(number)):
        product = [(0, 0)] * (len(power) + 2)
        for exponent, (real, imaginary) in enumerate(power):
            for shift, (of_real, of_imaginary) in enumerate(((1, 0), (0, 2), (-1, 0))):
                before = product[exponent + shift]
                product[exponent + shift] = (
                    before[0] + real * of_real - imaginary * of_imaginary,
                    before[1] + real * of_imaginary + imaginary * of_real,
                )
        power = product
    below = Node("pow", (Node("add", (_ONE, Node("pow", (letter, num(2))))), num(abs(number))))
    sign = 1 if number > 0 else -1
    cosine = Node("div", (_polynomial([real for real, _ in power], letter), below))
    sine = Node("div", (_polynomial([sign * imaginary for _, imaginary in power], letter), below))
    return _WAVES[function](sine, cosine)


def _polynomial(coefficients: list[int], letter: Node) -> Node:
    """Return the polynomial of a letter with these coefficients, the constant first."""
    terms = [
        Node("mul", (num(coefficient), Node("pow", (letter, num(exponent))))) if exponent else num(coefficient)
        for exponent, coefficient in enumerate(coefficients)
        if coefficient
    ]
    return terms[0] if len(terms) == 1 else Node("add", tuple(terms))


# --- letters in place of functions ---
def as_letters(
    left: Node, right: Node, positive_ratio: Callable[[Node, Node], Node | None]
) -> tuple[Node, Node] | None:
    """Return both trees with a letter t in place of one function with breaks; None if none can be replaced.

    Trees that are equal for every value of t are equal on every branch of the function. positive_ratio: returns the
    quotient of two expressions if it is one positive number.

    √u is t², which like √u is never below 0. If u has a letter that stands in it once, as h in v² + 2gh, that letter is
    expressed by t, so that the trees may also be equal because t⁴ is u.
    """
    nodes = [node for tree in (left, right) for node in walk(tree)]
    if any(map(_own_letters, nodes)):
        return None
    branched = [node for node in dict.fromkeys(nodes) if _has_breaks(node)]
    innermost = next((node for node in branched if not any(_has_breaks(part) for part in walk(node)[1:])), None)
    if innermost is None:
        return None
    letter = sym(f"branch {1 + sum(name.startswith('branch ') for name in symbols(left) | symbols(right))}")
    root = root_of(innermost)
    if root is None or root[1] is None:
        return _with(left, right, {innermost: letter})
    radicand = root[0]
    roots = [(node, *parts) for node in branched if (parts := root_of(node)) is not None]
    degree = 2 * lcm(*(exponent.denominator for _, _, exponent in roots if exponent is not None))
    values: dict[Node, Node] = {}
    for node, other_radicand, exponent in roots:
        if exponent is None:
            continue
        # √(2u) is √2 · t.
        ratio = _ONE if other_radicand == radicand else positive_ratio(other_radicand, radicand)
        if ratio is not None:
            power = Node("pow", (letter, num(exponent * degree)))
            values[node] = power if ratio == _ONE else Node("mul", (Node("pow", (ratio, num(exponent))), power))
    left, right = _with(left, right, values)
    solved = _solve_for_any_letter(radicand, Node("pow", (letter, num(degree))))
    return (left, right) if solved is None else _with(left, right, dict([solved]))


def _has_breaks(node: Node) -> bool:
    try:
        return bool(conditions_of(node))
    except NoBreaks:
        return True


def _with(left: Node, right: Node, values: dict[Node, Node]) -> tuple[Node, Node]:
    """Return both trees with each key of `values` replaced by its value; the largest keys are replaced first."""
    for node in sorted(values, key=lambda node: -len(walk(node))):
        left, right = substitute(left, node, values[node]), substitute(right, node, values[node])
    return left, right


def _solve_for_any_letter(node: Node, value: Node) -> tuple[Node, Node] | None:
    """Return (a letter, its value) such that `node` has this value; None if no letter can be solved for.

    This works for a letter that stands in the expression once, and only within sums, products and quotients.
    """
    counts: dict[str, int] = {}
    for part in walk(node):
        if part.op == "sym":
            counts[part.args[0]] = counts.get(part.args[0], 0) + 1
    for name in sorted(name for name, count in counts.items() if count == 1):
        solution: Node | None = value
        here = node
        while solution is not None and here != sym(name):
            here, solution = _one_step(here, name, solution)
        if solution is not None:
            return sym(name), solution
    return None


def _one_step(node: Node, name: str, value: Node) -> tuple[Node, Node | None]:
    """Return (the part of `node` with the letter `name`, the value that it must have so that `node` has `value`).

    The value is None where the operation cannot be undone.
    """
    op, args = node
    parts = [part for part in args if isinstance(part, Node) and name in symbols(part)]
    if len(parts) != 1:
        return node, None
    (inner,) = parts
    others = [part for part in args if part is not inner]
    if op == "neg":
        return inner, neg(value)
    if op == "add":
        return inner, Node("add", (value, *map(neg, others)))
    if op == "mul":
        return inner, Node("div", (value, Node("mul", tuple(others)) if len(others) > 1 else others[0]))
    if op == "div" and inner is args[0]:
        return inner, Node("mul", (value, args[1]))
    if op == "div":
        return inner, Node("div", (args[0], value))
    return inner, None
