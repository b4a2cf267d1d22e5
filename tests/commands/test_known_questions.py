"""A user's file that holds a card's questions stands beside what is published of them; any other file does not.

For: harness.commands.benchmark_identity.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

import harness as reasoning_harness
from harness.benchmarks import card, catalog, questions, seen_rows
from harness.cli.main import cli
from harness.commands import benchmark_identity, compare
from harness.commands.run import run as run_command
from harness.commands.run import sample
from harness.core.errors import StoreError, UsageError
from harness.core.records import Question
from harness.options.run import RunOptions
from harness.preparing.prepare import prepare
from harness.preparing.run_questions import questions_of
from harness.presets.grading import GradingOptions
from harness.progress.events import Watcher
from harness.runs import RunFolder, read_samples
from harness.runs import questions as question_file
from harness.runs.layout import imported_at
from harness.runs.manifest import OUTPUTS, BenchmarkRecord, Plan
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from harness.testing import FakeServer, scripted
from tests.reports.run_folders import write_run
from tests.system.command import harness

ROWS = (("What is 1 + 1?", "2"), ("Is 7 prime?", "yes"), ("What is 5 · 5?", "25"))


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cards"
    folder.mkdir()
    monkeypatch.setenv("HARNESS_DATASETS", str(folder))
    return folder


def put_card(folder: Path, rows: Sequence[tuple[str, str]], **more: object) -> None:
    """The card `sums` of these rows."""
    (folder / "sums.jsonl").write_text("".join(json.dumps({"problem": q, "answer": a}) + "\n" for q, a in rows))
    fields = {
        "name": "sums",
        "title": "Sums",
        "source": {"kind": "file", "path": "sums.jsonl"},
        "columns": {"question": "problem", "answer": "answer"},
        "prompt": "boxed",
        "questions": len(rows),
        **more,
    }
    (folder / "sums.yaml").write_text(yaml.safe_dump(fields))


def own(folder: Path, rows: Sequence[tuple[str, str]]) -> Sequence[Question]:
    """The questions of a user's file with these rows, under other names of columns."""
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps({"Frage": q, "Antwort": a}) + "\n" for q, a in rows))
    return questions.build(card.from_file(str(path), question_key="Frage", answer_key="Antwort")).questions


def known_as(name: str, run_questions: Sequence[Question], **settings: object) -> str | None:
    """The name under which scores of these questions are published. settings: what the run recorded."""
    return benchmark_identity.card_name(
        name, BenchmarkRecord(identity={}, plan=Plan(samples=1), settings=settings), run_questions
    )


@pytest.mark.parametrize(
    ("rows", "known"),
    [
        ([("What is 5 ·  5?\n", "25.0"), *ROWS[:2]], True),
        (ROWS[:2], False),
        ((*ROWS, ("What is 2 + 2?", "4")), False),
        ((*ROWS[:2], ("What is 5 · 5?", "26")), False),
        ((*ROWS[:2], ROWS[0]), False),
    ],
    ids=["another order and spaces", "one less", "one more", "another reference", "one twice"],
)
def test_a_file_with_all_references_of_a_card_has_its_questions(
    rows: Sequence[tuple[str, str]], known: bool, tmp_path: Path, cards: Path
) -> None:
    put_card(cards, ROWS, answers_checksum=seen_rows.answers_digest([answer] for _, answer in ROWS))
    assert known_as("mine", own(tmp_path, rows)) == ("sums" if known else "mine")


def test_an_edition_is_known_by_its_rows_though_the_data_are_not_here(tmp_path: Path, cards: Path) -> None:
    mine = own(tmp_path, ROWS)
    rows = questions.build(card.from_file(str(tmp_path / "mine.jsonl"), question_key="Frage", answer_key="Antwort"))
    put_card(cards, ROWS, editions=[{"rows": rows.rows_digest, "questions": 3, "of": "a copy"}])
    (cards / "sums.jsonl").unlink()
    assert known_as("mine", mine) == "sums"
    put_card(cards, ROWS)
    (cards / "sums.jsonl").unlink()
    assert known_as("mine", mine) == "mine"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "aime24"),
        ({catalog.DATA: "/home/me/aime24.jsonl"}, None),
        ({catalog.CARD: "/home/me/aime24.yaml"}, None),
        ({catalog.DATA: "hf://datasets/me/aime24", question_file.MADE: {"rows_digest": "ROWS"}}, "aime24"),
        ({OUTPUTS: {"digest": "", "read": {}}}, None),
        ({OUTPUTS: {"digest": "", "read": {"benchmark": "aime24"}}}, "aime24"),
    ],
    ids=["card", "data", "own card", "an edition", "outputs", "outputs of a benchmark"],
)
def test_the_name_of_a_card_is_not_enough(settings: dict[str, object], name: str | None, tmp_path: Path) -> None:
    rows = catalog.load("aime24").editions[0].rows
    recorded = json.loads(json.dumps(settings).replace("ROWS", rows))
    assert known_as("aime24", own(tmp_path, ROWS), **recorded) == name


def test_a_name_without_a_card_stays(tmp_path: Path) -> None:
    assert known_as("mine", own(tmp_path, ROWS), **{catalog.DATA: "mine.jsonl"}) == "mine"


def test_a_file_under_a_cards_name_has_none_of_its_published_scores(tmp_path: Path) -> None:
    """In the verdict, the report and the viewer; the same run by the card has them."""
    model = {"model": "Qwen/QwQ-32B", "benchmarks": [("aime24", 30, 4)]}
    write_run(tmp_path / "card", **model)
    write_run(tmp_path / "own", **model, settings={catalog.DATA: str(tmp_path / "aime24.jsonl")})
    sentence = "not compared with published scores because its questions may differ from those of aime24"
    done = harness(tmp_path, "verify", "own")
    assert (done.code, done.out.splitlines()[0]) == (4, "aime24: cannot say")
    assert sentence in done.out
    assert "LLMEval" not in done.out
    printed = json.loads(harness(tmp_path, "verify", "own", "--json").out)
    assert (printed[0]["comparisons"], printed[0]["reason"][:35]) == ([], sentence[:35])
    report = harness(tmp_path, "report", "own").out
    assert (sentence in report, "detectable" in report.partition("Compared with published")[2]) == (True, False)
    assert "78.65" not in report
    assert compare.published_beside(RunFolder.open(tmp_path / "own"), "aime24").startswith(sentence)

    assert "LLMEval" in harness(tmp_path, "verify", "card").out
    by_card = harness(tmp_path, "report", "card").out
    assert "78.65" in by_card
    assert sentence not in by_card


def test_a_run_of_such_a_file_stands_beside_what_is_published(tmp_path: Path, cards: Path) -> None:
    folder = write_run(tmp_path / "run", benchmarks=[("mine", 30, 16)])
    asked = [(q.messages[-1].content, q.references[0]) for q in question_file.read(folder.benchmark("mine"))]
    put_card(cards, asked, answers_checksum=seen_rows.answers_digest([answer] for _, answer in asked))
    published = {
        "schema": 1,
        "source": {"title": "A paper", "url": "https://example.org", "by": "authors"},
        "questions": {"sums": 30},
        "scores": [{"model": "org/model-7b", "benchmark": "sums", "metric": "pass@1", "percent": 50.0, "samples": 64}],
    }
    (tmp_path / "paper.yaml").write_text(yaml.safe_dump(published))
    words = ("verify", "run", "--published", "paper.yaml")
    done = harness(tmp_path, *words, extra={"HARNESS_DATASETS": str(cards)})
    assert done.out.startswith("mine (sums): "), done.err
    put_card(cards, asked[1:])
    assert harness(tmp_path, *words, extra={"HARNESS_DATASETS": str(cards)}).code == 2


# ----
# A resume asks the same questions; where the data have changed, it is refused, and says how to grade by them.

SUMS = [{"id": f"q{i}", "question": f"What is {i} + 1?", "answer": str(i + 1), "level": i % 2} for i in range(6)]


def data(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def options(folder: Path, **given: Any) -> RunOptions:
    return RunOptions.of(data=str(folder / "sums.jsonl"), model="m", out=folder / "run", canary=False, **given)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A finished run of six questions."""
    data(tmp_path, SUMS)
    assert asked_by(tmp_path) == 6
    return RunFolder(tmp_path / "run")


def asked_by(folder: Path, **given: Any) -> int:
    """Requests of a session that ends with nothing missing."""
    with FakeServer(scripted(r"\boxed{1}", model="m")) as server:
        with prepare(options(folder, base_url=(server.base_url,), **given)) as prepared:
            assert sample(prepared).complete
        return sum(one.method == "POST" for one in server.requests)


def test_the_message_on_a_changed_answer_says_how_to_regrade(tmp_path: Path) -> None:
    data(tmp_path, SUMS)
    asked_by(tmp_path)
    assert reasoning_harness.score(tmp_path / "run")["sums"].accuracy.value == pytest.approx(1 / 6)
    data(tmp_path, [{**row, "answer": "5" if row["id"] == "q0" else "1"} for row in SUMS])
    with pytest.raises(StoreError, match="this requests no new replies") as refused:
        asked_by(tmp_path)
    with pytest.raises(StoreError, match="dataset_digest") as twin:
        asked_by(tmp_path, system_prompt="Think.")
    assert ["To grade the stored replies against the new answers" in str(one.value) for one in (refused, twin)] == [
        True,
        False,
    ]
    with click.Context(cli):
        advice = refused.value.sentence
    export, score = re.findall(r"`harness ((?:export|score) [^`]*)`", advice)
    for command in (export, score):
        assert CliRunner().invoke(cli, shlex.split(command)).exit_code == 0
    exported = shlex.split(score)[1]
    written = imported_at(Path(exported)).benchmark("sums")
    assert Score.load(written).accuracy.value == pytest.approx(5 / 6)
    assert sorted(question.references for question in question_file.read(written)) == [("1",)] * 5 + [("5",)]
    assert reasoning_harness.score(tmp_path / "run")["sums"].accuracy.value == pytest.approx(1 / 6)


class Warned(Watcher):
    def __init__(self) -> None:
        self.sentences: list[str] = []

    def warn(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def sampling(self, what: str, folder: RunFolder) -> None:
        self.sentences.append(what)


def test_the_same_questions_under_another_name_are_asked_with_a_warning(run: RunFolder, tmp_path: Path) -> None:
    def warnings(name: str, rows: list[dict[str, Any]], words: str = "already contains") -> list[str]:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        watcher = Warned()
        with FakeServer(scripted(r"\boxed{1}", model="m")) as server:
            given = RunOptions.of(
                data=str(tmp_path / name),
                model="m",
                out=run.path,
                canary=False,
                base_url=(server.base_url,),
            )
            run_command(given, watcher)
        assert any(re.search("run folder .*, which holds .*sums too$", sentence) for sentence in watcher.sentences)
        return [sentence for sentence in watcher.sentences if words in sentence]

    corrected = [{**row, "answer": "1"} for row in SUMS]
    (warning,) = warnings("mended.jsonl", corrected)
    assert (
        "already contains replies to all 6 questions of mended, under the benchmark sums; this run requests new"
        in warning
    )
    with click.Context(cli):
        advice = warning
    export, score = re.findall(r"`harness ((?:export|score) [^`]*)`", advice)
    for command in (export, score):
        assert CliRunner().invoke(cli, shlex.split(command)).exit_code == 0
    assert Score.load(imported_at(Path(shlex.split(score)[1])).benchmark("mended")).accuracy.value == 1.0
    # Wrong twins: the run goes on with its own benchmark, and a benchmark with one other question.
    assert warnings("mended.jsonl", corrected) == []
    longer = [*SUMS, {"id": "q6", "question": "What is 6 + 1?", "answer": "7"}]
    assert warnings("longer.jsonl", longer) == []
    assert warnings("joining.jsonl", longer[1:], "joining will be added as a separate benchmark to the run in ")


def test_a_resume_accepts_its_questions_file_and_recreates_a_lost_one(run: RunFolder, tmp_path: Path) -> None:
    path = run.benchmark("sums").questions
    before, inode = path.read_bytes(), path.stat().st_ino
    assert asked_by(tmp_path, limit=3) == 0
    assert score_run(run, GradingOptions(workers=1))[0].n_questions == 3
    assert asked_by(tmp_path, samples=2) == 6
    assert (path.read_bytes(), path.stat().st_ino) == (before, inode), "not written again"
    path.unlink()
    assert asked_by(tmp_path, samples=3) == 6
    assert path.read_bytes() == before
    path.write_bytes(before.replace(b'"references":["1"]', b'"references":["7"]'))
    with pytest.raises(StoreError, match="has changed since this run began"):
        asked_by(tmp_path, samples=4)


def test_a_shard_asks_its_part_and_stores_the_questions_of_all(tmp_path: Path) -> None:
    data(tmp_path, SUMS)
    assert [asked_by(tmp_path, shard="1/2") for _ in range(2)] == [3, 0]
    folder = RunFolder(tmp_path / "run" / "shards" / "1-of-2").benchmark("sums")
    assert (len(question_file.read(folder)), len({one.key for one in read_samples(folder)})) == (6, 3)


# ---- how many samples: the number behind a benchmark's name, or else the one for all, or else its card's


def samples_of(benchmarks: str, samples: int | None = None) -> dict[str, int]:
    prepared = questions_of(RunOptions.of(benchmarks=benchmarks, samples=samples))
    return {name: one.samples for name, one in prepared.benchmarks.items()}


def test_a_benchmarks_own_number_overrides_the_general_one() -> None:
    assert samples_of("demo:3") == {"demo": 3}
    assert samples_of("demo", 5) == {"demo": 5}
    assert samples_of("demo:5", 5) == {"demo": 5}


def test_two_numbers_for_one_benchmark_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"number of samples \(demo:8\); omit either this option or those numbers"
    ) as refused:
        samples_of("demo:8", 2)
    assert refused.value.field == "samples"
