"""Programs as answers: a program is read from a reply, run in a sandbox, and right if it passes its tests.

    reply ─ replies ─► program ─ decide ─► jobs ─ cells ─► sandbox (bubblewrap, containers)
                                   │                          └─ inside: the only code that runs in the sandbox with it
    row ─ rows ─► tests_of ────────┘

`ANSWER` is the entry.

Guarantees: a model's text is executed inside a sandbox and nowhere else; without one, nothing is executed. A verdict
depends on no byte that the program could have forged (`inside.tests_outside`, `decide`). A failure of the sandbox is
undecided. Not covered: faults of the kernel, of bubblewrap and of the container engines; how fast a program is beside
others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.extensions.answers.program.grading import ProgramGrader


class ProgramAnswer:
    """The extension for programs. Each method imports its own module when it is called."""

    def read(self, settings: Mapping[str, Any], text: str, row: Mapping[str, Any]) -> tuple[str, str]:
        """Return (text of the question, its tests as the reference) of a data row. Raises `ValueError`."""
        from harness.extensions.answers.program.rows import read
        from harness.extensions.answers.program.tests_of import reference_of

        read_row = read(settings, text, row)
        return read_row.text, reference_of(read_row.tests)

    def written(self, text: str) -> str:
        """Return the reference for tests that a person writes as JSON. Raises `ValueError`."""
        from harness.extensions.answers.program.rows import tests_of_text
        from harness.extensions.answers.program.tests_of import reference_of

        return reference_of(tests_of_text(text))

    def shown(self, reference: str) -> str:
        """Return the tests in a reference as a person reads them."""
        from harness.extensions.answers.program.shown import in_a_sentence

        return in_a_sentence(reference)

    def examples(self, reference: str) -> tuple[str, str] | None:
        """Return (a right reply, a wrong reply) made from the reference's solution; None if it holds no solution."""
        from harness.extensions.answers.program.shown import examples

        return examples(reference)

    def condition(self) -> str:
        """Return a sentence: which sandbox and compiler work on this machine, or why none does. Both are tried."""
        from harness.extensions.answers.program.sandboxes import condition

        return condition()

    def start(self, workers: int, sandbox: str | None) -> ProgramGrader:
        """Return a grader with `workers` threads. Raises `UsageError` for an unknown sandbox."""
        from harness.extensions.answers.program.grading import ProgramGrader

        return ProgramGrader(workers, sandbox)


ANSWER = ProgramAnswer()
