"""Checks that replies come at all: with a text that is not the prompt, each time, and with a finish reason at a
stream's end.

Many other checks look wrong behind such a fault. They are then untested (`findings.unless_misled`), and only these
three checks name it.
"""

from __future__ import annotations

from harness.client.protocol.reply import RequestFailed
from harness.core.inert import quoted
from harness.core.nouns import count_noun
from harness.probes.asking import Inquiry, is_echo, text_of
from harness.probes.findings import (
    EMPTY,
    FINISHED,
    MAX_LOST,
    REPLY_TEXT,
    Check,
    Seen,
    sound,
    spoils,
    too_slow,
    untested,
    warns,
)
from harness.probes.subject import LONG, PROMPTS, STORY, Subject

TOKENS = 12
"""Number of new tokens of each stream that is sent for the count of finished streams."""

MIN_STREAMS = 8
"""Smallest number of streams by which a server is judged; if the checks before have sent fewer, more are sent."""

MIN_REPLIES = 24
"""Smallest number of replies among which empty ones are counted; if the checks before have sent fewer, more are sent.
"""

MIN_EMPTY, MAX_EMPTY = 2, 0.01
"""Empty replies spoil a score if they are at least two and more than this fraction: each lowers a score by a sample."""

MIN_CUT = 2
"""Smallest number of unfinished streams that spoil a score; a single one may be chance."""


def _reply_text(subject: Subject) -> Seen:
    """Look at the text of one greedy reply, whole and as a stream: it must have one, and not be the prompt."""
    sent = f"a prompt for a short story, whole and as a stream of {LONG} tokens"
    whole, stream = subject.greedy_reply.whole, subject.greedy_stream
    streamed = text_of(stream)
    if is_echo(whole, STORY) and (is_echo(streamed, STORY) or isinstance(stream, RequestFailed)):
        return spoils(sent, f"the reply is the prompt itself: {quoted(whole)!r}")
    if unread := subject.server.unread:
        text = "the rest of the reply has text" if whole.strip() or streamed.strip() else "no other text came"
        return warns(sent, f"{unread}; {text}")
    if isinstance(stream, RequestFailed) and stream.kind == "timeout":
        return too_slow(sent, stream.message)
    if not whole.strip() and not streamed.strip():
        return untested(sent, "no text came: the reply is empty, or the server hides the reasoning that came first")
    return sound(sent, f"text came: {quoted((whole or streamed)[:60])!r}")


def _finished_streams(subject: Subject) -> Seen:
    """Count the streams of the probe that ended without a finish reason; too few are made more."""
    tally = subject.server.tally
    n_more = MIN_STREAMS - tally["stream"]
    if n_more > 0:
        subject.streamed([Inquiry(text, {"max_tokens": TOKENS, "temperature": 0}) for text in PROMPTS[:n_more]])
    n, n_cut = tally["stream"], tally["cut"]
    sent = f"the {count_noun(n, 'stream')} that the probe sent one by one"
    if not n:
        return untested(sent, "no stream was answered")
    if not n_cut:
        return sound(sent, "none of them ended without a finish reason")
    came = f"{n_cut} of {count_noun(n, 'stream')} ended without a finish reason"
    return spoils(sent, came) if n_cut >= MIN_CUT and n_cut > MAX_LOST * n else warns(sent, came)


def _empty_replies(subject: Subject) -> Seen:
    """Count the empty replies of the probe, to prompts that a text answered at another time; too few replies are made
    more.
    """
    server = subject.server
    n_more = MIN_REPLIES - server.n_replies
    if n_more > 0:
        # Each prompt comes several times, since only another reply shows that an empty one is no model's own.
        texts = [PROMPTS[i % len(PROMPTS)] for i in range(n_more)]
        subject.streamed([Inquiry(text, {"max_tokens": TOKENS, "temperature": 0}) for text in texts])
    n, n_lost = server.n_replies, server.n_lost
    sent = f"the {count_noun(n, 'chat reply', 'chat replies')} of more than a token that came one by one"
    if not n:
        return untested(sent, "no such reply came")
    if not n_lost:
        return sound(sent, "none was empty to a prompt that has a text at other times")
    came = f"{n_lost} of {n} came empty with finish_reason stop, though their prompts have a text at other times"
    return spoils(sent, came) if n_lost >= MIN_EMPTY and n_lost > MAX_EMPTY * n else warns(sent, came)


FIRST_CHECKS = (
    Check(
        name=REPLY_TEXT, group="protocol", look=_reply_text, tokens=140,
        why="Only text in the fields `content`, `reasoning` and `reasoning_content` of a reply is read and graded.",
        mend="If the reply is the prompt, look for a gateway or a test server in between. If a field is not read, ask "
        "the provider for one of these fields, or start the engine with the model's reasoning parser.",
    ),
)  # fmt: skip

LAST_CHECKS = (
    Check(
        name=FINISHED, group="protocol", look=_finished_streams, tokens=280,
        why="A run asks again for a reply whose stream breaks, pays for both, and loses the sample in the end.",
        mend="Look for a proxy with a limit on the time or the bytes of a reply; ask the provider.",
    ),
    Check(
        name=EMPTY, group="protocol", look=_empty_replies, tokens=0,
        why="An empty reply that says `stop` counts as finished, so a run grades it as wrong and asks no more.",
        mend="Ask the provider why replies come empty; look for a proxy or a filter of contents that blanks them.",
    ),
)  # fmt: skip
