"""Cards of 2025 and 2026 whose rows could not be read: each against a local hub that holds made-up rows of its form.

For: harness.benchmarks.card, harness.benchmarks.drafts, harness.benchmarks.sources.tables,
harness.benchmarks.sources.hub, harness.benchmarks.row_forms.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks import card, catalog, questions
from harness.benchmarks.card import HubSource
from harness.benchmarks.prompts import BOXED, Example, Prompt
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.hub import DOCUMENT_COLUMNS, with_documents
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError
from harness.core.records import GradeRules, Question
from harness.grading import grade
from tests.benchmarks.hub_server import Dataset, Hub, archive, jsonl, parquet
from tests.grading import given
from tests.pins.held import read_pins
from tests.pins.test_pinned_cards import CARDS

Rows = list[dict[str, Any]]


def stored(name: str, rows: Rows) -> bytes:
    return (
        parquet(rows)
        if name.endswith(".parquet")
        else json.dumps(rows).encode()
        if name.endswith(".json")
        else jsonl(rows)
    )


PINNED = read_pins(CARDS)
ON_HUB = [
    name
    for name in PINNED
    if isinstance(source := catalog.load(name).source, HubSource)
    and not source.documents
    and not any(ending in str(source.files) for ending in (".zip", ".csv"))
]


@pytest.mark.parametrize("name", ON_HUB)
def test_a_card_reads_its_rows_from_the_hub_as_from_a_file(hub: Hub, tmp_path: Path, name: str) -> None:
    """The pinned rows, each in the file of its configuration; of the files that a card names, as many as have rows."""
    shipped, rows = catalog.load(name), PINNED[name]["rows"]
    source = shipped.source
    assert isinstance(source, HubSource)
    configs = source.config[:1]
    if column := source.config_column:
        configs = tuple(dict.fromkeys(row[column] for row in rows))
    source = source.model_copy(update={"config": configs, "files": source.files[: len(rows)]})
    paths = source.files or (f"{'{config}' if configs else 'data'}/{source.split}-00000-of-00001.parquet",)
    files: dict[str, Rows] = {}
    for number, row in enumerate(rows):
        config = str(row[column]) if column else "".join(configs)
        path = paths[number % len(paths)].replace("{config}", config)
        files.setdefault(path, []).append({key: value for key, value in row.items() if key != column})
    described = [
        {"config_name": config, "data_files": [{"split": source.split, "path": [f for f in files if config in f]}]}
        for config in configs or ("data",)
    ]
    hub.datasets[source.id] = Dataset(
        {source.revision or "c" * 40: {file: stored(file, held) for file, held in files.items()}},
        configs=[] if source.files else described,
    )
    of_hub = shipped.model_copy(update={"source": source})
    if shipped.questions is not None:
        with pytest.raises(UsageError, match=f"the card '{name}' specifies {shipped.questions}"):
            questions.build(of_hub)
    built = questions.build(of_hub.model_copy(update={"questions": None, "checksum": None, "answers_checksum": None}))
    assert sorted(map(content, built.questions)) == sorted(map(content, made(name, rows, tmp_path)))


def content(question: Question) -> tuple[str, ...]:
    """What the rows decide of a question, in texts."""
    return question.question_id, question.kind, *question.references, *question.choices, question.last_turn


def made(name: str, rows: Rows, tmp_path: Path) -> list[Question]:
    (tmp_path / "rows.jsonl").write_bytes(stored("rows.jsonl", rows))
    return [*questions.build(catalog.load(name).with_data(str(tmp_path / "rows.jsonl"))).questions]


PAIR: dict[str, Any] = {"input": [[1, 0]], "output": [[0], [1]]}
IFEVAL: dict[str, Any] = {"key": 7, "prompt": "Write 300 words.", "instruction_id_list": ["a:b", "c:d"]}
SOLUTION = {"header": ["House", "Name"], "rows": [["1"]]}


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        *(
            (
                "arc_agi_1",
                {"id": "a", "train": [], "test": [PAIR | {"input": grid}]},
                "does not have the row form arc: Expected",
            )
            for grid in ([[1, 10]], [[]], [1], [["1"]])
        ),
        (
            "ifeval",
            IFEVAL | {"kwargs": [{}]},
            "does not have the row form instructions: .*2 instructions but arguments for 1",
        ),
        ("ruler_4k", {"question": "Which?", "answer": []}, "must have a question"),
        ("zebralogic", {"id": "z", "puzzle": "p", "solution": SOLUTION}, "rows differ in length from the header"),
    ],
)
def test_a_row_of_another_form_is_refused(name: str, row: dict[str, Any], message: str, tmp_path: Path) -> None:
    """What becomes of rows in their form is pinned (`tests.pins.test_pinned_cards`)."""
    with pytest.raises(UsageError, match=message):
        made(name, [row], tmp_path)


def test_a_task_of_grids_is_a_question_for_each_of_its_tests(tmp_path: Path) -> None:
    pinned = tmp_path / "tasks.json"
    pinned.write_text(json.dumps({"train": {}, "eval": {"00a": {"train": [PAIR, PAIR], "test": [PAIR, PAIR]}}}))
    built = questions.build(catalog.load("arc_agi_1").with_data(str(pinned), "eval"))
    assert {q.question_id: q.references for q in built.questions} == dict.fromkeys(("00a_0", "00a_1"), ("[[0], [1]]",))


def test_instructions_leave_empty_arguments_out(tmp_path: Path) -> None:
    (question,) = made("ifbench", [IFEVAL | {"kwargs": [{"n": 300, "m": None}, None]}], tmp_path)
    assert json.loads(question.references[0]) == [["a:b", {"n": 300}], ["c:d", {}]]


def test_needles_of_questions_are_known_by_their_prompt(tmp_path: Path) -> None:
    """RULER's program writes no task into its rows."""
    for prompt, how in (
        ("Text.", "all"),
        ("Answer the question based on the given documents. Question: Which?", "any"),
    ):
        (question,) = made("ruler_4k", [{"index": 0, "input": prompt, "outputs": ["17", "seventeen"]}], tmp_path)
        assert json.loads(question.references[0]) == {how: ["17", "seventeen"]}


TURNS = [{"role": "user", "content": "A poem."}, {"role": "assistant", "content": "Roses."}]
LAST = {"role": "user", "content": "Prepend x7Q to the 1st poem."}


def test_a_text_that_begins_as_a_conversation_is_a_text(tmp_path: Path) -> None:
    text = '[{"role": "user"}]\nHow many messages are in this JSON?'
    (question,) = made("graphwalks", [{"prompt": text, "answer_nodes": [], "problem_type": "bfs"}], tmp_path)
    assert (question.messages[-1].content, question.references) == (text, ("[]",))


@pytest.mark.parametrize(
    ("messages", "how", "expected"),
    [
        ([*TURNS, LAST], {}, [*TURNS, LAST | {"content": "Prepend x7Q to the 1st poem.\n" + BOXED}]),
        ([*TURNS, LAST], {"prompt": "qwen_boxed"}, [{"role": "system", "content": BOXED}, *TURNS, LAST]),
        ([*TURNS, LAST], {"templated": False}, "rows.jsonl:1 is a conversation, which needs an API with a chat"),
        (
            [{"role": "system", "content": "Be short."}, *TURNS, LAST],
            {"prompt": Prompt(name="one", examples=(Example(question="Q", answer="A"),))},
            [
                {"role": "system", "content": "Be short."},
                LAST | {"content": "Q"},
                TURNS[1] | {"content": "A"},
                *TURNS,
                LAST,
            ],
        ),
        (
            [{"role": "system", "content": "Be short."}, LAST],
            {"prompt": "qwen_boxed"},
            "begins with a system message, but",
        ),
        (TURNS, {}, "rows.jsonl:1: the column 'messages' must end with a user message"),
        (
            [LAST | {"role": "tool"}],
            {},
            "message 1 of the column 'messages' must have a role (system, user, assistant, tool)",
        ),
        ([LAST | {"content": [{"type": "text"}]}], {}, "and content that is a string"),
        ([], {}, "must be a question or a list of messages, found []"),
    ],
)
def test_a_file_may_have_a_column_of_messages(
    messages: list[Any], how: dict[str, Any], expected: list[Any] | str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"messages": messages, "answer": "4"}))
    if isinstance(expected, str):
        with pytest.raises(UsageError, match=re.escape(expected)):
            questions.build(card.from_file(str(path)), **how)
        return
    (asked,) = questions.build(card.from_file(str(path)), **how).questions
    assert [{"role": m.role, "content": m.content} for m in asked.messages] == expected


NODES = "Some nodes.\n\nFinal Answer: [{}]"


@pytest.mark.parametrize(
    ("reference", "verifier", "reply", "parts"),
    [
        ("x7Qone two", "repeated", "x7Qone two", 10_000),
        ("x7Qone two", "repeated", "one two", 0),
        ("x7Qone two", "repeated", "x7Qone", 6_000),
        ("x7Qone two", "repeated", "", 0),
        (["ab", "cd"], "listed", NODES.format("cd, ab"), 10_000),
        (["ab", "cd"], "listed", NODES.format("cd"), 6_666),
        (["ab", "cd"], "listed", NODES.format("ef"), 0),
        (["ab", "cd"], "listed", "Final Answer: [ab, cd]\nThat is all.", 0),
        ([], "listed", NODES.format(""), 10_000),
        ([], "listed", "None.", 0),
    ],
)
def test_a_repeated_text_and_a_list_of_nodes_count_by_their_fraction(
    reference: Any, verifier: str, reply: str, parts: int
) -> None:
    rules = GradeRules(grader=f"harness.grading.verifiers.needles:{verifier}", whole_reply=True)
    text = reference if isinstance(reference, str) else json.dumps(reference)
    asking = given.question(text, kind="text", rules=rules)
    asking.metadata["random_string_to_prepend"] = "x7Q"
    judged = grade(asking, given.sample(reply))
    right = "correct" if parts == 10_000 else "wrong" if reply else "no_answer"
    assert (judged.verdict, judged.parts) == (right, (parts, 10_000))


def test_the_documents_of_a_row_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "texts.zip"
    packed.write_bytes(archive({"c/s/a.txt": "x" * 60, "c/s/b.txt": "y" * 40}))

    def documents_of(names: str) -> Any:
        row = Row("row 1", dict(zip(DOCUMENT_COLUMNS, ("c", "s", names), strict=True)))
        return next(with_documents([row], packed, "texts.zip")).value["documents"]

    monkeypatch.setattr(tables, "MAX_FIELD_CHARS", 100)
    assert documents_of("a.txt;b.txt") == ["x" * 60, "y" * 40]
    packed.write_bytes(archive({"c/s/a.txt": "x", "old/c/s/a.txt": "y"}))
    with pytest.raises(UsageError, match=r"row 1: texts.zip has 2 documents 'c/s/a.txt' in different folders"):
        documents_of("a.txt")
    packed.write_bytes(archive({"c/s/a.txt": "x" * 60}))
    with pytest.raises(UsageError, match="row 1: its documents have more than 100 characters in total"):
        documents_of("a.txt;a.txt")


def test_the_documents_of_a_row_stand_before_its_question_in_the_order_of_the_row(hub: Hub) -> None:
    shipped = catalog.load("aa_lcr").model_copy(update={"questions": None})
    assert isinstance(shipped.source, HubSource)
    assert shipped.source.revision
    table = (
        "document_category,document_set_id,question_id,question,answer,data_source_filenames\n"
        'Legal,set1,1,Which?,"One, 2",b.txt;Café.txt\n'
    )
    decomposed = unicodedata.normalize("NFD", "lcr/Legal/set1/Café.txt")

    def publish(members: dict[str, str]) -> None:
        files = {"AA-LCR_Dataset.csv": table.encode(), "extracted_text/AA-LCR_extracted-text.zip": archive(members)}
        hub.datasets[shipped.source.id] = Dataset({shipped.source.revision: files})  # type: ignore[union-attr, dict-item]

    publish({"lcr/Legal/set1/b.txt": "second"})
    with pytest.raises(UsageError, match=r"has no document 'Legal/set1/Café.txt'"):
        questions.build(shipped)
    publish({decomposed: "first", "lcr/Legal/set1/b.txt": "second"})
    shutil.rmtree(os.environ["HF_HUB_CACHE"])
    (built_question,) = questions.build(shipped).questions
    assert built_question.references == ("One, 2",)
    assert built_question.messages[-1].content.startswith(
        "BEGIN INPUT DOCUMENTS\n\nBEGIN DOCUMENT 1:\nsecond\nEND DOCUMENT 1\n\nBEGIN DOCUMENT 2:\nfirst\nEND DOCUMENT 2"
    )
    assert built_question.messages[-1].content.endswith("START QUESTION\n\nWhich?\n\nEND QUESTION")


def test_the_languages_of_one_problem_are_one_cluster(tmp_path: Path) -> None:
    rows = [{"q": f"{n}?", "a": n, "id": f"low-{language}-{n}"} for language in ("de", "zh") for n in (0, 7)]
    clustered = own(tmp_path, rows, cluster_key="id", cluster_after="-")
    assert [question.metadata["cluster"] for question in questions.build(clustered).questions] == ["0", "7", "0", "7"]
    alone = own(tmp_path, rows, cluster_key="id")
    assert len({question.metadata["cluster"] for question in questions.build(alone).questions}) == 4
    assert catalog.load("polymath_top").cluster_after == "-"
    for key in ("cluster_after", "cluster_until"):
        with pytest.raises(UsageError, match=f"`{key}` requires `cluster_key`"):
            own(tmp_path, rows, **{key: "-"})


def test_the_variants_of_one_problem_are_one_cluster(tmp_path: Path) -> None:
    rows = [{"q": f"{n}?", "a": 1, "id": name} for n, name in enumerate(("2024_I_4_1", "2024_I_4_2", "alone"))]
    varied = own(tmp_path, rows, cluster_key="id", cluster_until="_")
    assert [question.metadata["cluster"] for question in questions.build(varied).questions] == [
        *("2024_I_4", "2024_I_4", "alone")
    ]
    for key in ("twin_of", "original_key", "original_until"):
        with pytest.raises(UsageError, match=f"cards do not have the key '{key}': .*`cluster_key`"):
            own(tmp_path, rows, **{key: "id"})


def test_the_text_of_a_long_context_may_be_long(tmp_path: Path) -> None:
    row = PINNED["longbench_v2"]["rows"][0]
    (question,) = made("longbench_v2", [row | {"context": "word " * 600_000}], tmp_path)
    assert len(question.last_turn) > 3_000_000
    with pytest.raises(UsageError, match="'context' has 32000001 characters; the limit is 32000000"):
        made("longbench_v2", [row | {"context": "x" * 32_000_001}], tmp_path)


def own(tmp_path: Path, rows: Rows, **keys: Any) -> card.Card:
    (tmp_path / "rows.jsonl").write_bytes(stored("rows.jsonl", rows))
    source = {"kind": "file", "path": str(tmp_path / "rows.jsonl")}
    return card.from_mapping(
        {"name": "own", "title": "Own", "source": source, "columns": {"question": "q", "answer": "a"}} | keys,
        where="own",
    )


def test_only_rows_with_the_stated_values_are_questions(tmp_path: Path) -> None:
    plain: Rows = [{"q": f"{n}?", "a": n, "picture": value} for n, value in enumerate([None, "p.png", "", 0])]
    inside: Rows = [{"q": row["q"], "a": row["a"], "more": json.dumps({"picture": row["picture"]})} for row in plain]
    for rows, column in ((plain, "picture"), (inside, "more.picture")):
        built = questions.build(own(tmp_path, rows, only={column: [None, ""]}))
        assert [question.references for question in built.questions] == [("0",), ("2",)]
    for rows, only, message in (
        (plain, {"pictures": [None]}, "has no column 'pictures' for the selection"),
        (plain, {"picture": ["none"]}, "own has no rows"),
        (inside, {"most.picture": [None]}, "has no column 'most.picture' for the selection"),
        *(
            (
                [inside[0], inside[1] | {"more": cell}],
                {"more.picture": [None]},
                "rows.jsonl:2.* has no column 'more.picture'",
            )
            for cell in ("{}", "[1]", "{")
        ),
    ):
        with pytest.raises(UsageError, match=message):
            questions.build(own(tmp_path, rows, only=only))


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
    assert [row.value["id"] for row in tables.stream(path, damaged_rows=1)] == ["1", "3", "4"]
    for counted, message in ((0, "is not valid CSV"), (2, "has 1 damaged rows, but the card specifies 2")):
        with pytest.raises(UsageError, match=message):
            [*tables.stream(path, damaged_rows=counted)]
