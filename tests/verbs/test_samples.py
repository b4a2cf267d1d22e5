"""How many samples a benchmark is asked: the number behind its name, or else the one for all, or else its card's."""

from __future__ import annotations

import pytest

from harness.asking.options.run import RunOptions
from harness.asking.prepare import questions_of
from harness.core.errors import UsageError


def asked(benchmarks: str, samples: int | None = None) -> dict[str, int]:
    prepared = questions_of(RunOptions.of(benchmarks=benchmarks, samples=samples))
    return {name: one.samples for name, one in prepared.benchmarks.items()}


def test_a_benchmarks_own_number_is_its_own_and_the_other_number_is_for_the_rest() -> None:
    assert asked("demo:3") == {"demo": 3}
    assert asked("demo", 5) == {"demo": 5}
    assert asked("demo:5", 5) == {"demo": 5}


def test_two_numbers_for_one_benchmark_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"number of samples \(demo:8\): leave out this option or these numbers"
    ) as refused:
        asked("demo:8", 2)
    assert refused.value.field == "samples"
