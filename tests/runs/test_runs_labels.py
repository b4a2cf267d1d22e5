"""Labels that a person put on samples; a forged file of them is refused.

For: harness.runs.sample_labels.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import StoreError
from harness.core.records import Key
from harness.runs import RunFolder, sample_labels


def test_a_label_is_read_as_it_was_put_and_a_forged_time_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path).benchmark("b")
    sample_labels.set_label(folder, Key("q", 0), "sign error", put=True, who="A")
    assert sample_labels.in_force(sample_labels.read(folder)) == {Key("q", 0): ("sign error",)}
    (record,) = sample_labels.read(folder)
    folder.labels.write_bytes(folder.labels.read_bytes().replace(record.when.encode(), b"yesterday"))
    with pytest.raises(StoreError, match=r"labels\.jsonl, label 1: `when` is .*yesterday"):
        sample_labels.read(folder)
