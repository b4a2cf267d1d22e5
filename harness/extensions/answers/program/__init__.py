"""Programs as answers: a program is extracted from a reply, run in a sandbox, and correct if it passes its tests.

    reply ─ grading ─► program ─ grading ─► jobs ─ cells ─► sandbox (bubblewrap, containers)
                                   │                           └─ inside: the only code that runs in the sandbox with it
    row ─ rows ─► tests_of ────────┘

`ANSWER` is the entry.

Guarantees: a model's text is executed inside a sandbox and nowhere else; without one, nothing is executed. A verdict
never depends on data that the program could have forged (`inside.tests_outside`, `grading`). A sandbox failure leaves
the sample undecided. Not covered: bugs in the kernel, bubblewrap or the container engines; the speed of a program
relative to others.
"""

from __future__ import annotations

from harness.core.plugins import LateFunctions

_READING = {"read": "rows", "written": "rows", "shown": "tests_of", "examples": "tests_of"}

ANSWER = LateFunctions(
    __name__,
    {
        **_READING,
        "condition": "cells",
        "start": "grading",
        "Interpreters": "interpreters",
    },
)
"""The extension (`harness.grading.elsewhere.AnswerExtension`)."""
