"""What servers send, cut at every byte and byte by byte: the same reply, or none. A part never passes for a whole.

`make test-hostile` cuts at every byte; the ordinary suite at one of every hundred.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import ReplyParser
from tests.client.dialects import broken, recordings
from tests.client.test_events import body_of

STEP = 1 if os.environ.get("HARNESS_HOSTILE") else 101


def outcome(*pieces: bytes, cut: str = "") -> Reply | RequestFailed:
    parser = ReplyParser(started=0.0, started_utc=1e9, max_body_bytes=1 << 26)
    try:
        for piece in pieces:
            parser.feed(piece, 1.0)
        return parser.finish(cut=cut)
    except RequestFailed as failure:
        return failure


def said(one: Reply | RequestFailed) -> tuple[object, ...]:
    if isinstance(one, RequestFailed):
        return (one.kind,)
    return one.text, one.reasoning, one.finish_reason


def check_cuts(bodies: dict[str, bytes]) -> None:
    n_cuts = n_replies = 0
    for number, (name, body) in enumerate(bodies.items()):
        whole = outcome(body)
        for end in range(number % STEP, len(body), STEP):
            part = outcome(body[:end], cut="the connection was reset")
            n_cuts += 1
            if isinstance(part, Reply):
                n_replies += 1
                assert said(part) == said(whole), (name, end)
    assert n_cuts > 2000
    assert 0 < n_replies < n_cuts / 2, "a cut after the finish reason is whole, and only that"


def check_single_bytes(bodies: dict[str, bytes]) -> None:
    for name, body in bodies.items():
        assert said(outcome(*(body[i : i + 1] for i in range(len(body))))) == said(outcome(body)), name


def own() -> dict[str, bytes]:
    return {one.name: one.body for one in [*recordings(), *broken()]}


def recorded(shared_data: Path) -> dict[str, bytes]:
    """The recordings, but for three answers in one stream: the harness asks for one, and a proxy may mix the three."""
    return {one.name: body_of(one) for one in sorted((shared_data / "sse").glob("*.sse")) if "_n3" not in one.name}


def test_a_stream_cut_at_any_byte_is_the_whole_reply_or_none() -> None:
    check_cuts(own())


def test_a_stream_in_single_bytes_is_the_whole_reply() -> None:
    check_single_bytes(own())


def test_a_recorded_stream_cut_at_any_byte_is_the_whole_reply_or_none(shared_data: Path) -> None:
    assert len(recorded(shared_data)) > 100
    check_cuts(recorded(shared_data))


def test_a_recorded_stream_in_single_bytes_is_the_whole_reply(shared_data: Path) -> None:
    check_single_bytes(recorded(shared_data))
