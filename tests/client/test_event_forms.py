"""Forms of events that the standard and some servers allow beside the usual one: the same reply, the same notes.

The cases of fields follow "Parsing an event stream" of the HTML standard (https://html.spec.whatwg.org).

For: harness.client.protocol.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.client.protocol.completion import LATE_TEXT, UNREAD_TEXT
from harness.client.protocol.reply import without_keys
from harness.client.protocol.sse import MAX_EVENT_BYTES, ReplyParser
from harness.client.protocol.written import WrittenTokens
from harness.core.records import Usage
from harness.core.reply_notes import LATE_BODY
from harness.core.secret import Secret
from tests.client.test_events import DONE, STREAM, delta, event, facts, failure, reply


@pytest.mark.parametrize(
    "stream",
    [
        STREAM.replace(b"data: ", b"data:"),
        STREAM.replace(b"data: {", b"data: \ndata: {"),
        STREAM.replace(b', "choices"', b',\ndata: "choices"'),
        STREAM.replace(b', "choices"', b',\ndata:"choices"'),
        STREAM.replace(b"data: {", b"id: 7\ndata: {"),
        STREAM.replace(b"data: {", b"retry: 10\nid\n: a comment\ndata: {"),
        STREAM.replace(b"data: {", b"event: message\ndata: {"),
        STREAM.replace(b"\n\n", b"\n\n\n\n"),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 4096])
def test_an_event_may_be_written_in_each_form_of_the_standard(stream: bytes, size: int) -> None:
    assert facts(reply(*(stream[i : i + size] for i in range(0, len(stream), size)))) == facts(reply(STREAM))


def test_an_error_under_its_own_field_is_the_error_of_an_event_of_that_name() -> None:
    error = b'{"message": "slot unavailable", "code": 503, "type": "unavailable_error"}'
    old, new = failure(b"error: " + error + b"\n\n"), failure(b"event: error\ndata: " + error + b"\n\n")
    assert facts(old) == facts(new)
    assert "slot unavailable" in old.message
    assert facts(failure(b"error:" + error + b"\n\n")) == facts(new)


def parts(*content: Any, finish: str | None = None) -> bytes:
    return event(delta(content=list(content), finish=finish))


def test_text_in_typed_parts_is_a_text_without_a_note() -> None:
    got = reply(
        parts({"type": "thinking", "thinking": [{"type": "text", "text": "so "}]})
        + parts({"type": "text", "text": "4"})
        + parts({"type": "text", "text": "2"}, finish="stop")
        + DONE
    )
    assert (got.text, got.reasoning, got.notes) == ("42", "so ", ())


def test_a_part_that_is_no_text_and_a_text_after_the_end_are_noted() -> None:
    text = {"type": "text", "text": "4"}
    assert reply(parts(text, {"type": "image_url"}, finish="stop") + DONE).notes == (f"{UNREAD_TEXT}: image_url",)
    assert LATE_TEXT in reply(parts(text, finish="stop") + parts(text) + DONE).notes


def test_what_is_no_stream_is_quoted_from_its_beginning_and_a_stream_is_not() -> None:
    got = failure(b": ping\n\n" * 3)
    assert got.message.startswith("not an event stream")
    assert ": ping" in got.message
    assert "{" not in failure(event({"id": "r1", "choices": []})).message


def test_a_stream_that_ends_inside_an_event_says_how() -> None:
    begun = event(delta(content="4")) + b'data: {"cho'
    assert "(reset)" in failure(begun, cut="reset").message
    assert "(cleanly)" in failure(begun).message


def test_only_what_repeats_a_key_is_hidden_in_a_reply() -> None:
    plain = reply(STREAM)
    assert without_keys(plain, [Secret("sk-0123456789abcdef")]) == plain
    assert without_keys(plain, []) is plain
    with_a_key = msgspec.structs.replace(plain, text="your key is sk-0123456789abcdef", notes=("n",))
    hidden = without_keys(with_a_key, [Secret("sk-0123456789abcdef")])
    assert "sk-0123" not in (hidden.text or "")
    assert (hidden.reasoning, hidden.notes[0], len(hidden.notes)) == (plain.reasoning, "n", 2)
    assert "repeats a key of the request in its text" in hidden.notes[1]


def test_an_id_that_no_token_has_makes_all_ids_unknown() -> None:
    written = WrittenTokens()
    assert written.held_bytes == 0
    written.add_event(1, [7])
    assert written.held_bytes > 0
    written.add_event(1, [2**40])
    assert written.ids is None
    written.add_event(1, [9])
    assert written.ids is None
    unstated = WrittenTokens()
    unstated.add_event(1, None)
    unstated.add_event(1, [7])
    assert unstated.ids is None


def usage(**stated: Any) -> Usage:
    return reply(event(delta(content="4", finish="stop")) + event({"choices": [], "usage": stated}) + DONE).usage


@pytest.mark.parametrize(
    ("stated", "reasoning"),
    [
        ({"completion_tokens_details": {"reasoning_tokens": 5}}, 5),
        ({"completion_tokens_details": {"reasoning_tokens": 8}}, 8),
        ({"completion_tokens_details": {"reasoning_tokens": 9}}, None),
        ({"completion_tokens_details": {"reasoning_tokens": -1}}, None),
        ({"completion_tokens_details": {"reasoning_tokens": "5"}, "reasoning_tokens": 4}, None),
        ({"completion_tokens_details": {}, "reasoning_tokens": 4}, 4),
        ({"completion_tokens_details": None, "reasoning_tokens": 4}, 4),
        ({"reasoning_tokens": 4}, 4),
        ({}, None),
    ],
)
def test_reasoning_tokens_are_those_of_the_details_and_never_more_than_all(stated: Any, reasoning: int | None) -> None:
    counts = usage(prompt_tokens=9, completion_tokens=8, **stated)
    assert counts == Usage(prompt_tokens=9, completion_tokens=8, reasoning_tokens=reasoning)
    assert usage(prompt_tokens=9, **stated).reasoning_tokens is None


@pytest.mark.parametrize(
    ("stated", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 6}}, 6),
        ({"prompt_tokens_details": {"cached_tokens": 6}, "prompt_cache_hit_tokens": 3}, 6),
        ({"prompt_tokens_details": {}, "prompt_cache_hit_tokens": 3}, 3),
        ({"prompt_cache_hit_tokens": 3}, 3),
        ({}, None),
    ],
)
def test_cached_tokens_are_those_of_the_details_or_of_the_other_name(stated: Any, cached: int | None) -> None:
    assert usage(prompt_tokens=9, completion_tokens=8, **stated).cached_tokens == cached


def test_gaps_are_the_median_and_nearly_the_largest() -> None:
    parser = ReplyParser(started=0.0, started_utc=1e9, max_body_bytes=1 << 20)
    arrived = 0.0
    for gap in range(102):
        arrived += gap
        parser.feed(event(delta(content="x")), arrived)
    parser.feed(event(delta(finish="stop")) + DONE, arrived)
    timing = parser.finish().timing
    assert (timing.gap_p50, timing.gap_p99, timing.events) == (51.0, 100.0, 102)
    assert (timing.first_token, timing.last_token) == (0.0, arrived)


def test_a_reply_may_be_as_long_as_the_bound_and_no_longer() -> None:
    begun = event(delta(content="4"))
    assert failure(begun, max_bytes=len(begun)).kind == "cut"
    assert failure(begun, max_bytes=len(begun) - 1).kind == "runaway"
    endless = failure(b"data: " + b"x" * (MAX_EVENT_BYTES + 1), max_bytes=2 * MAX_EVENT_BYTES)
    assert (endless.kind, "a line of the reply exceeds" in endless.message) == ("malformed", True)


def test_what_comes_after_the_end_is_noted() -> None:
    assert reply(STREAM, b"more").notes == (LATE_BODY,)
    assert reply(STREAM + b"more").notes == (LATE_BODY,)
    assert reply(STREAM, b"\r\n").notes == ()


def test_json_that_is_no_completion_is_refused() -> None:
    assert "the reply is no completion" in failure(b'{"answer": 42}').message


def test_an_event_may_be_named_without_a_blank() -> None:
    error = b'data: {"message": "slot unavailable"}\n\n'
    assert facts(failure(b"event:error\n" + error)) == facts(failure(b"event: error\n" + error))


def test_log_probabilities_are_counted_and_odd_ones_too() -> None:
    value = delta(content="42", finish="stop")
    value["choices"][0]["logprobs"] = {"content": [{"token": "4", "logprob": -0.1}, {"token": "2", "logprob": None}, 7]}
    got = reply(event(value) + DONE)
    assert (got.n_logprobs, got.n_odd_logprobs) == (3, 2)
