"""A score is the same to the byte, whatever stands in files while it is made."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness.core import packed
from harness.runs import RunFolder
from harness.scoring import observed
from tests.exports.graded_runs import sample, write_run


def scored(folder: Path, *, streamed: bool) -> tuple[bytes, bytes]:
    """The files of grades and scores of a run of 4 questions, told round by round."""
    many = [
        sample(
            number, index, rf"{'so ' * index}\boxed{{{number + 1 + index % 3 // 2}}}",
            **({} if streamed or index % 5 else {"finish_reason": "length"}),
        )
        for index in range(30)
        for number in range(4)
        if (number, index) != (2, 29)
    ]  # fmt: skip
    run: RunFolder = write_run(folder, many, questions=4, of_each=30, scored=False)
    harness.score(run, workers=1)
    harness.score(run, workers=1)  # with the former grades
    place = run.benchmark("own")
    return place.grades.read_bytes(), place.scores.read_bytes()


@pytest.mark.parametrize("streamed", [True, False])
def test_a_score_is_the_same_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamed: bool) -> None:
    plain = scored(tmp_path / "plain", streamed=streamed)
    monkeypatch.setattr(packed, "HELD_BYTES", 64)
    monkeypatch.setattr(packed, "PLAIN_RECORDS", 0)
    monkeypatch.setattr(observed, "_BUFFERED", 4)
    assert scored(tmp_path / "spilled", streamed=streamed) == plain
