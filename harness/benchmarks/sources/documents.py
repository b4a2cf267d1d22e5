"""The documents of a row, from a zip archive beside the rows (AA-LCR).

A row names its documents by `document_category`, `document_set_id` and `data_source_filenames` (file names with
semicolons between them). In the archive a document stands at CATEGORY/SET/NAME, below any folder.
"""

from __future__ import annotations

import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from harness.benchmarks.limits import MAX_FIELD_CHARS
from harness.benchmarks.sources import archives
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError
from harness.core.inert import quoted, visible

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
        data = archives.unpack(opened, files[0], f"{visible(shown)}: {visible(name, 200)}")
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
