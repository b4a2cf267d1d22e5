"""`harness diff` and `harness compare` name what differs in the grading of two runs.

For: harness.scoring.graded_by.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.core.records import GradeRules
from harness.grading.second.judge_prompts import VERDICT, JudgePrompt, with_rubric
from harness.runs import questions
from harness.runs.line_file import write_lines
from tests.faults.server import FaultServer
from tests.system.command import harness
from tests.verbs.judged_runs import PROSE, judge_run, ruling_by, serve, write_run

ROWS = {"q1": (PROSE, [r"\boxed{\text{plants making sugar}}"]), "q2": ("4", [r"\boxed{4}"])}
COMMON = "Sugar is right."


def judged(folder: Path, name: str, prompt: JudgePrompt, temperature: float = 0.0) -> None:
    with FaultServer(ruling_by({"making": True})) as server:
        judge_run(write_run(folder / name, ROWS), serve(server), prompt=prompt, temperature=temperature)


def said(folder: Path, verb: str, first: str, second: str) -> str:
    done = harness(folder, verb, first, second)
    return " ".join((done.out + done.err).split())


def test_another_judge_or_rubric_is_named_by_diff_and_compare(tmp_path: Path) -> None:
    judged(tmp_path, "a", VERDICT)
    judged(tmp_path, "b", with_rubric(COMMON))
    text = said(tmp_path, "diff", "a", "b")
    assert "points; the replies are the same in A and B (2 compared, word for word)" in text
    assert "other questions of this kind" not in text
    assert f"judge: prompt: verdict → {with_rubric(COMMON).name}" in text
    assert COMMON not in text, "a rubric in one line is not the user's file"
    assert "+judge:judge@verdict → " in text
    assert "no setting differs" not in text
    assert "were graded by different graders" in said(tmp_path, "compare", "b", "a")


def test_another_temperature_of_one_judge_is_named_by_diff_and_compare(tmp_path: Path) -> None:
    judged(tmp_path, "a", VERDICT)
    judged(tmp_path, "b", VERDICT, temperature=0.7)
    assert "judge: temperature: 0 → 0.7" in said(tmp_path, "diff", "a", "b")
    compared = said(tmp_path, "compare", "a", "b")
    assert "the judge graded the two runs with other settings (baseline → run: judge: temperature: 0 → 0.7)" in compared
    assert "different graders" not in compared


def test_beside_a_judge_a_function_of_ones_own_is_not_called_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_words.py").write_text("def decide(answer, question): return None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("HARNESS_GRADERS", "own_words")
    with FaultServer(ruling_by({"making": True, "4": True})) as server:
        words = ["--judge", "judge", "--judge-base-url", server.base_url]
        write_run(tmp_path / "rules", ROWS)
        assert "rules | judge" in harness(tmp_path, "score", "rules", *words).out
        own = write_run(tmp_path / "own", ROWS).benchmark("prose")
        rules = GradeRules(grader="own_words:decide")
        write_lines(own.questions, [msgspec.structs.replace(it, rules=rules) for it in questions.read(own)])
        text = harness(tmp_path, "score", "own", *words).out
    assert "own grader | judge" in text
    assert "rules" not in text.partition("judged by")[2]


def test_an_equal_grading_is_not_named(tmp_path: Path) -> None:
    """The wrong twin: the judge's server had another port, which decides no verdict."""
    judged(tmp_path, "a", VERDICT)
    judged(tmp_path, "b", VERDICT)
    text = said(tmp_path, "diff", "a", "b")
    assert "graders:" not in text
    assert "prompt" not in text
    assert "other settings" not in said(tmp_path, "compare", "b", "a")
