"""The writer of `samples.jsonl`: append-only, one line a sample, acknowledged once written.

    `append` has returned       the line is in the kernel's pages: a kill does not lose it
    `SYNC_SECONDS` later        it is on disk: a power loss does not lose it either

Invariant: the file holds whole lines, then at most one torn line, which `open` cuts off and logs (see `line_file`). A
power loss costs the samples of the last second at most, and the next session asks for them again: a line that is not
whole on the disk does not have its checksum. A failing sync is final, since the kernel forgets the failure and a second
sync would mean nothing: every later call raises it. So does a file that another program removed or changed.

Not covered: two writers (hold `harness.runs.lock.locked`), and disks that acknowledge a sync before it is done.
"""

from __future__ import annotations

import contextlib
import os
import threading

from harness.core.errors import StoreError
from harness.core.files import disk_error, sync_folder
from harness.core.records import Sample
from harness.runs import record
from harness.runs.journal_state import DamagedLine, JournalReport, JournalState, read_samples, read_state
from harness.runs.layout import BenchmarkFolder, RunLog
from harness.runs.line_file import LineFile
from harness.runs.record import KeySet

__all__ = ["DamagedLine", "Journal", "JournalReport", "read_samples"]

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
        self._timer: threading.Timer | None = None  # The latest, which may have ended.
        self._is_sync_due = False
        self._lock = threading.Lock()  # Guards the keys and the timer.
        self._syncing = threading.RLock()  # Keeps the file open during a sync.

    @classmethod
    def open(cls, folder: BenchmarkFolder, *, log: RunLog | None = None) -> Journal:
        """Open for appending, after cutting off a torn tail; damage and oddities go to `log` and `.report`.

        Raises `StoreError` when the folder cannot be written, is a link, or holds a newer schema.
        """
        folder.create()
        with contextlib.ExitStack() as opened:
            file = opened.enter_context(LineFile(folder.samples, durable=False, shared=False))
            state = read_state(file.descriptor, folder)
            if log is not None:
                _log_findings(log, folder, state.report)
            file.end_whole()
            # Samples that an earlier process wrote but did not sync count from here on.
            file.sync()
            try:
                # The folder may be as new as the file: its own name stands in its parent.
                for path in (folder.path, folder.path.parent):
                    sync_folder(path)
            except OSError as error:
                raise disk_error(folder.samples, error) from error
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

        Raises `RecordRefused` when this one sample cannot be stored, `StoreError` when the disk refuses it or an
        earlier sync has failed; the file is then as it was.
        """
        assert sample.benchmark == self.folder.name, "a sample of another benchmark"
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
                # Where no thread can be started, the next sample tries again, and the end syncs.
                with contextlib.suppress(RuntimeError):
                    timer.start()
                    self._timer, self._is_sync_due = timer, True

    def sync(self) -> None:
        """Return when everything appended so far is on disk. Raises `StoreError`."""
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
                    # The last chance to see that another program touched the file after the last write.
                    self._check_unchanged()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            self.close()
        except StoreError:
            if error is None:  # else the block's error is raised, which this one would replace
                raise

    def _sync_in_time(self) -> None:
        with self._lock:
            self._is_sync_due = False  # A sample that is appended from here on gets a sync of its own.
        with contextlib.suppress(StoreError):  # The next call raises it.
            self.sync()

    def _check_unchanged(self) -> None:
        """Raise `StoreError` when another program removed, shortened or lengthened the file."""
        path = self.folder.samples
        try:
            state = os.fstat(self._file.descriptor)
            # Writing to a file without a name raises no error, and all samples would be gone at the end.
            is_there = os.path.samestat(path.stat(), state)
        except FileNotFoundError:
            is_there = False
        except OSError as error:
            raise disk_error(path, error) from error
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
