"""Writer and readers of the journal `samples.jsonl`: append-only, one line per sample, acknowledged when written.

    `append` has returned       the line is in the kernel's pages: a kill does not lose it
    `SYNC_SECONDS` later        it is on disk: a power loss does not lose it either

Invariant: the file consists of whole lines and at most one torn line at the end, which `open` cuts off and logs (see
`line_file`). A power loss costs at most the samples of the last second, and the next session requests them again,
because an incomplete line has no valid checksum. A failed sync is final, because the kernel forgets the failure and a
second sync would prove nothing: every later call raises the error. The same applies to a file that another program
removed or changed.

Not covered: two writers (hold `harness.runs.lock.locked`), and disks that acknowledge a sync before it is done.

A reader does not change the file and needs no lock, even while a run is writing.

    a line                               counts as
    intact: checksum, decodes            a sample; if its key occurred before, a repeat, which is reported
    the same values, written again       the same, and reported
    damaged, too long, foreign           nothing: its key is missing, its number is reported
    blank                                nothing
    of a newer schema                    a reason to reject the whole file
    the last, neither newline nor intact the torn tail, which the journal cuts off

`read_state` verifies each line's checksum and takes the key from its head, which costs little more than reading the
file. Memory is limited to one record and the keys. Not covered: `read_state` assumes that a line with a valid checksum
is a sample, without decoding it; `read_samples` finds out whether it is one.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import BinaryIO, NamedTuple

from harness.core.errors import StoreError
from harness.core.files import READ_BUFFER_BYTES, disk_errors, open_untrusted, read_errors, sync_folder
from harness.core.records import MAX_RECORD_BYTES, Key, Sample
from harness.core.sanitize import visible
from harness.runs import record
from harness.runs.layout import BenchmarkFolder, RunLog
from harness.runs.line_file import BOM, Line, LineFile, lines
from harness.runs.missing import KeySet

# ---- the state


HEAD_BYTES = 256
"""Number of bytes at the start of a line that include its key; a line with a longer key is decoded at every resume."""


class DamagedLine(NamedTuple):
    """A damaged line, which does not count. number: from 1; offset: in bytes; reason: safe to print."""

    number: int
    offset: int
    reason: str


@dataclass(slots=True)
class JournalReport:
    """What was found in a journal.

    n_duplicates: number of intact lines whose key had occurred before. torn_tail: number of bytes after the last
    newline.
    """

    n_duplicates: int = 0
    damaged: list[DamagedLine] = field(default_factory=list)
    torn_tail: int = 0
    warnings: list[str] = field(default_factory=list)

    def warn(self, warning: str) -> None:
        """Record `warning`, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)


def parse(line: Line, folder: BenchmarkFolder, report: JournalReport) -> Sample | None:
    """The sample in a complete line, or None; anomalies are added to `report`. A blank line returns None.

    Raises `StoreError` for an intact line with a newer schema.
    """
    try:
        if (data := line.raw) is None:
            raise record.Damaged(f"{line.length} bytes long; the limit is {MAX_RECORD_BYTES}")
        oddities: list[str] = []
        if line.offset == 0 and data.startswith(BOM):
            data, oddities = data[len(BOM) :], ["a byte order mark"]
        if data.endswith((b"\r\n", b"\r")):
            data, oddities = data.removesuffix(b"\n").removesuffix(b"\r"), [*oddities, "CRLF line endings"]
        if data in (b"", b"\n"):
            return None
        sample = record.decode(data, folder.name, oddities)
    except record.NewerSchema as newer:
        raise StoreError(
            f"{folder.samples}, line {line.number}: {newer}. Use a newer version of the harness."
        ) from newer
    except record.Damaged as damage:
        report.damaged.append(DamagedLine(line.number, line.offset, visible(str(damage), 200)))
        return None
    for oddity in oddities:
        report.warn(f"{folder.samples} has {oddity}, probably from an editor or `jq`; its samples are still read")
    return sample


class JournalState(NamedTuple):
    """A journal's state. keys: the keys of its samples."""

    keys: KeySet
    report: JournalReport


def stored_keys(folder: BenchmarkFolder) -> KeySet:
    """The keys of the stored samples; empty if there is no journal. Raises `StoreError` as `read_state` does."""
    return stored_state(folder).keys


def stored_state(folder: BenchmarkFolder) -> JournalState:
    """The state of the stored journal, an empty one if there is none. Raises `StoreError` as `read_state` does."""
    path = folder.samples
    with read_errors(path), contextlib.suppress(FileNotFoundError), open_untrusted(path) as file:
        return read_state(file.fileno(), folder)
    return JournalState(KeySet(), JournalReport())


def read_state(descriptor: int, folder: BenchmarkFolder) -> JournalState:
    """The state of the journal open at `descriptor`. Raises `StoreError` on a newer schema or a failed read."""
    keys, report = KeySet(), JournalReport()
    # The journal continues to use this descriptor.
    with read_errors(folder.samples), open(descriptor, "rb", READ_BUFFER_BYTES, closefd=False) as file:
        for line in lines(file):
            if is_torn(line):
                report.torn_tail = line.length
                break
            key = None if line.raw is None else record.intact_key(line.raw, HEAD_BYTES, folder.name)
            if key is None and (sample := parse(line, folder, report)) is not None:
                key = sample.key
            if key is not None:
                report.n_duplicates += not keys.add(key)
    return JournalState(keys, report)


def is_torn(line: Line) -> bool:
    """Whether the file's last line was cut off: it has no newline and is not a whole record without one."""
    return not line.complete and (line.raw is None or not record.is_whole(line.raw))


# ---- the samples


def read_samples(
    folder: BenchmarkFolder,
    *,
    keys: Collection[Key] | None = None,
    span: tuple[int, int] | None = None,
    report: JournalReport | None = None,
) -> Iterator[Sample]:
    """The samples on disk (of `keys`, if given), in file order: the first intact record for a key counts.

    No file means no samples. A damaged line is skipped, and its sample must be requested again. span: read only the
    lines that begin at bytes [start, stop) of the file; adjacent spans together cover every line once. report: receives
    what was found; it is complete once the iteration has ended. Raises `StoreError`, while iterating, on a newer schema
    or a failed read.
    """
    path, seen = folder.samples, KeySet()
    report = JournalReport() if report is None else report
    with read_errors(path), contextlib.suppress(FileNotFoundError), open_untrusted(path) as file:
        for line in lines(file) if span is None else _lines_within(file, *span):
            if is_torn(line):
                report.torn_tail = line.length
                return
            sample = parse(line, folder, report)
            if sample is None:
                continue
            if not seen.add(sample.key):
                report.n_duplicates += 1
            elif keys is None or sample.key in keys:
                yield sample


def _lines_within(file: BinaryIO, start: int, stop: int) -> Iterator[Line]:
    """The lines that begin in [start, stop), in bytes, numbered from there."""
    # One byte earlier, where the newline before `start` is, so that a line beginning at `start` is not skipped.
    following = lines(file, max(0, start - 1))
    if start > 0:
        next(following, None)  # The rest of the previous line, or only its newline.
    yield from takewhile(lambda line: line.offset < stop, following)


__all__ = ["DamagedLine", "Journal", "JournalReport", "read_samples"]

# ---- the writer


SYNC_SECONDS = 1.0
"""Longest time, in seconds, before a written sample is synced to the disk."""


class Journal(contextlib.AbstractContextManager["Journal"]):
    """The open journal of one benchmark. Threads may share it. Use `Journal.open`."""

    def __init__(self, folder: BenchmarkFolder, file: LineFile, state: JournalState) -> None:
        self.folder = folder
        self.report = state.report
        """The report of `open` on the file."""
        self._file = file
        self._keys = state.keys
        self._failure: StoreError | None = None
        self._timer: threading.Timer | None = None  # The latest timer, which may have ended.
        self._is_sync_due = False
        self._lock = threading.Lock()  # Guards the keys and the timer.
        self._syncing = threading.RLock()  # Keeps the file open during a sync.

    @classmethod
    def open(cls, folder: BenchmarkFolder, *, log: RunLog | None = None) -> Journal:
        """Open for appending, after cutting off a torn tail; damage and anomalies are written to `log` and `.report`.

        Raises `StoreError` if the folder is not writable or is a link, or if the file has a newer schema.
        """
        folder.create()
        with contextlib.ExitStack() as opened:
            file = opened.enter_context(LineFile(folder.samples, durable=False, shared=False))
            state = read_state(file.descriptor, folder)
            if log is not None:
                _log_findings(log, folder, state.report)
            file.cut_torn_tail()
            # Samples that an earlier process wrote but did not sync now become durable.
            file.sync()
            with disk_errors(folder.samples):
                # The folder may be as new as the file, and its name is stored in its parent.
                for path in (folder.path, folder.path.parent):
                    sync_folder(path)
            # The journal closes the file from here on.
            opened.pop_all()
        return cls(folder, file, state)

    @property
    def keys(self) -> KeySet:
        """A copy of the keys in the file."""
        with self._lock:
            return self._keys.copy()

    def append(self, sample: Sample) -> None:
        """Write `sample`; it is on disk `SYNC_SECONDS` later, or after `sync`.

        Raises `RecordRefused` if only this sample cannot be stored, `StoreError` if the disk write or an earlier sync
        failed; the file is then unchanged.
        """
        assert sample.benchmark == self.folder.name, "a sample from another benchmark"
        line = record.encode(sample)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._check_unchanged()
            self._file.append(line)
            self._keys.add(sample.key)
            if not self._is_sync_due:
                timer = threading.Timer(SYNC_SECONDS, self._sync_in_time)
                timer.daemon = True
                # If no thread can be started, the next sample tries again, and closing syncs.
                with contextlib.suppress(RuntimeError):
                    timer.start()
                    self._timer, self._is_sync_due = timer, True

    def sync(self) -> None:
        """Return once everything appended so far is on disk. Raises `StoreError`."""
        with self._syncing:
            if self._failure is not None:
                raise self._failure
            if self._file.descriptor < 0:
                return  # `close` has synced it.
            try:
                self._file.sync()
            except StoreError as failure:
                self._failure = failure
                raise

    def close(self) -> None:
        """Sync and close the file; a second call does nothing. Raises `StoreError` if a sync has failed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        with self._syncing:
            if self._file.descriptor >= 0:
                with self._file:
                    self.sync()
                    # The last chance to notice that another program changed the file after the last write.
                    self._check_unchanged()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            self.close()
        except StoreError:
            if error is None:  # otherwise the block's error is raised, which this one would replace
                raise

    def _sync_in_time(self) -> None:
        with self._lock:
            self._is_sync_due = False  # A sample appended from here on gets a separate sync.
        with contextlib.suppress(StoreError):  # The next call raises it.
            self.sync()

    def _check_unchanged(self) -> None:
        """Raise `StoreError` if another program removed, shortened or lengthened the file."""
        path, is_there = self.folder.samples, False
        with disk_errors(path), contextlib.suppress(FileNotFoundError):
            state = os.fstat(self._file.descriptor)
            # Writing to a deleted file raises no error, and in the end all samples would be lost.
            is_there = os.path.samestat(path.stat(), state)
        if not is_there:
            raise StoreError(f"{path} was removed or renamed while the run was writing to it.")
        if state.st_size != self._file.size:
            raise StoreError(
                f"{path} was changed by another program while the run was writing to it: "
                f"{state.st_size} bytes long instead of {self._file.size}."
            )


def _log_findings(log: RunLog, folder: BenchmarkFolder, report: JournalReport) -> None:
    """Log what was found while reading the journal: damage, repeated keys, warnings."""
    if report.torn_tail:
        log.write("torn_tail", benchmark=folder.name, bytes=report.torn_tail)
    for line in report.damaged:
        log.write("damaged_line", benchmark=folder.name, line=line.number, offset=line.offset, reason=line.reason)
    if report.n_duplicates:
        log.write("duplicate_samples", benchmark=folder.name, count=report.n_duplicates)
    for warning in report.warnings:
        log.write("warning", benchmark=folder.name, message=warning)
