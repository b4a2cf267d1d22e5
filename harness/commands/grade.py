"""Grades one response against one reference answer."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Unpack

from harness.core import plugins
from harness.core.errors import UsageError
from harness.core.installation import cache_folder
from harness.core.records import GradeRules
from harness.grading import Verdict
from harness.grading.external_graders import is_elsewhere, require_package
from harness.grading.grades import sample_of
from harness.grading.processes.persistent_workers import lasting_verdict
from harness.grading.verifier import RULES
from harness.options.commands import takes
from harness.options.finished_runs import GradeOptions
from reasoning_answers.host import read_calls

if TYPE_CHECKING:
    from harness.options.keywords import GradeKeywords


@takes(GradeOptions)
def grade(reference: Any, response: Any, **options: Unpack[GradeKeywords]) -> Verdict:
    r"""Grade one response. The returned verdict explains the steps that led to it, and is truthy if the answer is
    correct.

    reference, response: strings. For kind "calls" (docs/grading.md#function-calls), the accepted calls and the list of
    calls made, as JSON or as Python values.

    The comparison runs in a separate process with a memory limit and a deadline (in seconds). The options have the same
    names as in `harness grade`. Raises `UsageError`.

    >>> verdict = harness.grade("1/2", r"so \boxed{0.5}")
    >>> verdict.outcome, bool(verdict)
    ('correct', True)
    """
    return verdict_on(reference, response, GradeOptions.of(**options) if options else _default_grading())


@cache
def _default_grading() -> GradeOptions:
    """The default options of `grade`, created and checked once for all calls without options."""
    return GradeOptions()


def verdict_on(reference: Any, response: Any, options: GradeOptions, *, with_steps: bool = False) -> Verdict:
    """The verdict on `response`, from a worker process that is kept for the next call.

    reference: text, a number, or a list of the parts of one answer. with_steps: compute the steps of the verdict now
    rather than when they are first read. A user's own verifier gets a new process for each call, since its code may
    keep state. Raises `UsageError`.
    """
    if isinstance(reference, str) and not reference.strip():
        raise UsageError("the reference is empty: specify the correct answer", field="reference")
    # The name of a plug-in grader refers to its function, as in a card.
    grader = options.grader if options.grader == RULES else plugins.value_of("grader", options.grader) or options.grader
    if grader == RULES and is_elsewhere(options.kind):
        grader = options.kind
        try:
            reference = require_package(grader).read_reference(str(reference), cache_folder())
        except ValueError as error:
            raise UsageError(str(error), field="reference") from error
    rules = GradeRules(
        grader=grader,
        relative_tolerance=options.relative_tolerance,
        absolute_tolerance=options.absolute_tolerance,
        round_to_reference=options.round_to_reference,
        whole_reply=options.whole_reply,
    )
    try:
        sample = sample_of("", read_calls(response)) if options.kind == "calls" else sample_of(response)
    except ValueError as error:
        raise UsageError(str(error), field="response") from error
    return lasting_verdict(
        reference,
        sample,
        kind=options.kind,
        rules=rules,
        choices=options.choices,
        tools=options.tools,
        deadline_s=options.deadline,
        with_steps=with_steps,
    )
