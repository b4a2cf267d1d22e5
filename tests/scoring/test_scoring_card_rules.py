"""A rule that a card changed after the run holds at the next score, without a resume.

For: harness.benchmarks.catalogue.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.benchmarks.catalogue import DATA
from harness.presets.grading import GradingOptions
from harness.runs import Manifest, grades
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from tests.scoring.test_scoring_from_reasoning import run_with, sample

CARD = """
title: Made up
source: {kind: file, path: none.jsonl}
columns: {question: question, answer: answer}
"""


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's cards that holds none yet."""
    folder = tmp_path / "cards"
    folder.mkdir()
    monkeypatch.setenv("HARNESS_DATASETS", str(folder))
    return folder


def told(score: Score, words: str) -> bool:
    return any(words in warning for warning in score.sentences)


def test_a_changed_rule_grades_again_at_the_next_score(tmp_path: Path, cards: Path) -> None:
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{8}", "")])
    (before,) = score_run(run, GradingOptions(workers=1))
    first = grades.read(run.benchmark("made up"))
    assert (before.accuracy.value, told(before, "the card")) == (0.5, False)
    card = cards / "made up.yaml"
    for rules, accuracy, changed in (
        ("rules: {absolute_tolerance: 1.0}", 1.0, True),
        ("rules: {absolute_tolerance: 0.5}", 0.5, True),
        ("", 0.5, False),
    ):
        card.write_text(CARD + rules)
        (score,) = score_run(run, GradingOptions(workers=1))
        assert (score.accuracy.value, told(score, "rules of the card as they are now")) == (accuracy, changed)
    assert grades.read(run.benchmark("made up")) == first


def test_a_card_that_is_broken_changes_nothing_and_is_told(tmp_path: Path, cards: Path) -> None:
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{8}", "")])
    (cards / "made up.yaml").write_text(CARD + "rules: {absolute_tolerance: -1}\n")
    (score,) = score_run(run, GradingOptions(workers=1))
    assert score.accuracy.value == 0.5
    assert told(score, "graded by the rules that the run began with")


@pytest.mark.parametrize(("settings", "accuracy"), [({}, 1.0), ({DATA: "/data/made up.jsonl"}, 0.5)])
def test_own_data_that_are_named_as_a_card_keep_the_rules_of_their_run(
    settings: dict[str, str], accuracy: float, tmp_path: Path, cards: Path
) -> None:
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{8}", "")])
    manifest = Manifest.load(run)
    record = manifest.benchmarks["made up"]
    benchmarks = {"made up": msgspec.structs.replace(record, settings={**record.settings, **settings})}
    msgspec.structs.replace(manifest, benchmarks=benchmarks).save(run)
    (cards / "made up.yaml").write_text(CARD + "rules: {absolute_tolerance: 1.0}")
    (score,) = score_run(run, GradingOptions(workers=1))
    assert (score.accuracy.value, told(score, "rules of the card")) == (accuracy, not settings)
