"""A scoring that is refused leaves every file as it was: of all benchmarks, and of all runs of the command.

For: harness.commands.score, harness.scoring.pipeline, harness.cli.score, harness.scoring.graded_by.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from types import MappingProxyType

import msgspec
import pytest

import harness as reasoning_harness
from harness.benchmarks.judge_forms import JudgeForm, form_named, with_rubric
from harness.core.errors import HarnessError
from harness.core.records import Grade, GradeRules, Question
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, questions
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.graded_by import grading_warnings
from harness.scoring.judging import Judging
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from harness.testing import FakeServer
from tests.commands.judged_runs import PROSE, judge_run, ruling_by, serve, write_run
from tests.system.command import harness

VERDICT = form_named("verdict")

ROWS = {"q1": (PROSE, [r"\boxed{x}"])}
JUDGED = "rules+judge:judge@verdict"
GRADERS = {
    "own_raising:f": ("raise RuntimeError('a broken import')\n", "a broken import"),
    "own_nameless:f": ("def g(answer, question):\n    return True\n", "has no attribute"),
    "own_strange:f": ("def f(answer, question):\n    return True\n", "runs only if you trust it"),
}
"""Grader → its module, and the refusal."""


@pytest.fixture(autouse=True)
def graders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for grader, (text, _) in GRADERS.items():
        (tmp_path / f"{grader.partition(':')[0]}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    trusted = (grader.partition(":")[0] for grader in GRADERS if grader != "own_strange:f")
    monkeypatch.setenv("HARNESS_GRADERS", ",".join(trusted))


def scored_run(path: Path, *graders: str, judged: bool = True) -> RunFolder:
    """A run of a benchmark for each grader, in this order, whose stored scores would differ after any scoring."""
    for number, _ in enumerate(graders):
        folder = write_run(path, ROWS, f"benchmark-{number}")
    score_run(folder, GradingOptions(workers=1))
    for number, grader in enumerate(graders):
        place = folder.benchmark(f"benchmark-{number}")
        score = Score.load(place)
        msgspec.structs.replace(score, graders=(JUDGED,) if judged else ("rules/0",)).save(place)
        rules = GradeRules(grader=grader)
        questions.write(place, [msgspec.structs.replace(asked, rules=rules) for asked in questions.read(place)])
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("grader", GRADERS)
def test_a_refused_grader_leaves_all_benchmarks_and_all_runs_as_they_were(tmp_path: Path, grader: str) -> None:
    runs = tmp_path / "runs"
    for number, order in enumerate(permutations(["rules", grader])):
        scored_run(runs / f"mixed-{number}", *order)
    scored_run(runs / "right", "rules")
    before = files(runs)
    # Each order of benchmarks by one of the doors, and the run that can be scored before one that cannot.
    refused = [harness(tmp_path, "score", *words) for words in (["runs/mixed-0"], ["runs/right", "runs/mixed-1"])]
    assert [result.code for result in refused] == [2, 2]
    assert all(GRADERS[grader][1] in result.err and "graded by the judge" not in result.err for result in refused)
    with pytest.raises(HarnessError, match=GRADERS[grader][1]):
        reasoning_harness.score(runs / "mixed-0")
    assert files(runs) == before


def test_a_refused_judge_or_file_leaves_all_runs_as_they_were(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    scored_run(runs / "mixed", "rules", "own_strange:f")
    scored_run(runs / "new", "rules", judged=False)
    scored_run(runs / "judged", "rules")
    damaged = scored_run(runs / "damaged", "rules", "rules").benchmark("benchmark-1")
    damaged.overrides.write_text("{}\n")
    (runs / "lines.jsonl").write_text('{"response": "1", "answer": "1"}\nno JSON\n')
    before = files(runs)
    with FakeServer(ruling_by({})) as server:
        judge = ["--judge", f"judge@{server.base_url}"]
        misspelled = ["--judge", f"jugde@{server.base_url}"]
        words = [
            (["runs/judged", "runs/mixed", *judge], 2, "runs only if you trust it"),
            (["runs/new", "runs/judged", *misspelled], 2, "does not serve jugde"),
            (["runs/new", "runs/judged", judge[0], f"{judge[1]},prompt=absent.txt"], 2, "absent.txt"),
            (["runs/judged", "runs/damaged"], 3, "overrides.jsonl"),
            (["runs/judged", "runs/lines.jsonl", "--response-key", "response"], 2, "lines.jsonl"),
        ]
        for given, code, sentence in words:
            result = harness(tmp_path, "score", *given)
            assert (result.code, sentence in result.err) == (code, True), (given, result)
            assert files(runs) == before, given
        assert [request for request in server.requests if request.method == "POST"] == []


# ----
# `harness compare --samples` and `harness compare` name what differs in the grading of two runs.

TWO_ROWS = {"q1": (PROSE, [r"\boxed{\text{plants making sugar}}"]), "q2": ("4", [r"\boxed{4}"])}
COMMON = "Sugar is right."


def judged(folder: Path, name: str, prompt: JudgeForm, temperature: float = 0.0) -> None:
    with FakeServer(ruling_by({"making": True})) as server:
        judge_run(write_run(folder / name, TWO_ROWS), serve(server), prompt=prompt, temperature=temperature)


def said(folder: Path, *words: str) -> str:
    done = harness(folder, *words)
    return " ".join((done.out + done.err).split())


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
        assert ("different settings" if twin == "another option" else "different graders") in warning, twin


def test_a_judge_that_had_nothing_to_rule_on_changed_nothing() -> None:
    judged = scored(options={"scope": "undecided"}, decided=(False,))
    assert not [*grading_warnings(judged, scored(judge=""))]
    undecided = msgspec.structs.replace(scored(judge=""), n_undecided=1)
    assert [*grading_warnings(judged, undecided)], "the judge would have ruled on this one"
    assert [*grading_warnings(scored(decided=(False,)), scored(judge=""))], "it also rules on wrong answers"


@pytest.mark.parametrize("ended", [False, True])
def test_a_judging_that_has_not_ended_is_named_though_the_rules_in_force_are_equal(ended: bool) -> None:
    run = scored(decided=(False,))
    stopped = msgspec.structs.replace(run, judging=msgspec.structs.replace(run.judging, ended=ended, mute=ended))
    for pair, which in (((stopped, run), "the run"), ((run, stopped), "the baseline")):
        (warning,) = grading_warnings(*pair)
        assert which in warning
        assert ("gave no verdicts at all" if ended else "is incomplete") in warning


def test_scores_of_former_versions_name_the_judge_where_it_decided() -> None:
    former = msgspec.structs.replace(scored(decided=(True, False)), judging=msgspec.UNSET)
    assert not [*grading_warnings(former, msgspec.structs.replace(former, graders=former.graders[1:]))]


def test_a_judge_that_fails_leaves_stored_scores_and_names_itself_in_new_ones(tmp_path: Path) -> None:
    """The judge is down when its rubric has changed: compare and report warn alike of the run that had no score."""
    judged(tmp_path, "a", VERDICT)
    judged(tmp_path, "b", VERDICT)
    write_run(tmp_path / "c", TWO_ROWS)
    (tmp_path / "rubric.txt").write_text(COMMON, "utf-8")
    words = ("--judge", "judge@http://127.0.0.1:9,prompt=rubric.txt")
    before = {path: path.read_bytes() for path in (tmp_path / "b" / "prose").iterdir()}
    assert [harness(tmp_path, "score", name, *words).code for name in "bc"] == [2, 2]
    assert {path: path.read_bytes() for path in (tmp_path / "b" / "prose").iterdir()} == before
    for text in (said(tmp_path, "compare", "a", "c"), said(tmp_path, "report", "a", "c")):
        assert f"judging of the run by judge@{with_rubric(COMMON).name} is incomplete" in text
        assert "graded by different graders: the run by" in text
    assert "is incomplete" not in said(tmp_path, "compare", "a", "b")


@pytest.mark.parametrize(
    ("prompt", "temperature", "differs", "said_of_graders"),
    [
        (with_rubric(COMMON), 0.0, f"judge: prompt: verdict → {with_rubric(COMMON).name}", "different graders"),
        (
            VERDICT,
            0.7,
            "judge: temperature: 0 → 0.7",
            "the judge graded the two runs with different settings (baseline → ",
        ),
        # The wrong twin: the judge's server had another port, which decides no verdict.
        (VERDICT, 0.0, "", ""),
    ],
)
def test_another_grading_is_named_by_both_comparisons(
    tmp_path: Path, prompt: JudgeForm, temperature: float, differs: str, said_of_graders: str
) -> None:
    judged(tmp_path, "a", VERDICT)
    judged(tmp_path, "b", prompt, temperature)
    samples, plain = said(tmp_path, "compare", "a", "b", "--samples"), said(tmp_path, "compare", "a", "b")
    assert COMMON not in samples, "a rubric in one line is not the user's file"
    assert (differs in samples, said_of_graders in plain) == (True, True), (samples, plain)
    assert [text in plain for text in ("different graders", "different settings")] == [
        text in said_of_graders for text in ("different graders", "different settings")
    ]
    assert any(text in samples for text in ("judge: prompt", "judge: temperature", "graders:")) == bool(differs)
