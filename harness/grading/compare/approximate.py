r"""Answers that a sign calls rough, `≈3`, `x \approx 3` and `V≈3700升`, beside references that are exact.

They are undecided, as 约3 is: the question may ask for the exact value. The sign is dropped beside a rounded reference,
in a chain that computes (`4π = 12.566 ≈ 13`, `4π ≈ 13`), and where the card states a tolerance.
"""

from __future__ import annotations

import re

from harness.answers.boxed import without_boxes
from harness.answers.grammar.units import unit_of
from harness.core.records import GradeRules

_SIGN = re.compile(r"[≈≃≒≅≐]|\\(?:approx(?:eq)?|simeq|cong|doteq)(?![A-Za-z])|\\sim(?![A-Za-z])|∼")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_NAME = re.compile(r"[A-Za-z\u3400-\u9fff]")
_NUMBER_AND_UNIT = re.compile(r"[\d.,\s]+(?P<unit>[A-Za-z\u3400-\u9fff²³^/\d]+)\s*")
_ROUNDED = re.compile(r"\d\.\d|约|(?i:\b(?:about|approx(?:imately)?|roughly|around)\b)")


def is_rough(reference: str, answer: str, rules: GradeRules) -> bool:
    """Whether a sign of approximation makes an answer rough, and neither the reference nor the rules allow rounding."""
    # A card that allows rounding asks for no exact value.
    if rules.relative_tolerance or rules.absolute_tolerance or rules.round_to_reference:
        return False
    if not _is_called_rough(without_boxes(answer)):
        return False
    return _ROUNDED.search(reference) is None and not _is_called_rough(without_boxes(reference))


def _is_called_rough(text: str) -> bool:
    """Whether a text is one value behind a sign of approximation, alone or behind the name of the value."""
    signs = list(_SIGN.finditer(text))
    if len(signs) != 1 or "=" in text:
        return False  # a chain, whose parts are compared
    before = text[: signs[0].start()].strip(" $()[]{}\n")
    if not before:
        return True
    # A number with a unit before the sign is computed with: 5049米 ≈ 5千米. Commands such as \pi name nothing.
    before = _COMMAND.sub("", before)
    quantity = _NUMBER_AND_UNIT.fullmatch(before)
    is_quantity = quantity is not None and unit_of(quantity["unit"]) is not None
    return _NAME.search(before) is not None and not is_quantity
