"""Equations and inequalities that are still to be solved, as an answer beside the solution: 3x = 9 for x = 3.

The question itself, or an unfinished step of its solution, has the solutions of the reference, but states none of them.
"""

from __future__ import annotations

from harness.answers.grammar.tree import Node, symbols, walk
from harness.grading.compare.equations import is_label

_SIGNS = frozenset("=")


def is_unsolved(reference: Node, answer: Node) -> bool:
    """Whether the answer, equal to the reference, has a relation to be solved, and the reference only solved ones with
    numbers for one name: x = 3. `y = 2x` and "a = 0 or b = 1" are curves; these may be
    written in any way.
    """
    # Two names in two relations are a curve, such as the axes ab = 0.
    solved = _relations(reference)
    if not solved or any(
        symbols(relation) != symbols(solved[0]) or not _states_numbers(relation) for relation in solved
    ):
        return False
    return not all(map(_is_solved, _relations(answer)))


def _relations(node: Node) -> list[Node]:
    """Return the equations of a tree."""
    return [here for here in walk(node) if here.op == "rel" and _SIGNS.issuperset(here.args[1])]


def _is_solved(relation: Node) -> bool:
    """Whether one side is a name that the other sides do not have; a relation without letters has nothing to solve."""
    # x = 9 - 2x has a name on its left side, and is still to be solved.
    sides = relation.args[0]
    if not symbols(relation):
        return True
    return any(
        is_label(side) and all(symbols(side).isdisjoint(symbols(operand)) for operand in sides if operand is not side)
        for side in sides
    )


def _states_numbers(relation: Node) -> bool:
    """Whether one side is a name and all others are numbers."""
    # 2x = a also has a letter on one side, but states a family.
    with_letters = [side for side in relation.args[0] if symbols(side)]
    return len(with_letters) == 1 and is_label(with_letters[0])
