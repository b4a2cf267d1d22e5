"""Programs of language models, run in a sandbox: tested against a question's tests, or as interpreters of a tool.

    reply ─ replies ─► program ─ grading ─► jobs ─ cells ─► sandbox (bubblewrap, containers)
                                   │                           └─ inside: the only code that runs in the sandbox with it
    row ─ rows ─► tests_of ────────┘

Guarantees: a model's text is executed inside a sandbox and nowhere else; without one, nothing is executed. A verdict
never depends on data that the program could have forged (`inside.test_process`, `grading`). A sandbox failure leaves
the reply undecided. Not covered: bugs in the kernel, bubblewrap or the container engines; the speed of a program
relative to others.

The functions `read_row`, `read_reference`, `describe` and `example_replies`, `sandbox_status`, `Grader` and
`Interpreters` are also what the benchmark harness expects of the package that its entry point `program` names.
"""

from __future__ import annotations

from reasoning_programs.cells import sandbox_status
from reasoning_programs.errors import LostError, UnavailableError
from reasoning_programs.grading import Grader, ProgramVerdict, grade_program
from reasoning_programs.interpreters import CallResult, Interpreters
from reasoning_programs.rows import read_reference, read_row
from reasoning_programs.tests_of import Case, ProgramLimits, QuestionTests, describe, example_replies

__version__ = "0.1.0"
__all__ = [
    "CallResult",
    "Case",
    "Grader",
    "Interpreters",
    "LostError",
    "ProgramLimits",
    "ProgramVerdict",
    "QuestionTests",
    "UnavailableError",
    "describe",
    "example_replies",
    "grade_program",
    "read_reference",
    "read_row",
    "sandbox_status",
]
