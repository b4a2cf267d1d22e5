"""A card's own verifier is refused before anything is asked if it could not grade.

For: harness.asking.prepare.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.asking import prepare
from harness.asking.options.run import RunOptions
from harness.core.errors import UsageError

pytestmark = pytest.mark.slow  # Each import has a process of its own.

CARD = """
title: Own
source: {kind: file, path: set.jsonl}
columns: {question: problem, answer: answer}
kind: text
rules: {grader: "own_words:%s"}
"""


MODULE = "def right(answer, question): return answer == question.references[0]\ndef alone(answer): return True\n"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_words.py").write_text(MODULE)
    (tmp_path / "set.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n')
    monkeypatch.setenv("HARNESS_GRADERS", "own_words")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def questions_of(folder: Path, function: str) -> prepare.Asked:
    """What a run asks whose verifier is this function, before it looks at any server."""
    (folder / "own.yaml").write_text(CARD % function)
    return prepare.questions_of(RunOptions.of(benchmarks=(str(folder / "own.yaml"),)))


@pytest.mark.parametrize(
    ("trusted", "function", "sentence"),
    [
        ("", "right", "to trust it, set HARNESS_GRADERS=own_words"),
        (
            "mine, my.other",
            "right",
            "own_words, or HARNESS_GRADERS=mine,my.other,own_words to trust the modules listed now",
        ),
        ("mine:own_words", "right", "to trust it, set HARNESS_GRADERS=own_words"),
        ("own_words", "nothing", "has no attribute 'nothing'. Correct its module"),
        (
            "own_word",
            "right",
            "to trust it, set HARNESS_GRADERS=own_words, or HARNESS_GRADERS=own_word,own_words to trust the modules",
        ),
        ("own_words", "alone", "cannot be called with (answer, question): too many positional"),
    ],
)
def test_a_verifier_that_cannot_grade_is_refused_before_a_run(
    own: Path, monkeypatch: pytest.MonkeyPatch, trusted: str, function: str, sentence: str
) -> None:
    monkeypatch.setenv("HARNESS_GRADERS", trusted)
    with pytest.raises(UsageError) as refused:
        questions_of(own, function)
    assert sentence in str(refused.value)


def test_a_verifier_that_can_be_called_lets_the_run_go_on(own: Path) -> None:
    assert questions_of(own, "right").sets[0].questions[0].rules.grader == "own_words:right"


def test_a_relative_folder_of_modules_is_named_as_the_cause(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ".")
    monkeypatch.chdir(own)
    with pytest.raises(UsageError, match=r"its folder must be in PYTHONPATH, as an absolute path\. Correct"):
        questions_of(own, "right")


def test_a_library_that_the_module_lacks_is_no_matter_of_its_folder(own: Path) -> None:
    (own / "own_words.py").write_text(f"import nosuchlib\n{MODULE}")
    with pytest.raises(UsageError, match=r"No module named 'nosuchlib' \(own_words\.py:1\)\. Correct its module"):
        questions_of(own, "right")
