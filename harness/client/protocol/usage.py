"""Token counts as a server states them → `Usage`; whatever cannot be true is unknown, never guessed."""

from __future__ import annotations

from typing import Any

from harness.core.records import Usage

MAX_STATED_TOKENS = 100_000_000
"""Largest count that is believed; a larger one is a server's mistake."""


def usage_of(stated: dict[str, Any] | None, *, has_text: bool, has_reasoning: bool) -> Usage:
    """The counts in a `usage` object.

    Unknown (None) are: what is missing, negative, no integer or absurdly large; zero completion tokens beside a text;
    zero prompt tokens; reasoning tokens that are zero beside a reasoning text (vLLM) or more than the completion.
    """
    if stated is None:
        return Usage()
    prompt = _count(stated.get("prompt_tokens")) or None
    completion = _count(stated.get("completion_tokens"))
    if completion == 0 and has_text:
        completion = None
    reasoning = _detail(stated, "completion_tokens_details", "reasoning_tokens", "reasoning_tokens")
    if reasoning is not None and (completion is None or reasoning > completion or (reasoning == 0 and has_reasoning)):
        reasoning = None
    cached = _detail(stated, "prompt_tokens_details", "cached_tokens", "prompt_cache_hit_tokens")
    return Usage(prompt_tokens=prompt, completion_tokens=completion, reasoning_tokens=reasoning, cached_tokens=cached)


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_STATED_TOKENS else None


def _detail(stated: dict[str, Any], details: str, name: str, beside: str) -> int | None:
    """The count `name` among the `details`; where they do not hold it, the one that stands `beside` them."""
    inner = stated.get(details)
    return _count(inner[name] if type(inner) is dict and name in inner else stated.get(beside))
