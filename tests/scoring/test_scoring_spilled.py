"""A score is the same to the byte, whatever stands in files while it is made."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.core import fixed_rows, packed
from harness.runs import RunFolder
from harness.scoring import observed
from harness.scoring.tally import tally
from tests.exports.graded_runs import sample, write_run
from tests.scoring.graded import grade, question


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
    monkeypatch.setattr(fixed_rows, "BLOCK_ROWS", 4)
    assert scored(tmp_path / "spilled", streamed=streamed) == plain


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6), st.sampled_from("cwu")), max_size=60),
    st.sampled_from([None, 2, 5]),
    st.integers(1, 7),
)
def test_grades_are_counted_alike_in_small_parts(
    told: list[tuple[int, int, str]], planned: int | None, block: int
) -> None:
    questions = [question(f"q{number}") for number in range(5)]  # grades of q5 are of no planned question
    grades = [grade(f"q{number}", index, answer) for number, index, answer in told]

    def counted() -> tuple[object, ...]:
        tallies = tally(questions, grades, planned)
        facts = [(item.planned, item.correct, item.votes(), [*item.grades]) for item in tallies.questions]
        return facts, tallies.missing, tallies.partial, tallies.covered, tallies.warnings, tallies.kinds

    whole = counted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixed_rows, "BLOCK_ROWS", block)
        assert counted() == whole
    # By hand: of each key the first grade, and of an unfinished run the complete rounds only.
    first = {(one.question_id, one.sample_index): one for one in reversed(grades) if one.question_id != "q5"}
    within = {key: one for key, one in first.items() if planned is None or key[1] < planned}
    if planned is not None and 5 * planned - len(within) > 0.01 * 5 * planned:
        complete = {i for i in range(planned) if all((f"q{number}", i) in within for number in range(5))}
        within = {key: one for key, one in within.items() if not complete or key[1] in complete}
    by_hand = [[one for key, one in sorted(within.items()) if key[0] == f"q{number}"] for number in range(5)]
    assert [row[3] for row in whole[0]] == by_hand  # type: ignore[attr-defined]
    assert [row[1] for row in whole[0]] == [sum(one.verdict == "correct" for one in of) for of in by_hand]  # type: ignore[attr-defined]
