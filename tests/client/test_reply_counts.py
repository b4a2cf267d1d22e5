"""What a parser says of a reply under way and of its end: counts, times, bounds, names and notes, by every way in.

For: harness.client.protocol.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pytest

from harness.client.protocol import sse
from harness.client.protocol.event_fields import MAX_NAME_CHARS
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import EVENT_FRAME_BYTES, ReplyParser
from harness.client.protocol.usage import MAX_STATED_TOKENS
from harness.client.protocol.written import LONG_REPLY_BYTES, MAX_REPLIES_BYTES, Memory, Share, WrittenTokens
from harness.core.reply_notes import LATE_BODY
from tests.client.test_events import DONE, MAX_BYTES, delta, event, facts, failure, parse, reply

STARTED, STARTED_UTC = 100.0, 1e9


def parser_of(**options: Any) -> ReplyParser:
    return ReplyParser(**({"started": STARTED, "started_utc": STARTED_UTC, "max_body_bytes": MAX_BYTES} | options))


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


def feed_lines(parser: ReplyParser, values: list[dict[str, Any]], times: list[float]) -> None:
    for value, time in zip(values, times, strict=True):
        parser.feed(event(value), time)


def feed_events(parser: ReplyParser, values: list[dict[str, Any]], times: list[float]) -> None:
    parser.feed_events([json.dumps(value).encode() for value in values], times)


@pytest.mark.parametrize("seed", range(60))
def test_a_reply_under_way_is_counted_alike_by_every_way_in(seed: int) -> None:
    draw = random.Random(seed)
    values = drawn(draw)
    times = sorted(STARTED + draw.random() * 10 for _ in values)
    n_bytes = sum(len(event(value)) for value in values)
    stamps = [time for value, time in zip(values, times, strict=True) if token_of(value)]
    outcomes = []
    for way in (feed_lines, feed_events):
        parser = parser_of(written=WrittenTokens(), max_body_bytes=n_bytes + len(DONE))
        assert (parser.n_tokens, parser.last_token_at, parser.done_at, parser.finished) == (0, None, None, False)
        assert parser.at_event_border
        way(parser, values[:-1], times[:-1])
        n = sum(bool(token_of(value)) for value in values[:-1])
        assert (parser.n_tokens, parser.finished, parser.done) == (n, False, False)
        assert parser.last_token_at == (stamps[n - 1] if n else None)
        so_far = parser.so_far()
        assert so_far is not None
        assert (so_far.reasoning or "") + (so_far.text or "") == "".join(map(token_of, values[:-1]))
        way(parser, values[-1:], times[-1:])
        assert (parser.finished, parser.done, parser.n_bytes) == (True, False, n_bytes)
        parser.feed(DONE[:5], times[-1] + 1)
        assert not parser.at_event_border
        parser.feed(DONE[5:], times[-1] + 2)
        assert (parser.done, parser.done_at) == (True, times[-1] + 2)
        got = parser.finish()
        assert (got.timing.events, got.timing.started, got.timing.total) == (
            len(stamps),
            STARTED_UTC,
            times[-1] + 2 - STARTED,
        )
        assert got.timing.first_token == (stamps[0] - STARTED if stamps else None)
        assert got.timing.last_token == (stamps[-1] - STARTED if stamps else None)
        assert got.fingerprint == "fp"
        outcomes.append(facts(got))
    assert outcomes[0] == outcomes[1]


def outcome_of(parser: ReplyParser, pieces: list[bytes]) -> str:
    """The kind of the failure; "reply" without one."""
    try:
        for piece in pieces:
            parser.feed(piece, STARTED + 1)
        parser.finish()
    except RequestFailed as failed:
        return failed.kind
    return "reply"


def test_a_body_of_the_bound_is_whole_and_one_byte_more_is_a_runaway_however_it_is_split() -> None:
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
                assert outcome_of(parser_of(max_body_bytes=bound), pieces) == expected, (bound, len(pieces))


def test_whole_events_count_their_frames_against_the_bound() -> None:
    values = [delta(content="a"), delta(content="b", finish="stop")]
    datas = [json.dumps(value).encode() for value in values]
    n_bytes = sum(map(len, datas)) + 2 * EVENT_FRAME_BYTES
    for bound in (n_bytes - 1, n_bytes, n_bytes + 1):
        parser = parser_of(max_body_bytes=bound)
        if bound < n_bytes:
            with pytest.raises(RequestFailed, match="bytes"):
                parser.feed_events(datas, [STARTED + 1] * 2)
            assert parser.n_tokens == 1  # the first one fits
        else:
            parser.feed_events(datas, [STARTED + 1] * 2)
            assert (parser.n_tokens, parser.n_bytes, parser.finished) == (2, n_bytes, True)


def test_tokens_before_the_first_id_do_not_belong_to_it() -> None:
    values = [delta(content=text) | {"id": name} for text, name in (("a", None), ("b", None), ("c", "r1"), ("d", "r2"))]
    got = reply(b"".join(map(event, values)) + event(delta(finish="stop") | {"id": "r3"}) + DONE)
    assert got.text == "abcd"
    assert "another reply" in failure(
        b"".join(map(event, [delta(content="a"), delta(content="b"), delta(content="c") | {"id": "r2"}]))
    ).message.replace("a second reply", "another reply")


# -- memory --------------------------------------------------------------------------------------------------------


def test_a_share_counts_what_its_reply_takes_and_gives_it_back() -> None:
    memory = Memory()
    assert (memory.limit, memory.held_bytes, memory.unparsed_bytes) == (MAX_REPLIES_BYTES, 0, 0)
    assert Memory(7).limit == 7
    shares = [Share(memory), Share(memory)]
    for first, second in ((5, 1), (7, 1), (3, 9), (0, 2)):
        shares[0].count(first)
        shares[1].count(second)
        assert memory.held_bytes == first + second
    del shares[0]
    assert memory.held_bytes == 2


def test_single_tokens_many_tokens_and_ids_are_counted() -> None:
    steps = []
    for field in ("content", "reasoning_content"):
        parser = parser_of()
        held = [parser.held_bytes]
        for _ in range(5):
            parser.feed(event(delta(**{field: "a"})), STARTED + 1)
            held.append(parser.held_bytes)
        steps += [later - earlier for earlier, later in pairwise(held)]
    assert len(set(steps)) == 1
    assert steps[0] > 8 + 1  # a time and a character
    written = WrittenTokens()
    written.add_prompt([1] * 500)
    for _ in range(100):
        written.add_event(1, [2])
    assert written.held_bytes >= 4 * 600


@pytest.mark.parametrize("unparsed", [0, 1_000])
def test_only_a_long_reply_fails_for_want_of_memory(unparsed: int) -> None:
    long = LONG_REPLY_BYTES + 1
    for n_bytes, limit, goes_on in (
        (LONG_REPLY_BYTES, 0, True),
        (long, long + unparsed, True),
        (long, long + unparsed - 1, False),
        (long, 0, False),
    ):
        memory = Memory(limit)
        memory.unparsed_bytes = unparsed
        assert Share(memory).count(n_bytes) is goes_on, (n_bytes, limit)


@pytest.mark.parametrize("way", ["lines", "events"])
def test_a_long_reply_that_takes_too_much_says_how_much(way: str) -> None:
    parser = parser_of(memory=Memory(LONG_REPLY_BYTES))
    text = "x" * (1 << 20)

    def feed() -> None:
        if way == "lines":
            parser.feed(event(delta(content=text)), STARTED + 1)
        else:
            parser.feed_events([json.dumps(delta(content=text)).encode()], [STARTED + 1])

    for _ in range(3):
        feed()
    with pytest.raises(RequestFailed, match="the reply takes 4 MB, and"):
        feed()


# -- bounds and odd values -----------------------------------------------------------------------------------------


def test_names_have_a_longest_length_and_may_have_it() -> None:
    name = "n" * MAX_NAME_CHARS
    for field, attribute in (("id", "request_id"), ("model", "server_model"), ("system_fingerprint", "fingerprint")):
        value = delta(content="x", finish="stop")
        assert getattr(reply(event(value | {field: name}) + DONE), attribute) == name
        assert "has 1025 characters, more than 1024" in failure(event(value | {field: name + "n"}) + DONE).message


@pytest.mark.parametrize("odd", [5, True, [], {}, ["r"]])
def test_a_name_that_is_no_string_is_none(odd: Any) -> None:
    value = delta(content="x", finish="stop") | {"id": odd, "system_fingerprint": odd}
    got = reply(event(value) + DONE)
    assert (got.request_id, got.fingerprint) == (None, None)


def test_the_largest_count_is_a_count_and_a_larger_one_is_unknown() -> None:
    for n, stated in ((MAX_STATED_TOKENS, MAX_STATED_TOKENS), (MAX_STATED_TOKENS + 1, None)):
        usage = {"usage": {"completion_tokens": n, "prompt_tokens": 1}}
        for odd in ({}, {"id": 5}):  # an id that is no string makes an event of an odd form
            value = delta(content="x", finish="stop") | usage | odd
            assert reply(event(value) + DONE).usage.completion_tokens == stated


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"content": [{"type": "text", "text": 5}]}, "a part of its content is no string but a number"),
        ({"content": [{"type": "text", "text": ["4"]}]}, "a part of its content is no string but a list"),
        ({"content": [{"type": "thinking", "thinking": 5}]}, "a part of its content is no string but a number"),
        ({"content": ["4"]}, "a part of its content is no object but a string"),
        ({"content": [{"type": "thinking", "thinking": ["so"]}]}, "a part of its reasoning is no text"),
        ({"content": [{"type": "thinking", "thinking": [{"text": 5}]}]}, "a part of its reasoning is no text"),
    ],
)
def test_a_part_that_is_no_text_is_named(fields: dict[str, Any], words: str) -> None:
    assert words in failure(event(delta(finish="stop", **fields)) + DONE).message


def test_an_event_without_text_is_no_token() -> None:
    for content in ([], "", None, [{"type": "text", "text": ""}]):
        assert reply(event(delta(content=content)) + event(delta(content="x", finish="stop")) + DONE).timing.events == 1


def test_fields_that_repeat_the_reasoning_are_not_noted_and_others_are() -> None:
    for name, noted in (("reasoning_details", False), ("thinking_blocks", False), ("answer_blocks", True)):
        fields = {"reasoning_content": "so", name: [{"text": "so"}]}
        notes = reply(event(delta(**fields)) + event(delta(content="x", finish="stop")) + DONE).notes
        assert bool(notes) is noted, name
        # Without a reasoning beside it, any such field may hold the text.
        assert reply(event(delta(**{name: ["so"]})) + event(delta(content="x", finish="stop")) + DONE).notes


def test_an_event_that_is_no_json_is_quoted() -> None:
    got = failure(event(delta(content="x")) + event(b'{"choices": [}'))
    assert got.kind == "malformed"
    assert "an event of the stream is not JSON" in got.message
    assert '{"choices": [}' in got.message.replace('\\"', '"')


def test_a_stream_whose_first_event_is_odd_is_a_stream() -> None:
    odd = {"usage": {"completion_tokens": "many"}}
    for first in (event(delta(content="4") | odd), event(delta(content="4"))):
        assert failure(first).message.startswith("the reply ended without a finish reason")
        parser = parser_of()
        if first == event(delta(content="4")):
            parser.feed_events([json.dumps(delta(content="4")).encode()], [STARTED + 1])
        else:
            parser.feed(first, STARTED + 1)
        with pytest.raises(RequestFailed, match="the reply ended without a finish reason"):
            parser.finish()


def test_an_empty_reply_says_why() -> None:
    assert failure(cut="reset").message == "the reply is empty (reset)"
    assert failure().message == "the reply is empty"


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


@pytest.mark.parametrize("sizes", [(700, 700), (100, 3_000), (1,) * 40])
def test_what_is_no_stream_is_quoted_alike_however_it_is_split(sizes: tuple[int, ...]) -> None:
    page = b": " + b"comment " * 200 + b"\n\n"
    pieces, at = [], 0
    for size in sizes:
        pieces.append(page[at : at + size])
        at += size
    assert failure(*pieces, page[at:]).message == failure(page).message
