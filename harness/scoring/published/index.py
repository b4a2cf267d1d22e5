"""The local index of public scores: one SQLite file, made from folders of records, in which a model is looked up.

    $HARNESS_CACHE/published.sqlite3
      files    one row for each file that was read: origin, path, size and time of change, why results were passed over
      scores   one row for each score, with the key of its model (`NameParts.key`) and of its benchmark

An origin is one collection of files, such as a datastore. Guarantees: the update after one that was killed goes on
where that one stopped (each `BATCH_FILES` files are one transaction, a file and its scores are written together). A
file that has not changed is not read again; if a file is gone, its scores are removed. The index holds nothing that
cannot be read again, so it stands in the cache.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec

from harness.benchmarks.catalogue import fold_name
from harness.core import about
from harness.core.errors import UsageError
from harness.core.inert import quoted, visible
from harness.scoring.published import hub_results
from harness.scoring.published.loading import load_published
from harness.scoring.published.model_name import NameMatch, NameParts, match
from harness.scoring.published.value import PublishedScore

VERSION = 1
"""`user_version` of the file; an update rebuilds an index of another version."""

BATCH_FILES = 500
"""Number of files in one transaction."""

MAX_FOUND = 10_000
"""Largest number of scores that a look-up reads from the index."""

MAX_REASON_CHARS = 200
"""Longest stored reason, in characters, why a file or a result was left out."""

_TABLES = """
CREATE TABLE files (
  id INTEGER PRIMARY KEY, origin TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, changed INTEGER NOT NULL,
  passed_over TEXT NOT NULL, UNIQUE (origin, path));
CREATE TABLE scores (
  file INTEGER NOT NULL REFERENCES files (id) ON DELETE CASCADE, model TEXT NOT NULL, benchmark TEXT NOT NULL,
  score BLOB NOT NULL);
CREATE INDEX scores_of_model ON scores (model, benchmark);
CREATE INDEX scores_of_file ON scores (file);
"""


class Unread(msgspec.Struct, frozen=True):
    """One file that may hold scores. path: inside its origin. size, changed: its bytes and time of change in ns."""

    path: str
    size: int
    changed: int


Reader = Callable[[str], tuple[list[PublishedScore], list[str]]]
"""Reads one file, named by its path inside the origin. Returns its scores, and for each result that is no score the
reason why not. Raises `UsageError` for a file without any score.
"""


@dataclass(frozen=True, kw_only=True)
class Updated:
    """What an update of the index did. read, unchanged, gone: numbers of files.

    scores: number of this origin's scores that are in the index now. passed_over: reason why results of this origin are
    not in the index → number of these results, the commonest first.
    """

    read: int
    unchanged: int
    gone: int
    scores: int
    passed_over: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class FoundScore:
    """A public score. match: how its model's name relates to the name that was looked up.

    file: the file from which it was read; empty for a shipped score.
    """

    score: PublishedScore
    match: NameMatch
    file: str


def index_path() -> Path:
    """The index's file; it need not be there."""
    return about.cache_folder() / "published.sqlite3"


def look_up(model: str, benchmark: str | None = None) -> list[FoundScore]:
    """The index's scores of a model and of models with near names, on one benchmark or on all, in no order.

    Empty without an index. A record that a datastore holds under two paths is found once. Raises `UsageError` for a
    damaged index.
    """
    path = index_path()
    if not path.is_file():
        return []
    ours = NameParts.read(model)
    values = (ours.key, None if benchmark is None else fold_name(benchmark), MAX_FOUND)
    matches = []
    with _open(path) as database:
        rows = database.execute(
            "SELECT score, origin, min(path) FROM scores JOIN files ON files.id = file "
            "WHERE model = ?1 AND (?2 IS NULL OR benchmark = ?2) GROUP BY score, origin LIMIT ?3",
            values,
        )
        for data, origin, file in rows:
            score = _DECODER.decode(data)
            relation = match(ours, NameParts.read(score.model))
            if relation is not None:
                matches.append(FoundScore(score=score, match=relation, file=f"{origin}/{file}"))
    return matches


def find_scores(model: str, benchmark: str | None = None) -> list[FoundScore]:
    """All public scores of a model and of near names that are known here: the shipped ones first, then the index's.

    benchmark: None = all. Raises `UsageError` for a damaged index or a damaged shipped file.
    """
    ours = NameParts.read(model)
    shipped = [score for score in load_published() if benchmark in {None, score.benchmark}]
    relations = [(score, match(ours, NameParts.read(score.model))) for score in shipped]
    rows = [FoundScore(score=score, match=relation, file="") for score, relation in relations if relation is not None]
    return [*rows, *look_up(model, benchmark)]


def scores_of_models(models: Iterable[str]) -> list[PublishedScore]:
    """The shipped scores of these models, and the scores of the local index whose model is surely one of them.

    A score of the index gets the model's name as `models` spells it. An index that cannot be read counts as empty,
    since published scores are an addition to a report, which must be made without them, too.
    """
    names = list(dict.fromkeys(models))
    indexed: list[PublishedScore] = []
    with suppress(UsageError):  # `harness published` says what is wrong with it
        indexed = [
            dataclasses.replace(row.score, model=name) for name in names for row in look_up(name) if row.match.same
        ]
    return [*load_published(models=names), *indexed]


def update(
    origin: str, files: Iterable[Unread], read: Reader, progress: Callable[[int, int], None] = lambda *_: None
) -> Updated:
    """Bring the index in line with `files`, which are all files of `origin`; return what was done.

    read: makes the scores of a file that is new or changed. progress: called after each batch with the number of files
    seen and of scores read. Raises `UsageError` where the index cannot be written.
    """
    n_read = n_unchanged = n_scores = 0
    with _open(index_path(), for_writing=True) as database:
        stored = {
            path: (number, size, changed)
            for number, path, size, changed in database.execute(
                "SELECT id, path, size, changed FROM files WHERE origin = ?", (origin,)
            )
        }
        unseen = iter(files)
        while batch := list(islice(unseen, BATCH_FILES)):
            with database:
                for file in batch:
                    number, *state = stored.pop(file.path, (None, None, None))
                    if state == [file.size, file.changed]:
                        n_unchanged += 1
                        continue
                    if number is not None:
                        database.execute("DELETE FROM files WHERE id = ?", (number,))
                    n_scores += _insert(database, origin, file, read)
                    n_read += 1
            progress(n_read + n_unchanged, n_scores)
        with database:
            # The files that are left in `stored` were not seen again.
            database.executemany("DELETE FROM files WHERE id = ?", [(number,) for number, *_ in stored.values()])
        return Updated(
            read=n_read,
            unchanged=n_unchanged,
            gone=len(stored),
            scores=_one(database, "SELECT count(*) FROM scores JOIN files ON files.id = file WHERE origin = ?", origin),
            passed_over=_passed_over(database, origin),
        )


def _insert(database: sqlite3.Connection, origin: str, file: Unread, read: Reader) -> int:
    """Store the file with its scores; return the number of scores."""
    try:
        scores, reasons = read(file.path)
        encoded = [(score, _encode(score)) for score in scores]
    except UsageError as error:
        # The path is replaced, so that equal reasons are counted as one.
        encoded, reasons = [], [str(error).replace(file.path, "a file")]
    except UnicodeEncodeError:  # half of a pair of UTF-16, which JSON can spell and SQLite cannot hold
        encoded, reasons = [], ["a file holds text that is no Unicode"]
    reasons_text = "\n".join(visible(_NUMBER.sub("[…]", reason), MAX_REASON_CHARS) for reason in reasons)
    number = database.execute(
        "INSERT INTO files (origin, path, size, changed, passed_over) VALUES (?, ?, ?, ?, ?)",
        (origin, file.path, file.size, file.changed, reasons_text),
    ).lastrowid
    database.executemany(
        "INSERT INTO scores VALUES (?, ?, ?, ?)",
        [(number, NameParts.read(score.model).key, fold_name(score.benchmark), data) for score, data in encoded],
    )
    return len(encoded)


def _encode(score: PublishedScore) -> bytes:
    """The score as JSON. Raises `UnicodeEncodeError` for text that is no Unicode."""
    data = msgspec.json.encode(score)
    data.decode("utf-8").encode("utf-8")
    return data


def _passed_over(database: sqlite3.Connection, origin: str) -> dict[str, int]:
    """Reason why results of this origin were left out → their number, the commonest first."""
    rows = database.execute("SELECT passed_over FROM files WHERE origin = ? AND passed_over != ''", (origin,))
    return dict(Counter(reason for (text,) in rows for reason in text.split("\n")).most_common())


def _one(database: sqlite3.Connection, query: str, *values: str) -> int:
    """The single number that a query gives."""
    return int(database.execute(query, values).fetchone()[0])


@contextmanager
def _open(path: Path, *, for_writing: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection to the index; for writing it is made if it is not there, or of another version."""
    try:
        if for_writing:
            path.parent.mkdir(parents=True, exist_ok=True)
            address = f"{path.as_uri()}?mode=rwc"
        else:
            address = f"{path.as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=30.0)) as database:
            version = _one(database, "PRAGMA user_version")
            if version != VERSION:
                if not for_writing:
                    raise UsageError(
                        f"{path} is an index of version {version}, expected {VERSION}: make it anew by "
                        "`harness published update`"
                    )
                _make(database)
            # SQLite starts each connection without foreign keys; old scores would stay.
            database.execute("PRAGMA foreign_keys = ON")
            yield database
    except sqlite3.OperationalError as error:
        raise UsageError(
            f"the index of public scores {path} cannot be used now ({quoted(str(error))}): another update may be at "
            "work on it; try again when it has ended"
        ) from error
    except (sqlite3.Error, msgspec.DecodeError) as error:
        raise UsageError(
            f"the index of public scores {path} cannot be used ({quoted(str(error))}): remove it and run "
            "`harness published update` again"
        ) from error
    except OSError as error:
        raise UsageError(
            f"cannot write the index of public scores {path}: {error.strerror or error}; set HARNESS_CACHE to "
            "another folder"
        ) from error


def _make(database: sqlite3.Connection) -> None:
    """Empty the index: drop its tables, and create those of this version."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('files', 'scores')")
    dropped = "".join(f"DROP TABLE {name};" for (name,) in names.fetchall())
    # One transaction: an interrupted change leaves no half-made tables.
    database.executescript(f"BEGIN; {dropped} {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")


_DECODER = msgspec.json.Decoder(PublishedScore)

_NUMBER = re.compile(r"\[\d+\]")
"""Index of a result in its file: left out of reasons, so that equal reasons are counted as one."""


def files_of(folder: Path, *, follow_links: bool = False) -> Iterator[Unread]:
    """Files of a folder tree that may hold scores, in order of path.

    They are records of Every Eval Ever (`.json`) and evaluation results of models (`.eval_results/*.yaml`).
    follow_links: also files that are links, as in the hub's cache.
    """
    for here, folders, names in os.walk(folder):
        # Sorted in place, which is how `os.walk` takes an order.
        folders.sort()
        inside = Path(here).relative_to(folder)
        for name in sorted(names):
            if not (name.endswith(".json") or (inside.name == hub_results.FOLDER and name.endswith((".yaml", ".yml")))):
                continue
            path = Path(here, name)
            try:
                status = path.stat(follow_symlinks=follow_links)
            except OSError:  # gone since it was listed, or a link to nowhere
                continue
            if stat.S_ISREG(status.st_mode) and name.isprintable():  # a name of other bytes has no text to be kept by
                yield Unread((inside / name).as_posix(), status.st_size, status.st_mtime_ns)
