"""What has happened in a session so far, in numbers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.records import Sample, Usage
from harness.generation.dispatch.canary import ends_in_loop
from harness.generation.lengths import completion_tokens, tokens_before
from harness.generation.spending import Spent


class Counts:
    """done: samples on disk by benchmark, former sessions included; total: samples expected.

    finished, truncated, loops: replies of this session, those cut at their budget, those that end in a loop.
    tokens: completion tokens of the finished ones, without what had been written of them before their last request.
    continued: samples that went on from such a beginning; kept_tokens: how long those were.
    failures, retries: requests that failed, and that were made again.
    notes: how often replies had which oddity.
    """

    def __init__(self, done: Mapping[str, int], total: Mapping[str, int]) -> None:
        self.done = dict(done)
        self.total = dict(total)
        self.finished = 0
        self.truncated = 0
        self.loops = 0
        self.tokens = 0
        self.continued = 0
        self.kept_tokens = 0
        self.spent = Spent()
        self.failures = 0
        self.failed: dict[str, tuple[int, str, float]] = {}
        """By kind: failed requests, the latest one's cause, and when that was."""
        self.retries = 0
        self.notes: dict[str, int] = {}

    def add(self, sample: Sample, reply: Reply) -> None:
        """One more finished sample."""
        self.finished += 1
        self.truncated += sample.truncated
        self.loops += ends_in_loop(reply)
        n_before = tokens_before(sample)
        self.continued += bool(sample.salvaged_at)
        self.kept_tokens += n_before
        self.tokens += max(0, completion_tokens(sample) - n_before)
        self.spent.add(_billed(sample.usage, n_before))
        for note in reply.notes:
            self.notes[note] = self.notes.get(note, 0) + 1

    def fail(self, failure: RequestFailed, now: float) -> None:
        """One more failed request."""
        self.failures += 1
        self.failed[failure.kind] = (self.failed.get(failure.kind, (0,))[0] + 1, failure.message, now)

    @property
    def tokens_per_request(self) -> float | None:
        """Mean tokens of a prompt and its reply; None before the first one has finished."""
        return (self.tokens + self.spent.prompt_tokens) / self.finished if self.finished else None


def _billed(usage: Usage, n_before: int) -> Usage:
    """What the last request took: what had been written before was part of its prompt."""
    if not n_before:
        return usage
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return msgspec.structs.replace(
        usage,
        prompt_tokens=None if prompt is None else prompt + n_before,
        completion_tokens=None if completion is None else max(0, completion - n_before),
    )
