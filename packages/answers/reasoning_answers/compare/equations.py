"""Equations, of two kinds: statements, which name a value, and equations proper, which define a curve.

    statement           x = 5 · f(x) = 2x · AB : CD = 3 · Minimum = 1      the value is compared
    equation proper     x^2 + y^2 = 25                                     no side is a name

`statement` distinguishes the kinds; the name of a statement may be dropped. Two equations proper are equal if their
differences left − right are equal up to a constant factor, if necessary after multiplication by the denominators.

Assignments are answers that give a value to each of several names, such as `p = 2, q = 7`. A repeated name begins the
next assignment: `x = 1, y = 2, x = 2, y = 1` is two. Two assignments are compared name by name; the order of several
assignments does not matter. Compared with values without names, an assignment is the tuple of its values: x, y, z, w in
this order, and other names in the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import eq
from typing import NamedTuple

from reasoning_answers.compare.conventions import allows
from reasoning_answers.compare.numeric import proportional
from reasoning_answers.grammar.tree import Node, is_scalar, neg, num, substitute, sym, symbols, walk
from reasoning_answers.records import GradeRules
from reasoning_answers.words import words_of

_EQUALITY = frozenset(("=", "≈"))
"""Signs of a relation that is an equation."""


class Statement(NamedTuple):
    """A chain of names and values, such as `x = 2 = 4/2`.

    labels: the names at its left end; may be empty. values: one or more; several are the same value written in
    different ways.
    """

    labels: tuple[Node, ...]
    values: tuple[Node, ...]


def is_equation(node: Node) -> bool:
    """Whether `node` is a relation with only = and ≈ between its parts."""
    return node.op == "rel" and all(sign in _EQUALITY for sign in node.args[1])


def is_label(node: Node) -> bool:
    """Whether `node` names a quantity: a letter, a product or quotient of letters, f(x), words, a tuple of names."""
    op, args = node
    if op in ("sym", "text", "apply") or _is_letter(node):
        return True
    if op == "mul":
        return _is_function_call(node) or all(part.op in ("sym", "text") or _is_letter(part) for part in args)
    if op in ("tuple", "ratio", "div"):
        return all(is_label(part) for part in args)
    if op == "fn" and args[0] in ("abs", "bar", "prime", "det"):
        return all(is_label(part) for part in args[1:])
    return False


def _is_letter(node: Node) -> bool:
    """Whether `node` is e or i, which are letters as well as constants."""
    return node.op == "const" and node.args[0] in ("e", "i")


def _is_function_call(node: Node) -> bool:
    """Whether a product is meant as a function with its argument: `P(x)`, `S(n+1)`."""
    return len(node.args) == 2 and node.args[0].op == "sym" and node.args[1].op in ("sym", "add", "tuple", "rel", "num")


def statement(node: Node) -> Statement | None:
    """Return what `x = 5` or `x = y = 2 + 3` states: names and their value; None if there is no name on the left, as in
    `x + y = 5`.
    """
    operands = node.args[0]
    if len(operands) == 2 and operands[1].op == "sym" and not is_label(operands[0]):
        operands = (operands[1], operands[0])  # 5 = x is x = 5
    n_names = 0
    while n_names < len(operands) - 1 and is_label(operands[n_names]):
        n_names += 1
    labels, values = operands[:n_names], operands[n_names:]
    # A name in its own value: `x = 2 - x` is an equation to solve.
    if len(values) == 1 and any(label.op == "sym" and label.name in symbols(values[0]) for label in labels):
        return None
    # x + y = 3 is an equation proper.
    if not labels and any(symbols(value) for value in values):
        return None
    return Statement(labels, values)


def difference(node: Node) -> Node | None:
    """Return left − right of a relation with two scalar sides; None for any other relation."""
    operands = node.args[0]
    if len(operands) != 2 or not all(is_scalar(operand) for operand in operands):
        return None
    return Node("add", (operands[0], neg(operands[1])))


def same_equations(reference: Node, answer: Node) -> bool:
    """Whether left − right of two equations differs only by a constant factor, if need be with denominators cleared."""
    left, right = difference(reference), difference(answer)
    # Without unknowns any two differences are proportional: 1 = 2 would equal 3 = 5.
    if left is None or right is None or _unknowns(left) != _unknowns(right) or not _unknowns(left):
        return False
    (top, _), (other_top, _) = _fraction(left), _fraction(right)
    return proportional(top, other_top)


def same_union(equations: Sequence[Node], answer: Node) -> bool:
    """Whether one equation describes the union of the solutions of several: `ab = 0` of `a = 0 or b = 0`."""
    zeros = [_zero_form(equation) for equation in equations]
    difference_of_answer = _zero_form(answer)
    if difference_of_answer is None or None in zeros:
        return False
    product = Node("mul", tuple(zero for zero in zeros if zero is not None))
    return proportional(product, difference_of_answer)


def _zero_form(equation: Node) -> Node | None:
    """Return an expression that is 0 where the equation holds: left − right, or u² − v² for `|u| = |v|`."""
    sides = equation.args[0]
    if len(sides) == 2 and all(side.op == "fn" and side.args[0] == "abs" for side in sides):
        left, right = (Node("pow", (side.args[1], num(2))) for side in sides)
        return Node("add", (left, neg(right)))
    return difference(equation)


def _unknowns(node: Node) -> frozenset[Node]:
    """Return the letters of `node`, and its values of unknown functions, such as f(3)."""
    return frozenset(here for here in walk(node) if here.op in ("sym", "apply"))


def _fraction(node: Node) -> tuple[Node, Node]:
    """Return (numerator, denominator) of an expression over one fraction bar; a function counts as a letter."""
    op, args = node
    if op == "neg":
        top, bottom = _fraction(args[0])
        return neg(top), bottom
    if op == "div":
        (top, bottom), (other_top, other_bottom) = _fraction(args[0]), _fraction(args[1])
        return Node("mul", (top, other_bottom)), Node("mul", (bottom, other_top))
    if op == "mul":
        pairs = [_fraction(part) for part in args]
        return Node("mul", tuple(top for top, _ in pairs)), Node("mul", tuple(bottom for _, bottom in pairs))
    if op == "add":
        top, bottom = _fraction(args[0])
        for part in args[1:]:
            more, below = _fraction(part)
            # A shared denominator is not multiplied in twice: the numerator would get a factor that the other side
            # does not have.
            if below == bottom:
                top = Node("add", (top, more))
            else:
                top = Node("add", (Node("mul", (top, below)), Node("mul", (more, bottom))))
                bottom = Node("mul", (bottom, below))
        return top, bottom
    exponent = args[1] if op == "pow" else None
    if exponent is not None and exponent.op == "num" and exponent.args[0] < 0:
        return num(1), Node("pow", (args[0], num(-exponent.args[0])))
    return node, num(1)


def labels_agree(reference: Statement, answer: Statement, rules: GradeRules) -> bool:
    """Whether the last name of one side is a name of the other side; a side without names agrees with every other."""
    if not reference.labels or not answer.labels:
        return True
    agree = names_agree if allows(rules, "labels_dropped") else eq  # if names count, y is not f(x)
    return any(agree(reference.labels[-1], name) for name in answer.labels) or any(
        agree(name, answer.labels[-1]) for name in reference.labels
    )


def rename_variables(reference: Statement, answer: Statement, rules: GradeRules) -> Statement | None:
    """Return the answer with the variables of its function named as in the reference: f(x) = x for f(z) = z.

    None if the answer already uses the reference's name for something else: f(a) = x + a is not f(x) = x + a.
    """
    if not reference.labels or not answer.labels or not allows(rules, "bound_variables"):
        return answer
    reference_arguments, answer_arguments = _arguments(reference.labels[-1]), _arguments(answer.labels[-1])
    if reference_arguments == answer_arguments or len(reference_arguments) != len(answer_arguments):
        return answer
    free = {name for value in answer.values for name in symbols(value)} - {name.args[0] for name in answer_arguments}
    if any(name.args[0] in free for name in reference_arguments):
        return None
    return Statement(
        answer.labels, tuple(_exchange_names(value, answer_arguments, reference_arguments) for value in answer.values)
    )


def _exchange_names(node: Node, names: tuple[Node, ...], replacements: tuple[Node, ...]) -> Node:
    """Return `node` with each of `names` replaced by the name at its place in `replacements`.

    The names may be swapped, such as x and y, so all are first replaced by unused names, and then by the new
    names.
    """
    for index, name in enumerate(names):
        node = substitute(node, name, sym(f"argument {index}"))
    for index, name in enumerate(replacements):
        node = substitute(node, sym(f"argument {index}"), name)
    return node


def _arguments(label: Node) -> tuple[Node, ...]:
    """Return the variables of f(x) or f(x, y); () if it is not a function, or an argument is not a letter or is
    repeated.
    """
    inner = label.args[1] if label.op in ("apply", "mul") and len(label.args) == 2 else None
    parts = inner.args if isinstance(inner, Node) and inner.op in ("list", "tuple") else (inner,)
    if not all(isinstance(part, Node) and part.op == "sym" for part in parts) or len(set(parts)) < len(parts):
        return ()
    return parts


# --- names before values ---
def names_agree(first: Node, second: Node) -> bool:
    """Whether two names certainly refer to the same thing."""
    if first == second:
        return True
    words = _words_of_name(first), _words_of_name(second)
    if words[0] is not None and words[1] is not None:
        return words_of(words[0]) == words_of(words[1])
    function, other_function = _function_and_argument(first), _function_and_argument(second)
    if function is not None and other_function is not None:
        (name, argument), (other_name, other_argument) = function, other_function
        variables = _is_variables(argument) and _is_variables(other_argument)
        return name == other_name and (variables or argument == other_argument)
    for letter, named in ((first, other_function), (second, function)):
        if letter.op == "sym" and named is not None:
            # A graph is y = 2x; its function is f(x) = 2x, or f = 2x.
            return letter.args[0] in ("y", named[0]) and _is_variables(named[1])
    return False


def _words_of_name(name: Node) -> str | None:
    """Return a name in words, `\\text{maximum}` or `\\max`; None for a letter and any other name."""
    is_word = name.op == "sym" and name.args[0].isalpha() and len(name.args[0]) > 1
    return name.args[0] if name.op == "text" or is_word else None


def _function_and_argument(label: Node) -> tuple[str, Node] | None:
    """Split `f(x)` into name and argument, even if it was read as a product f · x; None for anything else."""
    if label.op == "apply":
        return str(label.args[0]), label.args[1]
    if label.op != "mul" or len(label.args) != 2:
        return None
    name, argument = label.args
    if name.op != "sym" or argument.op not in ("sym", "add", "tuple", "rel", "num"):
        return None
    spelling = str(name.args[0])
    is_capital = spelling.isupper() and argument.op == "sym" and argument.args[0].islower()
    if argument.op == "sym" and not ("'" in spelling or is_capital):
        return None  # a product of two letters, unlike f'(x) and P(x)
    return spelling, argument


def _is_variables(argument: Node) -> bool:
    """Whether an argument is one or more lower-case letters. A capital may be an event or a set: P(A) is not P(B)."""
    parts = argument.args if argument.op in ("list", "tuple") else (argument,)
    return all(part.op == "sym" and not part.args[0][0].isupper() for part in parts)


# --- assignments ---
Same = Callable[[Node, Node], bool | None]
"""Function that returns whether two values are equal; None if no rule can tell."""

_COORDINATES = "xyzw"


class Assignment(NamedTuple):
    """A value for each of several distinct names."""

    names: tuple[Node, ...]
    values: tuple[Node, ...]

    def in_order(self) -> tuple[Node, ...]:
        """Return the values in the order of the coordinates x, y, z, w, or as written if a name is not a coordinate."""
        if not all(name.op == "sym" and name.args[0] in _COORDINATES for name in self.names):
            return self.values
        ranked = sorted(range(len(self.names)), key=lambda index: _COORDINATES.index(self.names[index].args[0]))
        return tuple(self.values[index] for index in ranked)


def assignments(node: Node, *, spread: bool = False) -> list[Assignment] | None:
    """Return the assignments of an answer, each with the same two or more names; None if the answer is anything else.

    spread: read `m = n = 3` as a value of both m and n; otherwise only n, the last letter, gets the value.
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
    does not: it numbers the values of one unknown.
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
            # An undecided value next to a different one does not leave the pair undecided.
            unsure = unsure or (None in verdicts and False not in verdicts)
            if all(verdicts):
                unpaired.remove(candidate)
                break
        else:
            return None if unsure else False
    return True


def _align(reference: Assignment, answer: Assignment) -> tuple[Node, ...] | None:
    """Return the answer's values in the order of the reference's names; None if the answer has other names."""
    if set(reference.names) != set(answer.names):
        return None
    return tuple(answer.values[answer.names.index(name)] for name in reference.names)
