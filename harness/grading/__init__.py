"""Grading: find the answer in a response, decide whether it is the reference, say by which rule.

Enter by `processes.pool` for responses of models (`grade_all`, `verdict_on`), by `grade` for trusted ones.
"""

from harness.grading.verdict import GRADER, Judge, Verdict, grade

__all__ = ["GRADER", "Judge", "Verdict", "grade"]
