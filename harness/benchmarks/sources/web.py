"""A data file at a URL: downloaded once to the cache, and used only if its checksum matches the card's."""

from __future__ import annotations

import contextlib
import hashlib
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from harness.benchmarks.card import UrlSource
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Rows
from harness.core import channel, http_get, installation
from harness.core.errors import UsageError
from harness.core.files import checksum, write_atomically
from harness.core.sanitize import quoted

MAX_DOWNLOAD_BYTES = 1024**3
"""Maximum size of a file downloaded from a card's URL."""

TIMEOUT_SECONDS = 30.0
"""Maximum wait for a connection, a response, or more bytes."""

MAX_DOWNLOAD_SECONDS = 3600.0
"""Maximum time for a download."""


def read(source: UrlSource) -> Rows:
    """The rows of the file and of further files, which are downloaded if they are not in the cache. Raises
    `UsageError`."""
    if source.further:
        files = (source.model_copy(update={"further": ()}), *source.further)
        return Rows(tables.merge_rows(row for file in files for row in read(file).rows), source.url)
    path = cached_path(source)
    if not is_cached(source):
        data = _download(source)
        stated = hashlib.sha256(data).hexdigest()
        if stated != source.sha256:
            raise UsageError(f"{source.url} has the checksum {stated}, but the card specifies {source.sha256}")
        write_atomically(path, data)
    rows = tables.stream(path, source.split, source.url, damaged_rows=source.damaged_rows)
    return Rows(rows, source.url)


def is_cached(source: UrlSource) -> bool:
    """Whether all files are in the cache and match the card's checksums."""
    with contextlib.suppress(OSError):
        return checksum(cached_path(source)) == source.sha256 and all(map(is_cached, source.further))
    return False


def _download(source: UrlSource) -> bytes:
    """The file at the source's address. Raises `UsageError`."""
    host = urlsplit(source.url).hostname
    try:
        # Proxies and redirects are safe here, because the checksum verifies the file.
        trusted = ssl.create_default_context()
        with (
            httpx.Client(
                headers=http_get.HEADERS, verify=trusted, follow_redirects=True, timeout=TIMEOUT_SECONDS
            ) as client,
            channel.waiting(f"the download of {source.url}"),
        ):
            page = http_get.get(client, source.url, max_bytes=MAX_DOWNLOAD_BYTES, body_s=MAX_DOWNLOAD_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
        raise UsageError(
            f"{source.url} is not in the cache and cannot be reached ({quoted(str(error))}); copy "
            f"{cached_path(source)} from a machine that has it, or pass a local file as `data`"
        ) from error
    if page.status != 200:
        raise UsageError(f"{host} returned HTTP {page.status} for {source.url}; check that the file still exists")
    if not page.whole:
        limits = f"{MAX_DOWNLOAD_BYTES} bytes, or {MAX_DOWNLOAD_SECONDS:g} s"
        raise UsageError(f"the download of {source.url} exceeds the limit of {limits}")
    return page.body


def cached_path(source: UrlSource) -> Path:
    """The path of the downloaded file."""
    # The file keeps its name, because the reader uses its suffix.
    name = urlsplit(source.url).path.rpartition("/")[2]
    return installation.cache_folder() / "datasets" / source.sha256[:16] / name
