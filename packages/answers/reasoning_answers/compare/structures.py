"""Equality of two trees of any kind: `same`, and a rule for each pair of kinds.

A structure is an answer of several values: a list, a set, an interval, a matrix, an equation. `same` rewrites both
trees to a common form (`_prepare`), and applies the first of these rules that fits the two kinds:

    1  scalars on both sides: `scalars`          2  the same tree
    3  ± on a side: all values written out       4 families, which a letter for any integer makes
    5  names with values on a side               6  alternatives: "a = 0 or b = 0"
    7  residue classes      8  equations         9  lists          10  memberships   11  words
    12  cases               13  matrices         14  ratios         15  sets of reals
    16  relations           17  tuples and brackets                   else: different

Before any of these, a value with a condition is split, and the value and the condition are compared. Parts are
compared by `same` again. A comparison has three values: True, False (shown to differ), None (no rule can tell); a
structure is equal if all parts are, and different as soon as a part is shown to differ. The order of the rules counts:
`x = 1, x = 2` is a list of equations (8 before 9), and `(1, 2)` is an interval compared with a set (15) but a point
compared with a point (17). Reference and answer cannot be swapped, since a response may state more than a reference
asks for (docs/grading.md). A function with a parameter `swapped` accepts either order: True means that its first
argument comes from the answer.

Long: structures contain structures, so the rules for all kinds call one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from reasoning_answers.compare.conventions import allows
from reasoning_answers.compare.equations import (
    Assignment,
    Statement,
    assignments,
    is_equation,
    labels_agree,
    names_several,
    rename_variables,
    same_assignments,
    same_equations,
    same_union,
    statement,
)
from reasoning_answers.compare.exact import exact, is_same_or_rounded
from reasoning_answers.compare.families import PARAMETER, integer_letter, parameter_of, same_family, without_conditions
from reasoning_answers.compare.ratios import same_base, same_classes, same_ratios, with_modulus
from reasoning_answers.compare.realsets import NotASet, is_inequality, letters, real_set, same_sets
from reasoning_answers.compare.rewriting import has_signs, items_of, values_of_signs, without_ellipsis
from reasoning_answers.compare.scalars import Comparison, contains_nan, same_scalar
from reasoning_answers.grammar.qualifiers import defines_only
from reasoning_answers.grammar.tree import (
    INFINITY,
    SETS,
    STRUCTURES,
    I,
    Node,
    is_scalar,
    substitute,
    sym,
    symbols,
    walk,
)
from reasoning_answers.grammar.units import qualifies
from reasoning_answers.records import GradeRules

_UNREAD = Comparison(None, "structure")
"""The result for two kinds of structures that no rule can compare: undecided."""

_UNIT_VECTORS = (I, sym("j"), sym("k"))
"""The letters of unit vectors, as the grammar reads them: i is read as the imaginary unit."""

_WORDS = ("text", "given")
"""Kinds of nodes that contain words, so no rule can determine how many values they stand for."""

_NOT_POLYNOMIAL = ("text", "given", "fn", "apply", "root", "pm", "mp", "ratio")
"""Kinds of nodes that do not occur in polynomials."""

_FLIP = {">": "<", ">=": "<="}
"""Sign of a relation → its sign when the relation is reversed."""


_SYMMETRIC = frozenset("∧∨∥⊥≅∼≡≈")
"""Signs whose sides may be swapped."""


def same(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Decide whether two answers of any kind (numbers, sets, intervals, matrices, …) are equal."""
    if "given" in (reference.op, answer.op):
        return _compare_under_conditions(reference, answer, rules)
    if not (has_signs(reference) or has_signs(answer)) and not {reference.op, answer.op} & STRUCTURES:
        return _same_expressions(reference, answer, rules)
    if reference == answer and not contains_nan(reference):
        return Comparison(True, "identical")
    if has_signs(reference) or has_signs(answer):
        return _compare_sign_alternatives(reference, answer, rules)
    reference, answer = _prepare(reference), _prepare(answer)
    if (families := _with_parameters(reference, answer)) is not None:
        return same(*families, rules)
    named = _same_named(reference, answer, rules)
    if named is not None:
        return named
    if "either" in (reference.op, answer.op):
        return _same_alternatives(reference, answer, rules)
    # Names are dropped between different kinds, and if they are equal: x ≡ 3 and y ≡ 3 are compared with their names.
    one_name = reference.op == answer.op == "rel" and reference.args[0][0] == answer.args[0][0]
    if one_name or (reference.op != answer.op and allows(rules, "labels_dropped")):
        reference, answer = _class_of(reference), _class_of(answer)
    if "congruence" in (reference.op, answer.op):
        return same_classes(reference, answer, rules)
    if reference.op == answer.op == "rel" and ("≡" in reference.args[1]) != ("≡" in answer.args[1]) and not one_name:
        return Comparison(None, "label")  # x = 1 against y ≡ 1 (mod 6)
    if is_equation(reference) or is_equation(answer):
        return _same_statements(reference, answer, rules)
    if "list" in (reference.op, answer.op) and "member" in (reference.op, answer.op):
        return same(_member_set(reference), _member_set(answer), rules)
    if reference.op == "list" or answer.op == "list":
        return _same_lists(reference, answer, rules)
    if reference.op == "member" or answer.op == "member":
        if reference.op == answer.op and not (elements := same(reference.args[0], answer.args[0], rules)).equal:
            return elements  # 8 ∈ S against 9 ∈ S
        return same(_member_set(reference), _member_set(answer), rules)
    if "cases" in (reference.op, answer.op):
        return _same_cases(reference, answer, rules)
    if allows(rules, "vector_as_tuple"):
        reference, answer = _by_unit_vectors(reference, answer), _by_unit_vectors(answer, reference)
        if {reference.op, answer.op} & {"tuple", "bracket", "matrix"} and (
            _may_be_vector(reference) or _may_be_vector(answer)
        ):
            return Comparison(None, "vector")
    if is_scalar(reference) and is_scalar(answer):
        return same_scalar(reference, answer, rules)
    if "matrix" in (reference.op, answer.op):
        return _same_matrices(reference, answer, rules)
    if "ratio" in (reference.op, answer.op):
        return same_ratios(reference, answer, rules)
    if _is_set_like(reference) or _is_set_like(answer):
        return _same_sets(reference, answer, rules)
    if reference.op == answer.op == "rel":
        return _same_relations(reference, answer, rules)
    if reference.op == answer.op and reference.op in ("tuple", "bracket"):
        return _in_order(reference.args, answer.args, rules, "tuple")
    return Comparison(False, "structure") if _are_of_other_numbers(reference, answer) else _UNREAD


def _same_expressions(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two answers without structure: as scalars, and as families."""
    if reference.op == "base" or answer.op == "base":
        return same_base(reference, answer, rules)
    result = same_scalar(reference, answer, rules)
    if result.equal:
        return result
    if result.equal is False and "C" in symbols(reference) & symbols(answer):
        return Comparison(None, "constant")  # C may be any constant: ln|x| + C and ln|3x| + C
    return _same_family(reference, answer, rules) or result


def _compare_under_conditions(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare values that have conditions: the answer's condition must equal the reference's.

    A condition that only the reference states comes from the question, so the answer need not repeat it.
    "Approximately" in the answer is accepted if the reference is rounded.
    """
    value, condition = reference.args if reference.op == "given" else (reference, None)
    answer_value, answer_condition = answer.args if answer.op == "given" else (answer, None)
    result = same(value, answer_value, rules)
    if condition is None and defines_only(answer_condition or ""):
        return result
    if result.equal is False and symbols(answer_value):
        return Comparison(None, "condition")  # the condition may define the letters
    if not result.equal or answer_condition in (None, condition):
        return result
    rounded = answer_condition == "approximately" and any(here.op == "num" and here.args[1] > 0 for here in walk(value))
    return result if rounded else Comparison(None, "condition")


def _are_of_other_numbers(reference: Node, answer: Node) -> bool:
    """Whether one side is a single number and the other has several; False if a side has anything but numbers."""
    counts = [_count(node) for node in (reference, answer)]
    return None not in counts and 1 in counts and counts[0] != counts[1]


def _count(node: Node) -> int | None:
    """Return how many separate numbers an answer has; None if it is neither a number nor a structure of numbers."""
    if node.op in ("list", "tuple", "set", "bracket", "interval"):
        items = [part for part in node.args if isinstance(part, Node)]
        return len(items) if all(_count(item) == 1 for item in items) else None
    return 1 if is_scalar(node) and not symbols(node) else None


def _prepare(node: Node) -> Node:
    """Rewrite `node` into the form that the rules expect: drop names of points, compute sums of matrices, and so on."""
    return _computed(without_ellipsis(with_modulus(_drop_point_name(node))))


def _with_parameters(reference: Node, answer: Node) -> tuple[Node, Node] | None:
    """Return both sides without their conditions (k ∈ ℤ), and with `PARAMETER` in place of the letter for any integer.

    If that letter is not known for a side, a residue class and `x = 7k + 2` are returned as their values, and other
    sides unchanged if each has every letter of a condition. Return None otherwise, and if neither side has a condition.
    """
    (left, left_domains), (right, right_domains) = without_conditions(reference), without_conditions(answer)
    if not (left_domains or right_domains):
        return None
    if left_domains and right_domains and set(left_domains.values()) != set(right_domains.values()):
        return None  # one letter is an integer, the other a real number
    left_letter = parameter_of(left, left_domains) or integer_letter(left, other_domains=right_domains)
    right_letter = parameter_of(right, right_domains) or integer_letter(right, other_domains=left_domains)
    if left_letter is None or right_letter is None:
        domains = left_domains or right_domains
        if set(domains.values()) == {"Z"} and "congruence" in (_class_of(left).op, _class_of(right).op):
            # x ≡ 2 (mod 7) and x = 7k + 2 for an integer k
            return _class_of(left), _class_of(right)
        if is_inequality(left) and left_domains != right_domains and "R" not in right_domains.values():
            return None  # x > 2 and x ∈ ℤ says more than x > 2
        return (left, right) if all(name in symbols(node) for name in domains for node in (left, right)) else None
    return substitute(left, left_letter, PARAMETER), substitute(right, right_letter, PARAMETER)


def _same_family(reference: Node, answer: Node, rules: GradeRules) -> Comparison | None:
    """Compare two families of values, whatever letter stands for the integer; None unless they are equal."""
    letter, answer_letter = parameter_of(reference, {}), parameter_of(answer, {})
    if PARAMETER in walk(reference) and PARAMETER in walk(answer):
        letter = answer_letter = PARAMETER
    if letter is None or answer_letter is None or not {PARAMETER, sym("k")} & {letter, answer_letter}:
        return None  # n and m may be quantities of the question; k next to π is an integer by custom
    left, right = substitute(reference, letter, PARAMETER), substitute(answer, answer_letter, PARAMETER)
    agreed = same_family(left, right, lambda left, right: bool(same_scalar(left, right, rules).equal))
    return Comparison(True, "family") if agreed else None


# --- several values in one ---
def _compare_sign_alternatives(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare answers with ± by the lists of their values.

    `(±a, ±b)` may be four points, or two points with equal signs. Both answers are read first one way, then the other;
    they are equal if either reading makes them equal. Undecided if there are too many values.
    """
    for independent in (True, False):
        left, right = values_of_signs(reference, independent), values_of_signs(answer, independent)
        if left is None or right is None:
            return Comparison(None, "bounds")
        result = same(left, right, rules)
        if result.equal:
            return result
    return result


# --- lists ---
def _drop_point_name(node: Node) -> Node:
    """Return the point (3, 4) of `P(3, 4)`; any other node unchanged."""
    if node.op == "mul" and len(node.args) == 2:
        name, point = node.args
        return point if point.op == "tuple" and name.op == "sym" and name.name[:1].isupper() else node
    return node


def _class_of(node: Node) -> Node:
    """Return the residue class that `x ≡ 3 (mod 5)` names; any other node unchanged."""
    named = node.op == "rel" and node.args[1] == ("≡",) and node.args[0][0].op == "sym"
    return node.args[0][1] if named and node.args[0][1].op == "congruence" else node


def _same_lists(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two answers, at least one of them a list."""
    reference_items, answer_items = items_of(reference), items_of(answer)
    are_conditions = all(item.op in ("member", "rel") for item in (*reference_items, *answer_items))
    if are_conditions or any(node.op == "list" and any(map(is_inequality, node.args)) for node in (reference, answer)):
        result = _compare_real_sets(reference, answer, rules)
        # Only equality counts here: lists that differ as sets may be equal item by item.
        if result is not None and result.equal:
            return result
    for node, counterpart, swapped in ((reference, answer, False), (answer, reference, True)):
        if node.op == "list" and counterpart.op != "list":
            result = _compare_list_with_structure(node, counterpart, rules, swapped)
            if result is not None:
                return result
    if len(reference_items) != len(answer_items):
        if _is_no_list_of_values(reference, answer_items):
            return Comparison(None, "list")
        return Comparison(_verdict_on_sizes(reference_items, answer_items), "list")
    if rules.ordered or not allows(rules, "lists_unordered"):
        return _in_order(reference_items, answer_items, rules, "list")
    return _in_any_order(reference_items, answer_items, rules, "list")


def _is_no_list_of_values(reference: Node, items: Sequence[Node]) -> bool:
    """Whether some parts of an answer are not values, although the reference consists of values.

    They are conditions or steps, such as `|x| = 3, x < 0` compared with -3, or have letters although the reference has
    none.
    """
    if _is_set_like(reference) or any(part.op == "rel" for part in walk(reference)):
        return False
    values = [_value_of(item) for item in items]
    if any(value.op == "rel" for value in values):
        return True
    return not symbols(reference) and any(map(symbols, values))


def _value_of(item: Node) -> Node:
    """Return the value that an equation such as `x = 3` gives to a name; any other node as it is."""
    parts = statement(item) if is_equation(item) else None
    return parts.values[-1] if parts is not None and parts.labels else item


def _compare_list_with_structure(
    listed: Node, counterpart: Node, rules: GradeRules, swapped: bool
) -> Comparison | None:
    """Compare a list with a structure that is not a list; None if no rule applies.

    swapped: whether the list is the answer.
    """
    if counterpart.op == "union" and (
        swapped or any(item.op == "interval" or INFINITY in walk(item) for item in listed.args)
    ):
        return _compare_real_sets(Node("union", listed.args), counterpart, rules)  # adjacent intervals
    if counterpart.op == "set" and allows(rules, "list_as_set"):
        result = _in_any_order(_without_repeats(listed.args), _without_repeats(counterpart.args), rules, "set")
        # A set has no order, so any order in it is accidental.
        is_open = result.equal and rules.ordered and not _in_order(listed.args, counterpart.args, rules, "set").equal
        return Comparison(None, "set") if is_open else result
    # Two items in square brackets are a closed interval, which an answer may have meant as a list.
    if counterpart.op == "bracket" and (len(counterpart.args) != 2 or not swapped):
        result = _in_any_order(listed.args, counterpart.args, rules, "list")
        return Comparison(None, "list") if len(counterpart.args) == 2 and result.equal else result
    if counterpart.op == "tuple" and allows(rules, "list_as_tuple"):
        if _values_of_one_name(listed):
            return Comparison(False, "tuple")  # `x = 1 or x = 2` is not a point
        return _in_order(listed.args, counterpart.args, rules, "tuple")
    if swapped and counterpart.op == "rel" and not is_equation(counterpart) and _has_no_letter(counterpart):
        return Comparison(None, "ordering")  # 3.5, 3.05 against 3.5 > 3.05
    return None


def _values_of_one_name(listed: Node) -> bool:
    """Whether every item of a list gives a value to the same name: `x = 1, x = 2`."""
    statements = [statement(item) if is_equation(item) else None for item in listed.args]
    names = {parts.labels[-1] if parts is not None and parts.labels else None for parts in statements}
    return len(statements) > 1 and len(names) == 1 and None not in names


def _same_named(reference: Node, answer: Node, rules: GradeRules) -> Comparison | None:
    """Compare two answers, at least one of which gives values to names (`x = 1, y = 2`); None if neither does."""
    reference_names, answer_names = assignments(reference), assignments(answer)
    # m = n = 3 is read as two values (`spread`) only against a list, a tuple or other named values.
    if reference_names is None and answer_names is None and not {reference.op, answer.op} & {"list", "tuple"}:
        return None
    reference_names = reference_names or assignments(reference, spread=True)
    answer_names = answer_names or assignments(answer, spread=True)
    if reference_names is None and answer_names is None:
        return None
    if reference_names is not None and answer_names is not None:
        agreed = same_assignments(reference_names, answer_names, lambda left, right: same(left, right, rules).equal)
        if agreed is False and len(reference_names) == len(answer_names) == 1 and not names_several(reference):
            # x_1 = 2, x_2 = 3: solutions may be numbered in any order, the terms of a sequence may not.
            alike = _in_any_order(reference_names[0].values, answer_names[0].values, rules, "names")
            agreed = None if alike.equal else False
        return Comparison(agreed, "names")
    if not allows(rules, "labels_dropped"):
        return Comparison(None, "names")
    if reference_names is not None:
        return _compare_names_with_values(reference_names, answer, rules, swapped=False)
    return _compare_names_with_values(answer_names or [], reference, rules, swapped=True)


def _compare_names_with_values(
    named: Sequence[Assignment], bare: Node, rules: GradeRules, *, swapped: bool
) -> Comparison:
    """Compare assignments (`x = 1, y = 2`) with values that have no names.

    named: one assignment per solution; several are compared as a list of tuples. bare: the values without names.
    swapped: whether `named` is the answer and `bare` the reference, whose list or set has no order; otherwise `bare` is
    the answer, and its values must be in the order of the names. Undecided if a value could belong to several names.
    """
    tuples = [Node("tuple", assignment.in_order()) for assignment in named]
    if len(tuples) > 1:
        listed = Node("list", tuple(tuples))
        return same(bare, listed, rules) if swapped else same(listed, bare, rules)
    values = tuples[0].args
    if is_equation(bare) and (parts := statement(bare)) is not None and parts.labels:
        # A named tuple, (x, y) = (1, 2), is its value here, as the other side has the names.
        bare = parts.values[-1]
    if bare.op == "list" and any(is_equation(item) for item in bare.args):
        return Comparison(None, "names")  # several values of one name, not a value for each
    if swapped and bare.op in ("list", "set") and not rules.ordered and allows(rules, "lists_unordered"):
        return _in_any_order(bare.args, values, rules, "names")
    entries: Sequence[Node] | None = None
    if bare.op == "matrix":
        entries = _vector(bare)
    elif bare.op in ("list", "tuple", "set"):
        entries = bare.args
    if entries is None:
        # x = 70, y = 110 against 70: it is not known which of the two was asked for.
        holds = swapped and any(same(bare, value, rules).equal is not False for value in values)
        return Comparison(False if _count(bare) == 1 and not holds else None, "names")
    if swapped:
        return _in_order(entries, values, rules, "names")
    return _in_order(values, entries, rules, "names")


def _in_order(left_items: Sequence[Node], right_items: Sequence[Node], rules: GradeRules, rule: str) -> Comparison:
    """Compare two lists of parts, the first with the first and so on. rule: the name to record."""
    if len(left_items) != len(right_items):
        return Comparison(_verdict_on_sizes(left_items, right_items), rule)
    unsure = False
    # The first pair that differs decides: a later one cannot make the answer right.
    for left, right in zip(left_items, right_items, strict=True):
        result = _same_part(left, right, rules)
        if result.equal is False:
            return Comparison(False, rule)
        unsure = unsure or result.equal is None
    return Comparison(None if unsure else True, rule)


def _verdict_on_sizes(left_items: Sequence[Node], right_items: Sequence[Node]) -> bool | None:
    """Return the verdict on structures of different sizes: False, or None if a side has words, which may be several
    values.
    """
    unread = any(here.op in _WORDS for item in (*left_items, *right_items) for here in walk(item))
    return None if unread else False


def _in_any_order(left_items: Sequence[Node], right_items: Sequence[Node], rules: GradeRules, rule: str) -> Comparison:
    """Compare two lists of parts that may be paired in any order. rule: the name to record.

    Each part is paired with its first equal partner. If a part has none, the lists differ, or are undecided if a tried
    pair is undecided.
    """
    if len(left_items) != len(right_items):
        return Comparison(_verdict_on_sizes(left_items, right_items), rule)
    # Most answers keep the order of the reference, so the first item without a partner is usually the match.
    unpaired = list(right_items)
    unsure = False
    for item in left_items:
        for index, candidate in enumerate(unpaired):
            result = _same_part(item, candidate, rules)
            unsure = unsure or result.equal is None
            if result.equal:
                unpaired.pop(index)
                break
        else:
            return Comparison(None if unsure else False, rule)
    return Comparison(True, rule)


def _same_part(left: Node, right: Node, rules: GradeRules) -> Comparison:
    """Compare two parts of answers, as `same` does, but a set equals no single value: in a list, {5} is not 5."""
    if (left.op == "set") != (right.op == "set"):
        return Comparison(_verdict_on_sizes((left,), (right,)), "set")
    return same(left, right, rules)


def _without_repeats(items: Sequence[Node]) -> list[Node]:
    """Return `items` without any whose exact value or tree occurred before."""
    distinct: list[Node] = []
    values: list[object] = []
    for item in items:
        number = exact(item)
        value = item if number is None else number
        if value not in values:
            values.append(value)
            distinct.append(item)
    return distinct


# --- names and equations ---
def _same_alternatives(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare alternatives, `a = 0 or b = 0`, as statements, as one curve (ab = 0), or as values of one name."""
    if reference.op == answer.op:
        return _in_any_order(reference.args, answer.args, rules, "equation")
    alternatives, counterpart = (reference, answer) if reference.op == "either" else (answer, reference)
    if is_equation(counterpart) and same_union(alternatives.args, counterpart):
        return Comparison(True, "equation")
    names = {parts.labels for item in alternatives.args if (parts := statement(item)) is not None}
    if len(names) != 1 or () in names:
        return Comparison(None, "equation")
    listed = Node("list", alternatives.args)
    return same(listed, counterpart, rules) if alternatives is reference else same(counterpart, listed, rules)


def _names_fewer(reference: Statement, answer: Statement) -> bool:
    """Whether the reference gives one value to several letters, the answer only to some: m = n = 3, m = 3."""
    letters = {label.args[0] for label in reference.labels if label.op == "sym"}
    named = {label.args[0] for label in answer.labels if label.op == "sym"}
    return len(letters) == len(reference.labels) > 1 and bool(named) and named < letters


def _same_statements(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two answers, at least one of them an equation: with its name dropped, or as a curve."""
    if {reference.op, answer.op} & {"list", "set"} and (_names_nothing(reference) or _names_nothing(answer)):
        return Comparison(None, "equation")  # |x| = 3 against -3, 3 may repeat the question
    if reference.op == "list" or answer.op == "list":
        return _same_lists(reference, answer, rules)
    reference_parts = statement(reference) if is_equation(reference) else None
    answer_parts = statement(answer) if is_equation(answer) else None
    if is_equation(reference) and is_equation(answer):
        return _same_two_equations(reference, reference_parts, answer, answer_parts, rules)
    if not allows(rules, "labels_dropped"):
        return Comparison(None, "label")
    if is_equation(reference):
        if reference_parts is not None:
            return _compare_chains(reference_parts, Statement((), (answer,)), rules)
        return Comparison(None, "equation")
    if answer_parts is not None:
        if any(label.op == "text" and qualifies(label.args[0]) for label in answer_parts.labels):
            return Comparison(None, "label")  # a bound or a condition, not a name: 至少是 5, "if n is even": 5
        if _contradicts_itself(answer):
            return Comparison(None, "chain")
        return _compare_chains(Statement((), (reference,)), answer_parts, rules)
    # The answer states what it computed: `a + b = 12` for "what is a + b".
    operands = answer.args[0]
    if _has_no_letter(operands[-1]) and not _has_no_letter(operands[0]) and not _has_words(operands[0]):
        return same(reference, operands[-1], rules)
    return Comparison(None, "equation")


def _contradicts_itself(equation: Node) -> bool:
    """Whether an equation without ≈ equates an integer with a different decimal, `8 = 8.5`."""
    are_integers = {side.args[0].denominator == 1 for side in equation.args[0] if side.op == "num"}
    return set(equation.args[1]) == {"="} and len(are_integers) > 1


def _same_two_equations(
    reference: Node, reference_parts: Statement | None, answer: Node, answer_parts: Statement | None, rules: GradeRules
) -> Comparison:
    """Compare two equations: the values that they give to one name, then the curves that they define.

    reference_parts, answer_parts: their names and values; None for an equation that names nothing.
    """
    is_solved = reference_parts is not None and not symbols(reference_parts.values[-1])
    if is_solved and answer_parts is None and same_equations(reference, answer):
        return Comparison(None, "unsolved")  # 3x = 9 against x = 3
    if reference_parts is not None and answer_parts is not None:
        if _names_fewer(reference_parts, answer_parts):
            return Comparison(None, "names")
        if labels_agree(reference_parts, answer_parts, rules):
            answer_renamed = rename_variables(reference_parts, answer_parts, rules)
            result = _UNREAD if answer_renamed is None else _compare_chains(reference_parts, answer_renamed, rules)
            # Names that differ may still belong to one curve, so only equal names make "different" final.
            if result.equal or (result.equal is False and reference_parts.labels == answer_parts.labels):
                return result
    if same_equations(reference, answer):
        return Comparison(True, "equation")
    return Comparison(_verdict_on_curves(reference, answer), "equation")


def _names_nothing(node: Node) -> bool:
    """Whether `node` is an equation without a name on its left, such as |x| = 3."""
    parts = statement(node) if is_equation(node) else None
    return is_equation(node) and (parts is None or any(label.op == "fn" for label in parts.labels))


def _has_words(node: Node) -> bool:
    """Whether the tree has words, which may mean that what follows is a condition: `2 unless n = 2`."""
    return any(here.op in (*_WORDS, "quantity") for here in walk(node))


def _verdict_on_curves(reference: Node, answer: Node) -> bool | None:
    """Return the verdict on two equations that are not multiples of one another: False, or None if no rule can tell.

    No rule can tell if a side has words, a function, a root, ±, a power with a letter in its exponent, or a letter that
    the other side does not have.
    """
    if symbols(reference) != symbols(answer):
        return None
    parts = [here for node in (reference, answer) for here in walk(node)]
    are_open = any(here.op in _NOT_POLYNOMIAL or (here.op == "pow" and symbols(here.args[1])) for here in parts)
    return None if are_open else False


def _has_no_letter(node: Node) -> bool:
    """Whether the tree has no letter and no unknown function."""
    return not any(here.op in ("sym", "apply") for here in walk(node))


def _compare_chains(reference: Statement, answer: Statement, rules: GradeRules) -> Comparison:
    """Compare two chains of values (`2 = 4/2`): they agree if any value of one chain equals any value of the other.

    Both chains must be consistent: all parts of a chain must have the same value.
    """
    result = same(reference.values[-1], answer.values[-1], rules)
    if len(reference.values) == 1 and len(answer.values) == 1:
        return result
    # The last values may agree while a part of the chain is another number: 2 + 2 = 5 = 4.
    pairs = ((left, right) for left in reference.values for right in answer.values)
    if result.equal or any(same(left, right, rules).equal for left, right in pairs):
        verdict = _all_true((_is_consistent(reference), _is_consistent(answer)))
        if verdict and not result.equal and reference.values[-1].op == answer.values[-1].op == "quantity":
            verdict = None  # 6 * 2 = 12 cm against 12 m
        return result if result.equal is verdict else Comparison(verdict, "chain")
    return result


def _is_consistent(chain: Statement) -> bool | None:
    """Whether all parts of a chain have the same value, exactly or as rounded decimals; None if undecided."""
    return _all_true([_is_same_part(left, right) for left, right in combinations(chain.values, 2)])


def _is_same_part(left: Node, right: Node) -> bool | None:
    """Whether two parts of a chain are equal. A bare number gets the unit of the other part: 6 * 2 = 12 cm."""
    if (left.op == "quantity") != (right.op == "quantity"):
        left, right = (part.args[0] if part.op == "quantity" else part for part in (left, right))
    quotients = [
        Node("div", part.args) if part.op == "ratio" and len(part.args) == 2 else part for part in (left, right)
    ]
    return is_same_or_rounded(*quotients)


def _all_true(verdicts: Sequence[bool | None]) -> bool | None:
    """Return False if any verdict is False, otherwise None if any is undecided, otherwise True."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


# --- sets ---
def _member_set(node: Node) -> Node:
    """Return the set of `x ∈ set`; any other node unchanged."""
    return node.args[1] if node.op == "member" else node


def _is_set_like(node: Node) -> bool:
    """Whether `node` is a set, or may be read as one: an inequality, two numbers in square brackets, ℝ."""
    return node.op in SETS or node.op == "bracket" or is_inequality(node) or node == sym("R")


def _same_sets(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two answers, at least one of them set-like: by members, by solutions, or as written."""
    ops = reference.op, answer.op
    if ops == ("set", "set"):
        return _in_any_order(_without_repeats(reference.args), _without_repeats(answer.args), rules, "set")
    if (is_scalar(reference) or is_scalar(answer)) and sym("R") not in (reference, answer):
        return _compare_set_with_number(reference, answer, rules)
    if ops == ("bracket", "bracket"):
        return _in_order(reference.args, answer.args, rules, "list")
    if set(ops) == {"bracket", "tuple"} and len(reference.args) > 2 and allows(rules, "vector_as_tuple"):
        return _in_order(reference.args, answer.args, rules, "vector")
    if not allows(rules, "inequality_as_interval") and is_inequality(reference) != is_inequality(answer):
        return Comparison(None, "set")
    # Inequalities are first compared as written, since endpoints with letters have no order on the real line.
    if is_inequality(reference) and is_inequality(answer):
        result = _same_relations(reference, answer, rules)
        if result.equal is not None:
            return result
        if letters(reference) != letters(answer):
            return Comparison(None, "relation")
    if ops == ("inter", "inter") and len({letters(reference), letters(answer)} - {frozenset()}) > 1:
        return Comparison(None, "set")
    result_of_sets = _compare_real_sets(reference, answer, rules)
    if result_of_sets is not None:
        return result_of_sets
    if ops[0] == ops[1] and ops[0] in ("union", "inter"):
        return _in_any_order(reference.args, answer.args, rules, "set")
    return Comparison(False if _are_of_other_numbers(reference, answer) else None, "set")


def _compare_set_with_number(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare a number with a set that may contain only it: [2, 2] and 2."""
    node, scalar = (answer, reference) if is_scalar(reference) else (reference, answer)
    try:
        pieces = real_set(node)
    except NotASet:
        return Comparison(None, "set")
    # Both ends must be one closed value: (2, 2) is empty, and [2, 3] is not a number.
    single = len(pieces) == 1 and same_scalar(pieces[0].low, pieces[0].high, rules).equal
    if symbols(scalar) or not (single and pieces[0].closed_low and pieces[0].closed_high):
        return Comparison(None if symbols(scalar) else False, "set")
    member = pieces[0].low
    return same_scalar(scalar, member, rules) if scalar is reference else same_scalar(member, scalar, rules)


def _compare_real_sets(reference: Node, answer: Node, rules: GradeRules) -> Comparison | None:
    """Compare two answers as sets of real numbers; None if a side cannot be read as one."""
    try:
        left, right = real_set(reference), real_set(answer)
    except NotASet:
        return None
    return Comparison(
        same_sets(left, right, lambda left, right: bool(same_scalar(left, right, rules).equal)), "interval"
    )


# --- relations as they are written; `realsets` compares their solutions ---
def _same_relations(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two relations as they are written: equal, or undecided.

    They are equal if one is the reverse of the other (1 < x is x > 1), or if their sign has no direction and their
    sides are the same in any order.
    """
    left, right = _orient(reference), _orient(answer)
    (left_operands, signs), (right_operands, right_signs) = left.args, right.args
    if signs != right_signs:
        return Comparison(None, "relation")
    are_same = all(same(*sides, rules).equal for sides in zip(left_operands, right_operands, strict=True))
    return Comparison(are_same or None, "relation")


def _orient(node: Node) -> Node:
    """Return the relation in one of its two spellings: 2 < x for x > 2; with a sign such as ≈, its sides are sorted."""
    operands, signs = node.args
    if len(set(signs)) == 1 and signs[0] in _SYMMETRIC:
        return Node("rel", (tuple(sorted(operands, key=repr)), signs))
    if any(sign in _FLIP for sign in signs) and all(sign in _FLIP or sign == "=" for sign in signs):
        return Node("rel", (tuple(reversed(operands)), tuple(_FLIP.get(sign, sign) for sign in reversed(signs))))
    return node


# --- matrices, vectors and cases ---
def _same_matrices(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two answers, at least one of them a matrix; one with a single row or column may equal a tuple."""
    if reference.op == answer.op == "matrix":
        if len(reference.args) != len(answer.args) or len(reference.args[0]) != len(answer.args[0]):
            return Comparison(False, "matrix")
        left = [cell for row in reference.args for cell in row]
        right = [cell for row in answer.args for cell in row]
        return _in_order(left, right, rules, "matrix")
    matrix, vector = (reference, answer) if reference.op == "matrix" else (answer, reference)
    entries = _vector(matrix)
    if entries is None or vector.op not in ("tuple", "bracket") or not allows(rules, "vector_as_tuple"):
        return Comparison(False if _count(vector) is not None else None, "matrix")
    return _in_order(entries, vector.args, rules, "vector")


def _computed(node: Node) -> Node:
    """Return a sum of multiples of matrices, `k·A + B`, as one matrix; any other node unchanged."""
    if node.op == "add":
        terms = [_computed(term) for term in node.args]
        sizes = {(len(term.args), len(term.args[0])) if term.op == "matrix" else None for term in terms}
        if None in sizes or len(sizes) > 1:
            return node
        rows = zip(*(term.args for term in terms), strict=True)
        return Node("matrix", tuple(tuple(Node("add", cells) for cells in zip(*row, strict=True)) for row in rows))
    *factors, matrix = node.args if node.op == "mul" else [node]
    if not factors or matrix.op != "matrix" or not all(map(is_scalar, factors)):
        return node
    return Node("matrix", tuple(tuple(Node("mul", (*factors, cell)) for cell in row) for row in matrix.args))


def _by_unit_vectors(node: Node, counterpart: Node) -> Node:
    """Return `node`, a side of `(3, 4)` against `3i + 4j`, as a sum of unit vectors in which i is a letter.

    The vector thus becomes a sum, and the sum has the letter i in place of the imaginary unit. Any other node is
    returned unchanged. counterpart: the other side.
    """
    vector, total = (counterpart, node) if is_scalar(node) else (node, counterpart)
    entries = _vector(vector) if vector.op == "matrix" else vector.args if vector.op in ("tuple", "bracket") else ()
    terms = total.args if total.op == "add" and is_scalar(total) else ()
    units = [[here for here in walk(term) if here in _UNIT_VECTORS] for term in terms]  # the unit vectors of each term
    # One unit in each term: 1 + 2i is a complex number, and so is i alone, and i² + j² is not a sum of vectors.
    is_sum = all(len(of_term) == 1 for of_term in units) and I in walk(total) and len({unit for (unit,) in units}) > 1
    n_units = 3 if [sym("k")] in units else 2
    if not is_sum or not n_units <= len(entries or ()) <= 3 or set(_UNIT_VECTORS) & set(walk(vector)):
        return node
    if vector is node:
        node = Node("add", tuple(Node("mul", pair) for pair in zip(entries or (), _UNIT_VECTORS, strict=False)))
    return substitute(node, I, sym("i"))


def _may_be_vector(node: Node) -> bool:
    """Whether an expression contains i, and every term has a unit vector's letter (3i) or is a number."""
    terms = node.args if node.op == "add" else (node,)
    return is_scalar(node) and I in walk(node) and all(set(_UNIT_VECTORS) & set(walk(term)) for term in terms)


def _same_cases(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare cases one by one, in any order. A difference is undecided: other cases may define the same function."""
    same_kind = reference.op == answer.op
    is_equal = same_kind and _in_any_order(reference.args, answer.args, rules, "cases").equal
    return Comparison(is_equal or None, "cases")


def _vector(matrix: Node) -> list[Node] | None:
    """Return the entries of a matrix with a single row or column; otherwise None."""
    if len(matrix.args) == 1:
        return list(matrix.args[0])
    if len(matrix.args[0]) == 1:
        return [row[0] for row in matrix.args]
    return None
