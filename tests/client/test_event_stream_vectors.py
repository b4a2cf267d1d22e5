"""The reply parser beside the W3C's tests of event streams: comments, fields, line ends, marks, characters.

Restated from the facts of `eventsource/format-*` in web-platform-tests (3-clause BSD): there an event's data are any
text, here the data of each event are the JSON of one piece of the answer, and the pieces show how the lines were read.
What is read otherwise on purpose stands in `ON_PURPOSE` with its reason; all else is held against httpx-sse in
`test_oracles`.

For: harness.client.protocol.sse.
"""

from __future__ import annotations

import pytest

from harness.client.protocol.reply import Reply
from tests.client.test_events import parse, reply


def piece(text: str, finish: str | None = None) -> str:
    """The JSON of an event that says `text`."""
    reason = "null" if finish is None else f'"{finish}"'
    return f'{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":{reason}}}]}}'


A, B, C = piece("a"), piece("b"), piece("c", finish="stop")
END = f"data: {C}\n\ndata: [DONE]\n\n"
ON_PURPOSE = {
    "an event without its blank line at the end": (
        f"data:{A}\n\ndata:{C}",
        "ac",
        "a browser drops it; a server that closes after its last line has said all of it, if the JSON is whole",
    ),
    "a mark before a later line": (
        f"data:{A}\n\n\ufeffdata:{B}\n\n{END}",
        "malformed",
        "a browser drops the line; here it is a part of an answer",
    ),
    "a name in another case": (
        f"Data:{A}\n\n{END}",
        "malformed",
        "a browser drops it; it may hold a part of the answer",
    ),
    "a line of words": (f"data:{A}\njust some text\n\n{END}", "malformed", "as above"),
    "a blank before a field": (f" data:{A}\n\n{END}", "ac", "blanks before the first line are no line"),
    "a blank before a later field": (f"data:{A}\n data:{B}\n\n{END}", "malformed", "as above: no field of this name"),
    "an event of the name error": (
        f"event: error\ndata: {A}\n\n{END}",
        "server",
        "the protocol says that the request failed",
    ),
}
"""What is sent; the answer, or the kind of failure; why it is not as the standard has it."""


def outcomes(sent: str) -> set[str | None]:
    """The texts, or the kinds of failure, that the bytes come to in pieces of several sizes."""
    data = sent.encode()
    came = [parse(*(data[at : at + size] for at in range(0, len(data), size))) for size in (1, 2, 7, len(data))]
    return {outcome.text if isinstance(outcome, Reply) else outcome.kind for outcome in came}


@pytest.mark.parametrize(("sent", "outcome"), [case[:2] for case in ON_PURPOSE.values()], ids=ON_PURPOSE)
def test_what_is_read_otherwise_on_purpose_stays_so(sent: str, outcome: str) -> None:
    assert outcomes(sent) == {outcome}


def test_an_event_that_comes_in_one_piece_may_have_two_lines() -> None:
    pieces = f"data: {B}\n\n", f"data: {A[:1]}\rdata: {A[1:]}\n\n", END
    assert reply(*(part.encode() for part in pieces)).text == "bac"
