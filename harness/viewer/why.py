"""Why a sample got its verdict, told anew from the question and the text, by a worker process that can be killed."""

from __future__ import annotations

from harness.core.errors import UsageError
from harness.core.records import Question, Sample
from harness.grading.processes import pool


def why(question: Question, sample: Sample) -> list[str]:
    """The steps from the sample's text to its verdict, a sentence each, harmless to print; takes up to seconds."""
    try:
        ((_, verdict),) = pool.verdicts({sample.question_id: question}, [sample], with_steps=True)
    except UsageError as error:  # the benchmark's own verifier, which nobody trusts here
        return [str(error)]
    return list(verdict.steps)
