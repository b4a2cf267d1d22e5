"""A stream that ends early is one kind of failure with one count of tokens, whichever way its bytes are read.

The transport hands over whole events where it sees them, and pieces of the body elsewhere; a plain reading of the lines
says what should come of both.

For: harness.client.transport, harness.client.protocol.sse.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.client.protocol.reply import RequestFailed
from harness.client.protocol.sse import ReplyParser
from tests.budget import examples
from tests.client.played import HEAD, LAST_CHUNK, played


class Outcome(NamedTuple):
    """What came of a stream: the failure's kind, the token events that its message counts, and those that were read."""

    kind: str
    stated_tokens: str | None
    tokens: int


def token(text: str, field: str = "content") -> bytes:
    """A plain event: a token of a reply."""
    choice = {"index": 0, "delta": {field: text}, "finish_reason": None}
    value = {"id": "c-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def expected(body: bytes) -> Outcome:
    """A plain reading of a stream that ended: each whole `data` line is an event, each event a token."""
    *lines, rest = body.split(b"\n")
    tokens = sum(line.startswith(b"data: ") for line in lines)
    # A field without a value is no event, whole or not.
    inside = rest not in (b"", b"data", b"data:", b"data: ")
    if rest.endswith(b"]}"):
        tokens, inside = tokens + 1, False
    return Outcome("cut", None if inside else str(tokens), tokens)


def outcome(parser: ReplyParser, failure: RequestFailed) -> Outcome:
    stated = re.search(r"(\d+) token events", failure.message)
    return Outcome(failure.kind, stated and stated[1], parser.n_tokens)


def new_parser() -> ReplyParser:
    return ReplyParser(started=0.0, started_utc=1e9, max_body_bytes=10**7)


def read_plainly(body: bytes, cuts: list[int], cut: str = "") -> Outcome:
    """As the transports of the libraries read it: pieces of the body."""
    parser = new_parser()
    try:
        for start, end in pairwise([0, *cuts, len(body)]):
            parser.feed(body[start:end], 1.0)
        parser.finish(cut=cut)
    except RequestFailed as failure:
        return outcome(parser, failure)
    raise AssertionError("a stream without a finish reason is no reply")


def read_by_connection(raw: bytes, cuts: list[int]) -> Outcome:
    """As a connection reads it: reads that end at `cuts`."""
    parser = new_parser()
    failure = played(parser, [raw[start:end] for start, end in pairwise([0, *cuts, len(raw)]) if end > start])
    assert isinstance(failure, RequestFailed), "a stream without a finish reason is no reply"
    return outcome(parser, failure)


def chunked(body: bytes, borders: list[int]) -> bytes:
    """`body` as HTTP chunks that end at `borders`, without the last chunk."""
    parts = [body[start:end] for start, end in pairwise([0, *borders, len(body)]) if end > start]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_a_stream_cut_anywhere_is_read_alike_in_any_chunks_and_reads(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.sampled_from([" so", "4", " ∑", '"', "\n", "🌱"]), min_size=1, max_size=40), "texts")
    n_thoughts = data.draw(st.integers(0, len(texts)), "thoughts")
    events = [token(text, "reasoning" if i < n_thoughts else "content") for i, text in enumerate(texts)]
    whole = b"".join(events)
    # The end: behind an event, as most streams end that a server gives up, or at any byte after the first event.
    ends = st.integers(1, len(events)).map(lambda n: len(b"".join(events[:n])))
    body = whole[: data.draw(ends | st.integers(len(events[0]), len(whole)), "end")]
    anywhere = st.lists(st.integers(1, len(body)), max_size=12).map(sorted)
    each_event = [len(b"".join(events[:n])) for n in range(1, len(events)) if len(b"".join(events[:n])) < len(body)]
    raw = HEAD + chunked(body, data.draw(st.just(each_event) | anywhere, "chunks"))
    clean = data.draw(st.booleans(), "clean")
    raw += LAST_CHUNK if clean else b""
    reads = data.draw(st.lists(st.integers(1, len(raw)), max_size=12).map(sorted), "reads")
    verdict = expected(body)
    assert read_plainly(body, data.draw(anywhere, "pieces"), "" if clean else "reset") == verdict
    assert read_by_connection(raw, reads) == verdict
