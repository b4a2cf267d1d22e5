"""Explains why a sample got its verdict: the grading is repeated by a worker process that can be killed."""

from __future__ import annotations

from harness.core.errors import UsageError
from harness.core.records import Question, Sample
from harness.grading.processes import pool


def why(question: Question, sample: Sample) -> list[str]:
    """Return the steps from the sample's text to its verdict, a sentence each, safe to print; may take seconds."""
    try:
        ((_, verdict),) = pool.verdicts({sample.question_id: question}, [sample], with_steps=True)
    # The benchmark's own verifier is code that the viewer does not trust, so it does not run.
    except UsageError as error:
        return [str(error)]
    return list(verdict.steps)
