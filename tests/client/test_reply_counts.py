"""What a parser says of a reply under way and of its end: counts, times, bounds, names and notes, by every way in.

For: harness.client.protocol.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from harness.client.protocol import sse
from harness.client.protocol.events import MAX_NAME_CHARS
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.client.protocol.usage import MAX_STATED_TOKENS
from harness.client.protocol.written import WrittenTokens
from harness.core.reply_notes import LATE_BODY
from tests.client.test_events import DONE, MAX_BYTES, delta, event, failure, parse, reply

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


@pytest.mark.parametrize("seed", range(12))
def test_a_reply_under_way_is_counted(seed: int) -> None:
    draw = random.Random(seed)
    values = drawn(draw)
    times = sorted(STARTED + draw.random() * 10 for _ in values)
    stamps = [time for value, time in zip(values, times, strict=True) if token_of(value)]
    n_bytes = sum(len(event(value)) for value in values)
    parser = parser_of(written=WrittenTokens(), max_body_bytes=n_bytes + len(DONE))
    assert (parser.n_tokens, parser.last_token_at, parser.done_at, parser.finished) == (0, None, None, False)
    for value, time in zip(values[:-1], times, strict=False):
        parser.feed(event(value), time)
    n = sum(bool(token_of(value)) for value in values[:-1])
    assert (parser.n_tokens, parser.finished, parser.done) == (n, False, False)
    assert parser.last_token_at == (stamps[n - 1] if n else None)
    so_far = parser.so_far()
    assert so_far is not None
    assert (so_far.reasoning or "") + (so_far.text or "") == "".join(map(token_of, values[:-1]))
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


# -- bounds and odd values -----------------------------------------------------------------------------------------


def test_names_have_a_longest_length_and_may_have_it() -> None:
    name = "n" * MAX_NAME_CHARS
    fields = ("id", "request_id"), ("model", "server_model"), ("system_fingerprint", "fingerprint")
    for field, attribute in (*fields, ("provider", "provider")):
        value = delta(content="x", finish="stop")
        assert getattr(reply(event(value | {field: name}) + DONE), attribute) == name
        assert "has 1025 characters, more than 1024" in failure(event(value | {field: name + "n"}) + DONE).message


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


def test_fields_that_repeat_the_reasoning_are_not_noted_and_others_are() -> None:
    for name, noted in (("reasoning_details", False), ("thinking_blocks", False), ("answer_blocks", True)):
        fields = {"reasoning_content": "so", name: [{"text": "so"}]}
        notes = reply(event(delta(**fields)) + event(delta(content="x", finish="stop")) + DONE).notes
        assert bool(notes) is noted, name
        # Without a reasoning beside it, any such field may hold the text.
        assert reply(event(delta(**{name: ["so"]})) + event(delta(content="x", finish="stop")) + DONE).notes


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
