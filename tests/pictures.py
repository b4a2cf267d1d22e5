"""Small images made by hand: a header that states a size, and bytes that are no picture."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

KINDS: dict[str, Callable[[int, int], bytes]] = {
    "png": lambda w, h: b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", w, h),
    "jpeg": lambda w, h: b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08" + struct.pack(">HH", h, w),
    "gif": lambda w, h: b"GIF89a" + struct.pack("<HH", w, h),
    "webp": lambda w, h: b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", w, h),
}
"""Kind → the header of an image of this width and height."""

LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (639 | 479 << 14).to_bytes(4, "little")
EXTENDED = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
"""The other two headers of WebP, of 640 × 480."""


def picture(seed: int, n_bytes: int = 200) -> bytes:
    """An image of one of the kinds, 640 pixels wide and `seed` high, with random bytes behind its header."""
    make = [*KINDS.values()][seed % len(KINDS)]
    return make(640, seed) + random.Random(seed).randbytes(n_bytes)
