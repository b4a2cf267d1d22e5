"""Sets of many configurations: each row knows its own; tables inside an archive; the cards that are made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks import catalog, questions
from harness.benchmarks.card import Card, HubSource, from_mapping
from harness.benchmarks.sources import tables
from harness.benchmarks.sources.hub import read_member
from harness.commands import card_data
from harness.core.errors import UsageError
from tests.benchmarks.hub_server import FIRST, Dataset, Hub, archive

SUBJECTS = ("algebra", "logic")


def table(subject: str, rows: int = 2) -> bytes:
    lines = [f'{n},"{subject}, {n}?",one,two,three,four,{"ABCD"[n % 4]}' for n in range(rows)]
    return "\n".join([",Question,A,B,C,D,Answer", *lines, ""]).encode()


def card(**source: Any) -> Card:
    fields = {"kind": "hub", "id": "someone/exam", "config": list(SUBJECTS), "revision": FIRST, **source}
    columns = {"question": "Question", "answer": "Answer", "metadata": "subject"}
    more = {"choices": {"options": ["A", "B", "C", "D"]}, "kind": "choice", "prompt": "boxed_letter_zh"}
    return from_mapping({"name": "exam", "title": "Exam", "source": fields, "columns": columns, **more}, "exam.yaml")


ZIPPED: dict[str, Any] = {"files": "exam.zip/test/{config}.csv", "config_column": "subject"}


def test_a_row_of_several_configurations_knows_its_own(hub: Hub) -> None:
    hub.datasets["someone/exam"] = Dataset({FIRST: {f"{subject}/test.csv": table(subject) for subject in SUBJECTS}})
    built = questions.build(card(config_column="subject"))
    assert [question.metadata["subject"] for question in built.questions] == ["algebra", "algebra", "logic", "logic"]
    assert "algebra, 0?" in built.questions[0].messages[-1].content
    assert "D) four" in built.questions[0].messages[-1].content
    assert len(questions.build(card(config_column="subject"), filters=["subject=logic"]).questions) == 2


def test_tables_inside_an_archive_are_read_once_and_then_offline(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = archive({f"test/{subject}.csv": table(subject) for subject in SUBJECTS} | {"dev/logic.csv": table("dev")})
    hub.datasets["someone/exam"] = Dataset({FIRST: {"exam.zip": packed}})
    assert card_data.status(card(**ZIPPED)) == "absent"
    built = questions.build(card(**ZIPPED))
    assert [question.metadata["subject"] for question in built.questions] == ["algebra", "algebra", "logic", "logic"]
    assert card_data.status(card(**ZIPPED)) == "here"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub.log.clear()
    assert questions.build(card(**ZIPPED)).dataset_digest == built.dataset_digest
    assert hub.log == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            archive({"test/algebra.csv": table("a")}),
            "someone/exam:exam.zip/test/logic.csv: the archive does not contain",
        ),
        (archive({"test/algebra.csv": table("a"), "test/logic.csv": b"\xff"}), "is not UTF-8"),
        (b"no archive", "cannot read someone/exam:exam.zip/test/algebra.csv"),
        (archive({"test/algebra.csv": table("a", 50)})[:-200], "cannot read someone/exam:exam.zip"),
    ],
)
def test_an_archive_that_is_none_is_one_sentence(hub: Hub, content: bytes, message: str) -> None:
    hub.datasets["someone/exam"] = Dataset({FIRST: {"exam.zip": content}})
    with pytest.raises(UsageError) as refused:
        questions.build(card(**ZIPPED))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_member_unpacks_to_no_more_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bomb.zip").write_bytes(archive({"a.jsonl": b" " * 1_000_000}))
    monkeypatch.setattr(tables, "FREE_UNPACKED_BYTES", 1_000)
    with pytest.raises(UsageError, match="unpacks to more than"):
        read_member(tmp_path / "bomb.zip", "a.jsonl", "bomb.zip/a.jsonl")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"config": [], "config_column": "subject"}, "`config_column` requires `config`"),
        ({"files": "all.csv", "config_column": "subject"}, "`{config}` in every path in `files`"),
        ({"config": [], "files": "{config}.csv"}, "`files` contains `{config}`, so `config` is required"),
    ],
)
def test_a_column_needs_configurations(source: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=r"exam\.yaml: source") as refused:
        card(**source)
    assert message in str(refused.value)


def test_a_letter_names_an_option_by_its_place_also_where_another_option_is_that_letter(hub: Hub) -> None:
    rows = b"Question,A,B,C,D,Answer\nWhich group gives to all?,O,A,B,AB,A\nWhich takes from all?,O,A,B,AB,AB\n"
    hub.datasets["someone/exam"] = Dataset({FIRST: {"algebra/test.csv": rows, "logic/test.csv": table("logic")}})
    built = questions.build(card())
    assert [question.references for question in built.questions][:2] == [("A",), ("D",)]


def test_a_shipped_card_reads_tables_inside_an_archive(hub: Hub) -> None:
    """Made-up rows: the set itself was not to be had."""
    loaded = catalog.load("cmmlu")
    assert isinstance(loaded.source, HubSource)
    packed = archive({f"test/{name}.csv": table(name, 1) for name in loaded.source.config})
    hub.datasets[loaded.source.id] = Dataset({loaded.source.revision or FIRST: {"cmmlu_v1_0_1.zip": packed}})
    built = questions.build(loaded.model_copy(update={"questions": 67})).questions
    assert {q.metadata["subject"]: q.references for q in built} == dict.fromkeys(loaded.source.config, ("A",))
