"""Reading a file or a table inside a zip archive, with the same bounds as any other compressed file."""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from harness.benchmarks.limits import FREE_UNPACKED_BYTES, MAX_UNPACKED_RATIO
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError
from harness.core.inert import quoted, visible


def split_path(path: str) -> tuple[str, str]:
    """Return (path of the file, path inside it): `a/rows.zip/test/b.csv` gives (`a/rows.zip`, `test/b.csv`).

    The path inside is empty if `path` leads into no archive.
    """
    archive, inside, member = path.partition(".zip/")
    return (f"{archive}.zip", member) if inside else (path, "")


def unpack(opened: zipfile.ZipFile, member: zipfile.ZipInfo, shown: str) -> bytes:
    """The content of a file in an open zip archive. shown: the file's name in messages.

    Raises `UsageError` if it is larger than its packed size allows, and zipfile's own errors for a damaged archive.
    """
    bound = FREE_UNPACKED_BYTES + MAX_UNPACKED_RATIO * member.compress_size
    with opened.open(member) as file:
        # The size in the archive's list is its maker's claim, so reading stops at the bound.
        data = file.read(bound + 1)
    if len(data) > bound:
        raise UsageError(f"{shown} unpacks to more than {bound} bytes")
    return data


def read(archive: Path, member: str, shown: str) -> list[Row]:
    """All rows of a table in a zip archive.

    member: the table's path in the archive. shown: the table's name in messages. Raises `UsageError`.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            data = unpack(opened, opened.getinfo(member), visible(shown))
    except KeyError:
        raise UsageError(f"{visible(shown)}: the archive holds no {visible(member, 200)!r}") from None
    # zipfile raises RuntimeError for an encrypted file, and for a compression that this Python cannot read.
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        raise UsageError(f"cannot read {visible(shown)}: {quoted(str(error))}") from error
    with tempfile.TemporaryDirectory() as folder:
        # The reader goes by the ending, and a compressed table has two (.csv.gz).
        path = Path(folder) / f"rows{''.join(PurePosixPath(member).suffixes[-2:])}"
        path.write_bytes(data)
        return [*tables.stream(path, shown=shown)]
