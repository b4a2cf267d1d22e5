"""Parts of a set: disjoint, complete, even, and the same whatever the order of the rows."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.questions import Shard, assign_parts

IDS = st.lists(st.integers(0, 999).map(str) | st.text(max_size=3), unique=True, max_size=30)


@given(IDS, st.integers(1, 40), st.sampled_from(["aime24", "x", ""]), st.randoms(use_true_random=False))
def test_parts_are_disjoint_complete_even_and_whatever_the_order(
    ids: list[str], of: int, name: str, chance: random.Random
) -> None:
    held = assign_parts(name, ids, of)
    assert held.keys() == set(ids), "each question is held, and by one part only"
    assert set(held.values()) <= set(range(1, of + 1))
    sizes = [Counter(held.values()).get(number, 0) for number in range(1, of + 1)]
    assert max(sizes) - min(sizes) <= 1
    assert assign_parts(name, chance.sample(ids, len(ids)), of) == held


def test_parts_are_those_of_earlier_versions() -> None:
    assert assign_parts("aime24", "abc", 8) == {"c": 6, "a": 7, "b": 8}, "clients of two versions share a run"


def test_small_benchmarks_do_not_all_fall_to_the_same_parts() -> None:
    assert len({assign_parts(f"benchmark {n}", ["q"], 8)["q"] for n in range(40)}) == 8


def test_a_shard_reads_as_it_is_written() -> None:
    assert Shard.parse("02/8") == Shard(2, 8)
    assert str(Shard.parse("2/8")) == "2/8"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *[(text, "expected I/N") for text in ("", "3", "a/b", "1/2/3", "-1/2", "1.0/2", " 1/2", "1/²")],
        ("0/4", "numbered from 1: expected 1/4 to 4/4"),
        ("5/4", "expected 1/4 to 4/4"),
        ("1/0", "expected 1 to 10000 shards"),
        ("1/10001", "expected 1 to 10000 shards"),
    ],
)
def test_what_is_no_shard_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Shard.parse(text)
