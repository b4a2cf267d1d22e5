"""A card's own verifier is refused before anything is asked if it could not grade.

For: harness.asking.prepare, harness.grading.processes.trial.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness.asking import prepare
from harness.asking.options import RunOptions
from harness.asking.watching import Watcher
from harness.core.errors import UsageError
from harness.grading.processes import trial
from tests.faults.server import FaultServer, completion, models
from tests.system.command import harness

pytestmark = pytest.mark.slow  # Each trial has a process of its own.

CARD = """
title: Own
source: {kind: file, path: set.jsonl}
columns: {question: problem, answer: answer}
kind: text
rules: {grader: "own_words:%s"}
"""


MODULE = """
import os
from harness.grading.verifier import Parts

def even_parts(answer, question): return Parts(int(answer == question.references[0]), 3)
def right(answer, question): return answer == question.references[0]
def refuses(answer, question): return False
def accepts(answer, question): return True
def counts(answer, question): return int(answer) == int(question.references[0])
def only_words(answer, question): return {"no such answer": False}[answer]
def raises(answer, question): return answer == question.reference
def scores(answer, question): return 0.2
def prints(answer, question): print(answer)
def only_sure(answer, question): return True if answer == "2" else None
def ends(answer, question): os._exit(3)
def loops(answer, question):
    while True: pass
def slow(answer, question):
    import time
    time.sleep(1)
    return answer == question.references[0]
def too_slow(answer, question):
    import time
    time.sleep(2.2 if answer != "2" else 0)
    return answer == question.references[0]
def slow_on_words(answer, question): return slow(answer, question) if answer != "2" else True
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_words.py").write_text(MODULE)
    (tmp_path / "set.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n')
    monkeypatch.setenv("HARNESS_GRADERS", "own_words")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def warnings_of(folder: Path, function: str, *, judged: bool = False) -> list[str]:
    """The warnings of a run whose verifier is this function, before it looks at any server."""
    (folder / "own.yaml").write_text(CARD % function)
    warned: list[str] = []
    watcher = Watcher()
    watcher.warn = warned.append  # type: ignore[method-assign, assignment]
    prepare.questions_of(RunOptions.of(benchmarks=(str(folder / "own.yaml"),)), watcher, judged=judged)
    return warned


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
        ("own_words", "raises", "the verifier raised AttributeError"),
        (
            "own_words",
            "scores",
            "type float, neither True nor False nor harness.grading.verifier.Parts(right, total) (on the answers "
            '"2" and "no such answer")',
        ),
        ("own_words", "prints", "None, which leaves the answer to a judge (on the answers"),
        ("own_words", "prints", "Correct it, or name the judge (--judge MODEL)"),
        pytest.param("own_words", "ends", "it ended its process", marks=pytest.mark.slow),
        ("own_words", "loops", 'it took longer than 0.2 s on the answer "2". Make it faster'),
    ],
)
def test_a_verifier_that_cannot_grade_is_refused_before_a_run(
    own: Path, monkeypatch: pytest.MonkeyPatch, trusted: str, function: str, sentence: str
) -> None:
    monkeypatch.setenv("HARNESS_GRADERS", trusted)
    if function == "loops":
        monkeypatch.setattr(trial, "DEADLINE_SECONDS", 0.1)
        monkeypatch.setattr(trial, "TRIAL_SECONDS", 0.2)
    with pytest.raises(UsageError) as refused:
        warnings_of(own, function)
    assert sentence in str(refused.value)


def test_the_run_says_on_which_answers_it_tries_a_verifier(own: Path) -> None:
    (own / "own.yaml").write_text(CARD % "right")
    told: list[str] = []
    watcher = Watcher()
    watcher.standing = told.append  # type: ignore[method-assign, assignment]
    asked = prepare.questions_of(RunOptions.of(benchmarks=(str(own / "own.yaml"),)), watcher)
    first = asked.sets[0].questions[0].question_id
    assert (
        f'trying the verifier own_words:right on two answers to question {first}: "2" and "no such answer" (some '
        "seconds; at most 120 s)"
    ) in told


def test_the_trial_of_a_verifier_that_does_not_end_is_bounded_by_the_clock_over_all_tries(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "ALL_TRIES_SECONDS", 0.3)
    monkeypatch.setattr(trial, "SLOW_SECONDS", 0.1)
    (own / "own.yaml").write_text(CARD % "loops")
    told: list[str] = []
    watcher = Watcher()
    watcher.standing = told.append  # type: ignore[method-assign, assignment]
    began = time.monotonic()
    with pytest.raises(UsageError, match=r"gives no verdict on question .*, in 0\.3 s of tries on two answers"):
        prepare.questions_of(RunOptions.of(benchmarks=(str(own / "own.yaml"),)), watcher)
    assert time.monotonic() - began < 20  # The first deadline of a worker alone is 30 s.
    assert told[1:] == ["the verifier has not ended in 0.1 s; its trial ends after 0.3 s"]


@pytest.mark.parametrize("function", ["right", "refuses", "accepts", "even_parts"])
def test_any_verdict_on_the_trials_answers_lets_the_run_go_on(own: Path, function: str) -> None:
    assert warnings_of(own, function) == []


@pytest.mark.parametrize(
    ("function", "answer", "other"), [("counts", "no such answer", "2"), ("only_words", "2", "no such answer")]
)
def test_a_verifier_that_decides_only_some_answers_is_a_warning(
    own: Path, function: str, answer: str, other: str
) -> None:
    (warning,) = warnings_of(own, function)
    assert f'(on the answer "{answer}"); they count as wrong, unless a judge decides them (--judge MODEL)' in warning
    assert f'"{other}"' not in warning


def test_a_warning_about_the_trial_s_answers_names_the_judge_only_if_there_is_none(own: Path) -> None:
    (warning,) = warnings_of(own, "counts", judged=True)
    assert warning.endswith("; the judge decides such samples in its place")


@pytest.mark.parametrize("function", ["prints", "only_sure"])
def test_a_verifier_may_leave_the_trials_answers_to_a_judge_that_is_named(own: Path, function: str) -> None:
    assert warnings_of(own, function, judged=True) == []


def test_a_judge_mends_no_verifier_that_returns_something_else(own: Path) -> None:
    with pytest.raises(UsageError, match=r"type float, neither True nor False.*Correct it$"):
        warnings_of(own, "scores", judged=True)


def test_a_relative_folder_of_modules_is_named_as_the_cause(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ".")
    monkeypatch.chdir(own)
    with pytest.raises(UsageError, match=r"its folder must be in PYTHONPATH, as an absolute path\. Correct"):
        warnings_of(own, "right")


def test_a_library_that_the_module_lacks_is_no_matter_of_its_folder(own: Path) -> None:
    (own / "own_words.py").write_text(f"import nosuchlib\n{MODULE}")
    with pytest.raises(UsageError, match=r"No module named 'nosuchlib' \(own_words\.py:1\)\. Correct its module"):
        warnings_of(own, "right")


@pytest.mark.parametrize(
    ("function", "answers"),
    [("slow", 'on the answers "2" and "no such answer",'), ("slow_on_words", 'on the answer "no such answer",')],
)
def test_a_verifier_that_needs_longer_than_grading_allows_is_a_warning(
    own: Path, monkeypatch: pytest.MonkeyPatch, function: str, answers: str
) -> None:
    monkeypatch.setattr(trial, "DEADLINE_SECONDS", 0.3)
    (warning,) = warnings_of(own, function)
    assert f"took longer than 0.3 s {answers}" in warning
    assert "`harness score` allows 0.3 s an answer" in warning
    assert warning.endswith("or allow more: `harness score` with deadline=30")


@pytest.mark.parametrize(("function", "more"), [("too_slow", " --deadline 30"), ("right", "")])
def test_the_printed_command_allows_a_slow_verifier_its_time(own: Path, function: str, more: str) -> None:
    (own / "own.yaml").write_text(CARD % function)
    with FaultServer(
        lambda request: iter([models("able")]) if request.method == "GET" else completion(r"\boxed{2}", tokens=5)
    ) as server:
        words = ["--samples", "1", "--base-url", server.base_url, "--out", "out", "--no-progress", "--no-fingerprint"]
        done = harness(own, "run", "own.yaml", *words)
    assert done.code == 0, done.err
    line = next(line for line in done.err.splitlines() if "score them with" in line)
    assert line.endswith(f"/out{more}")
