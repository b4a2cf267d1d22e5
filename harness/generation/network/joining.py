"""One reply of several: those to the steps of a sample with a tool, or a continuation of what was written before it.

Every field of a reply, of its usage and of its timing has its rule in `_RULES`; a field without one fails each join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from harness.client.protocol.reply import Reply
from harness.core.records import Timing, Usage


def joined(replies: Sequence[Reply], **own: Any) -> Reply:
    """The replies to the requests of one sample, in their order, as one. own: fields that the caller has joined."""
    reply: Reply = msgspec.structs.replace(_by_rules(replies), **own)
    return reply


def _by_rules(parts: Sequence[Any]) -> Any:
    """The replies, usages or timings as one, each field by its rule."""
    names = parts[0].__struct_fields__
    return type(parts[0])(**{name: _RULES[name]([getattr(part, name) for part in parts]) for name in names})


def _last(values: Sequence[Any]) -> Any:
    return values[-1]


def _sum(counts: Sequence[Any]) -> Any:
    """The sum of what is stated of each part; unset, or else None, if one part does not state it."""
    unstated = [count for count in counts if not isinstance(count, int)]
    return sum(counts) if not unstated else msgspec.UNSET if msgspec.UNSET in unstated else None


def _spanned(timings: Sequence[Timing]) -> Timing:
    """From the first request to the last byte. The gaps are known of a single one only."""
    last, span = timings[-1], timings[-1].started - timings[0].started
    ends = {"total": span + last.total, "last_token": span + (last.last_token or last.total)}
    return msgspec.structs.replace(_by_rules(timings), **ends) if len(timings) > 1 else last


_RULES: dict[str, Callable[[Sequence[Any]], Any]] = {
    **dict.fromkeys(("text", "reasoning", "refusal", "finish_reason", "calls", "carry", "server_model", "fingerprint",
                     "request_id", "provider", "stated_total", "echo", "last_token", "total"), _last),
    **dict.fromkeys(Usage.__struct_fields__, _sum),
    **dict.fromkeys(("usage", "stated"), _by_rules),
    **dict.fromkeys(("started", "queued", "first_token", "clock", "lag"), lambda values: values[0]),
    **dict.fromkeys(("gap_p50", "gap_p99"), lambda gaps: gaps[0] if len(gaps) == 1 else None),
    "timing": _spanned,
    "events": sum,
    "notes": lambda notes: tuple(dict.fromkeys(note for each in notes for note in each)),
}  # fmt: skip
