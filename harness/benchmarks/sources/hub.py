"""Data sets of the Hugging Face hub through `huggingface_hub`: files only, never code of a data set.

A pinned revision that was read once needs no network again. Environment, as everywhere with the hub: HF_ENDPOINT (a
mirror), HF_HUB_OFFLINE, HF_TOKEN (gated sets), HF_HOME or HF_HUB_CACHE (the cache). All is read at the call.
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
"""Longest wait for the hub's answer about a data set or a file, in seconds."""

_HF_URL = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+?)(?:@([^/]+))?(?:/(.+))?")
_REVISION = re.compile(r"[0-9a-f]{40}")

MAX_LISTING_BYTES = 64 * 1024 * 1024
"""Longest record of a data set's files; a longer one is not read."""


class _Listing(msgspec.Struct, frozen=True):
    """What one commit of a data set holds. Kept beside the hub's cache, so that it can be read again offline."""

    revision: str
    files: list[str]
    configs: list[dict[str, Any]] = []


def from_url(url: str, split: str | None, config: str | None = None) -> HubSource:
    """`hf://datasets/OWNER/NAME[@REVISION][/FILE]` as a source. Raises `UsageError`."""
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
    """The rows of a hub data set, downloaded where the cache has not got them. Raises `UsageError`.

    long_fields: a field may be megabytes long (the tests of a program); such rows are read one by one.
    """
    notes: list[str] = []
    listing = _listing(source, notes)
    if long_fields:
        paths = [(_file(source, listing, file), f"{source.id}:{file}") for _, file in _wanted(source, listing)]
        streams = (tables.stream(path, shown=shown, responses=True) for path, shown in paths)
        return Rows(chain.from_iterable(streams), _origin(source, listing, notes), tuple(notes))
    rows: list[Row] = []
    for config, file in _wanted(source, listing):
        archive, member = archives.parts(file)
        path, shown = _file(source, listing, archive), f"{source.id}:{file}"
        file_rows = archives.read(path, member, shown) if member else tables.read(path, shown=shown)
        column = source.config_column
        rows += file_rows if column is None else (Row(row.where, {**row.value, column: config}) for row in file_rows)
    return Rows(rows, _origin(source, listing, notes), tuple(notes))


def _origin(source: HubSource, listing: _Listing, notes: list[str]) -> str:
    if source.revision is None:
        notes.append(f"{source.id} is read at revision {listing.revision}, which the card does not pin")
    return f"{source.id}@{listing.revision[:12]}"


def file_of(source: HubSource, name: str) -> tuple[Path, str]:
    """(one file of a data set that is no data, the commit that it was read at). Raises `UsageError`."""
    listing = _listing(source, [])
    ((_, path),) = _wanted(source.model_copy(update={"files": (name,)}), listing)
    return _file(source, listing, path), listing.revision


def snapshot(source: HubSource, patterns: tuple[str, ...], left_out: tuple[str, ...]) -> tuple[Path, str]:
    """(folder, commit) of a data set's files that fit one of `patterns` and none of `left_out`, downloaded where the
    cache has not got them. The files are links into the cache. Raises `UsageError`."""
    try:
        listing = _listing(source, [])
        with _translated(source):
            folder = _library().snapshot_download(
                source.id,
                **_of_dataset(listing),
                allow_patterns=list(patterns),
                ignore_patterns=list(left_out),
            )
    except _NoNetworkError as error:
        raise _absent(error) from error
    return Path(folder), listing.revision


def _of_dataset(listing: _Listing) -> dict[str, Any]:
    """Arguments of every download by the library: which commit, from where, into which cache."""
    return {
        "repo_type": "dataset",
        "revision": listing.revision,
        "cache_dir": _cache(),
        "endpoint": endpoint(),
        "etag_timeout": METADATA_TIMEOUT_SECONDS,
        "local_files_only": _offline(),
    }


def headers() -> dict[str, str]:
    """Headers of a request to the hub, with the person's token where there is one. Raises `UsageError`."""
    return dict(_library().utils.build_hf_headers())


def _listing(source: HubSource, notes: list[str]) -> _Listing:
    """Of the pinned commit, from the cache if it is there; else of the newest, if there is a network."""
    listing = _saved(source)
    return _current(source, notes) if listing is None or not (source.revision or _offline()) else listing


def cached(source: HubSource) -> bool:
    """The rows can be read without the network."""
    listing = _saved(source)
    if listing is None:
        return False
    try:
        files = {archives.parts(file)[0] for _, file in _wanted(source, listing)}
        return all(_cached_file(source, listing, file) for file in files)
    except UsageError:
        return False


def _wanted(source: HubSource, listing: _Listing) -> list[tuple[str | None, str]]:
    """(configuration where it is known, path) of each file, in order."""
    files: list[tuple[str | None, str]] = []
    for file in source.files:
        each = source.config if "{config}" in file else (None,)
        files += [(config, file.replace("{config}", config or "")) for config in each]
    missing = [file for _, file in files if archives.parts(file)[0] not in listing.files]
    if missing:
        held = ", ".join(visible(f, 100) for f in sorted(listing.files)[:20])
        raise UsageError(f"{source.id} has no file {visible(missing[0])!r}; it holds {held}")
    if not source.files:
        for config in source.config or (None,):
            paths = choose(listing.files, listing.configs, config, source.split, source.id)
            files += [(config, file) for file in paths]
    return files


def _current(source: HubSource, notes: list[str]) -> _Listing:
    """The listing of the pinned, else of the newest commit, from the hub; kept for later."""
    hub = _library()
    saved = _saved(source)
    try:
        with _translated(source):
            info = hub.HfApi(endpoint=endpoint()).dataset_info(
                source.id, revision=source.revision, timeout=METADATA_TIMEOUT_SECONDS
            )
    except _NoNetworkError as error:
        if saved is None:
            raise _absent(error) from error
        notes.append(f"{error}; the copy of revision {saved.revision} in the cache is used")
        return saved
    card_data = info.card_data.to_dict() if info.card_data is not None else {}
    configs = card_data.get("configs") or []
    listing = _Listing(
        revision=str(info.sha),
        files=[item.rfilename for item in info.siblings or []],
        configs=[entry for entry in configs if isinstance(entry, dict)],
    )
    if not _REVISION.fullmatch(listing.revision):
        raise UsageError(f"{host()} answered no commit for {source.id}; is HF_ENDPOINT a hub?")
    for name in {listing.revision, source.revision or "newest"}:
        write_atomically(_record(source, name), codec.encode(listing))
    return listing


def _saved(source: HubSource) -> _Listing | None:
    with contextlib.suppress(OSError, codec.DecodeError):
        return codec.decode(read_named(_record(source, source.revision or "newest"), MAX_LISTING_BYTES), _Listing)
    return _from_snapshot(source)


def _from_snapshot(source: HubSource) -> _Listing | None:
    """What another tool has put into the hub's cache; without the data set's own description."""
    folder = _repository_folder(source)
    revision = source.revision
    if revision is None:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            revision = read_named(folder / "refs" / "main", MAX_NAME_BYTES).decode("ascii").strip()
    if not revision or not _REVISION.fullmatch(revision):
        return None
    snapshot = folder / "snapshots" / revision
    files = [path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()]
    named = {archives.parts(file)[0] for file in source.files}
    complete = named and named <= set(files)
    return _Listing(revision, files) if complete or (files and _offline()) else None


def _file(source: HubSource, listing: _Listing, file: str) -> Path:
    hub = _library()
    here = _cached_file(source, listing, file)
    if here:
        return here
    try:
        with _translated(source):
            path = hub.hf_hub_download(source.id, file, **_of_dataset(listing))
    except _NoNetworkError as error:
        raise _absent(error) from error
    return Path(path)


def _cached_file(source: HubSource, listing: _Listing, file: str) -> Path | None:
    snapshot = _repository_folder(source) / "snapshots" / listing.revision
    path = snapshot / file
    inside = ".." not in Path(file).parts and not Path(file).is_absolute()
    return path if inside and path.is_file() else None


class _NoNetworkError(Exception):
    """The hub cannot be reached, or must not be."""


@contextlib.contextmanager
def _translated(source: HubSource) -> Iterator[None]:
    """The library's exceptions as one sentence for the person at the keyboard."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - HTTP clients differ by version; the unknown is raised again
        _explain(source, error)


def _explain(source: HubSource, error: Exception) -> NoReturn:
    from huggingface_hub import errors

    page = f"{host()}/datasets/{source.id}"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.GatedRepoError) or status == 403:
        raise UsageError(
            f"{source.id} is gated: accept its terms at {page} and give your token in HF_TOKEN (or `hf auth login`)"
        ) from error
    if isinstance(error, errors.RevisionNotFoundError):
        raise UsageError(
            f"{source.id} has no revision {source.revision} at {host()} any more; look at {page} and pin another"
        ) from error
    if isinstance(error, errors.RepositoryNotFoundError) or status == 401:
        raise UsageError(
            f"{host()} has no data set {source.id}, or it is private: check the name, or give a token in HF_TOKEN"
        ) from error
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


def _absent(error: _NoNetworkError) -> UsageError:
    return UsageError(
        f"{error}; fetch it where there is a network, set HF_ENDPOINT to a mirror, or give a local file with "
        f"{option('data')}"
    )


def _is_connection(error: BaseException) -> bool:
    """A refused or timed-out connection; the library hands on those of its HTTP client, which differ by version."""
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
    """Address of the hub: `HF_ENDPOINT`, else the public one."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def host() -> str:
    """The endpoint without credentials, for messages."""
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
