"""How many cases the generated tests try: an eighth in `make test`, all in `make test-wide`, more in `make fuzz`.

A fault that a generator is for breaks a whole class of its cases, so an eighth of them finds it. What only few cases
show, the wide run finds.
"""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")

ALL = os.environ.get("HARNESS_TEST_EXAMPLES") == "all"
"""Whether all cases are tried, and the tests marked `wide` run: `make test-wide`, `make mutants`."""

SEED = int(os.environ.get("HARNESS_FUZZ_SEED") or f"{datetime.datetime.now(datetime.UTC):%Y%m%d}")
"""The seed of generated cases, and of the order of the tests: the day's, or that of a day before."""

SHARE = 8
"""The ordinary suite tries one case of so many."""


def examples(default: int) -> int:
    """Number of random inputs within one process: `default` if all are tried, else an eighth; HARNESS_FUZZ_EXAMPLES if
    that is more."""
    return max(default if ALL else default // SHARE, int(os.environ.get("HARNESS_FUZZ_EXAMPLES", 0)))


def share_of(cases: Iterable[Case]) -> list[Case]:
    """All cases in their order if all are tried; else an eighth of them, drawn by the day's seed."""
    every = [*cases]
    return every if ALL else random.Random(SEED).sample(every, -(-len(every) // SHARE))


def rounds(default: int) -> int:
    """Whole processes that are started, killed and looked after: `default` if all are tried, else an eighth, but one;
    HARNESS_FUZZ_ROUNDS if that is more."""
    return max(default if ALL else -(-default // SHARE), int(os.environ.get("HARNESS_FUZZ_ROUNDS", 0)))


def thinned(parameters: Iterable[Any]) -> list[Any]:
    """Parameters of a test: every eighth as it is, the others marked `wide`."""
    return [
        parameter if number % SHARE == 0 else pytest.param(*_values(parameter), marks=pytest.mark.wide)
        for number, parameter in enumerate(parameters)
    ]


def _values(parameter: Any) -> tuple[Any, ...]:
    return parameter if isinstance(parameter, tuple) else (parameter,)
