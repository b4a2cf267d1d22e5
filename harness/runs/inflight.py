"""The file `inflight.jsonl`: how far samples under way have come, so that a later session can go on with them.

A line a sample, with a checksum; the file is replaced as a whole. What is read of a sample is the beginning of what one
request wrote, so a crash or damage, after which no part counts, costs tokens and never makes a text that no server
sent. Nothing here counts as a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from harness.core.errors import StoreError
from harness.core.files import write_atomically
from harness.core.records import SCHEMA_VERSION, Seam
from harness.runs.layout import RunFolder
from harness.runs.line_file import line, read_appended, refuse_link
from harness.runs.record import Task


class Partial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a sample that was written.

    request: digest of the request that began it. engine: the engine that served it, "" = unknown. text, reasoning: as
    sent, None = nothing came. tokens: their number. ids, prompt_ids: token ids of this part and of the prompt, empty
    where the server did not state them. seams: places of earlier interruptions. failures: requests that were to
    continue it and brought no token, as `harness.generation.network.keeping` counts them.
    """

    request: str
    engine: str = ""
    server_model: str | None = None
    text: str | None = None
    reasoning: str | None = None
    tokens: int = 0
    ids: Sequence[int] = ()
    prompt_ids: Sequence[int] = ()
    seams: tuple[Seam, ...] = ()
    failures: float = 0.0


class _Row(msgspec.Struct, frozen=True):
    """A line of the file."""

    key: Task
    part: Partial
    schema: int = SCHEMA_VERSION


class Recovered(NamedTuple):
    """The half-written samples of the file. damage: why there are none if it cannot be read, else empty."""

    partials: dict[Task, Partial]
    damage: str = ""


def read(folder: RunFolder) -> Recovered:
    """The stored parts. A missing file means none. Never raises: unreadable parts are lost."""
    try:
        return Recovered({line.key: line.part for line in read_appended(folder.inflight, _Row, "", sealed=True)})
    except StoreError as error:
        return Recovered({}, str(error))


def write(folder: RunFolder, partials: Mapping[Task, Partial]) -> None:
    """Replace the content of the file by these parts; without parts, remove it. Raises `OSError`, `StoreError`."""
    refuse_link(folder.inflight)
    if not partials:
        folder.inflight.unlink(missing_ok=True)
        return
    write_atomically(folder.inflight, (_encoded(key, part) for key, part in partials.items()))


def _encoded(key: Task, part: Partial) -> bytes:
    part = msgspec.structs.replace(part, ids=list(part.ids), prompt_ids=list(part.prompt_ids))  # arrays are not encoded
    return line(_Row(key, part), sealed=True)
