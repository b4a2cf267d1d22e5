"""Checks that replies end where they should: a reply with `stop` must have been ended by the model, and no reply may be
cut by a limit that nobody requested.

A reply states how it ended: `stop` if the model ended it, `length` if max_tokens did. One greedy prompt is sent with
different max_tokens, and the ends of its replies are compared. So are the lengths of long replies to different prompts:
a hidden cap ends them all after the same number of tokens.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.core.inert import quoted
from harness.probes.findings import Check, Observation, fails, no_evidence, passes, untested
from harness.probes.inquiries import Inquiry, text_of
from harness.probes.subject import STORY, Subject
from server_launchers.engines import table as engines

LIMITS = (24, 48, 96)
"""Values of max_tokens with which one greedy prompt is sent."""

ROUNDS = 3
"""Number of rounds that look for a false end. It counts if two rounds find one, since batching may cause a single false
end.
"""

LONG_REPLY = 1_200
"""max_tokens of the long stream on a fast server, above the usual hidden caps (256, 512, 1,024)."""

MIN_LONG_REPLY = 300
"""max_tokens of the long stream on the slowest server."""

SECONDS = 60.0
"""Seconds that the long stream may take, estimated from short ones."""

ROOM = 128
"""Number of tokens of the reported context that are reserved for the long stream's prompt."""

COUNTS = (
    "Write every number from 1 to 2000 in words, one after the other, and leave none out.",
    "List every number from 5000 down to 1, each on a line of its own, without a comment and without leaving one out.",
    "Multiply every number from 1 to 900 by seven, and write each product with its two factors on a line of its own. "
    "Do not stop before the last of them.",
)
"""Prompts with long replies of different lengths. The prompts' own lengths differ too, so that a full context ends the
three replies after different numbers of tokens.
"""


@dataclass(frozen=True)
class Ended:
    """How one reply ended. limit: its max_tokens. text: its text, including its reasoning. n_tokens: its token count
    according to usage, or None.
    """

    limit: int
    text: str
    reason: str
    n_tokens: int | None

    def is_refuted_by(self, longer: Ended) -> bool:
        """Whether `longer` shows that this reply was cut, although it claims to have ended by itself.

        longer: the reply to the same request with a larger max_tokens; it starts with the same text and continues.
        """
        # The end of a reply may be trimmed or contain half a character.
        text = self.text.rstrip().rstrip("\ufffd")
        return (
            self.reason == "stop"
            and self.limit < longer.limit
            and bool(text)
            and longer.text.startswith(text)
            and bool(longer.text[len(text) :].strip().strip("\ufffd"))
        )


def unnatural(replies: Sequence[Ended]) -> str | None:
    """Return what is wrong with the ends of the replies to one greedy prompt, or None if nothing is.

    replies: the replies, each requested with a larger max_tokens than the one before.
    """
    for i, shorter in enumerate(replies):
        for longer in replies[i + 1 :]:
            if shorter.is_refuted_by(longer):
                return (
                    f"with max_tokens {shorter.limit}, the reply ends with finish_reason stop{_after(shorter)}, "
                    f"but with {longer.limit}, it continues beyond that point"
                )
    for reply in replies:
        n, limit = reply.n_tokens, reply.limit
        if n is None:
            continue
        # A reply that the model ended may include its end token in the count.
        if n > limit + 1:
            return f"the reply has {n} tokens, but max_tokens was {limit}"
        if reply.reason == "length" and n != limit:
            return f"finish_reason length after {n} of {limit} tokens"
        if n >= limit and reply.reason not in ("length", "stop"):
            return f"a reply that reached max_tokens ({limit}) has finish_reason {quoted(reply.reason)!r}"
    return None


def cap(replies: Sequence[Ended]) -> int | None:
    """Return the number of tokens at which a server seems to cut all replies, or None if there is no evidence of a cap.

    The evidence is that every reply ends below its max_tokens and that one reports `length`, or that several replies
    all end after the same number of tokens.
    """
    counts = [reply.n_tokens for reply in replies if reply.n_tokens is not None]
    if len(counts) < len(replies) or any(n >= reply.limit - 1 for n, reply in zip(counts, replies, strict=True)):
        return None
    # A reply that reports `length` below its limit was cut, whatever the other replies did.
    cut = [n for n, reply in zip(counts, replies, strict=True) if reply.reason == "length"]
    if cut:
        return cut[0]
    # The counts may differ by one, because some servers count the end token.
    same = len(replies) >= len(COUNTS) and min(counts) >= max(counts) - 1
    return max(counts) if same else None


def _after(reply: Ended) -> str:
    """The end of a sentence, stating after how many tokens the reply ended; empty without usage."""
    return "" if reply.n_tokens is None else f" after {reply.n_tokens} tokens"


def _end_of(subject: Subject, text: str, limit: int, **fields: object) -> Ended:
    """Send a prompt as a greedy stream with this max_tokens, and return how its reply ended. Raises `RequestFailed`."""
    reply = subject.stream(Inquiry(text, {"max_tokens": limit, "temperature": 0, **fields}))
    return Ended(limit, text_of(reply), reply.finish_reason, reply.usage.completion_tokens)


def _ends(subject: Subject) -> Observation:
    """Send one greedy prompt with several limits; a false end counts if two rounds find one.

    The check is conclusive only if the reply with the largest limit reaches that limit.
    """
    sent = f"a short story prompt, streamed with max_tokens {', '.join(map(str, LIMITS))}"
    lies: list[str] = []
    for _ in range(ROUNDS):
        ends = [_end_of(subject, STORY, limit) for limit in LIMITS]
        lie = unnatural(ends)
        # A first round without a false end ends the check; after a false end, the other rounds decide.
        if lie is None and not lies:
            break
        # Only a false end that is inferred from token counts needs correct counts; the other kind is evident from the
        # texts of two replies.
        if lie is not None and subject.miscount and unnatural([replace(end, n_tokens=None) for end in ends]) is None:
            return untested(sent, f"{lie}, but {no_evidence(subject.miscount)}")
        lies += [lie] if lie is not None else []
        if len(lies) == 2:
            return fails(sent, f"{lies[-1]} (seen twice)")
    shown = ", ".join(f"{end.reason or 'no reason'}{_after(end)}" for end in ends)
    # Only a longer reply could show whether the model or a cap ended this one; a model may well end where a cap would.
    if ends[-1].reason == "stop":
        may_be = "either the model stopped or the server has a hidden limit; see `long stream`"
        return untested(sent, f"{shown}; the reply with max_tokens {LIMITS[-1]} ended before that limit: {may_be}")
    return passes(
        sent, f"{shown}; no reply was truncated early (for hidden limits above this range, see `long stream`)"
    )


def _long_stream(subject: Subject) -> Observation:
    """Request long streams. If different texts end after the same number of tokens, the server caps its replies."""
    begun = time.monotonic()
    first = _end_of(subject, STORY, LIMITS[-1])
    # Without usage, the speed is estimated from characters, usually four per token.
    if first.n_tokens is not None and subject.miscount:
        return untested("a long stream", no_evidence(subject.miscount))
    n_new = first.n_tokens or max(1, len(first.text) // 4)
    seconds = time.monotonic() - begun
    in_time = int(n_new / max(seconds, 1e-3) * SECONDS)
    limit = min(LONG_REPLY, max(MIN_LONG_REPLY, in_time))
    if subject.server.context is not None:
        limit = min(limit, subject.server.context - ROOM)
    goes_on = engines.profile(subject.server.engine).goes_on  # fields by which the engine ignores the end of a reply
    sent = f"a stream of {limit:,} tokens{', with the EOS token ignored' if goes_on else ''}"
    replies: list[Ended] = []
    for text in COUNTS:
        reply = _end_of(subject, text, limit, **goes_on)
        replies.append(reply)
        if reply.n_tokens is None:
            return untested(sent, "the number of tokens is unknown because the server reports no usage")
        if reply.n_tokens >= limit - 1 and reply.reason == "length":
            return passes(sent, f"finish_reason length after {reply.n_tokens:,} tokens")
        # A reply that reports `length` below its limit was cut, so the other prompts need not confirm the cap.
        if reply.reason == "length":
            break
    n = cap(replies)
    if n is not None:
        reasons = ", ".join(dict.fromkeys(reply.reason for reply in replies))
        received = (
            f"a limit of {n:,} tokens: {len(replies)} different replies stop at that point with finish_reason "
            f"{quoted(reasons)}"
        )
        return fails(sent, received)
    counts = ", ".join(f"{reply.n_tokens:,}" for reply in replies)
    return untested(sent, f"the replies ended on their own after {counts} tokens; longer replies were not tested")


CHECKS = (
    Check(
        name="ends",
        group="protocol",
        look=_ends,
        tokens=300,
        why="A reply that is truncated early loses its answer; if its finish_reason is `stop`, it is graded as "
        "finished and wrong.",
        fix="Look for a gateway or server setting that lowers max_tokens or rewrites finish_reason.",
    ),
    Check(
        name="long stream",
        group="protocol",
        look=_long_stream,
        quick=False,
        tokens=1_400,
        why="Reasoning can use thousands of tokens; a lower limit truncates long answers, whatever "
        "finish_reason the server reports.",
        fix="Ask the provider about the model's output token limit, or use another server.",
    ),
)
