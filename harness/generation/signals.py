"""Signals that end a session (Ctrl-C, SIGTERM, SIGHUP): the first lets requests in flight end, the second ends them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from harness.core.errors import Interrupted


class Signals:
    """Catches SIGINT, SIGTERM and SIGHUP for the length of a `with` block, on the main thread only.

    Before `attach`, a signal raises `Interrupted` at the line that runs. After `attach`, each signal calls
    `on_signal(signum, nth)` on the main thread between two bytecodes; so `on_signal` must return at once and only start
    the end. A signal that the parent process told this one to ignore (nohup) stays ignored.
    """

    def __init__(self, message: Callable[[int], str]) -> None:
        self.caught: int | None = None
        """Number of the first signal that came; None before it."""
        self._message = message
        self._n = 0
        self._on_signal: Callable[[int, int], None] | None = None
        self._before: dict[int, Any] = {}

    def attach(self, on_signal: Callable[[int, int], None]) -> None:
        self._on_signal = on_signal

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(signum) is not signal.SIG_IGN:
                    self._before[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def take(self, signum: int) -> None:
        """Act as if the signal `signum` had come. Used for a broken pipe, which reaches Python as an exception."""
        self._handle(signum, None)

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        self._n += 1
        self.caught = self.caught or signum
        if self._on_signal is None:
            raise Interrupted(self._message(signum), signum)
        self._on_signal(signum, self._n)
