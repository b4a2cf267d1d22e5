"""A line of the journal: what is stored comes back equal, what was damaged is seen. Files of questions and grades.

For: harness.runs.record.
"""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import StoreError
from harness.core.records import SCHEMA_VERSION, Grade, GradeRules, Key, Message
from harness.runs import BenchmarkFolder, grades, missing, questions, record
from harness.runs.line_file import write_lines
from tests.budget import examples
from tests.runs.recorded import BENCHMARK, question, sample

ANY_TEXT = st.text(st.characters(exclude_categories=())).map(
    # Two halves of a pair, one after the other, are one character as soon as they are written: so JSON has it.
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)


@given(text=ANY_TEXT | st.none(), reasoning=ANY_TEXT | st.none(), question_id=ANY_TEXT, index=st.integers(0, 10**17))
@settings(max_examples=examples(200))
def test_any_text_comes_back_equal_from_one_line(
    text: str | None, reasoning: str | None, question_id: str, index: int
) -> None:
    stored = sample(question_id, index, text, reasoning=reasoning)
    line = record.encode(stored)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert record.decode(line[:-1], BENCHMARK) == stored
    assert record.is_whole(line[:-1])
    assert record.head_key(line, BENCHMARK) == Key(question_id, index)


def test_a_change_of_any_byte_and_every_cut_are_seen() -> None:
    line = record.encode(sample(text="naïve \ud800"))[:-1]
    for offset in range(len(line)):
        flipped = [line[:offset] + bytes([line[offset] ^ flip]) + line[offset + 1 :] for flip in (1, 32, 128)]
        for damaged in (line[:offset], *flipped):
            with pytest.raises(record.Damaged):
                record.decode(damaged, BENCHMARK)


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"benchmark": "other"}, record.Damaged, "its benchmark is 'other'"),
        ({"schema": 99}, record.NewerSchema, "schema 99"),
        ({"sample_index": -1}, record.Damaged, "index is -1"),
    ],
)
def test_an_intact_line_that_is_none_of_ours_is_told(
    fields: dict[str, Any], error: type[ValueError], words: str
) -> None:
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
    assert keys.lacks("a", samples) == tuple(i for i in range(planned["a"]) if Key("a", i) not in within)
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
def test_a_second_list_extends_the_first_and_loses_nothing(
    folder: BenchmarkFolder, first: str, then: str, stored: str
) -> None:
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


def test_a_damaged_or_newer_line_is_refused_with_what_to_do_and_an_editors_marks_are_passed_over(
    folder: BenchmarkFolder,
) -> None:
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
