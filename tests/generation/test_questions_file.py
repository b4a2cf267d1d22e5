"""What is scored is what was asked: a questions file that was cut or edited after the run is refused."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harness as reasoning_harness
from harness.core.errors import StoreError
from harness.generation.settings import RunSettings
from harness.presets.grading import GradingOptions
from harness.runs import Manifest, RunFolder, questions, read_samples
from harness.scoring.pipeline import score_run
from harness.testing import FakeServer, completion, serving
from tests.budget import examples
from tests.generation.small_runs import question_set, run, run_settings
from tests.system.command import harness


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    """A finished run of 20 questions."""
    with FakeServer(lambda _: completion(r"\boxed{1}")) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=1, canary=False)
        assert run(settings, question_set(tmp_path, 20)).complete
    return settings


def test_a_whole_file_is_scored_in_any_order_of_its_lines(settings: RunSettings, tmp_path: Path) -> None:
    path = RunFolder(settings.out).benchmark("sums").questions
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    (score,) = score_run(RunFolder(settings.out), GradingOptions(workers=1))
    assert (score.n_questions, score.n_samples) == (20, 20)
    assert harness(tmp_path, "doctor", "run").code == 0


def test_a_file_cut_at_a_line_border_is_refused_and_can_be_rebuilt(settings: RunSettings, tmp_path: Path) -> None:
    folder = RunFolder(settings.out)
    path = folder.benchmark("sums").questions
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:19]))
    with pytest.raises(StoreError, match=r"its 19 questions differ from those in the manifest\. Delete the file"):
        score_run(folder, GradingOptions(workers=1))
    path.unlink()
    assert run(settings, question_set(tmp_path, 20)).complete
    assert score_run(folder, GradingOptions(workers=1))[0].n_questions == 20


@pytest.mark.parametrize(
    "edit",
    [
        {"references": ["2"]},
        {"rules": {"absolute_tolerance": 5.0}},
        {"rules": {"grader": "os:getcwd"}},
        {"kind": "text"},
        {"choices": ["1", "2"]},
    ],
)
def test_an_edited_reference_or_rule_is_refused(settings: RunSettings, edit: dict[str, Any]) -> None:
    path = RunFolder(settings.out).benchmark("sums").questions
    first, *rest = path.read_bytes().splitlines(keepends=True)
    question = json.loads(first)
    question |= edit
    path.write_bytes(json.dumps(question).encode() + b"\n" + b"".join(rest))
    with pytest.raises(StoreError, match="changed after the run wrote it"):
        score_run(RunFolder(settings.out), GradingOptions(workers=1))


def test_a_run_of_an_older_version_without_a_digest_is_scored(settings: RunSettings) -> None:
    folder = RunFolder(settings.out)
    manifest = Manifest.load(folder)
    record = manifest.benchmarks["sums"]
    older = {name: value for name, value in record.settings.items() if name not in (questions.DIGEST, questions.MADE)}
    assert older != record.settings
    changed = msgspec.structs.replace(record, settings=older)
    msgspec.structs.replace(manifest, benchmarks={"sums": changed}).save(folder)
    assert score_run(folder, GradingOptions(workers=1))[0].n_questions == 20


Row = dict[str, Any]


def edited(rows: list[Row], chance: random.Random) -> list[Row]:
    """The rows after something that a person does to a file of questions between two sessions."""
    at, fresh = chance.randrange(len(rows)), {"problem": f"What is {chance.randrange(100, 999)} + 1?", "answer": "7"}
    row, others = rows[at], [*rows[:at], *rows[at + 1 :]]
    with_id = {"id": f"n{chance.random()}"} if "id" in row else {}
    return chance.choice(
        [
            [*rows, {**fresh, **with_id}],
            [{**fresh, **with_id}, *rows],
            others or rows,
            rows[::-1],
            [*rows[:at], {**row, "answer": "8"}, *rows[at + 1 :]],
            [*rows[:at], {**row, "problem": row["problem"] + " Why?"}, *rows[at + 1 :]],
            [*rows, row] if not with_id else rows,
            [{**each, "level": 1} for each in rows],
            [{**each, "id": f"m{n}"} for n, each in enumerate(rows)],
            [{**fresh, **with_id}],
        ]
    )


def contents(rows: list[Row]) -> Counter[tuple[str, str]]:
    return Counter((row["problem"], row["answer"]) for row in rows)


answer = serving(lambda request: str(request.json["messages"][-1]["content"]).split("\n")[0])
"""The question itself as the reply, so that a reply shows what it answers."""


@pytest.mark.fuzz
def test_a_run_of_edited_data_keeps_what_fits_and_asks_only_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "sums.jsonl"
    for number in range(examples(60)):
        chance = random.Random(seed := random.getrandbits(32))
        folder = RunFolder(tmp_path / f"run-{number}")
        rows: list[Row] = [{"problem": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(chance.randint(1, 4))]
        if chance.random() < 0.4:
            rows = [{**row, "id": f"q{n}"} for n, row in enumerate(rows)]
        ever, ids = Counter[tuple[str, str]](), set[str]()
        for _ in range(3):
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            before = Counter(sample.text for sample in read_samples(folder.benchmark("sums"))) if ever else Counter()
            with FakeServer(answer) as server:
                options: Any = {"base_url": server.base_url, "samples": 2, "canary": False, "fingerprint": False}
                try:
                    reasoning_harness.run(data=str(path), out=folder.path, **options)
                except StoreError:
                    assert ids & {row.get("id") for row in rows} or not ever & contents(rows), seed
                    assert not any(request.method == "POST" for request in server.requests), seed
                    break
            stored = {question.question_id: question for question in questions.read(folder.benchmark("sums"))}
            texts = {name: question.last_turn.split("\n")[0] for name, question in stored.items()}
            samples = [*read_samples(folder.benchmark("sums"))]
            assert all(sample.text == texts[sample.question_id] for sample in samples), seed
            new = Counter(sample.text for sample in samples) - before
            assert new.total() <= 2 * (contents(rows) - ever).total(), seed
            planned = Manifest.load(folder).benchmarks["sums"].plan.question_ids or [*stored]
            assert Counter((texts[name], stored[name].references[0]) for name in planned) == contents(rows), seed
            (score,) = score_run(folder, GradingOptions(workers=1))
            assert (score.n_questions, score.n_samples, score.n_missing) == (len(rows), 2 * len(rows), 0), seed
            ever |= contents(rows)
            ids |= {row["id"] for row in rows if "id" in row}
            rows = edited(rows, chance)


def test_more_questions_of_the_same_set_keep_those_that_were_asked(tmp_path: Path) -> None:
    with FakeServer(lambda _: completion(r"\boxed{1}")) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=1, canary=False)
        for limit in (3, 5, 2):
            assert run(settings, question_set(tmp_path, 9, limit=limit)).complete
            assert score_run(RunFolder(settings.out), GradingOptions(workers=1))[0].n_questions == limit
    assert len(questions.read(RunFolder(settings.out).benchmark("sums"))) == 5


@pytest.mark.parametrize("name", ["questions.jsonl", "samples.jsonl"])
def test_a_folder_in_place_of_a_file_of_the_run_is_refused(tmp_path: Path, name: str) -> None:
    settings = run_settings(tmp_path / "run")
    (settings.out / "sums" / name).mkdir(parents=True)
    with pytest.raises(StoreError, match=name.partition(".")[0]):
        run(settings, question_set(tmp_path, 2))
