"""Grading: find the answer in a response, decide whether it equals the reference, and say which rule decided.

The entry points are `processes.pool` for model responses (`grade_all`, `verdict_on`) and `grade` for trusted responses.

    find         where the answer is in a response: by patterns, in linear time, without parsing it
    compare      whether two answers are the same, and by which rule
    verdict      puts find and compare together, and explains each verdict in steps
    processes    does this in worker processes with deadlines, for hostile text
    second       second opinions: other libraries, a judge model
"""

from harness.grading.verdict import GRADER, Verdict, grade

__all__ = ["GRADER", "Verdict", "grade"]
