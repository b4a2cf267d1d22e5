"""Grading: find the answer in a response, compare it with the reference, say by which rule.

`grade` works in this process; `pool.grade_all` in bounded worker processes.
"""

from harness.grading.grader import GRADER, Judge, grade

__all__ = ["GRADER", "Judge", "grade"]
