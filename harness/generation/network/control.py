"""How a run in progress is watched and controlled: through two files in its folder, and through signals.

    status.json    written by the session every `STATUS_S` seconds: its `Progress`
    control.json   written by `harness status`: the `Orders` that the session follows from then on

Both are removed when the session ends; files left behind by a killed session are ignored, since no process holds the
run's lock any more. If the files cannot be written, the run continues.
Signals also control a run (`Signals`): the first Ctrl-C lets requests in flight finish, the second one ends them.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec

from harness.core import codec
from harness.core.errors import Interrupted, Signalled, StoreError
from harness.core.files import read_record, write_atomically
from harness.generation.run_progress import Progress
from harness.runs.layout import CONTROL, STATUS, RunFolder, holder_of

STATUS_S = 1.0
"""Seconds between two updates of the status file."""

MAX_BYTES = 4 * 1024 * 1024
"""Maximum size in bytes of the status or the orders; a status has a line for every endpoint."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants a session to do. concurrency: requests in flight; None: as at the start of the session."""

    concurrency: int | None = None
    paused: bool = False
    draining: bool = False


def progress_of(folder: RunFolder) -> Progress | None:
    """The progress reported by the session in `folder`; None if no session is active there on this host or it reports
    none.
    """
    progress: Progress | None = _read(folder, STATUS, Progress) if holder_of(folder) is not None else None
    return progress


def order(folder: RunFolder, **changed: Any) -> None:
    """Give the session in `folder` orders: the fields of `Orders` to change. Raises `StoreError` if none is active."""
    if holder_of(folder) is None:
        raise StoreError(f"no run is active in {folder.path}. Start or resume it with `harness run`.")
    orders = _read(folder, CONTROL, Orders) or Orders()
    write_atomically(folder.path / CONTROL, codec.encode(msgspec.structs.replace(orders, **changed)))


def _read(folder: RunFolder, name: str, kind: type[Any]) -> Any:
    """The content of one of the run's files as `kind`; None if the file is missing or is not of this kind."""
    with contextlib.suppress(StoreError):
        return read_record(folder.path / name, kind, MAX_BYTES, what="a run state", remedy="")
    return None


class Desk:
    """The session's side of the two files. Used from a single thread."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._orders = Orders()
        self._due = time.monotonic() + STATUS_S
        self.clear()

    def show(self, progress: Progress) -> None:
        """Write the progress if it is due."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + STATUS_S
            with contextlib.suppress(StoreError):
                write_atomically(self._folder.path / STATUS, codec.encode(progress))

    def new_orders(self) -> Orders | None:
        """The latest orders; None if they have not changed since the last call."""
        orders: Orders | None = _read(self._folder, CONTROL, Orders)
        if orders is None or orders == self._orders:
            return None
        self._orders = orders
        self._due = -math.inf  # so that the effect of the orders shows at once
        return orders

    def clear(self) -> None:
        """Remove both files."""
        for name in (STATUS, CONTROL):
            with contextlib.suppress(OSError):
                (self._folder.path / name).unlink(missing_ok=True)


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
