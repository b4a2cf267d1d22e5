"""The HTTP/1.1 reader beside the suites of h11 and llhttp: the same responses, and what those two make of them.

Restated from the facts of `h11/tests/test_io.py` and `test_headers.py` (h11 0.16, Nathaniel J. Smith and others, MIT)
and of `test/response/*.md` (llhttp 9, Fedor Indutny, MIT), with the sections of RFC 9112 that decide. Where the two
disagree, or this reader is stricter or laxer on purpose, `ON_PURPOSE` says why.

For: harness.client.protocol.http1.
"""

from __future__ import annotations

import pytest

from tests.client.test_http1 import read

OK = "HTTP/1.1 200 OK\r\n"
CHUNKED = OK + "Transfer-Encoding: chunked\r\n\r\n"
TWO = "Content-Length: 2\r\n\r\nhe"
CHUNKS = "\r\n2\r\nhe\r\n0\r\n\r\n"

WHOLE = {
    # The readers of h11.
    "a header of HTTP/1.0": ("HTTP/1.0 200 OK\r\nSome: header\r\n\r\nhe", "he", False),
    "a value of single letters and spaces": (OK + "Foo: a a a a a \r\n" + TWO, "he", True),
    "an empty value": (OK + "Foo:\r\n" + TWO, "he", True),
    "a value of blanks": (OK + "Foo: \t \t \r\n" + TWO, "he", True),
    "no reason phrase": ("HTTP/1.1 200\r\n" + TWO, "he", True),
    "a length": (OK + "Content-Length: 10\r\n\r\n0123456789", "0123456789", True),
    "a length of 0": (OK + "Content-Length: 0\r\n\r\n", "", True),
    "a body up to the end of the connection": (OK + "\r\nasdf", "asdf", False),
    "no chunk but the last": (CHUNKED + "0\r\n\r\n", "", True),
    "trailers": (CHUNKED + "0\r\nSome: header\r\n\r\n", "", True),
    "two chunks and trailers": (
        CHUNKED + "5\r\n01234\r\n10\r\n0123456789abcdef\r\n0\r\nSome: header\r\n\r\n", "012340123456789abcdef", True,
    ),
    "a size in both cases of hexadecimal": (CHUNKED + "aA\r\n" + "x" * 0xAA + "\r\n0\r\n\r\n", "x" * 0xAA, True),
    "extensions": (CHUNKED + '5; hello=there\r\nxxxxx\r\n0; random="junk"; some=more\r\n\r\n', "xxxxx", True),
    # The headers of h11.
    "the same length twice": (OK + "Content-Length: 2\r\n" + TWO, "he", True),
    "the same length as a list": (OK + "Content-Length: 2 , 2\r\n\r\nhe", "he", True),
    "chunked in mixed case": (OK + "Transfer-Encoding: cHuNkEd\r\n" + CHUNKS, "he", True),
    "close beside another connection option": (OK + "Connection: close\r\nconnectiON: fOo\r\n" + TWO, "he", False),
    # The responses of llhttp.
    "tabs around a value": (OK + "Header2:\t Value2\r\nContent-Length:\t2\t\r\n\r\nhe", "he", True),
    "a reason phrase in Latin-1": ("HTTP/1.1 500 Ori\xebntatieprobleem\r\nConnection: close\r\n" + TWO, "he", False),
    "an empty reason phrase": ("HTTP/1.1 200 \r\n" + TWO, "he", True),
    "signs in a name": (OK + "X-$PrototypeBI-Version: 1\r\n.et-Cookie: x\r\n_eep-Alive: y\r\n" + TWO, "he", True),
    "a value that is empty does not take the next line": (OK + "Pragma: \r\n" + TWO, "he", True),
    "a name that begins so": (OK + "Content-Length-X: 0\r\nTransfer-Encoding: chunked\r\n" + CHUNKS, "he", True),
    "an extension without a name": (CHUNKED + "2;\r\nhe\r\n0\r\n\r\n", "he", True),
    "quotes in extensions": (CHUNKED + '5;a="I love; b";c="d";e;f=g\r\nhello\r\n0\r\n\r\n', "hello", True),
    "HTTP/1.0 that stays": ("HTTP/1.0 301 Moved\r\nConnection: keep-alive\r\n" + TWO, "he", True),
}  # fmt: skip
"""What is sent, the body that all three read, and whether the connection may carry another request."""

REFUSED = {
    # The headers of h11.
    "a folded first line": OK + "  folded: line\r\n" + TWO,
    "blanks behind a name": OK + "foo  : line\r\n" + TWO,
    "a tab behind a name": OK + "foo\t: line\r\n" + TWO,
    "no name": OK + ": line\r\n" + TWO,
    "a blank in a name": OK + "foo bar: baz\r\n" + TWO,
    "a NUL in a name": OK + "foo\0bar: baz\r\n" + TWO,
    "eight bits in a name": OK + "foo\xffbar: baz\r\n" + TWO,
    "a control character in a name": OK + "foo\x01bar: baz\r\n" + TWO,
    "a carriage return in a value": OK + "foo: bar\rbaz\r\n" + TWO,
    "a NUL in a value": OK + "foo: bar\0baz\r\n" + TWO,
    "a length in letters": OK + "Content-Length: asdf\r\n\r\nhe",
    "a length that ends in a letter": OK + "Content-Length: 1x\r\n\r\nhe",
    "two lengths": OK + "Content-Length: 1\r\n" + TWO,
    "two lengths, the first one twice": OK + "Content-Length: 2\r\nContent-Length: 1\r\n" + TWO,
    "two lengths as a list": OK + "Content-Length: 1 , 1,2\r\n\r\nhe",
    "a length of 21 digits": OK + "Content-Length: " + "1" * 21 + "\r\n\r\nhe",
    "a coding that nobody asked for": OK + "Transfer-Encoding: gzip\r\n" + CHUNKS,
    "chunked, then gzip": OK + "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n" + CHUNKS,
    "a size of 100 digits": CHUNKED + "9" * 100 + "\r\nxxx",
    "a NUL behind a size": CHUNKED + "10\0\r\nxxx",
    "a chunk that goes on": CHUNKED + "3\r\nxxx__1a\r\n",
    "a chunk that ends in half a line end": CHUNKED + "3\r\nxxx\r_1a\r\n",
    "a chunk that ends in the other half": CHUNKED + "3\r\nxxx_\n1a\r\n",
    # The responses of llhttp.
    "a protocol misspelt": "HTP/1.1 200 OK\r\n" + TWO,
    "a longer protocol": "HTTPER/1.1 200 OK\r\n" + TWO,
    "another protocol": "RTSP/1.1 200 OK\r\n" + TWO,
    "a protocol of streams": "ICE/1.1 200 OK\r\n" + TWO,
    "another digit before the version": "HTTP/01.1 200 OK\r\n" + TWO,
    "a version of two digits": "HTTP/11.1 200 OK\r\n" + TWO,
    "a minor version of two digits": "HTTP/1.01 200 OK\r\n" + TWO,
    "a version that is none": "HTTP/5.6 200 OK\r\n" + TWO,
    "version 0.9": "HTTP/0.9 200 OK\r\n" + TWO,
    "a tab behind the version": "HTTP/1.1\t200 OK\r\n" + TWO,
    "two blanks before the status": "HTTP/1.1  200 OK\r\n" + TWO,
    "a status of one digit": "HTTP/1.1 2 OK\r\n" + TWO,
    "headers divided by a carriage return": OK + "Foo: 1\rBar: 2\r\n\r\n",
    "a carriage return behind the status": "HTTP/1.1 200 OK\r" + TWO,
    "two carriage returns behind the status": "HTTP/1.1 200 OK\r\r" + TWO,
    "a line that is no header": OK + " Host: foo\r\n\r\n",
    "a name of two words": OK + "en-US Content-Type: text/xml\r\n" + TWO,
    "chunked before another coding": OK + "Transfer-Encoding: chunked, deflate\r\n\r\nWorld",
    "chunked before another coding, in two lines":
        OK + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\nWorld",
    "chunked twice in a word": OK + "Transfer-Encoding: chunkedchunked\r\n" + CHUNKS,
    "no semicolon before an extension": CHUNKED + "2 erfrferferf\r\naa\r\n0 rrrr\r\n\r\n",
}  # fmt: skip
"""What h11, llhttp or both refuse, and so does this reader."""

ON_PURPOSE = {
    "lines that end in a line feed": (
        "HTTP/1.1 200 OK\nFoo: abc\nContent-Length: 2\n\nhe", None,
        "h11 reads them, llhttp does not; no server of the OpenAI protocol sends them",
    ),
    "a header that ends in a line feed": (
        "HTTP/1.1 200 OK\r\nFoo: abc\nContent-Length: 2\r\n\r\nhe", None, "as above: it decides the framing",
    ),
    "a folded header": (
        OK + "Some: multi-line\r\n header\r\n" + TWO, None, "h11 joins the lines, llhttp refuses them",
    ),
    "an empty line before the response": (
        "\r\n" + OK + TWO, None, "llhttp skips it; here a byte before the response belongs to no request",
    ),
    "gzip, then chunked, in two lines": (
        OK + "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n" + CHUNKS, None,
        "llhttp hands the compressed body on; here it would be taken for the text",
    ),
    "a length beside chunks": (
        OK + "Content-Length: 123\r\nTransfer-Encoding: chunked\r\n" + CHUNKS, ("he", False),
        "llhttp refuses, RFC 9112 6.3 reads the chunks; the connection is not trusted with another request",
    ),
    "blanks behind a size": (
        CHUNKED + "5   \t \r\n01234\r\n0  \r\n\r\n", ("01234", True), "h11 reads them, llhttp does not",
    ),
    "quotes without an end": (
        CHUNKED + '5;a="abc";b="def; ghi\r\nhello\r\n0\r\n\r\n', ("hello", True), "extensions are skipped",
    ),
    "chunks of a status without a body": (
        "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", ("", True), "RFC 9112 6.3",
    ),
}  # fmt: skip
"""What is sent; body and reuse, or None where it is refused or never ends; and why it is not as a suite has it."""


def pieces(response: str) -> list[list[bytes]]:
    """The response in one piece, and byte by byte."""
    sent = response.encode("latin-1")
    return [[sent], [sent[i : i + 1] for i in range(len(sent))]]


@pytest.mark.parametrize(("response", "body", "reusable"), WHOLE.values(), ids=WHOLE)
def test_what_the_suites_read_is_read(response: str, body: str, reusable: bool) -> None:
    for given in pieces(response):
        got, status, _, again, error = read(*given)
        assert (got, status >= 200, again, error) == (body.encode(), True, reusable, "")


@pytest.mark.parametrize("response", REFUSED.values(), ids=REFUSED)
def test_what_the_suites_refuse_is_no_whole_response(response: str) -> None:
    for given in pieces(response):
        _, _, ended, again, error = read(*given)
        assert (ended, again) == (False, False)
        assert error


@pytest.mark.parametrize(("response", "outcome"), [case[:2] for case in ON_PURPOSE.values()], ids=ON_PURPOSE)
def test_what_is_read_otherwise_on_purpose_stays_so(response: str, outcome: tuple[str, bool] | None) -> None:
    for given in pieces(response):
        got, _, ended, again, error = read(*given)
        if outcome is None:
            assert error
            assert not ended
        else:
            assert (got, again, error) == (outcome[0].encode(), outcome[1], "")
