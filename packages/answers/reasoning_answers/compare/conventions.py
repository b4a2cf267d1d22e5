"""The conventions of benchmarks: pairs of answers that count as equal by custom. `docs/grading.md` describes each.

A card switches a convention off or on with `conventions: {name: false}` or `true`.
"""

from __future__ import annotations

from reasoning_answers.grammar.tree import names
from reasoning_answers.records import GradeRules

_ON = names(
    "units_dropped percent_dropped percent_value degrees_dropped degrees_radians labels_dropped lists_unordered "
    "list_as_set list_as_tuple inequality_as_interval vector_as_tuple ratio_as_quotient base_dropped bound_variables "
    "text_case"
)
CONVENTIONS = dict.fromkeys(_ON, True) | {"positive_variables": False}
"""Name of a convention → whether it is on by default."""


def allows(rules: GradeRules, name: str) -> bool:
    """Whether convention `name` is on, as set by the card or by default."""
    return rules.conventions.get(name, CONVENTIONS[name])
