"""`harness compare --samples` and `harness compare` name what differs in the grading of two runs.

For: harness.scoring.graded_by.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import pytest

from harness.core.records import Grade, Question
from harness.grading.second.judge_prompts import VERDICT, JudgePrompt, with_rubric
from harness.scoring.graded_by import grading_warnings
from harness.scoring.judging import Judging
from harness.scoring.score import Score, score_benchmark
from harness.testing import FakeServer
from tests.system.command import harness
from tests.verbs.judged_runs import PROSE, judge_run, ruling_by, serve, write_run

ROWS = {"q1": (PROSE, [r"\boxed{\text{plants making sugar}}"]), "q2": ("4", [r"\boxed{4}"])}
COMMON = "Sugar is right."


def judged(folder: Path, name: str, prompt: JudgePrompt, temperature: float = 0.0) -> None:
    with FakeServer(ruling_by({"making": True})) as server:
        judge_run(write_run(folder / name, ROWS), serve(server), prompt=prompt, temperature=temperature)


def said(folder: Path, *words: str) -> str:
    done = harness(folder, *words)
    return " ".join((done.out + done.err).split())


def test_another_judge_or_rubric_is_named_by_diff_and_compare(tmp_path: Path) -> None:
    judged(tmp_path, "a", VERDICT)
    judged(tmp_path, "b", with_rubric(COMMON))
    text = said(tmp_path, "compare", "a", "b", "--samples")
    assert f"judge: prompt: verdict → {with_rubric(COMMON).name}" in text
    assert COMMON not in text, "a rubric in one line is not the user's file"
    assert "+judge:judge@verdict → " in text
    assert "no setting differs" not in text
    assert "were graded by different graders" in said(tmp_path, "compare", "b", "a")


def test_another_temperature_of_one_judge_is_named_by_diff_and_compare(tmp_path: Path) -> None:
    judged(tmp_path, "a", VERDICT)
    judged(tmp_path, "b", VERDICT, temperature=0.7)
    assert "judge: temperature: 0 → 0.7" in said(tmp_path, "compare", "a", "b", "--samples")
    compared = said(tmp_path, "compare", "a", "b")
    assert "the judge graded the two runs with other settings (baseline → run: judge: temperature: 0 → 0.7)" in compared
    assert "different graders" not in compared


WRONG_TWINS = {
    "another rubric": {"judge": "judge:m@rubric-2"},
    "another model": {"judge": "judge:n@rubric-1"},
    "more votes": {"judge": "judge:m@rubric-1*3"},
    "no judge": {"judge": ""},
    "another function": {"base": "own:f@2"},
    "the rules": {"base": "rules/1"},
    "another option": {"options": {"scope": "all"}},
}


def scored(
    base: str = "own:f@1",
    judge: str = "judge:m@rubric-1",
    options: Mapping[str, object] = MappingProxyType({"scope": "wrong"}),
    *,
    decided: Sequence[bool] = (True,),
) -> Score:
    """A score by a function and a judge. decided: whether the judge decided it, for each kind of its samples."""
    problem = Question(
        benchmark="b", question_id="q", messages=(), references=("5",), kind="integer", row_digest="", prompt_digest=""
    )
    grade = Grade(benchmark="b", question_id="q", sample_index=0, verdict="wrong", extracted="4", rule="r", grader=base)
    score = score_benchmark([problem], [grade], 1)
    names = {f"{base}+{judge}" if by_judge and judge else base for by_judge in decided}
    judging = Judging(name=judge, settings=dict(options), ended=True) if judge else msgspec.UNSET
    return msgspec.structs.replace(score, graders=tuple(sorted(names)), judging=judging)


DECIDED = ((True,), (False,), (True, False))


@pytest.mark.parametrize(("ours", "theirs"), [*itertools.product(DECIDED, repeat=2)])
def test_the_rules_in_force_are_compared_and_not_which_of_them_decided(
    ours: Sequence[bool], theirs: Sequence[bool]
) -> None:
    """The judge is not shown an empty reply, so one run has a sample that only the function decided."""
    run = scored(decided=ours)
    assert not [*grading_warnings(run, scored(decided=theirs))]
    for twin, other in WRONG_TWINS.items():
        (warning,) = grading_warnings(run, scored(**other, decided=theirs))
        assert ("other settings" if twin == "another option" else "different graders") in warning, twin


def test_a_judge_that_had_nothing_to_rule_on_changed_nothing() -> None:
    judged = scored(options={"scope": "undecided"}, decided=(False,))
    assert not [*grading_warnings(judged, scored(judge=""))]
    undecided = msgspec.structs.replace(scored(judge=""), n_undecided=1)
    assert [*grading_warnings(judged, undecided)], "the judge would have ruled on this one"
    assert [*grading_warnings(scored(decided=(False,)), scored(judge=""))], "it also rules on wrong answers"


@pytest.mark.parametrize("ended", [False, True])
def test_a_judging_that_has_not_ended_is_named_though_the_rules_in_force_are_equal(ended: bool) -> None:
    run = scored(decided=(False,))
    assert run.judging
    stopped = msgspec.structs.replace(run, judging=msgspec.structs.replace(run.judging, ended=ended, mute=ended))
    for pair, which in (((stopped, run), "the run"), ((run, stopped), "the baseline")):
        (warning,) = grading_warnings(*pair)
        assert which in warning
        assert ("gave no verdict at all" if ended else "has not ended") in warning


def test_scores_of_former_versions_name_the_judge_where_it_decided() -> None:
    former = msgspec.structs.replace(scored(decided=(True, False)), judging=msgspec.UNSET)
    assert not [*grading_warnings(former, msgspec.structs.replace(former, graders=former.graders[1:]))]
    for votes in (1, 3):
        voted = scored(options={"scope": "wrong", "votes": votes})
        assert len([*grading_warnings(scored(), voted)]) == (votes > 1)


def test_a_judge_that_fails_leaves_stored_scores_and_names_itself_in_new_ones(tmp_path: Path) -> None:
    """The judge is down when its rubric has changed: compare and report warn alike of the run that had no score."""
    judged(tmp_path, "a", VERDICT)
    judged(tmp_path, "b", VERDICT)
    write_run(tmp_path / "c", ROWS)
    (tmp_path / "rubric.txt").write_text(COMMON, "utf-8")
    words = ("--judge", "judge@http://127.0.0.1:9,prompt=rubric.txt")
    before = {path: path.read_bytes() for path in (tmp_path / "b" / "prose").iterdir()}
    assert [harness(tmp_path, "score", name, *words).code for name in "bc"] == [2, 2]
    assert {path: path.read_bytes() for path in (tmp_path / "b" / "prose").iterdir()} == before
    for text in (said(tmp_path, "compare", "a", "c"), said(tmp_path, "report", "a", "c")):
        assert f"the judging of the run by judge@{with_rubric(COMMON).name} has not ended" in text
        assert "graded by different graders: the run by" in text
    assert "has not ended" not in said(tmp_path, "compare", "a", "b")


def test_an_equal_grading_is_not_named(tmp_path: Path) -> None:
    """The wrong twin: the judge's server had another port, which decides no verdict."""
    judged(tmp_path, "a", VERDICT)
    judged(tmp_path, "b", VERDICT)
    text = said(tmp_path, "compare", "a", "b", "--samples")
    assert "graders:" not in text
    assert "prompt" not in text
    assert "other settings" not in said(tmp_path, "compare", "b", "a")
