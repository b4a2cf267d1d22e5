"""Lengths of samples in tokens."""

from __future__ import annotations

from harness.core.records import Sample


def completion_tokens(sample: Sample) -> int:
    """Length of a sample for planning: as stated, else the number of events, else estimated from characters."""
    stated = sample.usage.completion_tokens
    return stated or sample.timing.events or (len(sample.text or "") + len(sample.reasoning or "")) // 4 + 1


def tokens_before(sample: Sample) -> int:
    """Completion tokens that were written before the sample's last request."""
    return sample.salvaged_at[-1].tokens if sample.salvaged_at else 0
