"""Turning the token counts that a server states into `Usage`; a count that cannot be true becomes unknown (None)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from harness.core.records import Usage

MAX_STATED_TOKENS = 100_000_000
"""Largest token count that is believed."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_STATED_TOKENS)] | None


class _PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: _Count | UnsetType = UNSET


class _CompletionDetails(msgspec.Struct, gc=False):
    reasoning_tokens: _Count | UnsetType = UNSET


class StatedUsage(msgspec.Struct, gc=False):
    """The counts in a `usage` object that matter here, however much else the object holds."""

    prompt_tokens: _Count = None
    completion_tokens: _Count = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    prompt_cache_hit_tokens: _Count = None
    reasoning_tokens: _Count = None


def stated_usage(usage: dict[str, Any]) -> StatedUsage:
    """The counts in a decoded `usage` object; a value that is no count becomes None."""
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    return StatedUsage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        prompt_tokens_details=_PromptDetails(_detail(prompt, "cached_tokens")),
        completion_tokens_details=_CompletionDetails(_detail(completion, "reasoning_tokens")),
        prompt_cache_hit_tokens=_count(usage.get("prompt_cache_hit_tokens")),
        reasoning_tokens=_count(usage.get("reasoning_tokens")),
    )


def usage_of(stated: StatedUsage | None, *, has_text: bool, has_reasoning: bool) -> Usage:
    """The token counts of a reply. has_text: it has text or reasoning. has_reasoning: it has reasoning.

    A count is unknown (None) if it is missing, negative, no integer or above `MAX_STATED_TOKENS`; also 0 completion
    tokens of a reply with text, 0 prompt tokens, 0 reasoning tokens of a reply with reasoning (vLLM), and more
    reasoning tokens than completion tokens.
    """
    if stated is None:
        return Usage()
    completion = stated.completion_tokens
    if completion == 0 and has_text:
        completion = None
    details = stated.completion_tokens_details
    reasoning = stated.reasoning_tokens  # SGLang states it here, other servers in the details
    if details is not None and details.reasoning_tokens is not UNSET:
        reasoning = details.reasoning_tokens
    if reasoning is not None and (completion is None or reasoning > completion or (reasoning == 0 and has_reasoning)):
        reasoning = None
    cached = stated.prompt_cache_hit_tokens  # DeepSeek states it here, other servers in the details
    if stated.prompt_tokens_details is not None and stated.prompt_tokens_details.cached_tokens is not UNSET:
        cached = stated.prompt_tokens_details.cached_tokens
    return Usage(
        prompt_tokens=stated.prompt_tokens or None,
        completion_tokens=completion,
        reasoning_tokens=reasoning,
        cached_tokens=cached,
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_STATED_TOKENS else None


def _detail(details: object, name: str) -> int | UnsetType | None:
    return _count(details[name]) if type(details) is dict and name in details else UNSET
