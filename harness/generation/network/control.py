"""How a run is steered while it goes: a socket in the run folder, one line of JSON there, one line back.

Only the run's user may open the socket. It exists while requests can be made, and serves one command a connection, on
the network's loop. Whoever holds the run's lock may replace a socket that a dead process left behind; any other file in
its place stays. If the socket cannot be made (on a file system without sockets, for example), the run goes on, but
cannot be steered.
The verbs by which `harness status` steers a run (`VERBS`) are read, checked and carried out on the loop by `Steering`.

A signal steers, too (`Signals`): the first Ctrl-C lets requests in flight end, the second one ends them.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import shutil
import signal
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.core import codec
from harness.core.errors import HarnessError, Interrupted, StoreError, UsageError, near_names, option
from harness.core.inert import quoted, visible
from harness.core.nouns import count_noun
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.machine_limits import limit_concurrency
from harness.generation.network.admission import Admission
from harness.generation.network.endpoints_file import EndpointsFile
from harness.generation.progress import Progress
from harness.generation.settings import MAX_CONCURRENCY
from harness.runs.layout import RunFolder

NAME = "control.sock"

MAX_LINE_BYTES = 64 * 1024
"""Longest command in bytes; question ids are the longest part of one."""

MAX_REPLY_BYTES = 4 * 1024 * 1024
"""Longest reply in bytes; a status has a line for every endpoint."""

TIMEOUT_S = 5.0
"""Seconds for one command, from the connection to the reply."""

MAX_PATH_BYTES = 90
"""Longest path of a socket, in bytes, that is used as it is.

Systems accept 104 or 108 bytes; some are left for the suffix of a temporary name.
"""


class ControlCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command to a running session. verb: one of `VERBS`. value: its number or key, as text; "" if it takes none."""

    verb: str
    value: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to a command.

    sentence: what was done, or why not. refused: the command had no effect. facts: the report of `status`; None for
    other verbs.
    """

    sentence: str = msgspec.field(name="said")  # Named "said" in the protocol and in `--json`.
    refused: bool = False
    facts: Progress | None = None


class ControlSocket:
    """A Unix socket in the run folder, by which other processes steer the run. All methods run in one event loop.

    obey: carries a command out and returns the answer. on_event: notes each command in the log.
    """

    def __init__(
        self, folder: RunFolder, obey: Callable[[ControlCommand], Answer], on_event: Callable[..., None]
    ) -> None:
        self._path = folder.path / NAME
        self._obey = obey
        self._on_event = on_event
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Start listening. An obstacle is logged, never raised."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if stat.S_ISSOCK(self._path.lstat().st_mode):
                self._path.unlink()
        except OSError:
            pass  # No file is in its place.
        try:
            # Set before the socket has its name, so that no other user ever sees it open.
            os.fchmod(listener.fileno(), 0o600)
            with _address(self._path) as address:
                listener.bind(address)
            self._path.chmod(0o600)
            listener.setblocking(False)
            self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=MAX_LINE_BYTES)
        except OSError as error:
            listener.close()
            self._on_event("not_steerable", reason=str(error))

    async def close(self) -> None:
        """Stop listening and remove the socket."""
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(OSError):
                self._path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one command of a client; anything that goes wrong ends only this connection."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                line = await reader.readline()
                if line:
                    writer.write(codec.encode(self._answer(line)) + b"\n")
                    await writer.drain()
        except (TimeoutError, ValueError, OSError):
            pass  # The client was silent, sent too much, or has gone.
        except asyncio.CancelledError:
            pass  # The session has ended. asyncio of Python 3.11 logs a traceback for a handler that ends cancelled.
        finally:
            writer.close()

    def _answer(self, line: bytes) -> Answer:
        """The answer to a line with a command; every command that changes something is logged."""
        try:
            command = codec.decode(line, ControlCommand)
            answer = self._obey(command)
        except codec.DecodeError as error:
            return Answer(sentence=f"this is not a command: {error}", refused=True)
        except HarnessError as error:
            answer = Answer(sentence=error.sentence.marked, refused=True)
        if command.verb != "status":  # A status changes nothing and may come every second, so it is not logged.
            self._on_event(
                "control", verb=command.verb, value=command.value, said=answer.sentence, refused=answer.refused
            )
        return answer


def send(folder: RunFolder, command: ControlCommand) -> Answer:
    """Send `command` to the run in `folder`. Raises `StoreError` if no run is going on there, or it does not answer."""
    path = folder.path / NAME
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, _address(path) as address:
            # Longer than the run's own limit, so its refusal arrives before we give up.
            connection.settimeout(2 * TIMEOUT_S)
            connection.connect(address)
            connection.sendall(codec.encode(command) + b"\n")
            reply = _line(connection)
        return codec.decode(reply, Answer)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        raise StoreError(
            f"no run is going on in {folder.path}, so there is nothing to steer. `harness run` starts or continues it."
        ) from None
    except PermissionError as error:
        raise StoreError(f"{path}: only the user who started the run may steer it ({error.strerror}).") from error
    except TimeoutError as error:
        raise StoreError(f"the run in {folder.path} does not answer within {2 * TIMEOUT_S:.0f} s.") from error
    except (OSError, codec.DecodeError) as error:
        raise StoreError(f"{path}: {error}.") from error


def _line(connection: socket.socket) -> bytes:
    """The bytes up to the end of a line or of the connection; at most about `MAX_REPLY_BYTES`."""
    reply = b""
    while not reply.endswith(b"\n") and len(reply) <= MAX_REPLY_BYTES:
        more = connection.recv(65536)
        if not more:
            break
        reply += more
    return reply


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """The path at which to bind or connect the socket `path`: itself, or a shorter one through a temporary link."""
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield str(path)
        return
    folder = Path(tempfile.mkdtemp(prefix="harness-"))
    try:
        # The folder is linked, not the socket: `bind` does not follow a link to a file that is not there yet.
        (folder / "run").symlink_to(path.parent, target_is_directory=True)
        yield str(folder / "run" / path.name)
    finally:
        shutil.rmtree(folder)


# ---- what a run can be told to do


VERBS = {
    "status": "What the run is doing.",
    "concurrency": "Change the number of requests in flight.",
    "pause": "Send no more requests; those in flight end, then the run waits.",
    "resume": "Continue after a pause.",
    "drain": "Send no more requests; those in flight end, then the session ends.",
    "cancel": "Give up one sample (QUESTION_ID:INDEX) or a question (QUESTION_ID) for this session; the samples stay "
    "missing.",
    "reload": "Read the file of endpoints again.",
}
_WITH_VALUE = ("concurrency", "cancel")


class Steering:
    """Carries out the commands that a user sends to a running session, and rereads its file of endpoints, if any."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        facts: Callable[[], Progress],
        endpoints_file: EndpointsFile | None,
        on_event: Callable[..., None],
        admission: Admission | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._facts = facts
        self._on_event = on_event
        self._endpoints_file = endpoints_file
        self._admission = admission
        self._listed: Sequence[Endpoint] = admission.listed if admission is not None else ()
        self._in_use = admission.present if admission is not None else []

    def obey(self, command: ControlCommand) -> Answer:
        """Carry out `command`. Raises `UsageError` with the reason when it cannot be done."""
        verb, value = command.verb, command.value
        if verb not in VERBS:
            raise UsageError(
                f"no command {visible(verb, 60)!r}; there are {', '.join(VERBS)}.{near_names(verb, VERBS)}"
            )
        if (verb in _WITH_VALUE) != bool(value):
            raise UsageError(f"{verb} {'needs a' if verb in _WITH_VALUE else 'takes no'} value.")
        if verb == "status":
            return self._status()
        if not self._dispatcher.ending.asking:
            raise UsageError("the run is ending: it asks nothing more.")
        if verb == "concurrency":
            return self._concurrency(value)
        if verb == "cancel":
            return self._cancel(value)
        if verb == "reload":
            return self._reload()
        facts = self._facts()
        if verb == "drain":
            self._dispatcher.drain("drained by `harness status`")
            return Answer(
                sentence=f"draining: {count_noun(facts.in_flight, 'request')} in flight end, then the session ends"
            )
        if verb == "pause":
            self._dispatcher.pause()
            return Answer(sentence=f"paused; in flight: {count_noun(facts.in_flight, 'request')}")
        self._dispatcher.resume()
        return Answer(sentence="resumed" if facts.paused else "the run was not paused")

    def follow_file(self) -> str:
        """Use the endpoints of the file from now on, if the file has changed. Return a sentence on the result."""
        if not self._dispatcher.ending.asking or (self._endpoints_file is None and self._admission is None):
            return "no file of endpoints is followed"
        try:
            endpoints = self._endpoints_file.changed() if self._endpoints_file is not None else None
        except UsageError as error:
            self._on_event("endpoints_not_changed", reason=str(error))
            return f"{error.sentence.marked} The endpoints stay as they are."
        if self._admission is None:
            return "the file has not changed" if endpoints is None else self._dispatcher.replace_endpoints(endpoints)
        return self._admit(endpoints, self._admission)

    def _admit(self, changed: Sequence[Endpoint] | None, admission: Admission) -> str:
        """Use those endpoints of the file that have passed the check by now; return a sentence on the result.

        changed: all endpoints of the file if it has changed, else None.
        """
        self._listed = self._listed if changed is None else changed
        admitted = admission.admitted(self._listed)
        left_out = len(self._listed) - len(admitted)
        if not admitted or admitted == self._in_use:
            waiting = f"{left_out} endpoints of the file are still being examined, or were refused"
            return waiting if left_out else "the file has not changed"
        self._in_use = admitted
        sentence = self._dispatcher.replace_endpoints(admitted)
        return f"{sentence}; {left_out} more are still being examined, or were refused" if left_out else sentence

    def _status(self) -> Answer:
        facts = self._facts()
        state = "ending" if facts.stopping else "paused" if facts.paused else "running"
        done = f"{facts.done} of {count_noun(facts.total, 'sample')}"
        sentence = f"{state}: {done}, {facts.in_flight} of {facts.concurrency} in flight"
        return Answer(sentence=sentence, facts=facts)

    def _concurrency(self, value: str) -> Answer:
        """Set the concurrency. Raises `UsageError` for anything but a number in range."""
        # Nine digits say enough, and int() refuses a text of thousands with an error of its own.
        if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= MAX_CONCURRENCY:
            raise UsageError(f"concurrency {visible(value, 40)}: expected a number from 1 to {MAX_CONCURRENCY}.")
        requested = int(value[:9])
        number = limit_concurrency(requested)
        self._dispatcher.set_concurrency(number)
        limited = f"; the limit of open files (ulimit -n) allows no {requested}" if number < requested else ""
        return Answer(sentence=f"concurrency is {number}{limited}")

    def _cancel(self, key: str) -> Answer:
        """Cancel one sample, `QUESTION:SAMPLE`, or all samples of a question.

        Raises `UsageError` if none of them is still to come.
        """
        # An id may itself end in a colon and a number: the whole text goes first.
        n = self._dispatcher.cancel(key, None, "cancelled by `harness status`")
        question_id, colon, index = key.rpartition(":")
        if not n and colon and index.isascii() and index.isdigit():
            n = self._dispatcher.cancel(question_id, int(index[:9]), "cancelled by `harness status`")
        if not n:
            raise UsageError(f"no sample of {quoted(key)} is still to come in this session.")
        return Answer(sentence=f"{n} {'sample' if n == 1 else 'samples'} cancelled; the next session asks again")

    def _reload(self) -> Answer:
        if self._endpoints_file is None:
            raise UsageError(f"this run has no file of endpoints: start it with {option('endpoints_file')}")
        # The user may know of a change that the file's time and size do not show.
        self._endpoints_file.forget()
        return Answer(sentence=self.follow_file())


# ---- signals


class Signals:
    """Catches SIGINT, SIGTERM and SIGHUP for the length of a `with` block, on the main thread only.

    Before `attach`, a signal ends the block with `Interrupted`. After `attach`, each signal calls
    `on_signal(signum, nth)` on the main thread between two bytecodes; so `on_signal` must return at once and only start
    the end. A signal that the parent process told this one to ignore (nohup) stays ignored. again_seconds: a further
    signal within so many seconds of the first counts as the first, also if it comes after the block (`timeout -s INT`
    sends two).
    """

    class Caught(KeyboardInterrupt):
        """Raised by the signal `signum` in whatever code runs at that moment.

        Only a KeyboardInterrupt passes through all code: asyncio handles any other exception, and
        `threading.Thread.start` takes an `Exception` for a failure to start, after which the thread ends with a
        KeyError.
        """

        def __init__(self, signum: int) -> None:
            super().__init__()
            self.signum = signum

    def __init__(self, message: Callable[[int], str], again_seconds: float = 0.0) -> None:
        self.caught: int | None = None
        """Number of the first signal that came; None before it."""
        self._again_seconds = again_seconds
        self._deaf_until = -math.inf
        self._ended = False
        self._message = message
        self._n = 0
        self._on_signal: Callable[[int, int], None] | None = None
        self._before: dict[int, Any] = {}

    def attach(self, on_signal: Callable[[int, int], None]) -> None:
        """Call `on_signal` at each signal from now on, and at once if a signal has come before.

        The exception of that earlier signal was lost: Python only prints what is raised in a finalizer.
        """
        self._on_signal = on_signal
        if self.caught is not None:
            on_signal(self.caught, self._n)

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(signum) is not signal.SIG_IGN:
                    self._before[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Else the next signal after `again_seconds` restores the handlers.
        self._ended = True
        if self.caught is None or not self._again_seconds:
            self._restore()
        if isinstance(error, self.Caught) and self.caught is not None:
            interrupted = Interrupted(self._message(self.caught), self.caught)
            # The code that the signal ended may have noted what it cost.
            for note in getattr(error, "__notes__", ()):
                interrupted.add_note(note)
            raise interrupted from None

    def _restore(self) -> None:
        """Give the signals back to the handlers that they had before the block."""
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def take(self, signum: int) -> None:
        """Act as if the signal `signum` had come. Used for a broken pipe, which reaches Python as an exception."""
        self._handle(signum, None)

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        """Note a signal and call `on_signal`; before `attach`, raise `Caught`, which ends the block."""
        if time.monotonic() < self._deaf_until:
            return
        if self._ended:
            self._restore()
            signal.raise_signal(signum)
            return
        self._deaf_until = time.monotonic() + self._again_seconds
        self._n += 1
        # The first signal decides the exit code.
        self.caught = self.caught or signum
        if self._on_signal is None:
            raise self.Caught(signum)
        self._on_signal(signum, self._n)
