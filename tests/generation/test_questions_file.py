"""What is scored is what was asked: a questions file that was cut or edited after the run is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.errors import StoreError
from harness.generation.settings import RunSettings
from harness.presets.grading import GradingOptions
from harness.runs import Manifest, RunFolder, questions
from harness.scoring.pipeline import score_run
from harness.testing import FakeServer, completion
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
    with pytest.raises(StoreError, match=r"its 19 questions are not those of the manifest\. Remove the file"):
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
