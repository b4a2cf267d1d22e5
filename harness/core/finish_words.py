"""The finish reasons by which servers say how a completion ended; letters of either case are the same."""

from __future__ import annotations

from typing import Literal

Ending = Literal["end", "cut", "break", "filter", "unknown"]
"""The model's own end; the bound on new tokens; a failure of the server; a filter or refusal; no word of the table."""

_WORDS: dict[Ending, str] = {
    "end": "stop eos eos_token end_turn stop_sequence stop_token stop_str completed complete tool_calls function_call "
    "tool_use",
    "cut": "length max_tokens model_length max_output_tokens max_new_tokens max_length model_context_window_exceeded "
    "max_steps context",
    "break": "abort aborted error network_error timeout cancelled canceled insufficient_system_resource",
    "filter": "content_filter content-filter content_filtered guardrail_intervened safety sensitive refusal recitation "
    "prohibited_content blocklist spii",
}
MAX_STEPS, CONTEXT = "max_steps", "context"
"""Our own words: the last step that a sample with a tool may take made calls; the context leaves no room for more."""

Limit = Literal["tokens", "steps", "context"]
"""The ends that cut a sample: the bound on its new tokens, on its steps with a tool, or the server's context."""

_OTHER_LIMITS: dict[str, Limit] = {
    MAX_STEPS: "steps", CONTEXT: "context", "model_context_window_exceeded": "context",
}  # fmt: skip
"""Words of "cut" that are not of the bound on new tokens."""

TOOL_WORDS = frozenset({"tool_calls", "function_call", "tool_use"})
"""Words by which a server says that the reply ended with a call."""

_ENDINGS = {word: ending for ending, words in _WORDS.items() for word in words.split()}


def ending(finish_reason: str) -> Ending:
    """What the finish reason says."""
    return _ENDINGS.get(finish_reason.lower(), "unknown")


def limit_of(finish_reason: str) -> Limit | None:
    """The limit that cut the sample; None if none did."""
    return _OTHER_LIMITS.get(finish_reason.lower(), "tokens") if ending(finish_reason) == "cut" else None
