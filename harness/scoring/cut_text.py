"""What replies would have come to if they had been cut at a smaller budget, as far as their text tells. Pure.

A server cuts at a token; what is stored is text. The place of a token is taken to be in proportion: the first b of t
tokens are the first b/t of the characters of reasoning and text together. A reply that is cut within its reasoning
has no text, as servers then send it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from harness.core.records import Grade, Key, Sample
from harness.scoring.tally import QuestionTally


def cut(sample: Sample, budget: int) -> Sample | None:
    """The sample as it stood after `budget` completion tokens; None where it is not longer, or its tokens unknown."""
    tokens = sample.usage.completion_tokens
    if tokens is None or tokens <= budget:
        return None
    reasoning, text = sample.reasoning or "", sample.text or ""
    kept = len(reasoning + text) * budget // tokens
    return msgspec.structs.replace(
        sample,
        reasoning=reasoning[:kept] if sample.reasoning is not None else None,
        text=text[: kept - len(reasoning)] if kept > len(reasoning) else None,
        finish_reason="length",
    )


def accuracy_of_cut_text(items: Sequence[QuestionTally], graded: Mapping[Key, Grade]) -> float:
    """Mean over questions of the fraction correct, with the grades of the cut replies for those of the whole ones."""
    rates = [sum(graded.get(g.key, g).verdict == "correct" for g in item.grades) / item.n for item in items]
    return math.fsum(rates) / len(rates)
