"""The worker pool: bounded, deterministic, and never brought down by one answer."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from click.testing import CliRunner

import harness
from harness.benchmarks.card import from_mapping
from harness.cli.main import cli
from harness.core.errors import HelperFailed, UsageError
from harness.core.records import Grade, GradeRules, Question, Sample
from harness.grading import GRADER, grade
from harness.grading.processes import pool as pools
from harness.grading.processes.pool import Pool, _Worker, grade_all, question_on
from harness.grading.processes.worker import MAX_FRAME_BYTES
from harness.scoring.benchmark_score import score_benchmark
from reasoning_answers import extract
from server_launchers import isolated
from tests.grading.given import pinned_pairs, question, sample
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def trusted_verifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifiers of these tests may run."""
    monkeypatch.setenv("HARNESS_GRADERS", "tests.grading.verifiers")


NO_VERIFIER = GradeRules()
MISBEHAVES = GradeRules(grader="tests.grading.verifiers:misbehaves")


def graded(
    answers: list[str], rules: GradeRules = NO_VERIFIER, *, workers: int = 1, deadline_s: float = PATIENCE_SECONDS
) -> list[Grade]:
    asked_question = question("right", kind="text", rules=rules)
    samples = [sample(f"\\boxed{{{answer}}}", index=index) for index, answer in enumerate(answers)]
    return list(grade_all({"q": asked_question}, samples, workers=workers, deadline_s=deadline_s))


def outcomes(pool: Pool, responses: list[tuple[Question, str]]) -> list[str]:
    """The outcome of each (question, response), decided by the pool."""
    found = [(each, extract(text)) for each, text in responses]
    return list(pools.outcomes(pool, [(each, extraction) for each, extraction in found if extraction is not None]))


def some_pairs() -> tuple[dict[str, Question], list[Sample]]:
    questions, samples = {}, []
    for index, (reference, answer) in enumerate(pinned_pairs()[::40]):
        name = str(index)
        questions[name] = question(reference, name=name)
        samples.append(sample(f"\\boxed{{{answer}}}", name=name))
    return questions, samples


def test_an_answer_to_a_prompt_longer_than_a_message_is_graded() -> None:
    long = msgspec.structs.replace(question(r"\frac{1}{2}"), prompt="x" * (MAX_FRAME_BYTES + 1))
    (verdict,) = grade_all({"q": long}, [sample(r"\boxed{2^{-1}}")])
    assert verdict.verdict == "correct"


def test_the_import_of_a_verifier_is_no_time_of_its_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_GRADERS", "tests.grading.slow_verifier")
    (verdict,) = graded(["right"], GradeRules(grader="tests.grading.slow_verifier:is_right"), deadline_s=1.2)
    assert verdict.verdict == "correct"


def test_verdicts_do_not_depend_on_workers_or_order() -> None:
    questions, samples = some_pairs()
    by_one_worker = list(grade_all(questions, samples, workers=1))
    shuffled = random.Random(5).sample(samples, len(samples))
    by_four_workers = list(grade_all(questions, shuffled, workers=4))
    assert [g.key for g in by_one_worker] == [s.key for s in samples]
    assert [g.key for g in by_four_workers] == [s.key for s in shuffled]
    assert sorted(by_one_worker, key=lambda g: g.key) == sorted(by_four_workers, key=lambda g: g.key)


def test_a_bounded_memory_of_decisions_changes_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that recur after their decisions were dropped are decided again."""
    answers = [str(n % 97) for n in random.Random(3).sample(range(2_000), 2_000)]
    asked_question = question("5", kind="expression")
    samples = [
        sample(rf"\boxed{{{answer} + \sqrt{{2}} - \sqrt{{2}}}}", index=index) for index, answer in enumerate(answers)
    ]
    remembered: list[int] = []
    really = Pool.ask

    def watched(self: Pool, job: Any) -> None:
        really(self, job)
        remembered.append(sum(decision is not None for decision in self.decisions.values()))

    monkeypatch.setattr(Pool, "ask", watched)
    monkeypatch.setattr("harness.grading.processes.pool.MAX_DECISIONS", 20)
    grades = list(grade_all({"q": asked_question}, samples))
    assert [grade.verdict for grade in grades] == ["correct" if answer == "5" else "wrong" for answer in answers]
    assert max(remembered) <= 20


def test_pool_agrees_with_grading_in_this_process() -> None:
    questions, samples = some_pairs()
    assert list(grade_all(questions, samples)) == [grade(questions[s.question_id], s) for s in samples]


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("hang", "verifier took longer than 1 s"),
        ("spin", "verifier took longer than 1 s"),
        ("child of a process", "verifier took longer than 1 s"),
        ("memory", "memory"),
        ("segfault", "verifier ended its process"),
        ("exit", "verifier ended its process"),
        ("raise", "verifier raised ValueError (verifiers.py:38)"),
    ],
)
def test_one_bad_answer_costs_one_verdict(answer: str, rule: str) -> None:
    answers = ["right", "wrong", answer, "right", "wrong"]
    grades = graded(answers, MISBEHAVES, deadline_s=1.0 if "1 s" in rule else PATIENCE_SECONDS)
    assert [g.verdict for g in grades] == ["correct", "wrong", "undecided", "correct", "wrong"]
    assert grades[2].rule == rule


@pytest.mark.parametrize(("answer", "verdict"), [("late", "correct"), ("hang", "undecided")])
def test_time_in_which_a_worker_had_no_processor_is_not_the_answers(
    monkeypatch: pytest.MonkeyPatch, answer: str, verdict: str
) -> None:
    if answer == "late":
        monkeypatch.setattr(isolated, "seconds_without_processor", lambda task: time.monotonic())
    assert [g.verdict for g in graded([answer], MISBEHAVES, deadline_s=0.3)] == [verdict]


def test_time_in_which_the_whole_machine_stood_still_is_not_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a virtual machine that is paused, or a job that Slurm suspends."""
    question = question_on("1+x")
    with Pool(1, 3.0) as pool:
        assert outcomes(pool, [(question, r"\boxed{x+1}")]) == ["correct"]
        (worker,) = pool.workers
        select = pool.selector.select

        def stands_still(timeout: float) -> list[Any]:
            monkeypatch.setattr(pool.selector, "select", select)
            time.sleep(timeout + 3.5)
            os.kill(worker.process.pid, signal.SIGCONT)
            return []

        monkeypatch.setattr(pool.selector, "select", stands_still)
        os.kill(worker.process.pid, signal.SIGSTOP)
        assert outcomes(pool, [(question, r"\boxed{1+x+x-x}")]) == ["correct"]


def test_load_postpones_a_deadline_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine wakes this process late for the same reason for which the worker waits."""
    question = question_on("1+x")
    with Pool(1, 0.3) as pool:
        assert outcomes(pool, [(question, r"\boxed{x+1}")]) == ["correct"]
        (worker,) = pool.workers
        select, late_wakes = pool.selector.select, iter(range(20))  # endless if both count

        def wakes_late(timeout: float) -> list[Any]:
            next(late_wakes)
            time.sleep(timeout + 0.3)
            return select(0.0)

        monkeypatch.setattr(pool.selector, "select", wakes_late)
        monkeypatch.setattr(isolated, "seconds_without_processor", lambda task: 0.6 * time.monotonic())
        os.kill(worker.process.pid, signal.SIGSTOP)
        assert outcomes(pool, [(question, r"\boxed{1+x+x-x}")]) == ["undecided"]


def test_printing_verifier_cannot_forge_a_verdict() -> None:
    assert [g.verdict for g in graded(["print", "right"], MISBEHAVES)] == ["wrong", "correct"]


@pytest.mark.parametrize("act", ["open", "folder", "write"])
def test_a_verifier_creates_no_file(tmp_path: Path, act: str) -> None:
    target = tmp_path / "created"
    grades = graded([f"{act} {target}", "right"], MISBEHAVES)
    assert not target.exists()
    assert grades[1].verdict == "correct"
    assert act == "write" or "PermissionError" in grades[0].rule, grades[0].rule


def test_a_result_that_is_no_bool_is_undecided_and_named() -> None:
    grades = graded(["returns 0.2", "returns text", "returns None", "returns 1", "right"], MISBEHAVES)
    assert [grade.verdict for grade in grades] == ["undecided"] * 4 + ["correct"]
    assert [grade.rule.rpartition(" ")[2] for grade in grades[:4]] == ["float", "str", "NoneType", "int"]


def test_a_worker_that_is_killed_while_idle_costs_no_verdict() -> None:
    """As the kernel does where memory runs out."""
    question = question_on("1+x")
    responses = [(question, r"\boxed{x+1}"), (question, r"\boxed{x+2}")]
    with Pool(1, PATIENCE_SECONDS) as pool:
        assert outcomes(pool, responses) == ["correct", "wrong"]
        (worker,) = pool.workers
        os.kill(worker.process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, worker.process.pid, os.WEXITED | os.WNOWAIT)
        assert outcomes(pool, responses) == ["correct", "wrong"]
        assert pool.workers != [worker]


@pytest.mark.parametrize(
    ("deaths", "has_begun", "verdict"), [(1, True, "correct"), (2, True, "undecided"), (4, False, "correct")]
)
def test_a_worker_that_is_killed_costs_no_verdict_unless_the_next_dies(
    monkeypatch: pytest.MonkeyPatch, deaths: int, has_begun: bool, verdict: str
) -> None:
    quick_starts(monkeypatch)
    question = question_on("1+x")
    responses = [(question, r"\boxed{x+1}"), (question, r"\boxed{x+2}")]
    with Pool(1, PATIENCE_SECONDS) as pool:
        send = pool.send
        left = [deaths]

        def send_to_the_dead(worker: _Worker, jobs: list[Any]) -> None:
            if left[0]:
                left[0] -= 1
                worker.has_begun = has_begun
                os.kill(worker.process.pid, signal.SIGKILL)
                os.waitid(os.P_PID, worker.process.pid, os.WEXITED | os.WNOWAIT)
            send(worker, jobs)

        monkeypatch.setattr(pool, "send", send_to_the_dead)
        assert outcomes(pool, responses) == [verdict, "wrong"]
        assert outcomes(pool, responses) == ["correct", "wrong"]
        assert not pool._died_once  # a pool that lives as long as a training remembers no answer


def quick_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.grading.processes.pool.START_WAITS", (0.0,) * 6)


def test_workers_that_never_start_end_the_grading_and_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_starts(monkeypatch)

    def failing(_make: Any) -> _Worker:
        raise OSError("no process left")

    with Pool(2, PATIENCE_SECONDS, start=failing) as pool, pytest.raises(HelperFailed) as failed:
        outcomes(pool, [(question_on("1+x"), r"\boxed{x+1}")])
    assert failed.value.exit_code == 5


def running_workers() -> set[int]:
    """The workers of this process; one may live on behind `harness.grade`."""
    return {child.pid for child in psutil.Process().children(recursive=True) if _is_worker(child)}


def _is_worker(process: psutil.Process) -> bool:
    try:
        return process.is_running() and "worker" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it has ended; a child of another test may not have been waited for yet
        return False


def test_no_process_is_left_running() -> None:
    before = running_workers()
    graded(["hang", "child of a process", "right"], MISBEHAVES, workers=2, deadline_s=1.0)
    assert running_workers() == before


def test_pool_closed_early_leaves_no_process() -> None:
    before = running_workers()
    grades = grade_all({"q": question("5")}, (sample("\\boxed{2+3}", index=i) for i in range(100_000)))
    next(grades)
    assert running_workers() > before
    grades.close()  # type: ignore[attr-defined]
    assert running_workers() == before


def test_benchmark_brings_its_own_verifier() -> None:
    rules = GradeRules(grader="tests.grading.verifiers:is_even")
    assert [g.verdict for g in graded(["4", "5", "x"], rules)] == ["correct", "wrong", "undecided"]


def own(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, name: str = "mine") -> GradeRules:
    """The rules that name the verifier `judge` of a module of one's own, trusted and on the path."""
    (folder / f"{name}.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("HARNESS_GRADERS", name)
    return GradeRules(grader=f"{name}:judge")


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import a_module_that_is_nowhere\n", r"ModuleNotFoundError: .*a_module_that_is_nowhere.*mine.py:1"),
        ("x = 1\n1 / 0\n", r"ZeroDivisionError: division by zero \(mine.py:2\)"),
        ("def judge(answer, question)\n", r"SyntaxError: [^()]*\(mine\.py, line 1\)(?! \()"),
        ("judges = None\n", r"AttributeError.*judge"),
        ("judge = 5\n", r"TypeError: judge is not a function"),
        (
            "class G:\n    def __call__(self, answer, question): return True\njudge = G()\n",
            r"TypeError: judge is not a function, but an object of type G",
        ),
        ("def judge(answer): return True\n", r"TypeError: judge\(answer\) cannot be called with \(answer, question\)"),
        ("def judge(a, q, *, strict): return True\n", r"TypeError: judge\(a, q, \*, strict\) cannot be called"),
        ("import sys\nsys.exit('bye')\n", r"SystemExit: bye"),
        ("import os\nos._exit(3)\n", r"importing it terminates the process"),
    ],
)
def test_a_verifier_that_cannot_be_imported_is_reported_before_grading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, error: str
) -> None:
    rules = own(tmp_path, monkeypatch, source)
    with pytest.raises(UsageError, match=f"mine:judge cannot be used: .*{error}"):
        graded(["4"], rules)


def test_each_grade_names_its_verifier_by_a_digest_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def judge(answer, question):\n    return answer == '4'\n"
    rules = own(tmp_path, monkeypatch, source)
    names = [g.grader for g in graded(["4", "5", ""], rules)]
    assert len(set(names)) == 1
    assert names[0].startswith("mine:judge@")
    assert [g.grader for g in graded(["4"], rules)] == names[:1]
    own(tmp_path, monkeypatch, source.replace("4", "5"))
    assert [g.grader for g in graded(["4"], rules)] != names[:1]
    assert [g.grader for g in graded(["4"], GradeRules())] == [GRADER]


def test_a_verifier_that_raises_is_reported_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import json\ndef judge(answer, question):\n    return json.loads(answer) == 4\n"
    rules = own(tmp_path, monkeypatch, source)
    right, broken = graded(["4", "x"], rules)
    assert (right.verdict, broken.verdict) == ("correct", "undecided")
    assert broken.rule.startswith("verifier raised json.decoder.JSONDecodeError")


def test_unknown_question_is_refused_with_its_name() -> None:
    with pytest.raises(UsageError, match="'other'"):
        list(grade_all({"q": question("5")}, [sample("5", name="other")]))


@pytest.mark.parametrize(("workers", "deadline_s"), [(0, 1.0), (-1, 1.0), (1, 0.0)])
def test_senseless_limits_are_refused(workers: int, deadline_s: float) -> None:
    with pytest.raises(UsageError):
        list(grade_all({"q": question("5")}, [sample("5")], workers=workers, deadline_s=deadline_s))


def test_lone_surrogate_passes_through() -> None:
    questions = {"q": question("5")}
    grades = list(grade_all(questions, [sample("\\boxed{\ud800}"), sample("\\boxed{5}", index=1)]))
    assert [g.verdict for g in grades] == ["undecided", "correct"]
    assert grades[0].extracted == "\ud800"


def test_worker_ends_with_its_parent() -> None:
    source = (
        "from harness.grading.processes.pool import Pool, _Worker, grade_all, question_on\n"
        "from tests.grading.given import pinned_pairs, question, sample\n"
        "import os, psutil\n"
        "grades = grade_all({'q': question('5')}, (sample('5', index=i) for i in range(10**6)))\n"
        "next(grades)\n"
        "print(psutil.Process().children()[0].pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    import subprocess
    import sys

    ended = subprocess.run(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, cwd=Path.cwd(), timeout=PATIENCE_SECONDS
    )
    pid = int(ended.stdout)
    _, alive = psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=PATIENCE_SECONDS)
    assert alive == []
    assert os.getpid() != pid


def test_a_verifier_that_nobody_trusts_is_refused_before_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HARNESS_GRADERS", "somebody.else")
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    asked_question = question("2", rules=GradeRules(grader="planted:verify"))
    with pytest.raises(UsageError, match="HARNESS_GRADERS=planted"):
        list(grade_all({"q": asked_question}, [sample("2")]))


def test_scoring_with_a_raising_verifier_says_so_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def judge(answer, question):\n    return int(answer) == 4\n"
    rules = own(tmp_path, monkeypatch, source)
    done = CliRunner().invoke(cli, ["grade", "4", r"\boxed{x}", "--grader", rules.grader])
    assert done.exit_code == 4
    assert "the verifier raised ValueError" in done.output
    assert "(mine.py:2)" in done.output
    assert done.output.splitlines()[0] == "the reference 4 is passed to the benchmark's own function"
    assert done.output.splitlines()[-1] == "undecided"
    assert CliRunner().invoke(cli, ["grade", "4", r"\boxed{4}", "--grader", rules.grader]).exit_code == 0
    score = score_benchmark([question("4", kind="text", rules=rules)], graded(["4", "x", "y"], rules), None)
    assert score.verifier_errors == ("the verifier raised ValueError (mine.py:2) on 2 samples: counted as wrong",)
    assert not any("time or memory" in warning for warning in score.sentences)


def test_the_most_frequent_failures_of_a_verifier_are_named() -> None:
    """Seven causes, the first of them on two samples: five are named."""
    asked = question("4", kind="text")
    (grade,) = graded(["4"], GradeRules())
    rules = [f"verifier raised Error{number}" for number in (0, 0, 1, 2, 3, 4, 5, 6)]
    grades = [
        msgspec.structs.replace(grade, sample_index=index, verdict="undecided", rule=rule)
        for index, rule in enumerate(rules)
    ]
    score = score_benchmark([asked], grades, None)
    named = [f"the verifier raised Error{number} on 1 sample" for number in (1, 2, 3, 4)]
    assert [error.partition(":")[0] for error in score.verifier_errors] == [
        "the verifier raised Error0 on 2 samples",
        *named,
    ]
    assert set(score.verifier_errors) <= set(score.sentences)


def test_scoring_shows_a_verdict_that_is_neither_right_nor_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = own(tmp_path, monkeypatch, "def judge(answer, question):\n    return 0.2 if answer == '5' else True\n")
    score = score_benchmark([question("4", kind="text", rules=rules)], graded(["4", "5"], rules), None)
    assert score.verifier_errors == ("the verifier returned float on 1 sample: counted as wrong",)
    rules = own(tmp_path, monkeypatch, "def judge(answer, question):\n    return None\n", "other")
    score = score_benchmark([question("4", kind="text", rules=rules)], graded(["4"], rules), None)
    (error,) = score.verifier_errors
    assert error.endswith("counted as wrong; it returned None, which leaves the answer to a judge")


def test_a_verifier_is_not_called_on_a_value_that_no_sentence_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be blamed for what is no answer. A box states its answer, so the same function is called there."""
    rules = own(tmp_path, monkeypatch, "def judge(answer, question):\n    return 1 / 0\n")
    words = ["grade", "4", "--kind", "text", "--grader", rules.grader]
    passing, stating = (
        CliRunner().invoke(cli, [*words, '{"name": "Ada", "age": 3}']),
        CliRunner().invoke(cli, [*words, r"\boxed{3}"]),
    )
    assert (passing.exit_code, stating.exit_code) == (0, 4), passing.output
    assert "answer found by sentence at characters 23–24: 3" in passing.output
    assert "the verifier raised" not in passing.output
    asked_question = question("4", kind="text", rules=rules)
    samples = [sample('{"name": "Ada", "age": 3}'), sample(r"\boxed{3}", index=1)]
    first, second = grade_all({"q": asked_question}, samples)
    assert (first.verdict, first.rule, first.vote, first.extracted) == ("undecided", "sentence", "3", "3")
    assert (second.verdict, second.rule) == ("undecided", "verifier raised ZeroDivisionError (mine.py:2)")


def test_a_verifier_of_whole_replies_is_tried_on_a_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import json\ndef judge(answer, question):\n    return 'age' in json.loads(answer)\n"
    rules = own(tmp_path, monkeypatch, source)
    words = ["grade", "age", '{"name": "Ada", "age": 3}', "--kind", "text", "--grader", rules.grader]
    whole, searched = CliRunner().invoke(cli, [*words, "--whole-reply"]), CliRunner().invoke(cli, words)
    assert (whole.exit_code, whole.output.splitlines()[-1]) == (0, "correct")
    assert searched.output.splitlines()[-1] == "undecided"
    by_python = harness.grade("age", '{"age": 3}', kind="text", grader=rules.grader, whole_reply=True)
    assert (by_python.outcome, by_python.extracted) == ("correct", '{"age": 3}')


def test_a_verifier_that_ends_its_process_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = own(tmp_path, monkeypatch, "import os\ndef judge(answer, question):\n    os._exit(0)\n")
    done = CliRunner().invoke(cli, ["grade", "4", r"\boxed{4}", "--grader", rules.grader])
    assert (done.exit_code, done.output.splitlines()[-1]) == (4, "undecided")
    assert "the verifier ended its process" in done.output.splitlines()
    score = score_benchmark([question("4", kind="text", rules=rules)], graded(["4"], rules), None)
    assert score.verifier_errors == ("the verifier ended its process on 1 sample: counted as wrong",)


@pytest.mark.parametrize(
    "grader", ["mine.py:judge", "./mine.py:judge", "mine.judge", "mine", "mine:", ":judge", "a b:c"]
)
def test_a_misspelled_verifier_is_told_how_to_be_spelled(grader: str) -> None:
    done = CliRunner().invoke(cli, ["grade", "4", r"\boxed{4}", "--grader", grader])
    assert "must have the form MODULE:FUNCTION" in str(done.exception)


def test_scoring_with_a_late_verifier_says_so_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import time\ndef judge(answer, question):\n    time.sleep(60 if answer == 'x' else 0)\n    return True\n"
    rules = own(tmp_path, monkeypatch, source)
    words = ["grade", "4", "--grader", rules.grader, "--deadline", "0.4"]
    done = CliRunner().invoke(cli, [*words, r"\boxed{x}"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (4, "undecided")
    assert "the verifier took longer than 0.4 s" in done.output.splitlines()
    score = score_benchmark([question("4", kind="text", rules=rules)], graded(["x"], rules, deadline_s=0.4), None)
    (error,) = score.verifier_errors
    assert error.startswith("the verifier took longer than 0.4 s on 1 sample: counted as wrong; to allow more time")
    assert not any("time or memory" in warning for warning in score.sentences)
    assert CliRunner().invoke(cli, [*words, r"\boxed{4}"]).exit_code == 0


def test_a_grader_outside_of_rules_in_a_card_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown key 'grader'"):
        from_mapping({"name": "n", "title": "N", "grader": "mine:judge"}, "card.yaml")
