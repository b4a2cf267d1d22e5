"""Images in questions: what their first bytes say, and the folders that store them by checksum.

No image is decoded, scaled or re-encoded: requests send the bytes in the data. The type of an image is read from its
first bytes, never from a name, and only the four types that servers accept are allowed.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import StoreError
from harness.core.files import disk_errors, open_untrusted, read_untrusted, write_unsynced

MAX_IMAGE_BYTES = 20 * 1024**2
"""Longest image, in bytes."""

MAX_IMAGES = 100
"""Most images of a question, as in a request of the Messages API."""

MAX_SHOWN_PIXELS = 50_000_000
"""Largest image that the viewer shows, in pixels."""

HEADER_BYTES = 256 * 1024
"""Bytes at the beginning of an image that are searched for what is unusual about it."""

CHECKSUM = re.compile(r"[0-9a-f]{64}")
"""The name of an image's file."""

_SIGNS = re.compile(
    rb"(?P<png>\x89PNG\r\n\x1a\n)|(?P<jpeg>\xff\xd8\xff)|(?P<webp>RIFF....WEBP)|(?P<gif>GIF8[79]a)", re.DOTALL
)
"""The first bytes of the images that are sent; the groups are the types."""
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG's frame markers; a frame's header has the size."""

_GIF_FRAME = re.compile(rb"(?s)!\xf9\x04.{4}\0[,!]")
"""The control block before each frame of a GIF."""
_ORIENTATION = re.compile(rb"(?s)\x01\x12\0\x03\0\0\0\x01\0[\x02-\x08]|\x12\x01\x03\0\x01\0\0\0[\x02-\x08]\0")
"""The entry for an orientation other than the usual one (1) in Exif data, in either byte order."""


def media_type(data: bytes) -> str:
    """The media type of an image, from its first bytes. Raises `ValueError` with the end of a sentence if the image is
    too long or not a PNG, JPEG, WebP or GIF.
    """
    if len(data) > MAX_IMAGE_BYTES:
        raise ValueError(f"has {len(data)} bytes; the limit is {MAX_IMAGE_BYTES}")
    if (sign := _SIGNS.match(data)) is None:
        raise ValueError("is not a PNG, JPEG, WebP or GIF file")
    return f"image/{sign.lastgroup}"


def pixels(data: bytes) -> tuple[int, int] | None:
    """The width and height in an image's header; None if they cannot be read."""
    sign = _SIGNS.match(data)
    kind, head = sign and sign.lastgroup, data[:32]
    try:
        if kind == "png":
            return struct.unpack(">II", head[16:24])
        if kind == "gif":
            return struct.unpack("<HH", head[6:10])
        if kind == "webp" and head[12:16] == b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        if kind == "webp" and head[12:16] == b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        if kind == "webp":
            width, height = struct.unpack("<HH", head[26:30])
            return width & 0x3FFF, height & 0x3FFF
        return _jpeg_pixels(data) if kind == "jpeg" else None
    except struct.error:
        return None


def _jpeg_pixels(data: bytes) -> tuple[int, int] | None:
    """The size in the first frame of a JPEG; None if the file ends before it."""
    for marker, body in _jpeg_segments(data):
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", body, 1)
            return width, height
    return None


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The marker and content of each segment of a JPEG up to its first frame, as far as the data goes."""
    at, marker = 2, 0
    while marker not in _JPEG_FRAMES and at + 4 <= len(data):
        sign, marker, length = struct.unpack_from(">BBH", data, at)
        if sign != 0xFF or length < 2:
            return
        yield marker, data[at + 4 : at + 2 + length]
        at += 2 + length


def unusual_traits(head: bytes) -> list[str]:
    """What servers may treat differently about an image, as parts of a sentence. head: its first bytes."""
    size, kind = pixels(head), (sign := _SIGNS.match(head)) and sign.lastgroup
    marks = ["state more than 50 million pixels"] if size and size[0] * size[1] > MAX_SHOWN_PIXELS else []
    if size is None:
        marks.append("state no size that can be read")
    if _is_animated(head, kind):
        marks.append("are animated")
    if kind == "png" and head[24:25] == b"\x10":
        marks.append("have 16 bits per channel")
    for marker, body in _jpeg_segments(head) if kind == "jpeg" else ():
        if marker in _JPEG_FRAMES and body[5:6] == b"\x04":
            marks.append("have CMYK colors")
        # Exif is a TIFF file in a segment: byte order, then a directory of 12-byte entries with the orientation.
        if marker == 0xE1 and body.startswith(b"Exif\0\0") and _ORIENTATION.search(body, 0, 4096):
            marks.append("are rotated by their Exif data")
    return marks


def _is_animated(head: bytes, kind: str | None) -> bool:
    """Whether an image of this kind states more than one picture in its first bytes."""
    if kind == "png":
        return b"acTL" in head.partition(b"IDAT")[0]
    if kind == "gif":
        return len(_GIF_FRAME.findall(head)) > 1
    return kind == "webp" and head[12:16] == b"VP8X" and any(flags & 2 for flags in head[20:21])


class ImageFacts(NamedTuple):
    """What is known about an image without decoding it. kind: such as "png". pixels: as stated in its header."""

    name: str
    kind: str
    pixels: tuple[int, int] | None
    n_bytes: int

    @property
    def file_name(self) -> str:
        """A name from which other programs recognize its type."""
        return f"{self.name}.{self.kind}"

    @property
    def description(self) -> str:
        """Its name, pixels and bytes as text."""
        size = "size unknown" if self.pixels is None else f"{self.pixels[0]} × {self.pixels[1]} pixels"
        return f"{self.file_name}, {size}, {self.n_bytes:,} bytes"

    @property
    def can_be_shown(self) -> bool:
        """Whether it is safe for a browser to decode: a small file may state a size that fills the memory."""
        return self.pixels is not None and self.pixels[0] * self.pixels[1] <= MAX_SHOWN_PIXELS


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """A folder of images, each a file that is named by its SHA-256 and written once and whole."""

    path: Path

    def __contains__(self, name: str) -> bool:
        path = self.path / name
        return path.is_file() and path.stat().st_size > 0  # an empty file, left by a power failure, is stored again

    def add(self, data: bytes) -> str:
        """Store an image unless it is already here, and return its checksum. Raises `ValueError` as `media_type` does,
        and `StoreError`.
        """
        media_type(data)
        name = sha256(data).hexdigest()
        # Not synced: a file emptied by a power failure does not match its name and is rejected when it is read.
        if name not in self:
            write_unsynced(self.path / name, data)
        return name

    def take(self, names: Iterable[str], source: ImageFolder) -> None:
        """Copy the images that are missing here from another folder, as far as it has them. Raises `StoreError`, also
        for an image that was changed there.
        """
        for name in names:
            if name in self or name not in source:
                continue
            data = source.read(name)
            with disk_errors(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(OSError):  # on another file system, or one without hard links, it is copied
                os.link(source.path / name, self.path / name, follow_symlinks=False)
                continue
            write_unsynced(self.path / name, data)

    def read(self, name: str) -> bytes:
        """The bytes of an image. Raises `StoreError` if it is missing or does not have this checksum."""
        path = self.path / name
        try:
            data = read_untrusted(path, MAX_IMAGE_BYTES, "; too large.") if CHECKSUM.fullmatch(name) else b""
        except FileNotFoundError:
            data = b""
        if sha256(data).hexdigest() != name:
            what = "was changed" if data else "is missing"
            raise StoreError(f"the image {path} {what}; delete it if it exists, and run the same command again.")
        return data

    def head(self, name: str) -> bytes:
        """The first `HEADER_BYTES` of an image, without a check; empty if it is missing."""
        with contextlib.suppress(OSError), open_untrusted(self.path / name) as file:
            return file.read(HEADER_BYTES)
        return b""

    def facts(self, name: str) -> ImageFacts:
        """What is known about an image. Raises `StoreError` as `url` does."""
        data = self.read(name)
        return ImageFacts(name, self.media_type(name, data).removeprefix("image/"), pixels(data), len(data))

    def media_type(self, name: str, data: bytes) -> str:
        """The media type of an image that was read here. Raises `StoreError` if such images are not sent."""
        try:
            return media_type(data)
        except ValueError as error:
            raise StoreError(f"the image {self.path / name} {error}.") from error

    def url(self, name: str) -> str:
        """An image as a data URL. Raises `StoreError` as `read` does."""
        data = self.read(name)
        return f"data:{self.media_type(name, data)};base64,{base64.b64encode(data).decode()}"
