"""A line of the journal: what is stored comes back equal, what was damaged is seen. Files of questions and grades.

For: harness.runs.record, harness.runs.lock, harness.runs.journal.
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import StoreError
from harness.core.records import SCHEMA_VERSION, Grade, GradeRules, Key, Message, ServerFacts, Timing
from harness.runs import (
    BenchmarkFolder,
    BenchmarkRecord,
    Difference,
    Journal,
    Manifest,
    Plan,
    RunFolder,
    grades,
    locked,
    missing,
    questions,
    record,
)
from harness.runs.line_file import write_lines
from harness.runs.lock import hold
from harness.runs.manifest import Provenance, changes_of, differences
from harness.runs.merging import merge
from harness.testing import FakeServer
from tests.budget import examples, rounds, thinned
from tests.faults.able import able, sums
from tests.faults.snapshots import State, every_state, put, shape
from tests.runs.recorded import BENCHMARK, intact_lines, intact_texts, question, sample
from tests.system.command import harness

ANY_TEXT = st.text(st.characters(exclude_categories=())).map(
    # Two halves of a pair, one after the other, are one character as soon as they are written: so JSON has it.
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)


@given(text=ANY_TEXT | st.none(), reasoning=ANY_TEXT | st.none(), question_id=ANY_TEXT, index=st.integers(0, 10**17))
@settings(max_examples=examples(200))
def test_any_text_survives_a_line(text: str | None, reasoning: str | None, question_id: str, index: int) -> None:
    stored = sample(question_id, index, text, reasoning=reasoning)
    line = record.encode(stored)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert record.decode(line[:-1], BENCHMARK) == stored
    assert record.is_whole(line[:-1])
    assert record.head_key(line, BENCHMARK) == Key(question_id, index)


def test_a_change_of_any_byte_and_every_cut_are_seen() -> None:
    stored = sample(text="naïve \ud800")
    line, same = record.encode(stored)[:-1], []
    for offset in range(len(line)):
        for flip in (1, 32, 128):
            flipped = line[:offset] + bytes([line[offset] ^ flip]) + line[offset + 1 :]
            try:
                assert record.decode(flipped, BENCHMARK) == stored, flipped
                same.append(chr(line[offset]))
            except record.Damaged:
                pass
        with pytest.raises(record.Damaged):
            record.decode(line[:offset], BENCHMARK)
    assert same == ["e", "f", "d"], "the letters of \\u00ef and \\ud800, which may be capitals"


def test_values_that_another_program_wrote_again_are_intact() -> None:
    stored = sample(text="0.0 é \x07", reasoning="\u2066", timing=Timing(started=1.5, total=2.0))
    fields = json.loads(record.encode(stored))
    whole = {key: value for key, value in fields.items() if key != "crc"}
    assert fields["server_model"] is None
    assert fields["timing"]["total"] == 2
    # jq 1.6 writes 2.0 as 2.
    timing = {**fields["timing"], "total": 2}
    for again in ({**whole, "timing": timing, "crc": fields["crc"]}, {"crc": fields["crc"], **whole}):
        oddities: list[str] = []
        assert record.decode(json.dumps(again).encode(), BENCHMARK, oddities) == stored
        assert oddities == ["lines that another program wrote again"]
    renamed = {"server_models" if key == "server_model" else key: value for key, value in fields.items()}
    for changed in ({**fields, "text": "0.1"}, {**fields, "note": 1}, whole, renamed, {**fields, "sample_index": 1.0}):
        with pytest.raises(record.Damaged):
            record.decode(json.dumps(changed).encode(), BENCHMARK)


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"benchmark": "other"}, record.Damaged, "its benchmark is 'other'"),
        ({"schema": 99}, record.NewerSchema, "schema 99"),
        ({"sample_index": -1}, record.Damaged, "index is -1"),
    ],
)
def test_an_intact_foreign_line_is_reported(fields: dict[str, Any], error: type[ValueError], words: str) -> None:
    line = record.encode(sample(**fields))
    for data in (line, line[:-1]):
        with pytest.raises(error, match=words):
            record.decode(data, BENCHMARK)
        assert record.intact_key(data, 256, BENCHMARK) is None
    assert record.head_key(line, BENCHMARK) == (("q", 0) if "schema" in fields else None)
    ours = record.encode(sample())
    assert record.decode(ours, BENCHMARK) == record.decode(ours[:-1], BENCHMARK) == sample()
    assert record.intact_key(ours, 256, BENCHMARK) == ("q", 0)


def test_a_newer_schema_of_another_shape_is_told_apart_from_damage() -> None:

    body = b'{"benchmark":"AIME 2024","schema":2,"new":[]'
    with pytest.raises(record.NewerSchema, match="schema 2") as newer:
        record.decode(b'%b,"crc":"%08x"}' % (body, zlib.crc32(body)), BENCHMARK)
    assert newer.value.schema == 2
    ours = body.replace(b'"schema":2', b'"schema":%d' % SCHEMA_VERSION)
    with pytest.raises(record.Damaged, match="not a sample"):
        record.decode(b'%b,"crc":"%08x"}' % (ours, zlib.crc32(ours)), BENCHMARK)


@given(st.binary(max_size=200))
@settings(max_examples=examples(200))
def test_foreign_bytes_are_damage_and_nothing_else(data: bytes) -> None:
    with pytest.raises(record.Damaged):
        record.decode(data, BENCHMARK)
    assert record.head_key(data, BENCHMARK) is None


def test_a_checksummed_line_that_is_nested_too_deeply_is_damage() -> None:

    body = b'{"benchmark":"AIME 2024","x":' + b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(record.Damaged):
        record.decode(b'%b,"crc":"%08x"}' % (body, zlib.crc32(body)), BENCHMARK)


def test_no_character_of_a_line_acts_on_a_terminal() -> None:
    acting = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F)]))
    stored = sample(text=f"{acting}\\{acting}é‑", reasoning="\u2066\u2069")
    line = record.encode(stored)
    assert not set(line.decode()[:-1]) & set(acting + "\u2066\u2069") - {"\x7f"}
    assert "é‑".encode() in line
    assert record.decode(line[:-1], BENCHMARK) == stored


def test_the_longest_record_is_stored_and_one_byte_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    length = len(record.encode(sample()))
    monkeypatch.setattr(record, "MAX_RECORD_BYTES", length)
    assert len(record.encode(sample())) == length
    monkeypatch.setattr(record, "MAX_RECORD_BYTES", length - 1)
    with pytest.raises(record.RecordRefused, match=f"takes {length - record.TAIL_BYTES} bytes; .* {length - 1} bytes"):
        record.encode(sample())


def test_a_plan_counts_what_it_expects() -> None:
    keys = missing.KeySet([Key("a", 0), Key("a", 3), Key("b", 1), Key("b", 4), Key("c", 0)])
    plan, many = missing.Plan(samples=4), [str(number) for number in range(4000)]
    assert (plan.total(["a", "b", "c"]), plan.n_stored(keys, ["a", "b"])) == (12, 3)
    assert missing.Plan(samples=1.25).total(many) == pytest.approx(5000, rel=0.02)


# ---- sets of keys


KEYS = st.builds(Key, st.sampled_from(["a", "b", "\ud800"]), st.sampled_from([0, 1, 2, 5, 99_999, 100_000, 10**17, -1]))


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(KEYS), st.lists(KEYS), st.one_of(st.integers(1, 7), st.floats(1, 7)))
def test_it_is_a_set_and_lacks_and_counts_as_one(first: list[Key], second: list[Key], samples: float) -> None:
    keys, expected = missing.KeySet(first), set(first)
    before = keys.copy()
    for key in second:
        assert keys.add(key) is (key not in expected)
        expected.add(key)
    assert (keys, set(keys), len(keys), before) == (expected, expected, len(expected), set(first))
    strangers = [Key("c", 0), Key("a", 9), "ab", ("a", 0, 1), 7, None]
    assert [key in keys for key in (*first, *second, *strangers)] == [True] * len(first + second) + [False] * 6
    planned = {name: missing.n_planned(name, samples) for name in ("a", "b", "\ud800", "c")}
    assert all(int(samples) <= n <= missing.n_planned(name, samples + 0.25) for name, n in planned.items())
    within = {key for key in expected if 0 <= key.sample_index < planned[key.question_id]}
    assert keys.missing_indices("a", samples) == tuple(i for i in range(planned["a"]) if Key("a", i) not in within)
    assert keys.count_within(["a", "b", "\ud800", "nobody's"], samples) == len(within)
    assert keys.count_within(["a"], samples) == sum(key.question_id == "a" for key in within)


def test_the_id_of_a_question_is_held_once() -> None:
    def measured(samples: int) -> int:
        tracemalloc.start()
        keys = missing.KeySet(Key(f"q{q}" * 200, i) for q in range(100) for i in range(samples))
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(keys) == 100 * samples
        return used

    assert measured(64) < 1.5 * measured(1), "whether a sample is stored is one bit"


def grade(question_id: str, **fields: Any) -> Grade:
    defaults: dict[str, Any] = {"verdict": "correct", "extracted": "42", "rule": "exact", "grader": "rules 1"}
    return Grade(benchmark=BENCHMARK, question_id=question_id, sample_index=0, **{**defaults, **fields})


@given(text=st.text(), reference=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(30))
def test_questions_come_back_equal_and_in_order(folder: BenchmarkFolder, text: str, reference: str) -> None:
    folder.questions.unlink(missing_ok=True)
    written = [
        question("b", messages=(Message("user", text),), references=(reference,), metadata={"level": [1, None]}),
        question("a", rules=GradeRules(relative_tolerance=0.1), choices=(text, "x"), kind="choice"),
    ]
    questions.write(folder, written)
    assert questions.read(folder) == written


@pytest.mark.parametrize(
    ("first", "then", "stored"), [("ab", "b", "ba"), ("a", "ab", "ab"), ("a", "a", "a"), ("ab", "ab", "ab")]
)
def test_a_second_list_extends_the_first_safely(folder: BenchmarkFolder, first: str, then: str, stored: str) -> None:
    questions.write(folder, [*map(question, first)])
    before = folder.questions.stat().st_ino
    questions.write(folder, [*map(question, then)])
    assert [row.question_id for row in questions.read(folder)] == [*stored]
    assert (folder.questions.stat().st_ino == before) is (first == then), "the same questions are not written again"


def test_one_id_for_two_questions_is_refused(folder: BenchmarkFolder) -> None:
    with pytest.raises(StoreError, match="question a of AIME 2024 occurs twice"):
        questions.write(folder, [question("a"), question("a")])
    assert not folder.questions.exists()


@pytest.mark.parametrize("fields", [{"prompt_digest": "other"}, {"references": ("43",)}])
def test_a_question_that_is_not_as_it_was_asked_is_refused(folder: BenchmarkFolder, fields: dict[str, Any]) -> None:
    questions.write(folder, [question("a")])
    with pytest.raises(StoreError, match="question a of AIME 2024 has changed since"):
        questions.write(folder, [question("a", **fields)])


def test_damaged_or_newer_lines_are_refused_and_editor_marks_are_ignored(folder: BenchmarkFolder) -> None:
    questions.write(folder, [question("a"), question("b", schema=5)])
    with pytest.raises(
        StoreError, match="line 2 has schema 5, but this version of the harness supports only schemas up to 1"
    ):
        questions.read(folder)
    first, second = folder.questions.read_bytes().splitlines(keepends=True)
    folder.questions.write_bytes(first + second[:20])
    with pytest.raises(StoreError, match=r"questions\.jsonl, line 2 is damaged: .*Delete the file"):
        questions.read(folder)
    folder.questions.write_bytes(b"\xef\xbb\xbf" + first.replace(b"\n", b"\r\n") + b"\n")
    assert questions.read(folder) == [question("a")]


def test_grades_come_back_equal_and_are_replaced_as_a_whole(folder: BenchmarkFolder) -> None:
    write_lines(folder.grades, [grade("a"), grade("b", vote="42", span=(1, 3), extracted="\u2028\ud800")])
    assert grades.read(folder)[1] == grade("b", vote="42", span=(1, 3), extracted="\u2028\ud800")
    write_lines(folder.grades, iter([grade("c", verdict="undecided", extracted=None)]))
    assert grades.read(folder) == [grade("c", verdict="undecided", extracted=None)]


@pytest.mark.parametrize(("read", "hint"), [(grades.read, "harness score"), (questions.read, "same command")])
def test_a_missing_file_is_said_with_what_to_do(
    folder: BenchmarkFolder, read: Callable[[BenchmarkFolder], list[object]], hint: str
) -> None:
    with pytest.raises(StoreError, match=f"No such file.*{hint}"):
        read(folder)


@pytest.mark.parametrize("name", ["questions", "grades"])
def test_a_planted_link_is_not_written_through(folder: BenchmarkFolder, tmp_path: Path, name: str) -> None:
    (tmp_path / "victim").write_bytes(b"")
    folder.create()
    getattr(folder, name).symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match="symbolic link"):
        questions.write(folder, [question("a")]) if name == "questions" else write_lines(folder.grades, [grade("a")])
    assert (tmp_path / "victim").read_bytes() == b""


# -- the manifest: runs with different parameters never mix, and nobody guesses what was asked -------------------------


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


def test_field_order_and_number_spelling_make_no_difference() -> None:
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
def test_changes_of_replies_are_refused_and_moved_weights_only_warn(
    before: dict[str, Any], now: dict[str, Any], refused: str, warned: str
) -> None:
    run = Provenance().after("now", {"http://h": ServerFacts(model=HERE | before)}, [])
    facts = ServerFacts(model={name: value for name, value in (HERE | now).items() if value is not None})
    changes = changes_of(run, {"http://h": facts})
    assert {change.field for change in changes.model} == {*refused.split()}
    assert {change.field for change in changes.host} == {*warned.split()}


# -- starts that were killed -------------------------------------------------------------------------------------------


SAMPLED = ["--id-key", "id", "--no-canary", "--out", "out"]
ASKED = ["--data", "sums.jsonl", *SAMPLED, "--model", "test-model"]

Words = Callable[[Path, str], Sequence[str]]
"""The command line, of the folder where it runs and the server's address."""


def run(_folder: Path, url: str) -> list[str]:
    return ["run", *ASKED, "--samples", "2", "--base-url", url]


def shard(folder: Path, url: str) -> list[str]:
    return [*run(folder, url), "--shard", "1/2"]


def sweep(folder: Path, url: str) -> list[str]:
    common = {"id_key": "id", "canary": False, "base_url": url}
    content = {
        "models": ["test-model"],
        "run": common,
        "score": {"workers": 1},
        "benchmarks": [{"data": "sums.jsonl", "samples": 2}],
        "sampling": [{"name": "cool", "temperature": 0.3}, {"name": "hot", "temperature": 1.0}],
    }
    (folder / "sweep.yaml").write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    return ["sweep", "sweep.yaml", "--out", "out"]


def texts(folder: Path) -> dict[str, dict[Key, str | None]]:
    """By journal, the text of each sample."""
    return {str(path.relative_to(folder)): intact_texts(path.read_bytes()) for path in folder.rglob("samples.jsonl")}


def before_the_manifest(state: State) -> bool:
    """A journal was made, and its run has no manifest yet, or no questions."""
    journals = [Path(name) for name in state if name.endswith("samples.jsonl")]
    return any(
        str(journal.parents[1] / "manifest.json") not in state or str(journal.parent / "questions.jsonl") not in state
        for journal in journals
    )


def telling(states: Sequence[State]) -> list[State]:
    """Some states of those within a start, and some others, each of another shape; drawn anew each time."""
    by_shape = {shape(state): state for state in reversed(states)}
    early = [state for state in by_shape.values() if before_the_manifest(state)]
    others = [state for state in by_shape.values() if not before_the_manifest(state)]
    assert early, "the window between the journal and the manifest was seen"
    return [*random.sample(early, min(len(early), rounds(2))), *random.sample(others, min(len(others), rounds(1)))]


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("words", thinned([run, shard, sweep]), ids=lambda words: words.__name__)
def test_a_start_killed_at_any_call_goes_on(words: Words, tmp_path: Path) -> None:
    sums(tmp_path, 2)
    out = tmp_path / "out"
    with FakeServer(able(0.5)) as server:
        with every_state(out) as states:
            quiet = harness(tmp_path, *words(tmp_path, server.base_url))
        expected = texts(out)
        assert expected
        assert all(expected.values())
        for state in telling(states):
            put(state, out)
            again = harness(tmp_path, *words(tmp_path, server.base_url))
            assert again.code == quiet.code, (shape(state), again.err)
            assert texts(out) == expected, shape(state)
            assert not list(out.rglob(".*.tmp")), shape(state)


def test_a_resume_killed_at_any_call_loses_and_duplicates_nothing(quick_path: Path) -> None:
    """A torn record to repair, a manifest to extend, samples to append; at every call that changes the disk."""
    folder = RunFolder(quick_path / "run")
    of_first, of_second = (BenchmarkRecord(identity={"model": "m"}, plan=Plan(samples=n)) for n in (3, 1))
    Manifest.start(folder, model="m", harness_version="1").extend(BENCHMARK, of_first).save(folder)
    files = folder.benchmark(BENCHMARK)
    files.create()
    old = [record.encode(sample("old", index)) for index in range(3)]
    files.samples.write_bytes(b"".join(old)[:-9])
    acknowledged: list[tuple[int, Key]] = [(0, Key("old", 0)), (0, Key("old", 1))]  # from which state on, and which
    with every_state(folder.path) as states, locked(folder):
        Manifest.load(folder).extend("second", of_second).save(folder)
        with Journal.open(files) as journal:
            for index in range(3):
                journal.append(sample("new", index, "t" * 400_000 if index == 1 else "t"))
                acknowledged.append((len(states), Key("new", index)))
    assert len(states) >= 7
    for number, state in enumerate(states):
        put(state, folder.path)
        lines = intact_lines(files.samples.read_bytes())
        on_disk = [Key(line["question_id"], line["sample_index"]) for line in lines]
        assert len(on_disk) == len(set(on_disk)), number
        assert {key for since, key in acknowledged if since <= number} <= set(on_disk), number
        assert BENCHMARK in Manifest.load(folder).benchmarks, number
        with locked(folder), Journal.open(files) as again:
            assert again.keys == set(on_disk), number
            again.append(sample("late"))
        assert len(intact_lines(files.samples.read_bytes())) == len(on_disk) + 1, "nothing is glued"
        assert not list(folder.path.glob(".*.tmp")), number


def test_what_a_killed_start_leaves_is_no_run_yet_and_a_run_takes_it(quick_path: Path) -> None:
    folder = RunFolder(quick_path / "run")
    folder.benchmark("b").path.mkdir(parents=True)
    folder.benchmark("b").samples.touch()
    assert Manifest.find(folder) is None
    with hold(folder) as taken:
        assert taken.manifest is None
        assert taken.warning == ""
        with pytest.raises(StoreError, match="in use by"), hold(folder):
            pass
    with pytest.raises(StoreError, match="has no manifest"):
        RunFolder.open(folder.path)


def test_samples_without_a_manifest_are_refused_by_every_way_in(quick_path: Path) -> None:
    folder = RunFolder(quick_path / "run")
    folder.benchmark("b").path.mkdir(parents=True)
    folder.benchmark("b").samples.write_bytes(b"x")
    for way in (
        Manifest.find,
        Manifest.load,
        partial(Manifest.start, model="m", harness_version="1"),
        lambda run: RunFolder.open(run.path),
        lambda run: hold(run).__enter__(),
        lambda run: merge([run], RunFolder("o")),
    ):
        with pytest.raises(StoreError, match=r"samples but no manifest\.json"):
            way(folder)


def copied(states: Sequence[State], chance: random.Random) -> State:
    """A copy that took its time: each file as it stood at some moment after that of the file before it."""
    names = sorted({name for state in states for name in state})
    chance.shuffle(names)
    moments = sorted(chance.randrange(len(states)) for _ in names)
    return {
        name: states[moment][name]
        for name, moment in zip(names, moments, strict=True)
        if name in states[moment] and not name.endswith(".tmp")
    }


@pytest.mark.slow
@pytest.mark.fuzz
def test_a_folder_copied_while_the_run_went_on_opens_or_says_why_not(tmp_path: Path) -> None:
    sums(tmp_path, 4)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    with FakeServer(able(0.5)) as server:
        words = [*run(tmp_path, server.base_url), "--concurrency", "1"]
        with every_state(tmp_path / "out") as states:
            assert harness(tmp_path, *words).code == 0
        whole = texts(tmp_path / "out")
        for number in range(rounds(5)):
            put(copied(states, chance), tmp_path / "out")
            hint = f"seed {seed}, copy {number}"
            for reader in ("doctor", "status", "score", "report"):
                # 4: a copy without any grade has no score to report.
                assert harness(tmp_path, reader, "out").code in ((0, 3, 4) if reader == "report" else (0, 3)), hint
            done = harness(tmp_path, *words)
            if done.code == 3:
                assert "manifest" in done.err, hint
            else:
                assert done.code == 0, (hint, done.err)
                assert texts(tmp_path / "out") == whole, hint


def test_a_copied_runs_status_does_not_name_the_originals_process(quick_path: Path) -> None:
    first = RunFolder(quick_path / "run")
    with locked(first):
        Manifest.start(first, model="m", harness_version="1").save(first)
        shutil.copytree(first.path, quick_path / "copy")
        assert f"process {os.getpid()}" in harness(quick_path, "status", "run").out
        of_copy = harness(quick_path, "status", "copy")
    assert of_copy.code == 0
    assert "process" not in of_copy.out
