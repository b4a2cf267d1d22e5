"""What was handed in, and when nobody knows: on disk before the call returns, whole lines only, damage refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import StoreError
from harness.runs import RunFolder
from harness.runs.batches import BatchLedger


@pytest.fixture
def run_folder(quick_path: Path) -> RunFolder:
    run = RunFolder(quick_path / "run")
    run.create()
    return run


def test_the_latest_batch_of_a_request_is_known_again(run_folder: RunFolder) -> None:
    ledger = BatchLedger(run_folder)
    ledger.planned("one", "http://h/v1", ["a", "b"])
    ledger.sent("one", "batch_1")
    ledger.planned("two", "http://h/v1", ["b"])
    again = BatchLedger(run_folder)
    holding = again.holding(["a", "b", "c"])
    assert {ask: (batch.name, batch.id) for ask, batch in holding.items()} == {
        "a": ("one", "batch_1"),
        "b": ("two", ""),
    }
    again.void("two", "never begun")
    assert BatchLedger(run_folder).holding(["b"])["b"].name == "one"


def test_damage_is_refused_since_it_may_hide_what_was_handed_in(run_folder: RunFolder) -> None:
    ledger = BatchLedger(run_folder)
    ledger.planned("one", "http://h/v1", ["a"])
    whole = run_folder.batches.read_bytes()
    run_folder.batches.write_bytes(whole.replace(b'"one"', b'"two"'))
    with pytest.raises(StoreError, match=r"line 1 is damaged: .*remove the file"):
        BatchLedger(run_folder)
