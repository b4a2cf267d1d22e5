"""Data packed by Zstandard: Python 3.14 reads it, and `backports.zstd` is the same module for older Pythons."""

from __future__ import annotations

import sys
from typing import BinaryIO

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def unpack(file: BinaryIO, n_bytes: int) -> bytes:
    """The first `n_bytes` unpacked bytes; fewer if there are no more. Raises `ValueError` for damaged data.

    Several frames in a row, as parallel packers write them (pzstd), are read as one.
    """
    try:
        with zstd.open(file) as unpacked:
            data: bytes = unpacked.read(n_bytes)
            return data
    except (zstd.ZstdError, EOFError) as error:
        raise ValueError(str(error)) from error
