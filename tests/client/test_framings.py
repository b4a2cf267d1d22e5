"""Whatever framing httpx and curl read, the client reads, with the same bytes, however they are split.

For: harness.client.protocol.response, harness.client.transport.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
import ssl
import subprocess
from collections.abc import Iterable
from pathlib import Path

import httpx
import pytest
import trustme

from harness.client import transport as http_transport
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.protocol.response import Response
from harness.client.transport import open_transport
from harness.testing import CLOSE, FakeServer, Pause, Request, Step, delta, event_stream
from tests.budget import examples, share_of
from tests.client.test_transports import MAKERS, Maker, opened, outcome_of, replied
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

EVENTS = [delta("4∑"), delta("2"), delta(finish="stop"), b"data: [DONE]\n\n"]
BODY = b"".join(EVENTS)
N = len(BODY)

CHUNKED = [b"Transfer-Encoding: chunked", b"transfer-encoding:\tCHUNKED "]
MAY_BE_CHUNKED = [
    b"Transfer-Encoding: identity, chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked,",
    b"Transfer-Encoding:\r\n chunked",
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding: xchunked",
    *(b"Content-Length: %d\r\nTransfer-Encoding: chunked" % n for n in (0, 5, N, 9 * N)),
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
]
LENGTHS = [
    b"Content-Length: %d" % N,
    b"content-length:%020d" % N,
    b"Content-Length: %d, %d" % (N, N),
    b"Content-Length: %d\r\nContent-Length: %d" % (N, N),
    b"Content-Length: %d\r\nContent-Length: 5" % N,
    b"Content-Length:\r\n %d" % N,
    b"Content-Length : %d" % N,
    b"Content-Length: +%d" % N,
    b"Content-Length: -1",
    b"Transfer-Encoding: identity\r\nContent-Length: %d" % N,
    b"Content-Length: %d" % (N - 14),
    b"Content-Length:",
    b"Content-Length: %d" % (N + 7),
    b"Content-Length: 1_0",
    b"X-None: 1",
    b"Transfer-Encoding: other",
]
STATUSES = [
    b"HTTP/1.1 200",
    b"HTTP/1.1 200 ",
    b"HTTP/1.0 200 OK",
    b"HTTP/2 200 OK",
    b"http/1.1 200 OK",
    b"HTTP/1.1  200 OK",
    "HTTP/1.1 200 Gut ∑".encode(),
    b"HTTP/1.1 200 O\tK",
    b"HTTP/1.1 2000 OK",
    b"HTTP/1.1\t200 OK",
    b" HTTP/1.1 200 OK",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK",
    b"\r\nHTTP/1.1 200 OK",
    b"ICY 200 OK",
    b"HTTP/1.1 x",
    b"HTTP/1.1 103 Early\r\nContent-Length: 7\r\n\r\nHTTP/1.1 200 OK",
    b"HTTP/1.1 200 O\0K",
]
HEADERS = [
    b"X-A: one\r\n two", b"X-A:\r\n\ttwo", b" X-A: 1", b"X-A: \xe9", "X-A: ∑".encode(), "∑: 1".encode(), b"X A: 1",
    b"X-A : 1", b": 1", b"no colon", b"X-A: \x01\x1b\x7f", b"X-A: \0", b"X-A: a\rb", b"X-A: a\r", b"X-A:", b"X(a): 1",
    b"Connection: close", b"Connection: upgrade\r\nUpgrade: h2c", b"Content-Encoding: identity", b"Content-Encoding:",
    b"Content-Encoding: none", b"Content-Encoding: utf-8", b"Set-Cookie: a=" + b"x" * 60_000,
    b"\r\n".join(b"X-%d: 1" % n for n in range(300)), b"X-A: " + b"x" * 90_000,
]  # fmt: skip
SIZES = [
    b"%x  \r\n", b"%x\t\r\n", b" %x\r\n", b"%X\r\n", b"%08x\r\n", b"%020x\r\n", b"%x;a\r\n", b'%x; a="b;c"\r\n',
    b"%x;\r\n", b"%x;=,@\r\n", b"%x ;a = b\r\n", b"%x zz\r\n", b"%xg\r\n", b"0x%x\r\n", b"%x\n", b"%x\r\r\n",
    b"-%x\r\n", "%x;∑\r\n".encode(), b"%x;" + b"a" * 5000 + b"\r\n",
]  # fmt: skip
CHUNK_ENDS = [b"\n", b"\r", b"", b"\r\r\n"]
LAST_CHUNKS = [
    b"000\r\n\r\n",
    b"0;a\r\n\r\n",
    b"0 \r\n\r\n",
    b"0\r\nX-A: b\r\n\r\n",
    b"0\r\nX-A: b\r\n c\r\n\r\n",
    b"0\n\n",
    b"",
    b"0\r\nContent-Length: 5\r\n\r\n",
    b"0\r\nX-A: b\n\n",
    b"0\r\n\n",
    b"0\r\n",
    b"0\r\nno colon\r\n\r\n",
    b"0",
]


def framing(rng: random.Random) -> bytes:
    """A response with `BODY`, of the usual form or of one to three others; some hold less of it, or are no response."""

    def choose(usual: list[bytes], others: list[bytes]) -> bytes:
        return rng.choice(others if rng.random() < 0.3 else usual)

    is_chunked = rng.random() < 0.7
    lines = [
        b"Content-Type: text/event-stream",
        choose(CHUNKED, MAY_BE_CHUNKED) if is_chunked else choose(LENGTHS[:2], LENGTHS),
    ]
    if rng.random() < 0.5:
        lines.insert(rng.randrange(3), rng.choice(HEADERS))
    head = b"\r\n".join([choose([b"HTTP/1.1 200 OK"], STATUSES), *lines, b"", b""])
    if rng.random() < 0.1:
        head = head.replace(b"\r\n", b"\n", rng.choice([-1, 1, 2]))
    if not is_chunked:
        return head + BODY
    size, end = choose([b"%x\r\n"], SIZES), choose([b"\r\n"] * 3, CHUNK_ENDS)
    cuts = sorted({0, N, *rng.sample(range(N), rng.randrange(6))})
    chunks = [BODY[a:b] for a, b in itertools.pairwise(cuts)] if rng.random() < 0.5 else EVENTS
    return head + b"".join(size % len(c) + c + end for c in chunks) + choose([b"0\r\n\r\n"], LAST_CHUNKS)


def read_by_curl(urls: list[str], folder: Path, authority: Path) -> list[bytes | None]:
    """What curl reads of each reply; None where it fails. Where there is no curl, httpx alone decides."""
    if shutil.which("curl") is None:
        return [BODY] * len(urls)
    ask = ["curl", "-s", "--max-time", "60", "--cacert", str(authority), "-d", "{}", "-w", "%{http_code} %{exitcode}\n"]
    ends: list[str] = []
    while len(ends) < len(urls):  # after some failures it leaves the other URLs out
        rest = [*enumerate(urls)][len(ends) :]
        pages = [part for n, url in rest for part in ("-o", str(folder / str(n)), f"{url}/chat/completions")]
        ends += subprocess.run([*ask, *pages], capture_output=True, text=True).stdout.splitlines()
    return [(folder / str(n)).read_bytes() if end == "200 0" else None for n, end in enumerate(ends)]


def read_by_httpx(client: httpx.Client, url: str) -> bytes | None:
    """What httpx reads of a reply; None where it fails."""
    try:
        response = client.post(f"{url}/chat/completions", content=b"{}")
        return response.content if response.status_code == 200 else None
    except httpx.HTTPError:
        return None


@pytest.mark.fuzz
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_httpx_and_curl_read_is_read_alike(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    seed = random.randrange(1 << 32)
    sent = [framing(random.Random(seed + n)) for n in range(examples(480))]

    def answer(request: Request) -> Iterable[Step]:
        return [sent[int(request.path.split("/")[2])], CLOSE]

    async def main(urls: list[str]) -> list[Reply | RequestFailed]:
        async with opened(Maker(open_transport)) as transport:
            return [await outcome_of(transport, url) for url in urls]

    with (
        FakeServer(answer, tls=context if scheme == "https" else None) as server,
        httpx.Client(verify=ssl.create_default_context(), timeout=None, trust_env=False) as client,
    ):
        urls = [f"{server.base_url}/{n}" for n in range(len(sent))]
        by_curl = read_by_curl(urls, tmp_path, tmp_path / "ca.pem")
        outcomes = asyncio.run(main(urls))
        for n, (url, theirs, ours) in enumerate(zip(urls, by_curl, outcomes, strict=True)):
            form = (seed + n, sent[n][:300], sent[n][-300:])
            if theirs == BODY == read_by_httpx(client, url):
                assert isinstance(ours, Reply), (form, ours)
            if isinstance(ours, Reply):
                assert ours.text == "4∑2", form
            else:
                assert ours.message.isprintable(), form
                assert "\n" not in ours.message, form


def read(*pieces: bytes) -> tuple[object, ...]:
    """What becomes of a response that comes in these pieces."""
    response = Response()
    body = b"".join(map(response.feed, pieces))
    ends = response.ended, bool(response.broken), bool(response.excess), response.reusable, response.until_closed
    return body, response.status, response.headers, ends


@pytest.mark.fuzz
def test_a_response_is_the_same_in_any_pieces() -> None:
    for n in range(examples(400)):
        raw, rng = framing(random.Random(n)), random.Random(n)
        whole = read(raw)
        if len(raw) < 4000:
            assert read(*(raw[at : at + 1] for at in range(len(raw)))) == whole, n
        for _ in range(8):
            cuts = sorted(rng.choices(range(len(raw)), k=rng.randrange(1, 5)))
            pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
            assert read(*pieces) == whole, (n, cuts)


ODD = [
    b"", b" ", b"\t", b":", b"\r", b"\n", b"\r\n", b"\r\n ", b"\xa0", b"\x85", b"\0", b",", b"9", b"_", b"A: b\r\n",
]  # fmt: skip
USUAL = [b"X-Id: 1, b: c ", b"Connection: Keep-Alive, Close", b"date:  Sun", b"Content-Length: 5", CHUNKED[0]]
LINES = [*MAY_BE_CHUNKED, *LENGTHS, *HEADERS]


@pytest.mark.fuzz
def test_the_head_that_is_read_at_once_is_the_same_line_by_line() -> None:
    """A blank line before a head is passed over, but such a head is not of the usual form."""
    for n in range(examples(3000)):
        rng = random.Random(n)
        status = rng.choice([b"HTTP/1.1 200 OK", rng.choice(STATUSES)])
        lines = rng.choices([*USUAL * 8, *LINES], k=rng.randrange(1, 5))
        head = b"\r\n".join([status, *lines, b"", b""])
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(head) + 1)
            head = head[:at] + rng.choice(ODD) + head[at + rng.randrange(2) :]
        raw = head + b"5\r\nhello\r\n0\r\n\r\n" + rng.choice(ODD)
        assert read(raw) == read(b"\r\n" + raw), (n, head)


@pytest.mark.parametrize("headers", [b"Transfer-Encoding: chunked\r\nContent-Length: 9", b"Connection: close", b"X: 1"])
def test_a_connection_with_doubtful_framing_carries_no_other_request(headers: bytes) -> None:
    response = Response()
    response.feed(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    assert not response.reusable


@pytest.mark.parametrize("end", [b"0\r\n\r\n", b"0\r\nX-A: b\r\n\r\n", b"0\n\n"])
def test_an_end_in_any_pieces_is_read_when_it_comes(end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """No timer helps here: a reply whose last bytes waited for one would never end."""
    monkeypatch.setattr(http_transport, "CHECK_S", 1e6)
    head, *chunks, _ = event_stream(*EVENTS[:3])
    tail = b"".join(chunks) + end

    async def main() -> None:
        async with opened(MAKERS["http"]) as transport:
            asked = (outcome_of(transport, f"{server.base_url}/{at}") for at in share_of(range(len(tail))))
            for outcome in await asyncio.wait_for(asyncio.gather(*asked), PATIENCE_SECONDS):
                assert replied(outcome).text == "4∑2"

    def answer(request: Request) -> Iterable[Step]:
        at = int(request.path.split("/")[2])
        return [head, tail[:at], Pause(0.02), tail[at:]] if at else [head, tail]

    with FakeServer(answer) as server:
        asyncio.run(main())
