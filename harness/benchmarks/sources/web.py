"""A data file at a fixed address, known by its checksum: downloaded once, never trusted without it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from harness.benchmarks.card import UrlSource
from harness.benchmarks.limits import MAX_DOWNLOAD_BYTES
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Rows
from harness.core.errors import UsageError
from harness.core.files import write_atomically
from harness.core.inert import quoted

TIMEOUT_S = 30.0
"""Wait for an answer or for more bytes, in seconds."""


def read(source: UrlSource) -> Rows:
    """The rows of the file, downloaded where the cache has not got it. Raises `UsageError`."""
    path = _cached_path(source)
    if not cached(source):
        data = _download(source)
        found = hashlib.sha256(data).hexdigest()
        if found != source.sha256:
            raise UsageError(f"{source.url} has the checksum {found}, but the card says {source.sha256}")
        write_atomically(path, data)
    return Rows(tables.read(path, shown=source.url), source.url)


def cached(source: UrlSource) -> bool:
    """The file is in the cache, whole."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(_cached_path(source).read_bytes()).hexdigest() == source.sha256
    return False


def _download(source: UrlSource) -> bytes:
    host = urlsplit(source.url).hostname
    try:
        with urllib.request.urlopen(source.url, timeout=TIMEOUT_S) as answer:  # noqa: S310 - the card allows http(s) only
            data: bytes = answer.read(MAX_DOWNLOAD_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise UsageError(f"{host} answered {error.code} for {source.url}; is the file still there?") from error
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{source.url} is not in the cache and cannot be reached ({quoted(str(error))}); fetch it where there is a "
            "network, or give a local file with --data"
        ) from error
    if len(data) > MAX_DOWNLOAD_BYTES:
        raise UsageError(f"{source.url} is longer than {MAX_DOWNLOAD_BYTES} bytes")
    return data


def _cached_path(source: UrlSource) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    name = urlsplit(source.url).path.rpartition("/")[2]
    return base / "reasoning-harness" / "datasets" / source.sha256[:16] / name
