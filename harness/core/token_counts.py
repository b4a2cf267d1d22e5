"""The token counts that a server reports with a reply, treated as an equation: the parts add up to the total.

the rest of the total beyond prompt and completion     is
0                                                      nothing: reasoning is part of the completion (OpenAI)
the stated reasoning                                   counted apart from the completion (xAI's chat, Vertex)
stated parts of the prompt, with or without reasoning  counted apart from the prompt (a cache, audio)
any other number above 0                               generated and hidden (Gemini's chat)
below 0                                                the total is not believed (`contradictions` says so)
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import msgspec

from harness.core.records import Usage

MAX_STATED_TOKENS = 100_000_000
"""Largest token count that is believed."""


def stated_usage(usage: dict[str, Any], metrics: Any = None, sglext: Any = None, timings: Any = None) -> Usage:
    """The counts in a decoded `usage` object, added up; a value that is not a count becomes None.

    metrics, sglext, timings: what vLLM, SGLang and llama.cpp report in addition about speculative decoding.
    """
    of_prompt, details = _part(usage, "prompt_tokens_details"), _part(usage, "completion_tokens_details")
    reasoning = details.get("reasoning_tokens", usage.get("reasoning_tokens"))  # the latter: SGLang
    cached = of_prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))  # the latter: DeepSeek
    counts = Usage(
        prompt_tokens=stated_count(usage.get("prompt_tokens")),
        completion_tokens=stated_count(usage.get("completion_tokens")),
        reasoning_tokens=stated_count(reasoning),
        cached_tokens=stated_count(cached),
    )
    counts = _add_remainder(counts, usage, of_prompt)
    if metrics is sglext is timings is None:
        return counts
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


_MAX_PARTS = 6
"""Largest number of stated parts of a prompt whose sums are tried."""


def _add_remainder(stated: Usage, usage: dict[str, Any], of_prompt: dict[str, Any]) -> Usage:
    """The counts plus what the total has beyond prompt and completion. of_prompt: the stated parts of the prompt.

    The result's prompt and completion add up to the total unless it is smaller than the sum of those stated.
    """
    prompt, completion, reasoning = stated.prompt_tokens, stated.completion_tokens or 0, stated.reasoning_tokens or 0
    total = stated_count(usage.get("total_tokens"))
    if not prompt or total is None or (rest := total - prompt - completion) <= 0:
        return stated
    if rest != reasoning:
        of_cache = (count for name, count in usage.items() if "cache" in name)
        parts = sorted({n for n in map(stated_count, chain(of_cache, of_prompt.values())) if n})[:_MAX_PARTS]
        sums = {sum(some) for n in range(len(parts)) for some in combinations(parts, n + 1)}
        apart = next((n for n in (rest, rest - reasoning) if n in sums and reasoning <= completion + rest - n), 0)
        prompt, rest = prompt + apart, rest - apart
    if rest:
        completion, reasoning = completion + rest, max(reasoning, rest)
        stated = msgspec.structs.replace(stated, completion_tokens=completion, reasoning_tokens=reasoning)
    return msgspec.structs.replace(stated, prompt_tokens=prompt)


def _part(value: object, name: str) -> dict[str, Any]:
    """The object at a key of an object; empty if either is not an object."""
    part = value.get(name) if isinstance(value, dict) else None
    return part if isinstance(part, dict) else {}


def plausible_usage(usage: Usage, *, has_text: bool, has_reasoning: bool) -> Usage:
    """The stated counts of a reply without those that cannot be true.

    A count is unknown (None) if it is missing, negative, not an integer or above `MAX_STATED_TOKENS`. So are 0
    completion tokens for a reply with text or reasoning, 0 prompt tokens, 0 reasoning tokens for a reply with reasoning
    (vLLM), more reasoning tokens than completion tokens, or as many if the reply has a text, and more cached tokens
    than prompt tokens.
    """
    completion, reasoning = usage.completion_tokens, usage.reasoning_tokens
    if completion == 0 and (has_text or has_reasoning):
        completion = None
    most = -1 if completion is None else completion - (has_text and bool(reasoning))
    if reasoning is not None and (reasoning > most or (reasoning == 0 and has_reasoning)):
        reasoning = None
    if (usage.cached_tokens or 0) > (usage.prompt_tokens or MAX_STATED_TOKENS):
        usage = msgspec.structs.replace(usage, cached_tokens=None)
    return msgspec.structs.replace(
        usage, prompt_tokens=usage.prompt_tokens or None, completion_tokens=completion, reasoning_tokens=reasoning
    )


def stated_count(value: object) -> int | None:
    """`value` if it is a plausible number of tokens, otherwise None."""
    return value if type(value) is int and 0 <= value <= MAX_STATED_TOKENS else None
