"""Read the rows of a Parquet or Arrow file with arro3 in a child process, because a damaged file may crash the library.

    parent   open file as standard input ─▶ child   a line of JSON for each row; if the last line is a text: the error

The child's memory and CPU time are limited, and the parent counts the bytes that it writes.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from harness.core import installation
from harness.core.codec import digest
from harness.core.files import read_untrusted, replacing
from harness.core.images import ImageFolder
from server_launchers import isolated

FREE_MEMORY_BYTES = 1024**3
"""Address space of the child in addition to the unpacked size of the file."""

MAX_CPU_SECONDS = 1800
"""Maximum CPU time of the child."""

BATCH_ROWS, IMAGE_ROWS = 128, 8
"""Number of Parquet rows unpacked at a time, without and with images; an Arrow file defines its own batches."""

_NAME = re.compile(rb'{"sha256": "([0-9a-f]{64})"}')
"""An image in a line."""


class DamagedError(Exception):
    """The file cannot be read; the message explains why."""


class TooLargeError(Exception):
    """The file unpacks to more than the caller allows."""


def lines(file: BinaryIO, form: str, max_bytes: int, images: Sequence[str] = ()) -> Iterator[bytes]:
    """Each row of the open file as a line of JSON. Raises `DamagedError`, and `TooLargeError` beyond `max_bytes`.

    form: parquet; arrow, an Arrow file (Feather); arrow_stream, as written by `save_to_disk` of `datasets`. Dates and
    decimals are text, bytes are `<3 bytes>`. images: columns whose bytes are stored in the cache's image folder; the
    lines contain the checksum instead, {"sha256": …}, or why the bytes are not an image, {"refused": …}. These lines
    are stored there too, and reused as long as the file is unchanged and all its images exist.
    """
    folder = ImageFolder(installation.cache_folder() / "images")
    given, status = [str(folder.path), *images] if images else [], os.fstat(file.fileno())
    if not images or not status.st_nlink:  # a temporary file, unpacked from another
        yield from _unpacked(file, form, max_bytes, *given)
        return
    # Every change to the file updates its ctime, which no program can reset.
    state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    path = folder.path / "rows" / f"{digest([installation.build(), form, images, state])}.jsonl"
    stored = read_untrusted(path, max_bytes, ": remove it.") if path.is_file() else b""
    if stored and all(name.decode() in folder for name in _NAME.findall(stored)):
        yield from stored.splitlines(keepends=True)
        return
    with replacing(path) as rows:
        for line in _unpacked(file, form, max_bytes, *given):
            rows.write(line)
            yield line


def _unpacked(file: BinaryIO, form: str, max_bytes: int, *folder: str) -> Iterator[bytes]:
    """The lines from the child. folder: the image folder, then the image columns. Raises as `lines` does."""
    with subprocess.Popen(
        isolated.command(__name__, form, str(max_bytes), *folder),
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=isolated.environment(),
    ) as child:
        assert child.stdout is not None
        n_bytes = 0
        try:
            for line in child.stdout:
                if not line.endswith(b"\n"):
                    break  # the child ended in the middle of a row
                if line.startswith(b'"'):
                    raise DamagedError(str(json.loads(line)))
                n_bytes += len(line)
                if n_bytes > max_bytes:
                    raise TooLargeError
                yield line
            else:
                if not child.wait():
                    return
            raise DamagedError("the file is damaged, or one of its rows requires too much memory")
        finally:
            child.kill()


def _write_rows(form: str, max_bytes: int, folder: str = "", *images: str) -> None:
    """Write the rows from standard input to standard output; runs in the child. folder, images: see `lines`."""
    from arro3.io import read_ipc, read_ipc_stream, read_parquet

    memory = FREE_MEMORY_BYTES + max_bytes
    for limit, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, MAX_CPU_SECONDS)):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    os.lseek(0, 0, os.SEEK_SET)  # on systems where /dev/fd/0 shares the parent's position in the file
    readers: dict[str, Any] = {
        "parquet": partial(read_parquet, batch_size=IMAGE_ROWS if images else BATCH_ROWS),
        "arrow": read_ipc,
    }
    batches = readers.get(form, read_ipc_stream)("/dev/fd/0")
    names = batches.schema.names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the column {twice} appears twice")
    for batch in batches:
        rows: Any = batch.to_struct_array()
        for row in rows:
            value = row.as_py()
            value |= {column: _stored(value[column], ImageFolder(Path(folder))) for column in images if column in value}
            sys.stdout.write(json.dumps(value, ensure_ascii=False, default=_plain) + "\n")


def _stored(cell: Any, folder: ImageFolder) -> Any:
    """A cell with image checksums in place of the image bytes."""
    if isinstance(cell, list):
        return [_stored(each, folder) for each in cell]
    data = cell.get("bytes") if isinstance(cell, dict) else cell
    if not isinstance(data, bytes):
        return cell
    try:
        return {"sha256": folder.add(data)}
    except ValueError as error:
        return {"refused": str(error)}


def _plain(value: Any) -> str:
    """A value that JSON does not support, as text."""
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    try:
        _write_rows(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
    except BaseException as error:  # noqa: BLE001 - a panic of the library is not an `Exception`
        sys.stdout.write(json.dumps(str(error)[:500]) + "\n")
