"""Public scores: brings the local index of them up to date, and lists what all sources publish of a model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.asking.options import PublishedUpdateOptions
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.files import open_named, open_untrusted
from harness.core.inert import visible
from harness.scoring.published import PublishedScore, every_eval_ever, hub_results, index
from harness.scoring.published.index import FoundScore, Updated

if TYPE_CHECKING:
    import httpx

DATASTORE = "evaleval/EEE_datastore"
"""Data set of the hub that holds the records of Every Eval Ever."""

MANIFEST = "aggregate.jsonl"
"""File of a datastore that lists its records with their SHA-256."""

MAX_MANIFEST_LINE_BYTES = 64 * 1024
"""Longest line of the manifest, in bytes; a longer line is refused."""

HUB = "hub"
"""The value of the option `source` for the Hugging Face hub: its datastore and its leaderboards."""

_UUID_FILE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.json")

Progress = Callable[[str, int, int], None]
"""Called with the origin, the number of files seen and the number of scores read so far."""


@dataclass(frozen=True, kw_only=True)
class PublishedUpdate:
    """The result of an update from one origin: a folder, the datastore, or the leaderboard of a data set."""

    origin: str
    updated: Updated


@dataclass(frozen=True, kw_only=True)
class PublicScores:
    """What is published of a model, ordered by benchmark, metric and value.

    scores: of this model. near: of similar names that may mean another model: a name with another precision, release,
    organisation or thinking mode, or a name that leaves one of these out.
    """

    model: str
    scores: tuple[FoundScore, ...]
    near: tuple[FoundScore, ...]


def published(model: str, benchmark: str | None = None) -> PublicScores:
    """All public scores of a model that are known here: the shipped ones and those of the local index.

    benchmark: the name of a card, or any name that a source uses; None: all benchmarks. Raises `UsageError` if no score
    is known.
    """
    meant = _benchmark_name(benchmark)
    rows = index.find_scores(model, meant)
    rows.sort(key=lambda row: (row.score.benchmark, row.score.metric, -row.score.value))
    if not rows:
        on = f" on {visible(benchmark, 100)}" if benchmark else ""
        raise UsageError(
            f"nothing is published of {visible(model, 100)}{on}, as far as the shipped scores and the local index go: "
            "`harness published update` brings the index up to date"
        )
    return PublicScores(
        model=model,
        scores=tuple(row for row in rows if row.match.same),
        near=tuple(row for row in rows if not row.match.same),
    )


def update(options: PublishedUpdateOptions, progress: Progress = lambda *_: None) -> list[PublishedUpdate]:
    """Bring the local index in line with a folder of records, or with the hub; one result per origin.

    Raises `UsageError`.
    """
    if options.source == HUB:
        return list(_update_from_hub(progress))
    folder = Path(options.source).expanduser().resolve()
    if not folder.is_dir():
        raise UsageError(
            f"expected a folder of records (`.json` of Every Eval Ever, `OWNER/MODEL/.eval_results/*.yaml`), or `hub`; "
            f"{visible(str(folder), 200)} is not there",
            field="source",
        )
    return [_update_from_folder(folder, str(folder), progress)]


def _update_from_folder(
    folder: Path, origin: str, progress: Progress, *, follow_links: bool = False
) -> PublishedUpdate:
    """Bring the index up to date with a folder of records. origin: its name in the index.

    follow_links: also read files behind symbolic links.
    """
    updated = index.update(
        origin,
        index.files_of(folder, follow_links=follow_links),
        _FolderReader(folder, follow_links, _checksums(folder, follow_links)).read,
        partial(progress, origin),
    )
    return PublishedUpdate(origin=origin, updated=updated)


def _update_from_hub(progress: Progress) -> Iterator[PublishedUpdate]:
    """Bring the index up to date with Every Eval Ever's datastore and the leaderboards of our cards' data sets.

    Yields the result of each origin. A leaderboard that cannot be read is passed over, and its result says why.
    """
    import httpx

    from harness.benchmarks.card import HubSource
    from harness.benchmarks.catalogue import shipped_cards
    from harness.benchmarks.sources import hub, hub_client
    from harness.core import http_get

    store = HubSource(kind="hub", id=DATASTORE)
    folder, _ = hub.snapshot(store, ("data/*.json", f"*{MANIFEST}"), ("*_samples.json*",))
    # Links are followed here only: a snapshot of the hub's library consists of links into its own cache.
    yield _update_from_folder(folder, f"hf://datasets/{DATASTORE}", progress, follow_links=True)
    headers = hub.headers() | http_get.HEADERS
    with httpx.Client(headers=headers, timeout=hub_client.TIMEOUT_SECONDS, verify=hub_client.tls_settings()) as client:
        for name in sorted({card.source.id for card in shipped_cards() if isinstance(card.source, HubSource)}):
            origin = f"hf://datasets/{name}/leaderboard"
            try:
                board = _leaderboard(client, name)
            except UsageError as error:  # The scores that an earlier update read from this leaderboard stay.
                refused = Updated(read=0, unchanged=0, gone=0, scores=0, passed_over={str(error): 1})
                yield PublishedUpdate(origin=origin, updated=refused)
                continue
            data = board or b""
            # A page has no time of change, so its digest stands in: 7 bytes fit a signed 64-bit column of the index.
            listed = index.Unread("", len(data), int.from_bytes(hashlib.sha256(data).digest()[:7]))
            reader = _BoardReader(data, name, origin)
            updated = index.update(
                origin, [listed] if board is not None else [], reader.read, partial(progress, origin)
            )
            if board is not None or updated.gone:
                yield PublishedUpdate(origin=origin, updated=updated)


def _leaderboard(client: httpx.Client, dataset: str) -> bytes | None:
    """The hub's leaderboard of a data set, as JSON; None where it has none. Raises `UsageError`."""
    import httpx

    from harness.benchmarks.limits import MAX_LISTING_BYTES
    from harness.benchmarks.sources import hub, hub_client
    from harness.core import http_get

    try:
        page = http_get.get(
            client,
            f"{hub.endpoint()}/api/datasets/{dataset}/leaderboard",
            max_bytes=MAX_LISTING_BYTES,
            body_s=hub_client.TIMEOUT_SECONDS,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UsageError(
            f"{hub.host()} cannot be reached for the leaderboard of {dataset}: {type(error).__name__}"
        ) from error
    if page.status == 404:
        return None
    if page.status != 200 or not page.whole:
        raise UsageError(f"{hub.host()} answered {page.status} for the leaderboard of {dataset}; try again later")
    return page.body


@dataclass(frozen=True)
class _BoardReader:
    """Reads one leaderboard. board: its JSON. dataset: the data set that it ranks. origin: its name in the index."""

    board: bytes
    dataset: str
    origin: str

    def read(self, _path: str) -> tuple[list[PublishedScore], list[str]]:
        """Return the scores of the leaderboard, and for each other entry why it is no score. Raises `UsageError`."""
        return hub_results.leaderboard(self.board, self.dataset, self.origin)


@dataclass(frozen=True)
class _FolderReader:
    """Reads the files of one folder tree.

    checksums: name of a file → the SHA-256 values that the folder's manifests state for it; several if different files
    have this name.
    """

    folder: Path
    follow_links: bool
    checksums: dict[str, set[str]]

    def read(self, path: str) -> tuple[list[PublishedScore], list[str]]:
        """Return the scores in the file at `path`, and for each other entry why it is no score. Raises `UsageError`."""
        if not path.endswith(".json"):
            try:
                return hub_results.read(self.folder / path)
            except UsageError as error:
                raise UsageError(str(error).replace(str(self.folder / path), path)) from error
        data = self._data(path)
        expected = self.checksums.get(path.rpartition("/")[2])
        if expected is not None and hashlib.sha256(data).hexdigest() not in expected:
            raise UsageError(f"the SHA-256 of a file is not that of {MANIFEST}")
        return every_eval_ever.scores_of(data, path)

    def _data(self, path: str) -> bytes:
        """The content of a file below the folder. Raises `UsageError`."""
        open_file = open_named if self.follow_links else open_untrusted
        try:
            with open_file(self.folder / path) as file:
                data = file.read(every_eval_ever.MAX_FILE_BYTES + 1)
        except OSError as error:
            raise UsageError(f"a file cannot be read: {error.strerror or error}") from error
        if len(data) > every_eval_ever.MAX_FILE_BYTES:
            raise UsageError(f"a file is longer than a record may be: {every_eval_ever.MAX_FILE_BYTES:,} bytes")
        return data


class _Listed(msgspec.Struct, frozen=True):
    """One line of a datastore's manifest, of which these fields are read."""

    object_path: str
    sha256: str


def _checksums(folder: Path, follow_links: bool) -> dict[str, set[str]]:
    """Name of a record's file → its SHA-256 values, for the records that the folder's manifests list under a UUID.

    Empty without a manifest. A file with the manifest's name whose first line is no entry is no manifest. Raises
    `UsageError` for a damaged manifest. follow_links: also read files behind symbolic links.
    """
    checksums: dict[str, set[str]] = {}
    for path in sorted(folder.rglob(MANIFEST)):
        if path.is_symlink() and not follow_links:
            continue
        try:
            with open_named(path) as file:
                for number, line in enumerate(iter(lambda: file.readline(MAX_MANIFEST_LINE_BYTES), b"")):
                    try:
                        listed = codec.decode(line, _Listed) if line.strip() else None
                    except codec.DecodeError:
                        # If the first line is no entry, this is another file that has the manifest's name.
                        if number == 0:
                            break
                        raise
                    name = listed.object_path.rpartition("/")[2] if listed else ""
                    if listed and _UUID_FILE.fullmatch(name):
                        checksums.setdefault(name, set()).add(listed.sha256)
        except (OSError, codec.DecodeError) as error:
            raise UsageError(f"{path} is no list of records with their SHA-256: {error}") from error
    return checksums


def _benchmark_name(benchmark: str | None) -> str | None:
    """The name of the card that means this benchmark; the given name if no card does, and None for None."""
    from harness.scoring.published.benchmark_name import find_card

    if benchmark is None:
        return None
    card = find_card((benchmark,)).card
    return card.name if card else benchmark
