"""The file `batches.jsonl`: which samples were sent to a provider in which batch, so that none is sent twice.

Append-only lines with a checksum, each on disk before the call returns. A batch is recorded before it is sent
(`planned`), and again once the provider has named it (`sent`). So after a crash in between, the batch can be found by
our name in the provider's list. `void`: the batch never began, or failed; its requests are to be asked again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from harness.core.records import SCHEMA_VERSION
from harness.runs.layout import RunFolder
from harness.runs.line_file import append_line, line, read_appended

_REMEDY = (
    "The requests at the provider are then unknown: put an intact copy back, or remove the file to ask for all missing "
    "samples again."
)


class Handed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the file. In `BatchLedger.batches`: the planned batch, with its id once the provider has stated one.

    name: our name of the batch. id: the provider's. endpoint: its base URL. asks: the ids of its requests. why: of a
    void batch.
    """

    event: Literal["planned", "sent", "void"]
    name: str
    id: str = ""
    endpoint: str = ""
    asks: list[str] = []
    why: str = ""
    schema: int = SCHEMA_VERSION


class BatchLedger:
    """The file `batches.jsonl`. Only the holder of the run's lock may use it, one thread at a time."""

    def __init__(self, folder: RunFolder) -> None:
        """Open the file. Raises `StoreError` where it cannot be read, has a newer schema or a damaged line.

        A damaged line is an error because its batch might be sent twice.
        """
        self.path = folder.batches
        self.batches: dict[str, Handed] = {}
        """Batches that are not void, by our name, in the order in which they were planned."""
        # A torn tail comes from a process that died while writing, before it sent anything.
        for entry in read_appended(self.path, Handed, _REMEDY, sealed=True):
            self._apply(entry)

    def planned(self, name: str, endpoint: str, asks: Collection[str]) -> None:
        """Record that a batch of these requests is about to be sent. Raises `StoreError`."""
        self._append(Handed(event="planned", name=name, endpoint=endpoint, asks=list(asks)))

    def sent(self, name: str, id: str) -> None:
        """Record the provider's name of the batch. Raises `StoreError`."""
        self._append(Handed(event="sent", name=name, id=id))

    def void(self, name: str, why: str) -> None:
        """Record that the batch never began, or failed. Raises `StoreError`."""
        self._append(Handed(event="void", name=name, why=why))

    def holding(self, asks: Collection[str]) -> dict[str, Handed]:
        """For each request id in `asks` that a batch holds, the latest such batch; other ids are left out."""
        asked_ids = set(asks)
        # In the order of the batches, so a later one takes the place of an earlier one with the same request.
        return {ask: batch for batch in self.batches.values() for ask in batch.asks if ask in asked_ids}

    def _append(self, entry: Handed) -> None:
        append_line(self.path, line(entry, sealed=True))
        self._apply(entry)

    def _apply(self, entry: Handed) -> None:
        """Note in `batches` what a line of the file says."""
        if entry.event == "planned":
            self.batches[entry.name] = entry
        elif entry.name in self.batches and entry.event == "sent":
            self.batches[entry.name] = msgspec.structs.replace(self.batches[entry.name], id=entry.id)
        else:
            self.batches.pop(entry.name, None)
