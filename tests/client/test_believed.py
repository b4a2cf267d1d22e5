"""What is believed of a reply, held to replies made by the hundred: right ones, and each bent in one way.

The rule is the table in docs/reliability.md.

For: harness.client.protocol, harness.client.transport.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.apis.chat import CHAT
from harness.client.interface import Deadlines
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.client.transport import Connection, Request, Server
from harness.core.reply_notes import (
    DOUBTFUL,
    FAULT,
    IDS_VARY,
    LATE_TEXT,
    MORE_CHOICES,
    NO_PLACE,
    RENAMED,
    SECOND_FINISH,
    UNREAD_TEXT,
)
from harness.testing import END, HEAD, chunk
from tests.client.dialects import DIALECTS, PIECES, THOUGHTS
from tests.client.test_events import parse

Event = dict[str, Any]
Lines = list[Event | bytes]
"""A stream: events, and raw lines."""

FALSE = "666"
"""Said by no right reply."""


class Bent(NamedTuple):
    """lines: the stream. note: one that the reply must bear; None: it must fail; empty: it is as right as before."""

    lines: Lines
    note: str | None = None


def right(rng: random.Random) -> tuple[Lines, str, str]:
    """(events of a sound reply, its text, its reasoning), as one of the servers writes them."""
    dialect = DIALECTS[rng.choice(sorted(DIALECTS.keys() - {"tgi"}))]  # which states no ids
    pieces = tuple(rng.choices(PIECES, k=rng.randint(6, 40)))
    thoughts = tuple(rng.choices(THOUGHTS, k=rng.choice([0, 0, 8])))
    lines: Lines = [
        event if event.startswith(b"data: [DONE]") else json.loads(event[event.index(b"{") :])
        for event in dialect.stream(pieces, thoughts, finish=rng.choice(["stop", "length"]))
        if event
    ]
    return lines, "".join(pieces), "".join(thoughts)


def wire(lines: Lines) -> list[bytes]:
    return [
        line if isinstance(line, bytes) else b"data: " + json.dumps(line, ensure_ascii=False).encode() + b"\n\n"
        for line in lines
    ]


def says(line: Event | bytes) -> bool:
    """The event brings a text and not the finish."""
    return isinstance(line, dict) and any(
        (choice["delta"].get("content") or "") + (choice["delta"].get("reasoning_content") or "")
        and not choice.get("finish_reason")
        for choice in line["choices"]
    )


def inside(lines: Lines, rng: random.Random) -> int:
    """The place of an event that brings a text, with two such events before it and one after it."""
    return rng.choice([n for n, line in enumerate(lines) if says(line)][2:-1])


def finish(lines: Lines) -> int:
    return next(
        n
        for n, line in enumerate(lines)
        if isinstance(line, dict) and any(choice.get("finish_reason") for choice in line["choices"])
    )


Bend = Callable[[Lines, random.Random], Bent]
BENDS: dict[str, Bend] = {}


def changed(name: str, change: Callable[[Event, random.Random], object], note: str | None = None) -> None:
    """A bend of one event that brings a text."""

    def function(lines: Lines, rng: random.Random) -> Bent:
        place = inside(lines, rng)
        event = copy.deepcopy(lines[place])
        change(event, rng)
        return Bent([*lines[:place], event, *lines[place + 1 :]], note)

    BENDS[name] = function


def added(name: str, line: Callable[[Event], Event | bytes], note: str | None = None) -> None:
    """A bend that puts a line before an event that brings a text."""

    def function(lines: Lines, rng: random.Random) -> Bent:
        place = inside(lines, rng)
        return Bent([*lines[:place], line(copy.deepcopy(lines[place])), *lines[place:]], note)

    BENDS[name] = function


def ended(name: str, end: Callable[[Event], list[Event]], note: str | None = None) -> None:
    """A bend that puts other events in the place of the finish."""

    def function(lines: Lines, _: random.Random) -> Bent:
        place = finish(lines)
        return Bent([*lines[:place], *end(copy.deepcopy(lines[place])), *lines[place + 1 :]], note)

    BENDS[name] = function


def with_choice(event: Event, **fields: object) -> Event:
    return event | {"choices": [event["choices"][0] | fields]}


def set_delta(value: object) -> Callable[[Event, random.Random], object]:
    return lambda event, _: event["choices"][0].update(delta=value)


def set_field(field: str, value: object) -> Callable[[Event, random.Random], object]:
    def change(event: Event, _: random.Random) -> None:
        event["choices"][0]["delta"] = {"content": "", field: value} if field != "content" else {field: value}

    return change


def set_choice(**fields: object) -> Callable[[Event, random.Random], object]:
    return lambda event, _: event["choices"][0].update(fields)


def with_text(event: Event, **fields: object) -> Event:
    return event | fields | {"choices": [{"index": 0, "delta": {"content": FALSE}, "finish_reason": None}]}


for kind, value in {"a number": 666, "true": True, "a list of texts": [FALSE], "an object": {"text": FALSE}}.items():
    changed(f"content is {kind}", set_field("content", value))
    for name in ("reasoning", "reasoning_content"):
        added(
            f"{name} is {kind}",
            lambda event, bad={name: value}: with_choice(event, delta=bad),
            f"{UNREAD_TEXT}: {name}",
        )
    changed(f"delta is {kind}", set_delta(value if kind != "an object" else [{"content": FALSE}]))
for kind, value in {"a string": "0", "a fraction": 0.0, "false": False, "below zero": -1, "a list": [0]}.items():
    changed(f"index is {kind}", set_choice(index=value), "")
for kind, value in {"a number": 1, "a list": ["stop"], "an object": {"a": "stop"}, "true": True}.items():
    changed(f"finish_reason is {kind}", set_choice(finish_reason=value), "")
    ended(f"the finish is {kind}", lambda last, value=value: [with_choice(last, finish_reason=value)])
for kind, value in {"an object": {"0": {"delta": {"content": FALSE}}}, "a number": 3, "a string": FALSE}.items():
    changed(f"choices are {kind}", lambda event, _, bad=value: event.update(choices=bad))
for kind, bad in {"a number": 1, "a string": FALSE, "a list": [FALSE], "true": True}.items():
    changed(f"a choice is {kind}", lambda event, _, bad=bad: event.update(choices=[bad]))
for kind, bad in {"an empty list": [], "null": None, "an empty object": {}}.items():
    added(f"a choice is {kind}", lambda event, bad=bad: event | {"choices": [bad]}, "" if bad == {} else NO_PLACE)
changed("a text next to an error", set_choice(error={"message": "upstream broke"}), FAULT)
changed("an event that is an error", lambda event, _: event.update(error={"message": "upstream broke"}))
changed("another id", lambda event, _: event.update(id="of another reply"), IDS_VARY)
changed("another model", lambda event, _: event.update(model="another"), RENAMED)
changed("an id of five thousand characters", lambda event, _: event.update(id="x" * 5000), IDS_VARY)
changed("two choices of index 0", lambda event, _: event["choices"].append(copy.deepcopy(event["choices"][0])))
changed("a message beside the delta", set_choice(message={"content": FALSE}), f"{UNREAD_TEXT}: message")
changed("another text beside the delta", set_choice(text=FALSE))
changed(
    "the same text beside the delta",
    lambda event, _: event["choices"][0].update(text=event["choices"][0]["delta"].get("content")),
    note="",
)
changed("an unknown field that says nothing", lambda event, _: event["choices"][0]["delta"].update(x=None, y=1), "")
changed("an unknown field of the choice", set_choice(stop_reason=None, hidden={"a": FALSE}), "")
added(
    "a text in a field of another name",
    lambda event: event | {"choices": [{"index": 0, "delta": {"thinking": "hm"}, "finish_reason": None}]},
    f"{UNREAD_TEXT}: thinking",
)
added(
    "a reasoning in its details only",
    lambda event: (
        event | {"choices": [{"index": 0, "delta": {"reasoning_details": [{"text": "hm"}]}, "finish_reason": None}]}
    ),
    f"{UNREAD_TEXT}: reasoning_details",
)
added(
    "a choice of another index",
    lambda event: with_text(event) | {"choices": [{"index": 1, "delta": {"content": FALSE}, "finish_reason": None}]},
    MORE_CHOICES,
)
added(
    "a whole message after parts of one",
    lambda event: event | {"choices": [{"index": 0, "message": {"content": FALSE}, "finish_reason": None}]},
)
for kind, raw in {
    "a byte order mark before an event": b"\xef\xbb\xbfdata: {}\n\n",
    "a blank before an event": b" data: {}\n\n",
    "a field in capitals": b"Data: {}\n\n",
    "a page of HTML": b"<html><body>busy</body></html>\n",
    "NUL bytes": b"\0\0\0\n\n",
    "half an event": b'data: {"choices": [\n\n',
    "a number for an event": b"data: 7\n\n",
    "an event of many lists": b"data: %b\n\n" % (b"[" * 9999),
    "an event that is no UTF-8": b'data: {"choices": "\xff"}\n\n',
    "a word for an event": b'data: "The answer is 666"\n\n',
    "[DONE] before the end": b"data: [DONE]\n\n",
    "an error event": b'event: error\ndata: "broke"\n\n',
    "an error line": b'error: {"message": "broke"}\n\n',
}.items():
    added(kind, lambda _, raw=raw: raw)
for kind, raw in {
    "a comment": b": waiting\n\n",
    "fields that say nothing": b"id: 7\nretry: 3\nevent: ping\n\n",
    "fields without a colon": b"id\nretry\nevent\ndata\n\n",
    "an empty event": b"data:\n\n",
    "blank lines": b"\n\n\n",
    "an event without choices": b'data: {"type": "ping"}\n\n',
}.items():
    added(kind, lambda _, raw=raw: raw, note="")


def with_ids(lines: Lines, n: int) -> Lines:
    """The events with `n` ids that take turns."""
    return [line | {"id": f"id-{at % n}"} if isinstance(line, dict) else line for at, line in enumerate(lines)]


ERROR = {"code": 502, "message": "upstream"}
ended("an error instead of the finish", lambda last: [with_choice(last, error=ERROR, finish_reason=None)])
ended("an error as the finish", lambda last: [with_choice(last, error=ERROR, finish_reason="error")])
ended("an error next to the finish", lambda last: [with_choice(last, error=ERROR)], FAULT)
ended("the finish twice", lambda last: [last, with_choice(last, delta={})], SECOND_FINISH)
ended(
    "another finish after the first",
    lambda last: [last, with_choice(last, delta={}, finish_reason="tool_calls")],
    SECOND_FINISH,
)
ended("the finish under another id", lambda last: [last | {"id": "of another reply"}], IDS_VARY)
ended("an empty text after the finish", lambda last: [last, with_choice(with_text(last), delta={"content": ""})], "")
ended("texts of another reply after the finish", lambda last: [last, *[with_text(last, id="another")] * 2])
BENDS |= {
    "no finish": lambda lines, _: Bent(lines[: finish(lines)]),
    "an id of its own for each event": lambda lines, _: Bent(with_ids(lines, len(lines)), IDS_VARY),
    "two ids that take turns": lambda lines, _: Bent(with_ids(lines, 2)),
    "another model beside the texts": lambda lines, _: Bent(
        [
            {"id": lines[0]["id"], "model": "an alias", "choices": [{"index": 0, "delta": {"role": "assistant"}}]},
            *lines,
        ],
        RENAMED,
    ),
}


Outcome = Reply | RequestFailed


def played(parser: ReplyParser, reads: Iterable[bytes]) -> Outcome:
    """The outcome of a response that comes in these reads; then the server closes the connection."""

    async def main() -> Outcome:
        connection = Connection(Server(Endpoint.parse("http://127.0.0.1:1")))
        connection.connection_made(MagicMock())
        request = connection.request = Request(connection, parser, Deadlines())
        for data in reads:
            if not request.reply.done():
                connection.data_received(data)
        connection.connection_lost(None)
        try:
            return await request.reply
        except RequestFailed as failure:
            return failure

    return asyncio.run(main())


def in_batches(pieces: list[bytes]) -> Outcome:
    """As the transport reads a chunked body: a chunk an event, all in one batch."""
    parser = ReplyParser(CHAT, started=0.0, started_utc=0.0, max_body_bytes=1 << 20)
    return played(parser, [HEAD, *map(chunk, filter(None, pieces)), END])


def outcomes(lines: Lines) -> list[Outcome]:
    pieces = wire(lines)
    stream = b"".join(pieces)
    sevens = [stream[at : at + 7] for at in range(0, len(stream), 7)]
    return [parse(stream), parse(*sevens), in_batches(pieces)]


@pytest.mark.parametrize("seed", range(40))
def test_a_right_reply_is_believed_as_it_was_said(seed: int) -> None:
    lines, text, reasoning = right(random.Random(seed))
    for got in outcomes(lines):
        assert isinstance(got, Reply), got
        assert ((got.text or ""), (got.reasoning or "")) == (text, reasoning)
        assert [note for note in got.notes if note.partition(":")[0] in DOUBTFUL] == []


@pytest.mark.parametrize("name", BENDS)
def test_a_bent_reply_fails_or_says_how_it_is_bent(name: str) -> None:
    for seed in range(8):
        rng = random.Random(f"{name} {seed}")
        lines, text, reasoning = right(rng)
        bent = BENDS[name](lines, rng)
        for got in outcomes(bent.lines):
            if bent.note is None:
                assert isinstance(got, RequestFailed), (name, got)
                continue
            assert isinstance(got, Reply), (name, got)
            assert ((got.text or ""), (got.reasoning or "")) == (text, reasoning), name
            assert not bent.note or any(note.startswith(bent.note) for note in got.notes), (name, got.notes)


def test_a_text_after_the_finish_is_noted() -> None:
    lines, text, _ = right(random.Random(1))
    place = finish(lines)
    for got in outcomes([*lines[: place + 1], with_text(lines[place]), *lines[place + 1 :]]):
        assert isinstance(got, Reply)
        assert got.text == text + FALSE
        assert LATE_TEXT in got.notes
