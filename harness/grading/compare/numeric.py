"""Comparison by numbers: evaluate two trees at one point, with so many digits that values which agree are equal.

Fifty equal digits prove nothing: sin x and sin x + 10⁻⁶⁰ share them, as do tanh 500 and 1. So an evaluation notes the
*span* of its expression, the largest |log₁₀ v| of all numbers v that occur in it, also of those that a function hides
(tanh 500 is 1 − 2e⁻¹⁰⁰⁰). A term that could be lost has a span of its own size. Two values are decided by

    digits ≥ 6 · span + 100                     the precision, raised until these hold; beyond `MAX_DIGITS` undecided
    digits ≥ 2 · span + 1.5 · sum + 100         sum: of |log₁₀ v| of all these numbers
    tolerance = 10^−(digits − 2 · span − 20)    relative; rounding errors, also of cancelled terms, stay below it

    difference > tolerance    different, at any precision
    difference ≤ tolerance    equal, if the digits suffice; else more digits

A difference that is not zero has about the size of a product of a few terms that occur, say (10^−span)² beside 10^span,
and the tolerance is smaller, 10^−(4 · span + 80). Nested forms differ by higher powers: 1 + ε(1 + ε/2 (1 + …)) of n
brackets and e^ε by ε^(n+1), tan sin ε and sin tan ε by ε⁷. Each power takes a number of the size of ε in the tree, so
that the sum of the spans grows with it. For identities of functions, points that no writer of an answer can know make
it certain. For closed forms this is no proof.

A sum that cancels to nothing within the tolerance is 0. All numbers are kept small before they are computed: a power,
factorial or exponential whose result would be huge is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from harness.answers.grammar.tree import Node, symbols
from harness.grading.bounds import MAX_DIGITS, MAX_EVALUATIONS
from harness.grading.compare.point import NOISE_DIGITS, NotNumeric, Point, Vanishing, evaluate_at

FIRST_DIGITS = 70
"""Number of digits of the first evaluation, which tells most different values apart."""

_SPAN_FACTOR = 6
_SUM_OF_SPANS_FACTOR = 1.5
_SPARE_DIGITS = 100
"""Numbers of the rules above, by which the digits suffice."""


class Evaluation(NamedTuple):
    """Values of several trees at one point, at one precision.

    tolerance: relative difference up to which two values may be one number. sufficient: the digits suffice, so that two
    values within the tolerance are one number.
    """

    values: tuple[Any, ...]
    point: Point
    tolerance: Any
    sufficient: bool


def evaluations(
    trees: Sequence[Node], point_at: Callable[[int], Point], *, span_factor: int = _SPAN_FACTOR
) -> Iterator[Evaluation]:
    """Calculate the values of all trees with more and more digits, until these suffice to compare; yield each attempt.

    point_at: takes a number of digits and returns the point at which the trees are evaluated with that precision.
    span_factor: the digits must be at least this multiple of the span, which the top of the module explains. Raises
    `NotNumeric`: a tree has no number, or needs more than `MAX_DIGITS`. Raises `Vanishing`: a divisor is 0 even with
    the digits that suffice.
    """
    digits = FIRST_DIGITS
    while True:
        point = point_at(digits)
        try:
            values = tuple(evaluate_at(point, tree) for tree in trees)
        except Vanishing:
            if digits >= _digits_needed(point, span_factor):
                raise
            values = ()
        needed = _digits_needed(point, span_factor)
        if values:
            yield Evaluation(values, point, point.tolerance(), digits >= needed)
        if digits >= needed:
            return
        if needed > MAX_DIGITS:
            raise NotNumeric("too many digits needed")
        digits = needed


def _digits_needed(point: Point, span_factor: int) -> int:
    """Return how many digits an equality needs, by the spans that `point` has noted."""
    by_sum = 2 * point.span + _SUM_OF_SPANS_FACTOR * point.sum_of_spans
    return ceil(max(span_factor * point.span, by_sum)) + _SPARE_DIGITS


def differ(left: Any, right: Any, tolerance: Any) -> bool:
    """Whether two numbers differ by more than the relative `tolerance`."""
    return bool(abs(left - right) > tolerance * max(abs(left), abs(right)))


def same_number(left: Node, right: Node) -> bool | None:
    """Whether two closed forms are the same number; None if that cannot be decided by numbers."""
    budget = [MAX_EVALUATIONS]
    try:
        for evaluation in evaluations((left, right), lambda digits: Point(digits, index=0, budget=budget)):
            left_value, right_value = evaluation.values
            if differ(left_value, right_value, evaluation.tolerance):
                return False
            if evaluation.sufficient:
                return True
    except NotNumeric:
        pass
    return None


def number_of(node: Node, digits: int = 30) -> Any:
    """Return the value of a closed form to `digits` digits (mpf or mpc). Raises `NotNumeric`."""
    if symbols(node):
        raise NotNumeric("variables")
    budget = [MAX_EVALUATIONS]
    working = digits + 2 * NOISE_DIGITS
    point = Point(working, index=0, budget=budget)
    value = evaluate_at(point, node)
    # The relative error is 10^(2 · span + NOISE_DIGITS − working): below 10^−digits while 2 · span ≤ NOISE_DIGITS.
    if 2 * point.span > NOISE_DIGITS:
        if 2 * point.span > MAX_DIGITS:
            raise NotNumeric("too many digits needed")
        # 2 · span more digits would do; one more span is room for terms that show with more digits only.
        value = evaluate_at(Point(working + ceil(3 * point.span), index=0, budget=budget), node)
    return value


def real_of(node: Node, digits: int, decimals: int) -> Fraction:
    """Return a real closed form, computed to `digits` digits, to `decimals` places. Raises `NotNumeric`."""
    number = number_of(node, digits)
    if number.imag != 0:
        raise NotNumeric("a complex number")
    return Fraction(int(number.real * 10**decimals), 10**decimals)
