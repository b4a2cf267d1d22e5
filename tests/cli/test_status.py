"""A run seen from outside while it goes on and after: `harness status`.

For: harness.cli.status, harness.cli.follower.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from harness.cli.follower import follow
from harness.generation.network.control import progress_of
from harness.presets.grading import GradingOptions
from harness.progress.running_score import RunningScores
from harness.runs import RunFolder, locked
from harness.runs.layout import RunLog
from harness.scoring import pipeline
from harness.scoring.score import Score
from harness.testing import FakeServer, Pause, Request, Step, delta, event_stream, models
from tests import patience
from tests.patience import PATIENCE_SECONDS
from tests.reports.run_folders import write_run
from tests.runs.recorded import sampled, write
from tests.system.command import harness, interrupted, start

SAID = 20
"""Tokens that a held reply has sent."""


class Holding:
    """Streams the first tokens of every reply, and the rest once it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.method == "GET":
            yield models("test-model")
            return
        head, *events = event_stream(*[delta("word ")] * SAID, delta(f"\n{request.json['seed']}", finish="stop"))
        yield head
        yield from events[:SAID]
        while not self.let_go.wait(0.01):
            yield Pause(0.01)
        yield from events[SAID:]


@contextmanager
def going(folder: Path, server: FakeServer, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`harness run` of 6 questions, twice each unless `words` say how often, 4 in flight, in the folder results/run."""
    rows = [{"id": f"q{n}", "problem": f"What is {n}?", "answer": "1"} for n in range(6)]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    data = ["--data", "sums.jsonl", "--question-key", "problem", "--answer-key", "answer", "--id-key", "id"]
    options = ["--concurrency", "4", "--base-url", server.base_url, "--model", "test-model"]
    options += [] if "--samples" in words else ["--samples", "2"]
    run = start(folder, ["run", *data, *options, "--out", "results/run", "--no-canary", *words])
    try:
        yield run
    finally:
        run.kill()
        run.communicate()


def until(server: FakeServer, folder: Path, held: Callable[[Any], bool]) -> Any:
    """The run's progress as soon as `held` says so."""
    seen: list[Any] = []

    def look() -> bool:
        seen.append(progress_of(RunFolder(folder / "results" / "run")))
        return seen[-1] is not None and held(seen[-1])

    assert server.wait_for(look), seen[-1]
    return seen[-1]


def test_tokens_are_seen_before_any_sample_has_finished(tmp_path: Path) -> None:
    holding = Holding()
    with FakeServer(holding) as server, going(tmp_path, server) as run:
        facts = until(server, tmp_path, lambda facts: facts.arrived >= 4 * SAID)
        assert (facts.done, facts.finished, facts.in_flight, facts.arrived) == (0, 0, 4, 4 * SAID)
        assert facts.tokens_per_s is not None
        assert (facts.oldest.benchmark, facts.oldest.tokens) == ("sums", SAID)

        shown = harness(tmp_path, "status")  # the run of results/ that goes on
        assert shown.code == 0
        assert shown.out.startswith(f"{tmp_path / 'results' / 'run'}: running\n")
        assert "0/12   0%  4 in flight" in shown.out
        assert f"tokens    {4 * SAID} ·" in shown.out
        (reported,) = json.loads(harness(tmp_path, "status", "results/run", "--json").out)
        assert (reported["state"], reported["progress"]["arrived"], reported["files"]) == ("running", 4 * SAID, None)
        log = (tmp_path / "results" / "run" / "log.jsonl").read_text("utf-8")
        assert ["oldest" in shown.out, "session_started" in log] == [True, True]

        holding.let_go.set()
        out, err = run.communicate(timeout=PATIENCE_SECONDS)
        assert (run.returncode, out) == (0, "")
        assert "12/12 samples (100%)" in err

    ended = harness(tmp_path, "status", "results/run").out
    assert "results/run: ended\nsums  12/12 samples (100%)\n" in ended
    assert "it ended " in ended
    (reported,) = json.loads(harness(tmp_path, "status", "--json").out)
    assert reported["state"] == "ended"
    assert reported["progress"] is None
    assert reported["files"]["benchmarks"] == [{"name": "sums", "done": 12, "total": 12}]


def test_a_sweep_is_seen_by_its_cells_and_their_running_run(tmp_path: Path) -> None:
    holding = Holding()
    rows = [{"id": f"q{n}", "problem": f"What is {n}?", "answer": "1"} for n in range(2)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    cells = [{"name": name, "data": "sums.jsonl", "samples": 1} for name in ("one", "two")]
    lost = {"name": "lost", "data": "missing.jsonl"}
    with FakeServer(holding) as server:
        run = {"base_url": server.base_url, "canary": False, "id_key": "id"}
        content = {"models": ["test-model"], "benchmarks": [lost, *cells], "run": run}
        (tmp_path / "s.yaml").write_text(json.dumps(content), encoding="utf-8")
        sweep = start(tmp_path, ["sweep", "s.yaml"])
        try:
            first = RunFolder(tmp_path / "results" / "s" / "test-model+one")
            assert server.wait_for(lambda: (facts := progress_of(first)) is not None and facts.in_flight == 2)
            shown = harness(tmp_path, "status", "results/s").out.splitlines()
            assert shown[0].endswith("results/s: sweep running; cells: 1 failed")
            assert shown[1].startswith("failed: test-model+lost: file ")
            assert shown[2].endswith("results/s/test-model+one: running")
            assert harness(tmp_path, "status").out.startswith(f"{first.path}: running\n")
            (reported,) = json.loads(harness(tmp_path, "status", "results/s", "--json").out)
            assert (reported["run"], reported["state"]) == (str(first.path), "running")
            watching = start(tmp_path, ["status", "results/s", "--watch", "--json"])
            assert watching.stdout is not None
            assert json.loads(watching.stdout.readline())["run"] == str(first.path)
            holding.let_go.set()
            sweep.communicate(timeout=PATIENCE_SECONDS)
            assert json.loads(watching.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()[-1])["state"] == "ended"
        finally:
            sweep.kill()
            sweep.communicate()
    ended = harness(tmp_path, "status", "results/s").out
    assert "results/s: sweep ended; cells: 1 failed, 2 scored\n" in ended
    assert "results/s/test-model+two: ended\n" in ended


def test_the_shards_of_a_run_are_shown_before_they_are_joined_too(tmp_path: Path) -> None:
    write(tmp_path / "results" / "run" / "shards" / "2-of-2", [sampled(1, 0)], n_questions=2, planned=1)
    for words in ((), ("results/run",)):  # of its own part of the two questions
        assert "run/shards/2-of-2: ended\nsums  1/1 sample (100%)" in harness(tmp_path, "status", *words).out
    write(tmp_path / "results" / "whole", [sampled(0, 0)], n_questions=2, planned=1)
    assert "whole: ended\n" in harness(tmp_path, "status", "results/whole").out
    # A folder of several runs that is no sweep has no cells.
    assert harness(tmp_path, "status", "results").out.startswith(str(tmp_path / "results"))


@pytest.mark.parametrize(("name", "held"), [("m+sums", True), ("m+sums", False), ("run", True)])
def test_a_killed_run_of_a_sweep_goes_on_by_the_sweep(tmp_path: Path, name: str, held: bool) -> None:
    """The cell's record comes only after its samples: the folder that the sweep held tells it from any other run."""
    path = tmp_path / "results" / "s" / name
    write(path, [sampled(0, 0)], n_questions=2, planned=1)
    with RunLog(RunFolder(path)) as log:
        log.write("session_started", missing=2, done=0)
    if held:
        with locked(RunFolder(path.parent)):
            pass
    said = harness(tmp_path, "status", f"results/s/{name}").out
    of_sweep = f"Run the same `harness sweep` command again to resume the sweep in {path.parent}"
    of_run = "Run the same `harness run` command again to resume"
    assert [of_sweep in said, of_run in said] == ([True, False] if held and "+" in name else [False, True])


def test_a_stopped_run_is_silent_and_a_killed_one_ended_without_a_reason(tmp_path: Path) -> None:
    with FakeServer(Holding()) as server, going(tmp_path, server) as run:
        until(server, tmp_path, lambda facts: facts.in_flight == 4)
        os.kill(run.pid, signal.SIGSTOP)
        (tmp_path / "results" / "run" / "status.json").unlink()
        status = harness(tmp_path, "status", "results/run").out
        assert ["results/run: silent\n" in status, f"process {run.pid} on " in status] == [True, True]
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        status = harness(tmp_path, "status", "results/run").out
    assert "results/run: ended\nsums  0/12 samples (0%)\n" in status
    assert "it ended without recording why: it was killed" in status


def test_quiet_prints_only_problems_and_a_failed_run_leaves_no_scoring(tmp_path: Path) -> None:
    holding = Holding()
    holding.let_go.set()
    with FakeServer(holding) as server, going(tmp_path, server, "--quiet") as run:
        assert (run.communicate(timeout=PATIENCE_SECONDS), run.returncode) == (("", ""), 0)
    with FakeServer(Holding()) as server, going(tmp_path, server, "--quiet", "--score", "--samples", "3") as run:
        until(server, tmp_path, lambda facts: facts.in_flight == 4 and bool(scorings(tmp_path)))
        assert interrupted(run).startswith("harness: stopped by SIGINT")
    patience.until(lambda: not scorings(tmp_path), "the scoring ends with its run")


# ---- the running score


def test_the_running_score_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", benchmarks=[("sums", 4, 2)], scored=False)
    path = folder.benchmark("sums").scores
    scores = RunningScores(folder)
    assert scores.current(["sums"]) == {}
    for written, accuracy in ((1, 0.25), (2, 0.5)):
        path.write_bytes(msgspec.json.encode({"accuracy": {"value": accuracy, "sampling": [0.1, 0.9]}, "n_samples": 8}))
        os.utime(path, (written, written))
        assert scores.current(["sums"])["sums"].accuracy.value == accuracy
    path.write_bytes(b"{")
    os.utime(path, (3, 3))
    assert scores.current(["sums"]) == {}


def test_an_old_score_says_how_many_samples_it_does_not_count(tmp_path: Path) -> None:
    stored = Path(__file__).parents[1] / "pins" / "stored"
    run = next(path.parent for path in stored.rglob("manifest.json") if path.parent.name == "first")
    shutil.copytree(run, tmp_path / "run")
    for counted, words in ((24, ", 24 graded"), (6, ", 6 of 24 graded")):
        written = {"accuracy": {"value": 0.5}, "n_samples": counted}
        (tmp_path / "run" / "sums" / "scores.json").write_bytes(msgspec.json.encode(written))
        assert f"50.0% correct so far{words}\n" in harness(tmp_path, "status", "run").out


def test_a_run_that_is_followed_shows_its_accuracy_while_it_goes_on(tmp_path: Path) -> None:
    first = Holding()
    first.let_go.set()
    with FakeServer(first) as server, going(tmp_path, server) as run:
        run.communicate(timeout=PATIENCE_SECONDS)
    holding = Holding()
    with FakeServer(holding) as server, going(tmp_path, server, "--samples", "3"):
        until(server, tmp_path, lambda facts: facts.in_flight == 4)
        scoring = start(tmp_path, ["score", "results/run", "--follow", "--workers", "1"])
        try:
            assert scoring.stderr is not None
            assert scoring.stderr.readline().startswith("sums 0.0% correct so far (0.0 to 24.2), 12 graded")
            shown = harness(tmp_path, "status", "results/run").out
            assert "12/18  66%" in shown
            assert "accuracy  sums 0.0% correct so far (0.0 to 24.2), 12 graded" in shown
            holding.let_go.set()
            out, _ = scoring.communicate(timeout=PATIENCE_SECONDS)
            assert scoring.returncode == 0
            assert "6 × 3" in out
        finally:
            scoring.kill()
            scoring.communicate()


def test_a_run_that_cannot_be_scored_says_so_and_samples_to_its_end(tmp_path: Path) -> None:
    holding = Holding()
    with FakeServer(holding) as server, going(tmp_path, server, "--score", "--json") as run:
        scores, link = tmp_path / "results" / "run" / "sums" / "scores.json", tmp_path / "link"
        until(server, tmp_path, lambda facts: facts.in_flight == 4 and scores.exists())  # it waits for samples now
        (tmp_path / "elsewhere").mkdir()
        link.symlink_to(tmp_path / "elsewhere")
        link.replace(scores)
        holding.let_go.set()
        out, err = run.communicate(timeout=PATIENCE_SECONDS)
    assert (run.returncode, json.loads(out)["complete"]) == (0, True)
    assert "sums/scores.json is a symbolic link" in err
    assert not any((tmp_path / "elsewhere").iterdir())


def scorings(run: Path) -> list[int]:
    """Numbers of the processes that score this run."""
    running = [(process.pid, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    return [pid for pid, words in running if "--follow" in words and str(run) in " ".join(words)]


def test_a_run_ends_with_its_tables_also_if_its_scoring_ended_too_early(tmp_path: Path) -> None:
    holding = Holding()
    with FakeServer(holding) as server:
        with going(tmp_path, server, "--score") as run:
            until(server, tmp_path, lambda _: bool(scorings(tmp_path)))
            os.kill(scorings(tmp_path)[0], signal.SIGKILL)
            until(server, tmp_path, lambda _: not scorings(tmp_path))
            holding.let_go.set()
            out, err = run.communicate(timeout=PATIENCE_SECONDS)
        assert (run.returncode, "6 × 2" in out) == (0, True), err
        with going(tmp_path, server, "--score") as again:
            out, err = again.communicate(timeout=PATIENCE_SECONDS)
    assert (again.returncode, "6 × 2" in out, "no samples are missing" in err) == (0, True, True), err


def test_a_run_that_ends_between_checks_is_scored_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks, folder = [0.0], [], RunFolder(tmp_path)

    def slow_look(*_: object) -> list[Score]:
        looks.append(now[0])
        now[0] += 100.0  # after it, a pause of 1000 s
        return []

    def sleep(seconds: float) -> None:
        now[0] += seconds
        assert now[0] < 2000
        if now[0] > 300:
            lock.close()

    monkeypatch.setattr(pipeline, "score_run", slow_look)
    with ExitStack() as lock:
        lock.enter_context(locked(folder))
        follow(folder, GradingOptions(workers=1), lambda *_: None, clock=lambda: now[0], sleep=sleep)
    assert len(looks) == 2
    assert looks[0] == 0
    assert 300 < looks[1] < 310
