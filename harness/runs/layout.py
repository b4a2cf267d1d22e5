"""The paths of a run's files, and the writer of its log of events, `log.jsonl`.

results/<run>/manifest.json  run.lock  log.jsonl  log.<joined>.jsonl  batches.jsonl  engine.jsonl
                report.html
results/<run>/shards/2-of-8/ (the run folder of one of several clients; `join_shards` adds its samples to the run)
results/<run>/<benchmark>/questions.jsonl  samples.jsonl  images/<SHA-256>
                          grades.jsonl  opinions.jsonl  overrides.jsonl  scores.json
                          grades.partial.jsonl, grades.fresh.jsonl (of a grading that has not ended)

<run> and <benchmark> are names in the form that `safe_name` returns. <outputs of another tool>.scored/ is the run that
`harness score` makes from them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.core import channel, codec
from harness.core.errors import InUse, StoreError, near_names
from harness.core.files import disk_error, open_untrusted, read_at, remove_leftovers
from harness.core.sanitize import safe_name, visible
from harness.runs.line_file import LineFile, make_folder

GATE_PLAN = "gate.plan.json"
"""Name of the file that defines a gate's interim looks; it is in the gate's run folder."""
T = TypeVar("T")
RESULTS = Path("results")
"""The folder of runs for which no other is specified."""

MANIFEST = "manifest.json"
"""Name of the file that marks a folder as a run folder."""

SHARDS = "shards"
"""Name of the folder, in a run folder, for the run folders of the clients that each request a part of its questions."""

_RUN_FILES = (
    MANIFEST,
    "log.jsonl",
    "inflight.jsonl",
    "batches.jsonl",
    "questions.jsonl",
    "samples.jsonl",
    "turns.jsonl",
    "grades.jsonl",
    "opinions.jsonl",
    "overrides.jsonl",
    "scores.json",
)
"""Names of the files that a run writes, or wrote in an earlier version; other tools use some of these names, too."""

STATUS = "status.json"
"""The state of a run in progress."""

GATE_FILES = ("gate.json", "gate.md", "gate.xml", "gate.html")
"""Files of a gate's decision."""

OTHER_FILES = (STATUS, "engine.jsonl", "report.html", "report.md", GATE_PLAN, *GATE_FILES)
"""Other files that a run folder may have besides manifest, log and lock: those of a run in progress, and reports."""

SHOWN_NAMES = 5
"""Maximum number of files of a foreign folder that an error lists."""


class _FolderFile:
    """A file in the folder of a benchmark or a run: an attribute that gives its path."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: BenchmarkFolder | RunFolder, _owner: object) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class BenchmarkFolder:
    """The files of one benchmark within a run. name: the benchmark's name; path: its folder."""

    name: str
    path: Path

    questions = _FolderFile("questions.jsonl")
    samples = _FolderFile("samples.jsonl")
    turns = _FolderFile("turns.jsonl")  # the finished turns of unfinished conversations
    grades = _FolderFile("grades.jsonl")
    partial_grades = _FolderFile("grades.partial.jsonl")
    """The file with a grading's grades so far; removed once it has written `grades`."""
    fresh_grades = _FolderFile("grades.fresh.jsonl")
    """Like `partial_grades`, for a grading without reuse; while this file exists, no other grades are reused."""
    scores = _FolderFile("scores.json")
    overrides = _FolderFile("overrides.jsonl")
    """The file of verdicts corrected by a person."""
    opinions = _FolderFile("opinions.jsonl")
    """The file of opinions of second graders."""
    images = _FolderFile("images")
    """The folder of the images that questions show (`core.images.ImageFolder`)."""

    def has_samples(self) -> bool:
        """Whether `samples` holds anything."""
        try:
            return self.samples.stat().st_size > 0
        except OSError:
            return False

    def create(self) -> None:
        """Make the folder. Raises `StoreError` if this fails or if there is a link or a file in its place."""
        make_folder(self.path)


def named_folder(parent: Path, name: str, suffix: str = "") -> Path:
    """The folder in `parent` for something called `name`."""
    return parent / f"{safe_name(name)}{suffix}"


def run_around(file: Path) -> Path | None:
    """The folder of the run that `file` belongs to; None if it is not part of a run.

    A run's files are next to its manifest or one folder deeper, in the folder of a benchmark.
    """
    if file.name not in _RUN_FILES or not file.is_file():
        return None
    return next((folder for folder in file.absolute().parents[:2] if (folder / MANIFEST).is_file()), None)


def run_in_results(name: Path | str) -> Path | None:
    """The run in `RESULTS` called `name`, for a message if `name` by itself is not a run; None if there is none."""
    path = RESULTS / name
    return path if (path / MANIFEST).is_file() else None


def runs_in(folder: Path) -> list[RunFolder]:
    """The runs whose folders are in `folder`, such as the cells of a sweep; empty for a run's own folder.

    Sorted by name, with numbers in names sorted by value: step_200 comes before step_1000.
    """
    if (folder / MANIFEST).is_file():
        return []
    manifests = filter(Path.is_file, folder.glob(f"*/{MANIFEST}"))
    return sorted((RunFolder(path.parent, is_neighbor=True) for path in manifests), key=_natural)


def runs_below(folder: Path) -> list[RunFolder]:
    """The runs in `folder` and in the folders in it, such as sweeps."""
    return [run for parent in (folder, *sorted(filter(Path.is_dir, folder.glob("*")))) for run in runs_in(parent)]


def readable(runs: Iterable[RunFolder], read: Callable[[RunFolder], T]) -> Iterator[tuple[RunFolder, T]]:
    """Yield each run with what `read` returns for it.

    A damaged run that was found among others (`runs_in`) is left out, with a warning that names the file.
    Raises `StoreError` for a damaged run that the user named.
    """
    for run in runs:
        try:
            value = read(run)
        except StoreError as error:
            if not run.is_neighbor:
                raise
            channel.warn(f"the run {visible(run.path.name, 200)} is skipped: {error.sentence}")
        else:
            yield run, value


def _natural(run: RunFolder) -> list[str | int]:
    """The parts of a run's name: alternating texts and numbers."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", run.path.name)]


TRIES, TRY_SECONDS = 10, 0.02
"""Number of attempts to take a run before it counts as taken, and the seconds between two attempts."""

MAX_HOLDER_BYTES = 4096


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that holds the lock on a run."""

    host: str
    """Host name of the machine that the process runs on."""
    pid: int
    """Process ID."""
    started: str
    """When it started (UTC, ISO 8601)."""

    def __str__(self) -> str:
        return f"process {self.pid} on {visible(self.host, 100)} since {visible(self.started, 40)}"


def holder_of(folder: RunFolder) -> Holder | None:
    """The process that is writing the run; None if there is none or if the file system has no locks."""
    with contextlib.suppress(OSError), open_untrusted(folder.lock) as file:
        for _ in range(TRIES):
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                # A holder that has just taken the run may not have written its name yet.
                with contextlib.suppress(codec.DecodeError):
                    return codec.decode(read_at(file.fileno(), MAX_HOLDER_BYTES, 0), Holder)
                time.sleep(TRY_SECONDS)
            else:
                return None
        return Holder(host="an unknown host", pid=0, started="an unknown time")
    return None


class RunFolder:
    """A run's folder, given by its path; creating the object does not access the disk.

    is_neighbor: whether the run was not named but found in a folder of runs, whose other runs are still useful if this
    one is damaged.
    """

    def __init__(self, path: Path | str, *, is_neighbor: bool = False) -> None:
        self.is_neighbor = is_neighbor
        self.path = Path(path).absolute()
        """The absolute path, so that a later change of the working directory has no effect."""

    def __fspath__(self) -> str:
        """The folder's path, so that a run folder can be used wherever a path is accepted."""
        return str(self.path)

    @classmethod
    def default(cls, model: str, results: Path = RESULTS) -> RunFolder:
        """The default folder for a run of `model`."""
        return cls(named_folder(results, model))

    def of_shard(self, shard: str) -> RunFolder:
        """The folder for the client of a shard ("2/8") of this run, next to those of the other shards."""
        return RunFolder(self.path / SHARDS / shard.replace("/", "-of-"))

    def shards(self) -> list[RunFolder]:
        """The folders of this run's shards that have started."""
        return runs_in(self.path / SHARDS)

    @property
    def part(self) -> str | None:
        """The shard that this folder is for, such as "2/8"; None if it is not a shard in a run folder."""
        is_shard = self.path.parent.name == SHARDS and re.fullmatch(r"\d+-of-\d+", self.path.name)
        return self.path.name.replace("-of-", "/") if is_shard else None

    def run_of_shard(self) -> RunFolder | None:
        """The run, if this folder is a shard's."""
        return None if self.part is None else RunFolder(self.path.parents[1])

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """An existing run's folder. Raises `StoreError` if there is no run at `path`."""
        folder = cls(path)
        if folder.manifest.is_file():
            return folder
        missing = folder.missing_manifest()
        if folder.has_samples():
            raise missing
        if (run := run_around(folder.path)) is not None:
            raise StoreError(f"{folder.path} is a file inside a run folder; use the folder {run}")
        if shards := folder.shards():
            if not any(shard.has_samples() for shard in shards):
                raise StoreError(f"no shard of {folder.path} has stored a sample yet.")
            raise StoreError(f"{folder.path} contains separate shards; `harness score {folder.path}` joins them.")
        if runs := runs_in(folder.path):
            raise StoreError(f"{folder.path} is a folder of runs. Choose one of them, such as {runs[0].path}.")
        if folder.path.is_dir():
            raise missing
        if (meant := run_in_results(path)) is not None:
            raise StoreError(f"there is no run at {folder.path}. Did you mean {meant}?")
        siblings = [p.name for p in folder.path.parent.iterdir()] if folder.path.parent.is_dir() else []
        raise StoreError(f"there is no run at {folder.path}.{near_names(folder.path.name, siblings)}")

    @property
    def source(self) -> Path:
        """The path that users know: the path of the outputs for a run `<outputs>.scored`, else the run's own."""
        outputs = self.path.with_name(self.path.name.removesuffix(SCORED))
        # A person may name a run `<another run>.scored`; that other run has a manifest, but outputs have none.
        return outputs if outputs.exists() and not (outputs / MANIFEST).is_file() else self.path

    manifest = _FolderFile(MANIFEST)
    unfinished = _FolderFile(".unfinished")  # marks an import; it means nothing if there is a manifest
    log = _FolderFile("log.jsonl")

    def logs(self) -> list[Path]:
        """The log files here: first the logs of the folders joined into this one, sorted by name, then this folder's
        own log, if there is one.
        """
        # A broken link counts as a log, so that reading it gives an error message.
        own = [self.log] if self.log.is_symlink() or self.log.exists() else []
        return [*sorted(self.path.glob("log.*.jsonl")), *own]

    batches = _FolderFile("batches.jsonl")
    """The file of batches sent to a provider."""
    engine = _FolderFile("engine.jsonl")
    """The file of readings of the servers' metrics pages."""
    lock = _FolderFile("run.lock")
    report = _FolderFile("report.html")

    def benchmark(self, name: str) -> BenchmarkFolder:
        """The folder of the benchmark with this name."""
        return BenchmarkFolder(name, named_folder(self.path, name))

    def create(self) -> None:
        """Make the folder and its parents. Raises `StoreError` if the disk write fails."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise disk_error(self.path, error) from error
        except OSError as error:
            raise StoreError(
                f"cannot create the folder {self.path}: {error.strerror or error}. Choose a writable folder with `out`"
            ) from error

    def has_samples(self) -> bool:
        """Whether any benchmark folder has samples, or something in their place, with or without a manifest."""
        with contextlib.suppress(FileNotFoundError):  # A run that is being recreated is currently removed.
            return any(file.lstat().st_size > 0 for file in self.path.glob("*/samples.jsonl"))
        return False

    def refuse_foreign(self) -> None:
        """Raise `StoreError` if the folder has files but none of a run's, which means that it serves another purpose.

        A run writes its log and lock first, so a folder with either of them is a run's.
        """
        # From a single listing, so that a run being created by another process is never seen with only one of its
        # files.
        files = {p.name for p in self.path.glob("*") if p.is_file()}
        if files & {self.manifest.name, self.log.name, self.lock.name}:
            return
        held = sorted(name for name in files.difference(OTHER_FILES) if not name.startswith("."))
        if held and not self.has_samples():
            shown = ", ".join(visible(name, 60) for name in held[:SHOWN_NAMES])
            more = f" and {len(held) - SHOWN_NAMES} more" if len(held) > SHOWN_NAMES else ""
            raise StoreError(
                f"{self.path} is neither a run folder nor empty (it contains {shown}{more}). Choose a new or empty "
                "folder with `out`."
            )

    def is_active(self) -> bool:
        """Whether a process is writing the run or one of its shards. Reads no samples."""
        return any(map(holder_of, (self, *self.shards())))

    def other_writer(self) -> Holder | None:
        """The process that is writing the run, if it is not this one (two containers may have an equal pid)."""
        holder, ours = holder_of(self), (socket.gethostname(), os.getpid())
        return None if holder is None or (holder.host, holder.pid) == ours else holder

    def missing_manifest(self) -> StoreError:
        """The error for a folder without a manifest."""
        if writer := self.other_writer() or (self.manifest.is_file() and "another process"):
            return InUse(f"{self.path} is not a complete run yet: {writer} is creating it. Try again later.")
        if self.unfinished.exists():
            return StoreError(
                f"{self.path} is not a complete run: its import was interrupted. Run the same command again."
            )
        if self.has_samples():
            return StoreError(
                f"{self.path} contains samples but no manifest.json, so their settings are unknown. Restore "
                "the manifest, or use another run folder."
            )
        return StoreError(f"{self.path} is not a run folder: it has no manifest.json. Specify a run folder.")

    def remove_temporaries(self) -> list[Path]:
        """Remove the temporary files of killed writers from the run's folder and its benchmarks; return their paths."""
        # Never through a link, which may lead to somebody else's folder.
        folders = [self.path, *(p for p in self.path.iterdir() if p.is_dir() and not p.is_symlink())]
        return [removed for folder in folders for removed in remove_leftovers(folder)]


SCORED = ".scored"
"""Suffix of the folder of a run made from another tool's outputs; it is next to the outputs."""


def imported_at(outputs: Path) -> RunFolder:
    """The folder of the run made from these outputs of another tool (a file or a folder of files)."""
    place = outputs.absolute()
    return RunFolder(place.with_name(f"{place.name}{SCORED}"))


def continuation_of(outputs: Path) -> RunFolder:
    """The folder of the run that continues this unfinished file of another tool."""
    return RunFolder(outputs.with_name(f"{outputs.name}.run"))


def labels(folders: Sequence[RunFolder]) -> list[str]:
    """A name for each run: the shortest path endings that differ from each other."""
    paths = [folder.source.parts for folder in folders]
    for length in range(1, max((len(parts) for parts in paths), default=1) + 1):
        labels = ["/".join(parts[-length:]) for parts in paths]
        if len(set(labels)) == len(labels):
            return labels
    return [folder.source.name for folder in folders]


# ---- the log

MAX_FIELD_CHARS = 2000
"""Maximum length of a string in an event, in characters; `…` marks a cut."""


def _now() -> datetime:
    return datetime.now(UTC)


class RunLog(AbstractContextManager["RunLog"]):
    """Append-only events of a run, one per line. Threads and processes may share the file.

    A line is plain ASCII without control characters, so foreign text cannot start a line, control a terminal or hide.
    """

    def __init__(self, folder: RunFolder, *, now: Callable[[], datetime] = _now) -> None:
        """Raises `StoreError` if the file cannot be opened."""
        folder.create()
        self._now = now
        # Not durable: syncing each event would take longer than the event.
        self._file = LineFile(folder.log, durable=False)

    def write(self, event: str, **fields: Any) -> None:
        """Add `event` with its fields and the time (UTC). Raises `StoreError` if the disk write fails."""
        entry = {"time": self._now().isoformat(timespec="milliseconds"), "event": event, **fields}
        # JSON's own escapes are not enough: decoding and printing the line would restore the control characters.
        line = json.dumps(_visible_values(entry), separators=(",", ":"), ensure_ascii=True)
        self._file.append(line.encode("ascii") + b"\n")

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _visible_values(value: Any) -> Any:
    """`value` with every string in it shortened and `visible`; values that JSON does not support become strings."""
    if isinstance(value, dict):
        return {_visible_values(str(key)): _visible_values(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_visible_values(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return visible(str(value), MAX_FIELD_CHARS)
