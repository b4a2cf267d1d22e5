"""Places of ids are found, though the ids are not kept."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.questions import Places
from tests.budget import examples


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.text(max_size=3)), st.text(max_size=3))
def test_where_an_id_stands_is_among_its_candidates(ids: list[str], other: str) -> None:
    places = Places(ids)
    assert len(places) == len(ids)
    for question_id in [*ids, other]:
        candidates = [*places.candidates(question_id)]
        assert candidates == sorted(candidates)
        assert [position for position in candidates if ids[position] == question_id] == [
            i for i, name in enumerate(ids) if name == question_id
        ]


def test_of_many_ids_nearly_every_one_has_one_candidate() -> None:
    ids = [f"question-{number}" for number in range(50_000)]
    places = Places(ids)
    assert sum(len([*places.candidates(name)]) for name in ids) < len(ids) + 10
    assert sum(len([*places.candidates(f"other-{number}")]) for number in range(50_000)) < 10


def test_an_id_takes_eight_bytes() -> None:
    tracemalloc.start()
    places = Places(f"question-{number}" for number in range(50_000))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(places) == 50_000
    assert used < 10 * 50_000
