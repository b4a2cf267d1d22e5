"""Folders of one run joined into one: each key once, nothing of another run, and killed anywhere it goes on.

For: harness.runs.survey, harness.runs.merging.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.asking.options.finished import MergeOptions
from harness.core import channel
from harness.core.errors import StoreError, UsageError
from harness.core.records import GradeRules, Key, ServerFacts
from harness.runs import Manifest, RunFolder, questions, read_samples, record
from harness.runs.lock import RunLock
from harness.runs.merging import join_shards, merge
from harness.verbs.merge import merge as merge_runs
from tests.runs.parts import IDENTITY, NAME, sampled, write

pytestmark = pytest.mark.slow

N, M = 5, 3
ALL = [(q, i) for q in range(N) for i in range(M)]


def shards(parent: Path, of: int, *, without: int = 0) -> list[RunFolder]:
    """The shards of a run of 5 questions × 3 samples; question q is asked by shard q mod n + 1."""
    return [
        write(
            parent / f"shard{k + 1}",
            [sampled(q, i) for q, i in ALL if q % of == k],
            n_questions=N,
            planned=M,
            shard=f"{k + 1}/{of}",
            question_ids=[f"q{q}" for q in range(N) if q % of == k],
        )
        for k in range(of)
        if k + 1 != without
    ]


def stored(folder: RunFolder) -> dict[Key, str | None]:
    return {record.key: record.text for record in read_samples(folder.benchmark(NAME))}


def test_shards_become_the_run_that_they_are_parts_of(quick_path: Path) -> None:
    out = RunFolder(quick_path / "all")
    merged = merge(shards(quick_path, 2), out)
    assert merged.complete
    assert stored(out) == {sampled(q, i).key: sampled(q, i).text for q, i in ALL}
    record = Manifest.load(out).benchmarks[NAME]
    assert record.identity == IDENTITY, "a run that is whole has no shard"
    assert record.plan.question_ids is None
    assert list(merged.benchmarks[0].notes()) == []


def test_a_missing_shard_is_said_and_its_samples_are_owed(quick_path: Path) -> None:
    out = RunFolder(quick_path / "all")
    merged = merge(shards(quick_path, 3, without=2), out)
    (joined,) = merged.benchmarks
    assert not merged.complete
    assert (joined.n_samples, joined.n_owed, joined.n_expected) == (9, 6, 15)
    late = write(
        quick_path / "late",
        [sampled(q, i) for q, i in ALL if q % 3 == 1],
        n_questions=N,
        planned=M,
        shard="2/3",
        question_ids=["q1", "q4"],
    )
    again = merge([late], out)
    assert again.complete
    assert again.benchmarks[0].n_added == 6


def test_a_key_given_twice_counts_once_and_is_told(quick_path: Path) -> None:
    first = write(quick_path / "a", [sampled(0, 0), sampled(0, 1)], n_questions=N, planned=M)
    second = write(
        quick_path / "b", [sampled(0, 1), sampled(0, 0, r"\boxed{77}"), sampled(0, 2)], n_questions=N, planned=M
    )
    (joined,) = merge([first, second], RunFolder(quick_path / "all")).benchmarks
    assert stored(RunFolder(quick_path / "all"))[Key("q0", 0)] == sampled(0, 0).text, "the first one counts"
    assert [*map(str, joined.notes())] == ["sums: two folders have 2 samples; that of the first folder counts"]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"identity": {**IDENTITY, "sampling": {"temperature": 0.7}}}, "sampling.temperature: 0.6 → 0.7"),
        ({"identity": {**IDENTITY, "seed": 1}}, "seed: 0 → 1"),
        ({"identity": {**IDENTITY, "model": "changed"}}, 'model: "m" → "changed"'),
        ({"n_questions": N, "servers": {"http://h/v1": ServerFacts(model={"root": "b"}, host={})}}, "root"),
    ],
)
def test_what_is_no_part_of_the_same_run_is_refused_by_name(
    quick_path: Path, changed: dict[str, object], named: str
) -> None:
    facts = {"http://h/v1": ServerFacts(model={"root": "a"}, host={})}
    first = write(quick_path / "a", [sampled(0, 0)], n_questions=N, planned=M, shard="1/2", servers=facts)
    how = {"n_questions": N, "planned": M, "shard": "2/2", **changed}
    second = write(quick_path / "b", [sampled(1, 0)], **how)  # type: ignore[arg-type]
    out = RunFolder(quick_path / "all")
    with pytest.raises(StoreError) as refused:
        merge([first, second], out)
    assert named in str(refused.value)
    assert not out.manifest.exists(), "nothing is written before all is known to fit"
    assert not out.benchmark(NAME).path.exists()


@pytest.mark.parametrize("place", [0, 1])
def test_a_file_of_questions_that_was_changed_is_not_joined(quick_path: Path, place: int) -> None:
    parts = shards(quick_path, 2)
    for part in parts:
        listed = questions.read(part.benchmark(NAME))
        manifest = Manifest.load(part)
        record = manifest.benchmarks[NAME]
        sealed = msgspec.structs.replace(record, settings={questions.DIGEST: questions.seal(listed)})
        msgspec.structs.replace(manifest, benchmarks={NAME: sealed}).save(part)
    changed = [
        msgspec.structs.replace(question, rules=GradeRules(absolute_tolerance=5.0))
        for question in questions.read(parts[place].benchmark(NAME))
    ]
    questions.forget(parts[place].benchmark(NAME))
    questions.write(parts[place].benchmark(NAME), changed)
    with pytest.raises(StoreError, match="was changed after the run wrote it"):
        merge(parts, RunFolder(quick_path / "joined"))


def test_another_question_under_a_known_id_is_refused(quick_path: Path) -> None:
    parts = shards(quick_path, 2)
    path = parts[1].benchmark(NAME).questions
    path.write_text(path.read_text().replace('"p3"', '"p33"'), encoding="utf-8")
    with pytest.raises(StoreError, match="question q3 differs from that in"):
        merge(parts, RunFolder(quick_path / "all"))


def test_what_cannot_be_joined_is_refused(quick_path: Path) -> None:
    (first, *_) = parts = shards(quick_path, 2)
    with pytest.raises(UsageError, match="one of the folders"):
        merge(parts, first)
    with pytest.raises(UsageError, match="given twice"):
        merge([first, RunFolder(first.path / ".." / first.path.name)], RunFolder(quick_path / "all"))
    with pytest.raises(UsageError, match="give the run folders"):
        merge([], RunFolder(quick_path / "all"))
    foreign = quick_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("x")
    with pytest.raises(StoreError, match=r"thesis\.tex"):
        merge(parts, RunFolder(foreign))
    with RunLock(RunFolder(quick_path / "held")), pytest.raises(StoreError, match="in use by"):
        merge(parts, RunFolder(quick_path / "held"))


def test_what_is_damaged_in_a_shard_is_owed(quick_path: Path) -> None:
    parts = shards(quick_path, 2)
    path = parts[0].benchmark(NAME).samples
    path.write_bytes(path.read_bytes().replace(b"thought 7", b"thought 9", 1))
    (joined,) = merge(parts, RunFolder(quick_path / "all")).benchmarks
    assert joined.n_owed == 1
    assert list(joined.notes()) == [f"{NAME}: 1 damaged line does not count; `harness doctor` names them"]


def test_a_run_with_joined_shards_is_copied_as_it_stands(quick_path: Path) -> None:
    """Its failed requests count once, and its texts are those that it was scored with."""
    run, copy, said = RunFolder(quick_path / "run"), RunFolder(quick_path / "copy"), list[str]()
    for k in (0, 1):
        lines = [sampled(q, i) for q, i in ALL if q % 2 == k]
        shard = write(run.of_shard(f"{k + 1}/2").path, lines, n_questions=N, planned=M, failed=[lines[0].key])
        with shard.benchmark(NAME).samples.open("ab") as file:
            file.write(b"{damaged}\n")
    with channel.warnings_to(said.append):
        join_shards(run)
    assert said == [f"{NAME}: 2 damaged lines do not count; `harness doctor` names them"]
    path = shard.benchmark(NAME).samples
    path.write_bytes(b"".join(record.encode(sampled(q, i, "other")) for q, i in ALL if q % 2))
    (joined,) = merge_runs([run.path], MergeOptions(out=copy.path)).benchmarks
    assert list(joined.notes()) == []
    assert stored(copy) == stored(run)
    assert [sum(log.read_text().count("request_failed") for log in each.logs()) for each in (run, copy)] == [2, 2]


@pytest.mark.parametrize("step", ["questions.write", "Journal.append", "write_atomically"])
def test_a_merge_that_ended_at_any_step_is_made_good_by_the_same_call(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def ended(*_: object, **__: object) -> None:
        raise InterruptedError

    parts, out, quiet = shards(quick_path, 2), RunFolder(quick_path / "all"), RunFolder(quick_path / "quiet")
    merge(parts, quiet)
    with monkeypatch.context() as patched:
        patched.setattr(f"harness.runs.merging.{step}", ended)
        with pytest.raises(InterruptedError):
            merge(parts, out)
    for n_added in (None, 0):  # once more, and nothing is added
        again = merge(parts, out)
        assert n_added is None or again.benchmarks[0].n_added == n_added
        assert list(again.benchmarks[0].notes()) == []
        for name in ("manifest.json", f"{NAME}/questions.jsonl", f"{NAME}/samples.jsonl", "log.shard1.jsonl"):
            assert (out.path / name).read_bytes() == (quiet.path / name).read_bytes(), name


def test_cut_at_any_byte_of_the_joined_samples_the_same_call_gives_the_same(quick_path: Path) -> None:
    parts = shards(quick_path, 2)
    out = RunFolder(quick_path / "all")
    merge(parts, out)
    files = out.benchmark(NAME)
    whole = files.samples.read_bytes()
    for cut in range(0, len(whole), 97):
        files.samples.write_bytes(whole[:cut])
        merge(parts, out)
        assert files.samples.read_bytes() == whole, cut
