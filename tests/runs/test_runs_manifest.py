"""The manifest: runs with different parameters never mix, and nobody guesses what was asked."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.core.errors import StoreError
from harness.core.records import ServerFacts
from harness.runs import BenchmarkFolder, BenchmarkRecord, Difference, Journal, Manifest, Plan, RunFolder
from harness.runs.manifest import Provenance, changes_of, differences
from tests.runs.recorded import BENCHMARK, sample

IDENTITY: dict[str, Any] = {
    "model": "org/model",
    "api": "chat",
    "sampling": {"temperature": 0.6, "top_p": 0.95, "top_k": None, "min_p": 0.0},
    "max_tokens": 32768,
    "seed": 1,
    "system_prompt": None,
    "prompt_template": "a1",
    "dataset_digest": "b2",
    "thinking": True,
    "chat_template_kwargs": {"enable_thinking": True},
    "extra_body": {"guided": {"deep": True}, "stop": ["a", "b"]},
}


def leaves(value: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of every value in a nested identity."""
    paths = []
    for key, inner in value.items():
        paths += leaves(inner, (*path, key)) if isinstance(inner, dict) else [(*path, key)]
    return paths


def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The identity with another value at `path`."""
    identity = copy.deepcopy(IDENTITY)
    mapping = identity
    for key in path[:-1]:
        mapping = mapping[key]
    mapping[path[-1]] = value
    return identity


def manifest(identity: dict[str, Any] = IDENTITY, samples: int = 4) -> Manifest:
    empty = Manifest(harness_version="0.1.0", created="2026-01-01T00:00:00+00:00", model="org/model")
    return empty.extend(BENCHMARK, BenchmarkRecord(identity=identity, plan=Plan(samples=samples)))


def test_a_new_run_starts_empty_and_says_when(run: RunFolder) -> None:
    started = Manifest.start(run, model="m", harness_version="9")
    assert (started.model, started.harness_version, started.benchmarks) == ("m", "9", {})
    assert started.created.endswith("+00:00")
    assert not run.path.exists()


@pytest.mark.parametrize("path", leaves(IDENTITY), ids=".".join)
def test_a_change_of_any_field_of_the_identity_is_refused_and_shown(path: tuple[str, ...]) -> None:
    identity = changed(path, "changed")
    with pytest.raises(StoreError) as refused:
        manifest().extend(BENCHMARK, BenchmarkRecord(identity=identity, plan=Plan(samples=4)))
    assert refused.value.exit_code == 3
    name = ".".join(path)
    assert f"\n  {name}: " in str(refused.value)
    assert '→ "changed"' in str(refused.value)
    assert str(refused.value).count("→") == 1
    value, missing = changed(path, "something"), changed(path, None)
    assert differences(value, missing) == [Difference(name, "something", None)]
    assert differences(missing, value) == [Difference(name, None, "something")]


def test_every_difference_is_listed_in_order() -> None:
    identity = changed(("seed",), 2)
    identity["sampling"] = {"top_p": 0.9, "temperature": 0.6, "presence_penalty": 1.5}
    assert [str(difference) for difference in differences(IDENTITY, identity)] == [
        "sampling.top_p: 0.95 → 0.9",
        "sampling.min_p: 0.0 → not set",
        "sampling.presence_penalty: not set → 1.5",
        "seed: 1 → 2",
    ]


def test_the_order_of_fields_and_the_spelling_of_a_number_are_no_difference() -> None:
    reordered = dict(reversed(IDENTITY.items()))
    assert differences(IDENTITY, {**reordered, "seed": 1.0}) == []


def test_what_an_earlier_version_stated_elsewhere_or_not_is_no_difference() -> None:
    former = {"chat_template_kwargs": {}, "extra_body": {"chat_template_kwargs": {"thinking": True}, "lora": "a"}}
    present = {"chat_template_kwargs": {"thinking": True}, "extra_body": {"lora": "a"}}
    assert differences(former, present) == []
    other = present | {"chat_template_kwargs": {"thinking": False}}
    assert differences(former, other) == [Difference("chat_template_kwargs.thinking", True, False)]
    before, now, more = (
        {"tool": {"steps": 8, **calls}} for calls in ({}, {"calls": 100, "total_seconds": 3600}, {"calls": 5})
    )
    assert (differences(before, now), differences(before, more)) == ([], [Difference("tool.calls", 100, 5)])


@pytest.mark.parametrize(("old", "new"), [(True, 1), ([True], [1]), ([1, 2], [2, 1]), ("1", 1), ({}, None), ([], {})])
def test_what_only_looks_alike_differs(old: Any, new: Any) -> None:
    assert differences({"x": old}, {"x": new}) == [Difference("x", old, new)]


def test_foreign_text_in_a_refusal_is_inert_and_bounded() -> None:
    identity = changed(("system_prompt",), "\x1b[31m\n" + "x" * 10_000)
    with pytest.raises(StoreError) as refused:
        manifest().extend(BENCHMARK, BenchmarkRecord(identity=identity, plan=Plan(samples=4)))
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_another_model_is_refused_even_for_another_benchmark() -> None:
    identity = {**IDENTITY, "model": "other"}
    with pytest.raises(StoreError, match='model: "org/model" → "other"'):
        manifest().extend("another", BenchmarkRecord(identity=identity, plan=Plan(samples=4)))


@pytest.mark.parametrize("samples", [1, 4, 64])
def test_more_or_fewer_samples_change_the_plan_only(samples: int) -> None:
    record = BenchmarkRecord(identity=IDENTITY, plan=Plan(samples=samples, question_ids=["q"]), settings={"a": 1})
    extended = manifest().extend(BENCHMARK, record)
    assert extended.benchmarks[BENCHMARK] == record
    both = extended.extend("another", BenchmarkRecord(identity={**IDENTITY, "max_tokens": 10}, plan=Plan(samples=1)))
    assert list(both.benchmarks) == [BENCHMARK, "another"]
    assert both.benchmarks[BENCHMARK] == record


def test_benchmarks_that_would_share_a_folder_are_refused() -> None:
    folder_name = RunFolder("x").benchmark(BENCHMARK.lower()).path.name
    first = manifest().extend(BENCHMARK.lower(), BenchmarkRecord(identity=IDENTITY, plan=Plan(samples=1)))
    with pytest.raises(StoreError, match="would share a folder"):
        first.extend(folder_name, BenchmarkRecord(identity=IDENTITY, plan=Plan(samples=1)))


def test_a_manifest_cut_anywhere_is_refused_never_guessed(run: RunFolder) -> None:
    manifest().save(run)
    data = run.manifest.read_bytes()
    for cut in range(len(data.rstrip())):
        run.manifest.write_bytes(data[:cut])
        for attempt in (lambda: Manifest.load(run), lambda: Manifest.start(run, model="m", harness_version="1")):
            with pytest.raises(StoreError, match="is damaged"):
                attempt()


def test_a_missing_manifest_beside_samples_is_refused_never_guessed(run: RunFolder, folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as journal:
        journal.append(sample())
    for attempt in (
        lambda: Manifest.load(run),
        lambda: Manifest.start(run, model="m", harness_version="1"),
        lambda: RunFolder.open(run.path),
    ):
        with pytest.raises(StoreError, match=r"contains samples but no manifest\.json"):
            attempt()


def test_a_newer_manifest_is_refused_with_its_versions(run: RunFolder) -> None:
    run.create()
    run.manifest.write_text('{"schema": 9, "harness_version": "7.0", "benchmarks": ["new shape"]}')
    with pytest.raises(
        StoreError, match=r"schema 9, written by harness 7\.0, but this version supports only schemas up to 1"
    ):
        Manifest.load(run)


def test_a_prompt_with_a_lone_surrogate_equals_itself(run: RunFolder) -> None:
    identity = changed(("system_prompt",), "\ud800")
    manifest(identity).save(run)
    record = BenchmarkRecord(identity=identity, plan=Plan(samples=4))
    assert Manifest.load(run).extend(BENCHMARK, record).benchmarks[BENCHMARK].identity == identity


HERE = {"source": "/models/a", "root": "/models/a", "files.weights": "names", "files.weights_sample": "w"}


MOVED = {"source": "/other/a", "root": "/other/a", "files.weights": "other names"}


@pytest.mark.parametrize(
    ("before", "now", "refused", "warned"),
    [
        ({}, MOVED, "", "source root files.weights"),  # the same weights in another place
        ({}, {"source": "/other/a", "files.weights_sample": "v"}, "source files.weights_sample", ""),
        ({}, {"files.weights_sample": "v"}, "files.weights_sample", ""),  # other weights in the same place
        ({}, {"source": "/other/a", "files.weights_sample": None}, "source", ""),  # a place is all that is stated
        ({"quantization": None}, {"source": "/other/a", "quantization": "fp8"}, "quantization", "source"),
        (
            {"files.weights_sha256": "1"},
            {"source": "/b", "files.weights_sha256": "2"},
            "source files.weights_sha256",
            "",
        ),
    ],
)
def test_what_changes_the_replies_is_refused_and_weights_that_were_moved_only_warn(
    before: dict[str, Any], now: dict[str, Any], refused: str, warned: str
) -> None:
    run = Provenance().after("now", {"http://h": ServerFacts(model=HERE | before)}, [])
    facts = ServerFacts(model={name: value for name, value in (HERE | now).items() if value is not None})
    changes = changes_of(run, {"http://h": facts})
    assert {change.field for change in changes.model} == {*refused.split()}
    assert {change.field for change in changes.host} == {*warned.split()}
