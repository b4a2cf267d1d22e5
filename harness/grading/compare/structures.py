"""Equality of structured answers: lists, tuples, sets, intervals, matrices, relations, ratios, times, words.

Long: structures hold structures, so each kind of them calls the others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from harness.answers.grammar.tree import INFINITY, SETS, STRUCTURES, Node, is_scalar, substitute, sym, symbols, walk
from harness.core.records import GradeRules
from harness.grading.compare.alternatives import expanded, has_signs, items_of
from harness.grading.compare.assignments import Assignment, assignments, same_assignments
from harness.grading.compare.conventions import allows
from harness.grading.compare.equations import (
    Statement,
    is_equation,
    labels_agree,
    renamed,
    same_equations,
    same_union,
    same_when_solved,
    solved_for,
    statement,
)
from harness.grading.compare.exact import exact
from harness.grading.compare.families import PARAMETER, of_other_integers, parameter_of, same_family, without_conditions
from harness.grading.compare.matrices import computed
from harness.grading.compare.piecewise import NotPiecewise, same_piecewise
from harness.grading.compare.radicals import NotExact
from harness.grading.compare.ratios import same_base, same_classes, same_ratios
from harness.grading.compare.realsets import NotASet, is_inequality, letters, real_set, same_sets, whole_numbers
from harness.grading.compare.relations import same_relations
from harness.grading.compare.rewriting import as_tuples, components, named_throughout, without_braces, without_ellipsis
from harness.grading.compare.scalars import Answer, same_scalar
from harness.grading.compare.words import same_words

_NO = Answer(False, "structure")


def same(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    """Compare two answers of any kind. The first rule that applies to the two kinds decides."""
    if not (has_signs(reference) or has_signs(answer)) and not {reference.op, answer.op} & STRUCTURES:
        if reference.op == "base" or answer.op == "base":
            return same_base(reference, answer, rules)
        result = same_scalar(reference, answer, rules)
        return (_same_family(reference, answer, rules) or result) if result.equal is False else result
    if reference == answer and not any(here.op == "const" and here.args[0] == "nan" for here in walk(reference)):
        return Answer(True, "identical")
    if has_signs(reference) or has_signs(answer):
        return _with_alternatives(reference, answer, rules)
    reference, answer = _prepared(reference), _prepared(answer)
    if of_other_integers(reference, answer):
        return Answer(False, "family")
    if (families := _with_parameters(reference, answer)) is not None:
        return same(*families, rules)
    named = _same_named(reference, answer, rules)
    if named is not None:
        return named
    if "either" in (reference.op, answer.op):
        return _same_alternatives(reference, answer, rules)
    if reference.op != answer.op and allows(rules, "labels_dropped"):
        reference, answer = _class_of(reference), _class_of(answer)
    if "congruence" in (reference.op, answer.op):
        return same_classes(reference, answer, rules)
    if is_equation(reference) or is_equation(answer):
        return _same_statements(reference, answer, rules)
    if "list" in (reference.op, answer.op) and "member" in (reference.op, answer.op):
        return same(_member_set(reference), _member_set(answer), rules)
    if reference.op == "list" or answer.op == "list":
        return _same_lists(reference, answer, rules)
    if reference.op == "member" or answer.op == "member":
        if reference.op == answer.op and symbols(reference.args[0]) != symbols(answer.args[0]):
            return Answer(False, "member")
        return same(_member_set(reference), _member_set(answer), rules)
    if reference.op == "text" and answer.op == "text":
        return Answer(same_words(reference.args[0], answer.args[0], rules), "text")
    if "cases" in (reference.op, answer.op):
        return _same_cases(reference, answer, rules)
    if (vectors := _by_unit_vectors(reference, answer)) is not None:
        return _in_order(*vectors, rules, "vector")
    if "matrix" in (reference.op, answer.op):
        return _same_matrices(reference, answer, rules)
    if "ratio" in (reference.op, answer.op) or "time" in (reference.op, answer.op):
        return same_ratios(reference, answer, rules)
    if _set_like(reference) or _set_like(answer):
        return _same_sets(reference, answer, rules)
    if reference.op == answer.op == "rel":
        return same_relations(reference, answer, lambda left, right: bool(same(left, right, rules).equal))
    if reference.op == answer.op and reference.op in ("tuple", "bracket"):
        return _in_order(reference.args, answer.args, rules, "tuple")
    return _NO


def _prepared(node: Node) -> Node:
    return whole_numbers(
        computed(without_ellipsis(_flattened(as_tuples(named_throughout(without_braces(_unnamed(node)))))))
    )


def _with_parameters(reference: Node, answer: Node) -> tuple[Node, Node] | None:
    """Both sides with one name for the letter that stands for any integer; None when neither says that one does."""
    (one, said), (other, other_said) = without_conditions(reference), without_conditions(answer)
    if not (said or other_said):
        return None
    letter, other_letter = parameter_of(one, said), parameter_of(other, other_said)
    if letter is None or other_letter is None:
        stated = said or other_said
        return (one, other) if all(name in symbols(node) for name in stated for node in (one, other)) else None
    return substitute(one, letter, PARAMETER), substitute(other, other_letter, PARAMETER)


def _same_family(reference: Node, answer: Node, rules: GradeRules) -> Answer | None:
    """The same values for all integers, whatever letter stands for them; None when they are not."""
    letters = [parameter_of(node, {}) for node in (reference, answer)]
    if PARAMETER in walk(reference) and PARAMETER in walk(answer):
        letters = [PARAMETER, PARAMETER]
    if letters[0] is None or letters[1] is None or not {PARAMETER, sym("k")} & set(letters):
        return None  # of other letters than k nobody has said that they are not what was asked for
    one, other = substitute(reference, letters[0], PARAMETER), substitute(answer, letters[1], PARAMETER)
    agreed = same_family(one, other, lambda left, right: bool(same_scalar(left, right, rules).equal))
    return Answer(True, "family") if agreed else None


# --- several values in one ---
def _with_alternatives(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    """± stands for both signs; each answer is the list of what it stands for. `(±a, ±b)` are four pairs, or two."""
    for independent in (True, False):
        one, other = expanded(reference, independent), expanded(answer, independent)
        if one is None or other is None:
            return Answer(None, "bounds")
        result = same(one, other, rules)
        if result.equal:
            return result
    return result


# --- lists ---
def _unnamed(node: Node) -> Node:
    """`P(3, 4)` is the point (3, 4)."""
    if node.op == "mul" and len(node.args) == 2 and node.args[1].op == "tuple" and node.args[0].op == "sym":
        return node.args[1] if node.args[0].args[0][:1].isupper() else node
    return node


def _class_of(node: Node) -> Node:
    """`x ≡ 3 (mod 5)` names a residue class, as `x = 3` does a value."""
    named = node.op == "rel" and node.args[1] == ("≡",) and node.args[0][0].op == "sym"
    return node.args[0][1] if named and node.args[0][1].op == "congruence" else node


def _flattened(node: Node) -> Node:
    """Lists inside lists are one list: `p = 5, q = 2; p = 7, q = 2`."""
    if node.op != "list" or not any(item.op == "list" for item in node.args):
        return node
    flat: list[Node] = []
    for item in node.args:
        flat.extend(_flattened(item).args if item.op == "list" else (item,))
    return Node("list", tuple(flat))


def _same_lists(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    one, other = items_of(reference), items_of(answer)
    if all(is_inequality(item) or item.op in ("member", "rel") for item in (*one, *other)) or _set_like_pair(
        reference, answer
    ):
        result = _as_real_sets(reference, answer, rules)
        if result is not None and result.equal:
            return result
    for here, there, swapped in ((reference, answer, False), (answer, reference, True)):
        if here.op == "list" and there.op != "list":
            result = _list_and_other(here, there, rules, swapped)
            if result is not None:
                return result
    if len(one) != len(other):
        return Answer(False, "list")
    if rules.ordered or not allows(rules, "lists_unordered"):
        return _in_order(one, other, rules, "list")
    return _in_any_order(one, other, rules, "list")


def _set_like_pair(reference: Node, answer: Node) -> bool:
    return any(node.op == "list" and any(is_inequality(i) for i in node.args) for node in (reference, answer))


def _list_and_other(listed: Node, other: Node, rules: GradeRules, swapped: bool) -> Answer | None:
    if other.op == "union" and (
        swapped or any(item.op == "interval" or INFINITY in walk(item) for item in listed.args)
    ):
        return _as_real_sets(Node("union", listed.args), other, rules)  # intervals side by side
    if other.op == "set" and allows(rules, "list_as_set"):
        return _in_any_order(_distinct(listed.args), _distinct(other.args), rules, "set")
    if other.op == "bracket" and len(other.args) != 2:  # of two ends it is a closed interval
        return _in_any_order(listed.args, other.args, rules, "list")
    if other.op == "tuple" and allows(rules, "list_as_tuple"):
        if _values_of_one_name(listed):
            return Answer(False, "tuple")  # `x = 1 or x = 2` is no point
        return _in_order(listed.args, other.args, rules, "tuple")
    if other.op == "rel" and is_equation(other):  # (x, y) = (3, 4) against x = 3, y = 4
        parts = statement(other)
        if parts is not None and parts.labels:
            return same(listed, parts.values[-1], rules) if not swapped else same(parts.values[-1], listed, rules)
    if other.op == "matrix" and (entries := _vector(other)) is not None:
        return _in_order(listed.args, entries, rules, "vector")
    return None


def _values_of_one_name(listed: Node) -> bool:
    """`x = 1, x = 2`: each item is a value of the same name."""
    said = [statement(item) if is_equation(item) else None for item in listed.args]
    names = {parts.labels[-1] if parts is not None and parts.labels else None for parts in said}
    return len(said) > 1 and len(names) == 1 and None not in names


def _same_named(reference: Node, answer: Node, rules: GradeRules) -> Answer | None:
    """Values with a name each, on one side or on both; None when neither side is such."""
    one, other = assignments(reference), assignments(answer)
    if one is not None and other is not None:
        return Answer(same_assignments(one, other, lambda left, right: same(left, right, rules).equal), "names")
    if one is None and other is None:
        return None
    if not allows(rules, "labels_dropped"):
        return Answer(False, "names")
    if one is not None:
        return _named_and_bare(one, answer, rules, swapped=False)
    return _named_and_bare(other or [], reference, rules, swapped=True)


def _named_and_bare(named: Sequence[Assignment], bare: Node, rules: GradeRules, *, swapped: bool) -> Answer:
    """Against values without names. A set or bare list as reference asks for no order; as answer it has lost it."""
    tuples = [Node("tuple", assignment.in_order()) for assignment in named]
    if len(tuples) > 1:
        listed = Node("list", tuple(tuples))
        return same(bare, listed, rules) if swapped else same(listed, bare, rules)
    values = tuples[0].args
    if is_equation(bare) and (parts := statement(bare)) is not None and parts.labels:
        bare = parts.values[-1]
    if _numbered(named[0], bare):
        one, other = (bare.args, values) if swapped else (values, bare.args)
        return _in_any_order(one, other, rules, "names")
    if bare.op == "list" and any(is_equation(item) for item in bare.args):
        return Answer(False, "names")  # several values of one name, not a value for each
    if swapped and bare.op in ("list", "set") and not rules.ordered and allows(rules, "lists_unordered"):
        return _in_any_order(bare.args, values, rules, "names")
    entries = _vector(bare) if bare.op == "matrix" else bare.args if bare.op in ("list", "tuple", "set") else None
    if entries is None:
        return Answer(False, "names")
    if swapped:
        return _in_order(entries, values, rules, "names")
    return _in_order(values, entries, rules, "names")


def _numbered(assignment: Assignment, bare: Node) -> bool:
    """`x_1 = 2, x_2 = 3` numbers the solutions of which `x = 3 or x = 2` is the list."""
    if bare.op != "list" or not all(is_equation(item) for item in bare.args):
        return False
    letters = {str(name.args[0]).partition("_")[0] if name.op == "sym" else "" for name in assignment.names}
    labels = {parts.labels[-1] for item in bare.args if (parts := statement(item)) is not None and parts.labels}
    return len(letters) == 1 and labels == {Node("sym", tuple(letters))}


def _in_order(one: Sequence[Node], other: Sequence[Node], rules: GradeRules, rule: str) -> Answer:
    if len(one) != len(other):
        return Answer(False, rule)
    for left, right in zip(one, other, strict=True):
        result = _same_part(left, right, rules)
        if not result.equal:
            return Answer(result.equal, rule)
    return Answer(True, rule)


def _in_any_order(one: Sequence[Node], other: Sequence[Node], rules: GradeRules, rule: str) -> Answer:
    if len(one) != len(other):
        return Answer(False, rule)
    # The same place is tried first: most lists come in the reference's order.
    left_over = list(other)
    unsure = False
    for place, item in enumerate(one):
        order = sorted(range(len(left_over)), key=lambda at: abs(at - (place - (len(other) - len(left_over)))))
        for at in order:
            result = _same_part(item, left_over[at], rules)
            unsure = unsure or result.equal is None
            if result.equal:
                left_over.pop(at)
                break
        else:
            return Answer(None if unsure else False, rule)
    return Answer(True, rule)


def _same_part(left: Node, right: Node, rules: GradeRules) -> Answer:
    """Parts of an answer: a set among them is no value, though a whole answer {5} is 5."""
    return Answer(False, "set") if (left.op == "set") != (right.op == "set") else same(left, right, rules)


def _distinct(items: Sequence[Node]) -> list[Node]:
    kept: list[Node] = []
    values: list[object] = []
    for item in items:
        try:
            value: object = exact(item)
        except NotExact:
            value = item
        if value not in values:
            values.append(value)
            kept.append(item)
    return kept


# --- names and equations ---
def _same_alternatives(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    """`a = 0 or b = 0`: the same equations, the same curve (ab = 0), or else several values of one name."""
    if reference.op == answer.op:
        return _in_any_order(reference.args, answer.args, rules, "equation")
    whole, other = (reference, answer) if reference.op == "either" else (answer, reference)
    if is_equation(other) and same_union(whole.args, other):
        return Answer(True, "equation")
    names = {parts.labels for item in whole.args if (parts := statement(item)) is not None}
    if len(names) != 1 or () in names:
        return Answer(False, "equation")
    listed = Node("list", whole.args)
    return same(listed, other, rules) if whole is reference else same(other, listed, rules)


def _same_statements(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    if reference.op == "list" or answer.op == "list":
        return _same_lists(reference, answer, rules)
    one = statement(reference) if is_equation(reference) else None
    other = statement(answer) if is_equation(answer) else None
    if is_equation(reference) and is_equation(answer):
        if one is not None and other is not None and labels_agree(one, other, rules):
            other_named = renamed(one, other, rules)
            result = _NO if other_named is None else _any_value(one, other_named, rules)
            if result.equal:
                return result
        if same_equations(reference, answer):
            return Answer(True, "equation")
        for equation, solved in ((reference, other), (answer, one)):
            if solved is not None and solved.labels and same_when_solved(equation, solved):
                return Answer(True, "equation")
        return Answer(False, "equation")
    if not allows(rules, "labels_dropped"):
        return Answer(False, "label")
    if is_equation(reference):
        if one is not None and one.labels:
            return _any_value(one, Statement((), (answer,)), rules)
        if one is not None:
            return _any_value(one, Statement((), (answer,)), rules)
        return _solved(reference, answer, rules)
    if other is not None:
        return _any_value(Statement((), (reference,)), other, rules)
    result = _solved(answer, reference, rules)
    if result.equal:
        return result
    # The answer states what it computed: `a + b = 12` for "what is a + b".
    operands = answer.args[0]
    if _closed(operands[-1]) and not _closed(operands[0]):
        return same(reference, operands[-1], rules)
    return result


def _closed(node: Node) -> bool:
    return not any(here.op in ("sym", "apply") for here in walk(node))


def _solved(equation: Node, expression: Node, rules: GradeRules) -> Answer:
    if allows(rules, "equations_solved") and is_scalar(expression):
        solution = solved_for(equation, expression)
        if solution is not None:
            return same_scalar(solution, expression, rules)
    return Answer(False, "equation")


def _any_value(reference: Statement, answer: Statement, rules: GradeRules) -> Answer:
    """The last values are compared; in a chain such as `√2 ≈ 1.414` every exact part counts if the rest agrees."""
    result = same(reference.values[-1], answer.values[-1], rules)
    if len(reference.values) == 1 and len(answer.values) == 1:
        return result
    if result.equal:
        return result if _consistent(reference) and _consistent(answer) else Answer(False, "chain")
    for one in reference.values:
        for other in answer.values:
            if same(one, other, rules).equal and _consistent(reference) and _consistent(answer):
                return Answer(True, "chain")
    return result


def _consistent(chain: Statement) -> bool:
    """The parts of a chain agree to about two per cent, so that it is one value and no choice of several."""
    if len(chain.values) == 1:
        return True
    from harness.grading.compare.numeric import NotNumeric, number_of

    numbers = []
    for value in chain.values:
        with contextlib.suppress(NotNumeric):
            numbers.append(number_of(value))
    return all(abs(number - numbers[-1]) <= 0.02 * abs(numbers[-1]) for number in numbers)


# --- sets ---
def _member_set(node: Node) -> Node:
    return node.args[1] if node.op == "member" else node


def _set_like(node: Node) -> bool:
    return (
        node.op in SETS or node.op in ("bracket",) or is_inequality(node) or (node.op == "sym" and node.args[0] == "R")
    )


def _same_sets(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    ops = reference.op, answer.op
    if ops == ("set", "set"):
        return _in_any_order(_distinct(reference.args), _distinct(answer.args), rules, "set")
    if "set" in ops and (is_scalar(reference) or is_scalar(answer)):
        single, scalar = (reference, answer) if ops[0] == "set" else (answer, reference)
        if len(single.args) == 1:
            return same(single.args[0], scalar, rules) if ops[0] == "set" else same(scalar, single.args[0], rules)
        return Answer(False, "set")
    if ops == ("bracket", "bracket"):
        return _in_order(reference.args, answer.args, rules, "list")
    if set(ops) == {"bracket", "tuple"} and len(reference.args) > 2 and allows(rules, "vector_as_tuple"):
        return _in_order(reference.args, answer.args, rules, "vector")
    if "bracket" in ops and "set" in ops and len(reference.args) != 2:
        return _in_any_order(reference.args, answer.args, rules, "list")
    if not allows(rules, "inequality_as_interval") and is_inequality(reference) != is_inequality(answer):
        return Answer(False, "set")
    if is_inequality(reference) and is_inequality(answer):
        result = same_relations(reference, answer, lambda left, right: bool(same(left, right, rules).equal))
        if result.equal:
            return result
        if letters(reference) != letters(answer):
            return Answer(False, "relation")
    if ops == ("inter", "inter") and len({letters(reference), letters(answer)} - {frozenset()}) > 1:
        return Answer(False, "set")
    if ops == ("builder", "builder") and reference.args[0].op == answer.args[0].op == "member":
        if reference.args[0].args[1] != answer.args[0].args[1]:
            return Answer(False, "set")
        return same(reference.args[1], answer.args[1], rules)
    result_of_sets = _as_real_sets(reference, answer, rules)
    if result_of_sets is not None:
        return result_of_sets
    if ops[0] == ops[1] and ops[0] in ("union", "inter"):
        return _in_any_order(reference.args, answer.args, rules, "set")
    if ops[0] == ops[1] == "interval" and reference.args[2:] == answer.args[2:]:
        return _in_order(reference.args[:2], answer.args[:2], rules, "interval")
    if ops[0] == ops[1] == "minus":
        return _in_order(reference.args, answer.args, rules, "set")
    return Answer(False, "set")


def _as_real_sets(reference: Node, answer: Node, rules: GradeRules) -> Answer | None:
    try:
        one, other = real_set(reference), real_set(answer)
    except NotASet:
        return None
    return Answer(same_sets(one, other, lambda left, right: bool(same_scalar(left, right, rules).equal)), "interval")


# --- the rest ---
def _same_matrices(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    if reference.op == answer.op == "matrix":
        if len(reference.args) != len(answer.args) or len(reference.args[0]) != len(answer.args[0]):
            return Answer(False, "matrix")
        one = [cell for row in reference.args for cell in row]
        other = [cell for row in answer.args for cell in row]
        return _in_order(one, other, rules, "matrix")
    matrix, vector = (reference, answer) if reference.op == "matrix" else (answer, reference)
    entries = _vector(matrix)
    if entries is None or vector.op not in ("tuple", "bracket") or not allows(rules, "vector_as_tuple"):
        return Answer(False, "matrix")
    return _in_order(entries, vector.args, rules, "vector")


def _by_unit_vectors(reference: Node, answer: Node) -> tuple[Sequence[Node], Sequence[Node]] | None:
    """The coordinates of both where one is a vector in brackets and the other a sum of i, j and k; else None."""
    pairs = []
    for one, other in ((reference, answer), (answer, reference)):
        entries = one.args if one.op in ("tuple", "bracket") else _vector(one) if one.op == "matrix" else None
        if entries is not None and (found := components(other, len(entries))) is not None:
            pairs.append((entries, found) if one is reference else (found, entries))
    return pairs[0] if pairs else None


def _same_cases(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    """As functions where the conditions are relations; else the cases one by one, in any order."""
    try:
        verdict = same_piecewise(reference, answer, lambda left, right: same(left, right, rules).equal)
    except NotPiecewise:
        if reference.op != answer.op:
            return Answer(False, "cases")
        return _in_any_order(reference.args, answer.args, rules, "cases")
    return Answer(verdict, "cases")


def _vector(matrix: Node) -> list[Node] | None:
    if len(matrix.args) == 1:
        return list(matrix.args[0])
    if len(matrix.args[0]) == 1:
        return [row[0] for row in matrix.args]
    return None
