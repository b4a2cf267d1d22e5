"""Checks that a server refuses what it cannot obey, and says so: parameters out of their bounds, pictures.

A server that accepts such a request silently uses another value, or no picture. That does not show another model, so
these checks warn at most.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

from harness.client.protocol.failures import error_words
from harness.core import codec
from harness.core.errors import ServerError
from harness.core.inert import quoted
from harness.verbs.probe.asking import Inquiry, Refused
from harness.verbs.probe.effect import MIN_EFFECT, MIN_REPEATS, ask, effect
from harness.verbs.probe.findings import Check, Seen, sound, untested, warns
from harness.verbs.probe.subject import Subject
from harness.verbs.probe.tools import TOOLS

ENDS = [" ", "e", "a", "\n"]
"""Stop texts that end a reply after a word at most, since a server may take a negative max_tokens for no limit."""

WRONG: dict[str, dict[str, Any]] = {
    "max_tokens -5": {"max_tokens": -5},
    "temperature 5": {"temperature": 5.0},
    "top_p 7": {"top_p": 7.0},
    "an unknown tool_choice": {"tools": list(TOOLS), "tool_choice": "no-such-choice"},
}
"""A wrong value in words → its request fields. The OpenAI protocol bounds temperature by 2 and top_p by 1."""

PICTURE_SIDE = 32
"""Width and height of the pictures, in pixels; some models take none smaller than 28."""


def picture(red: int, green: int, blue: int) -> str:
    """A PNG of one colour, as an address that holds its data."""

    def part(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    # Each row of a PNG begins with the number of its filter; 0 is none.
    row = b"\0" + bytes((red, green, blue)) * PICTURE_SIDE
    head = struct.pack(">IIBBBBB", PICTURE_SIDE, PICTURE_SIDE, 8, 2, 0, 0, 0)
    data = zlib.compress(row * PICTURE_SIDE)
    content = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", data) + part(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _says_what_is_wrong(body: bytes) -> bool:
    """Whether the body of a refusal is JSON that says what is wrong."""
    try:
        codec.decode(body)
    except codec.DecodeError:
        return False
    return bool(error_words(body))


def _parameters(subject: Subject) -> Seen:
    """Send each wrong value: the server must refuse it with a status of 4xx and a body that says why."""
    sent = f"a request of one word with {', '.join(WRONG)}"
    accepted, unexplained, failed = [], [], []
    for name, fields in WRONG.items():
        common = {"max_tokens": 4, "temperature": 0, "stop": ENDS}
        body = Inquiry("Say yes.", {**common, **fields}).body(subject.server.asker)
        status, content = subject.server.posted(codec.encode(body))
        # Only status 200 is a reply: a redirect counts as a failure.
        if status == 200:
            accepted.append(name)
        elif not 400 <= status < 500:
            failed.append(f"{name} (HTTP {status})")
        elif not _says_what_is_wrong(content):
            unexplained.append(name)
    kinds = (("accepted", accepted), ("no refusal but a failure", failed), ("refused without a reason", unexplained))
    odd = "; ".join(f"{what}: {', '.join(names)}" for what, names in kinds if names)
    return warns(sent, f"{odd}; so another value may stand in for yours") if odd else sound(sent, "each refused")


def _pictures(subject: Subject) -> Seen:
    """Check that the server refuses a picture and says why, or that the colour of a picture changes the reply."""
    sent = "a question about a picture, red and blue"
    bodies = []
    for colour in ((255, 0, 0), (0, 0, 255)):
        body = Inquiry("", {"max_tokens": 1, "temperature": 0}).body(subject.server.asker)
        question = {"type": "text", "text": "Which colour has this picture? Answer with one word."}
        content = [question, {"type": "image_url", "image_url": {"url": picture(*colour)}}]
        bodies.append({**body, "messages": [{"role": "user", "content": content}]})
    # The first request is posted as bytes, because its HTTP status and the reason of a refusal are needed.
    red, blue = bodies
    try:
        status, reply = subject.server.posted(codec.encode(red))
    except ServerError as error:
        return untested(sent, quoted(error.sentence))
    if status >= 500:
        return warns(sent, f"no refusal but a failure: HTTP {status}")
    if status != 200:
        if _says_what_is_wrong(reply):
            return sound(sent, f"refused: HTTP {status}: {quoted(error_words(reply))}")
        return warns(sent, f"refused without a reason: HTTP {status}")
    if subject.mixed:
        return untested(sent, subject.mixed)
    try:
        # Two colours, because a server that drops both pictures gets the same request twice.
        moved = effect(ask(subject.server, [red] * MIN_REPEATS), ask(subject.server, [blue] * MIN_REPEATS))
    except Refused as refused:
        return untested(sent, f"accepted; whether the model sees it cannot be seen: {quoted(refused.sentence)}")
    if moved >= MIN_EFFECT:
        return sound(sent, "accepted, and the colour changes the reply: the model reads pictures")
    return warns(sent, "accepted, and the colour changes nothing: pictures are dropped silently")


CHECKS = (
    Check(
        name="refused parameters", group="protocol", look=_parameters, quick=False, tokens=400,
        why="A value that is silently replaced makes a run of another setting than it states.",
        mend="Keep to the bounds of the protocol; a misspelt value is not noticed by this server.",
    ),
    Check(
        name="pictures", group="protocol", look=_pictures, quick=False, tokens=300,
        why="A question that loses its picture is another question.",
        mend="Ask this server no questions with pictures.",
    ),
)  # fmt: skip
