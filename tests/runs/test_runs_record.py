"""A line of the journal: what is stored comes back equal, and what was damaged is seen."""

from __future__ import annotations

import math
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.records import SCHEMA_VERSION, Key, Timing
from harness.runs import record
from tests.budget import examples
from tests.runs.recorded import BENCHMARK, sample

ANY_TEXT = st.text(st.characters(exclude_categories=())).map(
    # Two halves of a pair, one after the other, are one character as soon as they are written: so JSON has it.
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)


@given(text=ANY_TEXT | st.none(), reasoning=ANY_TEXT | st.none(), question_id=ANY_TEXT, index=st.integers(0, 10**17))
@settings(max_examples=examples(200))
def test_any_text_comes_back_equal_from_one_line(
    text: str | None, reasoning: str | None, question_id: str, index: int
) -> None:
    stored = sample(question_id, index, text, reasoning=reasoning)
    line = record.encode(stored)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert record.decode(line[:-1], BENCHMARK) == stored
    assert record.is_whole(line[:-1])
    assert record.head_key(line, BENCHMARK) == Key(question_id, index)


def test_a_change_of_any_byte_and_every_cut_are_seen() -> None:
    line = record.encode(sample(text="naïve \ud800"))[:-1]
    for offset in range(len(line)):
        flipped = [line[:offset] + bytes([line[offset] ^ flip]) + line[offset + 1 :] for flip in (1, 32, 128)]
        for damaged in (line[:offset], *flipped):
            with pytest.raises(record.Damaged):
                record.decode(damaged, BENCHMARK)


def test_a_sample_of_another_benchmark_is_not_ours() -> None:
    line = record.encode(sample(benchmark="other"))
    with pytest.raises(record.Damaged, match="of the benchmark 'other'"):
        record.decode(line[:-1], BENCHMARK)
    assert record.head_key(line, BENCHMARK) is None


def test_a_newer_schema_is_told_apart_from_damage() -> None:
    with pytest.raises(record.NewerSchema, match="schema 99"):
        record.decode(record.encode(sample(schema=99))[:-1], BENCHMARK)


def test_a_newer_schema_of_another_shape_is_told_apart_from_damage() -> None:

    body = b'{"benchmark":"AIME 2024","schema":2,"new":[]'
    with pytest.raises(record.NewerSchema, match="schema 2") as newer:
        record.decode(b'%b,"crc":"%08x"}' % (body, zlib.crc32(body)), BENCHMARK)
    assert newer.value.schema == 2
    ours = body.replace(b'"schema":2', b'"schema":%d' % SCHEMA_VERSION)
    with pytest.raises(record.Damaged, match="not a sample"):
        record.decode(b'%b,"crc":"%08x"}' % (ours, zlib.crc32(ours)), BENCHMARK)


@pytest.mark.parametrize("timing", [Timing(started=math.nan, total=1.0), Timing(started=1.0, total=math.inf)])
def test_a_time_that_could_not_be_read_back_is_refused(timing: Timing) -> None:
    with pytest.raises(record.RecordRefused, match="no finite number"):
        record.encode(sample(timing=timing))


@given(st.binary(max_size=200))
@settings(max_examples=examples(200))
def test_foreign_bytes_are_damage_and_nothing_else(data: bytes) -> None:
    with pytest.raises(record.Damaged):
        record.decode(data, BENCHMARK)
    assert record.head_key(data, BENCHMARK) is None


def test_a_checksummed_line_that_is_nested_too_deeply_is_damage() -> None:

    body = b'{"benchmark":"AIME 2024","x":' + b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(record.Damaged):
        record.decode(b'%b,"crc":"%08x"}' % (body, zlib.crc32(body)), BENCHMARK)


def test_no_character_of_a_line_acts_on_a_terminal() -> None:
    acting = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F)]))
    stored = sample(text=f"{acting}\\{acting}é‑", reasoning="\u2066\u2069")
    line = record.encode(stored)
    assert not set(line.decode()[:-1]) & set(acting + "\u2066\u2069") - {"\x7f"}
    assert "é‑".encode() in line
    assert record.decode(line[:-1], BENCHMARK) == stored


def test_the_longest_record_is_stored_and_one_byte_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    length = len(record.encode(sample()))
    monkeypatch.setattr(record, "MAX_RECORD_BYTES", length)
    assert len(record.encode(sample())) == length
    monkeypatch.setattr(record, "MAX_RECORD_BYTES", length - 1)
    with pytest.raises(record.RecordRefused, match=f"takes {length - record.TAIL_BYTES} bytes; .* is {length - 1}"):
        record.encode(sample())


def test_a_sample_of_a_negative_index_is_damage() -> None:
    line = record.encode(sample("q", -1))
    with pytest.raises(record.Damaged, match="has the index -1"):
        record.decode(line[:-1], BENCHMARK)
    assert record.decode(record.encode(sample()), BENCHMARK) == sample()


def test_a_plan_counts_what_it_expects() -> None:
    keys = record.KeySet([Key("a", 0), Key("a", 3), Key("b", 1), Key("b", 4), Key("c", 0)])
    plan = record.Plan(samples=4)
    assert (plan.total(["a", "b", "c"]), plan.n_stored(keys, ["a", "b"])) == (12, 3)
