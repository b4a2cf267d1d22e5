"""Cards of 2025 and 2026 whose rows could not be read: each against a local hub that holds made-up rows of its form.

For: harness.benchmarks.card, harness.benchmarks.drafts, harness.benchmarks.sources.tables,
harness.benchmarks.sources.json_array.
"""

from __future__ import annotations

import io
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import card, catalogue, questions
from harness.benchmarks.card import HubSource
from harness.benchmarks.sources import json_array, tables
from harness.core.errors import UsageError
from tests.benchmarks.hub_server import Dataset, Hub

Rows = list[dict[str, Any]]


class Layout(NamedTuple):
    """A card's data on the hub. files: name → rows. references: what the card must read."""

    files: dict[str, Rows]
    references: list[str]
    kinds: set[str]


def matharena(*answers: str) -> dict[str, Rows]:
    rows = [{"problem_idx": n, "problem": f"Find $x_{n}$.", "answer": text} for n, text in enumerate(answers, 1)]
    return {"data/train-00000-of-00001.parquet": rows}


OPTIONS = {"choice_A": "one", "choice_B": "two", "choice_C": "three", "choice_D": "four"}
GSM = "First 2 + 3 = <<2+3=5>>5.\n#### 1,005"
LAYOUTS = {
    **{
        name: Layout(
            matharena("42", r"\frac{1}{2}", "x^2+1"), ["42", r"\frac{1}{2}", "x^2+1"], {"integer", "expression"}
        )
        for name in (
            "apex",
            "apex_shortlist",
            "arxivmath_dec25",
            "arxivmath_jan26",
            "arxivmath_feb26",
            "arxivmath_mar26",
        )
    },
    "gsm8k_platinum": Layout(
        {"main/test-00000-of-00001.parquet": [{"question": "How many?", "answer": GSM, "cleaning_status": "verified"}]},
        ["1005"],
        {"integer"},
    ),
    "gsm1k": Layout(
        {"data/test-00000-of-00001.parquet": [{"question": "How many?", "answer": "12"}]}, ["12"], {"number"}
    ),
    "gsm_symbolic": Layout(
        {
            "main/test.jsonl": [
                {"id": 0, "instance": 3, "question": "How many?", "answer": GSM, "original_id": 473, "canary": "c"}
                | {"original_question": "How much?", "original_answer": "#### 4"}
            ]
        },
        ["1,005"],
        {"number"},
    ),
    "supergpqa": Layout(
        {
            "SuperGPQA-all.jsonl": [
                {"uuid": "u1", "question": "Which?", "options": ["a", "b", "c"], "answer": "b", "answer_letter": "B"}
                | {"discipline": "Law", "field": "f", "subfield": "s", "difficulty": "hard", "is_calculation": False}
            ]
        },
        ["B"],
        {"choice"},
    ),
    "mmlu_redux": Layout(
        {
            f"{subject}/test-00000-of-00001.parquet": [
                {"question": f"{kind} of {subject}?", "choices": ["a", "b", "c", "d"], "answer": 2, "error_type": kind}
                for kind in ("ok", "wrong_groundtruth")
            ]
            for subject in catalogue.load("mmlu_redux").source.config  # type: ignore[union-attr]
        },
        ["C"] * 57,
        {"choice"},
    ),
    "omni_math": Layout(
        {
            "test.jsonl": [
                {"domain": ["Algebra"], "difficulty": 7.5, "problem": "Find n.", "solution": "…", "answer": "2^{10}"}
                | {"source": "imo"}
            ]
        },
        ["2^{10}"],
        {"expression"},
    ),
    "hle_text": Layout(
        {
            "data/test-00000-of-00001.parquet": [
                {"id": f"h{n}", "question": "Which?", "image": image, "answer": answer, "answer_type": "exactMatch"}
                | {"category": "Math", "raw_subject": "Sets", "rationale": "…"}
                for n, (image, answer) in enumerate(
                    (("", "7"), ("data:image/png;base64,AA", "8"), ("", "Ada Lovelace"))
                )
            ]
        },
        ["7", "Ada Lovelace"],
        {"integer", "text"},
    ),
    "polymath_top": Layout(
        {
            f"{language}/{level}.parquet": [{"id": f"{level}-{language}-0", "question": f"{language}?", "answer": "18"}]
            for language in catalogue.load("polymath_top").source.config  # type: ignore[union-attr]
            for level in ("low", "top")
        },
        ["18"] * 18,
        {"integer"},
    ),
    "longbench_v2": Layout(
        {
            "data.json": [
                {"_id": "l1", "domain": "QA", "sub_domain": "s", "difficulty": "easy", "length": "short", "answer": "C"}
                | {"question": "Who?", "context": "A long text."}
                | OPTIONS
            ]
        },
        ["C"],
        {"choice"},
    ),
}


def stored(name: str, rows: Rows) -> bytes:
    if name.endswith(".parquet"):
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), buffer)
        return buffer.getvalue()
    if name.endswith(".json"):
        return json.dumps(rows).encode()
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_card_reads_the_form_of_its_data_from_the_hub(hub: Hub, name: str) -> None:
    layout = LAYOUTS[name]
    shipped = catalogue.load(name)
    assert isinstance(shipped.source, HubSource)
    commit = shipped.source.revision or "c" * 40
    files = {file: stored(file, rows) for file, rows in layout.files.items()}
    configs = [{"config_name": "default", "data_files": [{"split": shipped.source.split, "path": [*files]}]}]
    hub.datasets[shipped.source.id] = Dataset({commit: files}, configs=[] if shipped.source.config else configs)
    if shipped.questions is not None:
        with pytest.raises(UsageError, match=f"the card '{name}' says {shipped.questions}"):
            questions.build(shipped)
    built = questions.build(shipped.model_copy(update={"questions": None}))
    assert [question.references[0] for question in built.questions] == layout.references
    assert {question.kind for question in built.questions} == layout.kinds


def test_the_languages_of_one_problem_are_one_cluster(tmp_path: Path) -> None:
    rows = [{"q": f"{n}?", "a": n, "id": f"low-{language}-{n}"} for language in ("de", "zh") for n in (0, 7)]
    clustered = own(tmp_path, rows, cluster_key="id", cluster_after="-")
    assert [question.metadata["cluster"] for question in questions.build(clustered).questions] == ["0", "7", "0", "7"]
    alone = own(tmp_path, rows, cluster_key="id")
    assert len({question.metadata["cluster"] for question in questions.build(alone).questions}) == 4
    assert catalogue.load("polymath_top").cluster_after == "-"
    with pytest.raises(UsageError, match="`cluster_after` needs a `cluster_key`"):
        own(tmp_path, rows, cluster_after="-")


def array_of(values: list[Any], random: random.Random) -> bytes:
    text = json.dumps(values, indent=random.choice([None, 1]), ensure_ascii=random.random() < 0.5).encode()
    return random.choice([b"", b"\xef\xbb\xbf \n"]) + text + random.choice([b"", b"\n "])


@given(st.lists(st.recursive(st.none() | st.integers() | st.text('a"\\[]{}, é'), st.lists, max_leaves=5)), st.randoms())
def test_the_elements_of_an_array_are_those_of_the_whole_text(values: list[Any], random: random.Random) -> None:
    text = array_of(values, random)
    for size in (1, 3, 1_000):
        with mock.patch.object(json_array, "SLICE_BYTES", size):
            assert [json.loads(element) for element in json_array.elements(io.BytesIO(text), 10_000)] == values


@pytest.mark.parametrize("text", [b"[1,2", b"[1] [2]", b"[1] x", b'[1] "]"', b'["a]', b"[1}}", b"[" + b"1" * 99])
def test_an_array_that_does_not_end_well_is_refused_after_its_rows(text: bytes) -> None:
    for size in (1, 100):
        with mock.patch.object(json_array, "SLICE_BYTES", size), pytest.raises(json_array.NoArrayError):
            [*json_array.elements(io.BytesIO(text), 50)]


def test_a_list_of_long_texts_is_read_in_the_memory_of_one(tmp_path: Path) -> None:
    row = json.dumps({"problem": "p" * 2_000_000, "answer": 1})
    path = tmp_path / "rows.json"
    path.write_text("[" + ",\n".join([row] * 30) + "]")
    tracemalloc.start()
    try:
        assert sum(len(value["problem"]) for _, value in tables.stream(path)) == 60_000_000
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    path.write_text("[" + row + ', {"problem": }]')
    with pytest.raises(UsageError, match=r"row 2 of .*rows.json is broken JSON"):
        [*tables.stream(path)]


def test_the_text_of_a_long_context_stands_before_its_question_and_may_be_long(tmp_path: Path) -> None:
    row = LAYOUTS["longbench_v2"].files["data.json"][0] | {"context": "word " * 600_000}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    loaded = catalogue.load("longbench_v2").with_data(str(path))
    (question,) = questions.build(loaded).questions
    text = question.messages[-1].content
    assert text.startswith("word word")
    assert len(text) > 3_000_000
    path.write_text(json.dumps(row | {"context": "x" * 32_000_001}) + "\n")
    with pytest.raises(UsageError, match="'context' has 32000001 characters; at most 32000000 are read"):
        questions.build(loaded)


def own(tmp_path: Path, rows: Rows, **keys: Any) -> card.Card:
    (tmp_path / "rows.jsonl").write_bytes(stored("rows.jsonl", rows))
    source = {"kind": "file", "path": str(tmp_path / "rows.jsonl")}
    return card.from_mapping(
        {"name": "own", "title": "Own", "source": source, "columns": {"question": "q", "answer": "a"}} | keys,
        where="own",
    )


def test_only_rows_with_the_stated_values_are_questions(tmp_path: Path) -> None:
    pictures: list[Any] = [None, "p.png", "", 0]
    rows = [{"q": f"{n}?", "a": n, "picture": value} for n, value in enumerate(pictures)]
    built = questions.build(own(tmp_path, rows, only={"picture": [None, ""]}))
    assert [question.references for question in built.questions] == [("0",), ("2",)]
    with pytest.raises(UsageError, match="has no column 'pictures' for the selection"):
        questions.build(own(tmp_path, rows, only={"pictures": [None]}))
    with pytest.raises(UsageError, match="own holds no rows"):
        questions.build(own(tmp_path, rows, only={"picture": ["none"]}))


def test_a_truth_value_is_an_answer_only_where_the_card_expects_structured_ones(tmp_path: Path) -> None:
    rows = [{"q": "Is it?", "a": True}]
    built = questions.build(own(tmp_path, rows, structured_answers=True, kind="auto"))
    assert built.questions[0].references == ("True",)
    with pytest.raises(UsageError, match="must be an answer, found true"):
        questions.build(own(tmp_path, rows, kind="auto"))


DAMAGED = 'id,q,a\n1,"one?",1\n2,"two?\n,"2"\n3,"three?",3\n4,four,4\n'
"""The second question's quotation mark is not closed, so that its row runs into the third."""


def test_the_damaged_rows_of_a_pinned_table_are_left_out_if_the_card_counts_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(DAMAGED)
    rows = tables.read(path, damaged_rows=1)
    assert [row.value["id"] for row in rows] == ["1", "3", "4"]
    with pytest.raises(UsageError, match="is no valid CSV"):
        tables.read(path)
    with pytest.raises(UsageError, match="has 1 damaged rows, but the card says 2"):
        tables.read(path, damaged_rows=2)


def test_the_damaged_row_of_the_olympiad_answers_is_the_one_that_the_card_leaves_out(shared_data: Path) -> None:
    loaded = catalogue.load("imo_answerbench").with_data(str(shared_data / "imo_answerbench_v2.jsonl"))
    built = questions.build(loaded)
    # The shared copy was read without a check of the quotation marks: the row's answer is the next column.
    (damaged,) = [question for question in built.questions if question.references == ("Algebra",)]
    assert damaged.question_id == "imo-bench-algebra-036"
    assert len(built.questions) == 400
