"""Streams that send a text twice, and bytes and lines that the standard of event streams reads.

For: harness.client.protocol.repeated, harness.client.protocol.sse.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from harness.client.apis.chat import CHAT
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.repeated import AS_SENT, ONCE, without_repetition
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.core.reply_notes import CUMULATIVE, ODD_BYTES
from tests.budget import examples

Event = dict[str, Any]


def chunk(finish: str | None = None, **delta: str) -> Event:
    return {"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def lines(events: Iterable[Event]) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"


def read(body: bytes) -> Reply:
    parser = ReplyParser(CHAT, started=0.0, started_utc=1e9, max_body_bytes=1 << 26)
    parser.feed(body, 1.0)
    return parser.finish()


# ---- texts sent twice


WORDS = ["So", "the", "answer", "is", "seven", "divides", ",", "we", r"\boxed{42}", ".", "答案", "é", "1", "2"]


def words(rng: random.Random) -> list[str]:
    """Pieces of a text that is not itself a repetition: its first words occur only once."""
    body = [f" {rng.choice(WORDS)}" for _ in range(rng.randint(6, 40))]
    return ["Proof", f" {rng.randrange(10**6)}", ":", *body]


def sent(form: str, pieces: Sequence[str], field: str, rng: random.Random) -> tuple[list[Event], str]:
    """The events of a stream that sends a text again in this form, and the text if all of it were the model's."""
    head, events = chunk(role="assistant", content=""), [chunk(**{field: piece}) for piece in pieces]
    whole = "".join(pieces)
    if form == "last":
        return [head, *events, chunk("stop", **{field: whole})], whole * 2
    if form == "restart":
        n = rng.randint(3, len(pieces))
        return [head, *events[:n], head, *events, chunk("stop")], "".join(pieces[:n]) + whole
    if form == "each":
        return [head, *(each for each in events for _ in (0, 1)), chunk("stop")], "".join(p * 2 for p in pieces)
    choice = {"index": 0, "message": {"role": "assistant", field: whole}, "finish_reason": "stop"}
    return [head, *events, chunk() | {"choices": [choice]}], whole


def usage(n: int) -> Event:
    return {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": n, "total_tokens": 9 + n}}


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
@pytest.mark.parametrize("form", ["last", "message", "restart", "each"])
@pytest.mark.parametrize("n_special", [0, 1])
def test_a_text_sent_twice_is_stored_once_if_the_count_says_so(form: str, field: str, n_special: int) -> None:
    rng = random.Random(f"{form} {field} {n_special}")
    for _ in range(examples(300)):
        pieces = words(rng)
        events, doubled = sent(form, pieces, field, rng)
        got = read(lines([*events, usage(len(pieces) + n_special)]))
        assert ((got.reasoning if field == "reasoning_content" else got.text), ONCE in got.notes) == (
            "".join(pieces),
            True,
        ), pieces
        # Without a count nothing decides: a whole message is one by its form, and the rest is stored as sent.
        got = read(lines(events))
        once = form == "message"
        assert (got.reasoning if field == "reasoning_content" else got.text) == ("".join(pieces) if once else doubled)
        if len(doubled) - len("".join(pieces)) >= 12 or once:
            assert {ONCE, AS_SENT} & {*got.notes} == ({ONCE} if once else {AS_SENT})


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
def test_a_model_that_repeats_itself_keeps_its_words(field: str) -> None:
    """The twins: the same texts, all of whose events are tokens by the server's count."""
    rng = random.Random(field)
    for n in range(examples(300)):
        pieces = words(rng)
        again = [pieces, pieces[: rng.randint(3, len(pieces))], [" ", *pieces]][n % 3]
        said = [*again, *pieces] if n % 3 < 2 else [*pieces, *again]
        if n % 4 == 3:
            said = [piece for piece in pieces for _ in (0, 1)]
        tokens = len(said) + rng.randint(0, 1)
        got = read(lines([*(chunk(**{field: piece}) for piece in said), chunk("stop"), usage(tokens)]))
        assert (got.reasoning if field == "reasoning_content" else got.text) == "".join(said)
        assert not {ONCE, AS_SENT} & {*got.notes}, said


@pytest.mark.parametrize(
    "said",
    [
        ["6"] * 10,
        ["12", "12"] * 6,
        ["ha", " ha", " ha", " ha"],
        ["\n"] * 8 + ["x"],
        ["word "] * 600 + ["7"],
        list("6666666666"),
    ],
)
@pytest.mark.parametrize("counted", [True, False])
def test_digits_and_words_that_repeat_are_an_answer(said: list[str], counted: bool) -> None:
    events = [*(chunk(content=piece) for piece in said), chunk("stop"), *([usage(len(said))] if counted else [])]
    got = read(lines(events))
    assert (got.text, ONCE in got.notes) == ("".join(said), False)


def test_a_message_that_differs_fails_and_a_growing_text_is_read_once() -> None:
    parts = [chunk(content=piece) for piece in ("So", " it", " is", " 42.")]
    other = chunk() | {"choices": [{"index": 0, "message": {"content": "So it is 43."}, "finish_reason": "stop"}]}
    with pytest.raises(RequestFailed, match="a full message that differs from the parts before it"):
        read(lines([*parts, other]))
    grown = [chunk(content="So it is 42."[:n]) for n in (2, 5, 8, 12)]
    got = read(lines([*grown, chunk("stop"), usage(4)]))
    assert (got.text, got.notes) == ("So it is 42.", (CUMULATIVE,))


def test_a_long_text_is_searched_at_a_few_places() -> None:
    for text in ("a" * 400_000, "ab" * 200_000, ("x" * 999 + "y") * 400):
        assert without_repetition([text], ["a"], [text], 300_000, 300_000) == ([text], "")


# ---- bytes and lines

ODD = (b"\xff", b"\xc3", b"\xa9", b"\xe9", b"\xc0\xaf", b"\xed\xa0\x80", b"\x01", b"\x1f", b"\t", b"\xf0\x9f")


def is_sound(piece: bytes) -> bool:
    """Whether the event is UTF-8 without control characters: two odd bytes may be the two of one character."""
    try:
        json.loads(piece[6:].decode().replace("\t", " "))
    except ValueError:
        return False
    return True


def test_bytes_that_are_not_text_are_replaced_as_the_standard_says() -> None:
    rng = random.Random(128)
    for _ in range(examples(400)):
        pieces = [b"data: %s\n\n" % json.dumps(chunk(content=f" {word}")).encode() for word in words(rng)]
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(pieces))
            start = pieces[at].index(b'"content": "') + len(b'"content": "')
            pieces[at] = pieces[at][:start] + rng.choice(ODD) + pieces[at][start:]
        # The oracle: Python's own decoder and its lenient JSON.
        values = [json.loads(piece[6:].decode("utf-8", "replace"), strict=False) for piece in pieces]
        expected = "".join(value["choices"][0]["delta"]["content"] for value in values)
        got = read(b"".join(pieces) + lines([chunk("stop")]))
        assert (got.text, got.notes) == (expected, () if all(map(is_sound, pieces)) else (ODD_BYTES,))


@pytest.mark.parametrize("named", [True, False])
def test_several_values_in_a_line_are_several_events(named: bool) -> None:
    rng = random.Random(named)
    for _ in range(examples(200)):
        pieces = words(rng)
        values = [json.dumps(each) for each in (*(chunk(content=piece) for piece in pieces), chunk("stop"))]
        body = ""
        while values:
            n = rng.randint(1, 4)
            body += f"{'data: ' if named else ''}{rng.choice(['', ' ']).join(values[:n])}\n{chr(10) * named}"
            values = values[n:]
        got = read(body.encode())
        assert (got.text, got.finish_reason) == ("".join(pieces), "stop")


@pytest.mark.parametrize(
    "bad", [b'data: {"choices": [\n\n', b"data: {} junk\n\n", b"\xff\xfe\n\n", b'data: {"a": 1}} \n\n']
)
def test_what_is_no_json_still_fails(bad: bytes) -> None:
    with pytest.raises(RequestFailed):
        read(lines([chunk(content="4")]).replace(b"data: [DONE]\n\n", b"") + bad + lines([chunk("stop")]))


def test_lines_of_json_that_break_off_are_not_a_reply() -> None:
    whole = b"\n".join(json.dumps(each).encode() for each in (chunk(content="42"), chunk("stop")))
    assert read(whole).text == "42"
    for end in (len(whole) - 1, len(whole) - 40):
        with pytest.raises(RequestFailed):
            read(whole[:end])
