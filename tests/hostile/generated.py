"""Hostile replies made from a number: a sound reply that is bent, framed, begun, ended and paced in drawn ways.

What may come of each is the closed rule of docs/reliability.md: a typed failure, or the reply's own text. A bend that
the rule refuses (tests/client/test_believed.py says which) may come to a failure only.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.testing import (
    CLOSE,
    END,
    RESET,
    STALL,
    Pause,
    Said,
    Step,
    chunk,
    event,
    named,
)
from tests.client.test_believed import BENDS, Lines, right, wire

MODEL = "test-model"
"""As the sound replies of harness/testing.py name it: two models would end a run."""

ESCAPES = b"\x1b]52;c;aGk=\x07\x1b[2J\xc2\x9b31m\xe2\x80\xae"

HEADS: dict[str, bytes] = {
    "plain": b"Content-Type: text/event-stream\r\n",
    "of no type": b"",
    "of a wrong type": b"Content-Type: application/octet-stream\r\n",
    "of a type twice": b"Content-Type: text/event-stream\r\nContent-Type: text/plain\r\n",
    "with escapes": b"Content-Type: text/event-stream\r\nX-Words: " + ESCAPES + b"\r\n",
    "of a hundred fields": b"Content-Type: text/event-stream\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(100)),
    "with a field of 60 kB": b"Content-Type: text/event-stream\r\nX: " + b"y" * 60_000 + b"\r\n",
    "that closes": b"Content-Type: text/event-stream\r\nConnection: close\r\n",
    "with a wait": b"Content-Type: text/event-stream\r\nRetry-After: 86400\r\n",
    "with a cookie": b"Content-Type: text/event-stream\r\nSet-Cookie: a=b\r\n",
    "after a 100": b"",
    "of HTTP 1.0": b"",
    "that claims brotli": b"Content-Type: text/event-stream\r\nContent-Encoding: br\r\n",
    "with a request id of escapes": b"Content-Type: text/event-stream\r\nX-Request-Id: " + ESCAPES + b"\r\n",
}

Frame = Callable[[Sequence[bytes], random.Random], tuple[bytes, list[bytes]]]
"""From the pieces of a body to (a header line, the pieces as they are sent)."""


def _a_chunk_an_event(pieces: Sequence[bytes], _: random.Random) -> tuple[bytes, list[bytes]]:
    return b"Transfer-Encoding: chunked\r\n", [*(chunk(piece) for piece in pieces if piece), END]


def _one_chunk(pieces: Sequence[bytes], _: random.Random) -> tuple[bytes, list[bytes]]:
    return b"Transfer-Encoding: chunked\r\n", [chunk(b"".join(pieces)), END]


def _odd_chunks(pieces: Sequence[bytes], chance: random.Random) -> tuple[bytes, list[bytes]]:
    """Chunks that break events anywhere, with extensions and capitals in their sizes."""
    data, parts = b"".join(pieces), []
    while data:
        n = min(len(data), chance.randint(1, 200))
        parts.append(b"%X;a=%d\r\n%b\r\n" % (n, n, data[:n]))
        data = data[n:]
    return b"Transfer-Encoding: chunked\r\n", [*parts, END]


def _by_length(pieces: Sequence[bytes], _: random.Random) -> tuple[bytes, list[bytes]]:
    return b"Content-Length: %d\r\n" % sum(map(len, pieces)), [*pieces]


def _by_closing(pieces: Sequence[bytes], _: random.Random) -> tuple[bytes, list[bytes]]:
    return b"Connection: close\r\n", [*pieces]


def _too_long(pieces: Sequence[bytes], chance: random.Random) -> tuple[bytes, list[bytes]]:
    return b"Content-Length: %d\r\n" % (sum(map(len, pieces)) + chance.randint(1, 99)), [*pieces]


def _too_short(pieces: Sequence[bytes], chance: random.Random) -> tuple[bytes, list[bytes]]:
    n = sum(map(len, pieces))
    return b"Content-Length: %d\r\n" % chance.randint(0, n - 1), [*pieces]


def _both(pieces: Sequence[bytes], chance: random.Random) -> tuple[bytes, list[bytes]]:
    header, parts = _a_chunk_an_event(pieces, chance)
    return header + b"Content-Length: 7\r\n", parts


def _wrong_sizes(pieces: Sequence[bytes], chance: random.Random) -> tuple[bytes, list[bytes]]:
    header, parts = _a_chunk_an_event(pieces, chance)
    place = chance.randrange(len(parts) - 1)
    parts[place] = chance.choice((b"zz\r\n", b"-1\r\n", b"fffffffffffffffff\r\n", b"3\r\n", b"\r\n")) + parts[place]
    return header, parts


FRAMES: dict[str, Frame] = {
    "a chunk an event": _a_chunk_an_event,
    "one chunk": _one_chunk,
    "odd chunks": _odd_chunks,
    "a length": _by_length,
    "until it closes": _by_closing,
    "a length that is too long": _too_long,
    "a length that is too short": _too_short,
    "a length and chunks": _both,
    "wrong chunk sizes": _wrong_sizes,
}
SOUND_FRAMES = ("a chunk an event", "one chunk", "odd chunks", "a length", "until it closes")
SOUND_HEADS = ("plain", "that closes", "with a cookie", "of a hundred fields")

ENDS: dict[str, tuple[Step, ...]] = {
    "nothing": (CLOSE,),
    "noise": (b"\x00\xff" * 200, CLOSE),
    "another reply": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}\n", CLOSE),
    "a reset": (RESET,),
    "blank lines": (b"\r\n" * 500, CLOSE),
    "silence": (STALL,),
}


@dataclass(frozen=True)
class Mode:
    """A hostile reply. said: its text and reasoning, which alone it may come to. refused: it may only fail. sound:
    nothing but its bend is wrong, so it must come to its text unless it is refused."""

    name: str
    steps: tuple[Step, ...]
    said: tuple[str, str]
    refused: bool
    sound: bool

    def answer(self) -> Iterator[Step]:
        return iter(self.steps)


def mode(number: int) -> Mode:
    """The hostile reply of this number; each bend comes once in as many numbers as there are bends."""
    chance = random.Random(f"mode {number}")
    bends = sorted(BENDS)
    bend = bends[number % len(bends)] if number % 7 else ""
    lines, text, reasoning = right(chance)
    lines = [line | {"model": MODEL} if isinstance(line, dict) and "model" in line else line for line in lines]
    bent, refused = _bent(bend, lines, chance)
    frame, head = chance.choice(list(FRAMES)), chance.choice(list(HEADS))
    end = "nothing" if frame == "until it closes" else chance.choice(list(ENDS))
    header, parts = FRAMES[frame](wire(bent), chance)
    first = b"HTTP/1.1 100 Continue\r\n\r\n" if head == "after a 100" else b""
    first += b"HTTP/1.0 200 OK\r\n" if head == "of HTTP 1.0" else b"HTTP/1.1 200 OK\r\n"
    sent = _paced([first + HEADS[head] + header + b"\r\n", *parts], chance)
    return Mode(
        name=f"{number}: {bend or 'no bend'}, {frame}, a head {head}, then {end}",
        steps=(*sent, *ENDS[end]),
        said=(text, reasoning),
        refused=refused,
        sound=frame in SOUND_FRAMES and head in SOUND_HEADS and end in ("nothing", "silence"),
    )


PARTS = ("responses", "messages")
"""The APIs whose replies are made of parts."""
BREAKS = ("nothing", "a value of another type", "an early end", "an error inside", "another reply behind")


def mode_of_parts(number: int, api: str) -> Mode:
    """The hostile reply of this number by such an API; each break comes in turn."""
    chance, name = random.Random(f"{api} {number}"), BREAKS[number % len(BREAKS)]
    text = "".join(chance.choices(["4", "2", " so", "\n", "é", "😀", "\\boxed{", "}"], k=chance.randint(3, 30)))
    pieces = list(Said(text).events(api))
    place = chance.randrange(1, len(pieces) - 2)
    match name:
        case "a value of another type":
            kind, _, data = pieces[place].partition(b"\n")
            pieces[place] = kind + b"\n" + event(_retyped(json.loads(data[6:]), chance))
        case "an early end":
            pieces = pieces[:place]
        case "an error inside":
            pieces.insert(
                place, named("error", error={"type": "overloaded_error", "message": ESCAPES.decode("latin-1")})
            )
        case "another reply behind":
            pieces += Said(text[::-1]).events(api)
    header, parts = FRAMES[frame := chance.choice(SOUND_FRAMES)](pieces, chance)
    steps = (*_paced([b"HTTP/1.1 200 OK\r\n" + header + b"\r\n", *parts], chance), CLOSE)
    refused = name in ("an early end", "an error inside")
    return Mode(f"{api} {number}: {name}, {frame}", steps, (text, ""), refused, sound=name == "nothing")


def _retyped(value: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The event with a value in it, at any depth, that is no string and no number any more."""
    inner = value
    while True:
        key = chance.choice(sorted(inner))
        if not isinstance(inner[key], dict) or not inner[key] or chance.random() < 0.3:
            inner[key] = chance.choice([None, [], {}, True, [[7]]])
            return value
        inner = inner[key]


def _bent(name: str, lines: Lines, chance: random.Random) -> tuple[Lines, bool]:
    if not name:
        return lines, False
    bent = BENDS[name](lines, chance)
    return bent.lines, bent.note is None


def _paced(parts: Sequence[bytes], chance: random.Random) -> list[Step]:
    """All at once, a segment a part, or cut anywhere with short silences."""
    way = chance.randrange(3)
    if way == 0:
        return [b"".join(parts)]
    if way == 1:
        return [*parts]
    data, sent = b"".join(parts), list[Step]()
    for at in [*sorted(chance.sample(range(1, len(data)), min(len(data) - 1, 12))), len(data)]:
        begun = sum(len(one) for one in sent if isinstance(one, bytes))
        sent += [data[begun:at], Pause(0.002)]
    return sent
