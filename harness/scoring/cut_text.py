"""Cuts a reply as a smaller max_tokens would have cut it, and counts the tokens before a place in a reply. No I/O.

A server cuts at a token, but the run stores text. So all tokens of a reply count as equally long: the first b of t
tokens are the first b/t of the characters of reasoning and text together. A reply cut within its reasoning has no text,
as servers would send it. If a server hides the reasoning, its tokens come before the first character of the text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from harness.core.records import Grade, Key, Sample
from harness.grading.find.reasoning import final_part
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import Intervals, rate


def cut(sample: Sample, budget: int) -> Sample | None:
    """The sample as if cut after `budget` completion tokens.

    None if the sample is not longer, or its number of tokens is unknown.
    """
    tokens = sample.usage.completion_tokens
    if tokens is None or tokens <= budget:
        return None
    reasoning, text = sample.reasoning or "", sample.text or ""
    hidden = _hidden_tokens(sample)
    n_characters = len(reasoning + text) * max(0, budget - hidden) // max(1, tokens - hidden)
    return msgspec.structs.replace(
        sample,
        reasoning=reasoning[:n_characters] if sample.reasoning is not None else None,
        text=text[: n_characters - len(reasoning)] if n_characters > len(reasoning) else None,
        finish_reason="length",
    )


def tokens_until(sample: Sample, end: int) -> int | None:
    """Completion tokens before character `end` of reasoning and text together; None if the reply states no tokens."""
    tokens = sample.usage.completion_tokens
    n_characters = len(sample.reasoning or "") + len(sample.text or "")
    if tokens is None or not n_characters:
        return tokens
    hidden = _hidden_tokens(sample)
    # The number is rounded up, since the token that holds the character must be complete.
    return hidden + math.ceil((tokens - hidden) * min(end, n_characters) / n_characters)


def _hidden_tokens(sample: Sample) -> int:
    """How many reasoning tokens the server hid: their text is neither in the reasoning field nor in the text."""
    if sample.reasoning:
        return 0
    if sample.text:
        part = final_part(sample.text)
        # A final part that does not begin with the text has shown reasoning before it.
        if part is None or part[0] > 0:
            return 0
    return min(sample.usage.reasoning_tokens or 0, sample.usage.completion_tokens or 0)


def accuracy_of_cut_text(items: Sequence[QuestionTally], graded: Mapping[Key, Grade]) -> tuple[float, Intervals]:
    """Return (accuracy, its intervals) if the grades `graded` of cut replies replaced those of the whole replies."""
    return rate(items, [sum(graded.get(g.key, g).verdict == "correct" for g in item.grades) for item in items])
