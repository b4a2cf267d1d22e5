"""Rewrites trees before they are compared, so that two ways to write the same answer become one tree, and expands an
answer with ± or ∓ into its values.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise, product

from reasoning_answers.bounds import MAX_ALTERNATIVES
from reasoning_answers.grammar.tree import E, I, Node, is_scalar, neg, num, substitute, sym, symbols, walk
from reasoning_answers.grammar.units import unit_of

_ELLIPSIS = sym("…")

_VARIABLE = re.compile(r"[a-ei-z](?:_\w+)?")
"""A letter that may be a factor before a bracket."""

_MAX_ITEMS = 256
"""Largest number of items of a sequence that is written out, since an answer may contain 1, 2, …, 10^9."""


def without_ellipsis(node: Node) -> Node:
    """Write out the arithmetic sequence `1, 2, …, 5`; shorten `1, 2, 3, …, n` to `1, 2, …, n`.

    Any other node is returned unchanged.
    """
    if node.op not in ("list", "set", "tuple") or node.args.count(_ELLIPSIS) != 1:
        return node
    dots = node.args.index(_ELLIPSIS)
    before, after = node.args[:dots], node.args[dots + 1 :]
    if not before or len(after) != 1 or any(item.op != "num" for item in before):
        # After words or letters, the step of the sequence is unknown.
        return node
    values = [item.args[0] for item in before]
    step = values[1] - values[0] if len(values) > 1 else Fraction(1)
    if step == 0 or any(later - earlier != step for earlier, later in pairwise(values)):
        return node
    if after[0].op != "num":
        return Node(node.op, (num(values[0]), num(values[0] + step), _ELLIPSIS, *after))
    n_steps = (after[0].args[0] - values[0]) / step
    if n_steps.denominator != 1 or not 0 < n_steps < _MAX_ITEMS:
        return node
    # The written items are read only for the step: `1, 2, 3, …, 2` ends at its end, and becomes `1, 2`.
    return Node(node.op, tuple(num(values[0] + step * index) for index in range(int(n_steps) + 1)))


def without_degree_signs(node: Node) -> Node:
    """Return `180° - 2x` as `180 - 2x`: without the degree signs of its terms; degree signs inside functions stay."""
    if not any(here.op == "deg" for here in walk(node)):
        return node
    if node.op == "deg":
        return without_degree_signs(node.args[0])
    if node.op in ("add", "mul", "neg", "div"):
        return Node(node.op, tuple(without_degree_signs(part) for part in node.args))
    return node


def with_factors(reference: Node, answer: Node) -> tuple[Node, Node]:
    """Return both sides with x(3x) as the product of x and 3x, where the lower-case letter x is a variable on a side
    and the bracket has a letter. f, g and h, capitals and Greek letters stay functions.
    """
    nodes = (*walk(reference), *walk(answer))
    if not any(here.op == "apply" for here in nodes):
        return reference, answer
    variables = frozenset(here for here in nodes if here.op == "sym" and _VARIABLE.fullmatch(here.name))
    return _with_factors(reference, variables), _with_factors(answer, variables)


def _with_factors(node: Node, variables: frozenset[Node]) -> Node:
    parts = tuple(_with_factors(part, variables) if isinstance(part, Node) else part for part in node.args)
    if node.op == "apply" and sym(node.name) in variables and symbols(parts[1]):
        return Node("mul", (sym(node.name), parts[1]))
    if node.op == "pow" and node.args[0].op == "apply" and parts[0].op == "mul":
        letter, inside = parts[0].args
        return Node("mul", (letter, Node("pow", (inside, parts[1]))))  # a(b)^2 is a·b^2
    return Node(node.op, parts)


def with_imaginary_unit(reference: Node, answer: Node) -> tuple[Node, Node]:
    """Return both sides with i for the j of engineers, 1 + 2j, if one side has that letter and the other has i."""
    units = [{I, sym("j")} & {*walk(side)} for side in (reference, answer)]
    if {*map(tuple, units)} != {(I,), (sym("j"),)} or not all(map(_is_complex, (reference, answer))):
        return reference, answer
    return substitute(reference, sym("j"), I), substitute(answer, sym("j"), I)


def _is_complex(node: Node) -> bool:
    """Whether a sum in the tree has a term without a letter: 1 + 2i, but not a vector 3j."""
    sums = [here for here in walk(node) if here.op == "add"]
    return any(I not in walk(term) and not symbols(term) for here in sums for term in here.args)


# --- the signs ± and ∓ ---
def has_signs(node: Node) -> bool:
    """Whether the tree contains ± or ∓."""
    return any(here.op in ("pm", "mp") for here in walk(node))


def items_of(node: Node) -> tuple[Node, ...]:
    """Return the items of a list; for any other node, the node itself."""
    return node.args if node.op == "list" else (node,)


def values_of_signs(node: Node, independent: bool) -> Node | None:
    """Return all values that `node` with its ± stands for, as a list node; None if there are more than
    `MAX_ALTERNATIVES`.

    All signs of an item change together: `1 ± 2 ∓ 3` is two values. independent: each ± of a tuple, set or list
    changes by itself, so that (±a, ±b) is four points.
    """
    items: list[Node] = []
    for item in items_of(node):
        signs = [here for here in walk(item) if here.op in ("pm", "mp")]
        if not signs:
            items.append(item)
            continue
        # With ∓ the signs depend on each other, so none of them changes by itself.
        free = independent and item.op in ("tuple", "set", "list", "bracket") and not any(s.op == "mp" for s in signs)
        choices: Iterable[tuple[int, ...]]
        if free:
            if 2 ** len(signs) > MAX_ALTERNATIVES:
                return None
            choices = product((1, -1), repeat=len(signs))
        else:
            choices = ((1,) * len(signs), (-1,) * len(signs))
        # {1 ± x} is one set of two values, not a list of two sets.
        if item.op == "set":
            inner = values_of_signs(Node("list", item.args), False)
            assert inner is not None
            items.append(Node("set", items_of(inner)))
            continue
        items.extend(_with_signs(item, list(choice)) for choice in choices)
    return items[0] if len(items) == 1 else Node("list", tuple(items))


def _with_signs(node: Node, signs: list[int]) -> Node:
    """Return `node` with its ± and ∓ replaced from left to right by `signs`, each 1 or -1; this empties the list."""
    if node.op in ("pm", "mp"):
        is_minus = (signs.pop(0) == -1) == (node.op == "pm")  # ∓ has the opposite sign
        left, right = _with_signs(node.args[0], signs), _with_signs(node.args[1], signs)
        right = neg(right) if is_minus else right
        return right if left == num(0) else Node("add", (left, right))
    parts: list[object] = []
    for part in node.args:
        if isinstance(part, Node):
            parts.append(_with_signs(part, signs))
        elif isinstance(part, tuple):  # a row of a matrix, or the sides of a relation
            parts.append(tuple(_with_signs(cell, signs) if isinstance(cell, Node) else cell for cell in part))
        else:
            parts.append(part)
    return Node(node.op, tuple(parts))


# --- letters after a number as its unit ---
_MAX_LETTERS = 6
"""A product of letters is not searched for a unit of more letters than this."""


def as_quantities(node: Node) -> list[Node]:
    """Return the possible readings of a number followed by a unit or by letters: itself, or quantities with the letters
    as the unit; an empty list for any other node.

    Adjacent letters are one symbol or several: 5·k·N·m is 5 kN·m, and 5 of the unknown unit kNm.
    """
    if node.op == "quantity" and sym("mu") not in walk(node):  # 5 \mu mol
        return [node]
    if (split := _number_and_letters(node)) is None or not split[0]:
        return []
    (value,), letters = split
    parts = letters.replace("Omega", "ohm").replace("mu", "u").split("·")
    if not symbols(node) or len(parts) > _MAX_LETTERS:
        return [] if letters else [node]
    joints = product(("", "·"), repeat=len(parts) - 1)
    units = ["".join(map(operator.add, parts, (*joint, ""))) for joint in joints]
    return [Node("quantity", (value, unit)) for unit in units if unit_of(unit) is not None or unit is units[0]]


def _number_and_letters(node: Node) -> tuple[tuple[Node, ...], str] | None:
    """Return the number and the letters after it, 5 and "m/s^2" for 5·m/s^2; None if the node is not such a product.

    The number is a tuple, which is empty if there are only letters.
    """
    op, args = node
    if op == "sym" or node in (E, I):  # the e of eV, the i of mi
        return (), node.name.replace(" ", "·")
    if op == "pow" and args[0].op == "sym" and args[1].op == "num":
        return (), f"{args[0].name}^{args[1].value}"
    if op not in ("mul", "div", "quantity"):
        return None if symbols(node) or not is_scalar(node) else ((node,), "")
    parts = [_number_and_letters(part) for part in args if isinstance(part, Node)]
    numbers, letters = [part[0] for part in parts if part], [part[1] for part in parts if part]
    if len(numbers) < len(parts) or (op == "mul" and any(n and any(letters[:at]) for at, n in enumerate(numbers))):
        return None  # 2 x 3, 2块5
    if op == "div":
        below = f"/({letters[1]})" if "·" in letters[1] else f"/{letters[1]}" if letters[1] else ""
        number = (Node("div", (*(numbers[0] or (num(1),)), *numbers[1])),) if numbers[1] else numbers[0]
        return number, letters[0] + below
    factors = sum(numbers, ())
    unit = "·".join(filter(None, (*letters, args[1] if op == "quantity" else "")))
    return factors if len(factors) < 2 else (Node("mul", factors),), unit
