"""Rewriting of trees before they are compared, so that two ways to write the same answer become one tree."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from harness.answers.grammar.tree import I, Node, is_scalar, neg, num, substitute, sym, symbols, walk
from harness.grading.bounds import MAX_ALTERNATIVES

_BINDERS = frozenset(("sum", "prod"))
_ELLIPSIS = sym("…")
_UNIT_VECTORS = (I, sym("j"), sym("k"))


def with_bound_names(node: Node) -> Node:
    """Rename the variables of sums and products by their depth, so that Σ_k k² and Σ_i i² become equal."""
    return _with_bound_names(node, 0) if any(_is_binder(here) for here in walk(node)) else node


def _is_binder(node: Node) -> bool:
    """Whether `node` is a sum or product over a letter."""
    return node.op == "fn" and node.args[0] in _BINDERS and len(node.args) == 5 and node.args[1].op == "sym"


def _with_bound_names(node: Node, depth: int) -> Node:
    """Rename the bound variables in `node`; depth: how many sums and products stand around it."""
    if not any(isinstance(part, Node) for part in node.args):
        return node
    if _is_binder(node):
        name, variable, low, high, body = node.args
        bound = sym(f"k_bound{depth}")  # begins with k, by custom an integer (see `identities`)
        body = _with_bound_names(_rename(body, variable, bound), depth + 1)
        return Node("fn", (name, bound, _with_bound_names(low, depth), _with_bound_names(high, depth), body))
    return Node(
        node.op, tuple(_with_bound_names(part, depth) if isinstance(part, Node) else part for part in node.args)
    )


def _rename(node: Node, variable: Node, name: Node) -> Node:
    """Return `node` with `variable` renamed, also as an index: the k of a_k."""
    node = substitute(node, variable, name)
    index = f"_{variable.args[0]}"
    for letter in symbols(node):
        if letter.endswith(index):
            node = substitute(node, sym(letter), sym(f"{letter.removesuffix(index)}_{name.args[0]}"))
    return node


def without_ellipsis(node: Node) -> Node:
    """Write out the arithmetic sequence `1, 2, …, 5`; shorten `1, 2, 3, …, n` to `1, 2, …, n`.

    Any other node is returned unchanged.
    """
    if node.op not in ("list", "set", "tuple") or node.args.count(_ELLIPSIS) != 1:
        return node
    dots = node.args.index(_ELLIPSIS)
    before, after = node.args[:dots], node.args[dots + 1 :]
    if not before or len(after) != 1 or any(item.op != "num" for item in before):
        # After words or letters the step of the sequence is unknown.
        return node
    values = [item.args[0] for item in before]
    step = values[1] - values[0] if len(values) > 1 else Fraction(1)
    if step == 0 or any(later - earlier != step for earlier, later in pairwise(values)):
        return node
    if after[0].op != "num":
        return Node(node.op, (num(values[0]), num(values[0] + step), _ELLIPSIS, *after))
    count = (after[0].args[0] - values[0]) / step
    # A bound on the items, for an answer may write 1, 2, …, 10^9.
    if count.denominator != 1 or not 0 < count < 4 * MAX_ALTERNATIVES:
        return node
    return Node(node.op, tuple(num(values[0] + step * index) for index in range(int(count) + 1)))


def groups_as_tuples(node: Node) -> Node:
    """Return `1,2; 3,4`, groups of equal length between semicolons, as a list of tuples; any other node unchanged."""
    if node.op != "list" or not all(item.op == "list" for item in node.args):
        return node
    if any(len(item.args) != len(node.args[0].args) for item in node.args):
        return node
    # Equations between semicolons are assignments, which `assignments` compares.
    if any(part.op in ("rel", "member", "list") for item in node.args for part in item.args):
        return node
    return Node("list", tuple(Node("tuple", item.args) for item in node.args))


def name_every_value(node: Node) -> Node:
    """Return `x = 1, 2` as `x = 1, x = 2`; any other node unchanged."""
    if node.op != "list" or not _names_a_value(node.args[0]) or not all(is_scalar(item) for item in node.args[1:]):
        return node
    name = node.args[0].args[0][0]
    # x = 1, x + 1 does not give a second value of x.
    if any(name in walk(item) for item in node.args[1:]):
        return node
    return Node("list", (node.args[0], *(Node("rel", ((name, item), ("=",))) for item in node.args[1:])))


def _names_a_value(node: Node) -> bool:
    """Whether `node` is an equation of two sides with a letter on the left."""
    return node.op == "rel" and node.args[1] == ("=",) and node.args[0][0].op == "sym"


def without_braces(node: Node) -> Node:
    """Return the set `{x | x = kπ, k ∈ ℤ}` as the list x = kπ, k ∈ ℤ; any other node unchanged."""
    if node.op != "builder":
        return node
    variable, condition = node.args
    if condition.op == "member" and is_scalar(variable) and variable.op != "sym":
        return Node("list", (variable, condition))
    first = condition.args[0] if condition.op == "list" else condition
    return condition if _names_a_value(first) and first.args[0][0] == variable else node


def components(node: Node, size: int) -> tuple[Node, ...] | None:
    """Return the `size` coordinates of a vector such as `a i + b j + c k`; None if `node` is no sum of unit vectors."""
    if size not in (2, 3) or node.op not in ("add", "mul", "neg", "const", "sym"):
        return None
    used = [unit for unit in _UNIT_VECTORS if substitute(node, unit, num(0)) != node]
    # A vector has an i or a j: k alone is more often a letter.
    if not used or (I not in used and _UNIT_VECTORS[1] not in used) or (size == 2 and _UNIT_VECTORS[2] in used):
        return None
    terms = node.args if node.op == "add" else (node,)
    coordinates = [num(0)] * 3
    for term in terms:
        # By substitution, since a unit vector may stand inside a product or quotient.
        inside = [index for index, unit in enumerate(_UNIT_VECTORS) if substitute(term, unit, num(0)) != term]
        if len(inside) != 1:
            return None
        (axis,) = inside
        factor = _factor(term, _UNIT_VECTORS[axis])
        if factor is None:
            return None
        is_first = coordinates[axis] == num(0)
        coordinates[axis] = factor if is_first else Node("add", (coordinates[axis], factor))
    return tuple(coordinates[:size])


def _factor(term: Node, unit: Node) -> Node | None:
    """Return the factor of a unit vector in one term; None if the vector is no plain factor of it."""
    if term == unit:
        return num(1)
    if term.op == "neg":
        inner = _factor(term.args[0], unit)
        return None if inner is None else neg(inner)
    if term.op == "mul" and term.args.count(unit) == 1:
        rest = tuple(part for part in term.args if part != unit)
        return rest[0] if len(rest) == 1 else Node("mul", rest)
    if term.op == "div" and term.args[1] != unit:
        inner = _factor(term.args[0], unit)
        return None if inner is None else Node("div", (inner, term.args[1]))
    return None


def with_one_degree_sign(node: Node) -> Node:
    """Return the sum `90° + 45°` or `180° - 45°` as `(90 + 45)°`; any other node unchanged."""
    if node.op != "add":
        return node
    numbers = tuple(number for term in node.args if (number := _degrees_of(term)) is not None)
    return Node("deg", (Node("add", numbers),)) if len(numbers) == len(node.args) else node


def _degrees_of(term: Node) -> Node | None:
    """Return the number of `45°` or `-45°`; None for any other term."""
    if term.op == "neg":
        inner = _degrees_of(term.args[0])
        return None if inner is None else neg(inner)
    return term.args[0] if term.op == "deg" else None


def with_conjugates(node: Node) -> Node:
    r"""Return `node` with (z + z̄)/2 for Re z and (z − z̄)/(2i) for Im z, where z is a letter and z̄ is `\bar z`."""
    if node.op == "sym" and str(node.args[0]).startswith("overline "):
        return sym(f"bar {str(node.args[0]).removeprefix('overline ')}")
    if node.op == "fn" and node.args[0] == "bar" and node.args[1].op == "sym":
        return sym(f"bar {node.args[1].args[0]}")
    if node.op == "fn" and node.args[0] in ("Re", "Im") and node.args[1].op == "sym":
        letter = node.args[1]
        conjugate = sym(f"bar {letter.args[0]}")
        if node.args[0] == "Re":
            return Node("div", (Node("add", (letter, conjugate)), num(2)))
        return Node("div", (Node("add", (letter, neg(conjugate))), Node("mul", (num(2), I))))
    return Node(node.op, tuple(with_conjugates(part) if isinstance(part, Node) else part for part in node.args))


def without_degree_signs(node: Node) -> Node:
    """Return `180° - 2x` as `180 - 2x`: without the degree signs of its terms; those inside functions stay."""
    if not any(here.op == "deg" for here in walk(node)):
        return node
    if node.op == "deg":
        return without_degree_signs(node.args[0])
    if node.op in ("add", "mul", "neg", "div"):
        return Node(node.op, tuple(without_degree_signs(part) for part in node.args))
    return node
