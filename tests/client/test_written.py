"""The ids of a reply under way: nonsense is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.protocol.completion import Completion
from harness.client.protocol.events import odd_event
from harness.client.protocol.written import WrittenTokens

IDS = st.lists(st.integers(0, 2**31 - 1), max_size=3)
EVENTS = st.lists(st.tuples(st.text(max_size=4), IDS), max_size=12)


@given(events=EVENTS)
def test_ids_are_those_of_the_texts_that_have_come(events: list[tuple[str, list[int]]]) -> None:
    written = WrittenTokens()
    for text, ids in events:
        written.add_event(len(text), ids)
    last = max((n for n, (text, _) in enumerate(events) if text), default=-1)
    expected = [number for _, ids in events[: last + 1] for number in ids]
    assert list(written.ids or ()) == expected


@pytest.mark.parametrize("nonsense", ["x", [1.5], [-1], [2**31], [None], [True], {"a": 1}, [[1]]])
def test_what_is_no_list_of_ids_makes_them_unknown_and_costs_no_text(nonsense: Any) -> None:
    written = WrittenTokens()
    completion = Completion(written)
    for ids in ([1], nonsense, [2]):
        choice = {"index": 0, "delta": {"content": "a"}, "token_ids": ids}
        completion.add(odd_event({"choices": [choice], "prompt_token_ids": nonsense}, begun=False)[0], 0.0)
    seen = completion.so_far()
    assert (seen.text, seen.ids, seen.prompt_ids) == ("aaa", None, None)


def test_a_text_without_ids_among_others_makes_them_unknown() -> None:
    written = WrittenTokens()
    written.add_event(3, [1, 2])
    written.add_event(3, None)
    written.add_event(3, [3])
    assert written.ids is None
