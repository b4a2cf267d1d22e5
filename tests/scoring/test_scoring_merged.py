"""Any partition of a run, merged in any order, has the scores of the whole run to the last bit."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.records import Key
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder
from harness.runs.merging import merge
from harness.scoring.pipeline import score_run
from tests.budget import examples
from tests.runs.recorded import NAME, sampled, write

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A disk in memory, where a sync costs nothing."""

N, M = 4, 5
KEYS = [(q, i) for q in range(N) for i in range(M)]
FAILED = [Key("q0", 1), Key("q2", 2), Key("q3", 0)]


@pytest.fixture(scope="module")
def whole() -> Iterator[RunFolder]:
    """A run that was never divided, scored."""
    path = Path(tempfile.mkdtemp(prefix="harness-whole-"))
    folder = write(path / "run", [sampled(q, i) for q, i in KEYS], n_questions=N, planned=M, failed=FAILED)
    score_run(folder, GradingOptions(workers=1))
    yield folder
    shutil.rmtree(path)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]], list[tuple[int, int]], list[int]]:
    """Whose part each key is, keys that a second part holds as well, an order of the keys, an order of the parts."""
    n = draw(st.integers(1, 4))
    holders = draw(st.lists(st.integers(0, n - 1), min_size=len(KEYS), max_size=len(KEYS)))
    twice = draw(st.lists(st.tuples(st.sampled_from(range(len(KEYS))), st.integers(0, n - 1)), max_size=4))
    return holders, twice, draw(st.permutations(KEYS)), draw(st.permutations(range(n)))


@pytest.mark.fuzz
@settings(max_examples=examples(25))
@given(partitions())
def test_any_partition_in_any_order_scores_as_the_whole_to_the_last_bit(
    whole: RunFolder, parted: tuple[list[int], list[tuple[int, int]], list[tuple[int, int]], list[int]]
) -> None:
    holders, twice, order, parts = parted
    with tempfile.TemporaryDirectory(prefix="harness-parts-", dir=MEMORY) as place:
        folders = []
        for k in range(len(parts)):
            mine = {KEYS[at] for at, holder in enumerate(holders) if holder == k}
            mine |= {KEYS[at] for at, holder in twice if holder == k}
            folders.append(
                write(
                    Path(place) / str(k),
                    [sampled(q, i) for q, i in order if (q, i) in mine],
                    n_questions=N,
                    planned=M,
                    shard=f"{k + 1}/{len(parts)}",
                    failed=[one for at, one in enumerate(FAILED) if at % len(parts) == k],
                )
            )
        merged = merge([folders[k] for k in parts], RunFolder(Path(place) / "merged")).folder
        # Verdicts depend on a sample and its question alone; grading them anew each time would take seconds.
        shutil.copy(whole.benchmark(NAME).grades, merged.benchmark(NAME).grades)
        score_run(merged, GradingOptions(workers=1))
        assert merged.benchmark(NAME).scores.read_bytes() == whole.benchmark(NAME).scores.read_bytes()
        assert merged.benchmark(NAME).grades.read_bytes() == whole.benchmark(NAME).grades.read_bytes()
