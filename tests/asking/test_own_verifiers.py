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


LISTED = "own_words, or HARNESS_GRADERS=%s,own_words to trust the modules"


@pytest.mark.parametrize(
    ("trusted", "function", "sentence"),
    [
        ("", "right", "to trust it, set HARNESS_GRADERS=own_words"),
        ("mine, my.other", "right", LISTED % "mine,my.other"),
        ("mine:own_words", "right", "to trust it, set HARNESS_GRADERS=own_words"),
        ("own_word", "right", LISTED % "own_word"),
        ("own_words", "nothing", "has no attribute 'nothing'. Correct its module"),
        ("own_words", "alone", "cannot be called with (answer, question): too many positional"),
        ("own_words", "lacking", "No module named 'nosuchlib' (own_words.py:1). Correct its module"),
        ("own_words", "relative", "its folder must be in PYTHONPATH, as an absolute path. Correct"),
        ("own_words", "right", ""),
    ],
)
def test_a_verifier_that_cannot_grade_is_refused_before_a_run(
    own: Path, monkeypatch: pytest.MonkeyPatch, trusted: str, function: str, sentence: str
) -> None:
    """lacking: a library that the module needs is no matter of its folder. relative: its folder is."""
    monkeypatch.setenv("HARNESS_GRADERS", trusted)
    if function == "lacking":
        (own / "own_words.py").write_text(f"import nosuchlib\n{MODULE}")
    if function == "relative":
        monkeypatch.setenv("PYTHONPATH", ".")
        monkeypatch.chdir(own)
    (own / "own.yaml").write_text(CARD % function)
    options = RunOptions.of(benchmarks=(str(own / "own.yaml"),))
    if not sentence:
        assert prepare.questions_of(options).sets[0].questions[0].rules.grader == "own_words:right"
        return
    with pytest.raises(UsageError) as refused:
        prepare.questions_of(options)
    assert sentence in str(refused.value)
