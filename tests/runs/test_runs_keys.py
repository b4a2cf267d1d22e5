"""A set of keys is the set that it stands for, in memory by questions."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.records import Key
from harness.runs.record import KeySet
from tests.budget import examples

KEYS = st.builds(Key, st.sampled_from(["a", "b", "\ud800"]), st.sampled_from([0, 1, 2, 5, 99_999, 100_000, 10**17, -1]))


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(KEYS), st.lists(KEYS), st.integers(1, 7))
def test_it_is_a_set_and_lacks_and_counts_as_one(first: list[Key], second: list[Key], samples: int) -> None:
    keys, expected = KeySet(first), set(first)
    before = keys.copy()
    for key in second:
        assert keys.add(key) is (key not in expected)
        expected.add(key)
    assert (keys, set(keys), len(keys), before) == (expected, expected, len(expected), set(first))
    strangers = [Key("c", 0), Key("a", 9), "ab", ("a", 0, 1), 7, None]
    assert [key in keys for key in (*first, *second, *strangers)] == [True] * len(first + second) + [False] * 6
    within = {key for key in expected if 0 <= key.sample_index < samples}
    assert keys.lacks("a", samples) == tuple(i for i in range(samples) if Key("a", i) not in within)
    assert sorted(keys.beyond(samples)) == sorted(key for key in expected if key.sample_index >= samples)
    assert keys.count_within(["a", "b", "\ud800", "nobody's"], samples) == len(within)
    assert keys.count_within(["a"], samples) == sum(key.question_id == "a" for key in within)


def test_the_id_of_a_question_is_held_once() -> None:
    def measured(samples: int) -> int:
        tracemalloc.start()
        keys = KeySet(Key(f"q{q}" * 200, i) for q in range(100) for i in range(samples))
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(keys) == 100 * samples
        return used

    assert measured(64) < 1.5 * measured(1), "whether a sample is stored is one bit"
