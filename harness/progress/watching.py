"""Events of a run that the command line or Python may show: methods that do nothing unless overridden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.core import channel

if TYPE_CHECKING:
    from harness.generation.run_progress import Progress
    from harness.runs.layout import RunFolder


class Watcher:
    """A watcher that shows nothing; a subclass overrides the events that it shows."""

    @property
    def resume_command(self) -> str:
        """The command shown when a signal ends a run; empty: "the same command again"."""
        return ""

    def warn(self, sentence: str) -> None:
        """A warning: an allowed but unusual setting, or a fact to know beside the score."""
        channel.warn(sentence)

    def advise(self, sentence: str) -> None:
        """A warning about a setting that is allowed but seldom intended, before the run's first request."""
        self.warn(sentence)

    def warn_of(self, cell: str, sentence: str, common: str) -> None:
        """A warning about one cell of a sweep. common: the words in which it may hold for other cells, too."""
        del common
        self.warn(f"{cell}: {sentence}")

    def starting(self, seconds: float, line: str) -> None:
        """Progress of a server's start."""

    def probing(self, what: str) -> None:
        """A probe begins. what: the server, and what its checks take, in one line."""

    def checking(self, check: str) -> None:
        """A probe makes this check now."""

    def checked(self, finding: str = "") -> None:
        """A check has ended. finding: its name, outcome and what it found; empty once the checks have ended."""

    def entering(self, cell: str) -> None:
        """A sweep begins this cell: the next session is the cell's, and its progress is shown under this name."""

    def sampling(self, what: str, folder: RunFolder) -> None:
        """A session begins. what: model, benchmarks and run folder in one line. folder: the run folder."""

    def sampled(self) -> None:
        """The session has ended; later events do not belong to it."""

    def standing(self, sentence: str) -> None:
        """Something has happened or is waited for (a download, a server, batches), as this sentence says."""

    def progressed(self, progress: Progress) -> None:
        """Progress, sent from time to time while samples are asked for; an exception raised here ends the session."""

    def graded(self, benchmark: str, n: int) -> None:
        """`n` samples of the benchmark are graded so far."""
