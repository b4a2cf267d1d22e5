"""The ids and lengths of a reply under way: nonsense is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.protocol.completion import Completion
from harness.client.protocol.event_fields import likeliest_of
from harness.client.protocol.reply import MAX_LIKELIEST, Reply
from harness.client.protocol.written import KEPT_LOGPROBS, WrittenTokens

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
        completion.add({"choices": [choice], "prompt_token_ids": nonsense}, 0.0)
    seen = completion.so_far()
    assert (seen.text, seen.ids, seen.prompt_ids) == ("aaa", None, None)
    assert list(seen.lengths) == [1, 1, 1]


def test_a_text_without_ids_among_others_makes_them_unknown() -> None:
    written = WrittenTokens()
    written.add_event(3, [1, 2])
    written.add_event(3, None)
    written.add_event(3, [3])
    assert written.ids is None


@given(events=st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.booleans()), max_size=400))
def test_log_probabilities_are_those_of_the_last_ids_without_a_gap(events: list[tuple[bool, int, bool]]) -> None:
    written = WrittenTokens()
    known: list[float | None] = []
    sure = 0
    for has_text, n, stated in events:
        logprobs = [-float(len(known) + k) for k in range(n)]
        written.add_event(int(has_text), [7] * n, logprobs if stated else logprobs[:-1])
        known += logprobs if stated else [None] * n
        sure = len(known) if has_text else sure
    expected: list[float] = []
    for value in reversed(known[:sure]):
        if value is None or len(expected) == KEPT_LOGPROBS:
            break
        expected.insert(0, value)
    if sure == len(known):
        assert written.logprobs == tuple(expected)
    else:  # a token whose text is still to come may have ended what is known
        assert written.logprobs in (tuple(expected), ())


@pytest.mark.parametrize("nonsense", ["-1", None, [], {"a": 1}, float("inf")])
def test_a_log_probability_that_is_no_number_makes_those_before_it_unknown(nonsense: Any) -> None:
    written = WrittenTokens()
    completion = Completion(written)
    for value in (-0.5, nonsense, -0.25):
        logprobs = {"tokens": ["a"], "token_logprobs": [value]}
        choice = {"index": 0, "text": "a", "token_ids": [1], "logprobs": logprobs}
        completion.add({"choices": [choice]}, 0.0)
    assert completion.so_far().logprobs == (-0.25,)


@pytest.mark.parametrize(
    "top", [{}, {"a": "x"}, {"a": None}, {f"t{n}": -1.0 for n in range(101)}, [], "x", {"a": float("inf")}]
)
def test_likeliest_tokens_that_are_none_are_not_taken(top: Any) -> None:
    def reply(of_the_last: Any) -> Reply:
        completion = Completion()
        logprobs = {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": [{"b": -2.0}, of_the_last]}
        choice = {"index": 0, "text": "a", "logprobs": logprobs, "finish_reason": "stop"}
        completion.add({"choices": [choice]}, 0.0)
        return completion.reply(started=0.0, started_utc=0.0, ended=1.0, clock="user", request_id=None)

    assert reply(top).likeliest == {}
    assert reply({"a": -1.0, "b": -2}).likeliest == {"a": -1.0, "b": -2}


def test_the_names_of_the_likeliest_tokens_have_a_bound_together() -> None:
    longest = {f"{n:01024}": -1.0 for n in range(MAX_LIKELIEST)}
    assert likeliest_of(longest) == longest
    assert likeliest_of({f"{name}{'' if n else 'x'}": -1.0 for n, name in enumerate(longest)}) == {}


def test_the_length_of_a_text_is_recorded_up_to_65535_characters() -> None:
    written = WrittenTokens()
    for n_chars in (40_000, 65_535, 70_000):
        written.add_event(n_chars, None, [])
    assert [*written.lengths] == [40_000, 65_535, 65_535]
