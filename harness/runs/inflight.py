"""The file `inflight.jsonl`: how far samples under way have come, so that a later session can go on with them.

A line a sample, with a checksum; the file is replaced as a whole. What is read of a sample is the beginning of what one
request wrote, so a crash or a damaged line costs tokens, and never makes a text that no server sent. Nothing here
counts as a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from harness.core import codec
from harness.core.files import open_untrusted, write_atomically
from harness.core.inert import visible
from harness.core.records import SCHEMA_VERSION, Seam
from harness.runs import record
from harness.runs.layout import RunFolder
from harness.runs.line_file import line, lines, refuse_link
from harness.runs.record import Task


class Partial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a sample that was written.

    request: digest of the request that began it. engine: the engine that served it, "" = unknown. text, reasoning: as
    sent, None = nothing came. tokens: their number. ids, prompt_ids: token ids of this part and of the prompt, where
    the server stated them. seams: places of earlier interruptions.
    """

    request: str
    engine: str = ""
    server_model: str | None = None
    text: str | None = None
    reasoning: str | None = None
    tokens: int = 0
    ids: Sequence[int] | None = None
    prompt_ids: Sequence[int] | None = None
    seams: tuple[Seam, ...] = ()


class _Line(msgspec.Struct, frozen=True):
    """A line of the file."""

    key: Task
    part: Partial
    schema: int = SCHEMA_VERSION


@dataclass(slots=True)
class Recovered:
    """The half-written samples read from the file. damaged: lines that do not count; notes: oddities, for the log."""

    partials: dict[Task, Partial] = field(default_factory=dict)
    damaged: int = 0
    notes: list[str] = field(default_factory=list)


def read(folder: RunFolder, is_wanted: Callable[[Task], bool] = lambda _: True) -> Recovered:
    """The stored parts of the samples for which `is_wanted` is true.

    A missing file means none. Never raises: an unreadable part is lost.
    """
    recovered = Recovered()
    try:
        with open_untrusted(folder.inflight) as file:
            for each in lines(file):
                try:
                    if each.data is None or not each.complete:
                        raise record.Damaged("cut off" if not each.complete else "too long")
                    record.checksum(each.data)
                    entry = codec.decode(each.data, _Line)
                    if entry.schema > SCHEMA_VERSION:
                        raise record.Damaged(f"schema {entry.schema}")
                except (record.Damaged, codec.DecodeError) as damage:
                    recovered.damaged += 1
                    if recovered.damaged == 1:
                        recovered.notes.append(f"line {each.number}: {visible(str(damage), 200)}")
                    continue
                if is_wanted(entry.key):
                    recovered.partials[entry.key] = entry.part
    except FileNotFoundError:
        pass
    except OSError as error:
        recovered.notes.append(f"cannot read {folder.inflight}: {error.strerror or error}")
    return recovered


def write(folder: RunFolder, partials: Mapping[Task, Partial]) -> None:
    """Replace the content of the file by these parts; without parts, remove it. Raises `OSError`, `StoreError`."""
    refuse_link(folder.inflight)
    if not partials:
        folder.inflight.unlink(missing_ok=True)
        return
    write_atomically(
        folder.inflight, (line(_Line(key, _encodable(part)), sealed=True) for key, part in partials.items())
    )


def _encodable(part: Partial) -> Partial:
    ids, prompt_ids = part.ids, part.prompt_ids
    return msgspec.structs.replace(
        part, ids=None if ids is None else list(ids), prompt_ids=None if prompt_ids is None else list(prompt_ids)
    )
