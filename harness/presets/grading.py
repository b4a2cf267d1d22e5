"""The grading options, each declared once for the command `score`, its Python function and sweep files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.core.cores import granted_cores
from harness.core.errors import UsageError
from harness.core.literals import SecondGraderName
from harness.core.option_kinds import LIMITS
from harness.core.options import Option, Options

HEADING = "Grading"

DEADLINE_SECONDS = 2.0
"""Default number of seconds for grading an answer."""

MAX_DEADLINE_SECONDS = 3600.0
"""A deadline set by the user must be below this many seconds."""


class GradingOptions(Options):
    """How samples are graded."""

    k: Annotated[tuple[int, ...], Option(under=HEADING, metavar="K", least=1)] = ()
    """Also print pass@K, pass^K and maj@K, for any K up to the number of samples per question. Repeatable.

    In addition to the powers of two.
    """
    workers: Annotated[int | None, Option(under=HEADING, least=1, most=256)] = None
    """Number of grading processes. Default: one per core."""
    deadline: Annotated[float, Option(under=HEADING, above=0, below=MAX_DEADLINE_SECONDS)] = DEADLINE_SECONDS
    """Maximum time to grade an answer, in seconds. An answer that takes longer is left undecided. Default: 2."""
    sandbox: Annotated[str | None, Option(under=HEADING, metavar="KIND")] = None
    """Sandbox for programs: bwrap (bubblewrap), docker or podman. Write docker:IMAGE to use your own image. Default:
    bwrap.

    For benchmarks whose answers are programs; the others run nothing.
    """
    fresh: Annotated[bool, Option(under=HEADING)] = False
    """Regrade all samples, even those already graded by this version."""
    answer_from_reasoning: Annotated[bool, Option(under=HEADING)] = False
    """Also print the accuracy that results if the answer is taken from the reasoning when a reply has no final answer.

    The grades stay as they are.
    """
    limits: Annotated[str | None, Option(under=HEADING, metavar="NAME=TIME[,...]", kind=LIMITS)] = None
    """Also count the requests that meet these limits, and the right answers among them: first_token, token_gap, total,
    such as first_token=2s,token_gap=50ms (docs/load.md#limits).
    """
    also: Annotated[tuple[SecondGraderName, ...] | None, Option(under=HEADING)] = None
    """Also grade with this grader, and print how often it agrees with the rules. Repeatable."""
    also_python: Annotated[Path | None, Option(under=HEADING, metavar="FILE")] = None
    """Python interpreter in which all `also` graders are installed. Default: the current interpreter."""

    def _check(self) -> None:
        """Raise `UsageError` if `also_python` is given without `also`."""
        super()._check()
        if self.also_python is not None and not self.also:
            raise UsageError("`also_python` requires `also=GRADER`")

    @property
    def second_graders(self) -> tuple[str, ...]:
        """The graders of `also`, without duplicates, in the order given."""
        return tuple(dict.fromkeys(self.also or ()))

    @property
    def n_workers(self) -> int:
        """Number of grading processes: the user's number, or one per core."""
        return self.workers or granted_cores()
