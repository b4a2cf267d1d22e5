"""What follows when a helper of the harness fails: a process that it starts, or a request that is no sample's.

A failure that says nothing about a sample is tried again, `attempts` times in all, with longer and longer waits.
Afterwards it ends what the last column says. Requests of samples have a table of their own
(`harness.generation.dispatch.retry`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Helper = Literal[
    "sandbox is tried",  # before anything is executed, and says why it ends
    "sandbox starts",  # of a program, or of a tool's interpreter
    "sandbox dies",  # with a program in it
    "interpreter dies",  # with the variables of a sample
    "grader starts",
    "grader dies",  # while it decides an answer
    "judge is silent",  # its reply has no text
    "probe reads",  # the tokens of a stored reply: no answer in time, a status of 500 and above
]


@dataclass(frozen=True)
class Remedy:
    """attempts: in all. wait_s: seconds before the second attempt; before each further one, twice as many, 8 at most.

    then: the command does not begin (exit code 2); the run ends (`HelperFailed`, exit code 5); the sample's verdict is
    "undecided"; the model is told; the check is untested.
    """

    attempts: int
    wait_s: float
    then: Literal["no beginning", "run ends", "undecided", "told", "untested"]

    def waits(self) -> Iterator[float]:
        """The seconds to wait before each attempt; 0 before the first."""
        yield from (min(self.wait_s * 2.0 ** (n - 1), 8.0) if n else 0.0 for n in range(self.attempts))


HELPERS: Mapping[Helper, Remedy] = {
    "sandbox is tried": Remedy(2, 0.5, "no beginning"),
    "sandbox starts": Remedy(10, 0.5, "run ends"),
    "sandbox dies": Remedy(2, 0.0, "undecided"),
    "interpreter dies": Remedy(1, 0.0, "told"),
    "grader starts": Remedy(6, 0.5, "run ends"),
    "grader dies": Remedy(2, 0.0, "undecided"),
    "judge is silent": Remedy(2, 0.0, "undecided"),
    "probe reads": Remedy(5, 1.0, "untested"),
}
