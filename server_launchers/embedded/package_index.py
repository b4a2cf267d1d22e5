"""Fetches one file from the user's package index, with pip's configuration but without pip.

Two kinds of environments have no pip: the Python of a bare Debian, which lacks ensurepip too (`tools/bootstrap.py`
fetches pip itself through this module), and environments that uv makes (weights are fetched there). The module reads
what pip reads (its configuration files and `PIP_*` variables: index-url, extra-index-url, find-links, no-index, cert,
trusted-host, proxy) and speaks the simple repository API (PEP 503, HTML) over urllib, because a bare Debian has only
the standard library. Not covered: passwords from keyring and netrc, and client certificates; where pip can be imported,
the caller may fall back to pip, which knows them.
"""

from __future__ import annotations

import configparser
import hashlib
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import pathname2url, url2pathname

from server_launchers.errors import DownloadError

DEFAULT_INDEX = "https://pypi.org/simple"
TIMEOUT_SECONDS = 60.0
"""An index that sends no byte for this many seconds counts as unreachable."""
MAX_PAGE_BYTES = 32 << 20
CHUNK_BYTES = 1 << 18
_ACCEPT = "application/vnd.pypi.simple.v1+html, text/html;q=0.1"

OnBytes = Callable[[int, int | None], None]
"""A callback with the bytes received so far and the total, None if the index does not state it."""


@dataclass(frozen=True)
class IndexConfig:
    """Where packages come from. `indexes`: in the order in which they are asked."""

    indexes: tuple[str, ...] = (DEFAULT_INDEX,)
    find_links: tuple[str, ...] = ()
    cert: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    proxy: str | None = None

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None, files: list[Path] | None = None) -> IndexConfig:
        """The configuration that pip would use: later files win over earlier ones, `PIP_*` variables over files.

        environ: the environment variables; None: those of this process.
        """
        environ = os.environ if environ is None else environ
        settings: dict[str, str] = {}
        for path in config_files(environ) if files is None else files:
            # Raw: a % in the password of an address would be read as interpolation.
            parser = configparser.RawConfigParser()
            try:
                parser.read(path, encoding="utf-8")
            except (configparser.Error, UnicodeDecodeError, OSError) as error:
                raise DownloadError(f"cannot read pip's configuration {path}: {error}; repair or remove it") from None
            # pip's order: the command's own section wins over `global`.
            for section in ("global", "download"):
                if parser.has_section(section):
                    settings |= {key.replace("_", "-"): value for key, value in parser.items(section)}
        for name in ("index-url", "extra-index-url", "find-links", "no-index", "cert", "trusted-host", "proxy"):
            if value := environ.get("PIP_" + name.upper().replace("-", "_")):
                settings[name] = value
        cert = settings.get("cert") or environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE")
        indexes = (settings.get("index-url") or DEFAULT_INDEX, *settings.get("extra-index-url", "").split())
        if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
            indexes = ()
        return cls(
            indexes=indexes,
            find_links=tuple(settings.get("find-links", "").split()),
            cert=cert or None,
            trusted_hosts=tuple(settings.get("trusted-host", "").split()),
            proxy=settings.get("proxy") or None,
        )


def config_files(environ: Mapping[str, str]) -> list[Path]:
    """The configuration files of pip in the order in which pip loads them: global, user, site, `PIP_CONFIG_FILE`."""
    override = environ.get("PIP_CONFIG_FILE")
    if override == os.devnull:
        return []
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        system = [Path("/Library/Application Support/pip/pip.conf")]
        library = home / "Library/Application Support/pip"
        user = library if library.is_dir() else home / ".config/pip"
    else:
        folders = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
        system = [Path(folder) / "pip/pip.conf" for folder in folders.split(":") if folder] + [Path("/etc/pip.conf")]
        user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip"
    return [
        *system,
        home / ".pip/pip.conf",
        user / "pip.conf",
        Path(sys.prefix) / "pip.conf",
        *([Path(override)] if override else []),
    ]


def download(project: str, filename: str, target: IO[bytes], config: IndexConfig, progress: OnBytes) -> None:
    """Write the file `filename` of `project` to `target`; `progress` receives (bytes so far, total or None).

    The indexes are asked in turn until one returns the whole file; a checksum in the index's link must match. Raises
    DownloadError with the answer of each index; passwords in addresses are hidden.
    """
    session = _Session(config)
    failures: list[str] = []
    pages = [*config.find_links, *(f"{index.rstrip('/')}/{project}/" for index in config.indexes)]
    for page in pages:
        try:
            link = session.find(page, filename)
            if link is None:
                failures.append(f"{_show(page)} has no {filename}")
                continue
            # The index before this one may have sent half of the file.
            target.seek(0)
            target.truncate()
            session.copy(link, target, progress)
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{_show(page)}: {_reason(error)}")
            continue
        return
    reasons = "; ".join(failures) or "no index is configured"
    raise DownloadError(f"could not download {filename}: {reasons}. Check the network, PIP_INDEX_URL and pip.conf.")


class _Session:
    """Opens addresses by urllib with pip's proxy, certificate, trusted hosts, and the password in an address."""

    def __init__(self, config: IndexConfig) -> None:
        # The password goes with the first request: an index that answers strangers with 404 never asks for one.
        self._passwords = urllib.request.HTTPPasswordMgrWithPriorAuth()
        proxies = {"http": config.proxy, "https": config.proxy} if config.proxy else None
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler(proxies),
            urllib.request.HTTPBasicAuthHandler(self._passwords),
            _Https(config),
        )

    def find(self, page: str, filename: str) -> str | None:
        """The absolute address of the file `filename` by the links of `page`; None if there is no such link.

        page: the address of an HTML page, the path of a folder, or the file itself. Raises OSError or ValueError if the
        page cannot be read.
        """
        url = page if "://" in page else "file://" + pathname2url(str(Path(page).expanduser().absolute()))
        local = _local_path(url)
        if local is not None and local.is_dir():
            if (local / filename).is_file():
                return (local / filename).as_uri()
            if not (local / "index.html").is_file():
                return None
            url = (local / "index.html").as_uri()
        elif local is not None and not local.exists():
            return None
        # An entry of find-links may be the file itself.
        if _name_of(url) == filename:
            return url
        try:
            response = self._open(url, {"Accept": _ACCEPT})
        except urllib.error.HTTPError as error:
            # The error is also the open response; left unclosed, its socket would be reported as a leak.
            with error:
                if error.code == 404:
                    return None
                raise
        with response:
            # One byte more than allowed shows a longer page without reading all of it.
            body = response.read(MAX_PAGE_BYTES + 1)
            if len(body) > MAX_PAGE_BYTES:
                raise ValueError(f"the page is larger than {MAX_PAGE_BYTES >> 20} MiB")
            parser = _Links()
            parser.feed(body.decode("utf-8", "replace"))
            # Relative links count from the address after redirects.
            return next((urljoin(response.url, link) for link in parser.links if _name_of(link) == filename), None)

    def copy(self, link: str, target: IO[bytes], progress: OnBytes) -> None:
        """Download the file at `link` into `target`. The link's fragment may state a checksum (`#sha256=…`).

        Raises ValueError if the download is cut off, or its checksum differs.
        """
        url, fragment = urldefrag(link)
        algorithm, _, expected = fragment.partition("=")
        # Weaker digests (md5 in old indexes) prove nothing; the caller pins the file's content itself.
        digest = hashlib.new(algorithm) if algorithm in ("sha256", "sha384", "sha512") else None
        with self._open(url, {}) as response:
            length = response.headers.get("Content-Length")
            total = int(length) if length and length.isdigit() else None
            done = 0
            while chunk := response.read(CHUNK_BYTES):
                done += len(chunk)
                target.write(chunk)
                if digest is not None:
                    digest.update(chunk)
                progress(done, total)
        # http.client reports no error if a body that is read in pieces is cut off.
        if total is not None and done != total:
            raise ValueError(f"the download ended after {done} of {total} bytes")
        if digest is not None and digest.hexdigest() != expected:
            raise ValueError(f"{algorithm} of the download differs from the index's")

    def _open(self, url: str, headers: dict[str, str]) -> urllib.response.addinfourl:
        """Open an address; a user name and a password in it are sent as HTTP authentication."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https", "file"):
            raise ValueError(f"addresses of kind {parts.scheme!r} are not supported")
        if parts.username is not None:
            # urllib would take "user:password@host" as the host's name.
            host = parts.netloc.rpartition("@")[2]
            url = urlunsplit(parts._replace(netloc=host))
            self._passwords.add_password(
                None, f"{parts.scheme}://{host}/", unquote(parts.username), unquote(parts.password or ""), True
            )
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 (scheme checked above)
        return self._opener.open(request, timeout=TIMEOUT_SECONDS)  # type: ignore[no-any-return]


class _Https(urllib.request.HTTPSHandler):
    """Checks certificates against pip's `cert`, except for hosts that the user declared trusted."""

    def __init__(self, config: IndexConfig) -> None:
        try:
            checked = ssl.create_default_context(cafile=config.cert)
        except OSError as error:
            raise DownloadError(f"cannot read the certificates {config.cert}: {error}; correct PIP_CERT") from None
        super().__init__(context=checked)
        self._trusted = set(config.trusted_hosts)
        self._unchecked = urllib.request.HTTPSHandler(context=_without_verification())

    def https_open(self, request: urllib.request.Request) -> object:  # type: ignore[override]
        """Open an https address; hosts that pip trusts are not checked for a certificate."""
        host = urlsplit(f"//{request.host}")
        if host.hostname in self._trusted or host.netloc in self._trusted:
            # urllib sets `parent` only for the handlers of an opener, and this one is in none.
            self._unchecked.parent = self.parent
            return self._unchecked.https_open(request)
        return super().https_open(request)


def _without_verification() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]


def _name_of(link: str) -> str:
    return unquote(urlsplit(link).path.rpartition("/")[2])


def _local_path(url: str) -> Path | None:
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def _show(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return " ".join(str(inner).split()) or type(inner).__name__
