"""Turning the token counts that a server states into `Usage`; a count that cannot be true becomes unknown (None)."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.core.records import Usage

MAX_STATED_TOKENS = 100_000_000
"""Largest token count that is believed."""


def stated_usage(usage: dict[str, Any], metrics: Any = None, sglext: Any = None, timings: Any = None) -> Usage:
    """The counts in a decoded `usage` object; a value that is no count becomes None.

    metrics, sglext, timings: what vLLM, SGLang and llama.cpp state beside it of speculative decoding.
    """
    reasoning, cached = usage.get("reasoning_tokens"), usage.get("prompt_cache_hit_tokens")  # SGLang, DeepSeek
    prompt_details, details = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    if type(details) is dict and "reasoning_tokens" in details:
        reasoning = details["reasoning_tokens"]
    if type(prompt_details) is dict and "cached_tokens" in prompt_details:
        cached = prompt_details["cached_tokens"]
    counts = Usage(
        prompt_tokens=stated_count(usage.get("prompt_tokens")),
        completion_tokens=stated_count(usage.get("completion_tokens")),
        reasoning_tokens=stated_count(reasoning),
        cached_tokens=stated_count(cached),
    )
    of_vllm, of_sglang = _part(metrics, "speculative_decoding"), _part(sglext, "spec_tokens_details")
    steps, tokens = stated_count(of_vllm.get("num_spec_steps")), stated_count(of_vllm.get("num_accepted_draft_tokens"))
    if steps is not None and tokens is not None:
        tokens += steps
    elif (steps := stated_count(of_sglang.get("spec_verify_ct"))) is not None:
        tokens = counts.completion_tokens
    elif isinstance(timings, dict) and stated_count(timings.get("draft_n")):
        tokens, accepted = (stated_count(timings.get(name)) for name in ("predicted_n", "draft_n_accepted"))
        steps = None if tokens is None or accepted is None else tokens - accepted
    if not steps or steps < 0 or tokens is None or tokens < steps:
        return counts
    return msgspec.structs.replace(counts, spec_tokens=tokens, spec_steps=steps)


def _part(value: object, name: str) -> dict[str, Any]:
    """The object at a key of an object; empty if either is none."""
    part = value.get(name) if isinstance(value, dict) else None
    return part if isinstance(part, dict) else {}


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
