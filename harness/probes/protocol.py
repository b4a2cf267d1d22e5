"""Checks the protocol: replies with text, complete streams, correct token counts, stop sequences, errors with a status.

Many other checks would fail on a server whose replies have no text, repeat the prompt, are sometimes empty, or end
without a finish reason. They are then untested (`findings.observe`), and only `FIRST_CHECKS` and `LAST_CHECKS`
report the fault.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter

from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.core.number_text import count_noun
from harness.core.sanitize import quoted
from harness.probes.findings import (
    EMPTY,
    FINISHED,
    MAX_LOST,
    REPLY_TEXT,
    Check,
    Observation,
    broken_stream,
    fails,
    passes,
    too_slow,
    untested,
    warns,
)
from harness.probes.requests import Inquiry, Refused, is_echo, text_of
from harness.probes.tested_server import LONG, PROMPTS, STORY, Subject

ROUNDS = 5
"""Number of times a greedy request is repeated when batching may have changed its text."""

TRIED = 3
"""Number of prompts that are tried in turn until a reply can show the fault: a weak model may write nothing but
periods.
"""

MIN_DISTINCT = 4
"""Minimum number of different characters in a reply for it to show a lost piece of a stream."""

MISSPELLED = "no-such-model-of-the-probe"
"""A model name that no server has."""

REPLACED = "\ufffd"
"""The character that a decoder substitutes for bytes that it cannot decode."""

COPIED = (
    "Zeile 1: \\frac{a}{b} + \\sqrt{2}\n\n\tx = \"y\"; // 100 %\nprint('a\\nb')\n"
    "- naïve café, 日本語, здравствуй, 🙂\n\n    indented <b>&amp;</b>\n"
)
"""Text to copy, with line breaks, tabs, backslashes, quotes, HTML markup, and characters of one to four bytes."""

COPIES = 2
"""Number of times `COPIED` occurs in the text that the model has to copy."""

COPY_TOKENS = 800
"""Maximum number of new tokens of the reply that copies the text."""

FLANK = 4
"""Number of characters that must be equal before and after a piece of text that a stream changed."""

MAX_PIECE = 4
"""Longest changed piece, in characters."""

MIN_CHANGES = 2
"""Minimum number of identical changes that count against a stream; batching may cause a single one."""

TOKENS = 12
"""Number of new tokens of each extra stream that is requested to count finished streams."""

MIN_STREAMS = 8
"""Minimum number of streams on which a server is judged; if earlier checks have requested fewer, more are requested."""

MIN_REPLIES = 24
"""Minimum number of replies among which empty ones are counted; if earlier checks have requested fewer, more are
requested.
"""

MIN_EMPTY, MAX_EMPTY = 2, 0.01
"""Empty replies fail the check if there are at least two and they exceed this fraction; each one costs a score a
sample.
"""

MIN_CUT = 2
"""Minimum number of unfinished streams that invalidates a score; a single one may be chance."""


def _streaming(subject: Subject) -> Observation:
    """Check that a greedy stream equals the non-streamed reply to the same request in text, reasoning and
    finish_reason.
    """
    for text in PROMPTS[:TRIED]:
        seen, reply = _stream_beside_whole(subject, text)
        if seen.outcome != "pass" or len(set(reply)) >= MIN_DISTINCT:
            return seen
    return untested(seen.sent, f"all {TRIED} replies repeat a few characters, so missing text could not be detected")


def _stream_beside_whole(subject: Subject, prompt: str) -> tuple[Observation, str]:
    """Compare the streamed and non-streamed replies to one prompt; return the outcome and the non-streamed reply ("" if
    the stream failed).
    """
    inquiry = Inquiry(prompt, {"max_tokens": LONG, "temperature": 0})
    sent = f"one greedy request for {LONG} tokens, streamed and non-streamed"
    streams: list[tuple[str, str | None]] = []
    wholes: list[tuple[str, str | None]] = []
    for _ in range(ROUNDS):  # Batching may change greedy text, so one equal pair is enough.
        (streamed,) = subject.streamed([inquiry])
        if isinstance(streamed, RequestFailed):
            return broken_stream(sent, streamed), ""
        whole = subject.unstreamed(inquiry)
        streams.append((_complete(text_of(streamed)), streamed.finish_reason))
        wholes.append((_complete(whole.reasoning_and_text), whole.finish_reason))
        if set(streams) & set(wholes):
            notes = f"; noted: {', '.join(streamed.notes)}" if streamed.notes else ""
            received = f"{len(wholes[-1][0])} characters, identical in the streamed and non-streamed replies{notes}"
            return passes(sent, received), wholes[-1][0]
    if len(set(wholes)) == ROUNDS:
        differ = f"{ROUNDS} non-streamed replies to the same greedy request all differ"
        return untested(sent, f"{differ}, so streams cannot be compared with them"), wholes[-1][0]
    theirs, ours = quoted(str(streams[-1])), quoted(str(wholes[-1]))
    received = f"the streamed reply contains {theirs}, but the non-streamed reply contains {ours}"
    return fails(sent, received), wholes[-1][0]


def _usage(subject: Subject) -> Observation:
    """Check that the server counts the tokens of a reply correctly, both streamed and non-streamed."""
    sent = f"a chat request for {LONG} tokens, streamed and non-streamed, with log-probabilities"
    streamed, whole = subject.greedy_stream, subject.greedy_reply
    usage = whole.usage
    if usage.completion_tokens is None or usage.prompt_tokens is None:
        return warns(sent, "the non-streamed reply reports no usage")
    if isinstance(streamed, RequestFailed):
        return untested(sent, f"the stream failed: {streamed.message}")
    if streamed.usage.completion_tokens is None:
        return warns(sent, "non-streamed replies report usage, but streamed replies do not")
    if miscount := _miscount(subject):
        # If the model ended the reply, only log-probabilities show how many tokens there were.
        ended = whole.finish_reason == "stop" and not whole.tokens and usage.completion_tokens < LONG
        return (untested if ended else warns)(sent, miscount)
    counts = f"{usage.prompt_tokens} prompt tokens and {usage.completion_tokens} new tokens"
    return passes(sent, f"{counts}, streamed and non-streamed")


def _miscount(subject: Subject) -> str:
    """Why the numbers of new tokens that the server reports are unreliable; empty if they agree with the replies,
    or if the server reports none.

    They agree if a reply has that many log-probabilities or, on a server without log-probabilities, ends at
    max_tokens according to the count; and if a stream of the same text reports the same number. Raises `Refused`.
    """
    whole, stream = subject.greedy_reply, subject.greedy_stream
    stated = whole.usage.completion_tokens
    if stated is None:
        return ""
    n_shown = len(whole.tokens)
    # Some servers count the end-of-turn token, which is not in the text or its log-probabilities.
    counted = stated - (1 if whole.finish_reason == "stop" else 0)
    if n_shown and not counted <= n_shown <= stated:
        return f"usage reports {stated} completion tokens, but the reply has {n_shown}"
    if not n_shown and stated != LONG:
        return (
            f"usage reports {stated} completion tokens for a reply with max_tokens {LONG} and finish_reason "
            f"{quoted(str(whole.finish_reason))}; without log-probabilities, the true number is unknown"
        )
    in_stream = stream.usage.completion_tokens if isinstance(stream, Reply) else None
    # Batching may change the text of a reply, and thus its number of tokens.
    same_text = text_of(stream).rstrip("\ufffd") == whole.reasoning_and_text.rstrip("\ufffd")
    if same_text and in_stream not in (None, stated):
        theirs = f"the non-streamed reply with the same text reports {stated}"
        return f"the stream reports {in_stream} new tokens, but {theirs}"
    return ""


def _stop(subject: Subject) -> Observation:
    """Repeat the greedy reply with one of its words as the stop sequence: the reply must end before that word."""
    for prompt in PROMPTS[:TRIED]:
        text = subject.chat(prompt).text
        # The word is taken from a later part of the reply: stopping at its beginning would leave nothing to compare. A
        # long word is preferred, since it is rarer.
        later = text[len(text) // 3 :]
        if words := re.findall(r"\w{4,}", later) or re.findall(r"\w{2,}", later):
            break
    else:
        return untested(
            "the greedy reply, with one of its own words as the stop sequence",
            "the reply contains no word to use as a stop sequence",
        )
    word = words[0]
    sent = f"the greedy reply, with stop [{quoted(word)!r}]"
    expected = text[: text.index(word)].strip()
    for _ in range(ROUNDS):
        reply = subject.chat(prompt, stop=[word])
        if word in reply.text:
            return fails(sent, f"the reply continues past the stop sequence: {quoted(reply.text)!r}")
        if reply.text.strip() == expected:
            if reply.finish_reason != "stop":
                reason = quoted(str(reply.finish_reason))
                return fails(sent, f"the reply ends at the stop sequence, but its finish_reason is {reason!r}")
            return passes(sent, "the reply ends before the stop sequence, with finish_reason stop")
    return untested(sent, f"the reply varies: {quoted(reply.text)!r}")


def _model_name(subject: Subject) -> Observation:
    """Request a misspelled model name: a server that answers may serve any model under any name."""
    sent = f"the model name {MISSPELLED!r}"
    try:
        answer = subject.chat("Hello", model=MISSPELLED, max_tokens=1)
    except Refused as refused:
        if 400 <= refused.status < 500:
            subject.chat("Hello", max_tokens=1)  # a server that also rejects this has not rejected the name
            return passes(sent, quoted(refused.sentence))
        return warns(sent, quoted(refused.sentence))
    received = f"a reply from {quoted(answer.model or 'an unnamed model')!r}: the server accepts any model name"
    return warns(sent, received)


def changes(stream: str, whole: str) -> Counter[tuple[str, str]]:
    """Return the characters that a server changed when streaming: (piece of the non-streamed reply, piece of the stream
    in its place) → number of these changes.

    stream, whole: the streamed and the non-streamed reply to the same request. A different word does not count, because
    batching may cause it, and all text after it then differs. So a change counts only if it is short, is surrounded by
    equal text, and replaces punctuation, spaces or non-ASCII characters.
    """
    counts = Counter[tuple[str, str]]()
    blocks = difflib.SequenceMatcher(None, whole, stream, autojunk=False).get_opcodes()
    # A block turns whole[start:end] into stream[first:last].
    for number, (kind, start, end, first, last) in enumerate(blocks):
        # A difference at an end of the reply does not count, since replies may be trimmed there.
        if kind == "equal" or not 0 < number < len(blocks) - 1:
            continue
        short = end - start <= MAX_PIECE and last - first <= MAX_PIECE
        neighbors = blocks[number - 1], blocks[number + 1]
        between_equals = all(block[0] == "equal" and block[2] - block[1] >= FLANK for block in neighbors)
        # The piece of the non-streamed reply decides whether words changed, since a stream may spell a mark with
        # letters, such as &lt; for <.
        piece = whole[start:end] or stream[first:last]
        holds_words = any(c.isascii() and c.isalnum() for c in piece)
        if short and between_equals and not holds_words:
            counts[whole[start:end], stream[first:last]] += 1
    return counts


def _copied(subject: Subject) -> Observation:
    """Check that no character is lost: the model copies a text with many kinds of characters, once streamed and once
    not.
    """
    text = COPIED * COPIES
    sent = (
        f"a {len(text)}-character text to copy, with line breaks, backslashes and accented characters, both streamed "
        "and non-streamed"
    )
    inquiry = Inquiry(f"Copy this text, and write nothing else: {text}", {"max_tokens": COPY_TOKENS, "temperature": 0})
    stream = text_of(subject.stream(inquiry))
    whole, again = (subject.unstreamed(inquiry).reasoning_and_text for _ in range(2))
    if not whole:
        return untested(sent, "the reply is empty")
    frequent = [(pair, n) for pair, n in changes(stream, whole).items() if n >= MIN_CHANGES]
    # If two non-streamed replies also differ by such changes, batching causes them, not streaming.
    if not frequent or changes(again, whole):
        n = sum(not (c.isascii() and c.isprintable()) or c == "\\" for c in stream)
        if n < MIN_CHANGES:
            why = f"the model did not copy the text: only {n} of its {len(stream)} characters are special"
            return untested(sent, why)
        return passes(sent, f"{len(stream)} characters ({n} special), all unchanged in the stream")
    (lost, put), n = max(frequent, key=lambda item: item[1])
    received = f"the streamed reply has {put!r} where the non-streamed reply has {quoted(repr(lost))} ({n} times)"
    return fails(sent, received)


def _complete(text: str) -> str:
    """The text without a final character that max_tokens cut: some servers omit it, others send `REPLACED`."""
    return text.rstrip(REPLACED)


# ---- whether there are replies at all


def _reply_text(subject: Subject) -> Observation:
    """Examine one greedy reply, streamed and non-streamed: it must have text, which must not be the prompt."""
    sent = f"a short story prompt with max_tokens {LONG}, non-streamed and streamed"
    whole, stream = subject.greedy_reply.reasoning_and_text, subject.greedy_stream
    streamed = text_of(stream)
    if is_echo(whole, STORY) and (is_echo(streamed, STORY) or isinstance(stream, RequestFailed)):
        return fails(sent, f"the reply is the prompt itself: {quoted(whole)!r}")
    if unread := subject.server.unread:
        contains = "also contains" if whole.strip() or streamed.strip() else "contains no"
        return warns(sent, f"{unread}; the reply {contains} other text")
    if isinstance(stream, RequestFailed) and stream.kind == "timeout":
        return too_slow(sent, stream.message)
    if not whole.strip() and not streamed.strip():
        return untested(sent, "no text: either the reply is empty or the server hides the reasoning at its beginning")
    return passes(sent, f"text: {quoted((whole or streamed)[:60])!r}")


def _finished_streams(subject: Subject) -> Observation:
    """Count the probe's streams that ended without a finish reason; if there are too few streams, request more."""
    tally = subject.server.tally
    n_more = MIN_STREAMS - tally["stream"]
    if n_more > 0:
        subject.streamed([Inquiry(text, {"max_tokens": TOKENS, "temperature": 0}) for text in PROMPTS[:n_more]])
    n, n_cut = tally["stream"], tally["cut"]
    sent = f"the {count_noun(n, 'stream')} that the probe requested one at a time"
    if not n:
        return untested(sent, "no stream received a response")
    if not n_cut:
        return passes(sent, "all streams ended with a finish reason")
    received = f"{n_cut} of {count_noun(n, 'stream')} ended without a finish reason"
    return fails(sent, received) if n_cut >= MIN_CUT and n_cut > MAX_LOST * n else warns(sent, received)


def _empty_replies(subject: Subject) -> Observation:
    """Count the probe's empty replies to prompts that got a reply with text at another time; if there are too few
    replies, request more.
    """
    server = subject.server
    n_more = MIN_REPLIES - server.n_replies
    if n_more > 0:
        # Each prompt is sent several times, since only another reply shows that an empty one was not the model's
        # choice.
        texts = [PROMPTS[i % len(PROMPTS)] for i in range(n_more)]
        subject.streamed([Inquiry(text, {"max_tokens": TOKENS, "temperature": 0}) for text in texts])
    n, n_lost = server.n_replies, server.n_lost
    sent = f"the {count_noun(n, 'chat reply', 'chat replies')} that have more than one token, requested one at a time"
    if not n:
        return untested(sent, "no reply had more than one token")
    if not n_lost:
        return passes(sent, "no empty reply to a prompt that produced text in other requests")
    otherwise = "although the same prompts produced text in other requests"
    received = f"{n_lost} of {n} were empty with finish_reason `stop`, {otherwise}"
    return fails(sent, received) if n_lost >= MIN_EMPTY and n_lost > MAX_EMPTY * n else warns(sent, received)


CHECKS = (
    Check(
        name="streaming", group="protocol", look=_streaming, by_text=True,
        why="Runs use streaming, so any text dropped from a stream is also missing from the graded answer.",
        fix="Look for a proxy or a reasoning parser that drops events. Until it is fixed, request non-streamed "
"replies.",
    ),
    Check(
        name="usage", group="protocol", look=_usage,
        why="Lengths, budgets and prices are computed from the server's token counts.",
        fix="Enable usage reporting on the server, including for streams. Without it, budgets and costs assume the "
        "maximum tokens for each reply, scores do not include lengths, and run progress counts stream events "
        "instead. If the counts are wrong, ask the provider; any bill based on them will also be wrong.",
    ),
    Check(
        name="stop sequences", group="protocol", look=_stop, by_text=True,
        why="Benchmarks with stop sequences grade only the text before the stop sequence.",
        fix="Use a server that respects `stop`, or a card without stop sequences.",
    ),
    Check(
        name="model name", group="protocol", look=_model_name,
        why="A server that accepts any model name may serve a different model than the one it reports.",
        fix="Check that the model name in the server's replies is the one that you want.",
    ),
    Check(
        name="copied text", group="protocol", look=_copied, by_text=True, quick=False, tokens=1_500,
        why="Runs use streaming; if a stream drops backslashes or line breaks, LaTeX, code and answers are corrupted.",
        fix="Look for a proxy that decodes each chunk separately. Until it is fixed, request non-streamed replies.",
    ),
)  # fmt: skip

FIRST_CHECKS = (
    Check(
        name=REPLY_TEXT, group="protocol", look=_reply_text,
        why="Only text in the reply fields `content`, `reasoning` and `reasoning_content` is read and graded.",
        fix="If the reply repeats the prompt, check whether a gateway or test server is responding instead. If a field "
        "is not read, ask the provider to use one of the supported fields, or start the engine with the model's "
        "reasoning parser.",
    ),
)  # fmt: skip

LAST_CHECKS = (
    Check(
        name=FINISHED, group="protocol", look=_finished_streams, tokens=280,
        why="When a stream breaks, the run retries the reply, pays for every attempt, and may still lose the sample.",
        fix="Look for a proxy that limits the duration or size of a reply, or ask the provider.",
    ),
    Check(
        name=EMPTY, group="protocol", look=_empty_replies, tokens=0,
        why="An empty reply with finish_reason `stop` counts as finished, so it is graded as wrong and not retried.",
        fix="Ask the provider why replies are empty, or look for a proxy or content filter that removes the text.",
    ),
)  # fmt: skip
