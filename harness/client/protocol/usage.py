"""Token counts as a server states them → `Usage`; whatever cannot be true is unknown, never guessed."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from harness.core.records import Usage

MAX_STATED_TOKENS = 100_000_000
"""Largest count that is believed; a larger one is a server's mistake."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_STATED_TOKENS)] | None


class _PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: _Count | UnsetType = UNSET


class _CompletionDetails(msgspec.Struct, gc=False):
    reasoning_tokens: _Count | UnsetType = UNSET


class StatedUsage(msgspec.Struct, gc=False):
    """A `usage` object, down to the counts that matter: a fixed number of bytes, whatever else the object holds."""

    prompt_tokens: _Count = None
    completion_tokens: _Count = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    prompt_cache_hit_tokens: _Count = None
    reasoning_tokens: _Count = None


def stated_usage(usage: dict[str, Any]) -> StatedUsage:
    """The counts of a decoded `usage` object; what is no count is left out."""
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
    """The counts of a reply.

    Unknown (None) are: what is missing, negative, no integer or absurdly large; zero completion tokens beside a text;
    zero prompt tokens; reasoning tokens that are zero beside a reasoning text (vLLM) or more than the completion.
    """
    if stated is None:
        return Usage()
    completion = stated.completion_tokens
    if completion == 0 and has_text:
        completion = None
    details = stated.completion_tokens_details
    reasoning = stated.reasoning_tokens  # beside the details, where those do not hold it (SGLang)
    if details is not None and details.reasoning_tokens is not UNSET:
        reasoning = details.reasoning_tokens
    if reasoning is not None and (completion is None or reasoning > completion or (reasoning == 0 and has_reasoning)):
        reasoning = None
    cached = stated.prompt_cache_hit_tokens  # DeepSeek
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
