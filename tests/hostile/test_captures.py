"""What servers send, cut at every byte and byte by byte: the same reply, or none. A part never passes for a whole.

`make test-hostile` cuts at every byte; the ordinary suite at one of every hundred.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.client.protocol.reply import Reply
from tests.client.dialects import broken, recordings
from tests.client.test_events import body_of, facts, parse

STEP = 1 if os.environ.get("HARNESS_HOSTILE") else 101


def check(bodies: dict[str, bytes]) -> None:
    n_cuts = n_replies = 0
    for number, (name, body) in enumerate(bodies.items()):
        whole = parse(body)
        assert facts(parse(*(body[i : i + 1] for i in range(len(body))))) == facts(whole), name
        for end in range(number % STEP, len(body), STEP):
            part = parse(body[:end], cut="the connection was reset")
            n_cuts += 1
            if isinstance(part, Reply):
                n_replies += 1
                assert isinstance(whole, Reply), (name, end)
                for field in ("text", "reasoning", "finish_reason"):
                    assert getattr(part, field) == getattr(whole, field), (name, end)
    assert n_cuts > 2000
    assert 0 < n_replies < n_cuts / 2, "a cut after the finish reason is whole, and only that"


def test_a_stream_cut_at_any_byte_or_in_single_bytes_is_the_whole_reply_or_none() -> None:
    check({one.name: one.body for one in [*recordings(), *broken()]})


def test_a_recorded_stream_cut_at_any_byte_or_in_single_bytes_is_the_whole_reply_or_none(shared_data: Path) -> None:
    # But for three answers in one stream: the harness asks for one, and a proxy may mix the three.
    bodies = {one.name: body_of(one) for one in sorted((shared_data / "sse").glob("*.sse")) if "_n3" not in one.name}
    assert len(bodies) > 100
    check(bodies)
