"""Remarks on numbers of a report that a reader may find odd."""

from __future__ import annotations

from harness.scoring.intervals import Interval


def why_narrower(sampling: Interval | None, question: Interval | None, *, at_most: bool) -> tuple[str, ...]:
    """One sentence on why the interval for other questions is narrower than the one for the same questions; else empty.

    at_most: whether the sampling interval is only an upper bound, as with one sample of each question.
    """
    if sampling is None or question is None or question.high - question.low >= sampling.high - sampling.low:
        return ()
    reason = (
        "with one sample of each question, or with copies among the samples, it is only an upper bound"
        if at_most
        else "with few samples of each question it is kept wide, because they hardly show how much a question varies"
    )
    return (
        f"the interval for the same questions is wider than that for other questions: {reason}; the interval for other "
        "questions is measured on the spread between questions. More samples of each question narrow the interval for "
        "the same questions",
    )
