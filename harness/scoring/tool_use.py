"""What the samples of a run with a tool did with it: counts that stand beside the score, and change no number of it."""

from __future__ import annotations

import msgspec
import numpy as np

from harness.core.lost_calls import REMEDY
from harness.core.nouns import count_noun
from harness.scoring.observed import COUNTED, Observed, Rows

MAX_LOST_SHARE = 0.02
"""A score warns if more than this fraction of the samples lost a call."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """Counts over n_samples.

    with_call: samples that made a call. lost: samples whose reply holds a call that the server has not read as one.
    cut_by_steps: samples that had no step left. steps, calls: of all samples. failed: calls that raised an exception,
    or that could not be read. stopped: calls that passed a limit. repeated: calls equal to the one before.
    prompt_tokens, new_tokens: of all steps, where stated.
    """

    n_samples: int
    with_call: int
    lost: int
    cut_by_steps: int
    steps: int
    calls: int
    failed: int
    stopped: int
    repeated: int
    prompt_tokens: int
    new_tokens: int

    @property
    def sentence(self) -> str:
        """The counts in a sentence."""
        return (
            f"python: {self.with_call:,} of {count_noun(self.n_samples, 'sample')} called it, "
            f"{self.steps / self.n_samples:.1f} steps and {self.calls / self.n_samples:.1f} calls a sample; "
            f"{self.failed:,} calls failed, {self.stopped:,} were stopped, {self.repeated:,} repeated the one before; "
            f"{count_noun(self.lost, 'sample')} lost a call, {self.cut_by_steps:,} had no step left; "
            f"{self.prompt_tokens:,} tokens of prompts beside {self.new_tokens:,} new ones"
        )

    @property
    def warning(self) -> str:
        """The warning that calls are lost; empty if few are."""
        if self.lost <= MAX_LOST_SHARE * self.n_samples:
            return ""
        share = f"{self.lost:,} of {count_noun(self.n_samples, 'sample')} ({self.lost / self.n_samples:.1%})"
        return f"{share} hold a call that the server has not read as one, and that was not run: {REMEDY}"


def tool_use(observed: Observed, rows: Rows) -> ToolUse | None:
    """The counts of these samples; None without a tool."""
    rows = rows[~np.isnan(observed.columns["steps"].of(rows))]
    if not len(rows):
        return None
    sums = {name: int(observed.columns[name].of(rows).sum()) for name in COUNTED}
    tokens = (observed.columns[name].of(rows) for name in ("prompt_tokens", "completion_tokens"))
    prompt, new = (int(np.nan_to_num(column).sum()) for column in tokens)
    with_call = int((observed.columns["calls"].of(rows) > 0).sum())
    return ToolUse(n_samples=len(rows), with_call=with_call, prompt_tokens=prompt, new_tokens=new, **sums)
