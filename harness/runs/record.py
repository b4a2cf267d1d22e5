"""One line of `samples.jsonl`: a sample's JSON, key first, checksum last. Pure.

    {"benchmark":"aime24","question_id":"2024-I-1","sample_index":0,…,"schema":1,"crc":"89abcdef"}⏎

The checksum is the CRC-32 (zlib) of every byte before `,"crc":`, so a reader verifies without encoding anew, and
one that knows nothing of it sees one more field. A key can be read from the head and the checksum from the tail.
Any text comes back equal, lone surrogates too; a high surrogate before a low one comes back as the character they mean.
"""

from __future__ import annotations

import functools
import math
import re
import zlib
from typing import NamedTuple

import msgspec
import orjson

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.limits import MAX_RECORD_BYTES
from harness.core.records import SCHEMA_VERSION, Sample

TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n?\Z')
TAIL_BYTES = len(b',"crc":"89abcdef"}\n')

_STRING = rb'("[^"\\]*(?:\\.[^"\\]*)*")'
_HEAD = re.compile(rb'\{"benchmark":' + _STRING + rb',"question_id":' + _STRING + rb',"sample_index":(\d{1,18}),')


class RecordRefused(StoreError):
    """This one sample cannot be stored; the journal itself is well."""


class Damaged(ValueError):
    """This line is no intact record of the benchmark; the message says why."""


class NewerSchema(ValueError):
    """An intact line of a schema that this version cannot read. `schema`: its version."""

    def __init__(self, schema: int) -> None:
        super().__init__(f"schema {schema}; this harness reads schemas up to {SCHEMA_VERSION}")
        self.schema = schema


class Record(NamedTuple):
    """An encoded sample. line: with its newline."""

    line: bytes
    crc: int


def encode(sample: Sample) -> Record:
    """The line of `sample`. Raises `RecordRefused` when it is too long or could not be read back."""
    name = f"sample {sample.sample_index} of question {sample.question_id!a}"
    if not (math.isfinite(sample.timing.started) and math.isfinite(sample.timing.total)):
        raise RecordRefused(f"{name} has a time that is no finite number and cannot be stored.")
    body = codec.inert(_encoded(sample))
    if len(body) - 1 + TAIL_BYTES > MAX_RECORD_BYTES:
        raise RecordRefused(
            f"{name} takes {len(body) - 1} bytes; the longest record stored is {MAX_RECORD_BYTES} bytes."
        )
    return sealed(body)


def sealed(encoded: bytes) -> Record:
    """A JSON object as a line with its checksum."""
    body = memoryview(encoded)[:-1]
    crc = zlib.crc32(body)
    return Record(b"".join((body, b',"crc":"%08x"}\n' % crc)), crc)


def _encoded(sample: Sample) -> bytes:
    try:
        return orjson.dumps(msgspec.to_builtins(sample))  # half the time of msgspec's own for long texts
    except orjson.JSONEncodeError:  # a lone surrogate, an integer over 64 bits
        return codec.encode(sample)


def decode(line: bytes, benchmark: str) -> Sample:
    """The sample in a line (without its newline). Raises `Damaged` or `NewerSchema`."""
    checksum(line)
    try:
        sample = codec.decode(line, Sample)
    except codec.DecodeError as error:
        _refuse_newer(line)
        raise Damaged(f"not a sample: {error}") from error
    if sample.schema > SCHEMA_VERSION:
        raise NewerSchema(sample.schema)
    if sample.sample_index < 0:
        raise Damaged(f"a sample of the index {sample.sample_index}")
    if sample.benchmark != benchmark:
        raise Damaged(f"a sample of another benchmark, {sample.benchmark!a}")
    return sample


def plain(line: bytes, benchmark: str) -> tuple[Sample, int] | None:
    """The sample in a line (with its newline) and its checksum, in half the time of `decode` and `checksum`.

    None for a line with anything odd about it, intact or not: `decode` says what.
    """
    crc = zlib.crc32(memoryview(line)[:-TAIL_BYTES])
    if line[-TAIL_BYTES:] != b',"crc":"%08x"}\n' % crc:
        return None
    try:
        sample = _decode_sample(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    of_ours = sample.benchmark == benchmark and sample.schema <= SCHEMA_VERSION and sample.sample_index >= 0
    return (sample, crc) if of_ours else None


_decode_sample = msgspec.json.Decoder(Sample).decode


def checksum(line: bytes) -> int:
    """The line's checksum, verified. Raises `Damaged`."""
    tail = TAIL.search(line, max(0, len(line) - TAIL_BYTES))
    if tail is None:
        raise Damaged("no checksum")
    stated = int(tail[1], 16)
    if zlib.crc32(memoryview(line)[: tail.start()]) != stated:
        raise Damaged("checksum differs")
    return stated


def holds_key(head: bytes, benchmark: str) -> bool:
    """Whether `head_key` finds a key in the first bytes of an intact line."""
    # These bytes stand in no string: inside one, the second quotation mark is escaped. 20: digits of any index.
    as_written = head.startswith(_beginning(benchmark)) and head.find(b'","sample_index":', 0, len(head) - 20) >= 0
    return as_written or head_key(head, benchmark) is not None


@functools.lru_cache(maxsize=64)
def _beginning(benchmark: str) -> bytes:
    return b'{"benchmark":' + codec.encode(benchmark) + b',"question_id":"'


def head_key(head: bytes, benchmark: str) -> tuple[str, int] | None:
    """The question id and the index in a line's first bytes, None when they hold none of `benchmark`."""
    match = _HEAD.match(head)
    if match is None:
        return None
    name, question_id, index = match.groups()
    try:
        return (codec.decode(question_id, str), int(index)) if _name(name) == benchmark else None
    except codec.DecodeError:
        return None


@functools.lru_cache(maxsize=64)  # a run's few names come again in every record
def _name(quoted: bytes) -> str:
    return codec.decode(quoted, str)


class _RecordHead(msgspec.Struct):
    schema: int


def _refuse_newer(line: bytes) -> None:
    try:
        schema = codec.decode(line, _RecordHead).schema
    except codec.DecodeError:
        return
    if schema > SCHEMA_VERSION:
        raise NewerSchema(schema)
