"""A grading that is interrupted goes on: slow grades are kept as they are made, and the end is that of one call.

For: harness.runs.grades, harness.scoring.journal_grades.
"""

from __future__ import annotations

import dataclasses
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Timer

import msgspec
import pytest

import harness
from harness.core.records import GradeRules, Question, Sample
from harness.grading.processes import pool
from harness.grading.verdict import Verdict
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, grades
from harness.runs.line_file import write_lines
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from tests.patience import PATIENCE_SECONDS, until
from tests.runs import recorded
from tests.scoring.test_scoring_regrades import run_with, sample
from tests.system.command import start

NAME = "made up"
SLOW = "import time\ndef judge(answer, question):\n    time.sleep(0.03)\n    return answer.endswith('7')\n"


@pytest.fixture
def slow_verifier(own_verifier: Path) -> Path:
    """The file of a slow verifier of one's own."""
    own_verifier.write_text(SLOW)
    return own_verifier


def run_of(folder: Path, n: int) -> RunFolder:
    """A run of n samples with different answers, graded by the verifier."""
    samples = [sample(index, rf"\boxed{{{index}}}", "") for index in range(n)]
    return run_with(folder, samples, rules=GradeRules(grader="own_verifier:judge"))


def partial(run: RunFolder) -> Path:
    return run.benchmark(NAME).partial_grades


@pytest.mark.parametrize("where", [(grades, "read_stored"), (Score, "save")])
def test_of_two_scorings_at_once_none_misses_a_grade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: tuple[object, str]
) -> None:
    """The second begins when the first has read the former grades, or written its own; there it waits for the first."""
    run, call = recorded.write(tmp_path, [recorded.sampled(0, 0)], planned=2, n_questions=1), getattr(*where)
    score_run(run, GradingOptions())
    second: list[Future[list[Score]]] = []

    def overtaken(*args: object) -> object:
        monkeypatch.setattr(*where, call)
        result = [*call(*args)] if where[0] is grades else None
        recorded.append(run, recorded.NAME, [recorded.sampled(0, 1)])
        second.append(begin.submit(score_run, run, GradingOptions()))
        wait(second, timeout=PATIENCE_SECONDS if where[0] is grades else 0.5)
        return call(*args) if result is None else result

    monkeypatch.setattr(*where, overtaken)
    with ThreadPoolExecutor(1) as begin:
        (score,) = score_run(run, GradingOptions())
    stored, folder = Score.load(run.benchmark(recorded.NAME)), run.benchmark(recorded.NAME)
    assert stored is not None
    assert (stored.n_samples, len(grades.read(folder))) == (2, 2)
    assert [warning.text for warning in score.warnings if "gone" in warning.text] == []


def stop_at(n: int) -> Callable[[str, int], None]:
    """A callback that interrupts a grading, as Ctrl-C does, once n samples are graded."""

    def on_graded(_name: str, graded: int) -> None:
        if graded == n:
            raise KeyboardInterrupt

    return on_graded


def interrupted(run: RunFolder, n: int, options: GradingOptions) -> list[str]:
    """What a grading says that is interrupted after n samples."""
    with pytest.raises(KeyboardInterrupt) as stopped:
        score_run(run, options, stop_at(n))
    return stopped.value.__notes__


def graded_by(run: RunFolder, options: GradingOptions) -> int:
    """How many samples a grading grades that runs to its end."""
    n = [0]
    score_run(run, options, lambda _name, graded: n.append(graded))
    return n[-1]


@pytest.fixture
def whole(tmp_path: Path, slow_verifier: Path) -> bytes:
    """The grades of 40 samples, made without an interruption."""
    run = run_of(tmp_path / "whole", 40)
    score_run(run, GradingOptions(workers=2))
    return run.benchmark(NAME).grades.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("n_torn", [0, 1])
def test_the_same_call_goes_on_where_it_was_interrupted(tmp_path: Path, whole: bytes, n_torn: int) -> None:
    run = run_of(tmp_path / "run", 40)
    (note,) = interrupted(run, 25, GradingOptions(workers=1))
    stored = partial(run).read_bytes()
    n_stored = len(stored.splitlines())
    assert n_stored >= 25
    assert note == f"made up: {n_stored} grades are stored; the same command continues"
    partial(run).write_bytes(stored[: len(stored) - 20 * n_torn])  # a torn last line costs its own grade only
    assert graded_by(run, GradingOptions(workers=1)) == 40 - n_stored + n_torn
    assert run.benchmark(NAME).grades.read_bytes() == whole
    assert not partial(run).exists()


@pytest.mark.slow
def test_a_kept_grade_holds_only_while_its_verifier_does(tmp_path: Path, slow_verifier: Path) -> None:
    run = run_of(tmp_path / "run", 40)
    interrupted(run, 25, GradingOptions(workers=1))
    slow_verifier.write_text(SLOW.replace("'7'", "'8'"))
    assert graded_by(run, GradingOptions(workers=1)) == 40
    right = {grade.sample_index for grade in grades.read(run.benchmark(NAME)) if grade.verdict == "correct"}
    assert right == {8, 18, 28, 38}


@pytest.mark.slow
def test_a_grading_of_all_samples_anew_goes_on_without_the_option_and_reuses_none_of_before(
    tmp_path: Path, slow_verifier: Path
) -> None:
    run = run_of(tmp_path / "run", 40)
    score_run(run, GradingOptions(workers=1))
    place = run.benchmark(NAME)
    before = place.grades.read_bytes()
    # What the verifier reads has changed, and its file has not: only a person can know that.
    write_lines(
        place.grades, [msgspec.structs.replace(one, verdict="undecided") for one in grades.read(run.benchmark(NAME))]
    )
    stored = place.grades.read_bytes()
    (note,) = interrupted(run, 25, GradingOptions(workers=1, fresh=True))
    n_stored = len(place.fresh_grades.read_bytes().splitlines())
    assert n_stored >= 25
    assert note == f"made up: {n_stored} grades are stored; the same command without `fresh` continues"
    (note,) = interrupted(run, 5, GradingOptions(workers=1))
    assert len(place.fresh_grades.read_bytes().splitlines()) >= n_stored + 5
    assert place.grades.read_bytes() == stored, "replaced only at the end"
    assert graded_by(run, GradingOptions(workers=1)) <= 40 - n_stored - 5
    assert place.grades.read_bytes() == before
    assert not place.fresh_grades.exists()


@pytest.mark.slow
def test_a_second_grading_of_all_samples_anew_reuses_nothing_of_the_first(tmp_path: Path, slow_verifier: Path) -> None:
    run = run_of(tmp_path / "run", 40)
    interrupted(run, 25, GradingOptions(workers=1, fresh=True))
    assert graded_by(run, GradingOptions(workers=1, fresh=True)) == 40
    assert not run.benchmark(NAME).fresh_grades.exists()


def test_fast_grades_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grading them anew takes less time than keeping them; a bound of 5 stands for the thousands that a second has."""
    monkeypatch.setattr(pool, "MAX_KEPT", 5)
    run = run_with(tmp_path / "run", [sample(index, rf"\boxed{{{index}}}", "") for index in range(40)])
    (note,) = interrupted(run, 25, GradingOptions(workers=1))
    assert note == "made up: 0 grades are stored; the same command continues"
    assert not partial(run).exists()


def _killed(run: RunFolder, folder: Path, seconds: random.Random) -> Iterator[int]:
    """Kill scorings of the run at random moments; yield the number of stored grades after each."""
    for signum in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        process = start(folder, ["score", str(run.path), "--workers", "2"])
        try:
            process.wait(timeout=1.5 + 2 * seconds.random())
        except subprocess.TimeoutExpired:
            process.send_signal(signum)
        process.communicate(timeout=PATIENCE_SECONDS)
        yield len(partial(run).read_bytes().splitlines()) if partial(run).exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_grading_killed_at_random_moments_ends_like_one_that_is_not(
    tmp_path: Path, slow_verifier: Path, seed: int
) -> None:
    uninterrupted, run = run_of(tmp_path / "whole", 160), run_of(tmp_path / "run", 160)
    score_run(uninterrupted, GradingOptions(workers=2))
    stored = [*_killed(run, tmp_path, random.Random(seed))]
    if not run.benchmark(NAME).grades.exists():
        assert stored == sorted(stored)
        assert graded_by(run, GradingOptions(workers=2)) <= 160 - stored[-1]
    assert run.benchmark(NAME).grades.read_bytes() == uninterrupted.benchmark(NAME).grades.read_bytes()
    assert not partial(run).exists()


@pytest.mark.slow
def test_grades_behind_a_slow_one_are_kept_too(tmp_path: Path, slow_verifier: Path) -> None:
    slow_verifier.write_text(
        "import time\ndef judge(answer, question):\n    time.sleep(600 if answer == '0' else 0.03)\n"
    )
    run = run_of(tmp_path / "run", 2 * 64)  # a batch for each worker
    process = start(tmp_path, ["score", str(run.path), "--workers", "2", "--deadline", "900"])
    until(lambda: partial(run).exists() and b"\n" in partial(run).read_bytes(), "grades behind the slow one")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    kept = [grade.sample_index for grade in grades.read_file(partial(run))]
    n_kept = "1 grade is" if len(kept) == 1 else f"{len(kept)} grades are"
    assert f"made up: {n_kept} stored; the same command continues" in err, err
    assert kept
    assert 0 not in kept


class _Sandbox:
    """Stands for an extension that decides in other processes: the verdict on sample 0 comes last, after 3 s."""

    name = "sandbox/1"

    def __init__(self) -> None:
        self._right = dataclasses.replace(harness.grade("7", r"\boxed{7}"), grader=self.name)

    def ask(self, _question: Question, sample: Sample) -> Future[Verdict]:
        future: Future[Verdict] = Future()
        Timer(3.0 if sample.sample_index == 0 else 0.0, future.set_result, [self._right]).start()
        return future

    def close(self) -> None:
        pass


@pytest.mark.slow
def test_verdicts_of_an_extension_are_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "is_elsewhere", lambda grader: grader == "sandbox")
    monkeypatch.setattr(pool, "require_package", lambda _: None)
    monkeypatch.setattr(pool, "Decider", lambda *_: _Sandbox())
    samples = [sample(index, rf"\boxed{{{index}}}", "") for index in range(5)]
    run = run_with(tmp_path / "run", samples, rules=GradeRules(grader="sandbox"))
    kept_before: list[int] = []

    def on_graded(_name: str, _n: int) -> None:
        kept_before.extend(grade.sample_index for grade in grades.read_file(partial(run)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_run(run, GradingOptions(workers=1), on_graded)
    assert kept_before == [1, 2, 3, 4]
    assert graded_by(run, GradingOptions(workers=1)) == 0
