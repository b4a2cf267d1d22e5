"""The most tokens that a request's prompt can have, for budgets and for replies that state no usage.

No token is shorter than a byte of UTF-8, so a prompt has at most as many tokens as its text has bytes. The server's
chat template adds tokens of its own, which no request shows: `TEMPLATE_TOKENS` are counted for it, or more once a reply
has stated more. Where a reply has stated the tokens of a prompt, later requests with this prompt have as many.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from harness.core import codec

TEMPLATE_TOKENS = 64
"""Tokens that a chat template may add to a prompt beyond the marks of its messages, before a reply has stated more."""


def prompt_bytes(body: Mapping[str, Any]) -> int:
    """Bytes of everything in a request that can become a part of the prompt: texts, lists and objects as JSON."""
    return sum(
        len(codec.encode(value))
        for name, value in body.items()
        if name != "model" and not isinstance(value, int | float)
    )


class PromptBounds:
    """Bounds on the tokens of prompts, which become tighter as replies state usage."""

    def __init__(self) -> None:
        self._stated: dict[Hashable, int] = {}
        self._template = TEMPLATE_TOKENS

    def most(self, prompt: Hashable, n_bytes: int) -> int:
        """Return the most tokens that this prompt, of `n_bytes` by `prompt_bytes`, can have."""
        stated = self._stated.get(prompt)
        return n_bytes + self._template if stated is None else stated

    def learn(self, prompt: Hashable, n_bytes: int, n_tokens: int) -> None:
        """Note that a reply stated `n_tokens` for this prompt."""
        self._stated[prompt] = max(n_tokens, self._stated.get(prompt, 0))
        self._template = max(self._template, n_tokens - n_bytes)

    def knows(self, prompt: Hashable) -> bool:
        """Whether a reply has stated the tokens of this prompt."""
        return prompt in self._stated
