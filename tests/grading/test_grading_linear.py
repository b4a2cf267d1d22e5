"""Time in proportion to the text: eight times the text, well below 64 times the time.

For: harness.answers.grammar.characters, harness.answers.grammar.tokens, harness.answers.grammar.units,
harness.grading.verdict, harness.grading.find.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from harness.answers.grammar import characters, spellings, tokens, units
from harness.grading.verdict import search
from tests.grading.given import question, sample

REPEATS = 4_000
GROWTH = 8
MAX_GROWTH = 32
"""Between 8, a linear pattern, and 64, a quadratic one."""

MIN_SECONDS = 0.02
"""A search that takes less at eight times the text is fast enough whatever its growth."""

REPLIES = ("\\boxed{{5}}{run}", "The answer is 5{run}", "{run}\\boxed{{5}}")
RUNS = ("?", "?!", ".", "a ", " ", "\n")


def growth(work: Callable[[str], object], text: str, repeats: int = 1) -> float:
    """How many times the processor time eight times the text takes; 0 for a short time. The least of three tries."""
    seconds = []
    for times in (1, GROWTH):
        tries = []
        for _ in range(3):
            begun = time.process_time()
            for _ in range(repeats):
                work(text * times)
            tries.append(time.process_time() - begun)
        seconds.append(max(min(tries), 1e-4))
    return 0.0 if seconds[1] < MIN_SECONDS else seconds[1] / seconds[0]


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
    assert growth(pattern.match, piece * REPEATS, repeats=20) < MAX_GROWTH
    assert growth(pattern.fullmatch, piece * REPEATS, repeats=20) < MAX_GROWTH


@pytest.mark.parametrize("reply", REPLIES)
def test_a_search_is_linear_in_a_run_of_any_sign(reply: str) -> None:
    of = question("5")
    slow = {}
    for run in RUNS:
        found = growth(lambda text: search(of, sample(reply.format(run=text))), run * (8_000 // len(run)))
        if found >= MAX_GROWTH:
            slow[run] = found
    assert slow == {}
