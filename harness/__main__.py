"""The command `harness`, also as `python -m harness`."""

from __future__ import annotations

import _thread
import contextlib
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_MOMENT_S = 0.05
"""Seconds after which a Ctrl-C that Python could only print is raised again."""

_main_thread = _thread.get_ident()

_USUAL: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""Signals that end a command, with Python's own handlers for them."""

_GC_OBJECTS = 150_000
"""Number of new objects that trigger a garbage collection (Python's default is 700). The roughly 90,000 objects
imported at startup live as long as the process: collections would scan all of them, for a seventh of the startup CPU
time, and find nothing.
"""


_LEAST_MEMORY = 512 * 1024 * 1024
"""Smallest memory limit, in bytes, with which a command starts. With less, a library may fail in the middle of its
work, and some (OpenBLAS) end the process.
"""


def main() -> NoReturn:
    """Import the command line and run it.

    The import takes a moment; a signal during it must end the process without a traceback (`_leave`). Afterwards,
    Python handles signals as usual. `harness run` handles them itself once it has started. Until then, the message
    on a signal must tell how to resume, so `_leave` stays in place for it.
    """
    _refuse_little_memory()
    # Otherwise the import below would trigger many collections that find nothing (`_GC_OBJECTS`).
    gc.set_threshold(_GC_OBJECTS, *gc.get_threshold()[1:])
    # httpx imports its own command line, and with it all of rich, for a third of the startup CPU time; httpcore, which
    # it uses, imports trio if that is installed, for a sixth. Both work without these, and nothing in this process runs
    # on trio.
    for unused in ("httpx._main", "trio"):
        sys.modules[unused] = None  # type: ignore[assignment]
    # A Ctrl-C in a finalizer is lost: Python prints it and continues. `_unraisable` raises it again.
    sys.unraisablehook = _unraisable
    # Any other handler was set by somebody else, or the signal is ignored.
    usual = [number for number, handler in _USUAL.items() if signal.getsignal(number) is handler]
    for number in usual:
        signal.signal(number, _leave)
    try:
        from harness.cli.main import main as run
    except ModuleNotFoundError as error:
        sys.stderr.write(_not_installed(error))
        sys.exit(2)
    try:
        if not _is_continued():
            _restore(usual)
        run()
    finally:
        _restore(usual)


def _refuse_little_memory() -> None:
    """End the process with a message if one of its memory limits is below `_LEAST_MEMORY`."""
    for kind, flag in ((resource.RLIMIT_AS, "-v"), (resource.RLIMIT_DATA, "-d")):
        if 0 <= resource.getrlimit(kind)[0] < _LEAST_MEMORY:  # no limit is a negative number
            least = f"raise it to at least 512 MiB (ulimit {flag} {_LEAST_MEMORY // 1024})"
            sys.stderr.write(f"harness: the memory limit is too low: {least}.\n")
            sys.exit(2)


def _is_continued() -> bool:
    """Whether the command line has a command that is resumed by repeating it."""
    return sys.argv[1:2] == ["run"]


def _restore(signums: Iterable[int]) -> None:
    """Restore Python's own handlers for these signals."""
    for signum in signums:
        signal.signal(signum, _USUAL[signum])


def _not_installed(error: ModuleNotFoundError) -> str:
    """The message if this Python lacks the packages of the checkout. Raises `error` if it is our own bug."""
    if (error.name or "harness").partition(".")[0] in ("harness", "server_launchers"):
        raise error
    import shlex
    from pathlib import Path

    own, checkout = shlex.quote(sys.executable), shlex.quote(str(Path(__file__).resolve().parents[1]))
    # A system's Python may refuse to install packages (Debian's does); a virtual environment's accepts them.
    return (
        f"harness is not installed for {own} (missing package: {error.name}). To install it, run: {own} -m venv venv "
        f"&& venv/bin/python -m pip install {checkout}; then venv/bin/python -m harness\n"
    )


def _leave(signum: int, _frame: FrameType | None) -> None:
    """End the process at once: no command has started yet, so nothing has to be closed first."""
    goes_on = "; run the same command again to resume" if _is_continued() else ""
    with contextlib.suppress(OSError):
        os.write(2, f"harness: stopped by {signal.Signals(signum).name}{goes_on}.\n".encode())
    os._exit(128 + signum)


def _unraisable(problem: UnraisableHookArgs) -> None:
    """Handle an exception that Python can only print because it was raised in a finalizer or in the middle of an
    import.

    A Ctrl-C, or the exception that a session raises for a signal (also a kind of `KeyboardInterrupt`), is raised again
    a moment later in the main thread. Others are printed.
    """
    if not issubclass(problem.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(problem)
        return
    while True:
        try:
            _thread.start_new_thread(_interrupt, (getattr(problem.exc_value, "signum", signal.SIGINT),))
        except KeyboardInterrupt:
            # On a busy machine, the moment may be over before this function ends, and nothing can be raised from here.
            continue
        return


def _interrupt(signum: int) -> None:
    """Send the main thread this signal in a moment; runs in a separate thread."""
    time.sleep(_MOMENT_S)
    # A real signal: `interrupt_main` would not wake a main thread that sleeps or waits.
    signal.pthread_kill(_main_thread, signum)


if __name__ == "__main__":
    main()
