"""The socket in the run folder by which a run is steered while it goes: one line of JSON there, one line back.

It has the rights of its owner only, exists while requests can be made, and serves one command a connection, on the
network's loop. Whoever holds the run's lock may replace a socket that a dead process left behind; nothing else in its
place is touched. A file system without sockets, or any other refusal, costs the steering and nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness.core import codec
from harness.core.errors import HarnessError, StoreError
from harness.generation.progress import Progress
from harness.runs.layout import RunFolder

NAME = "control.sock"

MAX_LINE_BYTES = 64 * 1024
"""Longest command, in bytes; question ids are the longest thing in one."""

MAX_REPLY_BYTES = 4 * 1024 * 1024
"""Longest reply, in bytes; a status has a line for every endpoint."""

TIMEOUT_S = 5.0
"""Seconds for one command, from the connection to the reply."""

MAX_PATH_BYTES = 90
"""Longest address of a socket that every system takes (104 on some, 108 on others, less what a temporary name adds)."""


class ControlCommand(msgspec.Struct, frozen=True, kw_only=True):
    """verb: see `harness.generation.network.steering`; value: its number or key, as text."""

    verb: str
    value: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """said: one sentence; refused: the command came to nothing; facts: what `status` reports; None
    for the other verbs."""

    sentence: str = msgspec.field(name="said")  # "said" on the wire, in `--json` and above
    refused: bool = False
    facts: Progress | None = None


class ControlSocket:
    """Listens in `folder` and has `obey` answer each command. Used on one loop."""

    def __init__(
        self, folder: RunFolder, obey: Callable[[ControlCommand], Answer], on_event: Callable[..., None]
    ) -> None:
        self._path = folder.path / NAME
        self._obey = obey
        self._on_event = on_event
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Begin to listen. What stands in the way is logged, never raised."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if stat.S_ISSOCK(self._path.lstat().st_mode):
                self._path.unlink()
        except OSError:
            pass  # nothing there
        try:
            os.fchmod(listener.fileno(), 0o600)  # before it has a name: nobody else ever sees it open
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
        try:
            async with asyncio.timeout(TIMEOUT_S):
                line = await reader.readline()
                if line:
                    writer.write(codec.encode(self._answer(line)) + b"\n")
                    await writer.drain()
        except (TimeoutError, ValueError, OSError):
            pass  # silent, too long, or gone
        finally:
            writer.close()

    def _answer(self, line: bytes) -> Answer:
        try:
            command = codec.decode(line, ControlCommand)
            answer = self._obey(command)
        except codec.DecodeError as error:
            return Answer(sentence=f"this is no command: {error}", refused=True)
        except HarnessError as error:
            answer = Answer(sentence=error.sentence.marked, refused=True)
        if command.verb != "status":  # it changes nothing, and may be asked every second
            self._on_event(
                "control", verb=command.verb, value=command.value, said=answer.sentence, refused=answer.refused
            )
        return answer


def send(folder: RunFolder, command: ControlCommand) -> Answer:
    """Give `command` to the run in `folder`. Raises `StoreError` when no run is going there, or it does not answer."""
    path = folder.path / NAME
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, _address(path) as address:
            connection.settimeout(2 * TIMEOUT_S)
            connection.connect(address)
            connection.sendall(codec.encode(command) + b"\n")
            reply = _line(connection)
        return codec.decode(reply, Answer)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        raise StoreError(
            f"no run is going on in {folder.path}, so there is nothing to steer. `harness run` starts it, or goes on."
        ) from None
    except PermissionError as error:
        raise StoreError(f"{path}: only the user who started the run may steer it ({error.strerror}).") from error
    except TimeoutError as error:
        raise StoreError(f"the run in {folder.path} does not answer within {2 * TIMEOUT_S:.0f} s.") from error
    except (OSError, codec.DecodeError) as error:
        raise StoreError(f"{path}: {error}.") from error


def _line(connection: socket.socket) -> bytes:
    reply = b""
    while not reply.endswith(b"\n") and len(reply) <= MAX_REPLY_BYTES:
        more = connection.recv(65536)
        if not more:
            break
        reply += more
    return reply


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """`path` as short as a socket's address must be: where it is too long, through a link in the temporary folder."""
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield str(path)
        return
    folder = Path(tempfile.mkdtemp(prefix="harness-"))
    try:
        (folder / "run").symlink_to(path.parent, target_is_directory=True)
        yield str(folder / "run" / path.name)
    finally:
        shutil.rmtree(folder)
