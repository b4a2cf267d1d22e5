"""A long sequence of records in little memory is the sequence that it stands for; bytes beyond it go to a file."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core import compressed_records
from harness.core.compressed_records import Packed, Picked, Spilled
from harness.core.errors import StoreError
from harness.core.records import Message
from tests.budget import examples


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compressed_records, "PLAIN_RECORDS", 20)
        patch.setattr(compressed_records, "BLOCK_RECORDS", 8)
        patch.setattr(compressed_records, "OPEN_BLOCKS", 2)
        yield


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.text(max_size=5), max_size=50))
def test_it_is_the_list_of_its_records(texts: list[str]) -> None:
    records = [Message(role=str(index), content=text) for index, text in enumerate(texts)]
    kept = Packed(Message, records)
    assert list(kept) == records
    assert kept == records
    assert len(kept) == len(records)
    assert [kept[i] for i in range(-len(records), len(records))] == [*records, *records]
    assert kept[3:40:7] == records[3:40:7]
    for outside in (len(records), -len(records) - 1):
        with pytest.raises(IndexError):
            kept[outside]


@given(st.lists(st.integers(0, 59), max_size=40), st.data())
def test_what_is_picked_is_what_stands_at_those_places(indices: list[int], data: st.DataObject) -> None:
    records = [Message(role="user", content=str(index)) for index in range(60)]
    begin = data.draw(st.integers(0, len(indices)))
    end = data.draw(st.integers(begin, len(indices)))
    picked = Picked(Packed(Message, records), indices, begin, end)
    expected = [records[index] for index in indices[begin:end]]
    assert (list(picked), picked[:], picked.indices) == (expected, expected, indices[begin:end])
    assert [picked[at] for at in range(-len(picked), len(picked))] == expected * 2
    assert picked == expected
    assert Picked(records, indices) == [records[index] for index in indices]
    for outside in (len(picked), -len(picked) - 1):
        with pytest.raises(IndexError):
            picked[outside]


def test_records_of_many_bytes_are_packed_however_few_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("PLAIN_BYTES", 40_000), ("BLOCK_BYTES", 10_000), ("OPEN_BYTES", 20_000)):
        monkeypatch.setattr(compressed_records, name, size)
    records = [Message(role=str(index), content=str(index % 10) * size) for index, size in enumerate([9, 20_000] * 8)]
    tracemalloc.start()
    held = Packed(Message, iter(records), open_blocks=16)
    assert [held[index] for index in (15, 3, 8, 1, 14, 0, 7, 15)] == [records[p] for p in (15, 3, 8, 1, 14, 0, 7, 15)]
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert list(held) == records
    assert held_bytes < 60_000  # of 160,000


@given(pieces=st.lists(st.binary(max_size=40), max_size=20), held=st.integers(0, 200), data=st.data())
def test_any_place_reads_as_it_was_appended(pieces: list[bytes], held: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compressed_records, "HELD_BYTES", held)
        bytes_of = Spilled()
        whole = b""
        for piece in pieces:
            bytes_of.append(piece)
            whole += piece
            begin = data.draw(st.integers(0, len(whole)))
            size = data.draw(st.integers(0, len(whole) + 5))
            assert bytes_of.read(begin, size) == whole[begin : begin + size]
        assert len(bytes_of) == len(whole)


def test_a_full_disk_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no device that is always full")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full.open("r+b", buffering=8))
    monkeypatch.setattr(compressed_records, "HELD_BYTES", 10)
    with pytest.raises(StoreError, match="No space left on device"):
        Spilled().append(b"more than ten bytes")


def test_lone_surrogates_and_line_breaks_come_back_equal() -> None:
    records = [Message(role="user", content=f"\ud800\n\u2028{index}\r\n") for index in range(100)]
    assert list(Packed(Message, records)) == records
    assert Packed(Message, records) != [*records[:-1], Message(role="user", content="")]
