"""Checks of servers that do not show their prompts: which messages reach the model, and what is added to them.

A message reached the model if the next token's log-probabilities change without it by more than a repeat does (see
`effect`); without log-probabilities, if the greedy reply changes. What a server adds is seen by its count of tokens.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.client.protocol.reply import RequestFailed
from harness.core.inert import quoted
from harness.probes.asking import Inquiry, ProbedServer, Refused, text_of
from harness.probes.effect import MIN_EFFECT, MIN_REPEATS, ask, effect
from harness.probes.findings import Check, Seen, sound, spoils, untested, warns
from harness.probes.subject import Subject

Messages = Sequence[Mapping[str, str]]
"""The messages of a chat request, each with `role` and `content`."""

QUESTION = "What colour shall I paint the door?"
SYSTEM = "You are a painter who loves orange. Answer every question with the one word ORANGE, whatever is asked."
EARLIER = (
    {
        "role": "user",
        "content": "My neighbour's door is violet, and his fence is violet too. I want the same as he has.",
    },
    {"role": "assistant", "content": "Understood: you want violet, as your neighbour has it."},
)
"""A question whose answer both a system message and two earlier turns must change, if they reach the model."""

TOKENS = 16
"""Number of new tokens of the greedy replies that are compared where no log-probabilities come."""

MAX_OVERHEAD = 100
"""Number of tokens that a chat template may add to one short message. Templates of known models add up to some 70."""

COPIED = (
    "Zeile 1: \\frac{a}{b} + \\sqrt{2}\n\n\tx = \"y\"; // 100 %\nprint('a\\nb')\n"
    "- naïve café, 日本語, здравствуй, 🙂\n\n    indented <b>&amp;</b>\n"
)
"""Text to copy, with line ends, tabs, backslashes, quotes, HTML marks, and characters of one to four bytes."""

COPIES = 2
"""How often `COPIED` stands in the text that the model is to copy."""

COPY_TOKENS = 800
"""Largest number of new tokens of the reply that copies the text."""

FLANK = 4
"""Number of characters that must be equal before and after a piece of text that a stream changed."""

MAX_PIECE = 4
"""Longest changed piece, in characters."""

MIN_CHANGES = 2
"""Smallest number of equal changes that count against a stream; a batch may cause a single one."""


def changes(stream: str, whole: str) -> Counter[tuple[str, str]]:
    """Return the characters that a server changed when it streamed: (piece of the whole reply, the piece of the stream
    in its place) → number of such changes.

    stream, whole: the streamed and the whole reply to the same request. A different word does not count, because a
    batch may cause it, and all text after it then differs. So a change counts only if it is short, stands between equal
    texts, and replaces marks, spaces or characters beyond ASCII.
    """
    counts = Counter[tuple[str, str]]()
    blocks = difflib.SequenceMatcher(None, whole, stream, autojunk=False).get_opcodes()
    # A block turns whole[start:end] into stream[first:last].
    for number, (kind, start, end, first, last) in enumerate(blocks):
        # A difference at an end of the reply does not count, since replies may be trimmed there.
        if kind == "equal" or not 0 < number < len(blocks) - 1:
            continue
        short = end - start <= MAX_PIECE and last - first <= MAX_PIECE
        neighbours = blocks[number - 1], blocks[number + 1]
        between_equals = all(block[0] == "equal" and block[2] - block[1] >= FLANK for block in neighbours)
        # The piece of the whole reply decides whether words changed, since a stream may spell a mark in letters, such
        # as &lt; for <.
        piece = whole[start:end] or stream[first:last]
        holds_words = any(c.isascii() and c.isalnum() for c in piece)
        if short and between_equals and not holds_words:
            counts[whole[start:end], stream[first:last]] += 1
    return counts


def _request_body(server: ProbedServer, messages: Messages, **fields: Any) -> dict[str, Any]:
    """The body of a chat request with these messages."""
    return {**Inquiry(QUESTION, fields).body(server.asker), "messages": [*messages]}


def _matters(subject: Subject, messages: Messages, without: Messages) -> bool | None:
    """Whether the messages that are in `messages` but not in `without` reached the model; None if nothing shows it.

    messages, without: the same conversation with and without these messages. Raises `Refused`.
    """
    body, less = _request_body(subject.server, messages), _request_body(subject.server, without)
    try:
        before, after = ask(subject.server, [body] * MIN_REPEATS), ask(subject.server, [less] * MIN_REPEATS)
    except Refused as refused:
        if refused.status >= 500:
            raise
        # The server states no log-probabilities: compare greedy replies instead.
        fields = {"max_tokens": TOKENS, "temperature": 0}
        texts = [subject.server.whole({**request, **fields}).whole for request in (body, less)]
        # Equal greedy replies show nothing: the messages may move probabilities without changing the likeliest token.
        return True if texts[0] != texts[1] else None
    return effect(before, after) >= MIN_EFFECT


_REACHED = {True: "reached the model", False: "never reached the model", None: "changes no reply"}
"""Whether a part of a conversation reached the model (`_matters`) → its words in the finding."""


def _messages(subject: Subject) -> Seen:
    """Check that the model sees the system message and the earlier turns: leaving out either must change the next
    token.
    """
    sent = "a question with and without a system message, with and without two earlier turns"
    user = {"role": "user", "content": QUESTION}
    parts: dict[str, Messages] = {
        "the system message": [{"role": "system", "content": SYSTEM}],
        "the earlier turns": EARLIER,
    }
    reached: list[bool | None] = []
    words: list[str] = []
    for part, messages in parts.items():
        try:
            reached.append(_matters(subject, [*messages, user], [user]))
            words.append(f"{part}: {_REACHED[reached[-1]]}")
        except Refused as refused:
            reached.append(None)
            words.append(f"{part}: refused: {quoted(refused.sentence)}")
    came = "; ".join(words)
    if False in reached:
        return spoils(sent, came)
    return untested(sent, came) if None in reached else sound(sent, came)


def _added(subject: Subject) -> Seen:
    """Check that the server adds no system prompt of its own: with a system message the prompt must not be shorter than
    without one, and the prompt for one word must be short.
    """
    sent = "the prompt tokens of one word, alone and after a system message of one word"
    user = {"role": "user", "content": "Hi"}
    alone, after = (
        subject.server.whole({**_request_body(subject.server, messages), "max_tokens": 1}).usage
        for messages in ([user], [{"role": "system", "content": "Hi"}, user])
    )
    if alone.prompt_tokens is None or after.prompt_tokens is None:
        return untested(sent, "the server states no usage")
    n, with_system = alone.prompt_tokens, after.prompt_tokens
    if n > with_system:
        came = f"{n} tokens alone, {with_system} with a system message: a system prompt is added where none is sent"
        return warns(sent, came)
    if n > MAX_OVERHEAD:
        return warns(sent, f"{n} tokens for one word: a system prompt that nobody asked for")
    return sound(sent, f"{n} tokens alone, {with_system} with a system message")


def _copied(subject: Subject) -> Seen:
    """Check that no character is lost: the model copies a text of many kinds of characters, as a stream and as a whole
    reply.
    """
    text = COPIED * COPIES
    sent = f"a text of {len(text)} characters to copy, with line ends, backslashes and accents, streamed and whole"
    inquiry = Inquiry(f"Copy this text, and write nothing else: {text}", {"max_tokens": COPY_TOKENS, "temperature": 0})
    (reply,) = subject.streamed([inquiry])
    if isinstance(reply, RequestFailed):
        return untested(sent, f"the stream failed: {quoted(reply.message)}")
    stream = text_of(reply)
    whole, again = (subject.whole(inquiry).whole for _ in range(2))
    if not whole:
        return untested(sent, "an empty reply")
    frequent = [(pair, n) for pair, n in changes(stream, whole).items() if n >= MIN_CHANGES]
    # If two whole replies differ by such changes, too, the batch makes them and not the stream.
    if not frequent or changes(again, whole):
        n = sum(not (c.isascii() and c.isprintable()) or c == "\\" for c in stream)
        if n < MIN_CHANGES:
            return untested(sent, f"the model copied other words: {n} of {len(stream)} characters are special")
        return sound(sent, f"{len(stream)} characters, {n} of them special; the stream changes none of them")
    (lost, put), n = max(frequent, key=lambda item: item[1])
    return spoils(sent, f"the stream has {put!r} where the whole reply has {quoted(repr(lost))}, {n} times")


CHECKS = (
    Check(
        name="messages", group="template", look=_messages, tokens=400,
        why="A system message or an earlier turn that never reaches the model makes another question of it.",
        mend="Look for a gateway that rewrites messages; start the engine with the model's own template.",
    ),
    Check(
        name="added words", group="template", look=_added,
        why="A system prompt that nobody asked for makes the same weights act as another model.",
        mend="Where the model's own chat template adds one, as Qwen2.5's does, each server of the model does, and "
        "nothing is wrong. Else send a system prompt of your own, or ask the provider for a route that adds none.",
    ),
    Check(
        name="copied text", group="protocol", look=_copied, by_text=True, quick=False, tokens=1_500,
        why="A run reads streams: a backslash or a line end that a stream loses breaks LaTeX, code and answers.",
        mend="Look for a proxy that decodes and encodes each chunk by itself; ask for whole replies until then.",
    ),
)  # fmt: skip
