"""What a score records of its judge: who was in force, and whether it has ended."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.core.inert import visible

MAX_NAME_CHARS = 100
"""A judge's name is cut to this length in a sentence."""


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """The judge by whose rules a benchmark was scored, also if it decided no sample.

    name: of the model, its prompt and its votes, as in the grader of a sample that it decided. settings: its options
    that decide verdicts, by name. ended: it has replied about all answers in its scope. mute: it gave no verdict on
    any.
    """

    name: str
    settings: dict[str, Any]
    ended: bool
    mute: bool = False

    def doubt(self, which: str) -> str:
        """A sentence if the score is not yet the judge's; else empty. which: whose judging, such as "the run"."""
        name = visible(self.name.removeprefix("judge:"), MAX_NAME_CHARS)
        if not self.ended:
            return (
                f"the judging of {which} by {name} has not ended: answers on which it has not ruled keep the verdict "
                "without the judge. The same `harness score` command goes on with it"
            )
        if self.mute:
            return (
                f"the judge {name} gave no verdict at all on {which}, so the verdicts without the judge stand. The "
                "same `harness score` command asks it again"
            )
        return ""
