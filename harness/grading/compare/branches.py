"""Functions with branches, such as √u: √(u²) is |u|, so that a formula may change where u is 0.

An even root of u has branches unless u is positive wherever it is defined; so have arcsin, arccos, artanh and the like,
absolute values and steps. `identities` compares expressions with such functions at points of all sizes and signs.
"""

from __future__ import annotations

from fractions import Fraction

from harness.answers.grammar.tree import Node, integrand, names, num, symbols, walk
from harness.grading.compare.exact import exact
from harness.grading.compare.radicals import NotExact, rational

CORNERS = frozenset(("abs", "sgn", "max", "min"))
JUMPS = frozenset(("floor", "ceil", "mod"))
_BRANCHED = names("arcsin arccos arcsec arccsc arccosh arctanh arctan arccot")
_BINDING = names("sum prod int lim")
"""Functions with a letter of their own, such as the n of a sum, which stands for no number outside of the function."""

_ONE = num(1)


def may_break(*trees: Node) -> bool:
    """Whether the trees hold a function that has branches."""
    return any(_has_branches(node) for tree in trees for node in walk(tree))


def _has_branches(node: Node) -> bool:
    root = root_of(node)
    if root is not None:
        return not is_positive(root[0])
    return node.op == "fn" and node.args[0] in _BRANCHED and bool(symbols(node))


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


def _number(node: Node) -> Fraction | None:
    """Return the rational number that an expression is; None if it is irrational or has no exact value."""
    if node.op == "num":
        value: Fraction = node.args[0]
        return value
    try:
        return rational(exact(node))
    except NotExact:
        return None


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
