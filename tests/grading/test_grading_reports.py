"""What the grader reports: grades, steps, the second opinion, the self-test; and the judge that a caller passes.

For: harness.grading.verifier.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import traceback
import venv
from pathlib import Path

import pytest

import harness
from harness.core.errors import UsageError
from harness.core.records import Grade, GradeRules
from harness.grading import GRADER, grade
from harness.grading.second import second_opinion
from harness.grading.second.second_opinion import agreement, second_verdicts
from harness.grading.selftest import self_test
from harness.runs.grades import read_opinions
from tests.commands.judged_runs import write_run
from tests.grading.given import question, sample
from tests.patience import until
from tests.system.command import harness as command

pytestmark = pytest.mark.slow


def test_grade_names_the_grader_the_rule_and_the_vote() -> None:
    graded = grade(question(r"\frac{1}{2}"), sample(r"\boxed{0.50}"))
    assert graded.grader == GRADER.startswith("rules/") * GRADER
    assert (graded.rule, graded.vote, graded.extracted) == ("exact", r"\frac{1}{2}", "0.50")


def test_no_answer_does_not_vote() -> None:
    assert grade(question("5"), sample("")).vote is None


@pytest.mark.parametrize(
    ("response", "last", "contains"),
    [
        (r"<think>\boxed{1}</think>\boxed{0.5}", "correct", "the reasoning ends at character 24"),
        (r"\boxed{0.3}, \boxed{0.6}", "wrong", "1 other box passed over"),
        ("<think>hm", "no answer", "never ends"),
        ("I do not know", "no answer", "no box, phrase, formula or number"),
        ("\\boxed{\x1b[31m}", "undecided", r"\x1b[31m"),
        (
            r"\boxed{0.5}. This is because 1 ÷ 2 = 0.5. Wait, I misread it. It is odd.",
            "undecided",
            "a box contains 0.5, but the text that follows retracts it: “Wait, I misread it”",
        ),
        (
            "The answer is 0.5. Wait, \x1b[31m no.",
            "undecided",
            r"a label states 0.5, but the text that follows retracts it: “Wait, \x1b[31m no”",
        ),
    ],
)
def test_steps_describe_the_search_and_end_in_the_verdict(response: str, last: str, contains: str) -> None:
    steps = harness.grade(r"\frac12", response).steps
    assert steps[-1] == last
    assert any(contains in step for step in steps)
    assert all(step.isprintable() for step in steps)


def test_self_test_reports_a_reference_that_equals_its_change() -> None:
    assert self_test([question("5"), question("(1,2)"), question("B"), question("north")]).passed
    lax = question("5", kind="number", rules=GradeRules(relative_tolerance=1e9))
    assert self_test([lax]).not_distinct == [("q", "5", "40")]


STUB = """
def parse(text):
    print("noise on standard output")
    if "hang" in text:
        while True:
            pass
    if "raise" in text:
        raise ValueError("no")
    return text.strip("$").rpartition(" ")[2]

def verify(gold, answer):
    return gold == answer
"""


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "math_verify.py").write_text(STUB)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.usefixtures("second")
def test_second_opinion_survives_hangs_and_reads_only_the_final_part() -> None:
    questions = {"q": question("5")}
    texts = ["it is 5", "it is 6", "\ud800 5", "hang 5", "raise 5", "<think>x 6</think> y 5", None, "<think>5"]
    samples = [sample(text, index=index) for index, text in enumerate(texts)]
    verdicts = second_verdicts("math-verify", questions, samples, deadline_s=1.0)
    assert [verdicts[each.key] for each in samples] == [True, False, True, None, None, True, False, False]


@pytest.mark.usefixtures("second")
def test_agreement_lists_what_moves_the_score_most_first() -> None:
    questions = {name: question("5", name=name) for name in ("a", "b")}
    samples = [sample(t, name="a", index=i) for i, t in enumerate(["\\boxed{5} no 6", *["The answer is 5"] * 3])]
    samples += [sample("\\boxed{5} no 6", name="b", index=0)]
    grades: list[Grade] = [grade(questions[s.question_id], s) for s in samples]
    result = agreement(grades, second_verdicts("math-verify", questions, samples))
    assert result.matrix == {("correct", "wrong"): 2, ("correct", "correct"): 3}
    assert (result.accuracy_ours, result.accuracy_theirs) == (1.0, 0.375)
    assert [(d.question_id, d.effect) for d in result.disagreements] == [("b", 0.5), ("a", 0.125)]


@pytest.mark.parametrize("early", [False, True])
def test_a_second_grader_interrupted_at_its_start_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    note = tmp_path / "process"
    silent = tmp_path / "python"
    silent.write_text(f"#!/bin/sh\necho $$ > {note}.new && mv {note}.new {note}\nexec sleep 1000\n")
    silent.chmod(0o755)

    main_thread = threading.main_thread().ident or 0

    def waits_for_its_first_line() -> bool:
        """Whether the main thread has started the process: Python itself loses one whose start is interrupted."""
        frame = sys._current_frames()[main_thread]
        return "readline" in (traceback.extract_stack(frame)[-1].line or "")

    def press_ctrl_c(**_: object) -> None:
        until(lambda: note.exists() and (early or waits_for_its_first_line()), "the second grader's process")
        signal.pthread_kill(main_thread, signal.SIGINT)

    pressing = threading.Thread(target=press_ctrl_c)
    if early:  # while the thread that watches it starts
        monkeypatch.setattr(threading, "Thread", press_ctrl_c)
    else:
        pressing.start()
    with pytest.raises(KeyboardInterrupt):
        second_verdicts("math-verify", {}, [], python=str(silent))
    if not early:
        pressing.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_missing_or_sleeping_interpreter_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="cannot be started"):
        second_verdicts("math-verify", {}, [], python="/nonexistent/python")
    sleeping = tmp_path / "python"
    sleeping.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeping.chmod(0o755)
    monkeypatch.setattr(second_opinion, "SILENT_SECONDS", 0.0)
    with pytest.raises(UsageError, match="it did not respond"):
        second_verdicts("math-verify", {}, [], python=str(sleeping), deadline_s=0.1)


BY_THE_SCRIPT = [
    (r"\frac{1}{2}", r"\boxed{0.5}", True),
    (r"\frac{1}{2}", r"\boxed{0.6}", False),
    ("x^2+2x+1", r"\boxed{(x+1)^2}", True),
    ("x^2+2x+1", r"\boxed{(x-1)^2}", False),
    ("(1,2)", r"\boxed{(1, 2)}", True),
    ("(1,2)", r"\boxed{(2, 1)}", False),
    ("50", r"\boxed{0.5}", True),  # as that script has it
    ("x=3", r"\boxed{2x=6}", False),
    ("5", r"\boxed{\frac{}{", False),
]


@pytest.mark.skipif(importlib.util.find_spec("antlr4") is None, reason="sympy's LaTeX parser needs the extra antlr")
def test_sympy_judges_as_the_script_of_sglang_does() -> None:
    questions = {str(i): question(reference, name=str(i)) for i, (reference, _, _) in enumerate(BY_THE_SCRIPT)}
    samples = [sample(response, name=str(i)) for i, (_, response, _) in enumerate(BY_THE_SCRIPT)]
    verdicts = second_verdicts("sympy", questions, samples)
    right = {key.question_id for key, verdict in verdicts.items() if verdict}
    assert right == {str(i) for i, (_, _, correct) in enumerate(BY_THE_SCRIPT) if correct}


@pytest.mark.parametrize("name", ["math-verify", "sympy"])
def test_a_second_grader_that_is_not_there_says_how_to_install_it(name: str, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(UsageError, match="pip install"):
        second_verdicts(name, {}, [], python=str(bare))


# -- second graders by the command -------------------------------------------------------------------------------------


STAND_IN = """
def parse(text, *args, **kwargs): return [text]
def verify(gold, answer, *args, **kwargs): return True
"""
"""A math-verify that calls everything correct: what is tested is the way there and back."""


def test_a_missing_grader_is_named_with_the_line_that_installs_it(tmp_path: Path) -> None:
    write_run(tmp_path / "run", {"q1": ("1", [r"\boxed{1}"])}, "sums")
    venv.create(tmp_path / "bare", symlinks=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    missing = command(tmp_path, "score", "run", "--also", "math-verify", "--also-python", bare)
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
    done = command(tmp_path, "score", "run", *twice, "--also-python", sys.executable)
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
    disputed = command(tmp_path, "show", "run", "--disputed").out
    assert "math-verify" in command(tmp_path, "show", "run", disputed.splitlines()[0].split(" · ")[1]).out

    scores = harness.score(tmp_path / "run", also=["math-verify", "sympy"])
    accuracies = {grader: of["sums"].accuracy_theirs for grader, of in scores.agreements.items()}
    assert list(accuracies.items()) == [("math-verify", 1.0), ("sympy", 0.5)]
