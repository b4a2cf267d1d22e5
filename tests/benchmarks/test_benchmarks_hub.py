"""Data sets of the hub: pinned, cached, offline, gated, mirrored; against a server that speaks its protocol. Sets of
many configurations: each row knows its own; tables inside an archive; the cards that are made of them.

For: harness.benchmarks.sources.columnar, harness.benchmarks.sources.tables.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import json
import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from harness.benchmarks import catalog, questions
from harness.benchmarks.card import Card, HubSource, from_file, from_mapping
from harness.benchmarks.sources import hub_files, readers, tables
from harness.benchmarks.sources.hub import read_member
from harness.commands import card_data
from harness.core import installation
from harness.core.errors import UsageError
from harness.core.installation import hub_cache
from tests.benchmarks.hub_server import FIRST, SECOND, Dataset, Hub, archive, jsonl, parquet

ROWS = [{"problem": f"What is {n} + 1?", "answer": n + 1, "id": f"q{n}"} for n in range(4)]


def card(revision: str | None = FIRST, **changes: Any) -> Card:
    source = {"kind": "hub", "id": "someone/sums", "split": "train", "revision": revision}
    source |= {name: changes.pop(name) for name in ("config", "split", "files", "id") if name in changes}
    columns = {"question": "problem", "answer": "answer", "id": "id"}
    return from_mapping({"name": "sums", "title": "Sums", "source": source, "columns": columns} | changes, "test")


def publish(hub: Hub, files: dict[str, bytes], **more: Any) -> Dataset:
    dataset = hub.datasets["someone/sums"] = Dataset({FIRST: files}, **more)
    return dataset


def ids(built: questions.QuestionSet) -> list[str]:
    return [question.question_id for question in built.questions]


@pytest.mark.parametrize(
    "files",
    [
        {"data/train-00000-of-00001.parquet": parquet(ROWS)},
        {f"data/train-0000{n}-of-00002.parquet": parquet(ROWS[2 * n : 2 * n + 2]) for n in (0, 1)},
        {"train.jsonl": jsonl(ROWS), "README.md": b"# Sums\n"},
        {"sums_problems.parquet": parquet(ROWS)},
        {"train.jsonl": jsonl(ROWS), "train.parquet": parquet(ROWS)},
        {"train/0000.parquet": parquet(ROWS), "test/0000.parquet": parquet(ROWS[:1])},
    ],
    ids=["parquet", "shards", "jsonl", "no split named", "two formats", "a folder a split"],
)
def test_the_usual_layouts_are_read_whole_and_once(hub: Hub, files: dict[str, bytes]) -> None:
    publish(hub, files)
    built = questions.build(card())
    assert (ids(built), built.data_file) == (["q0", "q1", "q2", "q3"], None)


def test_the_sets_own_description_of_its_configurations_decides(hub: Hub) -> None:
    described = [
        {"config_name": "easy", "data_files": [{"split": "test", "path": "rows/a*.jsonl"}]},
        {"config_name": "hard", "data_files": [{"split": "test", "path": ["rows/b.jsonl"]}]},
    ]
    publish(hub, {"rows/a.jsonl": jsonl(ROWS[:1]), "rows/b.jsonl": jsonl(ROWS[1:])}, configs=described)
    assert ids(questions.build(card(config="hard", split="test"))) == ["q1", "q2", "q3"]
    assert ids(questions.build(card(config=["easy", "hard"], split="test"))) == ["q0", "q1", "q2", "q3"]
    for config, split, message in (
        ((), "test", "several configurations; choose one .*: easy, hard"),
        ("hrad", "test", r"no configuration 'hrad'.*Did you mean hard"),
        ("hard", "train", "no split 'train'; its splits are test"),
    ):
        with pytest.raises(UsageError, match=message):
            questions.build(card(config=config, split=split))


def copied_file(made: Card) -> Path:
    assert isinstance(made.source, HubSource)
    return readers.copied_file(made, made.source)


@pytest.fixture
def to_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Calling it moves to another machine, without a network and with caches that hold only copies of our files."""

    def move() -> None:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
        shutil.copytree(installation.cache_folder(), tmp_path / "other" / installation.cache_folder().name)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))

    return move


@pytest.mark.parametrize("revision", [FIRST, None])
@pytest.mark.parametrize("pictures", [False, True])
def test_a_fetched_set_is_one_file_that_another_machine_reads(
    hub: Hub, to_offline: Callable[[], None], revision: str | None, pictures: bool
) -> None:
    rows: list[dict[str, Any]] = [{**row, "picture": b"\x89PNG\xff"} for row in ROWS] if pictures else ROWS
    publish(hub, {f"data/train-0000{n}-of-00002.parquet": parquet(rows[2 * n : 2 * n + 2]) for n in (0, 1)})
    fetched = card_data.fetch(card(revision))
    pinned = card(revision, checksum=fetched.questions.rows_digest)
    assert fetched.to_copy is not None
    content = fetched.to_copy.read_bytes()
    to_offline()
    there = copied_file(pinned)
    there.unlink()
    by_hand = rf"run `harness benchmarks fetch sums` .* copy {there.name} to {re.escape(str(there.parent))}"
    with pytest.raises(UsageError, match=f"HF_HUB_OFFLINE is set; {by_hand}, set"):
        questions.build(pinned)
    assert card_data.status(pinned) == "absent"
    there.write_bytes(content)
    assert card_data.status(pinned) == "here"
    built = questions.build(pinned)
    assert (ids(built), built.dataset_digest) == (["q0", "q1", "q2", "q3"], fetched.questions.dataset_digest)
    with pytest.raises(UsageError, match=rf"runs use the copy at {re.escape(str(there))}; to replace it, {by_hand}"):
        card_data.fetch(pinned)
    damaged = {
        "has rows with checksum [^;]*;": content.replace(b"What is 2", b"What is 5"),
        r"jsonl:4 is not valid JSON.*": content[:-9],
        "jsonl has no rows": b"",
        "jsonl:1 has no column 'problem'.*": b'{"task": "Another set"}',
    }
    for problem, damage in damaged.items():
        there.write_bytes(damage)
        with pytest.raises(UsageError, match=rf"{problem}.* copy {re.escape(str(there))} again from a machine"):
            questions.build(pinned)


@pytest.mark.parametrize(
    "changes",
    [{"id": "me/sums"}, {"split": "test"}, {"config": "hard"}, {"revision": SECOND}, {"files": ["train.jsonl"]}],
    ids=str,
)
def test_each_source_reads_its_own_copy(hub: Hub, to_offline: Callable[[], None], changes: dict[str, Any]) -> None:
    publish(hub, {"train.jsonl": jsonl(ROWS)})
    card_data.fetch(card())
    to_offline()
    assert len(questions.build(card()).questions) == len(ROWS)
    with pytest.raises(UsageError, match="is not in the cache and HF_HUB_OFFLINE is set"):
        questions.build(card(**changes))


@pytest.mark.parametrize("name", ["../../samples", "/{folder}/samples", "..", "CON", "a/" * 49])
def test_a_cards_name_leads_no_file_out_of_the_cache(hub: Hub, tmp_path: Path, name: str) -> None:
    publish(hub, {"train.jsonl": jsonl(ROWS)})
    victim = tmp_path / "samples.jsonl"
    victim.write_text("mine")
    to_copy = card_data.fetch(card(name=name.format(folder=tmp_path)[:100])).to_copy
    assert to_copy is not None
    assert to_copy.resolve().parent == installation.cache_folder().resolve() / "datasets"
    assert victim.read_text() == "mine"


def test_a_span_of_dates_reads_the_copied_file_of_the_whole_set(hub: Hub, to_offline: Callable[[], None]) -> None:
    def dated(*restriction: str) -> Card:
        files = {"files": ["old.jsonl", "new.jsonl"], "releases": {"v1": 1}, "date_column": "day"}
        return card(**files).restrict_to(restriction) if restriction else card(**files)

    rows = [row | {"day": f"2024-01-0{row['answer']}"} for row in ROWS]
    publish(hub, {"old.jsonl": jsonl(rows[:2]), "new.jsonl": jsonl(rows[2:])})
    to_copy = card_data.fetch(dated()).to_copy
    assert to_copy is not None
    content = to_copy.read_bytes()
    to_copy.write_bytes(jsonl(rows[:2]))
    assert card_data.fetch(dated("2024-01-02..")).to_copy == to_copy
    assert to_copy.read_bytes() == content, "the hub's rows of all dates take the place of a copy"
    to_offline()
    assert ids(questions.build(dated("2024-01-02..2024-01-03"))) == ["q1", "q2"]
    with pytest.raises(UsageError, match="run `harness benchmarks fetch sums@v1` on a machine"):
        questions.build(dated("v1"))


@pytest.mark.parametrize("bound", ["MAX_DATA_BYTES", "MAX_ROWS"])
def test_a_set_that_no_file_can_hold_is_copied_as_a_folder(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to_offline: Callable[[], None], bound: str
) -> None:
    publish(hub, {"train.jsonl": jsonl(ROWS)})
    exact = {"MAX_DATA_BYTES": len(jsonl(ROWS).replace(b": ", b":").replace(b", ", b",")), "MAX_ROWS": len(ROWS)}[bound]
    monkeypatch.setattr(card_data, bound, exact)
    assert card_data.fetch(card()).to_copy == copied_file(card())
    copied_file(card()).unlink()
    monkeypatch.setattr(card_data, bound, exact - 1)
    folder = card_data.fetch(card()).to_copy
    assert folder is not None
    assert folder.is_dir()
    assert list(copied_file(card()).parent.iterdir()) == []
    to_offline()
    shutil.copytree(folder, tmp_path / "empty" / folder.name, symlinks=True)
    assert ids(questions.build(card())) == ["q0", "q1", "q2", "q3"]


def test_what_another_tool_put_into_the_cache_is_read_offline(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(hub, {"train.jsonl": jsonl(ROWS)})
    huggingface_hub.hf_hub_download(
        "someone/sums", "train.jsonl", repo_type="dataset", endpoint=hub.url, cache_dir=hub_cache()
    )
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for revision in (FIRST, None):
        assert ids(questions.build(card(revision))) == ["q0", "q1", "q2", "q3"]


def test_a_broken_download_resumes_or_fails_in_one_sentence(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    publish(hub, {"train.jsonl": b"\n"}, broken_off=99)
    with pytest.raises(UsageError, match=r"not in the cache and .* cannot be reached"):
        questions.build(card())
    assert not [path for path in hub_cache().rglob("*.jsonl*") if path.is_file()]
    capfd.readouterr()
    publish(hub, {"train.jsonl": jsonl(ROWS)}, broken_off=1)
    assert ids(questions.build(card())) == ["q0", "q1", "q2", "q3"]
    assert capfd.readouterr() == ("", "")


def test_an_unpinned_set_is_read_offline_or_the_options_are_listed(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(hub, {"train.jsonl": jsonl(ROWS)})
    questions.build(card(revision=None))
    monkeypatch.setenv("HF_ENDPOINT", "http://user:secret@127.0.0.1:9")
    built = questions.build(card(revision=None))
    assert any("cannot be reached" in note and FIRST in note for note in built.notes)
    shutil.rmtree(hub_cache())
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:9 cannot be reached; .*HF_ENDPOINT.*as `data`") as caught:
        questions.build(card())
    assert "secret" not in str(caught.value)


def test_a_gated_set_says_where_to_ask_and_how_to_give_the_token(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(hub, {"train.jsonl": jsonl(ROWS)}, gated=True)
    with pytest.raises(UsageError, match=r"gated: accept its terms at .*/datasets/someone/sums .*HF_TOKEN"):
        questions.build(card())
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    hub.approved = False
    with pytest.raises(UsageError, match="gated: accept its terms") as caught:
        questions.build(card())
    assert "hf_right" not in str(caught.value)
    hub.approved = True
    assert len(questions.build(card()).questions) == 4


def test_the_token_does_not_follow_a_redirect_to_another_host(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(hub, {"train.jsonl": jsonl(ROWS)}, gated=True, redirected=True)
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    assert len(questions.build(card()).questions) == 4
    elsewhere = [token for _, path, token in hub.log if path.startswith("/cdn/")]
    assert elsewhere
    assert set(elsewhere) == {None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"revision": SECOND}, "no longer has the revision b{40}, or a file in it"),
        ({"id": "someone/other"}, "has no data set someone/other, or it is private"),
        ({"files": "rows.jsonl"}, "has no file 'rows.jsonl'; it contains README.md, train.jsonl"),
        ({"files": "../../../train.jsonl"}, "has no file"),
        ({"split": "test"}, "no split 'test'; it contains train.jsonl"),
        ({"config": "main"}, "no configuration 'main'; it contains train.jsonl"),
        ({"questions": 5}, "has 4 questions, but the card 'sums' specifies 5"),
        ({"checksum": "0" * 64}, "rows with checksum [0-9a-f]{64}, but the card 'sums' specifies 0{64}"),
        ({"answers_checksum": "0" * 64}, "that differ from those in the card 'sums'"),
    ],
)
def test_missing_or_unexpected_data_are_one_sentence(hub: Hub, change: dict[str, Any], message: str) -> None:
    publish(hub, {"train.jsonl": jsonl(ROWS), "README.md": b""})
    questions.build(card())  # a path that leaves the data set is not read from the cache either
    with pytest.raises(UsageError, match=message):
        questions.build(card(**change))
    hub.broken = 418
    with pytest.raises(UsageError, match="returned HTTP 418 for someone/"):
        questions.build(card(None, id=change.get("id", "someone/sums")))


def test_an_hf_address_is_read_as_data_without_a_card(hub: Hub) -> None:
    publish(hub, {"train.jsonl": jsonl(ROWS), "more/test.csv": b"problem,answer\nWhat is 2 + 2?,4\n"})
    assert len(questions.build(from_file("hf://datasets/someone/sums", answer_key="answer")).questions) == 4
    loaded = from_file(f"hf://datasets/someone/sums@{FIRST}/more/test.csv")
    assert questions.build(loaded).questions[0].references == ("4",)
    assert card_data.status(loaded) == "here"
    assert card_data.status(from_file(f"hf://datasets/someone/sums@{FIRST}/more/none.csv")) == "absent"
    for address, message in (
        ("someone", "must be of the form hf://datasets/OWNER/NAME"),
        ("datasets/someone/sums@main/train.jsonl", "must be a 40-digit commit hash"),
    ):
        with pytest.raises(UsageError, match=message):
            questions.build(from_file(f"hf://{address}"))


DEEP, SEVERAL = ["data/a.jsonl", "data/old/b.jsonl", "c.jsonl"], ["main/test.parquet", "socratic/test.parquet"]


def test_globs_stay_inside_their_folder_and_folders_are_not_mixed() -> None:
    for path, chosen in (("data/*.jsonl", DEEP[:1]), ("data/**", DEEP[:2])):
        described = [{"config_name": "default", "data_files": [{"split": "test", "path": path}]}]
        assert hub_files.choose(DEEP, described, None, "test", "x/y") == chosen
    assert hub_files.choose(SEVERAL, [], "main", "test", "x/y") == SEVERAL[:1]
    for files, config, message in (
        (SEVERAL, None, "several configurations; choose one"),
        *(
            (
                [f"{i}/test.jsonl" for i in range(n)],
                "main",
                rf"no configuration 'main'; it contains .*/test\.jsonl{more}\Z",
            )
            for n, more in ((12, ""), (14, " and 2 more"))
        ),
    ):
        with pytest.raises(UsageError, match=message):
            hub_files.choose(files, [], config, "test", "x/y")


TRAIN = [{"question": f"{n} + 2?", "answer": f"It is {n + 2}.\n#### {n + 2}"} for n in range(60)]


def asked(prompt: str, rows: Path, **selection: Any) -> dict[str, list[tuple[str, str]]]:
    """Last turn → the messages before it, of GSM8K's card with these rows."""
    built = questions.build(catalog.load("gsm8k").with_data(str(rows)), prompt=prompt, **selection)
    return {q.last_turn: [(m.role, m.content) for m in q.messages[:-1]] for q in built.questions}


@pytest.mark.parametrize(
    ("prompt", "form"),
    [
        ("lm_eval", "Question: {}\nAnswer:"),
        (
            "inferencex",
            "Question: {}\nEnd your response with the answer on the last line, formatted as: #### [number]\nAnswer:",
        ),
    ],
)
def test_examples_come_from_the_train_split_as_in_lm_eval(hub: Hub, tmp_path: Path, prompt: str, form: str) -> None:
    source = catalog.load("gsm8k").examples
    assert source
    assert source.revision
    files = {"main/train-00000-of-00001.parquet": parquet(TRAIN)}
    hub.datasets["openai/gsm8k"] = Dataset({source.revision: files})
    (rows := tmp_path / "rows.jsonl").write_bytes(jsonl(TRAIN[:7]))
    built = asked(prompt, rows)
    # lm_eval/api/samplers.py, ContextSampler: one generator a task, five rows a question, in the order of the split.
    generator = random.Random(1234)
    for row in TRAIN[:7]:
        drawn = generator.sample(TRAIN, 5)
        turns = [turn for e in drawn for turn in (("user", form.format(e["question"])), ("assistant", e["answer"]))]
        assert built[form.format(row["question"])] == turns
    assert asked(prompt, rows, limit=2) == dict([*built.items()][:2])
    last = questions.build(catalog.load("gsm8k").with_data(str(rows))).ids[-1]
    assert asked(prompt, rows, ids=[last]) == dict([*built.items()][-1:])


def test_what_a_prompt_draws_from_is_part_of_a_run_and_must_be_enough(hub: Hub) -> None:
    prompts = [{"name": "shots", "template": "{question}!", "drawn": 3}]
    more = {"prompts": prompts, "prompt": "shots"}
    examples = {"kind": "hub", "id": "someone/more", "split": "train", "revision": FIRST}
    publish(hub, {"train.jsonl": jsonl(ROWS)})
    texts = [{"problem": f"{n}?", "answer": str(n)} for n in range(4)]
    digests = set()
    for rows in (texts, texts[::-1]):
        hub.datasets["someone/more"] = Dataset({FIRST: {"train.jsonl": jsonl(rows)}})
        shutil.rmtree(hub_cache(), ignore_errors=True)
        digests.add(questions.build(card(examples=examples, **more)).template_digest)
    assert len(digests) == 2
    for rows, reason in ((texts[:2], "someone/more has 2 rows, too few for 3 examples"), (ROWS, "must both be text")):
        hub.datasets["someone/more"] = Dataset({FIRST: {"train.jsonl": jsonl(rows)}})
        shutil.rmtree(hub_cache(), ignore_errors=True)
        with pytest.raises(UsageError, match=reason):
            questions.build(card(examples=examples, **more))
    with pytest.raises(UsageError, match="a prompt with `drawn` requires `examples`"):
        card(**more)


SUBJECTS = ("algebra", "logic")


def table(subject: str, rows: int = 2) -> bytes:
    lines = [f'{n},"{subject}, {n}?",one,two,three,four,{"ABCD"[n % 4]}' for n in range(rows)]
    return "\n".join([",Question,A,B,C,D,Answer", *lines, ""]).encode()


def card_of_subjects(**source: Any) -> Card:
    fields = {"kind": "hub", "id": "someone/exam", "config": list(SUBJECTS), "revision": FIRST, **source}
    columns = {"question": "Question", "answer": "Answer", "metadata": "subject"}
    more = {"choices": {"options": ["A", "B", "C", "D"]}, "kind": "choice", "prompt": "boxed_letter_zh"}
    return from_mapping({"name": "exam", "title": "Exam", "source": fields, "columns": columns, **more}, "exam.yaml")


ZIPPED: dict[str, Any] = {"files": "exam.zip/test/{config}.csv", "config_column": "subject"}


def test_a_row_of_several_configurations_knows_its_own(hub: Hub) -> None:
    hub.datasets["someone/exam"] = Dataset({FIRST: {f"{subject}/test.csv": table(subject) for subject in SUBJECTS}})
    built = questions.build(card_of_subjects(config_column="subject"))
    assert [question.metadata["subject"] for question in built.questions] == ["algebra", "algebra", "logic", "logic"]
    assert "algebra, 0?" in built.questions[0].messages[-1].content
    assert "D) four" in built.questions[0].messages[-1].content
    assert len(questions.build(card_of_subjects(config_column="subject"), filters=["subject=logic"]).questions) == 2


def test_tables_inside_an_archive_are_read_once_and_then_offline(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = archive({f"test/{subject}.csv": table(subject) for subject in SUBJECTS} | {"dev/logic.csv": table("dev")})
    hub.datasets["someone/exam"] = Dataset({FIRST: {"exam.zip": packed}})
    assert card_data.status(card_of_subjects(**ZIPPED)) == "absent"
    built = questions.build(card_of_subjects(**ZIPPED))
    assert [question.metadata["subject"] for question in built.questions] == ["algebra", "algebra", "logic", "logic"]
    assert card_data.status(card_of_subjects(**ZIPPED)) == "here"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub.log.clear()
    assert questions.build(card_of_subjects(**ZIPPED)).dataset_digest == built.dataset_digest
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
        questions.build(card_of_subjects(**ZIPPED))
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
        card_of_subjects(**source)
    assert message in str(refused.value)


def test_a_letter_names_an_option_by_position_and_not_by_its_text(hub: Hub) -> None:
    rows = b"Question,A,B,C,D,Answer\nWhich group gives to all?,O,A,B,AB,A\nWhich takes from all?,O,A,B,AB,AB\n"
    hub.datasets["someone/exam"] = Dataset({FIRST: {"algebra/test.csv": rows, "logic/test.csv": table("logic")}})
    built = questions.build(card_of_subjects())
    assert [question.references for question in built.questions][:2] == [("A",), ("D",)]


def test_a_shipped_card_reads_tables_inside_an_archive(hub: Hub) -> None:
    """Made-up rows: the set itself was not to be had."""
    loaded = catalog.load("cmmlu")
    assert isinstance(loaded.source, HubSource)
    packed = archive({f"test/{name}.csv": table(name, 1) for name in loaded.source.config})
    hub.datasets[loaded.source.id] = Dataset({loaded.source.revision or FIRST: {"cmmlu_v1_0_1.zip": packed}})
    built = questions.build(loaded.model_copy(update={"questions": 67})).questions
    assert {q.metadata["subject"]: q.references for q in built} == dict.fromkeys(loaded.source.config, ("A",))


# -- Parquet and Arrow -------------------------------------------------------------------------------------------------


DAY = datetime.datetime(1960, 2, 29, 23, 59, 58, 123456)  # noqa: DTZ001 - columns without a zone

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "a", None, "é中😀", "x" * 300]),
    "bytes": (pa.binary(), [b"", b"\x00\xff", None, b"a", b"b"]),
    "fixed": (pa.binary(3), [b"abc", None, b"def", b"abc", b"\x00\x00\x00"]),
    "whole": (pa.int64(), [-(2**63), 2**63 - 1, 0, None, -1]),
    "short": (pa.int32(), [-(2**31), 2**31 - 1, 0, None, 7]),
    "unsigned": (pa.uint64(), [2**64 - 1, 0, None, 1, 2]),
    "small": (pa.uint8(), [255, 0, None, 1, 2]),
    "half": (pa.float16(), [0.5, None, -2.0, 0.0, 1.0]),
    "single": (pa.float32(), [0.5, None, -2.0, 0.0, 1e30]),
    "double": (pa.float64(), [0.1, None, -2.0, 0.0, 1e300]),
    "truth": (pa.bool_(), [True, False, None, True, True]),
    "day": (pa.date32(), [DAY.date(), None, datetime.date(2026, 1, 1), DAY.date(), DAY.date()]),
    "local": (pa.timestamp("us"), [DAY, None, DAY, DAY, DAY]),
    "instant": (pa.timestamp("ms", tz="UTC"), [None, *[datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)] * 4]),
    "time": (pa.time64("us"), [DAY.time(), None, datetime.time(), DAY.time(), DAY.time()]),
    "exact": (pa.decimal128(20, 3), [decimal.Decimal("-12.345"), None, decimal.Decimal(0), None, decimal.Decimal(10)]),
    "list": (pa.list_(pa.int64()), [[1, None, 3], [], None, [4], [5, 6]]),
    "lists": (pa.list_(pa.list_(pa.string())), [[["a"], [], None, ["b", None]], [], None, [[]], [None]]),
    "group": (
        pa.struct({"a": pa.int32(), "b": pa.string()}),
        [{"a": 1, "b": None}, None, {"a": None, "b": "c"}, None, None],
    ),
    "groups": (
        pa.list_(pa.struct({"a": pa.list_(pa.int32()), "b": pa.struct({"c": pa.string()})})),
        [[{"a": [1, 2], "b": {"c": "d"}}, {"a": [], "b": None}], [], None, [None], [{"a": None, "b": {"c": None}}]],
    ),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], [], None, [("c", 3)], []]),
}


TABLE = pa.table({name: pa.array(values * 5, kind) for name, (kind, values) in COLUMNS.items()})


def written(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer, store_schema=False, **options)
    return buffer.getvalue()


def read(folder: Path, data: bytes) -> list[dict[str, Any]]:
    path = folder / "rows.parquet"
    path.write_bytes(data)
    return [row.value for row in tables.stream(path)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "brotli", "use_dictionary": False},
        {"row_group_size": 4, "data_page_size": 16, "compression": "none"},
        {"use_deprecated_int96_timestamps": True, "use_compliant_nested_type": False, "version": "1.0"},
    ],
    ids=str,
)
def test_every_type_and_nesting_is_what_pyarrow_reads(tmp_path: Path, options: dict[str, Any]) -> None:
    # Older files keep no time zone and no 64-bit sign, so pyarrow's own reading of the file is what counts.
    data = written(TABLE, **options)
    expected = pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()
    as_text = json.dumps(
        expected, default=lambda value: f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
    )
    assert read(tmp_path, data) == json.loads(as_text)


def test_many_rows_come_in_their_order(tmp_path: Path) -> None:
    values = [f"{n % 1000}" for n in range(5000)]
    assert read(tmp_path, written(pa.table({"n": values}), data_page_size=1000)) == [{"n": value} for value in values]


def test_no_damaged_file_is_anything_but_refused(tmp_path: Path) -> None:
    chance = random.Random(7)
    data = written(TABLE.slice(0, 5), compression="snappy")
    refused = [data[:cut] for cut in (0, 3, 11, 100)]
    for n_bytes in (10, 30, 100) * 4:
        bad = bytearray(data)
        for _ in range(n_bytes):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        refused.append(bytes(bad))
    # With this claim of a length, the library asks the system for more memory than there is, and is ended by it.
    refused.append(bytes(data[:-8]) + b"\xff\xff\xff\x7fPAR1")
    for bad_data in refused:
        with pytest.raises(UsageError, match=r"rows\.parquet cannot be read as Parquet"):
            read(tmp_path, bad_data)


@pytest.mark.parametrize("writer", [pyarrow.ipc.new_file, pyarrow.ipc.new_stream], ids=["file", "stream"])
def test_arrow_files_match_pyarrow_and_damage_is_reported_in_a_sentence(tmp_path: Path, writer: Any) -> None:
    buffer, chance = io.BytesIO(), random.Random(7)
    with writer(buffer, TABLE.schema, options=pyarrow.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(TABLE, max_chunksize=7)
    data = buffer.getvalue()
    as_text = json.dumps(
        TABLE.to_pylist(), default=lambda value: f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
    )
    assert read(tmp_path, data) == json.loads(as_text)
    for cut in (9, 100, len(data) // 2, len(data) - 200):
        with pytest.raises(UsageError, match=r"rows\.parquet cannot be read as Arrow"):
            read(tmp_path, data[:cut])
    for _ in range(8):
        bad = bytearray(data)
        for _ in range(30):
            bad[chance.randrange(8, len(bad))] = chance.randrange(256)
        with contextlib.suppress(UsageError):
            assert len(read(tmp_path, bytes(bad))) <= TABLE.num_rows


@pytest.mark.parametrize(
    "values", [["x" * 1000] * 3000, [None] * 10**6, [[None] * 1000] * 1000], ids=["equal texts", "nulls", "lists"]
)
def test_small_files_cannot_fill_memory(values: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FREE_UNPACKED_BYTES", 10**6)
    data = written(pa.table({"column": pa.array(values, None if values[0] else pa.string())}))
    assert len(data) < 10**5
    with pytest.raises(UsageError, match="unpacks to more than"):
        read(tmp_path, data)


def test_an_oversized_row_and_duplicate_columns_are_refused(tmp_path: Path) -> None:
    row = pa.array([["x" * 1000] * 3_000_000], pa.list_(pa.dictionary(pa.int32(), pa.string())))
    for arrays, message in (
        ([row], "cannot be read|unpacks to more"),
        ([pa.array([1])] * 2, "the column n appears twice"),
    ):
        with pytest.raises(UsageError, match=message):
            read(tmp_path, written(pa.Table.from_arrays(arrays, ["n"] * len(arrays))))
