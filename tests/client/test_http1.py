"""Response bytes → body, whatever the splits; broken framing is never taken for whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from harness.client.protocol import http1
from harness.client.protocol.http1 import (
    MAX_HEAD_BYTES,
    BadResponse,
    Leftovers,
    Mark,
    ResponseReader,
    begins_chunked_body,
    chunk_size,
    ended_cleanly,
    prompt_of,
    request_head,
)
from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.records import Timing, Usage
from harness.core.reply_notes import AFTER_THE_END

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
        (head(status="HTTP/1.1 304 Not Modified"), b""),
        (CHUNKED + b"5\r\n0\r\n\r\n\r\n0\r\n\r\n", b"0\r\n\r\n"),
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
        head("nocolon"),
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
        CHUNKED + b"\r\na\r\n0\r\n\r\n",
        CHUNKED + b"2\r\nabc\r\n",
        CHUNKED + b"4\r\nabc\r\n\r\n",
        CHUNKED + b"3\r\nabcXX0\r\n\r\n",
        CHUNKED + b"3\r\nabcX\r\n0\r\n\r\n",
        CHUNKED + b"3\r\nabc\rX0\r\n\r\n",
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


INTERIM = b"HTTP/1.1 103 Early Hints\r\n\r\n"
TRAILERS = CHUNKED + b"0\r\nX: "


@pytest.mark.parametrize(
    ("most", "more", "what"),
    [
        (INTERIM * 100, INTERIM, "interim replies"),
        (head(*["a: b"] * 128, "")[:-2], b"", ""),
        (b"", head(*["a: b"] * 129), "129 headers"),
        (b"HTTP/1.1 200 OK\r\nX: ".ljust(32 * 1024, b"x"), b"x", "does not begin"),
        (CHUNKED + b"3;" + b"x" * 4094, b"x", "without a size"),
        (TRAILERS + b"x" * (4096 - 6), b"x", "without a size"),
        (CHUNKED + b"00000000000a\r\n", b"", ""),
        (CHUNKED, b"000000000000a\r\n", "without a size"),
        (head("Content-Length: 000000000000012"), b"", ""),
        (b"", head("Content-Length: 0000000000000012"), "impossible Content-Length"),
        (head("Content-Length: 1, 1"), b"", ""),
        (b"", head("Content-Length: 1, 2"), "impossible Content-Length"),
        (b"", head("Transfer-Encoding: gzip"), "unknown transfer encoding 'gzip'"),
        (b"HTTP/1.", b"2", ""),
        (b"HTTP", b"X", "does not begin"),
    ],
)
def test_a_bound_is_reached_and_not_passed(most: bytes, more: bytes, what: str) -> None:
    reader = ResponseReader()
    reader.feed(most)
    if what:
        with pytest.raises(BadResponse, match=what):
            reader.feed(more)


@pytest.mark.parametrize("status", [203, 205, 303, 305])
def test_other_statuses_have_a_body_up_to_the_end_of_the_connection(status: int) -> None:
    assert read(head(status=f"HTTP/1.1 {status} X") + b"abc")[:4] == (b"abc", status, False, False)


def test_the_data_of_a_chunk_may_look_like_the_last_one() -> None:
    reader = ResponseReader()
    assert [reader.feed(piece) for piece in (CHUNKED + b"5\r\n", b"0\r\n\r\n")] == [b"", b"0\r\n\r\n"]
    assert not reader.ended


def test_a_reader_says_where_it_stands_in_a_chunked_body() -> None:
    reader = ResponseReader()
    assert (reader.started, reader.chunked, reader.at_chunk_border) == (False, False, False)
    stands = [(reader.feed(piece), reader.at_chunk_border) for piece in (CHUNKED, b"3", b"\r\n", b"abc", b"\r", b"\n")]
    assert stands == [(b"", True), (b"", False), (b"", False), (b"abc", False), (b"", False), (b"", True)]
    assert (reader.started, reader.chunked, reader.ended) == (True, True, False)
    assert reader.eof() == "the connection closed inside the body"
    reader.feed(b"0\r\n\r\n")
    assert (reader.ended, reader.at_chunk_border, reader.reusable, reader.surplus) == (True, False, True, b"")
    assert (reader.feed(b"x"), reader.surplus, reader.reusable) == (b"", b"x", False)
    assert (reader.feed(b"y"), reader.surplus) == (b"", b"x")
    whole = ResponseReader()
    assert (whole.feed(CHUNKED + b"0\r\n\r\nx"), whole.surplus, whole.reusable) == (b"", b"x", False)
    plain = ResponseReader()
    plain.feed(head("Content-Length: 2"))
    assert (plain.chunked, plain.at_chunk_border, plain.feed(b"abc"), plain.surplus) == (False, False, b"ab", b"c")
    assert ResponseReader().eof() == "the connection closed before the reply"


def test_the_beginning_of_a_chunked_body_is_known_by_its_whole_head() -> None:
    assert begins_chunked_body(CHUNKED + b"3\r\n")
    for other in (
        b"",
        CHUNKED[:-1],
        CHUNKED.removesuffix(b"\r\n\r\n") + b"x",
        head("Content-Length: 3"),
        b"\r\n\r\n",
        CHUNKED.replace(b"200", b"404"),
        b"x" + CHUNKED,
    ):
        assert not begins_chunked_body(other)
    assert not begins_chunked_body(head("no colon"))
    assert (chunk_size(b"1f ;x"), chunk_size(b"0")) == (31, 0)


def told(text: str, reply_id: str | None, tokens: int | None = None) -> Reply:
    return Reply(
        text=text, reasoning=None, finish_reason="stop", usage=Usage(prompt_tokens=tokens),
        timing=Timing(started=0.0, total=1.0), request_id=reply_id,
    )  # fmt: skip


def test_a_leftover_is_malformed_and_the_next_reply_says_how_many_may_be_wrong() -> None:
    leftovers = Leftovers()
    first = leftovers.check(told("a", "1"), None, 7, used=False)
    assert first == Mark("1", hash(("a", None)), 7)
    second = leftovers.check(told("b", "2"), first, 8, used=True)
    assert (leftovers.doubted, leftovers.n_exposed, leftovers.n_untold, leftovers.note()) == (False, 1, 0, None)
    assert leftovers.may_be_one("2", second)
    assert not leftovers.may_be_one("1", second)
    with pytest.raises(RequestFailed, match="earlier reply again") as again:
        leftovers.check(told("b", "2"), second, 9, used=True)
    assert (again.value.kind, leftovers.doubted, leftovers.n_untold) == ("malformed", True, 2)
    with pytest.raises(RequestFailed, match="had carried another request") as later:
        leftovers.check(told("c", "3"), second, 9, used=True)
    assert later.value.kind == "malformed"
    note = leftovers.note()
    assert note is not None
    assert "2 before this one" in note
    assert (leftovers.note(), leftovers.n_untold) == (None, 0)
    assert leftovers.check(told("d", None), None, 9, used=False) is None


def test_a_note_on_leftovers_that_reached_no_reply_says_so() -> None:
    leftovers = Leftovers()
    leftovers.check(told("a", "1"), None, 7, used=False)
    leftovers.doubt()
    note = leftovers.note() or ""
    assert note.endswith("; no reply is wrong by them: each came over a connection of its own")


def test_one_reply_to_the_same_prompt_may_come_from_a_cache_and_to_another_it_is_a_leftover() -> None:
    leftovers = Leftovers()
    leftovers.check(told("a", "1"), None, 7, used=False)
    leftovers.check(told("b", "2"), None, 8, used=False)
    leftovers.check(told("a", "1"), None, 7, used=True)
    with pytest.raises(RequestFailed, match="earlier reply again"):
        leftovers.check(told("a", "1"), None, 8, used=False)
    assert leftovers.check(told("a", "1"), None, 9, used=False) is not None  # a third time: its ids prove nothing
    shared = Leftovers()
    for text, reply_id, prompt in (("a", "1", 7), ("b", "2", 8), ("c", "1", 9), ("a", "1", 10)):
        shared.check(told(text, reply_id), None, prompt, used=True)
    assert not shared.doubted


def test_another_number_of_prompt_tokens_is_doubted_after_three_that_repeated() -> None:
    def steady(n_repeated: int) -> Leftovers:
        leftovers = Leftovers()
        leftovers.check(told("a", None, 10), None, 7, used=True)
        leftovers.check(told("a", None, 20), None, 8, used=True)
        for _ in range(n_repeated - 1):  # the second prompt's first count is one already
            leftovers.check(told("a", None, 10), None, 7, used=True)
        return leftovers

    believed = steady(2)
    believed.check(told("a", None, 11), None, 7, used=True)
    believed.check(told("a", None, 12), None, 7, used=True)  # its counts prove nothing any more
    fresh = steady(3)
    fresh.check(told("a", None, 11), None, 7, used=False)  # nothing can be left over on a new connection
    assert (believed.doubted, fresh.doubted) == (False, False)
    doubted = steady(3)
    with pytest.raises(RequestFailed, match="states 11 prompt tokens, but this prompt has 10") as failure:
        doubted.check(told("a", None, 11), None, 7, used=True)
    assert (failure.value.kind, doubted.doubted) == ("malformed", True)
    doubted.check(told("a", None, 11), None, 7, used=False)  # the same number once more is believed
    doubted.check(told("a", None, 12), None, 7, used=False)
    refuted = steady(3)
    with pytest.raises(RequestFailed, match="a leftover"):
        refuted.check(told("a", None, 11), None, 7, used=True)
    refuted.check(told("a", None, 10), None, 7, used=False)
    with pytest.raises(RequestFailed, match="a leftover"):  # the known number came between: the other is doubted anew
        refuted.check(told("a", None, 11), None, 7, used=False)
    same = Leftovers()
    for _ in range(9):  # one number for all proves nothing
        same.check(told("a", None, 10), None, 7, used=True)
    same.check(told("a", None, 11), None, 7, used=True)
    assert not same.doubted


def test_what_came_unasked_makes_a_server_doubted_but_for_the_end_of_an_idle_connection() -> None:
    for data, doubted in ((b"", False), (b"HTTP/1.1 408 Request Timeout", False), (b"HTTP/1.1 200", True)):
        leftovers = Leftovers()
        leftovers.judge_unasked(data)
        assert (leftovers.doubted, leftovers.note() is not None) == (doubted, doubted)
    leftovers.doubt()
    assert leftovers.note() is None  # it was doubted, and said so, before


def test_a_prompt_is_known_by_its_end_of_the_body_and_a_clean_end_by_its_notes() -> None:
    one, two = b'{"seed":1,"messages":[1]}', b'{"seed":2,"messages":[1]}'
    assert prompt_of(one) == prompt_of(two) != prompt_of(b'{"seed":1,"messages":[2]}')
    assert (
        prompt_of(b'{"seed":1,"prompt":"a"}') == prompt_of(b'{"seed":2,"prompt":"a"}') != prompt_of(b'{"prompt":"b"}')
    )
    assert prompt_of(b"a") != prompt_of(b"ba")
    assert prompt_of(b"abc") == prompt_of(b"abc") != prompt_of(b"xbc")
    assert ended_cleanly(told("a", None))
    notes = sorted(AFTER_THE_END)
    for some, clean in (((notes[0],), False), (("no [DONE]x", notes[0]), False), (("another",), True)):
        assert ended_cleanly(structs.replace(told("a", None), notes=some)) is clean


def test_the_prompt_and_the_reply_of_longest_ago_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "MAX_PROMPTS", 2)
    monkeypatch.setattr(http1, "MAX_REPLIES", 2)
    leftovers = Leftovers()
    for prompt in (1, 2, 2, 2, 1, 3):  # the second is of longest ago
        leftovers.check(told("a", None, 10 * prompt), None, prompt, used=True)
    with pytest.raises(RequestFailed, match="states 12 prompt tokens, but this prompt has 10"):
        leftovers.check(told("a", None, 12), None, 1, used=True)
    leftovers.check(told("a", None, 21), None, 2, used=False)
    both = Leftovers()
    for text in ("a", "b"):
        both.check(told(text, text), None, 1, used=False)
    with pytest.raises(RequestFailed, match="earlier reply again"):
        both.check(told("a", "a"), None, 2, used=False)
    replies = Leftovers()
    for text in ("a", "b", "c"):
        replies.check(told(text, text), None, 1, used=False)
    assert replies.check(told("a", "a"), None, 2, used=False) is not None
    with pytest.raises(RequestFailed, match="earlier reply again"):
        replies.check(told("c", "c"), None, 2, used=False)


def test_a_server_that_states_one_id_for_all_proves_nothing_by_it() -> None:
    leftovers = Leftovers()
    for prompt in (1, 2, 3):
        leftovers.check(told("a", "1"), None, prompt, used=True)
    assert not leftovers.doubted
