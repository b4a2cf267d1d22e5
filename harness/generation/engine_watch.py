"""Reads the servers' metrics pages during a session and writes them to `engine.jsonl` in the run's folder.

    before the first request   one thread per endpoint reads its page; the request waits for it up to `FIRST_S`
    during the session         each thread reads, writes a line, and waits
    after the last request     until two readings agree, at most for `LAST_S`

The readings are never required and never cause a failure: a page that is missing or broken at the first reading is not
requested again, a thread that hangs is abandoned, and a disk error ends the readings. The client's streams run on
another thread.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.client.address.endpoint import Endpoint, redact, secrets_of
from harness.core.errors import StoreError
from harness.generation.run_progress import Progress
from harness.runs import line_file
from harness.runs.engine_pages import MAX_FILE_BYTES, EnginePage, EngineReading

FIRST_S = 2.0
"""Longest time that the first request waits for the first readings."""

LAST_S = 5.0
"""Longest time that the end of a session waits for the last readings."""

HURRIED_S = 0.5
"""The same limit after a signal."""

STILL_S = 0.5
"""If two readings this far apart agree, they are the last; histograms may lag behind the last byte of a reply."""

INTERVAL_S = 10.0
"""Shortest time between two readings of an endpoint. A reading takes 3.5 ms, 1% of the client's time at 3,000
tokens/s.
"""

SPREAD_S = 0.5
"""Shortest time between two readings of any endpoints, so that many endpoints do not take more processor time."""

POINTS = 50
"""The interval grows with the session, to 1/51 of its duration so far. A day has 350 readings."""

MAX_WATCHED = 64
"""Largest number of endpoints whose pages are read; with more endpoints, the pages cover only part of the tokens."""


@contextlib.contextmanager
def watched(
    endpoints: Sequence[Endpoint], path: Path, progress: Callable[[], Progress], hurries: Callable[[], bool]
) -> Iterator[None]:
    """A context manager that reads the pages of `endpoints` while a session is carried out, and appends them to `path`.

    progress: returns the client's own state; called on this module's threads. hurries: whether the user wants the
    session to end at once.
    """
    file = None
    if endpoints:
        with contextlib.suppress(StoreError):  # the journals will say what is wrong with the disk
            file = line_file.LineFile(path, durable=False)
    if file is None:
        yield
        return
    watch = _Watch(file, progress, max(INTERVAL_S, SPREAD_S * len(endpoints)))
    watch.begin(endpoints[:MAX_WATCHED])
    try:
        yield
    finally:
        watch.end(HURRIED_S if hurries() else LAST_S)


class _Watch:
    """The readings of one session. interval: minimum seconds between two readings of an endpoint."""

    def __init__(self, file: line_file.LineFile, progress: Callable[[], Progress], interval: float) -> None:
        self._file, self._progress, self._interval = file, progress, interval
        self._session, self._begin = round(time.time(), 3), time.monotonic()
        self._ending = threading.Event()
        self._threads: list[tuple[Endpoint, threading.Event, threading.Thread]] = []
        """The endpoint, an event that is set after its first reading, and the thread that reads it."""
        self._writing = threading.Lock()
        """Held while a line is written, and while the file is closed."""

    def begin(self, endpoints: Sequence[Endpoint]) -> None:
        """Start to read, and return after the first readings."""
        due = time.monotonic() + FIRST_S
        for endpoint in endpoints:
            first = threading.Event()
            thread = threading.Thread(target=self._run, args=(endpoint, first), daemon=True, name="metrics")
            self._threads.append((endpoint, first, thread))
            thread.start()
        for _, first, _ in self._threads:
            first.wait(max(0.0, due - time.monotonic()))

    def end(self, seconds: float) -> None:
        """Take the last readings, and close the file; a thread that is too slow is abandoned."""
        self._ending.set()
        due = time.monotonic() + seconds
        for endpoint, first, thread in self._threads:
            thread.join(max(0.0, due - time.monotonic()))
            if not first.is_set():
                with contextlib.suppress(StoreError):
                    self._write(endpoint, EnginePage(why="no response in time"))
        with self._writing:
            self._file.close()

    def _run(self, endpoint: Endpoint, first: threading.Event) -> None:
        """Read the page of an endpoint until the end; the body of its thread. first: set after the first reading."""
        from harness.client.facts import metrics, page  # with their HTTP library, where pages are read

        try:
            with page.http_client(endpoint, metrics.PAGE_S) as client:
                latest = metrics.read(client, endpoint)
                is_open = self._write(endpoint, latest) and not latest.why
                first.set()
                while is_open and not self._ending.wait(max(self._interval, (time.monotonic() - self._begin) / POINTS)):
                    is_open = self._write(endpoint, metrics.read(client, endpoint))
                before = None
                while is_open and latest != before:
                    before, latest = latest, metrics.read(client, endpoint)
                    is_open = self._write(endpoint, latest)
                    if latest != before:
                        time.sleep(STILL_S)
        except Exception as error:  # noqa: BLE001 - whatever a page or the disk does, the run goes on
            with contextlib.suppress(Exception):
                self._write(endpoint, EnginePage(why=f"reading it failed ({type(error).__name__})"))
        finally:
            first.set()

    def _write(self, endpoint: Endpoint, page: EnginePage) -> bool:
        """Append a reading; return whether there is room for more."""
        progress, shown = self._progress(), redact(endpoint.base_url, secrets_of(endpoint))
        reading = EngineReading(
            session=self._session,
            time=round(time.monotonic() - self._begin, 3),
            endpoint=shown,
            page=page,
            in_flight=progress.in_flight,
            concurrency=progress.concurrency,
            arrived=progress.arrived,
        )
        with self._writing:
            if self._file.descriptor < 0 or self._file.size > MAX_FILE_BYTES:
                return False
            self._file.append(line_file.line(reading))
            return True
