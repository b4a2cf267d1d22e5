"""Reading a table, or the documents of rows, inside a zip archive, with the same bounds as any other compressed file.

A row names its documents (AA-LCR) by `document_category`, `document_set_id` and `data_source_filenames` (file names
with semicolons between them). In the archive a document stands at CATEGORY/SET/NAME, below any folder.
"""

from __future__ import annotations

import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from harness.benchmarks.limits import FREE_UNPACKED_BYTES, MAX_FIELD_CHARS, MAX_UNPACKED_RATIO
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


# ---- the documents of rows


Members = dict[str, list[zipfile.ZipInfo]]
"""Last three parts of a path → the files of an archive with such a path; files in different folders may share it."""

COLUMNS = ("document_category", "document_set_id", "data_source_filenames")
"""Columns of a row that name its documents: category, set and file names."""


def with_documents(rows: Iterable[Row], archive: Path, shown: str) -> Iterator[Row]:
    """Each row with a column `documents`: the texts of its documents, in the row's order.

    shown: the archive's name for messages. Raises `UsageError`.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members: Members = {}
            for info in opened.infolist():
                if not info.is_dir():
                    members.setdefault(_name(info.filename), []).append(info)
            for row in rows:
                yield Row(row.where, {**row.value, "documents": _texts(row, opened, members, shown)})
    # zipfile raises RuntimeError for an encrypted file, and for a compression that this Python cannot read.
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        raise UsageError(f"cannot read {visible(shown)}: {quoted(str(error))}") from error


def _texts(row: Row, opened: zipfile.ZipFile, members: Members, shown: str) -> list[str]:
    """The texts of one row's documents, in the row's order. members: last three parts of a path → the archive's files.
    shown: the archive's name for messages. Raises `UsageError`.
    """
    category, group, names = (str(row.value.get(column) or "") for column in COLUMNS)
    texts, n_chars = [], 0
    for name in filter(None, map(str.strip, names.split(";"))):
        path = visible(f"{category}/{group}/{name}", 200)
        files = members.get(_name(f"{category}/{group}/{name}"), [])
        if len(files) != 1:
            problem = f"{len(files)} documents {path!r}, in different folders" if files else f"no document {path!r}"
            raise UsageError(f"{row.where}: {visible(shown)} holds {problem}")
        data = unpack(opened, files[0], f"{visible(shown)}: {visible(name, 200)}")
        texts.append(data.decode("utf-8", "replace"))
        n_chars += len(texts[-1])
        if n_chars > MAX_FIELD_CHARS:
            raise UsageError(f"{row.where}: its documents have more than {MAX_FIELD_CHARS} characters together")
    if not texts:
        raise UsageError(f"{row.where} names no documents in {', '.join(COLUMNS)}")
    return texts


def _name(path: str) -> str:
    """The last three parts of a path. Accents are normalised, because other systems encode them in another way."""
    return "/".join(PurePosixPath(unicodedata.normalize("NFC", path)).parts[-3:])
