"""What happens when a helper of the harness fails: a process that it starts, or a request other than a sample's.

What fails for a reason unrelated to a sample is tried again, `attempts` times in total, with increasing waits. After
that, the last column says what happens. Requests for samples have their own table
(`harness.generation.dispatch.retry`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Helper = Literal[
    "grader starts",
    "grader dies",  # while it grades an answer
    "judge is silent",  # its reply has no text
    "probe reads",  # the tokens of a stored reply: no answer in time, or a status of 500 or above
]


@dataclass(frozen=True)
class Remedy:
    """attempts: in total. wait_s: seconds before the second attempt; doubled before each further one, up to 8.

    then: the run ends (`HelperFailed`, exit code 5); the sample's verdict is "undecided"; the check is untested.
    """

    attempts: int
    wait_s: float
    then: Literal["run ends", "undecided", "untested"]

    def waits(self) -> Iterator[float]:
        """The seconds to wait before each attempt; 0 before the first."""
        yield from (min(self.wait_s * 2.0 ** (n - 1), 8.0) if n else 0.0 for n in range(self.attempts))


HELPERS: Mapping[Helper, Remedy] = {
    "grader starts": Remedy(6, 0.5, "run ends"),
    "grader dies": Remedy(2, 0.0, "undecided"),
    "judge is silent": Remedy(2, 0.0, "undecided"),
    "probe reads": Remedy(5, 1.0, "untested"),
}
