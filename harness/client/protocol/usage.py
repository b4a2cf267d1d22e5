"""Turning the token counts that a server states into `Usage`; a count that cannot be true becomes unknown (None)."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.core.records import Usage

MAX_STATED_TOKENS = 100_000_000
"""Largest token count that is believed."""


def stated_usage(usage: dict[str, Any]) -> Usage:
    """The counts in a decoded `usage` object; a value that is no count becomes None."""
    reasoning, cached = usage.get("reasoning_tokens"), usage.get("prompt_cache_hit_tokens")  # SGLang, DeepSeek
    prompt_details, details = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    if type(details) is dict and "reasoning_tokens" in details:
        reasoning = details["reasoning_tokens"]
    if type(prompt_details) is dict and "cached_tokens" in prompt_details:
        cached = prompt_details["cached_tokens"]
    return Usage(
        prompt_tokens=stated_count(usage.get("prompt_tokens")),
        completion_tokens=stated_count(usage.get("completion_tokens")),
        reasoning_tokens=stated_count(reasoning),
        cached_tokens=stated_count(cached),
    )


def believed(usage: Usage, *, has_text: bool, has_reasoning: bool) -> Usage:
    """The stated counts of a reply without those that cannot be true.

    A count is unknown (None) if it is missing, negative, no integer or above `MAX_STATED_TOKENS`; also 0 completion
    tokens of a reply with text, 0 prompt tokens, 0 reasoning tokens of a reply with reasoning (vLLM), and more
    reasoning tokens than completion tokens. has_text: it has text or reasoning. has_reasoning: it has reasoning.
    """
    completion, reasoning = usage.completion_tokens, usage.reasoning_tokens
    if completion == 0 and has_text:
        completion = None
    if reasoning is not None and (completion is None or reasoning > completion or (reasoning == 0 and has_reasoning)):
        reasoning = None
    return msgspec.structs.replace(
        usage, prompt_tokens=usage.prompt_tokens or None, completion_tokens=completion, reasoning_tokens=reasoning
    )


def stated_count(value: object) -> int | None:
    """`value`, if it is a count of tokens that can be believed; else None."""
    return value if type(value) is int and 0 <= value <= MAX_STATED_TOKENS else None
