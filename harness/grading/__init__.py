"""Grading: find the answer in a response, decide whether it is the reference, say by which rule.

Enter by `processes.pool` for responses of models (`grade_all`, `verdict_on`), by `grade` for trusted ones.

    find         where the answer stands in a response: text only, linear, parses nothing
    compare      whether two answers are the same, and by which rule
    verdict      find and compare put together, in steps
    processes    the same in worker processes with deadlines, for hostile text
    second       second opinions: other libraries, a judge model
"""

from harness.grading.verdict import GRADER, Judge, Verdict, grade

__all__ = ["GRADER", "Judge", "Verdict", "grade"]
