"""Grading: find the answer in a response, decide whether it equals the reference, and say which rule decided.

The entry points are `processes.pool` for model responses (`grade_all`, `verdict_on`) and `grade` for trusted responses.

    find         where the answer is in a response: by patterns, in linear time, without parsing it
    compare      whether two answers are the same, and by which rule
    search       finds the answer to a question in a sample: `find` with its reasoning, calls and other boxes
    verdict      puts search and compare together
    grades       the same for samples of questions, by the rules or a verifier
    steps        a verdict in words
    processes    does this in worker processes with deadlines, for hostile text
    second       second opinions: other libraries, a judge model
"""

from harness.grading.grades import grade
from reasoning_answers import Verdict
from reasoning_answers.host import GRADER

__all__ = ["GRADER", "Verdict", "grade"]
