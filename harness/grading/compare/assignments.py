"""Assignments: answers that give a value to each of several names, as `p = 2, q = 7`.

A name that occurs again begins the next assignment: `x = 1, y = 2, x = 2, y = 1` is two. Two assignments are compared
name by name; the order of several assignments does not count. Compared with values without names, an assignment is
the tuple of its values: x, y, z, w in this order, other names in the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.answers.grammar.tree import Node
from harness.grading.compare.equations import is_equation, statement

Same = Callable[[Node, Node], bool | None]
"""Function that says whether two values are equal; None if no rule can tell."""

_COORDINATES = "xyzw"


class Assignment(NamedTuple):
    """A value for each of several distinct names."""

    names: tuple[Node, ...]
    values: tuple[Node, ...]

    def in_order(self) -> tuple[Node, ...]:
        """Return the values in the order of the coordinates x, y, z, w, or as written if a name is no coordinate."""
        if not all(name.op == "sym" and name.args[0] in _COORDINATES for name in self.names):
            return self.values
        ranked = sorted(range(len(self.names)), key=lambda index: _COORDINATES.index(self.names[index].args[0]))
        return tuple(self.values[index] for index in ranked)


def assignments(node: Node, *, spread: bool = False) -> list[Assignment] | None:
    """Return the assignments of an answer, each with the same two or more names; None if the answer is anything else.

    spread: read `m = n = 3` as a value of m and of n; otherwise only n, the last letter, gets the value.
    """
    items = node.args if node.op in ("list", "tuple", "cases") else (node,)
    names: list[Node] = []
    values: list[Node] = []
    for item in items:
        if not is_equation(item) or (parts := statement(item)) is None or not parts.labels:
            return None
        label, value = parts.labels[-1], parts.values[-1]
        if label.op == "tuple":
            if value.op != "tuple" or len(value.args) != len(label.args):
                return None
            names += label.args
            values += value.args
        else:
            labels = parts.labels if spread and all(name.op == "sym" for name in parts.labels) else (label,)
            names += labels
            values += [value] * len(labels)
    groups: list[Assignment] = []
    start = 0  # index of the first name of the next group, which ends before a name that it already has
    for end in range(1, len(names) + 1):
        if end == len(names) or names[end] in names[start:end]:
            groups.append(Assignment(tuple(names[start:end]), tuple(values[start:end])))
            start = end
    # A single name is an ordinary equation, which `equations` compares.
    if len(groups[0].names) < 2 or any(set(group.names) != set(groups[0].names) for group in groups):
        return None
    return groups


def names_several(node: Node) -> bool:
    """Whether an answer gives one value to each of several unknowns: a point, or `x = 7, y = 3`; `x_1 = 7, x_2 = 3`
    numbers the values of one unknown.
    """
    groups = assignments(node)
    if groups is None:
        return node.op == "tuple"
    letters = {str(name.args[0]).partition("_")[0] for name in groups[0].names}
    return len(groups) == 1 and len(letters) > 1


def same_assignments(reference: Sequence[Assignment], answer: Sequence[Assignment], same: Same) -> bool | None:
    """Whether the assignments of two answers can be paired so that each pair is equal; None if no rule can tell."""
    if len(reference) != len(answer) or len(reference[0].names) != len(answer[0].names):
        return False
    unpaired = list(answer)
    unsure = False
    for assignment in reference:
        for candidate in unpaired:
            values = _align(assignment, candidate)
            if values is None:
                return None
            verdicts = [same(mine, theirs) for mine, theirs in zip(assignment.values, values, strict=True)]
            # An undecided value beside a different one does not leave the pair open.
            unsure = unsure or (None in verdicts and False not in verdicts)
            if all(verdicts):
                unpaired.remove(candidate)
                break
        else:
            return None if unsure else False
    return True


def _align(reference: Assignment, answer: Assignment) -> tuple[Node, ...] | None:
    """Return the answer's values in the order of the reference's names; None if the answer has other names.

    Names are compared without case, unless a side has both A and a.
    """
    reference_names, answer_names = (list(map(_lower_case, side.names)) for side in (reference, answer))
    if len(set(reference_names)) < len(reference_names) or len(set(answer_names)) < len(answer_names):
        reference_names, answer_names = list(reference.names), list(answer.names)  # A and a are two names here
    if set(reference_names) == set(answer_names):
        return tuple(answer.values[answer_names.index(name)] for name in reference_names)
    return None


def _lower_case(name: Node) -> Node:
    """Return `name` in lower case."""
    return Node(name.op, tuple(part.casefold() if isinstance(part, str) else part for part in name.args))
