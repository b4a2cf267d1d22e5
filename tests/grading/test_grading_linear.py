"""Patterns of the grammar take time in proportion to the text: eight times the text, well below 64 times the time.

For: harness.answers.grammar.characters, harness.answers.grammar.tokens, harness.answers.grammar.units.
"""

from __future__ import annotations

import re
import time

import pytest

from harness.answers.grammar import characters, spellings, tokens, units

REPEATS = 4_000
GROWTH = 8
MAX_GROWTH = 32
"""Between 8, a linear pattern, and 64, a quadratic one."""


def seconds(pattern: re.Pattern[str], text: str) -> float:
    """The least processor time of five matches; at least the clock's own steps."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(20):
            pattern.match(text)
            pattern.fullmatch(text)
        times.append(time.process_time() - begun)
    return max(min(times), 1e-4)


@pytest.mark.parametrize(
    ("pattern", "piece"),
    [
        (units._SCALE, " "),
        (tokens._OPERAND, "{ "),
        (characters._OUTWARD, "[1,"),
        (spellings._COMPOUND, "1"),
        (spellings._COMPOUND, " "),
        (spellings._COMPOUND, "1 h "),
    ],
    ids=["scale", "operand", "outward", "quantity digits", "quantity spaces", "quantities"],
)
def test_a_pattern_is_linear(pattern: re.Pattern[str], piece: str) -> None:
    assert seconds(pattern, piece * REPEATS * GROWTH) < MAX_GROWTH * seconds(pattern, piece * REPEATS)
