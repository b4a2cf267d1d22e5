"""Time in proportion to the text: the search on whole replies with runs of a sign.

For: harness.grading.find, harness.grading.verdict, harness.answers.grammar.characters, harness.answers.grammar.tokens,
harness.answers.grammar.units.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from harness.answers.grammar import characters, tokens, units
from harness.grading.verdict import search
from tests.grading.given import question, sample

GROWTH = 4
MAX_GROWTH = 9
"""Between 4, a linear pattern, and 16, a quadratic one."""

MIN_SECONDS = 0.004
"""A pattern that takes less at four times the text is fast enough whatever its growth."""

REPLIES = ("\\boxed{{5}}{run}", "The answer is 5{run}", "{run}\\boxed{{5}}")


def growth(work: Callable[[str], object], text: str) -> float:
    """How many times the processor time four times the text takes; 0 for a short time. The least of three tries."""
    seconds = []
    for times in (GROWTH, 1):
        tries = []
        for _ in range(3):
            begun = time.process_time()
            work(text * times)
            tries.append(time.process_time() - begun)
            if times > 1 and tries[-1] < MIN_SECONDS:
                return 0.0
        seconds.append(max(min(tries), 1e-5))
    return seconds[0] / seconds[1]


def test_a_quadratic_pattern_is_told() -> None:
    assert growth(lambda text: [*re.finditer(r"[.!?]+(?=\s)", text)], "?" * 2_000) > MAX_GROWTH


@pytest.mark.parametrize(
    ("pattern", "piece"),
    [
        (units._SCALE, " "),
        (tokens._OPERAND, "{ "),
        (characters._OUTWARD, "[1,"),
    ],
    ids=["scale", "operand", "outward"],
)
def test_a_pattern_that_is_matched_from_the_start_is_linear(pattern: re.Pattern[str], piece: str) -> None:
    assert growth(pattern.match, piece * 10_000) < MAX_GROWTH
    assert growth(pattern.fullmatch, piece * 10_000) < MAX_GROWTH


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("run", ["?", "?!", ".", "a ", " ", "\n", "$"])
def test_a_search_is_linear_in_a_run(reply: str, run: str) -> None:
    of = question("5")
    assert growth(lambda text: search(of, sample(reply.format(run=text))), run * (8_000 // len(run))) < MAX_GROWTH
