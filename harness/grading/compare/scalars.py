"""Are two scalars equal? From cheap to dear: the same tree, exact values, a finite field, numbers, symbols."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from harness.answers.grammar.tree import INFINITY, PI, Node, is_scalar, num, symbols, walk
from harness.answers.grammar.units import changes_number, is_counted, noun_of, numeral, unit_of
from harness.core.records import GradeRules
from harness.grading.compare.conventions import allows
from harness.grading.compare.exact import exact
from harness.grading.compare.modular import NotModular, Residues
from harness.grading.compare.radicals import NotExact, Undefined, Value, rational
from harness.grading.compare.rewriting import with_bound_names, without_degree_signs

_ANGLE = (("radian", 1),)
_TEMPERATURES = ((("celsius", 1),), (("fahrenheit", 1),))
_SYMBOL_CHARS = 3
"""An unknown unit of so many letters is a symbol, whose capitals matter."""

_FLOAT_DIGITS = 15
"""A decimal with this many significant digits is the printout of a float, not a rounding by hand."""


class Answer(NamedTuple):
    """Equal or not, or None when no stage could tell; and the rule that decided."""

    equal: bool | None
    rule: str


def same_scalar(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    """Compare two numbers or expressions, with their units, percent and degree signs."""
    if reference == answer and not _undefined(reference):
        return Answer(True, "identical")
    reference, answer = with_bound_names(reference), with_bound_names(answer)
    result = Answer(False, "units")
    for one, other in _readings(reference, answer, rules):
        result = _same_value(one, other, rules)
        if result.equal is not False:
            break
    return result


def _readings(reference: Node, answer: Node, rules: GradeRules) -> list[tuple[Node, Node]]:
    """The pairs of bare values that the signs behind the two values allow to be compared."""
    if reference.op == "quantity" or answer.op == "quantity":
        return _without_units(reference, answer, rules)
    if reference.op == "pct" or answer.op == "pct":
        return _without_percent(reference, answer, rules)
    if reference.op == "deg" or answer.op == "deg":
        return _without_degrees(reference, answer, rules)
    if allows(rules, "degrees_dropped"):
        bare = without_degree_signs(reference), without_degree_signs(answer)
        if (bare[0] == reference) != (bare[1] == answer):
            return [(reference, answer), bare]
    return [(reference, answer)]


def _without_units(reference: Node, answer: Node, rules: GradeRules) -> list[tuple[Node, Node]]:
    if reference.op == answer.op == "quantity":
        (one, unit), (other, other_unit) = reference.args, answer.args
        known, other_known = unit_of(unit), unit_of(other_unit)
        if known is None or other_known is None:
            symbols_differ = unit != other_unit and max(len(unit), len(other_unit)) <= _SYMBOL_CHARS  # MB and Mb
            if known is other_known is None and noun_of(unit) == noun_of(other_unit) and not symbols_differ:
                return [(one, other)]
            return []
        sided = (("sided", 1),), (("sided", 2),), (("sided", 3),)
        if known.dimension in sided or other_known.dimension in sided:
            return [(one, other)]
        if known.dimension != other_known.dimension:
            return []
        if known.factor == other_known.factor:
            return [(one, other)]
        return [(_scaled(one, known.factor), _scaled(other, other_known.factor))]
    if not allows(rules, "units_dropped"):
        return []
    quantity, bare = (reference, answer) if reference.op == "quantity" else (answer, reference)
    inner, unit = quantity.args
    known = unit_of(unit)
    if bare.op == "deg" and known is not None and known.dimension == _ANGLE:
        turned = Node("div", (Node("mul", (bare.args[0], PI)), num(180)))
        return [(inner, turned) if quantity is reference else (turned, inner)]
    if bare.op == "deg" and known is not None and known.dimension in _TEMPERATURES:
        return [(inner, bare.args[0]) if quantity is reference else (bare.args[0], inner)]
    if bare.op in ("pct", "deg"):
        return []
    named = numeral(unit)
    if named is not None and inner != num(named):
        return []
    if (
        known is None
        and named is None
        and not is_counted(unit, singular=inner == num(1))
        and (bare is reference or changes_number(unit))
    ):
        return []  # words that are part of the answer, such as "is wrong"; a reference's own words are its unit
    values = [inner]
    if known is not None and known.dimension == (("dollar", 1),) and known.factor != 1:
        values.append(_scaled(inner, known.factor))  # 50 cents are 0.50 (dollars)
    return [(value, bare) if quantity is reference else (bare, value) for value in values]


def _without_percent(reference: Node, answer: Node, rules: GradeRules) -> list[tuple[Node, Node]]:
    if reference.op == answer.op == "pct":
        return [(reference.args[0], answer.args[0])]
    sign_first = reference.op == "pct"
    signed, bare = (reference, answer) if sign_first else (answer, reference)
    values = []
    if allows(rules, "percent_dropped"):
        values.append(signed.args[0])
    if allows(rules, "percent_value"):
        values.append(_scaled(signed.args[0], Fraction(1, 100)))
    return [(value, bare) if sign_first else (bare, value) for value in values]


def _without_degrees(reference: Node, answer: Node, rules: GradeRules) -> list[tuple[Node, Node]]:
    if reference.op == answer.op == "deg":
        return [(reference.args[0], answer.args[0])]
    sign_first = reference.op == "deg"
    signed, bare = (reference, answer) if sign_first else (answer, reference)
    values = []
    if allows(rules, "degrees_dropped") and PI not in walk(signed.args[0]):  # π/4 is no angle in degrees
        values.append(signed.args[0])
    if allows(rules, "degrees_radians") and any(here == PI or _gives_angle(here) for here in walk(bare)):
        values.append(Node("div", (Node("mul", (signed.args[0], PI)), num(180))))
    return [(value, bare) if sign_first else (bare, value) for value in values]


def _gives_angle(node: Node) -> bool:
    return node.op == "fn" and node.args[0].startswith("arc")


def _scaled(node: Node, factor: Fraction) -> Node:
    if node.op == "num":
        return num(node.args[0] * factor, max(node.args[1], 0))
    return Node("mul", (num(factor), node))


def _undefined(node: Node) -> bool:
    return any(here.op == "const" and here.args[0] == "nan" for here in walk(node))


def _same_value(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    if not (is_scalar(reference) and is_scalar(answer)):
        return Answer(False, "words")  # words or a structure where one number or expression belongs
    infinite = _infinity(reference), _infinity(answer)
    if infinite != (0, 0):
        return Answer(infinite[0] == infinite[1] != 2, "infinity")
    try:
        one = exact(reference)
    except Undefined:
        return Answer(False, "undefined")
    except NotExact:
        one = None
    try:
        other = exact(answer)
    except Undefined:
        return Answer(False, "undefined")
    except NotExact:
        other = None
    if one is not None and other is not None:
        if one == other:
            return Answer(True, "exact")
        if _within_tolerance(reference, answer, one, other, rules):
            return Answer(True, "tolerance")
        return Answer(False, "exact")
    if symbols(reference) or symbols(answer):
        return _same_expression(reference, answer, rules)
    from harness.grading.compare.numeric import same_number

    verdict = same_number(reference, answer)
    if verdict is False and _within_tolerance(reference, answer, one, other, rules):
        return Answer(True, "tolerance")
    if verdict is not None:
        return Answer(verdict, "numeric")
    return _symbolic(reference, answer)


def _infinity(node: Node) -> int:
    """1 or -1 for an infinity alone, 2 for one inside an expression, 0 without."""
    if node.op == "const" and node.args[0] == "inf":
        return 1
    if node.op == "neg":
        inner = _infinity(node.args[0])
        return -inner if inner in (1, -1) else inner
    if any(here.op == "const" and here.args[0] == "nan" for here in walk(node)):
        return 2
    endless = any(here.op == "fn" and here.args[0] in ("sum", "prod", "lim", "int") for here in walk(node))
    return 2 if not endless and INFINITY in walk(node) else 0


def _same_expression(reference: Node, answer: Node, rules: GradeRules) -> Answer:
    field = Residues()
    try:
        if field.value(reference) == field.value(answer):
            return Answer(True, "field")
        if not field.opaque and not rules.relative_tolerance:
            return Answer(False, "field")
    except NotModular:
        pass
    from harness.grading.compare.identities import identical

    verdict = identical(reference, answer, positive=allows(rules, "positive_variables"))
    if verdict is not None:
        return Answer(verdict, "numeric")
    return _symbolic(reference, answer)


def _symbolic(reference: Node, answer: Node) -> Answer:
    from harness.grading.compare.symbolic import same_symbolically

    verdict = same_symbolically(reference, answer)
    return Answer(verdict, "symbolic" if verdict is not None else "unsettled")


def _within_tolerance(reference: Node, answer: Node, one: Value | None, other: Value | None, rules: GradeRules) -> bool:
    """What the card allows beyond equality, and the one thing that every benchmark allows: a float printed whole."""
    if one is not None and other is not None and _float_printout(reference, answer, one, other):
        return True
    if not (rules.relative_tolerance or rules.absolute_tolerance or rules.round_to_reference):
        return False
    left, right = _decimal(reference, one), _decimal(answer, other)
    if left is None or right is None:
        return False
    distance = abs(left - right)
    if rules.absolute_tolerance and distance <= rules.absolute_tolerance:
        return True
    if rules.relative_tolerance and distance <= rules.relative_tolerance * abs(left):
        return True
    if rules.round_to_reference:
        return _rounds_to(reference, right) or (_places(reference) < 0 and _rounds_to(answer, left))
    return False


def _places(node: Node) -> int:
    literal = node.args[0] if node.op == "neg" else node
    return int(literal.args[1]) if literal.op == "num" else -1


def _rounds_to(rounded: Node, value: Any) -> bool:
    """Does `value` rounded to the digits of the decimal `rounded` give it?"""
    places = _places(rounded)
    literal = rounded.args[0] if rounded.op == "neg" else rounded
    if literal.op != "num" or (places < 0 and literal.args[0].denominator == 1 and literal.args[1] == -1):
        return False
    target = literal.args[0] if rounded.op == "num" else -literal.args[0]
    half = Fraction(1, 2) * Fraction(10) ** -places
    return bool(abs(value - target) <= half)


def _decimal(node: Node, value: Value | None) -> Any:
    """A real number for comparison with a tolerance: a Fraction where exact, else to 30 digits as a Fraction."""
    if value is not None and (plain := rational(value)) is not None:
        return plain
    from harness.grading.compare.numeric import NotNumeric, number_of

    try:
        number = number_of(node)
    except NotNumeric:
        return None
    if hasattr(number, "_mpc_"):
        if number.imag != 0:
            return None
        number = number.real
    sign, mantissa, exponent, _ = number._mpf_
    if abs(exponent) > 10_000:
        return None
    return (-1 if sign else 1) * Fraction(mantissa) * Fraction(2) ** exponent


def _float_printout(reference: Node, answer: Node, one: Value, other: Value) -> bool:
    """0.0833333333333333 is 1/12 as floating point prints it: 15 digits or more, and a fraction that never ends."""
    left, right = rational(one), rational(other)
    if left is None or right is None:
        return False
    for literal, decimal, fraction in ((reference, left, right), (answer, right, left)):
        places = _places(literal)
        if places < 15 or _terminates(fraction.denominator):
            continue
        digits = str(abs(decimal.numerator) * 10**places // decimal.denominator).lstrip("0")
        if len(digits) >= _FLOAT_DIGITS and abs(decimal - fraction) < Fraction(10) ** -places:
            return True
    return False


def _terminates(denominator: int) -> bool:
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1
