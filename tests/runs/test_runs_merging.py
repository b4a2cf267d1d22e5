"""Folders of one run joined into one: each key once, nothing of another run, and killed anywhere it goes on.

For: harness.runs.journal, harness.runs.merging.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.commands.merge import merge as merge_runs
from harness.core import channel
from harness.core.errors import StoreError, UsageError
from harness.core.records import GradeRules, Key, ServerFacts
from harness.options.finished_runs import MergeOptions
from harness.runs import BenchmarkRecord, Manifest, Plan, RunFolder, questions, read_samples, record
from harness.runs.lock import locked
from harness.runs.manifest import Provenance, RecordedSession
from harness.runs.merging import join_shards, joined_manifest, merge
from tests.runs.recorded import IDENTITY, NAME, asked, sampled, write

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


def test_a_missing_shard_is_said_and_its_samples_are_owed(quick_path: Path) -> None:
    out = RunFolder(quick_path / "all")
    merged = merge(shards(quick_path, 3, without=2), out)
    (joined,) = merged.benchmarks
    assert not merged.complete
    assert (joined.n_samples, joined.n_missing, joined.n_expected) == (9, 6, 15)
    again = merge(shards(quick_path / "late", 3)[1:2], out)
    assert again.complete
    assert again.benchmarks[0].n_added == 6


def test_a_key_given_twice_counts_once_and_is_told(quick_path: Path) -> None:
    first = write(quick_path / "a", [sampled(0, 0), sampled(0, 1)], n_questions=N, planned=M)
    second = write(
        quick_path / "b", [sampled(0, 1), sampled(0, 0, r"\boxed{77}"), sampled(0, 2)], n_questions=N, planned=M
    )
    (joined,) = merge([first, second], RunFolder(quick_path / "all")).benchmarks
    assert stored(RunFolder(quick_path / "all"))[Key("q0", 0)] == sampled(0, 0).text, "the first one counts"
    assert [*map(str, joined.notes())] == [
        "sums: 2 samples found in two folders; the version in the first folder is used"
    ]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"identity": {**IDENTITY, "sampling": {"temperature": 0.7}}}, "sampling.temperature: 0.6 → 0.7"),
        ({"identity": {**IDENTITY, "seed": 1}}, "seed: 0 → 1"),
        ({"identity": {**IDENTITY, "model": "changed"}}, 'model: "m" → "changed"'),
        ({"n_questions": N, "servers": {"http://h/v1": ServerFacts(model={"root": "b"}, host={})}}, "root"),
    ],
)
def test_foreign_parts_are_refused_by_name(quick_path: Path, changed: dict[str, object], named: str) -> None:
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
    changed = [
        msgspec.structs.replace(question, rules=GradeRules(absolute_tolerance=5.0))
        for question in questions.read(parts[place].benchmark(NAME))
    ]
    parts[place].benchmark(NAME).questions.unlink()
    questions.write(parts[place].benchmark(NAME), changed)
    with pytest.raises(StoreError, match="was changed after the run wrote it"):
        merge(parts, RunFolder(quick_path / "joined"))


def test_another_question_under_a_known_id_is_refused(quick_path: Path) -> None:
    first = write(quick_path / "a", [], n_questions=N, planned=M)
    others = [msgspec.structs.replace(question, prompt_digest="other") for question in asked(N)]
    second = write(quick_path / "b", [], listed=others, planned=M)
    with pytest.raises(StoreError, match="question q0 differs from the one in"):
        merge([first, second], RunFolder(quick_path / "all"))


def test_what_cannot_be_joined_is_refused(quick_path: Path) -> None:
    (first, *_) = parts = shards(quick_path, 2)
    with pytest.raises(UsageError, match="one of the folders"):
        merge(parts, first)
    with pytest.raises(UsageError, match="given twice"):
        merge([first, RunFolder(first.path / ".." / first.path.name)], RunFolder(quick_path / "all"))
    with pytest.raises(UsageError, match="specify the run folders"):
        merge([], RunFolder(quick_path / "all"))
    foreign = quick_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("x")
    with pytest.raises(StoreError, match=r"thesis\.tex"):
        merge(parts, RunFolder(foreign))
    with locked(RunFolder(quick_path / "held")), pytest.raises(StoreError, match="in use by"):
        merge(parts, RunFolder(quick_path / "held"))


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
    assert said == [f"{NAME}: 2 damaged lines ignored; list them with `harness doctor`"]
    path = shard.benchmark(NAME).samples
    path.write_bytes(b"".join(record.encode(sampled(q, i, "other")) for q, i in ALL if q % 2))
    (joined,) = merge_runs([run.path], MergeOptions(out=copy.path)).benchmarks
    assert list(joined.notes()) == []
    assert stored(copy) == stored(run)
    assert [sum(log.read_text().count("request_failed") for log in each.logs()) for each in (run, copy)] == [2, 2]


@pytest.mark.parametrize("step", ["questions.write", "Journal.append", "write_atomically"])
def test_the_same_call_repairs_any_partial_merge(quick_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
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


# ---- the manifest of several folders, each folder's part of it


def part(
    name: str,
    *,
    settings: Mapping[str, Any] | None = None,
    plan: Plan | None = None,
    sessions: list[RecordedSession] | None = None,
    model: str = "m",
    created: str = "2026-01-01T00:00:00+00:00",
    **environment: str,
) -> tuple[RunFolder, Manifest]:
    """A folder of which only the manifest matters."""
    record = BenchmarkRecord(identity=IDENTITY, plan=plan or Plan(samples=1), settings=dict(settings or {}))
    manifest = Manifest(
        harness_version="1",
        created=created,
        model=model,
        environment=dict(environment),
        provenance=Provenance(sessions=sessions or []),
        benchmarks={NAME: record},
    )
    return RunFolder(name), manifest


def session(minute: int) -> RecordedSession:
    return RecordedSession(started=f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00+00:00", endpoints={})


def test_endpoints_and_samples_that_never_succeed_are_those_of_all_folders() -> None:
    joined = joined_manifest(
        [
            part("a", settings={"endpoints": ["x", "y"], "never_succeeds": {"q1": "too long"}}),
            part("b", settings={"endpoints": ["y", "z"], "never_succeeds": {"q1": "long", "q2": "too long"}}),
        ],
        False,
    )
    has = joined.benchmarks[NAME].settings
    assert has == {"endpoints": ["x", "y", "z"], "never_succeeds": {"q1": "too long", "q2": "too long"}}
    assert joined_manifest([part("a", settings=has), part("b")], False).benchmarks[NAME].settings == has


def test_merging_takes_the_earliest_start_and_the_largest_plan() -> None:
    none = part("a", plan=Plan(samples=3), created="2026-01-03T00:00:00+00:00")
    early = part("b", created="2026-01-01T00:00:00+00:00")
    late = part("c", created="2026-01-02T00:00:00+00:00")
    joined = joined_manifest([none, early, late], False)
    assert joined.created == early[1].created
    assert joined.benchmarks[NAME].plan.samples == joined_manifest([early, none], False).benchmarks[NAME].plan.samples
    assert joined.benchmarks[NAME].plan.samples == 3


def test_sessions_are_those_of_all_folders_once_in_order_of_time() -> None:
    first, both, last = session(0), session(1), session(2)
    joined = joined_manifest([part("a", sessions=[both, last]), part("b", sessions=[first, both])], False)
    assert joined.provenance.sessions == [first, both, last]


def test_two_models_are_no_parts_of_one_run_and_the_folders_are_named() -> None:
    with pytest.raises(
        StoreError, match=r'^.*/b does not belong to the same run as .*/a; they differ:\n  model: "m" → "other"'
    ):
        joined_manifest([part("a"), part("b", model="other")], False)
    parts = [part("a", server_model="one"), part("b", server_model="other")]
    with pytest.raises(StoreError, match=r'they differ:\n  server_model: "one" → "other"'):
        joined_manifest(parts, False)
    assert joined_manifest(parts, True).environment["server_model"] == "one"


def test_questions_stand_in_the_order_of_the_folders(quick_path: Path) -> None:
    longer = write(quick_path / "long", [], n_questions=3, planned=1)
    shorter = write(quick_path / "short", [], listed=[asked(3)[2]], planned=1)
    merge([shorter, longer], RunFolder(quick_path / "all"))
    ids = [question.question_id for question in questions.read(RunFolder(quick_path / "all").benchmark(NAME))]
    assert ids == ["q2", "q0", "q1"]


def test_a_selection_holds_where_all_folders_have_one() -> None:
    plans = {
        "ids": Plan(samples=1, question_ids=["q0"]),
        "more": Plan(samples=1, question_ids=["q1", "q0"]),
        "all": Plan(samples=1),
    }

    def joined(*names: str) -> Plan:
        return joined_manifest([part(name, plan=plans[name]) for name in names], False).benchmarks[NAME].plan

    assert joined("ids", "more").question_ids == ["q0", "q1"]
    assert joined("ids", "all").question_ids is joined("all", "ids").question_ids is None


def test_a_log_that_cannot_be_read_is_one_sentence(quick_path: Path) -> None:
    run = write(quick_path / "a", [sampled(0, 0)], n_questions=1, planned=1)
    run.log.unlink()
    run.log.symlink_to(quick_path / "elsewhere")
    (quick_path / "elsewhere").write_text("{}\n", "utf-8")
    with pytest.raises(StoreError, match=r"^cannot read .*log\.jsonl: it is a symbolic link"):
        merge([run], RunFolder(quick_path / "all"))


def test_questions_that_no_folder_holds_are_asked_for(quick_path: Path) -> None:
    run = write(quick_path / "a", [sampled(0, 0)], n_questions=1, planned=1)
    run.benchmark(NAME).questions.unlink()
    run.benchmark(NAME).questions.unlink(missing_ok=True)
    with pytest.raises(StoreError, match="none of the folders contains the questions of sums"):
        merge([run], RunFolder(quick_path / "all"))


def test_a_merge_stands_in_the_log_and_stands_for_its_folder(quick_path: Path) -> None:
    run = write(quick_path / "a", [sampled(0, 0)], n_questions=1, planned=1)
    merged = merge([run], RunFolder(quick_path / "all"))
    events = [msgspec.json.decode(line) for line in merged.folder.log.read_bytes().splitlines()]
    (event,) = [event for event in events if event["event"] == "merged"]
    assert (event["sources"], event["samples"]) == ([str(run.path)], [1])
    assert os.fspath(merged) == str(quick_path / "all")


def test_a_folder_without_the_benchmark_hides_none_behind_it(quick_path: Path) -> None:
    folders = [write(quick_path / f"{n}", [sampled(0, n)], n_questions=1, planned=3) for n in range(3)]
    msgspec.structs.replace(Manifest.load(folders[1]), benchmarks={}).save(folders[1])
    (joined,) = merge(folders, RunFolder(quick_path / "all")).benchmarks
    assert joined.n_samples == 2
