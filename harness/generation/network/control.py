"""How a run in progress is watched, through a file in its folder, and ended, through signals.

The session writes its `Progress` to status.json every `STATUS_S` seconds, and removes the file when it ends; a file
left behind by a killed session is ignored, since no process holds the run's lock any more. If the file cannot be
written, the run continues.
Of the signals (`Signals`), the first Ctrl-C lets requests in flight finish, and the second one ends them.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from harness.core import codec
from harness.core.errors import Interrupted, Signalled, StoreError
from harness.core.files import read_record, write_atomically
from harness.generation.run_progress import Progress
from harness.runs.layout import STATUS, RunFolder, holder_of

STATUS_S = 1.0
"""Seconds between two updates of the status file."""

MAX_BYTES = 4 * 1024 * 1024
"""Maximum size in bytes of the status, which has a line for every endpoint."""


def progress_of(folder: RunFolder) -> Progress | None:
    """The progress reported by the session in `folder`; None if no session is active there on this host or it reports
    none.
    """
    if holder_of(folder) is not None:
        with contextlib.suppress(StoreError):
            return read_record(folder.path / STATUS, Progress, MAX_BYTES, what="a run state", remedy="")
    return None


class Desk:
    """The session's side of the status file. Used from a single thread."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._due = time.monotonic() + STATUS_S
        self.clear()

    def show(self, progress: Progress) -> None:
        """Write the progress if it is due."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + STATUS_S
            with contextlib.suppress(StoreError):
                write_atomically(self._folder.path / STATUS, codec.encode(progress))

    def clear(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            (self._folder.path / STATUS).unlink(missing_ok=True)


# ---- signals


class Signals:
    """Catches SIGINT, SIGTERM and SIGHUP within a `with` block, on the main thread only.

    Before `attach`, a signal ends the block with `Interrupted`. After `attach`, each signal calls
    `on_signal(signum, nth)` on the main thread between two bytecodes; so `on_signal` must return at once and only start
    the end. A signal that the parent process told this one to ignore (nohup) stays ignored.
    """

    def __init__(self, message: Callable[[int], str]) -> None:
        self.caught: int | None = None
        """Number of the first signal received; None before the first."""
        self._message = message
        self._n = 0  # signals so far
        self._on_signal: Callable[[int, int], None] | None = None  # None before `attach`
        self._before: dict[int, Any] = {}  # number of a signal → its handler outside of the block

    def attach(self, on_signal: Callable[[int, int], None]) -> None:
        """Call `on_signal` at each signal from now on, and at once if a signal was received earlier.

        (In that case the signal's exception was lost, because Python only prints exceptions raised in a finalizer.)
        """
        self._on_signal = on_signal
        if self.caught is not None:
            on_signal(self.caught, self._n)

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(signum) is not signal.SIG_IGN:
                    self._before[signum] = signal.signal(signum, self.take)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Restore the previous handlers, and raise `Interrupted` for `Signalled` and for the exception into which a
        library turned it.
        """
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        if error is not None and self.caught is not None and (self._on_signal is None or isinstance(error, Signalled)):
            interrupted = Interrupted(self._message(self.caught), self.caught)
            # The code that the signal ended may have added notes on the consequences.
            for note in getattr(error, "__notes__", ()):
                interrupted.add_note(note)
            raise interrupted from None

    def take(self, signum: int, _frame: FrameType | None = None) -> None:
        """Record a signal and call `on_signal`; before `attach`, raise `Signalled`, which ends the block.

        Called by Python for a signal and by our code for a broken pipe, which reaches Python as an exception.
        """
        self._n += 1
        # The first signal decides the exit code.
        self.caught = self.caught or signum
        if self._on_signal is None:
            raise Signalled(signum)
        self._on_signal(signum, self._n)
