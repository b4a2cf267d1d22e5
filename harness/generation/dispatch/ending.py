"""How a session comes to its end."""

from __future__ import annotations

from typing import Literal

from harness.core.errors import HarnessError

Phase = Literal["asking", "draining", "stopping"]
"""asking: requests go out. draining: none goes out, those in flight end. stopping: those in flight are cancelled."""


class Ending:
    """The phase of a session, and why it is not "asking". The phase only moves forwards; the first reason stays."""

    def __init__(self) -> None:
        self.phase: Phase = "asking"
        self.why = ""
        """Why nothing more was asked, in a sentence; empty if everything owed was."""
        self.rule = ""
        """The user's rule that ended the run early; empty if none did."""
        self.error: BaseException | None = None
        """Why the session was ended before its time; to be raised by the owner."""
        self.grace_ends: float | None = None
        """Monotonic second at which "draining" becomes "stopping"; None: never."""

    def drain(self, why: str, grace_ends: float | None = None) -> None:
        """Ask nothing more."""
        if self.phase == "asking":
            self.phase = "draining"
        if grace_ends is not None:
            self.grace_ends = grace_ends
        self.why = self.why or why

    def stop(self, why: str) -> None:
        """End what is in flight."""
        self.phase = "stopping"
        self.why = self.why or why

    def fail(self, error: BaseException) -> bool:
        """End what is in flight; `error` is the reason. False if there is an error already."""
        self.phase = "stopping"
        if self.error is not None:
            return False
        self.error = error
        self.why = error.sentence.marked if isinstance(error, HarnessError) else str(error)
        return True

    def by_rule(self, why: str) -> None:
        """Ask nothing more, by a rule of the user's."""
        self.drain(why)
        self.rule = self.why

    @property
    def asking(self) -> bool:
        """Whether requests may still go out."""
        return self.phase == "asking"
