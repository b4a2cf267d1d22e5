r"""Families of values: `\frac{\pi}{4} + k\pi` for all integers k, whatever letter stands for the integer.

The parameter of a family is the letter that a condition calls an integer (`k \in \mathbb{Z}`); without a condition it
is k, n or m in an expression with pi and no other letter. Families linear in their parameter, start + step · k, are the
same set of values if their steps are equal up to sign and their starts differ by a whole number of steps.

Also antiderivatives and general solutions, whose free constant may have any name and value: x² + C is x² + 3 + K.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import permutations

from reasoning_answers.compare.numeric import number_of
from reasoning_answers.compare.point import NotNumeric
from reasoning_answers.compare.rewriting import has_signs
from reasoning_answers.compare.scalars import Comparison, same_scalar
from reasoning_answers.grammar.tree import PI, Node, is_scalar, names, neg, num, substitute, sym, symbols, walk
from reasoning_answers.records import GradeRules

_LETTERS = frozenset("knm")
"""Letters that stand for any integer in an expression with π, without a condition."""

_INTEGER_LETTERS = names("k n m t q j l s")
"""Letters that stand for any integer in `7k + 3`, if the other side is a residue class or says so."""

_INTEGERS = frozenset("ZN")
"""Names of ℤ and ℕ in a tree, without the + or * of ℕ*."""

PARAMETER = sym("any integer")
"""The letter that replaces the parameters of both sides."""

_MAX_STEPS_APART = 4
"""Two spellings of a family may begin at most this many steps apart."""


def without_conditions(node: Node) -> tuple[Node, dict[str, str]]:
    """Split an answer from the conditions on its letters: `kπ, k ∈ ℤ` gives (kπ, {"k": "Z"}).

    A condition is an item that only states that a letter is an integer, or the x ∈ ℝ of a function. The second value
    maps each letter with a condition to its domain.
    """
    if node.op != "list":
        return node, {}
    conditions = [item for item in node.args if _says_integer(item) or _says_real(item, node.args)]
    items = tuple(item for item in node.args if item not in conditions)
    letters = {letter.name: domain.name for letter, domain in (condition.args for condition in conditions)}
    # A letter that occurs in no item is not a parameter: `m ∈ ℤ` is then part of the answer.
    if not conditions or not items or not all(letter in symbols(Node("list", items)) for letter in letters):
        return node, {}
    return (items[0] if len(items) == 1 else Node("list", items)), letters


def _says_real(item: Node, items: tuple[Node, ...]) -> bool:
    """Whether `item` is the x ∈ ℝ of `y = x^2, x ∈ ℝ`, of `x^2, x ∈ ℝ` or of `x > 2, x ∈ ℝ`."""
    if item.op != "member" or item.args[0].op != "sym" or item.args[1] != sym("R"):  # member(letter, domain)
        return False
    formulas = [part for part in items if part.op != "sym" and is_scalar(part)]
    formulas += [side for part in items if part.op == "rel" for side in part.args[0]]
    return any(item.args[0] in walk(formula) for formula in formulas)


def _says_integer(item: Node) -> bool:
    """Whether `item` states that a letter is an integer."""
    if item.op != "member":
        return False
    letter, domain = item.args
    return letter.op == "sym" and domain.op == "sym" and domain.name.rstrip("+*^") in _INTEGERS


def parameter_of(node: Node, domains: Mapping[str, str]) -> Node | None:
    """Return the letter of a family that stands for any integer: k of π/4 + kπ.

    None if no letter can be the parameter, or more than one. domains: letter → domain of the answer's conditions (see
    `without_conditions`).
    """
    if len(domains) == 1 and "R" not in domains.values():
        return sym(*domains)
    if domains or PI not in walk(node):
        return None
    letters = _letters_of_values(node)
    return sym(*letters) if len(letters) == 1 and letters <= _LETTERS else None


def integer_letter(node: Node, *, other_domains: Mapping[str, str] | None = None) -> Node | None:
    """Return the only letter of an expression if it may stand for any integer, such as k in 7k + 3; otherwise None.

    other_domains: letter → domain of the other answer's conditions (see `without_conditions`), if the two are compared.
    Then a letter counts only if that answer states a domain, but not for this letter: n in both answers may be a number
    given in the question, so 2n + 1 is not "2n - 1, n ∈ ℤ". Only k counts even if it is in both; by custom it is free.
    """
    letters = symbols(node)
    if not is_scalar(node) or len(letters) != 1 or not letters <= _INTEGER_LETTERS:
        return None
    if other_domains is not None:
        may_be_given = letters != {"k"} and letters & other_domains.keys()
        if not other_domains or may_be_given:
            return None
    return sym(*letters)


def _letters_of_values(node: Node) -> frozenset[str]:
    """Return the letters of an answer without its own name: the letters of 2kπ in x = 2kπ."""
    if node.op == "list":
        return frozenset(letter for item in node.args for letter in _letters_of_values(item))
    return symbols(node.args[0][-1] if node.op == "rel" else node)


def same_family(left: Node, right: Node, equal: Callable[[Node, Node], bool]) -> bool:
    """Whether two expressions in `PARAMETER` can be shown to be the same set of values; both must be linear in it.

    equal: whether two expressions without the parameter can be shown to be equal.
    """
    if not (is_scalar(left) and is_scalar(right)):
        return False
    (start, step), (other_start, other_step) = _line(left), _line(right)
    for expression, first, by in ((left, start, step), (right, other_start, other_step)):
        # Linear as far as the values at 0, 1 and 5 show: k² or 2^k fails, and no common answer passes without being
        # linear.
        at_5 = Node("add", (first, Node("mul", (num(5), by))))
        if not equal(substitute(expression, PARAMETER, num(5)), at_5):
            return False
    if not (equal(step, other_step) or equal(step, neg(other_step))):
        return False
    steps_apart = Node("div", (Node("add", (other_start, neg(start))), step))  # equals no number if the step is 0
    return any(equal(steps_apart, num(steps)) for steps in range(-_MAX_STEPS_APART, _MAX_STEPS_APART + 1))


def _line(expression: Node) -> tuple[Node, Node]:
    """Return (start, step) of an expression in `PARAMETER`: its value at 0, and its value at 1 minus that."""
    start = substitute(expression, PARAMETER, num(0))
    return start, Node("add", (substitute(expression, PARAMETER, num(1)), neg(start)))


# --- free constants ---
_CONSTANT = re.compile(r"[CcKkD](?:_\w+)?")
"""Letters that may be the free constant of an antiderivative."""

_FREE = re.compile(r"[A-DK](?:_\w+)?|[ck](?:_\w+)?")
_MAX_CONSTANTS = 3
"""The names of the constants of a general solution, and how many of them are matched in any order."""

_CERTAIN = re.compile(r"C(?:_\w+)?")
"""The constants that no one would mistake for a quantity in the question."""

_VARIABLES = names("x y z t u v w s r theta phi")


def same_with_constant(reference: Node, answer: Node, rules: GradeRules) -> Comparison | None:
    """Compare two expressions in one variable that each add a free constant; None for any other pair.

    Equal if the reference's constant is a capital C: the constants may have different names, or, if both are a capital
    C, the rest may differ by a real number. Otherwise undecided, since c and k may be quantities in the question.
    """
    label, value = _labeled(reference)
    answer_label, answer_value = _labeled(answer)
    if label is not None and label == answer_label and _is_same_solution(value, answer_value, rules):
        return Comparison(True, "constant")
    constant, answer_constant = _constant_of(value), _constant_of(answer_value)
    if constant is None or answer_constant is None or (label and answer_label and label != answer_label):
        return None
    value, answer_value = substitute(value, constant, sym("C")), substitute(answer_value, answer_constant, sym("C"))
    if symbols(value) != symbols(answer_value):
        return None
    is_equal: bool | None = False
    if _CERTAIN.fullmatch(constant.args[0]):
        is_equal = same_scalar(value, answer_value, rules).equal
        if not is_equal and _CERTAIN.fullmatch(answer_constant.args[0]):
            is_equal = _differ_by_real_number(value, answer_value, rules)
    return Comparison(is_equal or None, "constant")


def _is_same_solution(reference: Node, answer: Node, rules: GradeRules) -> bool:
    """Whether two general solutions in one variable, y = C_1 e^x + C_2 and y = A e^x + B, differ only in the names of
    their constants, of which one at least is a capital C.
    """
    variables = symbols(reference) & symbols(answer) & _VARIABLES
    constants, names_of_answer = sorted(symbols(reference) - variables), sorted(symbols(answer) - variables)
    are_free = all(map(_FREE.fullmatch, (*constants, *names_of_answer))) and any(map(_CERTAIN.fullmatch, constants))
    if len(variables) != 1 or not are_free or not len(constants) == len(names_of_answer) <= _MAX_CONSTANTS:
        return False
    for letters in permutations(constants):
        # A letter of the reference beside C may be given in the question, as the k of Ce^kx.
        if any(old != new and not _CERTAIN.fullmatch(new) for old, new in zip(names_of_answer, letters, strict=True)):
            continue
        renamed = answer
        for name, number in zip(names_of_answer, range(len(letters)), strict=True):
            renamed = substitute(renamed, sym(name), sym(f"constant {number}"))
        for number, letter in enumerate(letters):
            renamed = substitute(renamed, sym(f"constant {number}"), sym(letter))
        if same_scalar(reference, renamed, rules).equal:
            return True
    return False


def _labeled(node: Node) -> tuple[Node | None, Node]:
    """Return the name and the value of `y = value` and `f(x) = value`; for any other node, None and the node."""
    if node.op == "rel" and node.args[1] == ("=",) and node.args[0][0].op in ("sym", "apply"):
        return node.args[0][0], node.args[0][1]
    return None, node


def _constant_of(node: Node) -> Node | None:
    """Return the letter that is the free constant of an expression in one variable, such as C in x² + C, or None."""
    terms = node.args if node.op == "add" and is_scalar(node) and not has_signs(node) else ()
    constants = [term for term in terms if term.op == "sym" and _CONSTANT.fullmatch(term.args[0])]
    if len(constants) != 1:
        return None
    others = {name for term in terms if term is not constants[0] for name in symbols(term)}
    return constants[0] if len(others) == 1 and others <= _VARIABLES else None


def _differ_by_real_number(left: Node, right: Node, rules: GradeRules) -> bool:
    """Whether left − right is the same real number for all values of the letters: ln|x| + C and ln|3x| + C."""
    difference = Node("add", (left, neg(right)))
    # Several points, because the difference may be undefined at one of them: 1/(x − 2) at 2, ln x at -1.
    for point in (2, 1, -1):
        value = difference
        for name in symbols(difference):
            value = substitute(value, sym(name), num(point))
        try:
            if number_of(value).imag == 0 and same_scalar(difference, value, rules).equal:
                return True
        except NotNumeric:
            continue
    return False
