"""The server under test, as presented to a check, and the replies that several checks need, each requested once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.client.apis.chat import CHAT
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.probes.requests import Inquiry, ProbedServer, ProbeReply, Refused, text_of

TOP = 20
"""Number of likeliest tokens to request: the maximum that the OpenAI protocol allows."""

LONG = 24
"""Number of new tokens of the greedy reply that several checks examine."""

TRIED = 3
"""Maximum number of requests for the greedy reply that several checks examine, if it is empty."""

STORY = "Tell me a short story about a lighthouse keeper who collects clocks."

PROMPTS = (
    STORY,
    "Prove that the sum of two odd integers is even.",
    "List three differences between a virus and a bacterium.",
    "Why is the sky blue? Answer as you would to a child of ten.",
    "What is 17 * 23? Explain step by step.",
    "Write a function that returns the n-th Fibonacci number.",
    "Describe the taste of a lemon to somebody who never had one.",
    "Name the planets, the largest one first.",
)
"""Prompts that lead to different replies."""

RAW_TEXTS = ("My favourite animal is the", "He opened the box. Inside it there was")
"""Beginnings of texts for a model to continue."""

FIRST_CHARS = 12
"""Number of characters that count as the beginning of a reply. When rounding in batches changes greedy replies, it is
nearly always after these.
"""

FLOOR_NATS = 1e-6
"""Log-probabilities that are closer together than this count as equal."""


def listed(top: Mapping[str, float]) -> dict[str, float]:
    """The tokens whose listed log-probability is real, not a floor.

    Some servers return no log-probability below a floor, such as -5, and use the floor for all less likely tokens.
    Tokens that share the smallest value are left out if there are at least three of them.
    """
    least = min(top.values(), default=0.0)
    at_floor = {token for token, value in top.items() if value - least < FLOOR_NATS}
    return {token: value for token, value in top.items() if len(at_floor) < 3 or token not in at_floor}


@dataclass
class Subject:
    """The server under test. seed: the next unused seed. context: number of tokens of the longest prompt that the user
    wants to try; None means the context that the server reports. may_force: whether the server accepts a request that
    forces a call. is_slow: whether a request has exceeded the timeout. called: the replies to requests that offer a
    tool, by kind and whether they were streamed.
    """

    server: ProbedServer
    seed: int
    context: int | None = None
    may_force: bool = True
    is_slow: bool = False
    called: dict[tuple[str, bool], Reply | RequestFailed] = field(default_factory=dict)

    def new_seeds(self, n: int) -> range:
        """`n` seeds that no request of this probe has used: a reply from a cache would look like an obeyed seed."""
        self.seed += n
        return range(self.seed - n, self.seed)

    def chat(self, text: str = STORY, **fields: Any) -> ProbeReply:
        """The non-streamed reply to one message. Raises `Refused`."""
        return self.unstreamed(Inquiry(text, {"max_tokens": LONG, "temperature": 0, **fields}))

    def unstreamed(self, inquiry: Inquiry) -> ProbeReply:
        """The non-streamed reply to one request. Raises `Refused`."""
        return self.server.unstreamed(inquiry.body(self.server.asker), inquiry.api)

    def streamed(self, inquiries: Sequence[Inquiry]) -> list[Reply | RequestFailed]:
        """The streamed replies to several requests, in order; a failure takes the place of its reply."""
        return self.server.streamed([inquiry.body(self.server.asker, stream=True) for inquiry in inquiries])

    def stream(self, inquiry: Inquiry) -> Reply:
        """The streamed reply to one request. Raises `RequestFailed`."""
        (reply,) = self.streamed([inquiry])
        if isinstance(reply, RequestFailed):
            raise reply
        return reply

    @cached_property
    def greedy_reply(self) -> ProbeReply:
        """The greedy reply to the story prompt, with log-probabilities if the server returns them. Raises `Refused`."""
        for _ in range(TRIED):
            try:
                reply = self.chat(**CHAT.likeliest(TOP))
            except Refused:
                reply = self.chat()
            # Many checks use this reply, so it is requested again if it is empty.
            if reply.reasoning_and_text:
                break
        return reply

    @cached_property
    def greedy_stream(self) -> Reply | RequestFailed:
        """The same greedy reply as a stream, without log-probabilities."""
        for _ in range(TRIED):
            (reply,) = self.streamed([Inquiry(STORY, {"max_tokens": LONG, "temperature": 0})])
            if isinstance(reply, RequestFailed) or text_of(reply):
                break
        return reply
