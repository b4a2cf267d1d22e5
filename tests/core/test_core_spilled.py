"""Bytes beyond memory: the same wherever they stand, and a full disk is a sentence."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core import packed
from harness.core.errors import StoreError
from harness.core.packed import Packed, Spilled
from harness.core.records import Key


@given(pieces=st.lists(st.binary(max_size=40), max_size=20), held=st.integers(0, 200), data=st.data())
def test_any_place_reads_as_it_was_appended(pieces: list[bytes], held: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "HELD_BYTES", held)
        bytes_of = Spilled()
        whole = b""
        for piece in pieces:
            bytes_of.append(piece)
            whole += piece
            begin = data.draw(st.integers(0, len(whole)))
            size = data.draw(st.integers(0, len(whole) + 5))
            assert bytes_of.read(begin, size) == whole[begin : begin + size]
        assert len(bytes_of) == len(whole)


def test_records_are_the_same_from_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "HELD_BYTES", 1000)
    records = [Key(f"q{n % 97}", n) for n in range(6000)]
    sequence = Packed(Key, records)
    assert list(sequence) == records
    assert [sequence[at] for at in range(0, 6000, 37)] == records[::37]
    sequence.append(Key("last", 1))
    assert sequence[-1] == Key("last", 1)
    assert len(sequence) == 6001


def test_a_full_disk_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no device that is always full")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda buffering: full.open("r+b", buffering=0))
    monkeypatch.setattr(packed, "HELD_BYTES", 10)
    with pytest.raises(StoreError, match="No space left on device"):
        Spilled().append(b"more than ten bytes")
