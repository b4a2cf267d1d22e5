"""A resume asks the same questions; where the data have changed, it is refused, and says how to grade by them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import harness
from harness.asking.options.run import RunOptions
from harness.asking.prepare import prepare
from harness.asking.watching import Watcher
from harness.cli.main import cli
from harness.core.errors import StoreError
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, questions, read_samples
from harness.runs.layout import imported_at
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from harness.testing import FakeServer, completion, models
from harness.verbs.run import run as run_command
from harness.verbs.run import sample

ROWS = [{"id": f"q{i}", "question": f"What is {i} + 1?", "answer": str(i + 1), "level": i % 2} for i in range(6)]


def data(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def options(folder: Path, **given: Any) -> RunOptions:
    return RunOptions.of(data=str(folder / "sums.jsonl"), model="m", out=folder / "run", canary=False, **given)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A finished run of six questions."""
    data(tmp_path, ROWS)
    assert asked_by(tmp_path) == 6
    return RunFolder(tmp_path / "run")


def asked_by(folder: Path, **given: Any) -> int:
    """Requests of a session that ends with nothing owed."""
    with FakeServer(lambda r: completion(r"\boxed{1}") if r.method == "POST" else [models("m")]) as server:
        with prepare(options(folder, base_url=(server.base_url,), fingerprint=False, **given)) as prepared:
            assert sample(prepared).complete
        return sum(one.method == "POST" for one in server.requests)


def test_only_a_refusal_of_changed_data_alone_says_how_to_grade_by_them(tmp_path: Path) -> None:
    data(tmp_path, ROWS)
    asked_by(tmp_path)
    data(tmp_path, [{**row, "answer": "7"} for row in ROWS])
    for asked, said in (({}, True), ({"system_prompt": "Think."}, False)):
        with pytest.raises(StoreError, match="dataset_digest") as refused:
            asked_by(tmp_path, **asked)
        assert ("are to be graded by the new ones" in str(refused.value)) == said


def test_the_message_on_a_changed_answer_says_how_to_grade_the_stored_replies_by_it(tmp_path: Path) -> None:
    data(tmp_path, ROWS)
    asked_by(tmp_path)
    assert harness.score(tmp_path / "run")["sums"].accuracy.value == pytest.approx(1 / 6)
    data(tmp_path, [{**row, "answer": "5" if row["id"] == "q0" else "1"} for row in ROWS])
    with pytest.raises(StoreError, match="no reply is asked for again") as refused:
        asked_by(tmp_path)
    assert "by hand" not in str(refused.value)
    with click.Context(cli):
        advice = refused.value.sentence
    export, score = re.findall(r"`harness ((?:export|score) [^`]*)`", advice)
    for command in (export, score):
        assert CliRunner().invoke(cli, shlex.split(command)).exit_code == 0
    exported = shlex.split(score)[1]
    written = imported_at(Path(exported)).benchmark("sums")
    assert Score.load(written).accuracy.value == pytest.approx(5 / 6)
    assert sorted(question.references for question in questions.read(written)) == [("1",)] * 5 + [("5",)]
    assert harness.score(tmp_path / "run")["sums"].accuracy.value == pytest.approx(1 / 6)


class Warned(Watcher):
    def __init__(self) -> None:
        self.sentences: list[str] = []

    def warn(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def sampling(self, what: str, folder: RunFolder) -> None:
        self.sentences.append(what)


def test_the_same_questions_under_another_name_are_asked_with_a_warning(run: RunFolder, tmp_path: Path) -> None:
    def warnings(name: str, rows: list[dict[str, Any]]) -> list[str]:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        watcher = Warned()
        with FakeServer(lambda r: completion(r"\boxed{1}") if r.method == "POST" else [models("m")]) as server:
            given = RunOptions.of(
                data=str(tmp_path / name), model="m", out=run.path, canary=False, fingerprint=False,
                base_url=(server.base_url,),
            )  # fmt: skip
            run_command(given, watcher)
        assert any(re.search("run folder .*, which holds .*sums too$", sentence) for sentence in watcher.sentences)
        return [sentence for sentence in watcher.sentences if "already holds" in sentence]

    corrected = [{**row, "answer": "1"} for row in ROWS]
    (warning,) = warnings("mended.jsonl", corrected)
    assert "already holds all 6 questions of mended, with replies, as the benchmark sums; this run asks anew" in warning
    with click.Context(cli):
        advice = warning
    export, score = re.findall(r"`harness ((?:export|score) [^`]*)`", advice)
    for command in (export, score):
        assert CliRunner().invoke(cli, shlex.split(command)).exit_code == 0
    assert Score.load(imported_at(Path(shlex.split(score)[1])).benchmark("mended")).accuracy.value == 1.0
    # Wrong twins: the run goes on with its own benchmark, and a benchmark with one other question.
    assert warnings("mended.jsonl", corrected) == []
    assert warnings("longer.jsonl", [*ROWS, {"id": "q6", "question": "What is 6 + 1?", "answer": "7"}]) == []


def test_a_resume_takes_a_file_of_these_questions_as_it_is_and_makes_a_lost_one_anew(
    run: RunFolder, tmp_path: Path
) -> None:
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
    data(tmp_path, ROWS)
    assert [asked_by(tmp_path, shard="1/2") for _ in range(2)] == [3, 0]
    folder = RunFolder(tmp_path / "run" / "shards" / "1-of-2").benchmark("sums")
    assert (len(questions.read(folder)), len({one.key for one in read_samples(folder)})) == (6, 3)
