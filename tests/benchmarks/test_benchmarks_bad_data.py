"""Bad input of any kind is one sentence with file and line; odd but legal input is read right.

For: harness.benchmarks.sources.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import questions
from harness.benchmarks.card import from_file
from harness.benchmarks.questions import QuestionSet
from harness.benchmarks.sources import tables
from harness.core.errors import UsageError
from harness.foreign import outputs
from tests.benchmarks.hub_server import arrow, jsonl, parquet

Write = Callable[..., Path]
GOOD = b'{"problem": "1 + 1?", "answer": 2}\n'


def built(path: Path, **keys: Any) -> QuestionSet:
    return questions.build(from_file(str(path), **keys), prompt="none")


def saved(tmp_path: Path, data: bytes, name: str = "set.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has no rows"),
        (b"\n \n", "has no rows"),
        (GOOD + b'{"problem": "broken\n', r"set\.jsonl:2 is not valid JSON: .* at column 13"),
        (GOOD + b'["a", "list"]\n', r"set\.jsonl:2 must be an object with named columns, found \['a', 'list'\]"),
        (GOOD + b"\xff\xfe\x00", r"set\.jsonl:2 is not UTF-8"),
        ("problem,ä".encode("utf-16"), r"set\.jsonl is not UTF-8 text, Parquet"),
        (
            GOOD + b'{"problem": "p", "answer": NaN}',
            r"set\.jsonl:2: the column .answer. contains a number that is not finite",
        ),
        (
            GOOD + b'{"problem": "p", "answer": 1e999}',
            r"set\.jsonl:2: the column 'answer' contains a number that is not",
        ),
        (
            GOOD + b'{"problem": "p", "answer": ' + b"9" * 5000 + b"}",
            r"set\.jsonl:2 contains an integer of more than 4,300 digits; put it in quotes",
        ),
        (GOOD + b'{"problem": "p", "answer": ' + b"[" * 100_000, r"set\.jsonl:2 is nested too deeply"),
        (GOOD + b'{"problem": "p", "answer": ' + b"[" * 300 + b"]" * 300 + b"}", r"set\.jsonl:2: .* nested too deeply"),
        (
            GOOD + b'{"problem": "\\ud800", "answer": 1}',
            r"set\.jsonl:2: the column 'problem' contains an unpaired surrogate",
        ),
        (GOOD + b'{"problem": "p", "answer": null}', r"set\.jsonl:2: the answer column 'answer' is null"),
        (GOOD + b'{"problem": "p", "answer": "  "}', r"set\.jsonl:2: the answer column 'answer' is empty"),
        (GOOD + b'{"problem": "p", "answer": true}', r"set\.jsonl:2: .* must be an answer, found true"),
        (GOOD + b'{"problem": "p", "answer": [1, 2]}', r"set\.jsonl:2: .* must be a single answer, found \[1, 2\]"),
        (
            GOOD + b'{"problem": "p", "answer": {"a": 1}}',
            r"set\.jsonl:2: .* must be a single answer, found \{'a': 1\}. Write it as a string",
        ),
        (
            GOOD + b'{"problem": null, "answer": 1}',
            r"set\.jsonl:2: the column 'problem' must be a question or a list .*null",
        ),
        (GOOD + b'{"problem": " ", "answer": 1}', r"set\.jsonl:2: the column 'problem' must be a question or a list"),
        (
            GOOD + b'{"problem": 7, "answer": 1}',
            r"set\.jsonl:2: the column 'problem' must be a question or a list of messages, found 7",
        ),
        (GOOD + b'{"problem": "p", "Answers": 1}', r"set\.jsonl:2 has no column .*available columns: problem, Answers"),
    ],
)
def test_a_broken_line_is_named_with_its_file_and_line(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        built(saved(tmp_path, data), answer_key="answer")


@pytest.mark.slow
def test_a_field_of_forty_megabytes_is_refused_by_its_length(tmp_path: Path) -> None:
    path = saved(tmp_path, GOOD + json.dumps({"problem": "x" * 40_000_000, "answer": 1}).encode())
    with pytest.raises(UsageError, match=r"set\.jsonl:2: the column 'problem' has 40000000 characters; the limit"):
        built(path)


def test_a_column_that_is_not_there_is_answered_with_those_that_are(write_rows: Write) -> None:
    path = write_rows([{"Problem": "p", "Answer": "1"}])
    for key, name, message in (
        ("question_key", "problm", "for the question; available columns: Problem, Answer.* Did you mean Problem"),
        ("id_key", "id", "for the id; available columns: Problem, Answer"),
    ):
        with pytest.raises(UsageError, match=f"no column '{name}' {message}"):
            built(path, **{key: name})
    assert built(path).questions[0].references == ("1",)


def test_column_names_with_terminal_codes_are_shown_harmless(write_rows: Write) -> None:
    path = write_rows([{"\x1b[2Jevil": "p"}])
    with pytest.raises(UsageError) as caught:
        built(path)
    assert "\x1b" not in str(caught.value)


def test_equal_ids_are_refused_with_both_places(write_rows: Write) -> None:
    path = write_rows([{"problem": "p", "answer": 1, "id": 1}, {"problem": "q", "answer": 2, "id": "1"}])
    with pytest.raises(UsageError, match=r"set\.jsonl:2: the id '1' is already used at .*set\.jsonl:1"):
        built(path, id_key="id")


def test_an_id_that_identifies_nothing_is_refused(write_rows: Write) -> None:
    for value in (None, "", "  ", True, [1], 1.5):
        with pytest.raises(UsageError, match=r"the id column 'id' must be a string or an integer"):
            built(write_rows([{"problem": "p", "answer": 1, "id": value}]), id_key="id")


def test_bom_carriage_returns_and_line_separators_are_read_correctly(tmp_path: Path) -> None:
    rows = [{"problem": "one\u2028two\u0085three", "answer": "1"}, {"problem": "next", "answer": "2"}]
    text = "\ufeff" + "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    asked = [question.messages[0].content for question in built(saved(tmp_path, text.encode())).questions]
    assert [content.partition("\nPlease")[0] for content in asked] == ["one\u2028two\u0085three", "next"]


ROWS = [{"problem": f'{n} + {n}, or "twice"?', "answer": str(2 * n)} for n in range(1, 4)]


CSV = 'problem,answer\r\n"1 + 1, or ""twice""?",2\r\n"2 + 2, or ""twice""?",4\r\n"3 + 3, or ""twice""?",6\r\n'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("set.jsonl", jsonl(ROWS)),
        ("set.ndjson", jsonl(ROWS).rstrip()),
        ("set.txt", jsonl(ROWS)),
        ("set", jsonl(ROWS)),
        ("set.json", json.dumps(ROWS).encode()),
        ("set.json", jsonl(ROWS)),
        ("set.json", json.dumps({"version": "1", "data": ROWS}).encode()),
        ("set.csv", CSV.encode()),
        ("set.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("set.tsv", CSV.replace(",", "\t").replace("\t or", ", or").encode()),
        ("set.jsonl.gz", gzip.compress(jsonl(ROWS))),
        ("set.csv.gz", gzip.compress(CSV.encode())),
        ("set.jsonl.zst", pyarrow.compress(jsonl(ROWS), "zstd", asbytes=True)),
        ("set.parquet", parquet(ROWS)),
        ("set.parquet.gz", gzip.compress(parquet(ROWS))),
        ("set.arrow", arrow(ROWS, pyarrow.ipc.new_stream)),
        ("set.feather", arrow(ROWS, pyarrow.ipc.new_file)),
        ("set.arrow.zst", pyarrow.compress(arrow(ROWS, pyarrow.ipc.new_stream), "zstd", asbytes=True)),
    ],
)
def test_a_format_is_recognized_by_its_bytes_whatever_its_name(tmp_path: Path, name: str, data: bytes) -> None:
    others = ("other.jsonl", "other.json", "other.csv", "other.tsv", "other.txt.gz", "other")
    for other in (name, *(others if b"version" not in data else ())):  # one object in one line may be a row
        assert [row.value for row in tables.stream(saved(tmp_path, data, other))] == ROWS, other


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("set.csv", b"problem,answer\np,1,extra\n", r"set\.csv:2 has 3 cells, but the header has 2 columns"),
        ("set.csv", b"problem,problem\np,1\n", r"set\.csv:1: the column 'problem' appears twice"),
        ("set.xlsx", b"PK", r"set\.xlsx: \.xlsx is not supported: "),
        ("set.csv", b'problem,answer\n"a\nb\nc",1\n"d\ne",2,extra\n', r"set\.csv:5 has 3 cells"),
        ("set.csv", b'problem,answer\n"a\nb\nc",1\n\n"d\ne"x,2\n', r"set\.csv:6 is not valid CSV"),
        ("set.csv", b'problem,answer\n"never closed,1\nand\nmore', r"set\.csv:2 is not valid CSV"),
        ("set.csv", b'"problem\nin two lines",answer\np,1,extra\n', r"set\.csv:3 has 3 cells"),
        ("set.csv", b"", "has no rows"),
        ("set.csv", "question,answer\n面积,2\n".encode("gb18030"), r"set\.csv:2 is not UTF-8"),
        ("set.json", b'{"a": 1}', "is a mapping without a list of rows; expected a list of objects"),
        ("set.json", b'{"train": [], "test": []}', "lists of rows: train, test. Choose one of them with `split`"),
        ("set.json", b"[{}, 3]", "row 2 of .* must be an object with named columns, found 3"),
        ("set.json", b"[{}] [{}]", "is not valid JSON: Extra data at column 6"),
        ("set.json", b'[{"a": "\xff"}]', "is not UTF-8"),
        ("set.json", b'"text"', "must contain a list of objects, found 'text'"),
        ("set.json", b"{\n\n]", r"set\.json \(line 3\) is not valid JSON"),
        ("set.jsonl.gz", b"no gzip", "set.jsonl.gz:1 is not valid JSON"),
        ("set.jsonl.gz", gzip.compress(GOOD * 100)[:-20], "is a damaged gzip file"),
        ("set.jsonl.zst", b"\x28\xb5\x2f\xfdno zstd", "is a damaged zstd file"),
        ("set.parquet", b"PAR1nope", "cannot be read as Parquet"),
        ("set.parquet", parquet([{"answer": float("nan")}]), "row 1 of .* not finite"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        [*tables.stream(saved(tmp_path, data, name))]


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    saved(tmp_path, GOOD, "there.jsonl")
    for name in ("set.jsonl", "set.parquet", "set.csv.gz", "there.jsonl:4"):
        with pytest.raises(UsageError, match=f"file .*{name} does not exist$"):
            [*tables.stream(tmp_path / name)]


@pytest.mark.parametrize(
    ("bound", "value", "message"),
    [("MAX_DATA_BYTES", 100_000, "more than 100000 bytes"), ("FREE_UNPACKED_BYTES", 10_000, "more than")],
)
def test_a_file_unpacks_to_no_more_than_the_bound(
    bound: str, value: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, bound, value)
    pack_zstd = partial(pyarrow.compress, codec="zstd", asbytes=True)
    for name, pack in (("set.jsonl.gz", gzip.compress), ("set.jsonl.zst", pack_zstd)):
        with pytest.raises(UsageError, match=f"unpacks to {message}"):
            [*tables.stream(saved(tmp_path, pack(jsonl(ROWS[:1]) * 100_000), name))]
        assert len([*tables.stream(saved(tmp_path, pack(jsonl(ROWS[:1]) * 50), name))]) == 50


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    for name in ("set.jsonl", "set.csv", "set.parquet", "set.jsonl.gz"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(UsageError, match="not a regular file but a"):
            [*tables.stream(tmp_path / name)]


def test_splits_are_chosen_from_a_folder_or_a_json_mapping(tmp_path: Path) -> None:
    mapping = saved(tmp_path, json.dumps({"train": ROWS[:1], "test": ROWS[1:]}).encode(), "all.json")
    folder = tmp_path / "set"
    folder.mkdir()
    for name, rows in (("train", ROWS[:1]), ("test-00000-of-00002", ROWS[1:2]), ("test-00001-of-00002", ROWS[2:])):
        saved(folder, jsonl(rows), f"{name}.jsonl")
    assert [row.value for row in tables.stream(mapping, "test")] == ROWS[1:]
    assert [row.value for row in tables.stream(folder, "test")] == ROWS[1:]
    for place, split, message in (
        (mapping, "tets", "Did you mean test"),
        (folder, None, "several data files; it contains"),
        (folder, "dev", "no files for the split 'dev'; it contains"),
        (folder / "train.jsonl", "test", "has no splits; remove the split 'test'"),
    ):
        with pytest.raises(UsageError, match=message):
            [*tables.stream(place, split)]


def test_a_folder_is_read_as_other_programs_write_it(tmp_path: Path) -> None:
    rows = arrow(ROWS, pyarrow.ipc.new_stream)
    for split in ("train", "test"):  # `save_to_disk` of a `DatasetDict`
        (tmp_path / "dict" / split).mkdir(parents=True)
        for name, data in (("data-00000-of-00001.arrow", rows), ("state.json", b"{}"), ("dataset_info.json", b"{}")):
            saved(tmp_path / "dict" / split, data, name)
    saved(tmp_path / "dict", b'{"splits": ["train", "test"]}', "dataset_dict.json")
    (tmp_path / "hidden" / ".ipynb_checkpoints").mkdir(parents=True)
    for name in ("set.jsonl", ".set.jsonl", ".ipynb_checkpoints/set-checkpoint.jsonl"):
        saved(tmp_path / "hidden", jsonl(ROWS), name)
    for folder, of_split in (("dict", "test"), ("dict/test", None), ("hidden", None)):
        assert [row.value for row in tables.stream(tmp_path / folder, of_split)] == ROWS
    with pytest.raises(
        UsageError, match=r"has several data files; it contains test/data-00000-of-00001\.arrow, train/"
    ):
        [*tables.stream(tmp_path / "dict")]


NESTED = [
    {
        "task": {"text": row["problem"], "options": ["1", row["answer"]]},
        "reward": {"by": {"truth": row["answer"]}},
        "more": json.dumps({"id": row["answer"], "level": n % 2}),
        "reply": {"text": row["answer"]},
    }
    for n, row in enumerate(ROWS)
]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("set.jsonl", jsonl(NESTED)),
        ("set.parquet", parquet(NESTED)),
        ("set.arrow", arrow(NESTED, pyarrow.ipc.new_stream)),
        ("set.feather", arrow(NESTED, pyarrow.ipc.new_file)),
    ],
)
def test_every_option_of_a_column_takes_a_path_into_objects(tmp_path: Path, name: str, data: bytes) -> None:
    path = saved(tmp_path, data, name)
    keys = {"question_key": "task.text", "answer_key": "reward.by.truth", "id_key": "more.id"}
    flat = [row | {"id": row["answer"]} for row in ROWS]
    expected = built(saved(tmp_path, jsonl(flat), "flat.jsonl"), id_key="id").questions
    made = built(path, **keys).questions
    for attribute in ("messages", "references", "question_id", "kind"):
        assert [getattr(q, attribute) for q in made] == [getattr(q, attribute) for q in expected]
    assert built(path, choices_key=["task.options"], **keys).questions[0].choices == ("1", "2")
    of_level = questions.build(from_file(str(path), **keys), prompt="none", filters=["more.level=1"])
    assert [question.question_id for question in of_level.questions] == ["4"]
    replies = outputs.read(path, response_key="reply.text", **keys)
    assert [(question.question_id, sample and sample.text) for question, sample in replies] == [
        (row["answer"], row["answer"]) for row in ROWS
    ]


def test_an_exact_column_name_takes_precedence_over_a_path(write_rows: Write) -> None:
    row = {"q": "?", "a.b": "1", "a": {"b": "2", "c": "3"}}
    answers = [
        built(write_rows([row]), question_key="q", answer_key=key).questions[0].references for key in ("a.b", "a.c")
    ]
    assert answers == [("1",), ("3",)]
    for rows, where in (([{"q": "?", "a": {"b": 1}}], 1), ([row, {"q": "?", "a": None}], 2)):
        with pytest.raises(UsageError, match=rf":{where} has no column 'a.c' for the answer; available columns: q, a"):
            built(write_rows(rows), question_key="q", answer_key="a.c")


@given(st.binary(max_size=300))
def test_no_bytes_bring_down_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    for name in ("set.jsonl", "set.json", "set.csv", "set"):
        with contextlib.suppress(UsageError):
            assert [*tables.stream(saved(folder, data, name))]


URL = "data:image/png;base64,iVBORw0KGgo="
PICTURES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"problem": f"![fig]({URL}) Area?"}, {"problem": "What does data:image/png mean in a URL?"}),
    ({"problem": "<IMAGE_2> Area?"}, {"problem": "Area? image 2"}),
    ({"problem": "<image> Area?"}, {"problem": "<image href=''> Area?"}),
    ({"problem": "<|vision_start|><|image_pad|>Area?"}, {"problem": "An image, a vision, a < b"}),
    *(({name: "a.png"}, {name: empty}) for name in ("image", "Image_1", "image path") for empty in ("", None, [])),
    ({"figure": [None, {"bytes": "iVBOR", "path": None}]}, {"figure": [None, {"bytes": None, "path": None}]}),
    ({"decoded": {"bytes": "<3 bytes>", "path": "a.png"}}, {"decoded": {"bytes": 3, "path": "a.png", "unit": "MB"}}),
    ({"options": ["A", URL]}, {"options": ["A", "data"]}),
    ({"extra": [{"type": "image_url", "image_url": {"url": "x"}}]}, {"extra": [{"type": "image"}, {"type": "text"}]}),
]


@pytest.mark.parametrize(("row", "twin"), PICTURES)
def test_picture_rows_are_refused_or_omitted(write_rows: Write, row: dict[str, Any], twin: dict[str, Any]) -> None:
    plain = {"problem": "Area of a square?", "answer": "1", "kind": "text"}
    (column,) = row
    data = write_rows([plain, {**plain, **row, "kind": "picture"}])
    with pytest.raises(UsageError, match=rf"set\.jsonl:2: the (column|image in the column) '{column}' "):
        built(data)
    selected = questions.build(from_file(str(data)), filters=["kind=text"])
    assert (len(selected.questions), built(write_rows([{**plain, **twin}])).notes) == (1, ())


def test_a_question_in_parts_with_a_picture_is_refused_as_one(write_rows: Write) -> None:
    parts = [{"type": "text", "text": "Area?"}, {"type": "image_url", "image_url": {"url": URL}}]
    with pytest.raises(UsageError, match=r"set\.jsonl:1: the column 'problem' contains an image"):
        built(write_rows([{"problem": parts, "answer": "1"}]))
    with pytest.raises(UsageError, match="message 1 of the column 'problem' must have a role"):
        built(write_rows([{"problem": parts[:1], "answer": "1"}]))


def test_pictures_that_are_linked_are_told(write_rows: Write) -> None:
    linked = ["![](https://a.b/c.png) Area?", '<img src="c.png"/> Area?', "5![1](2"]
    notes = built(write_rows([{"problem": text, "answer": "1"} for text in linked])).notes
    assert notes == ("2 of 3 questions have the URL of an image in the text: the model sees the URL, not the image",)
