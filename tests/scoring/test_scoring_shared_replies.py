"""Replies that two runs share, beside the formula of the module's docstring written out.

For: harness.scoring.shared_replies.
"""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records import Sample, Timing
from harness.scoring.shared_replies import shared_replies

REPLIES = st.builds(
    lambda text, cut: Sample(
        benchmark="", question_id="", sample_index=0, text=text, reasoning=None,
        finish_reason="length" if cut else "stop", timing=Timing(started=0.0, total=1.0), endpoint="",
    ),
    st.text("ab", max_size=3).map(lambda text: text * 20),
    st.booleans(),
)  # fmt: skip


def equal(ours: Sample, theirs: Sample) -> bool:
    """Whether the texts are equal; the shorter one may have been cut where the longer one goes on."""
    short, long = sorted((ours, theirs), key=lambda sample: len(sample.text))
    return short.text == long.text or (short.finish_reason == "length" and long.text.startswith(short.text))


@given(st.lists(st.integers(2, 5).flatmap(lambda n: st.lists(st.tuples(REPLIES, REPLIES), min_size=n, max_size=n))))
def test_equal_pairs_and_their_excess_are_as_the_formula_says(questions: list[list[tuple[Sample, Sample]]]) -> None:
    expected = variance = by_length = spread = 0.0
    n_equal = n_pairs = n_others = n_equal_others = 0
    for pairs in questions:
        n = len(pairs)
        table = np.array([[equal(ours, theirs) for _, theirs in pairs] for ours, _ in pairs], dtype=float)
        centred = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        expected += table.sum() / n
        variance += (centred**2).sum() / (n - 1)
        chances = [2 ** (-min(len(ours.text), len(theirs.text)) / 50) for ours, theirs in pairs]
        by_length += sum(chances)
        spread += sum(chance * (1 - chance) for chance in chances)
        n_equal += int(np.trace(table))
        n_pairs += n
        n_others += n * (n - 1)
        n_equal_others += int(table.sum() - np.trace(table))
    if n_others and not n_equal_others:
        expected = variance = 3 * n_pairs / n_others
    allowed = max(1.0, by_length + 3 * math.sqrt(spread))
    sides = [side for pairs in questions for side in zip(*pairs, strict=True)]
    if any(not equal(side[0], reply) for side in sides for reply in side):
        allowed = max(allowed, expected + 3 * math.sqrt(variance))
    shared = shared_replies(questions)
    assert (shared.n_pairs, shared.n_equal) == (n_pairs, n_equal)
    assert math.isclose(shared.n_excess, max(0.0, n_equal - allowed), abs_tol=1e-6)
