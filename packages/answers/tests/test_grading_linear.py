"""Time in proportion to the text: each pattern of the search, and the search on whole replies, on runs of a sign.

For: reasoning_answers.find, reasoning_answers.verdict, reasoning_answers.boxed, reasoning_answers.letters,
reasoning_answers.grammar.numerals, reasoning_answers.grammar.notation, reasoning_answers.grammar.tokens,
reasoning_answers.grammar.units, reasoning_answers.patterns.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType

import pytest
from asked import answered, question

from reasoning_answers import boxed, find, letters
from reasoning_answers.grammar import numerals, tokens, units
from reasoning_answers.patterns import LazyPattern
from reasoning_answers.search import search

GROWTH = 4
MAX_GROWTH = 9
"""Between 4, a linear pattern, and 16, a quadratic one."""

MIN_SECONDS = 0.004
"""A pattern that takes less at four times the text is fast enough whatever its growth."""

RUN_CHARS = 500
"""Length of the shorter run that each pattern is tried on; a quadratic pattern takes 10 ms for four times as many."""

SIGNS = " \n\t?!.,()[]{}\\$*_1aA是，=-/^<#`'\"&|~:%+或"
PAIRS = r"""( a|1 |1,|a,|\(|\[|$ |$a|? |*a|(a|[1,|{ |A |A,|is |the |so |not |\a|1.|= |. |- |"a|\"|> |a:"""
RUNS = [*SIGNS, "\n ", "a ", *PAIRS.split("|")]
ALL = frozenset(("search", "match", "fullmatch"))
SEARCHING = ALL | {"finditer", "sub", "split"}

REPLIES = ("\\boxed{{5}}{run}", "The answer is 5{run}", "{run}\\boxed{{5}}", "So it is 5 {run}x")


def growth(work: Callable[[str], object], text: str) -> float:
    """How many times the processor time four times the text takes; 0 for a short time. The lesser of two tries."""
    seconds = []
    for times in (GROWTH, 1):
        tries = []
        for _ in range(2):
            begun = time.thread_time()
            work(text * times)
            tries.append(time.thread_time() - begun)
            if times > 1 and tries[-1] < MIN_SECONDS:
                return 0.0
        seconds.append(max(min(tries), 1e-5))
    return seconds[0] / seconds[1]


def methods(modules: Iterable[ModuleType]) -> dict[str, set[str]]:
    """Name of a pattern → the methods by which the modules use it: one that is only matched may search in no time."""
    used = defaultdict(set)
    for node in ast.walk(ast.parse("\n".join(map(inspect.getsource, modules)))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used[node.value.id].add(node.attr)
    return used


def patterns(modules: Iterable[ModuleType]) -> Iterator[tuple[str, re.Pattern[str], set[str]]]:
    """Yield the patterns of modules, each with its name and the methods by which it is used."""
    for module in modules:
        used = methods([module])
        for name, value in vars(module).items():
            for pattern in value if isinstance(value, tuple) else [value]:
                if isinstance(pattern, LazyPattern | re.Pattern):
                    yield f"{module.__name__}.{name}", pattern, used[name] & SEARCHING or {*ALL}


def tried(pattern: re.Pattern[str], used: set[str], text: str) -> None:
    """Use a pattern on a text in each way."""
    if used - {"match", "fullmatch"}:
        for _ in pattern.finditer(text):
            pass
    if "match" in used:
        pattern.match(text)
    if "fullmatch" in used:
        pattern.fullmatch(text)


def slow_runs(pattern: re.Pattern[str], used: set[str], runs: Iterable[str] = RUNS) -> list[str]:
    """The runs on which the time of a pattern grows faster than the text, each time that it is measured."""

    def work(text: str) -> None:
        tried(pattern, used, text)
        tried(pattern, used, f"{text}\0")  # which fits no pattern: a failure tries all ways

    return [run for run in runs if all(growth(work, run * (RUN_CHARS // len(run))) > MAX_GROWTH for _ in range(4))]


def test_a_quadratic_pattern_is_told() -> None:
    assert growth(lambda text: [*re.finditer(r"[.!?]+(?=\s)", text)], "?" * 2_000) > MAX_GROWTH
    # On a busy machine a measurement may hide the growth, so several are made.
    assert any(slow_runs(re.compile(r"\s*x"), {"search"}, runs=" a") == [" "] for _ in range(5))


def test_every_pattern_of_the_search_is_linear() -> None:
    modules = [importlib.import_module(f"{find.__name__}.{each.name}") for each in pkgutil.iter_modules(find.__path__)]
    tries = [*patterns([*modules, boxed, letters, numerals])]
    assert len({name for name, _, _ in tries}) > 100
    assert {name: runs for name, pattern, used in tries if (runs := slow_runs(pattern, used))} == {}


@pytest.mark.parametrize(
    ("pattern", "piece"),
    [
        (units._SCALE, " "),
        (tokens._OPERAND, "{ "),
    ],
    ids=["scale", "operand"],
)
def test_a_pattern_that_is_matched_from_the_start_is_linear(pattern: re.Pattern[str], piece: str) -> None:
    assert growth(pattern.match, piece * 10_000) < MAX_GROWTH
    assert growth(pattern.fullmatch, piece * 10_000) < MAX_GROWTH


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("run", ["?", "?!", ".", "a ", " ", "\n", "$", " ,", "answer: 5 "])
def test_a_search_is_linear_in_a_run(reply: str, run: str) -> None:
    of = question("5")
    assert growth(lambda text: search(of, answered(reply.format(run=text))), run * (8_000 // len(run))) < MAX_GROWTH
