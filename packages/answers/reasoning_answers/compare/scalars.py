"""Whether two scalars are equal: numbers or expressions, with their units, percent and degree signs.

First, units, percent signs and degree signs are removed. `_readings` returns the pairs of plain values that the
conventions allow: `5 cm` and `50 mm` give (5, 5) in centimeters, `50%` and `0.5` give (50, 0.5) and (0.5, 0.5). One
equal pair is enough. If the sides measure different things (meters, kilograms), there are no pairs, and the sides
differ.

A pair of values is decided by the first of these methods that can tell; cheap ones come first:

    identical   the trees are the same                              proves equality
    exact       both have an exact value (`exact`)                  decides
    field       residues in a finite field (`modular`)              decides rational functions, proves others
    numeric     values with many digits (`numeric`)                 decides nearly all the rest, but no limits

A card's tolerances, or a float printed in full, can turn "different" into "equal". Expressions with different letters
are never "different" but undecided (None): the letters may merely have other names.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from reasoning_answers.compare.conventions import allows
from reasoning_answers.compare.exact import (
    decimal_places,
    decimal_value,
    exact,
    float_printout,
    is_undefined,
    may_be_rounded,
    rounds_to,
)
from reasoning_answers.compare.modular import identical_in_field
from reasoning_answers.compare.numeric import identical, same_number
from reasoning_answers.compare.rewriting import as_quantities, with_factors, with_imaginary_unit, without_degree_signs
from reasoning_answers.grammar.numerals import numeral
from reasoning_answers.grammar.tree import (
    INFINITY,
    LEFT_OPEN,
    PI,
    Node,
    bound_letters,
    is_scalar,
    num,
    sym,
    symbols,
    walk,
)
from reasoning_answers.grammar.units import Unit, changes_number, is_counted, same_noun, unit_of
from reasoning_answers.records import GradeRules

# Dimensions of units (`units.Unit`).
_ANGLE = (("radian", 1),)
_DOLLARS = (("dollar", 1),)
_NAMELESS = ((("sided", 1),), (("sided", 2),), (("sided", 3),))
"""Dimensions of "units", "square units" and "cubic units", which specify no size."""

_FEN_OR_MINUTE = re.compile("分(?![米克升贝钱钟])")
"""The 分 that means 1/100 yuan or a minute; in words such as 分米 it is a prefix."""

_STERLING = Unit((("sterling", 1),), Fraction(1))

_OMEGA = sym("Omega")
_MAX_SYMBOL_CHARS = 3
"""An unknown unit of at most this many letters is a symbol, which is case-sensitive."""


class Comparison(NamedTuple):
    """The result of a comparison: whether the answers are equal (None if no rule can tell), the rule that decided, and
    its steps in words.
    """

    equal: bool | None
    rule: str
    steps: tuple[str, ...] = ()


def same_scalar(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two numbers or expressions, with their units, percent and degree signs.

    If they are not equal as written, letters before brackets are read as factors, and letters after numbers as units.
    """
    if reference == answer and not contains_nan(reference):
        return Comparison(True, "identical")
    result = _same_as_written(reference, answer, rules)
    if result.equal:
        return result
    if (factors := with_factors(reference, answer)) != (reference, answer):
        product = _same_as_written(*factors, rules)
        if product.equal or (product.equal is False and symbols(factors[0]) == symbols(factors[1])):
            return product
    if (engineers := with_imaginary_unit(reference, answer)) != (reference, answer):
        return _same_as_written(*engineers, rules)
    return _same_quantities(reference, answer, rules) or result


def _same_as_written(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two scalars whose letters are variables; only upright or spelled-out units count as units."""
    # The result if there are no readings.
    result = Comparison(False if _have_known_units(reference, answer) else None, "units")
    for reference_value, answer_value in _readings(reference, answer, rules):
        result = _same_value(reference_value, answer_value, rules)
        if result.equal is not False:
            break
    # 0.3% and 3/10: a question that asks for percent may have an answer without the sign, but then a larger number.
    if result.equal and (reference.op == "pct") != (answer.op == "pct") and result.rule != "tolerance":
        values = [exact(side.args[0] if side.op == "pct" else side) for side in (reference, answer)]
        if values[0] == values[1] and values[0] is not None and abs(values[0]) < 1:
            return Comparison(None, "percent")
    if result.equal and reference.op == "deg" and _is_temperature(answer):
        return Comparison(None, "units")  # 60° may be an angle, not a temperature
    if result.equal is False and {("ln", 2), ("log", 2)} <= _functions(reference) ^ _functions(answer):
        return Comparison(None, "logarithm")  # some write log for ln
    if result.equal is False and _has_unexplained_letters(reference, answer):
        return Comparison(False if _is_left_in_letters(reference, answer) else None, "names")
    return _CONVERTED if result.equal is False and _rounds_when_converted(reference, answer) else result


def _functions(node: Node) -> set[tuple[str, int]]:
    """Return the name of each function in the tree with its number of arguments plus 1: ("log", 3) has a base."""
    return {(here.args[0], len(here.args)) for here in walk(node) if here.op == "fn"}


def _is_temperature(node: Node) -> bool:
    """Whether `node` is a temperature in degrees Celsius or Fahrenheit."""
    unit = unit_of(node.args[1]) if node.op == "quantity" else None
    return unit is not None and unit.offset != 0


def _readings(reference: Node, answer: Node, rules: GradeRules) -> list[tuple[Node, Node]]:
    """Return pairs (reference, answer) without units, percent and degree signs; the answer is right if one pair is
    equal.

    The list is empty if the sides measure different things, such as a length and an area.
    """
    for op, values in (("quantity", _without_unit), ("pct", _without_percent), ("deg", _without_degrees)):
        if reference.op == answer.op == op:
            return _in_one_unit(reference, answer) if op == "quantity" else [(reference.args[0], answer.args[0])]
        if reference.op == op:
            return values(reference, answer, rules, False)
        if answer.op == op:
            return [(bare, value) for value, bare in values(answer, reference, rules, True)]
    if allows(rules, "degrees_dropped"):
        bare = without_degree_signs(reference), without_degree_signs(answer)
        # There are two readings only if just one side has degree signs; signs on both sides count.
        if (bare[0] == reference) != (bare[1] == answer):
            return [(reference, answer), bare]
    return [(reference, answer)]


# --- letters after a number as its unit ---
def _same_quantities(reference: Node, answer: Node, rules: GradeRules) -> Comparison | None:
    """Compare two sides with the letters after their numbers as units; None if they stay letters.

    They are a unit if the other side, or another part of their own side, has an upright or spelled-out unit, or Ω: 3700
    L and 3700 升, the h of 72 km/h. Otherwise they are a unit only if that makes the sides equal and the units differ
    in a prefix, such as 2 kJ and 2000 J: 5 m may be five times m, and 2d and 48h may be products of variables.
    """
    named = any(here.op == "quantity" or here == _OMEGA for side in (reference, answer) for here in walk(side))
    results: list[Comparison] = []
    for first in as_quantities(reference):
        for second in as_quantities(answer):
            if (first, second) == (reference, answer) or not (named or _differ_in_prefix(first, second)):
                continue
            result = _same_as_written(first, second, rules)
            if result.equal:
                return Comparison(True, "units")
            # Letters of the answer that would be a unit of another dimension may not be a unit.
            is_open = result.rule == "units" and answer.op != "quantity"
            results.append(Comparison(None, "units") if is_open else result)
    return min(results, key=lambda result: result.equal is None) if named and results else None


def _differ_in_prefix(first: Node, second: Node) -> bool:
    """Whether the units of two quantities differ only in a prefix, such as mA and A; both end in the same letter."""
    ratio = _ratio(first, second)
    return ratio not in (None, 1) and first.args[1][-1] == second.args[1][-1]


def _ratio(first: Node, second: Node) -> Fraction | None:
    """Return the ratio of the units of two quantities; None if either is not one, or they measure different things."""
    mine, theirs = (unit_of(side.args[1]) if side.op == "quantity" else None for side in (first, second))
    return None if mine is None or theirs is None or mine.dimension != theirs.dimension else mine.factor / theirs.factor


def _have_known_units(reference: Node, answer: Node) -> bool:
    """Whether both sides have a known unit, a percent sign or a degree sign.

    In that case, if there is no pair of plain values (`_readings`), they measure different things and are unequal. A
    side with unrecognized words does not count: the words may change the value.
    """
    return all(
        (node.op in ("pct", "deg") or (node.op == "quantity" and unit_of(node.args[1]) is not None))
        and not any(part.op == "text" for part in walk(node))
        for node in (reference, answer)
    )


def _has_unexplained_letters(reference: Node, answer: Node) -> bool:
    r"""Whether the answer has a letter, or a value of an unknown function such as f, that the reference does not have;
    or the reference has a value of an unknown function at a number, such as f(2), that the answer does not have.

    Their meaning is unknown, so a difference between the values proves nothing: \varphi(8) may be 4, XV may be 15,
    and E(X) + E(Y) may be E(X + Y).
    """
    letters = symbols(answer) - symbols(reference) - bound_letters(answer)
    mine, theirs = _function_values(reference), _function_values(answer)
    return bool(letters or theirs - mine) or any(not symbols(value) for value in mine - theirs)


def _is_left_in_letters(reference: Node, answer: Node) -> bool:
    """Whether the answer is an expression in lower-case letters and the reference a plain number: 5x and 5. Capitals
    may be numerals or symbols (XV, 10C3), and functions may have any value.
    """
    is_number = reference.op != "quantity" and not symbols(reference)
    are_small = all(letter.islower() and "…" not in letter for letter in symbols(answer))
    return is_number and are_small and not (_function_values(reference) | _function_values(answer))


def _function_values(node: Node) -> frozenset[Node]:
    """Return the values of unknown functions in the tree, such as f(2)."""
    return frozenset(here for here in walk(node) if here.op == "apply")


def _without_unit(quantity: Node, bare: Node, rules: GradeRules, swapped: bool) -> list[tuple[Node, Node]]:
    """Return pairs (value of the quantity, value of the other side) for a quantity and a side without a unit.

    The list is empty if the rules do not let units be dropped, or if the words after the number are part of the answer:
    "is wrong", but not "apples". bare: the side without a unit; may have a degree or percent sign. swapped: whether the
    quantity is the answer.
    """
    if not allows(rules, "units_dropped"):
        return []
    inner, name = quantity.args
    measure = unit_of(name)  # None: the name is not a known unit
    if bare.op == "deg" and measure is not None and measure.dimension == _ANGLE:
        return [(inner, Node("div", (Node("mul", (bare.args[0], PI)), num(180))))]
    if bare.op == "deg" and measure is not None and measure.offset:
        return [(inner, bare.args[0])]
    if measure is not None and not measure.dimension and swapped:
        return []  # a unit without a dimension: 3倍, three times as much, is not the 3 of the reference
    # Against a length or mass, a percent or degree sign is also a unit, and a different one.
    if bare.op in ("pct", "deg"):
        return []
    named = numeral(name)
    # `5 (five)` repeats its number; any other number in words would change it.
    if named is not None and inner != num(named):
        return []
    is_counting = measure is not None or named is not None or is_counted(name, singular=inner == num(1))
    if not is_counting and (swapped or changes_number(name)):
        return []  # words that are part of the answer, such as "is wrong"; a reference's own words are its unit
    values = [inner]
    if measure is not None and measure.dimension == _DOLLARS and measure.factor != 1:
        values.append(_multiply(inner, measure.factor))  # 50 cents are 0.50 (dollars)
    return [(value, bare) for value in values]


def _in_one_unit(reference: Node, answer: Node) -> list[tuple[Node, Node]]:
    """Return the pair of numbers of two quantities in one unit, as a list; empty if there is no such unit."""
    (value, name), (answer_value, answer_name) = reference.args, answer.args
    measure, answer_measure = measures(name, answer_name)
    if measure is None or answer_measure is None:
        are_symbols = name.isascii() and max(len(name), len(answer_name)) <= _MAX_SYMBOL_CHARS
        agree = name == answer_name if are_symbols else same_noun(name, answer_name)  # MB and Mb differ
        # An unknown name can be neither converted nor called another unit.
        return [(value, answer_value)] if measure is answer_measure is None and agree else []
    # "5 units" specifies no size, so it fits any unit; a square unit and a cubic one exclude each other.
    if measure.dimension in _NAMELESS or answer_measure.dimension in _NAMELESS:
        have_powers = measure.dimension in _NAMELESS[1:] and answer_measure.dimension in _NAMELESS[1:]
        return [] if have_powers and measure != answer_measure else [(value, answer_value)]
    if measure.dimension != answer_measure.dimension:
        return []
    if measure[1:] == answer_measure[1:]:
        # Not multiplied, so that a decimal keeps the places to which it was rounded.
        return [(value, answer_value)]
    if measure.offset or answer_measure.offset:
        value, answer_value = _add(value, measure.offset), _add(answer_value, answer_measure.offset)
    return [(_multiply(value, measure.factor), _multiply(answer_value, answer_measure.factor))]


def measures(name: str, answer_name: str) -> tuple[Unit | None, Unit | None]:
    """Return the units of two names, where a name with two meanings gets the meaning that fits the other name.

    "pound" is a currency if the other name is one for that currency, otherwise a mass. 分 is 1/100 yuan, also in
    分/千克, if that gives the dimension of the other side, otherwise a minute. None for a name that is not a known
    unit.
    """
    names, units = (name, answer_name), [unit_of(name), unit_of(answer_name)]
    for first, second in ((0, 1), (1, 0)):
        beside = units[second]
        if beside is None:
            continue
        if names[first].lower() in ("pound", "pounds") and beside.dimension == _STERLING.dimension:
            units[first] = _STERLING
        money = unit_of(_FEN_OR_MINUTE.sub("分钱", names[first])) if "分" in names[first] else None
        if money is not None and money.dimension == beside.dimension:
            units[first] = money
    return units[0], units[1]


def _without_percent(signed: Node, bare: Node, rules: GradeRules, _swapped: bool) -> list[tuple[Node, Node]]:
    """Return pairs as `_without_unit` does: 50% compared with a bare value may be read as 50 or as 0.5."""
    readings = {"percent_dropped": signed.args[0], "percent_value": _multiply(signed.args[0], Fraction(1, 100))}
    return [(value, bare) for name, value in readings.items() if allows(rules, name)]


def _without_degrees(signed: Node, bare: Node, rules: GradeRules, _swapped: bool) -> list[tuple[Node, Node]]:
    """Return pairs as `_without_unit` does: 30° compared with a bare value is read as 30, and also as π/6."""
    if any(here.op == "deg" for here in walk(bare)):
        return [(signed, bare)]  # 180° - 45°, tan 45°
    values = []
    if allows(rules, "degrees_dropped") and PI not in walk(signed.args[0]):  # π/4 is not an angle in degrees
        values.append(signed.args[0])
    if allows(rules, "degrees_radians"):
        values.append(Node("div", (Node("mul", (signed.args[0], PI)), num(180))))
    return [(value, bare) for value in values]


def _add(node: Node, offset: Fraction) -> Node:
    """Return node + offset, as a single number if the node is a number."""
    value = exact(node)
    return Node("add", (node, num(offset))) if value is None else num(value + offset)


def _multiply(node: Node, factor: Fraction) -> Node:
    """Return `factor` · node. A decimal keeps its remaining places (10 · 0.25 = 2.5); the rest is a product."""
    if node.op == "num" and node.args[1] >= 0:  # a literal, with its number of decimal places
        places = node.args[1] + _places_gained(factor)
        if places >= 0:
            return num(node.args[0] * factor, places)
    return Node("mul", (num(factor), node))


def _places_gained(factor: Fraction) -> int:
    """Return how many more decimal places a decimal has after multiplication by `factor`: 2 for 1/100, -1 for 10.

    The result is rounded up for other factors, so that the product is not rounded more than the decimal.
    """
    return 1 - len(str(floor(factor))) if factor >= 1 else len(str(ceil(1 / factor) - 1))


def contains_nan(node: Node) -> bool:
    """Whether NaN occurs in the tree; a tree with NaN equals nothing, not even itself."""
    return any(here.op == "const" and here.args[0] == "nan" for here in walk(node))


def _same_value(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Decide whether two values without structure (numbers, formulas, texts) are equal: try each method, cheapest
    first.
    """
    if not (is_scalar(reference) and is_scalar(answer)):
        return Comparison(None, "words")  # words or a structure instead of one number or expression
    infinity, answer_infinity = _infinity(reference), _infinity(answer)
    if infinity or answer_infinity:
        # Two indeterminate forms, such as ∞ − ∞, are not equal, although `_infinity` is 2 for both.
        return Comparison(infinity == answer_infinity != 2, "infinity")
    if is_undefined(reference) or is_undefined(answer):
        return Comparison(False, "undefined")
    reference_exact, answer_exact = exact(reference), exact(answer)
    if reference_exact is not None and answer_exact is not None:
        if reference_exact == answer_exact:
            return Comparison(True, "exact")
        if _within_tolerance(reference, answer, reference_exact, answer_exact, rules):
            return Comparison(True, "tolerance")
        return _ROUNDED if may_be_rounded(reference, answer, answer_exact) else Comparison(False, "exact")
    verdict, rule = identical_in_field(reference, answer), "field"
    # Different residues refute only rational functions; other expressions then get None, and numbers are tried.
    if verdict is None:
        verdict, rule = _compare_numbers(reference, answer, rules), "numeric"
    if verdict is False and _within_tolerance(reference, answer, reference_exact, answer_exact, rules):
        return Comparison(True, "tolerance")
    if verdict is None:
        return Comparison(None, "unsettled")
    if verdict is False and not symbols(answer) and may_be_rounded(reference, answer, answer_exact):
        return _ROUNDED
    return Comparison(verdict, rule)


def _compare_numbers(reference: Node, answer: Node, rules: GradeRules) -> bool | None:
    """Whether two expressions are equal numerically; None if that cannot be decided."""
    if symbols(reference) or symbols(answer):
        return identical(reference, answer, positive=allows(rules, "positive_variables"))
    return same_number(reference, answer)


def _infinity(node: Node) -> int:
    """Return 1 or -1 for an infinity of this sign, 2 for an expression with an infinity or NaN, otherwise 0."""
    if node.op == "const" and node.args[0] == "inf":
        return 1
    if node.op == "neg":
        inner = _infinity(node.args[0])
        return -inner if inner in (1, -1) else inner
    if any(here.op == "const" and here.args[0] == "nan" for here in walk(node)):
        return 2
    # The infinite limit of a sum, limit or integral is not an infinite value.
    endless = any(here.op == "fn" and here.args[0] in LEFT_OPEN for here in walk(node))
    return 2 if not endless and INFINITY in walk(node) else 0


def _within_tolerance(
    reference: Node, answer: Node, reference_exact: Fraction | None, answer_exact: Fraction | None, rules: GradeRules
) -> bool:
    """Whether the values agree within a tolerance of the card, or one is the other printed as a full float.

    reference_exact, answer_exact: the exact values; None for a value that has none.
    """
    if (
        reference_exact is not None
        and answer_exact is not None
        and float_printout(reference, answer, reference_exact, answer_exact)
    ):
        return True
    if not (rules.relative_tolerance or rules.absolute_tolerance or rules.round_to_reference):
        return False
    left, right = decimal_value(reference, reference_exact), decimal_value(answer, answer_exact)
    if left is None or right is None:
        return False
    distance = abs(left - right)
    if rules.absolute_tolerance and distance <= rules.absolute_tolerance:
        return True
    # Relative to the reference alone, so that a huge answer does not widen its own tolerance.
    if rules.relative_tolerance and distance <= rules.relative_tolerance * abs(left):
        return True
    if rules.round_to_reference:
        # The reference may be exact and the answer rounded; then the answer's decimal places set the precision.
        return rounds_to(reference, right) or (decimal_places(reference) < 0 and rounds_to(answer, left))
    return False


_ROUNDED = Comparison(None, "rounded", ("the answer rounds to the reference, but the reference may be exact",))


_CONVERTED = Comparison(None, "rounded", ("the answer equals the reference in another unit, possibly after rounding",))


def _rounds_when_converted(reference: Node, answer: Node) -> bool:
    """Whether two quantities differ by a rounding to three digits, in units whose ratio is not a power of ten: mi and
    km, °C and K.
    """
    ratio, scales = _ratio(reference, answer), _is_temperature(reference) != _is_temperature(answer)
    if ratio is None or not (scales or {*str(ratio.numerator), *str(ratio.denominator)} - {"0", "1"}):
        return False
    left, right = (decimal_value(side, exact(side)) for side in _in_one_unit(reference, answer)[0])
    return left is not None and right is not None and 200 * abs(left - right) <= abs(right)
