"""Hugging Face hub data sets: only files, read with the hub's library; a data set's code is never run.

    listing (which files a commit has) ──▶ files of config and split (`hub_files`) ──▶ downloaded or cached ──▶ rows

The cache is the library's own, so that other tools' downloads are read too. It also holds our listings: a pinned commit
that has been read once does not need the network again. A table, or the documents of rows, may be in a zip archive in
the data set, and is read with the same limits as any other compressed file. The hub's usual environment variables
apply: HF_ENDPOINT (a mirror), HF_HUB_OFFLINE, HF_TOKEN (for gated data sets), HF_HOME or HF_HUB_CACHE.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from harness.benchmarks.card import HubSource
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.hub_files import choose
from harness.benchmarks.sources.tables import Row, Rows
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.files import read_named, write_atomically
from harness.core.installation import hub_cache
from harness.core.sanitize import MAX_NAME_BYTES, quoted, visible
from harness.core.secret import redacted_address

_HF_URL = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+?)(?:@([^/]+))?(?:/(.+))?")
"""The address of a data set: its name, a revision, and a file."""
_REVISION = re.compile(r"[0-9a-f]{40}")
"""A commit."""

MAX_LISTING_BYTES = 64 * 1024 * 1024
"""Maximum length of a hub data set's description."""

TIMEOUT_SECONDS = 20.0
"""Maximum wait for the hub's description of a data set."""


class _Listing(msgspec.Struct, frozen=True):
    """The files in a commit of a data set, and their description in the data set's card (`configs`).

    A listing is stored in the hub's cache, so that the data can be read again without the network.
    """

    revision: str
    files: list[str]
    configs: list[dict[str, Any]] = []


def from_url(url: str, split: str | None) -> HubSource:
    """The source that a user specifies as `hf://datasets/OWNER/NAME[@REVISION][/FILE]`. Raises `UsageError`."""
    parts = _HF_URL.fullmatch(url)
    if not parts:
        raise UsageError(f"{visible(url)} must be of the form hf://datasets/OWNER/NAME[@REVISION][/FILE]")
    name, revision, file = parts.groups()
    if revision and not _REVISION.fullmatch(revision):
        raise UsageError(f"the revision {visible(revision)!r} in {visible(url)} must be a 40-digit commit hash")
    if file and split:
        raise UsageError(f"{visible(url)} is a single file, which has no splits; remove the split {visible(split)!r}")
    return HubSource(kind="hub", id=name, revision=revision, split=split or "train", files=(file,) if file else ())


def read(source: HubSource, *, long_fields: bool, images: Sequence[str] = ()) -> Rows:
    """The rows of a hub data set; files that are not in the cache are downloaded. Raises `UsageError`.

    long_fields: whether fields may contain megabytes of any characters (tests of programs). images: the image columns.
    """
    notes: list[str] = []
    listing = _listing(source, notes)
    files = _files_to_read(source, listing)
    # All files are downloaded before the first row is read.
    paths = _paths(source, listing, [split_path(file)[0] for _, file in files])
    rows: Iterable[Row] = chain.from_iterable(
        _rows_of_file(source, config, file, path, long_fields=long_fields, images=images)
        for (config, file), path in zip(files, paths, strict=True)
    )
    if source.documents is not None:
        (archive,) = _paths(source, listing, [source.documents])
        rows = with_documents(rows, archive, f"{source.id}:{source.documents}")
    if source.revision is None:
        notes.append(f"the card does not pin {source.id} to a revision; this run uses {listing.revision}")
    return Rows(rows, f"{source.id}@{listing.revision[:12]}", tuple(notes))


def _rows_of_file(
    source: HubSource, config: str | None, file: str, path: Path, *, long_fields: bool, images: Sequence[str]
) -> Iterator[Row]:
    """The rows of one file, one at a time if its format allows.

    long_fields: fields may be as long as a model's outputs.
    """
    _, member = split_path(file)
    shown, column = f"{source.id}:{file}", source.config_column
    if member:
        rows = iter(read_member(path, member, shown))
    else:
        rows = tables.stream(path, shown=shown, responses=long_fields, images=images)
    return rows if column is None else (Row(row.where, {**row.value, column: config}) for row in rows)


def file_of(source: HubSource, name: str) -> tuple[Path, str]:
    """Return (local path of the data set's file `name`, the commit from which it was read). Raises `UsageError`."""
    listing = _listing(source, [])
    ((_, path),) = _files_to_read(source.model_copy(update={"files": (name,)}), listing)
    return _paths(source, listing, [path])[0], listing.revision


def _listing(source: HubSource, notes: list[str]) -> _Listing:
    """The listing of the source's files. notes: receives a sentence for the score if the hub could not be reached.

    The listing of a pinned commit is read from the cache if possible. Without a pin, the newest commit is requested
    from the hub, unless HF_HUB_OFFLINE is set, and the response is cached. Raises `UsageError`.
    """
    saved = _saved_listing(source)
    if saved is not None and (source.revision is not None or _offline()):
        return saved
    try:
        with _hub_errors(source) as library:
            answer = library.HfApi(endpoint()).dataset_info(
                source.id, revision=source.revision, timeout=TIMEOUT_SECONDS
            )
            described = answer.card_data.to_dict().get("configs") if answer.card_data else None
            listing = _Listing(
                revision=str(answer.sha),
                files=[sibling.rfilename for sibling in answer.siblings or ()],
                configs=[entry for entry in described or () if isinstance(entry, dict)],
            )
    except NoNetworkError as error:
        if saved is None:
            raise
        notes.append(f"{error.why}; using the cached copy of revision {saved.revision}")
        return saved
    # The commit becomes part of paths in the cache, so only a valid commit is allowed.
    if not _REVISION.fullmatch(listing.revision):
        raise UsageError(f"{host()} reported no commit for {source.id}; check that HF_ENDPOINT points to a Hub server")
    # The newest listing is stored under its commit too: a card that pins this commit later needs no network.
    for name in {listing.revision, source.revision or "newest"}:
        write_atomically(_record(source, name), codec.encode(listing))
    return listing


def is_cached(source: HubSource) -> bool:
    """Whether all of the source's files are in the cache."""
    listing = _saved_listing(source)
    if listing is None:
        return False
    try:
        files = {split_path(file)[0] for _, file in _files_to_read(source, listing)}
        files |= {source.documents} if source.documents else set()
        return all(_path_in_cache(source, listing, file).is_file() for file in files)
    except UsageError:
        return False


def _files_to_read(source: HubSource, listing: _Listing) -> list[tuple[str | None, str]]:
    """Return the data set files to read, in order, each with its configuration if known. Raises `UsageError`."""
    configs = source.config or (None,)
    if not source.files:
        listed = (choose(listing.files, listing.configs, config, source.split, source.id) for config in configs)
        return [(config, file) for config, paths in zip(configs, listed, strict=True) for file in paths]
    files: list[tuple[str | None, str]] = []
    for file in source.files:
        each = source.config if "{config}" in file else (None,)
        files += [(config, file.replace("{config}", config or "")) for config in each]
    missing = [file for _, file in files if split_path(file)[0] not in listing.files]
    if missing:
        held = ", ".join(visible(f, 100) for f in sorted(listing.files)[:20])
        raise UsageError(f"{source.id} has no file {visible(missing[0])!r}; it contains {held}")
    return files


def _saved_listing(source: HubSource) -> _Listing | None:
    """The cached listing, either ours or one of files that another tool downloaded; None if there is none."""
    with contextlib.suppress(OSError, codec.DecodeError):
        return codec.decode(read_named(_record(source, source.revision or "newest"), MAX_LISTING_BYTES), _Listing)
    return _from_snapshot(source)


def _from_snapshot(source: HubSource) -> _Listing | None:
    """A listing of the files that another tool has downloaded into the hub's cache; None if files may be missing.

    The listing does not include the data set's own description of its files (`configs`).
    """
    folder = repository_folder(source)
    revision = source.revision
    if revision is None:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            revision = read_named(folder / "refs" / "main", MAX_NAME_BYTES).decode("ascii").strip()
    if not revision or not _REVISION.fullmatch(revision):
        return None
    snapshot = folder / "snapshots" / revision
    files = [path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()]
    listed = {split_path(file)[0] for file in source.files}
    has_named_files = bool(listed) and listed <= set(files)
    # Without the network, only the local files exist.
    if has_named_files or (files and _offline()):
        return _Listing(revision, files)
    return None


def _paths(source: HubSource, listing: _Listing, files: list[str]) -> list[Path]:
    """The paths of data files in the cache; missing files are downloaded first. Raises `UsageError`."""
    paths = [_path_in_cache(source, listing, file) for file in files]
    for file, path in zip(files, paths, strict=True):
        if not path.is_file():
            with _hub_errors(source) as library:
                library.hf_hub_download(
                    source.id,
                    file,
                    repo_type="dataset",
                    revision=listing.revision,
                    cache_dir=hub_cache(),
                    endpoint=endpoint(),
                )
    return paths


def _path_in_cache(source: HubSource, listing: _Listing, file: str) -> Path:
    """The path of a data file in the cache. Raises `UsageError` if its name, which is chosen by the hub, leads outside
    the cache."""
    if ".." in Path(file).parts or Path(file).is_absolute() or "\0" in file:
        raise UsageError(f"{source.id} contains the file {visible(file, 100)!r}, whose path is outside the cache")
    return repository_folder(source) / "snapshots" / listing.revision / file


class NoNetworkError(UsageError):
    """The hub cannot be reached, or the user forbids it (HF_HUB_OFFLINE).

    why: the reason; the message adds a remedy. copy: how to copy the data from a machine with network access.
    """

    def __init__(self, source: HubSource, why: str, copy: str = "") -> None:
        self.why = why
        copy = copy or f"copy {repository_folder(source)} from a machine that has it"
        super().__init__(
            f"{source.id} is not in the cache and {why}; {copy}, set HF_ENDPOINT to a mirror, or pass a local file "
            "as `data`"
        )


@contextlib.contextmanager
def _hub_errors(source: HubSource) -> Iterator[Any]:
    """Context manager for the hub's library. A failed request inside it is raised as a `UsageError`."""
    if _offline():
        raise NoNetworkError(source, "HF_HUB_OFFLINE is set")
    import huggingface_hub
    from huggingface_hub import errors
    from huggingface_hub.utils.tqdm import disable_progress_bars

    page = f"{host()}/datasets/{source.id}"
    disable_progress_bars()
    # The library's warnings contain the full address, which may include a password.
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    try:
        yield huggingface_hub
    except errors.LocalEntryNotFoundError as error:  # the library's error for a hub that does not respond
        raise NoNetworkError(source, f"{host()} cannot be reached") from error
    except (errors.RevisionNotFoundError, errors.EntryNotFoundError) as error:
        pin = source.revision or "newest"
        raise UsageError(f"{source.id} no longer has the revision {pin}, or a file in it: see {page}") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if isinstance(error, errors.GatedRepoError) or status == 403:
            todo = f"accept its terms at {page} and set HF_TOKEN to your token (or run `hf auth login`)"
            raise UsageError(f"{source.id} is gated: {todo}") from error
        # The hub answers 401 for a private data set and for one that does not exist.
        if isinstance(error, errors.RepositoryNotFoundError) or status == 401:
            why = "or it is private: check the name, or set HF_TOKEN to a token with access"
            raise UsageError(f"{host()} has no data set {source.id}, {why}") from error
        raise UsageError(f"{host()} returned HTTP {status} for {source.id}; try again later") from error
    except UsageError:
        raise
    except Exception as error:  # the hub library chooses which HTTP library raises them
        if isinstance(error, OSError) and error.strerror:
            raise UsageError(f"cannot fetch {source.id} from {host()}: {error.strerror}") from error
        raise NoNetworkError(source, f"{host()} cannot be reached") from error


def endpoint() -> str:
    """The hub's URL: `HF_ENDPOINT`, or the public hub."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def host() -> str:
    """The hub's URL without a name and password, for messages."""
    return redacted_address(endpoint())


def _offline() -> bool:
    """Whether the user forbids requests to the hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def repository_folder(source: HubSource) -> Path:
    """The folder of a data set in the hub's cache."""
    return hub_cache() / ("datasets--" + source.id.replace("/", "--"))


def _record(source: HubSource, revision: str) -> Path:
    """The file of our stored listing of a commit. revision: the commit, or "newest"."""
    return repository_folder(source) / ".harness" / f"{revision}.json"


# ---- zip archives of a data set


def split_path(path: str) -> tuple[str, str]:
    """Return (path of the file, path inside it): `a/rows.zip/test/b.csv` gives (`a/rows.zip`, `test/b.csv`).

    The path inside is empty if `path` does not lead into an archive.
    """
    archive, inside, member = path.partition(".zip/")
    return (f"{archive}.zip", member) if inside else (path, "")


def unpack(opened: zipfile.ZipFile, member: zipfile.ZipInfo, shown: str) -> bytes:
    """The content of a file in an open zip archive. shown: the file's name in messages.

    Raises `UsageError` if it is larger than its packed size allows, or zipfile's own errors for a damaged archive.
    """
    bound = tables.FREE_UNPACKED_BYTES + tables.MAX_UNPACKED_RATIO * member.compress_size
    with opened.open(member) as file:
        # The size in the archive's list is only its creator's claim, so reading stops at the limit.
        data = file.read(bound + 1)
    if len(data) > bound:
        raise UsageError(f"{shown} unpacks to more than {bound} bytes")
    return data


@contextlib.contextmanager
def _opened_archive(archive: Path, shown: str) -> Iterator[zipfile.ZipFile]:
    """Context manager with the open archive. Raises `UsageError` for a damaged archive. shown: its name in messages."""
    try:
        with zipfile.ZipFile(archive) as opened:
            yield opened
    # zipfile raises RuntimeError for an encrypted file, and for a compression that this Python cannot read.
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        raise UsageError(f"cannot read {visible(shown)}: {quoted(str(error))}") from error


def read_member(archive: Path, member: str, shown: str) -> list[Row]:
    """All rows of a table in a zip archive.

    member: the table's path in the archive. shown: the table's name in messages. Raises `UsageError`.
    """
    with _opened_archive(archive, shown) as opened:
        if member not in opened.namelist():
            raise UsageError(f"{visible(shown)}: the archive does not contain {visible(member, 200)!r}")
        data = unpack(opened, opened.getinfo(member), visible(shown))
    # If the bytes do not identify the format, the name does: a compressed table has two suffixes (.csv.gz).
    with tempfile.NamedTemporaryFile(suffix="".join(PurePosixPath(member).suffixes[-2:])) as file:
        file.write(data)
        file.flush()
        return [*tables.stream(Path(file.name), shown=shown)]


Members = dict[str, list[zipfile.ZipInfo]]
"""Last three parts of a path → the archive files whose paths end with them; files in different folders may share a
key."""

DOCUMENT_COLUMNS = ("document_category", "document_set_id", "data_source_filenames")
"""Columns of a row that name its documents (AA-LCR): category, set, and file names separated by semicolons. In the
archive a document is at CATEGORY/SET/NAME, below any folder."""


def with_documents(rows: Iterable[Row], archive: Path, shown: str) -> Iterator[Row]:
    """Each row with a column `documents`: the texts of its documents, in the row's order.

    shown: the archive's name for messages. Raises `UsageError`.
    """
    with _opened_archive(archive, shown) as opened:
        members: Members = {}
        for info in opened.infolist():
            if not info.is_dir():
                members.setdefault(_name(info.filename), []).append(info)
        for row in rows:
            yield Row(row.where, {**row.value, "documents": _texts(row, opened, members, shown)})


def _texts(row: Row, opened: zipfile.ZipFile, members: Members, shown: str) -> list[str]:
    """The texts of one row's documents, in the row's order. members: last three parts of a path → the archive's files.
    shown: the archive's name for messages. Raises `UsageError`.
    """
    category, group, names = (str(row.value.get(column) or "") for column in DOCUMENT_COLUMNS)
    texts, n_chars = [], 0
    for name in filter(None, map(str.strip, names.split(";"))):
        path = visible(f"{category}/{group}/{name}", 200)
        files = members.get(_name(f"{category}/{group}/{name}"), [])
        if len(files) != 1:
            problem = f"{len(files)} documents {path!r} in different folders" if files else f"no document {path!r}"
            raise UsageError(f"{row.where}: {visible(shown)} has {problem}")
        data = unpack(opened, files[0], f"{visible(shown)}: {visible(name, 200)}")
        texts.append(data.decode("utf-8", "replace"))
        n_chars += len(texts[-1])
        if n_chars > tables.MAX_FIELD_CHARS:
            raise UsageError(f"{row.where}: its documents have more than {tables.MAX_FIELD_CHARS} characters in total")
    if not texts:
        raise UsageError(f"{row.where} lists no documents in {', '.join(DOCUMENT_COLUMNS)}")
    return texts


def _name(path: str) -> str:
    """The last three parts of a path. Accents are normalized, because systems encode them differently."""
    return "/".join(PurePosixPath(unicodedata.normalize("NFC", path)).parts[-3:])
