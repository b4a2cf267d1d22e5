"""Response bytes → body, whatever the splits; broken framing is never taken for whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.client.protocol.http1 import MAX_HEAD_BYTES, BadResponse, ResponseReader, request_head

Outcome = tuple[bytes, int, bool, bool, str]


def read(*pieces: bytes) -> Outcome:
    """(body, status, ended, reusable, error) of a response that arrives in `pieces`, then the connection ends."""
    reader = ResponseReader()
    body = b""
    try:
        for piece in pieces:
            body += reader.feed(piece)
    except BadResponse as error:
        return body, reader.status, False, False, str(error)
    reusable = reader.reusable
    return body, reader.status, reader.ended, reusable, reader.eof()


def head(*lines: str, status: str = "HTTP/1.1 200 OK") -> bytes:
    return "\r\n".join([status, *lines, "", ""]).encode()


CHUNKED = head("Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    ("response", "body"),
    [
        (CHUNKED + b"3\r\nabc\r\n0A;x=1\r\n0123456789\r\n0\r\n\r\n", b"abc0123456789"),
        (CHUNKED + b"3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n", b"abc"),
        (CHUNKED + b"3\r\na\r\n\r\n0\r\n\r\n", b"a\r\n"),
        (head("Content-Length: 3") + b"abc", b"abc"),
        (head("content-length:  0"), b""),
        (head(status="HTTP/1.1 204 No Content"), b""),
        (head(status="HTTP/1.1 103 Early Hints") + head("Content-Length: 1") + b"x", b"x"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + head("Content-Length: 1") + b"x", b"x"),
    ],
)
def test_whole_responses_end_and_leave_the_connection_usable(response: bytes, body: bytes) -> None:
    for size in (1, 2, 5, len(response)):
        got, _, ended, reusable, error = read(*(response[i : i + size] for i in range(0, len(response), size)))
        assert (got, ended, reusable, error) == (body, True, True, "")


def test_a_body_without_length_ends_with_the_connection_and_is_not_reusable() -> None:
    assert read(head() + b"abc") == (b"abc", 200, False, False, "")


@pytest.mark.parametrize("connection", ["close", "Close, x"])
def test_a_connection_that_the_server_closes_is_not_reused(connection: str) -> None:
    assert read(head(f"Connection: {connection}", "Content-Length: 1") + b"x")[3] is False


def test_http_1_0_is_reused_only_if_it_says_so() -> None:
    old = "HTTP/1.0 200 OK"
    assert read(head("Content-Length: 1", status=old) + b"x")[3] is False
    assert read(head("Content-Length: 1", "Connection: keep-alive", status=old) + b"x")[3] is True


def test_bytes_after_the_end_spoil_the_connection() -> None:
    assert read(head("Content-Length: 1") + b"xy")[3] is False
    assert read(CHUNKED + b"0\r\n\r\nHTTP/1.1")[3] is False


@pytest.mark.parametrize(
    "response",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        head("no colon here"),
        head("Content-Length: -3"),
        head("Content-Length: 1e3"),
        head("Transfer-Encoding: gzip, chunked"),
        head("Transfer-Encoding:"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\xa0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
        CHUNKED + b"xyz\r\n",
        CHUNKED + b"0x3\r\nabc\r\n",
        CHUNKED + b"-3\r\nabc\r\n",
        CHUNKED + b"\r\nabc\r\n",
        CHUNKED + b"2\r\nabc\r\n",
        CHUNKED + b"4\r\nabc\r\n\r\n",
        CHUNKED + b"f" * 5000,
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (MAX_HEAD_BYTES + 1),
    ],
)
def test_broken_framing_is_an_error_for_all_splits(response: bytes) -> None:
    for size in (1, 3, len(response)):
        assert read(*(response[i : i + size] for i in range(0, len(response), size)))[4]


@given(st.lists(st.binary(min_size=1, max_size=12), max_size=8), st.data())
@settings(deadline=None)
def test_a_chunked_body_cut_anywhere_is_its_beginning_and_never_whole(parts: list[bytes], data: st.DataObject) -> None:
    whole = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    body = b"".join(parts)
    end = data.draw(st.integers(0, len(whole)))
    at = data.draw(st.integers(0, end))
    got, _, ended, _, error = read(whole[:at], whole[at:end])
    assert body.startswith(got)
    assert (ended, error == "", got == body) == (
        (True, True, True) if end == len(whole) else (False, False, got == body)
    )


@given(st.binary(max_size=60), st.lists(st.integers(0, 120), max_size=4))
@settings(deadline=None)
def test_any_bytes_come_to_the_same_end_for_all_splits(tail: bytes, cuts: list[int]) -> None:
    response = CHUNKED + tail
    places = sorted({min(cut, len(response)) for cut in cuts})
    pieces = [response[a:b] for a, b in zip([0, *places], [*places, len(response)], strict=True)]
    whole, split = read(response), read(*pieces)
    assert split[1:4] == whole[1:4]
    assert (split[4] == "") == (whole[4] == "")


def test_a_request_head_names_host_path_and_headers() -> None:
    got = request_head("http://user:pw@[::1]:8000/v1/chat/completions", {"Authorization": "Bearer k"})
    assert got.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: [::1]:8000\r\nAuthorization: Bearer k\r\n")
    assert got.endswith(b"Content-Length: ")
    assert b"pw" not in got


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://h/v1", {"X": "a\r\nY: b"}),
        ("http://h/v1", {"X\r\nY": "b"}),
        ("http://h/v1", {"X": "ключ"}),
        ("http://h/v1 HTTP/1.1\r\nX:", {}),
        ("http://h/é", {}),
    ],
)
def test_what_would_break_the_request_is_refused(url: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        request_head(url, headers)
