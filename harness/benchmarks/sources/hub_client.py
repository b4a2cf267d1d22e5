"""The two requests of the Hugging Face hub that data sets need: which files a commit has, and a file.

    GET /api/datasets/NAME[/revision/COMMIT]       {"sha", "siblings": [{"rfilename"}], "cardData": {"configs"}}
    GET /datasets/NAME/resolve/COMMIT/FILE         the bytes, mostly by a redirect to a store of large files

Guarantees: a download that breaks off goes on where it stopped; a file of the store of large files has the SHA-256 that
the hub named; the token stays with the hub's host and is in no message. The token is the user's: HF_TOKEN, else the
file that `hf auth login` wrote, unless HF_HUB_DISABLE_IMPLICIT_TOKEN is set. Not covered: uploads, models, git.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx

from harness.benchmarks.limits import MAX_DATA_BYTES, MAX_LISTING_BYTES
from harness.core import http_get
from harness.core.files import read_named, replacing
from harness.core.limits import MAX_NAME_BYTES
from harness.core.secret import Secret, bearer

TIMEOUT_SECONDS = 20.0
"""Longest wait for a connection, for an answer or for more bytes."""

Client = httpx.Client

_SHA256 = re.compile(r"[0-9a-f]{64}")


class HubRefusalError(Exception):
    """The hub refused a request. status: of HTTP. error_code: the hub's own word for the reason; empty without one."""

    def __init__(self, status: int, error_code: str = "") -> None:
        super().__init__(f"status {status} {error_code}".strip())
        self.status = status
        self.error_code = error_code


class BadDownloadError(Exception):
    """A download is longer than allowed, or is not what the hub described."""


class UnreachableError(Exception):
    """The hub did not answer, or its answer broke off again and again."""


def headers(home: Path) -> dict[str, str]:
    """The headers of a request to the hub, with the user's token if there is one. home: the hub's own folder."""
    token = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN")
    if token is None and not os.environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN"):
        try:
            file = Path(os.environ.get("HF_TOKEN_PATH") or home / "token").expanduser()
            token = read_named(file, MAX_NAME_BYTES).decode()
        except (OSError, UnicodeDecodeError):
            token = None
    token = (token or "").strip()
    # Any other character would break the header, and its error message would repeat the token.
    usable = token and token.isascii() and token.isprintable()
    return bearer(Secret(token)) if usable else {}


def tls_settings() -> ssl.SSLContext:
    """TLS settings with the certificate authorities that httpx trusts by default."""
    return _tls_settings(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@functools.cache
def _tls_settings(*_variables: str | None) -> ssl.SSLContext:
    """Read the authorities once for all values of the variables that httpx heeds: it takes longer than a small file."""
    return httpx.create_ssl_context()


@contextlib.contextmanager
def connect(home: Path) -> Iterator[httpx.Client]:
    """Context manager with a client for the hub.

    The client uses the proxies of the environment and follows redirects, without the token. home: the hub's own folder,
    which may hold the token. Inside the context, failures of the connection are raised as `UnreachableError`, others of
    HTTP as `BadDownloadError`.
    """
    try:
        with httpx.Client(
            headers=http_get.HEADERS | headers(home),
            timeout=TIMEOUT_SECONDS,
            follow_redirects=True,
            verify=tls_settings(),
        ) as client:
            yield client
    except (httpx.TransportError, httpx.TooManyRedirects) as error:
        raise UnreachableError(str(error)) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise BadDownloadError(str(error)) from error


def description(client: httpx.Client, endpoint: str, name: str, revision: str | None) -> dict[str, Any]:
    """The hub's description of a data set's commit; `revision` None: the newest.

    Raises `HubRefusalError`, `BadDownloadError`, `httpx.HTTPError`. endpoint: address of the hub.
    """
    page = io.BytesIO()
    url = f"{endpoint}/api/datasets/{quote(name)}" + (f"/revision/{quote(revision, safe='')}" if revision else "")
    fetch(client, url, page, MAX_LISTING_BYTES)
    try:
        value = json.loads(page.getvalue())
    except (ValueError, RecursionError) as error:
        raise BadDownloadError("the hub's description of the data set is no JSON") from error
    if not isinstance(value, dict):
        raise BadDownloadError("the hub's answer is no description of a data set")
    return value


def download(client: httpx.Client, endpoint: str, name: str, revision: str, file: str, path: Path) -> None:
    """Write a file of a data set to `path`, whole or not at all.

    endpoint: address of the hub. name: of the data set. revision: the commit. Raises `HubRefusalError`,
    `BadDownloadError`, `httpx.HTTPError`, and `StoreError` if the file cannot be written.
    """
    with replacing(path) as into:
        checksum = fetch(
            client, f"{endpoint}/datasets/{quote(name)}/resolve/{revision}/{quote(file)}", into, MAX_DATA_BYTES
        )
        if _SHA256.fullmatch(checksum):
            into.seek(0)
            digest = hashlib.sha256()
            while piece := into.read(1 << 20):
                digest.update(piece)
            if digest.hexdigest() != checksum:
                raise BadDownloadError("its SHA-256 is not the one that the hub states")


def fetch(
    client: httpx.Client,
    url: str,
    into: BinaryIO,
    max_bytes: int,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Write the body at `url` into the file `into`; return its entity tag, which for large files is their SHA-256.

    A transient failure is retried; a retry goes on where the file ends. max_bytes: largest body. sleep: waits before a
    retry. Raises `HubRefusalError`, `BadDownloadError`, `httpx.HTTPError`.
    """
    for attempt in range(1, http_get.ATTEMPTS + 1):
        final = attempt == http_get.ATTEMPTS
        try:
            return _fetch_once(client, url, into, max_bytes)
        except HubRefusalError as refusal:
            if final or refusal.status not in http_get.TRANSIENT_STATUSES:
                raise
        except http_get.TRANSIENT_ERRORS:
            if final:
                raise
        sleep(http_get.MAX_WAIT_SECONDS * attempt)
    raise AssertionError("the last attempt returns or raises")


def _fetch_once(client: httpx.Client, url: str, into: BinaryIO, max_bytes: int) -> str:
    """Download the rest of a file, whose beginning `into` may hold; return its entity tag, "" if none is stated."""
    start = into.seek(0, io.SEEK_END)
    with client.stream("GET", url, headers={"Range": f"bytes={start}-"} if start else {}) as response:
        if response.status_code not in (200, 206):
            raise HubRefusalError(response.status_code, response.headers.get("X-Error-Code", ""))
        begins = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
        elsewhere = response.status_code == 206 and begins != str(start)
        if response.status_code == 200 or elsewhere:
            into.seek(0)
            into.truncate()
        if elsewhere:
            # The caller retries this error as it does a broken connection, now from the first byte.
            raise httpx.RemoteProtocolError(f"asked to begin at byte {start}, the hub began at byte {begins or 0}")
        for piece in response.iter_raw():
            if into.tell() + len(piece) > max_bytes:
                raise BadDownloadError(f"the download is longer than {max_bytes} bytes")
            into.write(piece)
        # The hub names the checksum beside the redirect; the store behind it has entity tags of its own.
        tags = [page.headers.get("X-Linked-Etag") for page in (*response.history, response)]
        tag = str(next(filter(None, tags), response.headers.get("ETag", "")))
        return tag.removeprefix("W/").strip('"')
