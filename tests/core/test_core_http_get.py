"""Small requests are bounded in bytes, seconds and attempts; only what chance may have broken is asked again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import httpx
import pytest

from harness.core import http_get
from harness.core.http_get import ATTEMPTS, MAX_WAIT_SECONDS, Page
from harness.core.sanitize import MAX_ERROR_BODY_BYTES
from harness.testing import CLOSE, RESET, STALL, FakeServer, Request, Step, http

CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab"


def get(server: FakeServer, waits: list[float] | None = None, **bounds: float) -> Page:
    with httpx.Client(headers=http_get.HEADERS, timeout=None, trust_env=False) as client:
        most, seconds = int(bounds.get("max_bytes", 1000)), bounds.get("body_s", 60.0)
        clock, slept = map(float, itertools.count()).__next__, [] if waits is None else waits
        return http_get.get(client, server.base_url, max_bytes=most, body_s=seconds, clock=clock, sleep=slept.append)


@pytest.mark.parametrize(
    "bad_moment",
    [[http(429)], [http(502)], [http(503, b"loading")], [http(504)], [CUT, CLOSE], [CUT, RESET], [CLOSE], [RESET]],
    ids=["429", "502", "503", "504", "cut", "reset", "closed", "reset at once"],
)
def test_a_bad_moment_is_asked_again(bad_moment: list[Step]) -> None:
    waits: list[float] = []
    with FakeServer(lambda r: bad_moment if r.number < ATTEMPTS else [http(200, b"fine")]) as server:
        assert get(server, waits)[:4] == Page(200, b"fine", True, "")[:4]
        assert len(server.requests) == ATTEMPTS
    assert len(waits) == ATTEMPTS - 1
    assert all(0 <= wait <= MAX_WAIT_SECONDS for wait in waits)


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 500, 501])
def test_an_answer_that_is_meant_is_taken_at_once(status: int) -> None:
    with FakeServer(lambda _: [http(status, b"so it is")]) as server:
        page = get(server)
        assert (page.status, page.body, page.whole) == (status, b"so it is", True)
        assert len(server.requests) == 1


def test_who_refuses_or_says_nothing_is_not_asked_again() -> None:
    waits: list[float] = []
    with FakeServer(lambda _: [STALL]) as server, httpx.Client(timeout=0.1, trust_env=False) as client:
        with pytest.raises(httpx.ReadTimeout):
            http_get.get(client, server.base_url, max_bytes=10, body_s=10, sleep=waits.append)
        assert len(server.requests) == 1
    with pytest.raises(httpx.ConnectError):
        get(server, waits)  # it has stopped
    assert waits == []


def endless(status: int) -> Iterator[Step]:
    yield b"HTTP/1.1 %d X\r\n\r\n" % status
    while True:
        yield b" " * 65536


@pytest.mark.parametrize(
    ("status", "max_bytes", "body_s", "most"),
    # The clock ticks once at the head, once at each piece.
    [(200, 1 << 20, math.inf, 1 << 20), (404, 1 << 20, math.inf, MAX_ERROR_BODY_BYTES), (200, 1 << 40, 3, 5 * 65536)],
)
def test_an_endless_body_is_cut_at_a_size_or_time_limit(status: int, max_bytes: int, body_s: float, most: int) -> None:
    with FakeServer(lambda _: endless(status)) as server:
        page = get(server, max_bytes=max_bytes, body_s=body_s)
    assert (len(page.body) == most or 0 < len(page.body) < most == 5 * 65536, page.whole) == (True, False)


def test_a_redirect_names_its_target_and_compressed_pages_are_not_unpacked() -> None:
    requests: list[Request] = []

    def answer(request: Request) -> Iterable[Step]:
        requests.append(request)
        return [http(307, location="https://elsewhere/v1")]

    with FakeServer(answer) as server:
        assert get(server).location == "https://elsewhere/v1"
    assert requests[0].headers["accept-encoding"] == "identity"
    with FakeServer(lambda _: [http(200, b"\x1f\x8b...", **{"Content-Encoding": "gzip"})]) as server:
        assert get(server).body == b"\x1f\x8b..."
