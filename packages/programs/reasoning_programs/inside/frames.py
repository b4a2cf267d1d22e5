"""Messages over a file descriptor: four bytes of length, big-endian, and JSON."""

from __future__ import annotations

import json
import os
import select
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

MAX_FRAME_BYTES = 256 * 1024 * 1024
"""Maximum length of a message between the caller and the sandbox."""

MAX_REPLY_BYTES = 32 * 1024 * 1024
"""Maximum length of a message accepted from a program's process."""

_HEADER = struct.Struct(">I")
"""The length before a message."""


class Channel(NamedTuple):
    """The sandbox's connection to the caller: the descriptors for receiving and sending, equal for a socket."""

    receives: int
    sends: int


class ClosedError(Exception):
    """The other side closed the connection, or sent bytes that are not a message."""


def send(fd: int, value: Any) -> None:
    """Write a message with this value, which must be representable in JSON, to the descriptor. Raises `ClosedError`."""
    body = json.dumps(value, separators=(",", ":")).encode()
    data = memoryview(_HEADER.pack(len(body)) + body)
    try:
        while data:
            # A pipe accepts only as much as it has room for, so one write may be partial.
            data = data[os.write(fd, data) :]
    except OSError as error:
        raise ClosedError(str(error)) from error


def receive(fd: int, max_bytes: int = MAX_FRAME_BYTES, wait: Callable[[], None] | None = None) -> Any:
    """Read one message and no bytes beyond it. wait: called before each read; returns when bytes are available, or
    raises.

    Raises `ClosedError` at the end of the stream, or for bytes that are not a message.
    """
    (size,) = _HEADER.unpack(_exactly(fd, _HEADER.size, wait))
    # The length is only the other side's claim, so it is checked before memory is allocated for the body.
    if size > max_bytes:
        raise ClosedError(f"a message of {size} bytes")
    try:
        return json.loads(_exactly(fd, size, wait))
    # Deeply nested brackets make json's parser raise RecursionError, which is not a ValueError.
    except (ValueError, RecursionError) as error:
        raise ClosedError(f"not a valid message: {error}") from error


def _exactly(fd: int, size: int, wait: Callable[[], None] | None) -> bytes:
    """Read exactly `size` bytes. wait: called before each read. Raises `ClosedError`."""
    parts = []
    while size:
        if wait is not None:
            wait()
        try:
            # os.read allocates as many bytes as it may read, even if few are available.
            part = os.read(fd, min(size, 1 << 20))
        except OSError as error:
            raise ClosedError(str(error)) from error
        if not part:
            raise ClosedError("the connection was closed")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def readable(fds: list[int], seconds: float) -> list[int]:
    """The descriptors that are ready for reading; waits up to `seconds` for one."""
    return select.select(fds, [], [], max(seconds, 0.0))[0]
