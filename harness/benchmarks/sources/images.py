"""A row's images: read from its columns, and placed in the text of its question.

    cell of an image column                       is
    {bytes, path} of a Parquet file               the bytes, which the reader has stored
    data:image/png;base64,…                       the bytes
    figures/a.png                                 the file below the folder of a local data file
    null, ""                                      no image; its number stays free

A row refers to its images by checksum. The bytes are in a cache folder (`shared_folder`), from which a run takes the
images that its questions show.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from harness.benchmarks.sources.tables import Row
from harness.core import installation
from harness.core.files import read_named, real
from harness.core.images import CHECKSUM, MAX_IMAGE_BYTES, MAX_IMAGES, ImageFolder
from harness.core.records import MediaPart
from harness.core.sanitize import quoted, visible

_DATA_URL = re.compile(r"data:[\w.+/-]{0,100};base64,", re.IGNORECASE)


def shared_folder() -> ImageFolder:
    """The cache folder with the images of all rows that have been read."""
    return ImageFolder(installation.cache_folder() / "images")


def stored(rows: Iterable[Row], columns: Sequence[str], folder: Path | None) -> Iterator[Row]:
    """The rows with the checksums of their images, which are then in `shared_folder`; or the reason why an image cannot
    be read, because its row may not be asked. Raises `StoreError`.

    columns: the image columns. folder: the data file's folder, below which a cell may name a file; None: cells cannot
    name files.
    """
    images = shared_folder()
    for row in rows:
        checksums: list[str | None] = []
        problem = ""
        for column in filter(row.value.__contains__, columns):
            cell = row.value[column]
            cells = cell if isinstance(cell, list) else [cell]
            try:
                if len(checksums) + len(cells) > MAX_IMAGES:
                    raise ValueError(f"is one of more than {MAX_IMAGES}, the limit for a question")
                checksums += [_checksum(each, images, folder) for each in cells]
            except ValueError as error:
                problem = problem or f"{row.where}: the image in the column {visible(column, 100)!r} {error}"
        yield row._replace(images=tuple(checksums) if any(checksums) else (), problem=problem)


def _checksum(cell: Any, images: ImageFolder, folder: Path | None) -> str | None:
    """The checksum of the image in a cell, which is then stored in `images`; None without an image. Raises `ValueError`
    with the end of a sentence.
    """
    if cell in (None, "") or cell == {"bytes": None, "path": None}:
        return None
    if isinstance(cell, dict):
        if set(cell) == {"refused"}:
            raise ValueError(cell["refused"])
        name = cell.get("sha256")
        if set(cell) == {"sha256"} and isinstance(name, str) and CHECKSUM.fullmatch(name) and name in images:
            return name
        cell = cell.get("path") if cell.keys() == {"bytes", "path"} and cell["bytes"] is None else cell
    if not isinstance(cell, str):
        raise ValueError(f"must be bytes, a data URL or a file path, found {quoted(repr(cell))}")
    if (head := _DATA_URL.match(cell)) is None:
        return images.add(_file(cell, folder))
    try:
        return images.add(base64.b64decode(cell[head.end() :], validate=True))
    except binascii.Error as error:
        raise ValueError(f"is not valid base64: {error}") from error


def _file(name: str, folder: Path | None) -> bytes:
    """The bytes of the file that a cell names. Raises `ValueError` with the end of a sentence."""
    shown, path = quoted(name), PurePosixPath(name)
    if "://" in name:
        raise ValueError(f"is {shown}, but URLs are not fetched: download the image and specify its path")
    if folder is None:
        raise ValueError(f"is {shown}, which is not a data URL; only local data files can refer to image files")
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ValueError(f"is {shown}; a path must be inside the data file's folder and must not contain `..`")
    file = folder / path
    if not real(file).is_relative_to(real(folder)):
        raise ValueError(f"is {shown}, a link that points outside the data file's folder")
    try:
        return read_named(file, MAX_IMAGE_BYTES)
    except OSError as error:
        raise ValueError(f"is {shown}, which cannot be read: {error.strerror or error}") from error


def marks(mark: str) -> re.Pattern[str]:
    """The pattern that finds a card's `image_mark` in a text; its group is the number, if the mark has one."""
    return re.compile(re.escape(mark).replace(r"\{n\}", "([0-9]{1,2})"))


def placed(text: str, images: Sequence[str | None], mark: str, *, first: bool) -> tuple[MediaPart, ...]:
    """The images at the positions of their marks, with images that no mark refers to at the end. Raises `ValueError`
    with the end of a sentence for a mark without an image.

    images: as in a `Row`. first: whether all images precede the text, whose marks then count as words.
    """
    if first:
        return tuple(MediaPart(sha256=image, start=0, end=0) for image in images if image)
    parts, named = [], set()
    for number, match in enumerate(marks(mark).finditer(text), 1):
        number = int(match[1]) if match.re.groups else number
        image = images[number - 1] if 1 <= number <= len(images) else None
        if image is None:
            raise ValueError(f"contains the marker {match[0]!r} but has no image {number}")
        named.add(number)
        parts.append(MediaPart(sha256=image, start=match.start(), end=match.end()))
    rest = [image for number, image in enumerate(images, 1) if image and number not in named]
    return (*parts, *(MediaPart(sha256=image, start=len(text), end=len(text)) for image in rest))
