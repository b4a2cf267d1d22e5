"""Hostile replies by the hundred, over each transport: a typed failure, or the text that was said; and bounded memory.

`make test-hostile` plays `MODES` of them over every transport; the ordinary suite every fifteenth.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections import Counter
from collections.abc import Callable

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.apis.api import API
from harness.client.apis.chat import CHAT
from harness.client.apis.table import api_of
from harness.client.interface import Deadlines, Post, Transport
from harness.client.openai_sdk import OpenaiTransport
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.transport import Transport as HttpTransport
from harness.core.reply_notes import UNREAD_TEXT
from harness.testing import FakeServer, Request, Step
from tests.client.test_believed import BENDS
from tests.hostile.generated import ENDS, FRAMES, HEADS, PARTS, Mode, mode, mode_of_parts

MODES = 300
STEP = 1 if os.environ.get("HARNESS_HOSTILE") else 15
MAX_GROWTH_KB = 200_000
DEADLINES = Deadlines(first_token=20.0, idle=5.0)


def outcome(make: Callable[[], Transport], hostile: Mode, api: API = CHAT) -> Reply | RequestFailed:
    """What a request to this server comes to."""

    def answer(_request: Request) -> list[Step]:
        return list(hostile.answer())

    async def main(url: str) -> Reply | RequestFailed:
        transport = make()
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}).encode()
        try:
            return await transport.complete(Post(Endpoint.parse(url), api, body, DEADLINES, 1 << 20))
        except RequestFailed as failure:
            return failure
        finally:
            await transport.close()

    with FakeServer(answer) as server:
        return asyncio.run(main(server.base_url))


def wrong(hostile: Mode, got: Reply | RequestFailed) -> str:
    """What the client believed that it may not, or refused that is sound; empty: nothing."""
    if isinstance(got, RequestFailed):
        return f"refused: {got}" if hostile.sound and not hostile.refused else ""
    if hostile.refused:
        return f"believed: {got.text!r}"
    texts = (got.text or "", got.reasoning or "")
    return "" if texts == hostile.said else f"said {hostile.said}, believed {texts}"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("make", [HttpTransport, OpenaiTransport])
def test_a_hostile_reply_is_a_failure_or_what_was_said(make: Callable[[], Transport]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    believed = Counter[bool]()
    for number in range(0, MODES, STEP):
        hostile = mode(number)
        got = outcome(make, hostile)
        assert wrong(hostile, got) == "", hostile.name
        believed[isinstance(got, Reply)] += 1
    assert believed[True], "some are as sound as they look"
    assert believed[False]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MAX_GROWTH_KB


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("api", PARTS)
def test_a_hostile_reply_of_parts_is_a_failure_or_what_was_said(api: str) -> None:
    believed = Counter[bool]()
    for number in range(0, MODES, max(1, STEP // 2)):
        hostile = mode_of_parts(number, api)
        got = outcome(HttpTransport, hostile, api_of(api))
        lost = isinstance(got, Reply) and any(note.startswith(UNREAD_TEXT) for note in got.notes)
        assert lost or wrong(hostile, got) == "", hostile.name
        believed[isinstance(got, Reply)] += 1
    assert believed[True]
    assert believed[False]


def test_the_modes_hold_every_bend_frame_head_and_end() -> None:
    names = " ".join(mode(number).name for number in range(MODES))
    assert [one for one in [*BENDS, *FRAMES, *HEADS, *ENDS] if one not in names] == []
    assert len({mode(number).name.partition(":")[2] for number in range(MODES)}) >= 250
    assert mode(3) == mode(3)


def test_what_the_client_may_not_believe_would_be_found() -> None:
    sound = next(one for one in map(mode, range(MODES)) if one.sound and not one.refused)
    refused = next(one for one in map(mode, range(MODES)) if one.refused)
    got = outcome(HttpTransport, sound)
    assert isinstance(got, Reply)
    assert wrong(sound, got) == ""
    assert wrong(refused, got).startswith("believed")
    second = Mode(sound.name, sound.steps, ("another text", ""), refused=False, sound=True)
    assert wrong(second, got).startswith("said ('another text'")
    assert wrong(sound, RequestFailed("malformed", "x")).startswith("refused")
