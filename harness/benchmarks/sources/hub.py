"""Data sets of the Hugging Face hub, through `huggingface_hub`: files only; code of a data set is never run.

    listing (which files a commit has) ──▶ files of config and split (`hub_files`) ──▶ downloaded or cached ──▶ rows

Once a pinned commit has been read, it needs no network again. The usual environment variables of the hub hold, and are
read at each call: HF_ENDPOINT (a mirror), HF_HUB_OFFLINE, HF_TOKEN (for gated data sets), HF_HOME or HF_HUB_CACHE.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import msgspec

from harness.benchmarks.card import HubSource
from harness.benchmarks.sources import archives, tables
from harness.benchmarks.sources.hub_files import choose
from harness.benchmarks.sources.tables import Row, Rows
from harness.core import codec
from harness.core.about import install_line
from harness.core.errors import UsageError, option
from harness.core.files import read_named, write_atomically
from harness.core.inert import quoted, visible
from harness.core.limits import MAX_NAME_BYTES

METADATA_TIMEOUT_SECONDS = 20.0
"""Longest wait for the hub's answer about a data set or a file."""

_HF_URL = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+?)(?:@([^/]+))?(?:/(.+))?")
_REVISION = re.compile(r"[0-9a-f]{40}")

MAX_LISTING_BYTES = 64 * 1024 * 1024
"""Longest stored listing of a data set that is read."""


class _Listing(msgspec.Struct, frozen=True):
    """The files of a commit of a data set, and their description in its card (`configs`). It is stored in the hub's
    cache, so that the data can be read again without the network."""

    revision: str
    files: list[str]
    configs: list[dict[str, Any]] = []


def from_url(url: str, split: str | None, config: str | None = None) -> HubSource:
    """The source that a user names by `hf://datasets/OWNER/NAME[@REVISION][/FILE]`. Raises `UsageError`."""
    parts = _HF_URL.fullmatch(url)
    if not parts:
        raise UsageError(f"{visible(url)} must be of the form hf://datasets/OWNER/NAME[@REVISION][/FILE]")
    name, revision, file = parts.groups()
    if revision and not _REVISION.fullmatch(revision):
        raise UsageError(f"the revision {visible(revision)!r} in {visible(url)} must be a commit of 40 hex digits")
    if file and split:
        raise UsageError(f"{visible(url)} names one file; leave out the split {visible(split)!r}")
    if file and config:
        raise UsageError(f"{visible(url)} names one file; leave out {option('data_config', config)}")
    return HubSource(
        kind="hub",
        id=name,
        revision=revision,
        config=(config,) if config else (),
        split=split or "train",
        files=(file,) if file else (),
    )


def read(source: HubSource, *, long_fields: bool = False) -> Rows:
    """The rows of a hub data set; files that are not in the cache are downloaded. Raises `UsageError`.

    long_fields: whether fields may have megabytes of any characters (the tests of programs).
    """
    notes: list[str] = []
    listing = _listing(source, notes)
    # All files are here before the first row is read.
    files = [
        (config, file, _file(source, listing, archives.split_path(file)[0]))
        for config, file in _files_to_read(source, listing)
    ]
    rows = chain.from_iterable(
        _rows_of_file(source, config, file, path, long_fields=long_fields) for config, file, path in files
    )
    return Rows(rows, _origin(source, listing, notes), tuple(notes))


def _rows_of_file(source: HubSource, config: str | None, file: str, path: Path, *, long_fields: bool) -> Iterator[Row]:
    """The rows of one file, one at a time if its format allows."""
    _, member = archives.split_path(file)
    shown, column = f"{source.id}:{file}", source.config_column
    rows = (
        iter(archives.read(path, member, shown)) if member else tables.stream(path, shown=shown, responses=long_fields)
    )
    return rows if column is None else (Row(row.where, {**row.value, column: config}) for row in rows)


def _origin(source: HubSource, listing: _Listing, notes: list[str]) -> str:
    if source.revision is None:
        notes.append(f"{source.id} is read at revision {listing.revision}, which the card does not pin")
    return f"{source.id}@{listing.revision[:12]}"


def file_of(source: HubSource, name: str) -> tuple[Path, str]:
    """(local path of the data set's file `name`, the commit from which it was read). Raises `UsageError`."""
    listing = _listing(source, [])
    ((_, path),) = _files_to_read(source.model_copy(update={"files": (name,)}), listing)
    return _file(source, listing, path), listing.revision


def snapshot(source: HubSource, patterns: tuple[str, ...], left_out: tuple[str, ...]) -> tuple[Path, str]:
    """(local folder, commit) with all files of a data set that match `patterns` and do not match `left_out`.

    Files that are not in the cache are downloaded; the folder's files are links into the cache. Raises `UsageError`.
    """
    try:
        listing = _listing(source, [])
        with _explain_failures(source):
            folder = _library().snapshot_download(
                source.id,
                **_of_dataset(listing),
                allow_patterns=list(patterns),
                ignore_patterns=list(left_out),
            )
    except _NoNetworkError as error:
        raise _not_here_error(error) from error
    return Path(folder), listing.revision


def _of_dataset(listing: _Listing) -> dict[str, Any]:
    """Arguments for the library's downloads: which commit, from which hub, into which cache."""
    return {
        "repo_type": "dataset",
        "revision": listing.revision,
        "cache_dir": _cache(),
        "endpoint": endpoint(),
        "etag_timeout": METADATA_TIMEOUT_SECONDS,
        "local_files_only": _offline(),
    }


def headers() -> dict[str, str]:
    """Headers for a request to the hub, with the user's token if there is one. Raises `UsageError`."""
    return dict(_library().utils.build_hf_headers())


def _listing(source: HubSource, notes: list[str]) -> _Listing:
    """The listing of the pinned commit, from the cache if possible; without a pin, of the newest commit, from the hub
    unless it is offline. notes: gets a sentence for the score if the cache had to do."""
    listing = _saved_listing(source)
    return _fetch_listing(source, notes) if listing is None or not (source.revision or _offline()) else listing


def is_cached(source: HubSource) -> bool:
    """Whether all files of the source are in the cache."""
    listing = _saved_listing(source)
    if listing is None:
        return False
    try:
        files = {archives.split_path(file)[0] for _, file in _files_to_read(source, listing)}
        return all(_cached_file(source, listing, file) for file in files)
    except UsageError:
        return False


def _files_to_read(source: HubSource, listing: _Listing) -> list[tuple[str | None, str]]:
    """(configuration if known, path) of each file with rows of the source, in order. Raises `UsageError`."""
    files: list[tuple[str | None, str]] = []
    for file in source.files:
        each = source.config if "{config}" in file else (None,)
        files += [(config, file.replace("{config}", config or "")) for config in each]
    missing = [file for _, file in files if archives.split_path(file)[0] not in listing.files]
    if missing:
        held = ", ".join(visible(f, 100) for f in sorted(listing.files)[:20])
        raise UsageError(f"{source.id} has no file {visible(missing[0])!r}; it holds {held}")
    if not source.files:
        for config in source.config or (None,):
            paths = choose(listing.files, listing.configs, config, source.split, source.id)
            files += [(config, file) for file in paths]
    return files


def _fetch_listing(source: HubSource, notes: list[str]) -> _Listing:
    """The listing of the pinned or the newest commit, asked of the hub and stored in the cache."""
    hub = _library()
    saved = _saved_listing(source)
    try:
        with _explain_failures(source):
            info = hub.HfApi(endpoint=endpoint()).dataset_info(
                source.id, revision=source.revision, timeout=METADATA_TIMEOUT_SECONDS
            )
    except _NoNetworkError as error:
        if saved is None:
            raise _not_here_error(error) from error
        notes.append(f"{error}; the copy of revision {saved.revision} in the cache is used")
        return saved
    card_data = info.card_data.to_dict() if info.card_data is not None else {}
    configs = card_data.get("configs") or []
    listing = _Listing(
        revision=str(info.sha),
        files=[item.rfilename for item in info.siblings or []],
        configs=[entry for entry in configs if isinstance(entry, dict)],
    )
    # The commit becomes part of paths in the cache, so nothing else may stand there.
    if not _REVISION.fullmatch(listing.revision):
        raise UsageError(f"{host()} answered no commit for {source.id}; is HF_ENDPOINT a hub?")
    # Under its commit too: a card that pins it later needs no network.
    for name in {listing.revision, source.revision or "newest"}:
        write_atomically(_record(source, name), codec.encode(listing))
    return listing


def _saved_listing(source: HubSource) -> _Listing | None:
    with contextlib.suppress(OSError, codec.DecodeError):
        return codec.decode(read_named(_record(source, source.revision or "newest"), MAX_LISTING_BYTES), _Listing)
    return _from_snapshot(source)


def _from_snapshot(source: HubSource) -> _Listing | None:
    """A listing of the files that another tool has downloaded into the hub's cache; None if they may not be all.

    It lacks the data set's own description of its files.
    """
    folder = _repository_folder(source)
    revision = source.revision
    if revision is None:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            revision = read_named(folder / "refs" / "main", MAX_NAME_BYTES).decode("ascii").strip()
    if not revision or not _REVISION.fullmatch(revision):
        return None
    snapshot = folder / "snapshots" / revision
    files = [path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()]
    named = {archives.split_path(file)[0] for file in source.files}
    complete = named and named <= set(files)
    return _Listing(revision, files) if complete or (files and _offline()) else None


def _file(source: HubSource, listing: _Listing, file: str) -> Path:
    hub = _library()
    here = _cached_file(source, listing, file)
    if here:
        return here
    try:
        with _explain_failures(source):
            path = hub.hf_hub_download(source.id, file, **_of_dataset(listing))
    except _NoNetworkError as error:
        raise _not_here_error(error) from error
    return Path(path)


def _cached_file(source: HubSource, listing: _Listing, file: str) -> Path | None:
    snapshot = _repository_folder(source) / "snapshots" / listing.revision
    path = snapshot / file
    # File names come from the hub's answer and must not lead out of the cache.
    inside = ".." not in Path(file).parts and not Path(file).is_absolute()
    return path if inside and path.is_file() else None


class _NoNetworkError(Exception):
    """The hub cannot be reached, or the user forbids it (HF_HUB_OFFLINE)."""


@contextlib.contextmanager
def _explain_failures(source: HubSource) -> Iterator[None]:
    """Context manager that turns the library's exceptions into a `UsageError` or `_NoNetworkError` of one sentence."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - HTTP clients differ by version; the unknown is raised again
        _explain(source, error)


def _explain(source: HubSource, error: Exception) -> NoReturn:
    from huggingface_hub import errors

    page = f"{host()}/datasets/{source.id}"
    status = getattr(getattr(error, "response", None), "status_code", None)
    # Gated first: the library's error for it is a kind of RepositoryNotFoundError.
    if isinstance(error, errors.GatedRepoError) or status == 403:
        raise UsageError(
            f"{source.id} is gated: accept its terms at {page} and give your token in HF_TOKEN (or `hf auth login`)"
        ) from error
    if isinstance(error, errors.RevisionNotFoundError):
        raise UsageError(
            f"{source.id} has no revision {source.revision} at {host()} any more; look at {page} and pin another"
        ) from error
    # The hub answers 401 for a private data set and for one that does not exist.
    if isinstance(error, errors.RepositoryNotFoundError) or status == 401:
        raise UsageError(
            f"{host()} has no data set {source.id}, or it is private: check the name, or give a token in HF_TOKEN"
        ) from error
    # Before EntryNotFoundError, of which LocalEntryNotFoundError is a kind.
    if isinstance(error, errors.LocalEntryNotFoundError) or _is_connection(error):
        why = "HF_HUB_OFFLINE is set" if _offline() else f"{host()} cannot be reached"
        raise _NoNetworkError(f"{source.id} is not in the cache and {why}") from error
    if isinstance(error, errors.EntryNotFoundError):
        raise UsageError(f"{source.id} has lost a file that its listing names: {quoted(str(error))}") from error
    if isinstance(error, errors.HfHubHTTPError):
        raise UsageError(f"{host()} answered {status or 'an error'} for {source.id}; try again later") from error
    if isinstance(error, OSError | ValueError):
        raise UsageError(f"cannot read {source.id} from {host()}: {quoted(str(error))}") from error
    raise error


def _not_here_error(error: _NoNetworkError) -> UsageError:
    return UsageError(
        f"{error}; fetch it where there is a network, set HF_ENDPOINT to a mirror, or give a local file with "
        f"{option('data')}"
    )


def _is_connection(error: BaseException) -> bool:
    """Whether a connection failed. The library passes on its HTTP client's exceptions, which differ by version."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"ConnectionError", "TransportError", "Timeout", "OfflineModeIsEnabled", "TimeoutError"})


def _library() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise UsageError(
            f"data sets of the hub need the package huggingface_hub: {install_line('hub')}, or give a local file with "
            f"{option('data')}"
        ) from error
    return huggingface_hub


def endpoint() -> str:
    """The hub's URL: `HF_ENDPOINT`, else the public hub."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def host() -> str:
    """The hub's URL without a name and password, for messages."""
    parts = urlsplit(endpoint())
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def _cache() -> Path:
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()


def _repository_folder(source: HubSource) -> Path:
    return _cache() / ("datasets--" + source.id.replace("/", "--"))


def _record(source: HubSource, revision: str) -> Path:
    return _repository_folder(source) / ".harness" / f"{revision}.json"
