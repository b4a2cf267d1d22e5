"""Functions with branches, such as √u: √(u²) is |u|, so that a formula may change where u is 0.

So have arcsin, arccos, artanh and the like, absolute values and steps. `identities` compares expressions with such
functions at points of all sizes and signs.
"""

from __future__ import annotations

from harness.answers.grammar.tree import Node, integrand, names, symbols, walk

CORNERS = frozenset(("abs", "sgn", "max", "min"))
JUMPS = frozenset(("floor", "ceil", "mod"))
_BRANCHED = names("arcsin arccos arcsec arccsc arccosh arctanh arctan arccot")
_BINDING = names("sum prod int lim")
"""Functions with a letter of their own, such as the n of a sum, which stands for no number outside of the function."""


def may_break(*trees: Node) -> bool:
    """Whether the trees hold a function that has branches."""
    return any(_has_branches(node) for tree in trees for node in walk(tree))


def _has_branches(node: Node) -> bool:
    """Whether `node` is a root or an inverse function with letters. A power with a letter in its exponent is taken for
    positive numbers only, as is usual.
    """
    if node.op == "root":
        return bool(symbols(node.args[1]))
    if node.op == "pow":
        base, exponent = node.args
        is_integer = exponent.op == "num" and exponent.args[0].denominator == 1
        return bool(symbols(base)) and not symbols(exponent) and not is_integer
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
