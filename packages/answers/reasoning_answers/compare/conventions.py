"""The conventions of benchmarks: pairs of answers that count as equal by custom. `docs/grading.md` gives the reasons.

A card switches a convention off or on with `conventions: {name: false}` or `true`.
"""

from __future__ import annotations

from typing import NamedTuple

from reasoning_answers.records import GradeRules


class Convention(NamedTuple):
    """A convention: whether it is on by default, and what it makes equal."""

    default: bool
    meaning: str


CONVENTIONS: dict[str, Convention] = {
    "units_dropped": Convention(True, "a unit on only one side is dropped: 5 cm = 5"),
    "percent_dropped": Convention(True, "a percent sign on only one side is dropped: 50% = 50"),
    "percent_value": Convention(True, "a percentage equals the corresponding fraction: 50% = 0.5"),
    "degrees_dropped": Convention(True, "a degree sign on only one side is dropped: 90° = 90"),
    "degrees_radians": Convention(True, "an angle in degrees equals the same angle as a multiple of pi: 30° = π/6"),
    "labels_dropped": Convention(
        True, "the name of the requested quantity is dropped: x = 5 counts as 5, f(x) = 2x as 2x"
    ),
    "lists_unordered": Convention(True, "the order of a bare comma-separated list does not matter: 1, -2 = -2, 1"),
    "list_as_set": Convention(True, "a bare list equals the set of its items: 1, 2 = {1, 2}"),
    "list_as_tuple": Convention(True, "a bare list equals a tuple of the same items in the same order"),
    "inequality_as_interval": Convention(True, "an inequality in one variable equals its solution set: x > 3 = (3, ∞)"),
    "vector_as_tuple": Convention(True, "a column or row vector equals the tuple of its entries"),
    "ratio_as_quotient": Convention(True, "a ratio equals its quotient: 2:1 = 2"),
    "base_dropped": Convention(True, "the subscript of a number base may be omitted: 204_5 = 204"),
    "bound_variables": Convention(
        True, "the name of a function's variable does not matter: f(z) = z is equivalent to f(x) = x"
    ),
    "positive_variables": Convention(
        False, "variables are assumed to be positive, like physical quantities: √(x²) = x"
    ),
    "text_case": Convention(True, "case, articles and punctuation are ignored in text answers"),
}


def allows(rules: GradeRules, name: str) -> bool:
    """Whether convention `name` is on, as set by the card or by default."""
    switches = rules.conventions
    return switches[name] if name in switches else CONVENTIONS[name].default
