"""Bytes that may outgrow memory: held up to a bound, then in a file without a name that ends with the process."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import IO

from harness.core.errors import StoreError
from harness.core.files import disk_error

HELD_BYTES = 32 * 1024 * 1024
"""Bytes of one `Spilled` that stay in memory."""


class Spilled:
    """Bytes to which more are appended, read at any place. The file stands where the system keeps temporary ones
    (`TMPDIR`)."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._file: IO[bytes] | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, data: bytes) -> None:
        """Put `data` at the end. Raises `StoreError` where the disk is full."""
        self._size += len(data)
        if self._file is None and self._size <= HELD_BYTES:
            self._held += data
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as this object
                weakref.finalize(self, self._file.close)
                _write(self._file, bytes(self._held))
                self._held = bytearray()
            _write(self._file, data)
        except OSError as error:
            raise disk_error(Path(tempfile.gettempdir()), error) from error

    def read(self, begin: int, size: int) -> bytes:
        """`size` bytes from `begin` on. Raises `StoreError`."""
        if self._file is None:
            return bytes(memoryview(self._held)[begin : begin + size])
        parts = []
        try:
            while size > 0 and (part := os.pread(self._file.fileno(), size, begin)):
                parts.append(part)
                begin, size = begin + len(part), size - len(part)
        except OSError as error:
            raise StoreError(f"cannot read a temporary file again: {error.strerror or error}.") from error
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _write(file: IO[bytes], data: bytes) -> None:
    while data:
        data = data[file.write(data) :]
