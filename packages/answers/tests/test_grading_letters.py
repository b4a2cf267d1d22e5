"""Letters are variables before they are units, and their case counts."""

from __future__ import annotations

import pytest

from reasoning_answers import grade
from reasoning_answers.compare.equivalence import equal
from reasoning_answers.records import GradeRules

RIGHT = [
    ("2a", "2a"),
    (r"\frac v2", "v/2"),
    ("2.5km", "2500m"),
    ("72 km/h", "20 m/s"),
    (r"3\text{ days}", r"3\text{ d}"),
    ("3t", "3000kg"),
    ("pi", "Pi"),
    (r"\text{No}", "no"),
    ("ab", "ba"),
    ("mgh", "mgh"),
    ("red", "RED"),
    ("old", "Old"),
    ("odd", "ODD"),
]
WRONG = [
    ("2a", "2A"),
    (r"\frac v2", r"\frac V2"),
    (r"\frac12mv^2", r"\frac12mV^2"),
    ("2d", "48h"),
    ("24h", "1d"),
    ("3t", "2000kg"),
    ("3t", "3N"),
    ("ab", "AB"),
    ("pV", "pv"),
    (r"\pi", r"\Pi"),
    ("3n", "3N"),
    ("mg", "Mg"),
    ("kv/2", "KV/2"),
    ("mgh", "MGH"),
    ("mgh", "Mgh"),
    ("ABC", "abc"),
]


@pytest.mark.parametrize(("reference", "answer"), RIGHT)
def test_a_letter_or_unit_in_another_spelling_is_right(reference: str, answer: str) -> None:
    assert grade(reference, f"\\boxed{{{answer}}}").outcome == "correct"


@pytest.mark.parametrize(("reference", "answer"), WRONG)
def test_another_letter_is_never_right(reference: str, answer: str) -> None:
    assert grade(reference, f"\\boxed{{{answer}}}").outcome != "correct"


def test_letters_are_compared_in_order_where_the_card_counts_it() -> None:
    for ordered, other_order in ((True, False), (None, True)):
        rules = GradeRules(ordered=ordered)
        assert equal("CAB", "C, A, B", "text", rules).equal
        assert bool(equal("CAB", "BCA", "text", rules).equal) is other_order
