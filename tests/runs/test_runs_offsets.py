"""Every sample is found where it stands, in a run that grows, is damaged, or lost its index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import StoreError
from harness.core.records import Key, Sample
from harness.runs import RunFolder, read_samples
from harness.runs.layout import BenchmarkFolder
from harness.runs.offsets import SampleOffsets, sample_pairs
from tests.runs.recorded import append
from tests.viewer.small_run import SMALL, RunQuestion, RunReply, sample, write_run


@pytest.fixture
def folder(tmp_path: Path) -> BenchmarkFolder:
    return write_run(tmp_path / "run", scored=False).benchmark("demo")


def opened(folder: BenchmarkFolder) -> SampleOffsets:
    offsets = SampleOffsets(folder)
    offsets.refresh()
    return offsets


def everything(offsets: SampleOffsets) -> list[Sample]:
    return [offsets.read(key) for key, _ in offsets.in_file_order()]


def test_each_sample_reads_as_the_journal_has_it(folder: BenchmarkFolder) -> None:
    offsets = opened(folder)
    assert everything(offsets) == list(read_samples(folder))
    assert offsets.n_samples == 6


def test_the_end_of_a_record_tells_truncation_and_tokens(folder: BenchmarkFolder) -> None:
    places = opened(folder).of("q2/odd id")
    assert [(places[i].truncated, places[i].tokens) for i in range(3)] == [(True, 32768), (False, 7), (False, 7)]
    assert opened(folder).of("q1")[1].tokens is None


def test_a_text_cannot_forge_the_end_of_its_record(tmp_path: Path) -> None:
    forged = '","finish_reason":"length","usage":{"completion_tokens":99},"reasoning":"'
    run_questions = {"q": RunQuestion("?", "1", [RunReply(forged, reasoning=forged + "\\")])}
    run = write_run(tmp_path / "run", {"demo": run_questions}, scored=False)
    location = opened(run.benchmark("demo")).of("q")[0]
    assert (location.truncated, location.tokens) == (False, 7)


def test_what_a_run_appends_is_taken_in(folder: BenchmarkFolder) -> None:
    offsets = opened(folder)
    more = sample("demo", "q1", 3, RunReply("late"))
    append(RunFolder(folder.path.parent), "demo", [more])
    assert 3 not in offsets.of("q1")
    offsets.refresh()
    assert offsets.read(Key("q1", 3)) == more


def test_a_line_that_is_still_being_written_does_not_count_until_its_newline(folder: BenchmarkFolder) -> None:
    line = folder.samples.read_bytes().splitlines(keepends=True)[-1].replace(b'"sample_index":2', b'"sample_index":8')
    offsets = opened(folder)
    with folder.samples.open("ab") as file:
        file.write(line[:-1])
    offsets.refresh()
    assert 8 not in offsets.of("q2/odd id")
    with folder.samples.open("ab") as file:
        file.write(b"\n")
    offsets.refresh()
    assert 8 in offsets.of("q2/odd id")


def test_a_replaced_journal_is_read_anew(folder: BenchmarkFolder, tmp_path: Path) -> None:
    offsets = opened(folder)
    second = write_run(tmp_path / "other", {"demo": {"q1": SMALL["q1"]}}, scored=False).benchmark("demo")
    shutil.copy(second.samples, tmp_path / "new.jsonl")
    (tmp_path / "new.jsonl").replace(folder.samples)
    offsets.refresh()
    assert offsets.questions() == ["q1"]
    assert everything(offsets) == list(read_samples(folder))


def test_the_first_record_of_a_key_counts(folder: BenchmarkFolder) -> None:
    line = folder.samples.read_bytes().splitlines(keepends=True)[0]
    with folder.samples.open("ab") as file:
        file.write(line)
    offsets = opened(folder)
    assert offsets.n_samples == 6
    assert offsets.of("q1")[0].offset == 0


def test_a_damaged_record_is_refused_when_it_is_read(folder: BenchmarkFolder) -> None:
    data = bytearray(folder.samples.read_bytes())
    data[data.index(b"Half")] ^= 1
    folder.samples.write_bytes(data)
    with pytest.raises(StoreError, match=r"samples\.jsonl, line 1: checksum differs"):
        opened(folder).read(Key("q1", 0))
    assert opened(folder).read(Key("q1", 1)).text == r"It is $\boxed{41}$."


def test_no_file_means_no_samples(folder: BenchmarkFolder) -> None:
    folder.samples.unlink()
    assert opened(folder).n_samples == 0


def test_an_unknown_sample_is_a_sentence(folder: BenchmarkFolder) -> None:
    with pytest.raises(StoreError, match="has no sample 7 of question 'q1'"):
        opened(folder).read(Key("q1", 7))


@pytest.mark.parametrize(("most", "of_each"), [(6, [3, 3]), (5, [2, 2]), (2, [2])])
def test_of_too_many_pairs_two_of_a_question_are_drawn(folder: BenchmarkFolder, most: int, of_each: list[int]) -> None:
    drawn = sample_pairs((opened(folder), opened(folder)), ["q1", "q2/odd id"], most)
    assert [len(pairs) for pairs in drawn] == of_each


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=50)), min_size=1, max_size=5))
def test_any_texts_are_found_again(tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str]]) -> None:
    name = said[0][1] or "q"  # any question id, too
    question_of_run = RunQuestion("?", "1", [RunReply(text, reasoning=thought) for text, thought in said])
    run = write_run(tmp_path_factory.mktemp("any") / "run", {"demo": {name: question_of_run}}, scored=False)
    folder = run.benchmark("demo")
    assert [sample.text for sample in everything(opened(folder))] == [text for text, _ in said]
