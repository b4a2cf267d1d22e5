"""One line of `samples.jsonl`: a sample's JSON, key first, checksum last. Pure.

    {"benchmark":"aime24","question_id":"2024-I-1","sample_index":0,…,"schema":1,"crc":"89abcdef"}⏎

The checksum is the CRC-32 (zlib) of every byte before `,"crc":`, so a reader can verify it without re-encoding, and a
reader that does not know it sees an additional field. The key can be read from the head and the checksum from the tail.
A line that another program wrote again (`jq -c` turns 0.0 into 0) is intact if the same values in our spelling have the
checksum that it states.
Any text is restored exactly, even lone surrogates; a high surrogate before a low one becomes the character that they
represent.
"""

from __future__ import annotations

import functools
import math
import re
import zlib

import msgspec

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.records import MAX_RECORD_BYTES, SCHEMA_VERSION, Sample
from harness.core.sanitize import visible

STATES_CHECKSUM = re.compile(rb'"crc"\s*:')
"""The checksum field, in any position and spelling that an editor or a program may have left it in."""
TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n?\Z')
TAIL_BYTES = len(b',"crc":"89abcdef"}\n')

_STRING = rb'("[^"\\]*(?:\\.[^"\\]*)*")'
_HEAD = re.compile(rb'\{"benchmark":' + _STRING + rb',"question_id":' + _STRING + rb',"sample_index":(\d{1,18}),')


class RecordRefused(StoreError):
    """This one sample cannot be stored; other samples still can."""


class Damaged(ValueError):
    """This line is not an intact record of the benchmark; the message states the reason."""


class NewerSchema(ValueError):
    """An intact line with a schema that this version cannot read. `schema`: its version."""

    def __init__(self, schema: int) -> None:
        super().__init__(
            f"schema {schema}, but this version of the harness supports only schemas up to {SCHEMA_VERSION}"
        )
        self.schema = schema


def encode(sample: Sample) -> bytes:
    """The line of `sample`. Raises `RecordRefused` if it is too long or would not be readable."""
    name = f"sample {sample.sample_index} of question {visible(sample.question_id, 100)!r}"
    # JSON has no NaN and no infinity, so the line could not be read back.
    if not (math.isfinite(sample.timing.started) and math.isfinite(sample.timing.total)):
        raise RecordRefused(f"{name} contains a time that is not a finite number, so it cannot be stored.")
    body = codec.escape_line(codec.encode(sample))
    if len(body) - 1 + TAIL_BYTES > MAX_RECORD_BYTES:
        raise RecordRefused(f"{name} takes {len(body) - 1} bytes; a record can have at most {MAX_RECORD_BYTES} bytes.")
    return seal(body)


def seal(encoded: bytes) -> bytes:
    """A JSON object as a line with its checksum appended."""
    # A view, since a record may have megabytes.
    body = memoryview(encoded)[:-1]
    return b"".join((body, b',"crc":"%08x"}\n' % zlib.crc32(body)))


def decode(line: bytes, benchmark: str, oddities: list[str] | None = None) -> Sample:
    """The sample in a line, with or without its newline. Raises `Damaged` or `NewerSchema`.

    oddities: receives a note if another program wrote the line again.
    """
    if not verify(line, Sample) and oddities is not None:
        oddities.append("lines that another program wrote again")
    try:
        sample = codec.decode(line, Sample)
    except codec.DecodeError as error:
        # A newer schema may not decode as ours; it makes the whole file unreadable, not just one line.
        _refuse_newer(line)
        raise Damaged(f"not a sample: {error}") from error
    if sample.schema > SCHEMA_VERSION:
        raise NewerSchema(sample.schema)
    if sample.sample_index < 0:
        raise Damaged(f"the sample's index is {sample.sample_index}, expected 0 or greater")
    if sample.benchmark != benchmark:
        raise Damaged(f"its benchmark is {visible(sample.benchmark, 100)!r}, expected {visible(benchmark, 100)!r}")
    return sample


def intact_key(line: bytes, n_head: int, benchmark: str) -> tuple[str, int] | None:
    """The question id and the index in a line (with its newline) with this schema and a valid checksum.

    n_head: number of leading bytes that must include the key. None for any unusual line, intact or not; `decode`
    explains what is unusual.
    """
    has_our_schema = line[-TAIL_BYTES - len(_SCHEMA) : -TAIL_BYTES] == _SCHEMA
    checksum_fits = line[-TAIL_BYTES:] == b',"crc":"%08x"}\n' % zlib.crc32(memoryview(line)[:-TAIL_BYTES])
    return head_key(line[:n_head], benchmark) if has_our_schema and checksum_fits else None


_SCHEMA = b',"schema":%d' % SCHEMA_VERSION
"""The bytes before the checksum in a record of this version."""


def is_whole(line: bytes) -> bool:
    """Whether a line (without its newline) ends in its own checksum, so that no part of it is missing."""
    try:
        verify(line)
    except Damaged:
        return False
    return True


def verify(line: bytes, type: type[object] | None = None) -> bool:
    """Raise `Damaged` if the line does not end in its own checksum.

    type: the type of the record; with it, a line that another program wrote again with the same values passes. Returns
    whether the line is as the harness wrote it.
    """
    # Only the end, since searching megabytes of text would cost more than the checksum.
    tail = TAIL.search(line, max(0, len(line) - TAIL_BYTES))
    if tail is not None and zlib.crc32(memoryview(line)[: tail.start()]) == int(tail[1], 16):
        return True
    if type is None or not _same_values(line, type):
        raise Damaged("no checksum" if tail is None else "checksum differs")
    return False


def _same_values(line: bytes, type: type[object]) -> bool:
    """Whether the values of the line, encoded as `seal` gets them, have the checksum that the line states."""
    try:
        stated = codec.decode(line, dict[str, object])
        ours = codec.escape_line(codec.encode(codec.decode(line, type)))
        # A name that `type` does not have is not in `ours`.
        return stated.pop("crc", None) == f"{zlib.crc32(ours[:-1]):08x}" and codec.decode(ours) == stated
    except codec.DecodeError:
        return False


def head_key(head: bytes, benchmark: str) -> tuple[str, int] | None:
    """The question id and the index in a line's first bytes; None if there is no key of `benchmark`.

    head: those bytes.
    """
    match = _HEAD.match(head)
    if match is None:
        return None
    name, question_id, index = match.groups()
    try:
        return (codec.decode(question_id, str), int(index)) if _name(name) == benchmark else None
    except codec.DecodeError:
        return None


@functools.lru_cache(maxsize=64)  # Cached, because a run's few names occur in every record.
def _name(quoted: bytes) -> str:
    return codec.decode(quoted, str)


class _RecordHead(msgspec.Struct):
    schema: int


def _refuse_newer(line: bytes) -> None:
    """Raise `NewerSchema` if the line states a newer schema than this version knows."""
    try:
        schema = codec.decode(line, _RecordHead).schema
    except codec.DecodeError:
        return
    if schema > SCHEMA_VERSION:
        raise NewerSchema(schema)
