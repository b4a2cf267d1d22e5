"""All replies in flight share one budget of memory: long ones are given up, short ones never notice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import pytest

from harness.client.protocol.reply import RequestFailed
from harness.client.protocol.sse import MAX_BODY_VALUES, ReplyParser
from harness.client.protocol.written import LONG_REPLY_BYTES, MAX_REPLIES_BYTES, Memory
from tests.faults.server import CLOSE, DONE, END, HEAD, FaultServer, Request, Step, chunk, delta
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

MIB = 1024 * 1024

CLIENT = """
import asyncio, resource, sys
from harness.client.address.endpoint import Endpoint
from harness.client.transport import open_transport
from harness.client.loop import new_event_loop
from harness.client.interface import Deadlines
from harness.client.protocol.reply import RequestFailed

async def one(transport, endpoint, path, n):
    body = b'{"model": "m", "messages": %d, "stream": true}' % n
    try:
        return (await transport.complete(endpoint, path, body, Deadlines(), 64 << 20)).text
    except RequestFailed as failure:
        return failure.kind

async def main(url, name):
    transport, endpoint = open_transport(name), Endpoint.parse(url)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = await asyncio.gather(*(one(transport, endpoint, "/chat/completions", n) for n in range(64)))
    print(sorted(set(outcomes)), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    await transport.close()

with asyncio.Runner(loop_factory=new_event_loop) as runner:
    runner.run(main(*sys.argv[1:]))
"""


def flood(request: Request) -> Iterable[Step]:
    yield HEAD
    if request.json["messages"] % 8 == 0:
        yield chunk(delta("short", finish="stop") + DONE) + END
        return
    piece = chunk(delta("x" * 30_000)) * 4
    for _ in range(150):
        yield piece
    yield CLOSE


@pytest.mark.parametrize("transport", ["http"])
def test_64_hostile_replies_take_less_than_512_mb_and_the_others_arrive(transport: str) -> None:
    with FaultServer(flood) as server:
        command = [sys.executable, "-c", CLIENT, server.base_url, transport]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    kinds, _, peak = done.stdout.strip().rpartition(" ")
    # Those that are given up make room, so a few of the others may come whole, to where the server hangs up.
    assert kinds in ("['runaway', 'short']", "['cut', 'runaway', 'short']")
    assert int(peak) < 512, f"{peak} MiB"


def parser(memory: Memory) -> ReplyParser:
    return ReplyParser(started=0.0, started_utc=0.0, max_body_bytes=1 << 30, memory=memory)


def test_only_long_replies_are_given_up_when_all_together_are_too_much() -> None:
    memory = Memory(limit=8 * MIB)
    short, long = parser(memory), parser(memory)
    long.feed(delta("x" * 4_000_000), 1.0)
    short.feed(delta("x" * 1_000_000), 1.0)
    long.feed(delta("x" * 2_000_000), 1.0)
    short.feed(delta("x"), 1.0)
    with pytest.raises(RequestFailed) as caught:
        long.feed(delta("x" * 2_000_000), 1.0)
    assert caught.value.kind == "runaway"
    assert short.held_bytes < LONG_REPLY_BYTES < long.held_bytes
    short.feed(delta(finish="stop") + DONE, 2.0)
    assert len(short.finish().text or "") > 1_000_000


def test_a_long_reply_alone_is_none_too_many_and_one_that_is_gone_counts_no_more() -> None:
    memory, event = Memory(), delta("x" * 4_000_000)
    for _ in range(8):
        reply = parser(memory)
        for _ in range(12):
            reply.feed(event, 1.0)
        assert LONG_REPLY_BYTES < reply.held_bytes < MAX_REPLIES_BYTES
        del reply


def test_of_a_reply_that_is_hardly_an_answer_no_copies_are_made() -> None:
    reply = parser(Memory())
    reply.feed(delta("x" * 1_000_000), 1.0)
    assert len(((seen := reply.so_far()) and seen.text) or "") == 1_000_000
    for _ in range(2):
        reply.feed(delta("x" * (LONG_REPLY_BYTES // 2)), 1.0)
    assert reply.so_far() is None


@pytest.mark.parametrize(("n", "kind"), [(MAX_BODY_VALUES, "malformed"), (1000, None)])
def test_a_body_of_a_million_values_is_not_decoded(n: int, kind: str | None) -> None:
    reply = parser(Memory())
    body = b'{"choices":[{"index":0,"message":{"content":"42"},"finish_reason":"stop"}],"x":[' + b"[]," * n + b"0]}"
    reply.feed(body, 1.0)
    if kind is None:
        assert reply.finish().text == "42"
    else:
        with pytest.raises(RequestFailed) as caught:
            reply.finish()
        assert caught.value.kind == kind
