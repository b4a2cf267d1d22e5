"""Bytes → one reply or one typed failure, whatever the bytes and however they are split.

For: harness.client.protocol, harness.client.protocol.sse.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.client.apis.api import MAX_NAME_CHARS
from harness.client.apis.chat import CHAT
from harness.client.protocol import sse
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.core.contradictions import contradictions
from harness.core.reply_notes import CUMULATIVE, FAULT, IDS_VARY, LATE_BODY, RENAMED
from tests.budget import examples
from tests.client.dialects import Recording, recordings, several_answers

MAX_BYTES = 64 * 1024 * 1024


def parse(*pieces: bytes, cut: str = "", max_bytes: int = MAX_BYTES) -> Reply | RequestFailed:
    """The outcome of a body that arrives in `pieces`, one second apart."""
    parser = ReplyParser(CHAT, started=0.0, started_utc=1e9, max_body_bytes=max_bytes)
    try:
        for second, piece in enumerate(pieces, 1):
            parser.feed(piece, float(second))
        return parser.finish(cut=cut)
    except RequestFailed as failure:
        return failure


def reply(*pieces: bytes, **options: Any) -> Reply:
    outcome = parse(*pieces, **options)
    assert isinstance(outcome, Reply), outcome
    return outcome


def failure(*pieces: bytes, **options: Any) -> RequestFailed:
    outcome = parse(*pieces, **options)
    assert isinstance(outcome, RequestFailed), outcome
    return outcome


def facts(outcome: Reply | RequestFailed) -> tuple[Any, ...]:
    """All of an outcome but its times."""
    if isinstance(outcome, RequestFailed):
        return outcome.kind, outcome.message, outcome.status
    said = outcome.text, outcome.reasoning, outcome.finish_reason, outcome.usage, outcome.notes
    return (*said, outcome.server_model, outcome.fingerprint, outcome.request_id, outcome.timing.events)


def event(value: Any, line_end: bytes = b"\n") -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + line_end * 2


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "r1", "model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


DONE = b"data: [DONE]\n\n"
STREAM = (
    event(delta(role="assistant", content=""))
    + b": ping\n\n"
    + event(delta(reasoning_content="Let ∑ be"))
    + event(delta(content="4"))
    + event(delta(content="2 🌱", finish="stop"))
    + event({"id": "r1", "model": "m", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})
    + DONE
)


def test_a_body_cut_at_any_byte_is_the_whole_reply_or_a_cut() -> None:
    whole = reply(STREAM)
    finished_at = STREAM.index(b'"finish_reason": "stop"}]}') + len(b'"finish_reason": "stop"}]}')
    for end in range(len(STREAM)):
        outcome = parse(STREAM[:end], cut="reset")
        if end < finished_at:
            assert isinstance(outcome, RequestFailed), end
            assert outcome.kind == "cut", end
        else:
            assert isinstance(outcome, Reply), end
            assert outcome.text == whole.text, end
    # A server that states a finish reason beside each text: a cut reply may lack a part, a whole one does not.
    early = [event(delta(content=word, finish="stop")) for word in "abc"]
    assert reply(*early, DONE).text == "abc"
    assert failure(*early[:2], cut="reset").kind == "cut"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (event({"error": "Unauthorized"}), "server", "Unauthorized"),
        (event({"detail": "worker gone"}), "server", "worker gone"),
        (b"event: error\ndata: plain words\n\n", "server", "plain words"),
        (event({"error": {"message": "the maximum context length is 8", "code": 400}}), "too_long", "maximum context"),
    ],
)
def test_an_error_inside_the_stream_fails_in_the_servers_words(error: bytes, kind: str, words: str) -> None:
    got = failure(event(delta(content="so far")) + error + DONE)
    assert got.kind == kind
    assert words in got.message


@pytest.mark.parametrize(
    ("deltas", "text", "reasoning"),
    [
        ([{"role": "assistant"}], None, None),
        ([{"content": None}, {"content": None}], None, None),
        ([{"content": ""}], "", None),
        ([{"content": []}, {"content": {}}, {"content": False}], "", None),
        ([{"content": "4", "reasoning": ["a"]}, {"reasoning_content": {"text": "b"}}], "4", None),
        ([{"reasoning": "a"}, {"reasoning": "b"}], None, "ab"),
        ([{"reasoning_content": "a", "content": None}, {"reasoning_content": None, "content": "b"}], "b", "a"),
        ([{"reasoning_content": "a", "reasoning": "a"}], None, "a"),
        ([{"reasoning_content": None, "reasoning": "a"}], None, "a"),
        ([{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"text": "x"}]}], "x", "t"),
        ([{"content": "<think>a</think>b"}], "<think>a</think>b", None),
        ([{"content": "\ud83d"}, {"content": "\ude00"}], "😀", None),
        ([{"content": "lone \ud83d half"}], "lone \ud83d half", None),
    ],
)
def test_text_and_reasoning_stay_apart(deltas: list[dict[str, Any]], text: str | None, reasoning: str | None) -> None:
    got = reply(b"".join(event(delta(**fields)) for fields in deltas) + event(delta(finish="length")) + DONE)
    assert (got.text, got.reasoning) == (text, reasoning)


@pytest.mark.parametrize(
    ("page", "kind", "shown"),
    [
        (b"<html><body>Sign in to the proxy</body></html>", "server", "error in the reply: Sign in to the proxy"),
        (b"<h1>We are busy</h1>\n<hr>\ndata: 4\n\n", "rate_limited", "error in the reply: We are busy data: 4"),
        (b"OK", "server", "error in the reply: OK"),
        (b": alive\n\n", "malformed", "not part of a reply: : alive"),
        (b"\x16\x03\x01 binary \xff\xfe", "malformed", "not part of a reply: \\x16\\x03\\x01 binary \ufffd\ufffd"),
    ],
)
def test_what_is_no_event_stream_is_said_with_its_first_words(page: bytes, kind: str, shown: str) -> None:
    for pieces in ([page], [page[at : at + 1] for at in range(len(page))]):
        got = failure(*pieces)
        assert (got.kind, got.message) == (kind, shown)


@given(st.lists(st.floats(-1e-3, 10.0), min_size=1, max_size=8), st.floats(-1e-3, 10.0))
@example([325e-6, 329e-6, 325e-6], 320e-6)
def test_times_are_in_order_although_the_clock_goes_back(stamps: list[float], ended: float) -> None:
    parser = ReplyParser(CHAT, started=0.0, started_utc=1e9, max_body_bytes=MAX_BYTES)
    for at in stamps:
        parser.feed(event(delta(content="a")), at)
    parser.feed(event(delta(finish="stop")) + DONE, stamps[-1])
    timing = parser.finish(ended).timing
    assert timing.first_token is not None
    assert timing.last_token is not None
    assert timing.gap_p50 is None or timing.gap_p50 >= 0
    assert 0 <= timing.first_token <= timing.last_token <= timing.total


def test_a_reply_ends_when_its_body_does_and_never_before_its_latest_bytes() -> None:
    def total(ended: float | None) -> float:
        parser = ReplyParser(CHAT, started=1.0, started_utc=1e9, max_body_bytes=MAX_BYTES)
        parser.feed(event(delta(content="4", finish="stop")), 3.0)
        return parser.finish(ended).timing.total

    assert [total(ended) for ended in (None, 2.0, 6.0)] == [2.0, 2.0, 5.0]


@pytest.mark.parametrize("field", ["id", "model"])
def test_two_names_that_come_several_times_are_those_of_two_replies(field: str) -> None:
    def stream(names: Sequence[str]) -> bytes:
        pieces = b"".join(event(delta(content="x") | {field: name}) for name in names[:-1])
        return pieces + event(delta(finish="stop") | {field: names[-1]}) + DONE

    for one in ("aabaa", "aaaab", "baaaa", "abcda", [f"{n}" for n in range(500)]):
        got = reply(stream(one))
        assert got.text == "x" * (len(one) - 1), one
        assert any(note.startswith((IDS_VARY, RENAMED)) for note in got.notes)
    for two in ("abab", "aabb", "baabb", "aacbab"):
        assert f"the stream contains two replies, with the {field}s" in failure(stream(two)).message, two


def test_a_line_over_its_bound_is_refused_in_any_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    long = event(delta(content="x" * 2000))
    assert failure(long).kind == "malformed"
    assert failure(*(long[i : i + 1] for i in range(len(long)))).kind == "malformed"
    assert failure(b"data: [1\n" * 500 + b"\n").kind == "malformed"
    with pytest.raises(RequestFailed, match="a line in the reply exceeds 1000 bytes"):  # before the line has ended
        ReplyParser(CHAT, started=0.0, started_utc=1e9, max_body_bytes=MAX_BYTES).feed(long[:1500], 1.0)


# -- properties ----------------------------------------------------------------------------------------------------

FIELDS = (
    *("choices", "delta", "message", "content", "reasoning", "reasoning_content", "text", "finish_reason", "index"),
    *("usage", "completion_tokens", "error", "object", "detail", "code", "msg", "loc", "type", "id", "model"),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=20,
)
stream_parts = st.one_of(
    json_values.map(event),
    st.builds(
        lambda text, finish: event(delta(content=text, finish=finish)),
        st.text(max_size=6),
        st.sampled_from([None, None, "stop", "length", "", 3]),
    ),
    st.builds(lambda value: b"event: error\n" + event(value), json_values),
    st.sampled_from([DONE, b"\n", b"\r\n", b": ping\n", b"event: x\n", b"data:\n", b"data: {\n", b"<html>", b"\xff"]),
    st.binary(max_size=20),
)


@given(st.lists(stream_parts, max_size=6).map(b"".join), st.data())
@settings(max_examples=examples(400), deadline=None)
def test_any_bytes_give_a_reply_or_a_typed_failure_alike_for_all_splits(stream: bytes, data: st.DataObject) -> None:
    whole = parse(stream)
    assert facts(parse(*(stream[i : i + 1] for i in range(len(stream))))) == facts(whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert facts(parse(*pieces)) == facts(whole)


@given(json_values)
@example({"choices": [{"message": [], "delta": 3, "index": None}]})
@settings(max_examples=examples(300), deadline=None)
def test_any_json_body_gives_a_reply_or_a_typed_failure(value: Any) -> None:
    parse(json.dumps(value).encode())


# -- replies as each server writes them ------------------------------------------------------------------------------


@pytest.mark.parametrize("recording", [*recordings(), *several_answers()], ids=lambda one: one.name)
def test_replies_of_every_server_are_read_in_any_pieces(recording: Recording) -> None:
    got = reply(recording.body)
    assert (got.text or "", got.reasoning or "") == (recording.text, recording.reasoning)
    assert got.usage.completion_tokens == recording.tokens
    assert contradictions(got.claims(max_tokens=None)) == []
    body = recording.body
    assert facts(parse(*(body[i : i + 5] for i in range(0, len(body), 5)))) == facts(got)
    for end in range(len(recording.name), len(body), 101):
        part = parse(body[:end], cut="the connection was reset")
        said = "text", "reasoning", "finish_reason"
        if isinstance(part, RequestFailed):
            assert part.kind == "cut", end
        else:
            assert all(getattr(part, one) == getattr(got, one) for one in said), end


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 5000])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_number_that_is_none_makes_a_count_unknown_and_costs_no_reply(number: str, streamed: bool) -> None:
    usage = f'{{"prompt_tokens":{number},"completion_tokens":3}}'
    choice = '{"index":0,"%s":{"content":"42"},"finish_reason":"stop"}' % ("delta" if streamed else "message")
    body = f'{{"choices":[{choice}],"usage":{usage}}}'.encode()
    got = reply(event(body) + DONE if streamed else body)
    assert (got.text, got.usage.prompt_tokens, got.usage.completion_tokens) == ("42", None, 3)


def _stream(delta: str, reason: str) -> bytes:
    return (
        b'data: {"choices":[{"index":0,"delta":%b,"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"%b"}]}\n\ndata: [DONE]\n\n'
        % (delta.encode(), reason.encode())
    )


@pytest.mark.parametrize(
    ("delta", "reason", "note"),
    [
        ('{"content":"4"}', "stop", ""),
        ('{"content":"4"}', "EOS", ""),
        ('{"content":"4"}', "MAX_TOKENS", ""),
        ('{"content":"4"}', "SAFETY", "its finish reason is a filter or a refusal: SAFETY"),
        ('{"content":"4"}', "repetition", "its finish reason is unknown: repetition"),
        ('{"reasoning_content":"4"}', "length", ""),
        ('{"reasoning_content":"4"}', "stop", "it has reasoning but no text, although it ended normally"),
        ('{"reasoning_content":"4","refusal":"no"}', "stop", "refusal, it has no text, and no limit cut it: a refusal"),
    ],
)
def test_how_a_reply_ended_is_noted_where_a_score_has_to_say_it(delta: str, reason: str, note: str) -> None:
    assert ", ".join(reply(_stream(delta, reason)).notes) == note


@pytest.mark.parametrize("reason", ["abort", "NETWORK_ERROR", "timeout", "cancelled"])
def test_a_reply_that_the_server_gave_up_is_asked_again(reason: str) -> None:
    outcome = failure(_stream('{"content":"4"}', reason))
    assert (outcome.kind, outcome.retryable) == ("server", True)


def test_a_stream_that_ends_inside_an_event_says_how() -> None:
    begun = event(delta(content="4")) + b'data: {"cho'
    assert "(reset)" in failure(begun, cut="reset").message
    assert "(cleanly)" in failure(begun).message


def test_gaps_are_the_median_and_nearly_the_largest() -> None:
    parser = ReplyParser(CHAT, started=0.0, started_utc=1e9, max_body_bytes=1 << 20)
    arrived = 0.0
    for gap in range(102):
        arrived += gap
        parser.feed(event(delta(content="x")), arrived)
    parser.feed(event(delta(finish="stop")) + DONE, arrived)
    complete = parser.finish()
    timing = complete.timing
    assert (timing.gap_p50, timing.gap_p99, timing.events) == (51.0, 100.0, 102)
    assert complete.gaps == {1000 * gap: 1 for gap in range(1, 102)}
    assert (timing.first_token, timing.last_token) == (0.0, arrived)


def test_a_text_that_each_event_repeats_is_taken_once() -> None:
    words = ["So", "So the", "So the answer", "So the answer is 42."]
    sent = b"".join(event(delta(content=words[min(n, 3)], reasoning="no")) for n in range(5))
    got = reply(sent + event(delta(finish="stop")) + DONE)
    assert (got.text, got.notes) == (words[-1], (CUMULATIVE,))
    assert got.reasoning == "no" * 5, "the same words again and again are a loop"
    grown = reply(
        event(delta(content="1")) + event(delta(content="12")) + event(delta(content="3", finish="stop")) + DONE
    )
    assert (grown.text, grown.notes) == ("1123", ())
    for name in ("content", "reasoning"):
        twice = reply(
            b"".join(event(delta(**{name: "123"[:n]})) for n in (1, 2, 3)) + event(delta(finish="stop")) + DONE
        )
        assert (twice.text or twice.reasoning) == "112123", "two that grew are chance"
    assert (
        "repeats the preceding text"
        in failure(*[event(delta(content="x" * n)) for n in range(99)], max_bytes=4000).message
    )


@pytest.mark.parametrize(("n", "kind"), [(sse.MAX_BODY_VALUES, "malformed"), (1000, None)])
def test_a_body_of_a_million_values_is_not_decoded(n: int, kind: str | None) -> None:
    body = b'{"choices":[{"index":0,"message":{"content":"42"},"finish_reason":"stop"}],"x":[' + b"[]," * n + b"0]}"
    got = parse(body)
    assert getattr(got, "kind", None) == kind


STARTED, STARTED_UTC = 100.0, 1e9


def drawn(draw: random.Random) -> list[dict[str, Any]]:
    """Events of a reply: reasoning, then text, some events empty, a fingerprint, the last one with a finish reason."""
    events: list[dict[str, Any]] = []
    for field in ("reasoning_content", "content"):
        events += [
            delta(**{field: draw.choice(["a", "word ", "", "∑", "long" * 30])}) for _ in range(draw.randint(0, 6))
        ]
    events.append(delta(content=draw.choice(["", "end"]), finish=draw.choice(["stop", "length"])))
    return [value | {"system_fingerprint": "fp"} for value in events]


def token_of(value: dict[str, Any]) -> str:
    fields = value["choices"][0]["delta"]
    return str(fields.get("reasoning_content") or fields.get("content") or "")


@pytest.mark.parametrize("seed", range(12))
def test_a_reply_under_way_is_counted(seed: int) -> None:
    draw = random.Random(seed)
    values = drawn(draw)
    times = sorted(STARTED + draw.random() * 10 for _ in values)
    stamps = [time for value, time in zip(values, times, strict=True) if token_of(value)]
    n_bytes = sum(len(event(value)) for value in values)
    parser = ReplyParser(CHAT, started=STARTED, started_utc=STARTED_UTC, max_body_bytes=n_bytes + len(DONE))
    assert (parser.n_tokens, parser.last_token_at, parser.done_at, parser.finished) == (0, None, None, False)
    for value, time in zip(values[:-1], times, strict=False):
        parser.feed(event(value), time)
    n = sum(bool(token_of(value)) for value in values[:-1])
    assert (parser.n_tokens, parser.finished, parser.done) == (n, False, False)
    assert parser.last_token_at == (stamps[n - 1] if n else None)
    parser.feed(event(values[-1]), times[-1])
    assert (parser.finished, parser.done, parser.n_bytes) == (True, False, n_bytes)
    parser.feed(DONE[:5], times[-1] + 1)
    parser.feed(DONE[5:], times[-1] + 2)
    assert (parser.done, parser.done_at) == (True, times[-1] + 2)
    got = parser.finish()
    timing, total = got.timing, times[-1] + 2 - STARTED
    assert (timing.events, timing.started, timing.total) == (len(stamps), STARTED_UTC, total)
    ends = (stamps[0] - STARTED, stamps[-1] - STARTED) if stamps else (None, None)
    assert (timing.first_token, timing.last_token, got.fingerprint) == (*ends, "fp")


def test_a_body_may_reach_the_limit_and_not_exceed_it_by_a_byte() -> None:
    whole = event(delta(content="x", finish="stop")) + DONE
    for more in (b"", b"\n\n", b"junk"):
        body = whole + more
        for bound in range(len(body) + 2):
            expected = "reply" if bound >= len(whole) else "runaway"
            for pieces in (
                [body],
                [body[:bound], body[bound:]],
                [body[: bound // 2], body[bound // 2 :]],
                [body[i : i + 1] for i in range(len(body))],
            ):
                got = parse(*pieces, max_bytes=bound)
                assert getattr(got, "kind", "reply") == expected, (bound, len(pieces))


# -- bounds and odd values -----------------------------------------------------------------------------------------


def test_names_are_cut_at_their_longest_length_and_may_have_it() -> None:
    name = "n" * MAX_NAME_CHARS
    fields = ("id", "request_id"), ("model", "server_model"), ("system_fingerprint", "fingerprint")
    for field, attribute in (*fields, ("provider", "provider")):
        value = delta(content="x", finish="stop")
        assert getattr(reply(event(value | {field: name}) + DONE), attribute) == name
        assert getattr(reply(event(value | {field: name + "n"}) + DONE), attribute) == name


def test_a_sample_names_the_model_of_its_text_and_without_one_the_first() -> None:
    role = event({"id": "r", "model": "an alias", "choices": [{"index": 0, "delta": {"role": "assistant"}}]})
    text = delta(content="x", finish="stop") | {"id": "r"}
    assert reply(role + event(text | {"model": "the model"}) + DONE).server_model == "the model"
    assert (
        reply(role + event({name: value for name, value in text.items() if name != "model"}) + DONE).server_model
        == "an alias"
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"content": [{"type": "text", "text": 5}]}, "its text is a number, not a string"),
        ({"content": [{"type": "text", "text": ["4"]}]}, "its text is a list, not a string"),
        ({"content": [{"type": "thinking", "thinking": 5}]}, "its thinking is a number, not a string"),
        ({"content": ["4"]}, "its parts are not a list of objects"),
        ({"content": 6}, "its content is a number, not a string"),
        ({"content": 0}, "its content is a number, not a string"),
        ({"content": True}, "its content is true, not a string"),
        ({"content": [{"type": "thinking", "thinking": ["so"]}]}, "its thoughts are not a list of objects"),
        ({"content": [{"type": "thinking", "thinking": [{"text": 5}]}]}, "its thinking is a number, not a string"),
    ],
)
def test_a_part_that_is_no_text_is_named(fields: dict[str, Any], words: str) -> None:
    assert words in failure(event(delta(finish="stop", **fields)) + DONE).message


def test_fields_that_repeat_the_reasoning_are_not_noted_and_others_are() -> None:
    for name, noted in (("reasoning_details", False), ("thinking_blocks", False), ("answer_blocks", True)):
        fields = {"reasoning_content": "so", name: [{"text": "so"}]}
        notes = reply(event(delta(**fields)) + event(delta(content="x", finish="stop")) + DONE).notes
        assert bool(notes) is noted, name
        # Without a reasoning beside it, any such field may hold the text.
        assert reply(event(delta(**{name: ["so"]})) + event(delta(content="x", finish="stop")) + DONE).notes


def test_an_error_fails_a_reply_that_does_not_end_and_is_noted_otherwise() -> None:
    broke = {"code": 429, "message": "upstream broke"}
    next_to_text = delta(content="4")
    next_to_text["choices"][0]["error"] = broke
    for rest, kind in ((b"", "rate_limited"), (DONE, "rate_limited"), (event(delta(finish="error")), "rate_limited")):
        got = failure(event(next_to_text) + rest)
        assert (got.kind, "upstream broke" in got.message) == (kind, True)
    noted = reply(event(next_to_text) + event(delta(finish="stop")) + DONE)
    assert (noted.text, noted.notes) == ("4", (f"{FAULT}: error in the reply: upstream broke",))
    next_to_text["choices"][0] |= {"delta": {}, "finish_reason": "stop"}
    assert failure(event(next_to_text) + DONE).kind == "rate_limited", "a reply without a text is a message"


def test_what_comes_behind_the_end_is_noted_in_any_pieces() -> None:
    whole = event(delta(content="x", finish="stop")) + DONE
    for more in (b"event: x\n\n", b"x", b"data: {}\n\n"):
        for pieces in (
            [whole + more],
            [whole, more],
            [whole[:-1], whole[-1:] + more],
            [whole.replace(b"\n", b"\r\n") + more],
        ):
            assert reply(*pieces).notes == (LATE_BODY,)
    for blank in (b"", b"\n", b"\r\n\r\n"):
        assert reply(whole + blank).notes == ()
    late = reply(event(delta(content="x", finish="stop")) + b"no field\n\n" + DONE)
    assert late.notes
    assert late.notes != (LATE_BODY,)


def test_an_event_of_several_lines_has_a_bound_and_may_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = b"data: " + json.dumps(delta(content="x", finish="stop")).encode(), b"data: " + b" " * 9
    length = len(first) - 6 + 1 + 9
    for bound, kind in ((length, Reply), (length - 1, RequestFailed)):
        monkeypatch.setattr(sse, "MAX_EVENT_BYTES", bound)
        outcome = parse(first + b"\n" + second + b"\n\n" + DONE)
        assert isinstance(outcome, kind), (bound, outcome)


# -- the W3C's tests of event streams ----------------------------------------------------------------------------------


def piece(text: str, finish: str | None = None) -> str:
    """The JSON of an event that says `text`."""
    reason = "null" if finish is None else f'"{finish}"'
    return f'{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":{reason}}}]}}'


A, B, C = piece("a"), piece("b"), piece("c", finish="stop")
END = f"data: {C}\n\ndata: [DONE]\n\n"
ON_PURPOSE = {
    "an event without its blank line at the end": (
        f"data:{A}\n\ndata:{C}",
        "ac",
        "a browser drops it; a server that closes after its last line has said all of it, if the JSON is whole",
    ),
    "a mark before a later line": (
        f"data:{A}\n\n\ufeffdata:{B}\n\n{END}",
        "malformed",
        "a browser drops the line; here it is a part of an answer",
    ),
    "a name in another case": (
        f"Data:{A}\n\n{END}",
        "malformed",
        "a browser drops it; it may hold a part of the answer",
    ),
    "a line of words": (f"data:{A}\njust some text\n\n{END}", "malformed", "as above"),
    "a blank before a field": (f" data:{A}\n\n{END}", "ac", "blanks before the first line are no line"),
    "a blank before a later field": (f"data:{A}\n data:{B}\n\n{END}", "malformed", "as above: no field of this name"),
    "an event of the name error": (
        f"event: error\ndata: {A}\n\n{END}",
        "server",
        "the protocol says that the request failed",
    ),
}
"""What is sent; the answer, or the kind of failure; why it is not as the standard has it."""


def outcomes(sent: str) -> set[str | None]:
    """The texts, or the kinds of failure, that the bytes come to in pieces of several sizes."""
    data = sent.encode()
    came = [parse(*(data[at : at + size] for at in range(0, len(data), size))) for size in (1, 2, 7, len(data))]
    return {outcome.text if isinstance(outcome, Reply) else outcome.kind for outcome in came}


@pytest.mark.parametrize(("sent", "outcome"), [case[:2] for case in ON_PURPOSE.values()], ids=ON_PURPOSE)
def test_what_is_read_otherwise_on_purpose_stays_so(sent: str, outcome: str) -> None:
    assert outcomes(sent) == {outcome}


def test_an_event_that_comes_in_one_piece_may_have_two_lines() -> None:
    pieces = f"data: {B}\n\n", f"data: {A[:1]}\rdata: {A[1:]}\n\n", END
    assert reply(*(part.encode() for part in pieces)).text == "bac"
