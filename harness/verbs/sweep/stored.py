"""Reads the small JSON files of a sweep's folder, which any program may have damaged."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import open_untrusted

T = TypeVar("T")


def read(path: Path, kind: type[T], max_bytes: int, *, what: str, removed: str) -> T | None:
    """The record in the file, checked against `kind`; None if there is no file. Raises `StoreError`.

    what: the record as a noun, and removed: what happens once the file is removed, both for the error's sentence.
    """
    try:
        with open_untrusted(path) as file:
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise StoreError(f"{path} is larger than {max_bytes} bytes, too large for {what}; remove it, and {removed}")
        return codec.decode(data, kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error
    except codec.DecodeError as error:
        raise StoreError(f"{path} is not {what} ({error}); remove it, and {removed}") from error
