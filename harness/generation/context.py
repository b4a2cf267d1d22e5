"""Checks before the first sample that prompt + max_tokens fits the server's context. Pure.

Without a tokenizer, only a lower and an upper bound of a prompt's length are known. A run is rejected if even the lower
bound does not fit. If `may_lower` allows it, max_tokens is lowered instead, based on the upper bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from harness.core.errors import ServerError
from harness.core.records import Question

MIN_CHARS_PER_TOKEN = 2.0
MAX_CHARS_PER_TOKEN = 6.0
"""Smallest and largest number of ASCII characters per token in a prompt of mathematical English.

Every tokenizer in use stays within these bounds for whole prompts.
"""

MAX_TOKENS_PER_WIDE_CHAR = 2.0
MIN_TOKENS_PER_WIDE_CHAR = 0.5
"""Largest and smallest number of tokens per non-ASCII character.

A common two-character Chinese word is one token; a rare character may be split into its bytes.
"""

TEMPLATE_TOKENS = 64
"""Largest number of tokens that a chat template adds to a short conversation."""

MIN_IMAGE_TOKENS, MAX_IMAGE_TOKENS = 64, 4096
"""Smallest and usual largest number of tokens of an image; a server that scales images up may need more."""

FIT_STEPS = 16
"""A fitted max_tokens is a multiple of one sixteenth of the context, so that a few more questions do not change it.

If less than a sixteenth is free, all of the free part is used.
"""

MIN_ROOM = 16
"""Smallest number of new tokens that leave room for an answer."""


class PromptTokens(msgspec.Struct, frozen=True):
    """Lower and upper bound of a prompt's length in tokens."""

    least: int
    most: int


def prompt_tokens(question: Question) -> PromptTokens:
    """Bounds of the length of the question's prompt, in tokens."""
    text, n = turn_tokens(question.prompt or "".join(m.shown for m in question.messages)), len(question.images)
    return PromptTokens(text.least + n * MIN_IMAGE_TOKENS, text.most + n * MAX_IMAGE_TOKENS)


def turn_tokens(text: str) -> PromptTokens:
    """Bounds of the length of a prompt or another turn of a conversation, in tokens."""
    plain = len(text.encode("ascii", "ignore"))
    wide = len(text) - plain
    least = plain / MAX_CHARS_PER_TOKEN + wide * MIN_TOKENS_PER_WIDE_CHAR
    most = plain / MIN_CHARS_PER_TOKEN + wide * MAX_TOKENS_PER_WIDE_CHAR + TEMPLATE_TOKENS
    # Rounded outwards, so that both remain valid bounds.
    return PromptTokens(max(1, int(least)), int(most) + 1)


def may_lower(origins: Mapping[str, str], *, fit_context: bool) -> bool:
    """Whether max_tokens may be lowered to the server's context: it is a default, or `fit_context` allows it.

    origins: sampling parameter → where its value comes from, as in `BenchmarkSettings`.
    """
    return fit_context or origins.get("max_tokens") == "default"


def fitted_max_tokens(
    benchmark: str, questions: Sequence[Question], max_tokens: int | None, context: int, *, fit: bool
) -> int | None:
    """The max_tokens to send: unchanged if it can fit; lowered to the context if `fit`.

    Raises a `ServerError` that states both remedies if it cannot fit and `fit` is false, or if there is no room at all.
    """
    if max_tokens is None or not questions:
        return max_tokens
    bounds = [prompt_tokens(q) for q in questions]
    least, most = max(b.least for b in bounds), max(b.most for b in bounds)
    if (most if fit else least) + max_tokens <= context:
        return max_tokens
    # A whole number of steps, unless less than a step is free.
    step, room = max(1, context // FIT_STEPS), context - most
    room = room // step * step if room >= step else room
    if fit and room >= MIN_ROOM:
        return room
    ways = "Increase the server's context length"
    if not fit and room >= MIN_ROOM:
        # The number that `fit` would send, which leaves room for the upper bound of the longest prompt.
        ways += f", or set `max_tokens={room}` (`fit_context` does this automatically)"
    raise ServerError(
        f"{benchmark}: the longest prompt ({least} to {most} tokens) and `max_tokens` {max_tokens} need at least "
        f"{least + max_tokens} tokens, but the server's context length is {context}. {ways}."
    )
