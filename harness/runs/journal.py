"""The writer of `samples.jsonl`: append-only, one line a sample, acknowledged once on disk.

A sample passes these states; its future succeeds with the last:

    handed over     in the queue           a kill loses it; its key is owed
    written         in the kernel's pages  survives a kill, if its line is whole; a power loss loses it
    acknowledged    on disk                survives both, and the caller knows

One thread takes what has arrived, writes it, syncs once, and acknowledges all of it: one sync serves every
sample of `WINDOW_SECONDS`. Invariant: the file holds whole lines, then at most one torn line; nothing that is
acknowledged stands behind something that is not on disk. At the first failing write or sync the journal stops for good:
what was not acknowledged is taken back, nothing more is written.
A crash leaves a torn tail at the most. `open` cuts it off and logs its length before anything is appended; a whole
record that lacks only its newline, as an editor may leave it, gets one.

Not covered: two writers (hold `harness.runs.lock.RunLock`), and disks that acknowledge a sync before it is done.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import NamedTuple

from harness.core.errors import StoreError
from harness.core.files import disk_error, read_at, sync_folder
from harness.core.records import Sample
from harness.runs import record
from harness.runs.layout import BenchmarkFolder, RunLog
from harness.runs.line_file import open_for_writing, write_whole
from harness.runs.record import KeySet
from harness.runs.survey import DamagedLine, JournalReport, SampleReader, read_samples, survey

__all__ = ["DamagedLine", "Journal", "JournalReport", "SampleReader", "read_samples"]

WINDOW_SECONDS = 0.03
"""Seconds between two syncs. With a sync of up to 20 ms, a sample is durable within 50 ms of its arrival."""

CHUNK_BYTES = 64 * 1024
"""Bytes of lines that are gathered for one write; a longer line gets a write of its own."""

SYNC_BYTES = 4 * 1024 * 1024
"""A sync is due at once when this many bytes were written, or characters queued, since the last one.

So the first sample of a burst does not wait for the last.
"""

WRITEBACK_BYTES = 1024 * 1024
"""Bytes after which the disk is told to start writing while more is encoded, instead of waiting for the sync."""


class _Item(NamedTuple):
    """An entry of the queue: a sample to store, or None, whose `done` succeeds once all samples before it are stored.

    done: None if nobody waits for the sample.
    """

    sample: Sample | None
    done: Future[None] | None


class Journal:
    """The open journal of one benchmark. Threads may share it. Use `Journal.open`."""

    def __init__(
        self,
        folder: BenchmarkFolder,
        descriptor: int,
        size: int,
        keys: KeySet,
        report: JournalReport,
    ) -> None:
        self.folder = folder
        self.report = report
        """The report of `open` on the file."""
        self._descriptor = descriptor
        self._size = size
        self._begun = size  # The disk has begun to write everything before this offset.
        self._keys = keys
        self._failure: StoreError | None = None
        self._closed = False
        self._lock = threading.Lock()  # Guards _keys, _failure, _closed and _waiting.
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._waiting = 0  # Characters in the queue.
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"journal {folder.path.name}", daemon=True)
        self._thread.start()

    @classmethod
    def open(
        cls,
        folder: BenchmarkFolder,
        *,
        log: RunLog | None = None,
    ) -> Journal:
        """Open for appending, after cutting off a torn tail; damage and oddities go to `log` and `.report`.

        Raises `StoreError` when the folder cannot be written, is a link, or holds a newer schema.
        """
        folder.create()
        with contextlib.ExitStack() as opened:
            descriptor = open_for_writing(folder.samples, os.O_RDWR | os.O_APPEND)
            opened.callback(os.close, descriptor)
            surveyed = survey(descriptor, folder)
            if log is not None:
                _log_findings(log, folder, surveyed.report)
            try:
                if surveyed.report.torn_tail:
                    os.ftruncate(descriptor, surveyed.end)
                elif surveyed.end and read_at(descriptor, 1, surveyed.end - 1) != b"\n":
                    write_whole(descriptor, b"\n")
                    surveyed.end += 1
                # Samples that an earlier process wrote but did not sync count from here on.
                _sync_data(descriptor)
                sync_folder(folder.path)
                # The folder may be as new as the file: its own name stands in its parent.
                sync_folder(folder.path.parent)
            except OSError as error:
                raise disk_error(folder.samples, error) from error
            # The journal closes the descriptor from here on.
            opened.pop_all()
        return cls(folder, descriptor, surveyed.end, surveyed.keys, surveyed.report)

    @property
    def keys(self) -> KeySet:
        """A copy of the keys on disk, with those acknowledged up to now."""
        with self._lock:
            return self._keys.copy()

    def append(self, sample: Sample) -> Future[None]:
        """Hand over `sample` without waiting. The future succeeds once it is on disk.

        The future fails with `RecordRefused` when this one sample cannot be stored, with `StoreError` when the journal
        stops. Raises `StoreError` when the journal has stopped already or is closed.
        """
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # A waiter that gives up must not disturb the writer.
        self._put(_Item(sample, done))
        return done

    def hand_over(self, sample: Sample) -> None:
        """Append `sample` as `append` does, but make no future, which would double the cost. To wait, call `flush`.

        A sample that cannot be stored stops the journal. Raises `StoreError` when the journal has stopped or is closed.
        """
        self._put(_Item(sample, None))

    def flush(self) -> None:
        """Return when everything appended so far is on disk. Raises `StoreError` when the journal has stopped."""
        done: Future[None] = Future()
        self._put(_Item(None, done))
        self._hurry.set()
        done.result()

    def close(self) -> None:
        """Store what was appended, stop the writer, close the files. Raises `StoreError` if a write had failed."""
        with self._lock:
            was_closed, self._closed = self._closed, True
        if was_closed:
            return
        self._queue.put(None)
        self._hurry.set()
        self._thread.join()
        # The last chance to see that another program touched the file after the last write.
        if self._failure is None:
            try:
                self._check_unchanged()
            except StoreError as failure:
                self._failure = failure
        os.close(self._descriptor)
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        # The block's error is raised; the journal's own would replace it.
        with contextlib.suppress(StoreError):
            self.close()

    def _put(self, item: _Item) -> None:
        """Queue a sample for the writer's thread.

        Raises the failure that stopped the writer, or `StoreError` if the journal is closed.
        """
        sample = item.sample
        assert sample is None or sample.benchmark == self.folder.name, "a sample of another benchmark"
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._closed:
                raise StoreError(f"{self.folder.samples} is closed; nothing more can be appended.")
            self._queue.put(item)
            if sample is not None:
                # Characters, since the text is encoded on the writer's thread only.
                self._waiting += len(sample.text or "") + len(sample.reasoning or "")
                if self._waiting >= SYNC_BYTES:
                    self._hurry.set()

    # From here on: the writer's thread.

    def _run(self) -> None:
        """Write what is queued, one sync for all samples of a window; the work of the writer's thread."""
        # As if a window had passed since a sync, so that the first sample is written at once.
        last_sync = -WINDOW_SECONDS
        while (item := self._queue.get()) is not None:
            self._hurry.wait(last_sync + WINDOW_SECONDS - time.monotonic())
            self._hurry.clear()
            batch, ended = self._gather(item)
            last_sync = time.monotonic()
            try:
                self._commit(batch)
            except StoreError as failure:
                self._stop(failure, batch)
            except BaseException as error:  # noqa: BLE001 - a bug here must fail the samples, not strand who waits
                self._stop(StoreError(f"the writer of {self.folder.samples} stopped: {error!r}"), batch)
            if ended or self._failure is not None:
                return

    def _gather(self, item: _Item) -> tuple[list[_Item], bool]:
        """Empty the queue: (`item` and all items queued behind it, whether the journal is being closed)."""
        with self._lock:
            # Before the queue is emptied: a sample that comes in between then hurries a sync; the other order would
            # forget it.
            self._waiting = 0
        batch = [item]
        with contextlib.suppress(Empty):
            while (more := self._queue.get_nowait()) is not None:
                batch.append(more)
            return batch, True
        return batch, False

    def _commit(self, batch: list[_Item]) -> None:
        """Write the batch, sync it to disk, and tell the callers. Raises `StoreError`."""
        self._check_unchanged()
        # Since the last sync: all items, and those with a line in the file.
        reached: list[_Item] = []
        stored: list[_Item] = []
        chunk: list[bytes] = []  # Encoded lines that are not written yet.
        # Offsets in the file: of the last sync, behind the last encoded line, and behind the last written one.
        begin = end = written = self._size
        for item in batch:
            reached.append(item)
            if item.sample is None:
                continue
            try:
                line = record.encode(item.sample)
            except record.RecordRefused as refused:
                if item.done is None:
                    # No future would tell anybody, and a sample lost in silence is worse than a run that stops.
                    raise
                item.done.set_exception(refused)
                continue
            stored.append(item)
            chunk.append(line)
            end += len(line)
            if end - written >= CHUNK_BYTES:
                self._write(chunk)
                chunk, written = [], end
            if end - begin >= SYNC_BYTES:
                self._write(chunk)
                self._acknowledge(reached, stored, begin)
                reached, stored, chunk = [], [], []
                begin = written = end
        self._write(chunk)
        self._acknowledge(reached, stored, begin)

    def _acknowledge(self, reached: list[_Item], stored: list[_Item], begin: int) -> None:
        """Sync the samples of `stored`, which lie from byte `begin` on; then complete the futures.

        reached: items of the queue, among them all of `stored`, whose futures succeed.
        """
        if stored:
            # In this order: no known key may name a line that a power loss can take.
            self._sync(begin)
            with self._lock:
                self._keys.update(item.sample.key for item in stored if item.sample is not None)
        for item in reached:
            if item.done is not None and not item.done.done():
                item.done.set_result(None)

    def _check_unchanged(self) -> None:
        """Raise `StoreError` when another program removed, shortened or lengthened the file."""
        path = self.folder.samples
        try:
            state = os.fstat(self._descriptor)
        except OSError as error:
            raise disk_error(path, error) from error
        # Writing to a file without a name raises no error, and all samples would be gone at the end.
        if state.st_nlink == 0 or not _is_at(path, state):
            raise StoreError(f"{path} was removed or renamed while the run was writing to it.")
        if state.st_size != self._size:
            raise StoreError(
                f"{path} was changed by another program while the run was writing to it: "
                f"{state.st_size} bytes long instead of {self._size}."
            )

    def _write(self, chunk: list[bytes]) -> None:
        """Append whole lines; on failure, remove an incomplete last line. Raises `StoreError`."""
        data = memoryview(chunk[0] if len(chunk) == 1 else b"".join(chunk))
        written = 0
        try:
            while written < len(data):
                n = os.write(self._descriptor, data[written:])
                if n == 0:
                    raise OSError(0, "the disk took no bytes")
                written += n
        except OSError as error:
            # Whole lines stay, since they are good samples; only the torn one is removed.
            whole = 0
            for line in chunk:
                if whole + len(line) > written:
                    break
                whole += len(line)
            with contextlib.suppress(OSError):  # The next `open` cuts off a remaining tail.
                os.ftruncate(self._descriptor, self._size + whole)
            raise disk_error(self.folder.samples, error) from error
        self._size += written
        if self._size - self._begun >= WRITEBACK_BYTES:
            _begin_writeback(self._descriptor, self._begun, self._size - self._begun)
            self._begun = self._size

    def _sync(self, durable_size: int) -> None:
        """Sync the data. A failure is final: the kernel forgets it, so a second sync would succeed and mean nothing.

        After a failed sync, the lines may read well from memory and be gone after a power loss, so they are taken back.
        durable_size: size of the file up to the end of the last line that was synced before.
        """
        try:
            _sync_data(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, durable_size)
            raise disk_error(self.folder.samples, error) from error
        self._begun = self._size

    def _stop(self, failure: StoreError, batch: list[_Item]) -> None:
        """Stop writing: every future that is not done fails with `failure`, and every later call raises it.

        batch: the samples whose write failed.
        """
        # The failure is set and the queue emptied under one lock: a caller that hands over a sample later sees the
        # failure, so nobody waits in vain.
        with self._lock:
            self._failure = failure
            with contextlib.suppress(Empty):
                while True:
                    left = self._queue.get_nowait()
                    if left is not None:
                        batch.append(left)
        for item in batch:
            if item.done is not None and not item.done.done():
                item.done.set_exception(failure)


def _is_at(path: Path, state: os.stat_result) -> bool:
    """Whether `path` still names the open file with that state."""
    try:
        return os.path.samestat(path.stat(), state)
    except FileNotFoundError:
        return False


def _sync_data(descriptor: int) -> None:
    getattr(os, "fdatasync", os.fsync)(descriptor)  # macOS has no fdatasync.


def _begin_writeback(descriptor: int, offset: int, length: int) -> None:
    """Ask the kernel to start writing these bytes to the disk.

    Linux starts when it is told that no page of them is needed any more. On other systems, or on failure, the next
    sync writes them all. offset, length: in bytes.
    """
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)


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
