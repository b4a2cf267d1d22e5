"""Checks the protocol: whole streams, true token counts, stop texts, errors with a status."""

from __future__ import annotations

import difflib
import re
from collections import Counter

from harness.client.protocol.reply import RequestFailed
from harness.core.inert import quoted
from harness.probes.asking import Inquiry, Refused, text_of
from harness.probes.findings import Check, Seen, broken_stream, sound, spoils, untested, warns
from harness.probes.subject import LONG, PROMPTS, Subject

ROUNDS = 5
"""How often a greedy request is repeated when a batch may have changed its text."""

TRIED = 3
"""Number of prompts that are tried in turn until a reply can show the fault: a weak model may only write full stops."""

MIN_DISTINCT = 4
"""Smallest number of different characters in a reply that would show a lost piece of a stream."""

MISSPELT = "no-such-model-of-the-probe"
"""A model name that no server has."""

REPLACED = "\ufffd"
"""The character that a decoder writes for bytes that it cannot decode."""

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


def _streaming(subject: Subject) -> Seen:
    """Check that a greedy stream equals the whole reply to the same request: in text, reasoning and finish_reason."""
    for text in PROMPTS[:TRIED]:
        seen, reply = _stream_beside_whole(subject, text)
        if seen.outcome != "sound" or len(set(reply)) >= MIN_DISTINCT:
            return seen
    return untested(seen.sent, f"each of {TRIED} replies repeats a few characters, so nothing would show a lost piece")


def _stream_beside_whole(subject: Subject, prompt: str) -> tuple[Seen, str]:
    """Compare the streamed with the whole reply to one prompt; return the outcome and the whole reply ("" if the stream
    failed).
    """
    inquiry = Inquiry(prompt, {"max_tokens": LONG, "temperature": 0})
    sent = f"one greedy request of {LONG} tokens, streamed and whole"
    streams: list[tuple[str, str | None]] = []
    wholes: list[tuple[str, str | None]] = []
    for _ in range(ROUNDS):  # A batch may change greedy text, so one stream that equals one whole reply is enough.
        (streamed,) = subject.streamed([inquiry])
        if isinstance(streamed, RequestFailed):
            return broken_stream(sent, streamed), ""
        whole = subject.whole(inquiry)
        streams.append((_complete(text_of(streamed)), streamed.finish_reason))
        wholes.append((_complete(whole.whole), whole.finish_reason))
        if set(streams) & set(wholes):
            notes = f"; noted: {', '.join(streamed.notes)}" if streamed.notes else ""
            came = f"{len(wholes[-1][0])} characters, the same in stream and whole reply{notes}"
            return sound(sent, came), wholes[-1][0]
    if len(set(wholes)) == ROUNDS:
        came = f"{ROUNDS} whole replies to one greedy request all differ, so a stream cannot be compared with them"
        return untested(sent, came), wholes[-1][0]
    came = f"the stream brought {quoted(str(streams[-1]))}, the whole reply {quoted(str(wholes[-1]))}"
    return spoils(sent, came), wholes[-1][0]


def _usage(subject: Subject) -> Seen:
    """Check that the server counts the tokens of a reply rightly, in a stream and in a whole reply."""
    sent = f"a chat request of {LONG} tokens, streamed and whole, with log-probabilities"
    streamed, whole = subject.greedy_stream, subject.greedy_reply
    usage = whole.usage
    if usage.completion_tokens is None or usage.prompt_tokens is None:
        return warns(sent, "the whole reply states no usage")
    if isinstance(streamed, RequestFailed):
        return untested(sent, f"the stream failed: {streamed.message}")
    if streamed.usage.completion_tokens is None:
        return warns(sent, "whole replies state how many tokens they used, but streams do not")
    if subject.miscount:
        # Where the reply ends by itself, only log-probabilities show how many tokens came.
        ended = whole.finish_reason == "stop" and not whole.tokens and usage.completion_tokens < LONG
        return (untested if ended else warns)(sent, subject.miscount)
    return sound(
        sent,
        f"{usage.prompt_tokens} prompt tokens and {usage.completion_tokens} new tokens, in the stream and in the whole "
        "reply",
    )


def _stop(subject: Subject) -> Seen:
    """Repeat the greedy reply with one of its words as stop text: the reply must end before that word."""
    for prompt in PROMPTS[:TRIED]:
        text = subject.chat(prompt).text
        # The word is taken from the later part: a stop at the reply's beginning would leave nothing to compare. A long
        # word is preferred, since it is rarer.
        later = text[len(text) // 3 :]
        if words := re.findall(r"\w{4,}", later) or re.findall(r"\w{2,}", later):
            break
    else:
        return untested("the greedy reply, with a word of it as stop text", "the reply holds no word to stop at")
    word = words[0]
    sent = f"the greedy reply, with stop [{quoted(word)!r}]"
    expected = text[: text.index(word)].strip()
    for _ in range(ROUNDS):
        reply = subject.chat(prompt, stop=[word])
        if word in reply.text:
            return spoils(sent, f"the reply goes on past the stop text: {quoted(reply.text)!r}")
        if reply.text.strip() == expected:
            if reply.finish_reason != "stop":
                return spoils(
                    sent,
                    f"the reply ends at the stop text, but says finish_reason "
                    f"{quoted(str(reply.finish_reason))!r} instead of stop",
                )
            return sound(sent, "the reply ends before the stop text, with finish_reason stop")
    return untested(sent, f"the reply changes from time to time: {quoted(reply.text)!r}")


def _model_name(subject: Subject) -> Seen:
    """Ask for a misspelt model name: a server that answers may serve any model under any name."""
    sent = f"the model name {MISSPELT!r}"
    try:
        answer = subject.chat("Hello", model=MISSPELT, max_tokens=1)
    except Refused as refused:
        if 400 <= refused.status < 500:
            subject.chat("Hello", max_tokens=1)  # a server that refuses this, too, has not refused the name
            return sound(sent, quoted(refused.sentence))
        return warns(sent, quoted(refused.sentence))
    return warns(
        sent, f"a reply, by {quoted(answer.model or 'a model without a name')!r}: the server answers to any model name"
    )


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


def _complete(text: str) -> str:
    """The text without a last character that max_tokens cut: some servers leave it out, others send `REPLACED`."""
    return text.rstrip(REPLACED)


CHECKS = (
    Check(
        name="streaming", group="protocol", look=_streaming, by_text=True,
        why="A run reads streams: text that a stream drops is missing from the answer that is graded.",
        mend="Look for a proxy or a reasoning parser that drops events; ask for whole replies until it is mended.",
    ),
    Check(
        name="usage", group="protocol", look=_usage,
        why="Lengths, budgets and prices are computed from the server's token counts.",
        mend="Switch on usage at the server, also in streams. Without it, a budget and the cost count each reply "
        "with the most tokens possible, a score states no lengths, and the progress of a run counts stream events. "
        "Where counts are false, ask the provider: a bill by them is false, too.",
    ),
    Check(
        name="stop texts", group="protocol", look=_stop, by_text=True,
        why="Benchmarks with stop texts grade the text before the stop text.",
        mend="Use a server that obeys `stop`, or a card without stop texts.",
    ),
    Check(
        name="model name", group="protocol", look=_model_name,
        why="A server that answers to any model name may serve another model than the reported one.",
        mend="Compare the model name in the server's replies with the model that you mean.",
    ),
    Check(
        name="copied text", group="protocol", look=_copied, by_text=True, quick=False, tokens=1_500,
        why="A run reads streams: a backslash or a line end that a stream loses breaks LaTeX, code and answers.",
        mend="Look for a proxy that decodes and encodes each chunk by itself; ask for whole replies until then.",
    ),
)  # fmt: skip
