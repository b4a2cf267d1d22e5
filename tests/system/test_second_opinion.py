"""`harness score --also`: a second grader beside the rules, in an environment of its own."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

import harness as front_door
from harness.runs.grades import read_opinions
from tests.commands.judged_runs import write_run
from tests.system.command import harness

STAND_IN = """
def parse(text, *args, **kwargs): return [text]
def verify(gold, answer, *args, **kwargs): return True
"""
"""A math-verify that calls everything correct: what is tested is the way there and back."""


def test_a_missing_grader_is_named_with_the_line_that_installs_it(tmp_path: Path) -> None:
    write_run(tmp_path / "run", {"q1": ("1", [r"\boxed{1}"])}, "sums")
    venv.create(tmp_path / "bare", symlinks=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    missing = harness(tmp_path, "score", "run", "--also", "math-verify", "--also-python", bare)
    assert (missing.code, "pip install math-verify" in missing.err) == (2, True)


def test_second_graders_run_once_each_and_show_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run", {"q1": ("1", [r"\boxed{1}", r"\boxed{2}"])}, "sums")
    second_environment, starts = tmp_path / "other", tmp_path / "starts"
    (second_environment / "sympy" / "parsing").mkdir(parents=True)
    for name in ("sympy/__init__.py", "sympy/parsing/__init__.py"):
        (second_environment / name).touch()
    note = f"open({str(starts)!r}, 'a').write(__name__ + ' ')\n"
    (second_environment / "math_verify.py").write_text(note + STAND_IN)
    (second_environment / "sympy" / "parsing" / "latex.py").write_text(note + "def parse_latex(text): return text\n")
    monkeypatch.setenv("PYTHONPATH", str(second_environment), prepend=os.pathsep)

    twice = ("--also", "sympy", "--also", "math-verify", "--also", "sympy")
    done = harness(tmp_path, "score", "run", *twice, "--also-python", sys.executable)
    assert done.code == 0, done.err
    assert starts.read_text() == "sympy.parsing.latex math_verify "
    # The stand-in for math-verify calls the second sample right; the rules and sympy do not.
    agreeing, _, disputing = done.out.partition("sums: rules 50.0%, math-verify 100.0%")
    assert "sums: rules 50.0%, sympy 50.0%" in agreeing
    assert "the graders disagree" not in agreeing
    assert "the graders disagree on 1 sample" in disputing
    assert "rules wrong, math-verify correct" in disputing
    stored = [(opinion.grader, opinion.correct) for opinion in read_opinions(run.benchmark("sums"))]
    assert stored == [("sympy", True), ("sympy", False), ("math-verify", True), ("math-verify", True)]
    disputed = harness(tmp_path, "show", "run", "--disputed").out
    assert "math-verify" in harness(tmp_path, "show", "run", disputed.splitlines()[0].split(" · ")[1]).out

    scores = front_door.score(tmp_path / "run", also=["math-verify", "sympy"])
    accuracies = {grader: of["sums"].accuracy_theirs for grader, of in scores.agreements.items()}
    assert list(accuracies.items()) == [("math-verify", 1.0), ("sympy", 0.5)]
