"""Events of a run that a door may show: methods of one object, which do nothing unless a door overrides them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from harness.core.wording import Sentence

if TYPE_CHECKING:
    from harness.generation.progress import Progress
    from harness.runs.layout import RunFolder
    from server_launchers.keeping.progress import StartProgress
    from server_launchers.keeping.supervisor import RunningServer

ByteProgress = Callable[[int, int | None], None]
"""Called with the bytes so far and the bytes in all, where those are known."""


class Watcher:
    """The silent one; a door overrides what it shows."""

    @property
    def resume_command(self) -> str:
        """Shown when a signal ends a run; empty: "the same command again"."""
        return ""

    def warn(self, sentence: Sentence) -> None:
        """Something allowed and seldom meant, or worth knowing beside the score."""

    def fetching(self, what: str) -> AbstractContextManager[ByteProgress]:
        """`what` is being downloaded for the length of the block."""
        del what
        return nullcontext(lambda _done, _total: None)

    def starting(self, progress: StartProgress) -> None:
        """A server is on its way."""

    def started(self, server: RunningServer, seconds: float) -> None:
        """A server works, so many seconds after its start."""

    def checking(self, check: str) -> None:
        """A probe of a server makes this check now."""

    def checked(self) -> None:
        """Its checks are made."""

    def sampling(self, what: str, folder: RunFolder) -> None:
        """A session begins in `folder`; `what`: model, benchmarks and run folder on a line."""

    def sampled(self) -> None:
        """The session is over; what follows is about another matter."""

    def metered(self, address: str) -> None:
        """Metrics of the session can be read at this address."""

    def standing(self, sentence: Sentence) -> None:
        """A sentence about a wait: for a provider's batches, for shards, for a slow fingerprint."""

    def progressed(self, progress: Progress) -> None:
        """Called now and then while samples are asked for; what it raises ends the session."""

    def graded(self, benchmark: str, n: int) -> None:
        """`n` samples of the benchmark are graded so far."""
