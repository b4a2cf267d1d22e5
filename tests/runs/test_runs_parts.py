"""The manifest of several folders, each folder's part of it.

For: harness.runs.merging.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.errors import StoreError
from harness.runs import BenchmarkRecord, Manifest, Plan, RunFolder, questions
from harness.runs.manifest import Fingerprint, Provenance, Session
from harness.runs.merging import joined_manifest, merge
from tests.runs.parts import IDENTITY, NAME, asked, sampled, write

MODEL = "m"


def part(
    name: str,
    *,
    settings: Mapping[str, Any] | None = None,
    plan: Plan | None = None,
    sessions: list[Session] | None = None,
    model: str = MODEL,
    created: str = "2026-01-01T00:00:00+00:00",
    fingerprint: Fingerprint | None = None,
    **environment: str,
) -> tuple[RunFolder, Manifest]:
    """A folder of which only the manifest matters."""
    record = BenchmarkRecord(identity=IDENTITY, plan=plan or Plan(samples=1), settings=dict(settings or {}))
    manifest = Manifest(
        harness_version="1",
        created=created,
        model=model,
        environment=dict(environment),
        provenance=Provenance(sessions=sessions or [], fingerprint=fingerprint),
        benchmarks={NAME: record},
    )
    return RunFolder(name), manifest


def session(minute: int) -> Session:
    return Session(started=f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00+00:00", endpoints={})


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


def test_the_whole_has_the_earliest_beginning_the_larger_plan_and_the_first_fingerprint() -> None:
    first, second = (Fingerprint(version="1", beginnings=[text], endpoint="e") for text in ("one", "two"))
    none = part("a", plan=Plan(samples=3), created="2026-01-03T00:00:00+00:00")
    early = part("b", created="2026-01-01T00:00:00+00:00", fingerprint=first)
    late = part("c", created="2026-01-02T00:00:00+00:00", fingerprint=second)
    joined = joined_manifest([none, early, late], False)
    assert joined.created == early[1].created
    assert joined.benchmarks[NAME].plan.samples == joined_manifest([early, none], False).benchmarks[NAME].plan.samples
    assert joined.benchmarks[NAME].plan.samples == 3
    assert joined.provenance.fingerprint == first
    assert joined_manifest([late, early, none], False).provenance.fingerprint == second


def test_sessions_are_those_of_all_folders_once_in_order_of_time() -> None:
    first, both, last = session(0), session(1), session(2)
    joined = joined_manifest([part("a", sessions=[both, last]), part("b", sessions=[first, both])], False)
    assert joined.provenance.sessions == [first, both, last]


def test_two_models_are_no_parts_of_one_run_and_the_folders_are_named() -> None:
    with pytest.raises(
        StoreError, match=r'^\S*/b is not of the same run as \S*/a; they differ:\n  model: "m" → "other"'
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
    questions.forget(run.benchmark(NAME))
    run.benchmark(NAME).questions.unlink(missing_ok=True)
    with pytest.raises(StoreError, match="none of the folders holds the questions of sums"):
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
