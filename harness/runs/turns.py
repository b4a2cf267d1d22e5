"""`turns.jsonl`: the finished turns of conversations that are not finished, one line per turn, appended.

A finished conversation is a sample of `samples.jsonl`, and its lines here no longer count. A killed run continues each
conversation after the longest sequence of stored turns whose requests are today's. A line is in the kernel's pages when
`append` returns, so a kill does not lose it; a power loss may, and that turn is requested again.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from harness.core.records import SCHEMA_VERSION, Key, SampleRecord, SampleStep
from harness.runs.journal import stored_keys
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import LineFile, iterate_lines, line

_REMEDY = "Remove the file to ask the unfinished conversations again."


class StoredTurn(SampleRecord, frozen=True, kw_only=True):
    """A finished turn of a conversation; one line of `turns.jsonl`, with a checksum."""

    turn: int
    """Number of the turn, from 1."""
    request: str
    """SHA-256 of the request."""
    step: SampleStep
    """The request's reply."""
    carry: tuple[Any, ...] = ()
    """The parts of the reply that the API requires back."""
    server_model: str | None = None
    """Model name, as reported by the server."""
    schema: int = SCHEMA_VERSION
    """Version of this format."""


class TurnFile:
    """The file of one benchmark's finished turns, read when it is made. Used by one thread."""

    def __init__(self, folder: BenchmarkFolder) -> None:
        """Read the turns of unfinished conversations; damaged lines are left out. Raises `StoreError`."""
        self._folder = folder
        self._file: LineFile | None = None
        self._stored: defaultdict[Key, list[StoredTurn]] = defaultdict(list)
        if folder.turns.exists():
            finished = stored_keys(folder)
            for stored in iterate_lines(folder.turns, StoredTurn, _REMEDY, sealed=True, damaged=[]):
                if stored.key not in finished and stored.benchmark == folder.name:
                    self._stored[stored.key].append(stored)

    def find(self, key: Key, turn: int, request: str) -> StoredTurn | None:
        """The stored reply to this request of a conversation; None if there is none."""
        stored = self._stored.get(key, ())
        return next((each for each in stored if (each.turn, each.request) == (turn, request)), None)

    def append(self, stored: StoredTurn) -> None:
        """Store a finished turn. Raises `StoreError`."""
        if self._file is None:
            self._file = LineFile(self._folder.turns, durable=False, shared=False)
        self._file.append(line(stored, sealed=True))

    def close(self) -> None:
        """Close the file, if a turn was stored."""
        if self._file is not None:
            self._file.close()
