"""A sweep that follows a folder runs each checkpoint once it is written whole, and ends when none appears any more.

For: harness.verbs.sweep.following.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from harness.asking.watching import Watcher
from harness.core.errors import InUse, Sentence, StoreError, UsageError
from harness.runs import RunFolder
from harness.runs.lock import RunLock
from harness.verbs.sweep import file as files
from harness.verbs.sweep import following
from harness.verbs.sweep import table as sweep_table
from harness.verbs.sweep.cells import Sweep
from harness.verbs.sweep.checkpoints import checkpoint_at
from harness.verbs.sweep.following import MAX_LOOKS, POLL_S, SETTLED_S, WRITING, follow
from harness.verbs.sweep.results import Results
from harness.verbs.sweep.table import tables
from harness.verbs.sweep.training import take_up
from harness.verbs.sweep.whole import carry_out, plan_of
from tests.faults.server import FaultServer
from tests.system.command import harness
from tests.verbs.test_sweep_runs import answering, command, questions


class Training:
    """A clock that moves when somebody sleeps, and the checkpoints that a training run writes meanwhile.

    events: second -> what happens then.
    """

    def __init__(self, folder: Path, events: dict[float, Callable[[], None]]) -> None:
        self.folder, self.events, self.time = folder, events, 0.0
        self.runs: list[tuple[float, list[str]]] = []
        self.unchanged: list[list[str]] = []

    def write(self, name: str) -> None:
        path = self.folder / name / "model.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        for each in (path, path.parent):
            os.utime(each, (self.time, self.time))

    def delete(self, name: str) -> None:
        shutil.rmtree(self.folder / name)

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        for at in sorted(at for at in self.events if at <= self.time):
            self.events.pop(at)()

    def run(self, written: Collection[Path], unchanged: Collection[Path]) -> int:
        self.unchanged.append(sorted(path.name for path in unchanged))
        self.runs.append((self.time, sorted(path.name for path in written)))
        for _ in range(10):
            self.sleep(10)  # the training goes on meanwhile
        return len(self.runs)


class Told(Watcher):
    """Keeps what a person is told."""

    def __init__(self) -> None:
        self.standings: list[str] = []
        self.warnings: list[str] = []

    def standing(self, sentence: Sentence) -> None:
        self.standings.append(sentence)

    def warn(self, sentence: Sentence) -> None:
        self.warnings.append(sentence)


def followed(
    training: Training,
    patience_s: float,
    run: Callable[[Collection[Path], Collection[Path]], int] | None = None,
    watcher: Watcher | None = None,
) -> int:
    """Follow the training by its own clock. Returns the exit code."""
    folder = training.folder.parent
    return follow(
        sweep(folder),
        folder / "out",
        run or training.run,
        patience_s,
        watcher,
        now=lambda: training.time,
        sleep=training.sleep,
    )


def sweep(folder: Path) -> files.SweepFile:
    path = folder / "ck.yaml"
    path.write_text(f"checkpoints: {folder}/ck/step_*\nservers: [{{engine: vllm}}]\nbenchmarks: [demo]\n")
    return files.read(path)


def test_each_checkpoint_is_run_once_it_is_settled(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {})
    training.events = {
        20: lambda: training.write("step_1"),
        40: lambda: training.write("step_1"),  # still being written
        300: lambda: training.write("step_2"),
    }
    told = Told()
    code = followed(training, 600, watcher=told)
    waits = told.standings
    assert len(waits) == 4
    assert waits[-1] == "no new checkpoint for 10 min: the sweep ends; it found 2 checkpoints in the folder"
    assert waits[0].endswith("once it has not changed for 30 s; the sweep ends when none has appeared for 10 min")
    assert code == 2
    (first, names), (second, both) = training.runs
    assert (names, both) == (["step_1"], ["step_1", "step_2"])
    assert 40 + SETTLED_S <= first <= 40 + SETTLED_S + POLL_S
    assert second >= 300 + SETTLED_S
    assert second + 100 + 600 <= training.time <= second + 100 + 600 + POLL_S


def test_a_checkpoint_that_was_written_on_is_looked_at_again(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {})
    training.events = {20: lambda: training.write("step_1"), 260: lambda: training.write("step_1")}
    code = followed(training, 300)
    assert (code, [names for _, names in training.runs]) == (2, [["step_1"], ["step_1"]])
    assert training.runs[1][0] >= 260 + SETTLED_S


def test_a_change_while_the_sweep_runs_is_not_missed(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {20: lambda: training.write("step_1")})

    def run(written: Collection[Path], unchanged: Collection[Path]) -> int:
        if not training.runs:
            training.time += 50
            training.write("step_1")
        return training.run(written, unchanged)

    assert followed(training, 300, run) == 2


def test_a_folder_in_use_is_waited_for_and_said_once(tmp_path: Path) -> None:
    training, told = Training(tmp_path / "ck", {20: lambda: training.write("step_1")}), Told()

    def run(written: Collection[Path], unchanged: Collection[Path]) -> int:
        if training.time < 400:
            raise InUse("out is in use by process 7 on x; one run has one writer.")
        return training.run(written, unchanged)

    assert followed(training, 120, run, told) == 1, "longer in use than the sweep waits for a checkpoint"
    assert training.runs[0] == (pytest.approx(400, abs=POLL_S), ["step_1"])
    assert [line for line in told.standings if "in use" in line] == [
        "out is in use by process 7 on x; one run has one writer. The sweep waits until the folder is free"
    ]
    # Wrong twin: any other refusal ends the sweep.
    with pytest.raises(StoreError, match="full"):
        followed(Training(tmp_path / "ck", {}), 120, lambda _written, _unchanged: broken())


def test_a_follower_goes_on_once_another_process_has_left_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "POLL_S", 0.05)
    (tmp_path / "ck/step_1").mkdir(parents=True)
    os.utime(tmp_path / "ck/step_1", (1, 1))
    (tmp_path / "a.jsonl").write_text('{"id": "a", "problem": "What is 0 + 3?", "answer": "3"}\n')
    content: dict[str, Any]
    with FaultServer(answering("ck/step_1")) as server:
        run = {"base_url": server.base_url, "fingerprint": False, "canary": False}
        content = {"checkpoints": "ck/step_*", "benchmarks": [{"data": "a.jsonl", "samples": 1}], "run": run}
        (tmp_path / "s.yaml").write_text(json.dumps(content))
        other = RunLock(RunFolder(tmp_path / "results/s"))
        other.acquire()

        def attempt(*arguments: Any) -> Any:
            ended = really(*arguments)
            if isinstance(ended, InUse) and content["benchmarks"][0]["samples"] == 1:
                content["benchmarks"] = [{"data": "a.jsonl", "samples": 2}]
                (tmp_path / "s.yaml").write_text(json.dumps(content))
                other.release()
            return ended

        really = following._attempt
        monkeypatch.setattr(following, "_attempt", attempt)
        done = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.001", "--no-progress")
    assert done.code == 0, done.err
    assert sum(request.path.endswith("/completions") for request in server.requests) == 2, "the file is read anew"
    assert done.err.count("is in use by process") == 1
    assert done.err.index("The sweep waits until the folder is free") < done.err.index("ck-step_1+a: scored")


def test_a_follower_that_is_stopped_while_it_waits_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following.training, "left_out_twins", stopped)
    questions(tmp_path, "a", 1, 3)
    run = {"base_url": "http://127.0.0.1:9", "fingerprint": False}
    content = {"checkpoints": "ck/step_*", "benchmarks": [{"data": "a.jsonl", "samples": 1}], "run": run}
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "1", "--no-progress")
    assert done.code == 130
    assert done.err.splitlines()[-1] == (
        "harness: stopped by SIGINT. What is stored counts, and the same command writes the tables. Resume with: "
        "harness sweep s.yaml --follow 1 --no-progress"
    )


HALF = "checkpoints: 'ck/step_*\nbenchm"
"""A sweep's file of which an editor has written half."""


def test_a_file_that_is_half_written_when_it_is_read_anew_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "POLL_S", 0.05)
    questions(tmp_path, "a", 1, 3)
    (tmp_path / "ck/step_1").mkdir(parents=True)
    os.utime(tmp_path / "ck/step_1", (1, 1))
    reading, n_reads = files.read, 0

    def read(path: Path) -> files.SweepFile:
        """Read the file, at the first later readings as an editor has left it by then."""
        nonlocal n_reads
        n_reads += 1
        path.write_text({3: HALF, 4: HALF}.get(n_reads, text))
        return reading(path)

    monkeypatch.setattr(files, "read", read)
    with FaultServer(answering("ck/step_1")) as server:
        run = {"base_url": server.base_url, "fingerprint": False, "canary": False}
        text = json.dumps({"checkpoints": "ck/step_*", "benchmarks": [{"data": "a.jsonl", "samples": 1}], "run": run})
        (tmp_path / "s.yaml").write_text(text)
        done = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.05", "--no-progress")
    assert done.code == 0, done.err
    assert n_reads == 5
    (warning,) = [line for line in done.err.splitlines() if "reads the file again" in line]
    assert "warning: s.yaml" in warning
    assert "ck-step_1+a: scored" in done.err


def test_a_file_that_stays_wrong_ends_the_sweep_when_its_patience_ends(tmp_path: Path) -> None:
    training, told = Training(tmp_path / "ck", {20: lambda: training.write("step_1")}), Told()
    n_reads = 0

    def run(written: Collection[Path], unchanged: Collection[Path]) -> int:
        nonlocal n_reads
        n_reads += 1
        raise following.FileInWork("s.yaml:1: wrong")

    with pytest.raises(UsageError, match=r"^s.yaml:1: wrong$"):
        followed(training, 120, run, told)
    assert n_reads > 2
    assert told.warnings == ["s.yaml:1: wrong. The sweep waits, and reads the file again"]
    assert 120 <= training.time <= 120 + 20 + POLL_S


def test_a_file_that_is_half_written_at_the_start_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(HALF)
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "60")
    assert (done.code, "s.yaml" in done.err, "reads the file again" in done.err) == (2, True, False), done.err


def broken() -> int:
    raise StoreError("the disk is full")


def test_a_checkpoint_that_goes_away_before_it_was_run_is_named(tmp_path: Path) -> None:
    training, told = Training(tmp_path / "ck", {}), Told()
    training.events = {
        20: lambda: training.write("step_1"),
        40: lambda: training.delete("step_1"),  # before it is settled
        60: lambda: training.write("step_2"),
        300: lambda: training.delete("step_2"),  # after it was run
        320: lambda: training.write("step_3"),
        330: lambda: training.delete("step_3"),  # while it is settling, but another sweep was faster
    }
    manifest = tmp_path / "out/ck-step_3+demo/manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    assert followed(training, 300, watcher=told) == 1
    assert told.warnings == [f"{tmp_path}/ck/step_1 is left out: it was deleted before it was run"]


def test_a_checkpoint_that_comes_and_goes_during_a_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "POLL_S", 0.001)
    training, told = Training(tmp_path / "ck", {}), Told()
    training.write("step_1")

    def run(written: Collection[Path], unchanged: Collection[Path]) -> int:
        training.write("step_2")
        time.sleep(0.3)
        training.delete("step_2")
        training.runs.append((training.time, sorted(path.name for path in written)))
        return 0

    training.time = SETTLED_S
    assert followed(training, 0.005, run, told) == 0
    assert [names for _, names in training.runs] == [["step_1"]]
    assert told.warnings == [f"{tmp_path}/ck/step_2 is left out: it was deleted before it was run"]


def test_a_second_folder_of_a_step_is_named_once_and_stops_no_other(tmp_path: Path) -> None:
    training, told = Training(tmp_path / "ck", {20: lambda: training.write("step_1")}), Told()
    training.events |= {
        200: lambda: training.write("step_1-merged"),  # beside a step with a run
        400: lambda: training.write("step_2"),
        410: lambda: training.write("step_2-merged"),  # beside one without
        600: lambda: training.write("step_3"),
        800: lambda: training.delete("step_2-merged"),
    }

    def run(written: Collection[Path], unchanged: Collection[Path]) -> int:
        take_up(tmp_path / "out", [checkpoint for path in written if (checkpoint := checkpoint_at(path))])
        for path in written:
            manifest = tmp_path / f"out/ck-{path.name}+demo/manifest.json"
            manifest.parent.mkdir(parents=True, exist_ok=True)
            manifest.write_text("{}")
        return training.run(written, unchanged)

    assert followed(training, 500, run, told) == 3
    assert [names for _, names in training.runs] == [["step_1"], ["step_1", "step_3"], ["step_1", "step_2", "step_3"]]
    ck = f"{tmp_path}/ck"
    end = "rename one, or move it elsewhere"
    assert [line for line in told.warnings if "deleted" not in line] == [
        f"{ck}/step_1-merged is left out: {ck}/step_1 is step 1 of ck, too, and has a run: {end}",
        f"{ck}/step_2 is left out: {ck}/step_2-merged is step 2 of ck, too, and has no run either: {end}",
        f"{ck}/step_2-merged is left out: {ck}/step_2 is step 2 of ck, too, and has no run either: {end}",
    ]
    # Wrong twin: a command that begins with both is refused at once.
    with pytest.raises(UsageError, match=r"step_1 and .*step_1-merged are both step 1 of ck: narrow the pattern"):
        followed(training, 300, run, told)
    assert len(training.runs) == 3


@pytest.mark.parametrize("slots", [1, 2])
def test_a_follower_scores_the_steps_after_a_second_folder_of_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    monkeypatch.setattr(following, "POLL_S", 0.05)
    questions(tmp_path, "a", 1, 3)

    def write(*names: str) -> None:
        for name in names:
            (tmp_path / "new" / name).mkdir(parents=True)
            os.utime(tmp_path / "new" / name, (1, 1))
            (tmp_path / "ck").mkdir(exist_ok=True)
            (tmp_path / "new" / name).rename(tmp_path / "ck" / name)

    def train() -> None:
        while not [*tmp_path.glob("results/s/cells/ck-step_1+*")]:
            time.sleep(0.05)
        write("step_1-merged", "step_2", "step_3")

    written: list[int] = []

    def write_tables(results: Results) -> list[Path]:
        written.append(sum(result.score is not None for result in results.results))
        return really(results)

    really = sweep_table.write
    monkeypatch.setattr(sweep_table, "write", write_tables)
    write("step_1")
    content = {
        "checkpoints": "ck/step_*",
        "servers": [{"name": "x", "command": command("--model", "{model}")}],
        "benchmarks": [{"data": "a.jsonl", "samples": 1}],
        "run": {"fingerprint": False, "canary": False},
        "slots": slots,
    }
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    training = threading.Thread(target=train)
    training.start()
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.1", "--no-progress")
    training.join()
    assert done.code == 0, done.err
    assert done.err.count("ck/step_1-merged is left out") == 1
    for step in (1, 2, 3):
        assert f"ck-step_{step}+x+a: scored" in done.err
    # Steps 2 and 3 come together, and a step has its line and the tables before the next one begins.
    assert [*dict.fromkeys(written)] == [1, 2, 3] if slots == 1 else len(written) > 3
    assert "complete so far: 3 cells" in done.err
    assert done.out.count("ck-step_2+x+a: accuracy in %") == 1
    again = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.1")
    assert (again.code, "ck/step_1 and ck/step_1-merged are both step 1 of ck" in again.err) == (2, True)


def test_a_pattern_that_fits_nothing_yet_is_named_once_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "POLL_S", 0.05)
    questions(tmp_path, "a", 1, 3)

    def write(folder: str, name: str) -> None:
        (tmp_path / "new" / name).mkdir(parents=True)
        os.utime(tmp_path / "new" / name, (1, 1))
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "new" / name).rename(tmp_path / folder / name)

    def train() -> None:
        for folder, step in (("sft", 2), ("rl", 3)):
            while not [*tmp_path.glob(f"results/s/cells/sft-step_{step - 1}+*")]:
                time.sleep(0.05)
            write(folder, f"step_{step}")

    write("sft", "step_1")
    content = {
        "checkpoints": ["sft/step_*", "rl/step_*", "dpo/step_*"],
        "servers": [{"name": "x", "command": command("--model", "{model}")}],
        "benchmarks": [{"data": "a.jsonl", "samples": 1}],
        "run": {"fingerprint": False, "canary": False},
    }
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    training = threading.Thread(target=train)
    training.start()
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.1", "--no-progress")
    training.join()
    assert done.code == 0, done.err
    for name in ("sft-step_1", "sft-step_2", "rl-step_3"):
        assert f"{name}+x+a: scored" in done.err
    named = [done.err.count(f"no file or folder fits {folder}/step_* yet") for folder in ("sft", "rl", "dpo")]
    assert named == [0, 1, 1]
    assert "it found 3 checkpoints in the folder; nothing fits dpo/step_*\n" in done.err
    # Wrong twin: a command that does not wait refuses such a pattern.
    refused = harness(tmp_path, "sweep", "s.yaml")
    assert refused.code == 2
    assert "no file or folder fits dpo/step_*, seen from" in refused.err


def test_a_warning_that_comes_again_with_each_checkpoint_is_printed_once_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "POLL_S", 0.05)
    questions(tmp_path, "a", 1, 3)

    def write(name: str) -> None:
        (tmp_path / "new" / name).mkdir(parents=True)
        os.utime(tmp_path / "new" / name, (1, 1))
        (tmp_path / "ck").mkdir(exist_ok=True)
        (tmp_path / "new" / name).rename(tmp_path / "ck" / name)

    def train() -> None:
        for step in (1, 2):
            while not [*tmp_path.glob(f"results/s/cells/ck-step_{step}+*")]:
                time.sleep(0.05)
            write("extra" if step == 1 else "other")
            write(f"step_{step + 1}")

    write("last")
    write("step_1")
    content = {
        "checkpoints": "ck/*",
        "servers": [{"name": "x", "command": command("--model", "{model}")}],
        "benchmarks": [{"data": "a.jsonl", "samples": 1}],
        "run": {"fingerprint": False, "canary": False},
    }
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    training = threading.Thread(target=train)
    training.start()
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.1", "--no-progress")
    training.join()
    assert done.code == 0, done.err
    reason = "is left out: its name has no training step"
    assert [done.err.count(f"warning: ck/{name} {reason}") for name in ("last", "extra", "other")] == [1, 1, 1]
    counted = [line.partition(reason)[0] for line in done.err.splitlines() if " times in all: " in line]
    assert counted == [
        "harness: warning, 3 times in all: ck/last ",
        "harness: warning, 2 times in all: ck/extra ",
    ], "one that came once is not counted"
    # Wrong twin: a command that does not follow is a new reader.
    again = harness(tmp_path, "sweep", "s.yaml")
    assert again.err.count(f"warning: ck/last {reason}") == 1
    assert "times in all" not in again.err


def test_a_folder_that_its_own_server_changes_is_not_run_for_ever(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {20: lambda: training.write("step_1")})

    def run(written: Collection[Path], unchanged: Collection[Path]) -> int:
        training.write("step_1")
        return training.run(written, unchanged)

    assert followed(training, 300, run) == MAX_LOOKS


def test_one_that_is_written_for_long_does_not_hold_up_the_others(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {20: lambda: training.write("step_1")})
    for second in range(20, 900, 20):  # three runs long
        training.events[second + 1] = lambda: training.write("step_2")
    assert followed(training, 300) == 2
    (first, alone), (last, both) = training.runs
    assert (alone, both) == (["step_1"], ["step_1", "step_2"])
    assert first < 100
    assert last >= 881 + SETTLED_S


def test_one_that_the_sweep_has_run_is_left_for_later_while_it_changes(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {20: lambda: training.write("step_1")})
    for second in range(200, 900, 20):
        training.events[second] = lambda: training.write("step_1")
    training.events[305] = lambda: training.write("step_2")
    assert followed(training, 300) == 3
    assert [names for _, names in training.runs] == [["step_1"], ["step_2"], ["step_1", "step_2"]]
    assert training.unchanged == [[], [], ["step_2"]]
    assert training.runs[2][0] >= 880 + SETTLED_S, "what was written into step_1 calls for another look"


def test_the_plan_leaves_out_what_is_still_being_written(tmp_path: Path) -> None:
    for name in ("step_1", "step_2"):
        (tmp_path / "ck" / name).mkdir(parents=True)
    file = sweep(tmp_path)
    plan = plan_of(str(file.path), {"out": tmp_path / "out"}, {})
    part = plan.of_checkpoints({tmp_path / "ck" / "step_1"}, WRITING)
    assert [cell.point["models"] for cell in plan.cells] == ["ck-step_1", "ck-step_2"]
    assert [cell.point["models"] for cell in part.cells] == ["ck-step_1"]
    assert [checkpoint.path.name for checkpoint in part.checkpoints] == ["step_1"]
    assert (part.left_out, part.postponed) == ({tmp_path / "ck" / "step_2": WRITING}, {})
    assert plan.of_checkpoints({tmp_path / "ck" / name for name in ("step_1", "step_2")}, WRITING) == plan


def test_a_step_with_a_score_keeps_its_row_while_its_folder_is_fresh(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        (tmp_path / f"ck/step_{step}").mkdir(parents=True)
        (tmp_path / f"ck/step_{step}/model.safetensors").write_text(str(step))
        for path in (tmp_path / f"ck/step_{step}/model.safetensors", tmp_path / f"ck/step_{step}"):
            os.utime(path, (0, 0))
    questions(tmp_path, "a", 4, 3)
    content: dict[str, Any] = {
        "checkpoints": f"{tmp_path}/ck/step_*",
        "servers": [{"name": "x", "command": command("--model", "{model}")}],
        "run": {"fingerprint": False, "canary": False},
    }

    def plan(samples: int) -> Sweep:
        benchmarks = [{"data": str(tmp_path / "a.jsonl"), "samples": samples}]
        (tmp_path / "s.yaml").write_text(json.dumps(content | {"benchmarks": benchmarks}))
        return plan_of(str(tmp_path / "s.yaml"), {"out": tmp_path / "out"}, {})

    def swept(samples: int, *steps: int) -> tuple[list[tuple[str, str]], list[str]]:
        """Each step of the curve with the reason of its cell if it is incomplete, and the warnings."""
        told = Told()
        part = plan(samples).of_checkpoints({tmp_path / f"ck/step_{step}" for step in steps}, WRITING)
        ended = carry_out(part, told)
        curve = next(one for one in tables(ended.results) if "against step" in one.title)
        rows = [(row[1], result.reason) for row, result in zip(curve.rows, ended.results.results, strict=True)]
        return rows, told.warnings

    assert swept(1, 1, 2) == ([("1", ""), ("2", "")], [f"{tmp_path}/ck/step_3 is left out: {WRITING}"])
    # Step 2 is fresh and complete: nothing is run, so nothing is said.
    assert swept(1, 1, 3) == ([("1", ""), ("2", ""), ("3", "")], [])
    # With more samples, only the running of step 2 is left for later.
    rows, warnings = swept(2, 1, 3)
    assert rows == [("1", ""), ("2", ""), ("3", "")]
    assert warnings == [f"{tmp_path}/ck/step_2 is not run now: {WRITING}"]
    samples = {path.parts[-3]: len(path.read_text().splitlines()) for path in tmp_path.glob("out/*/a/samples.jsonl")}
    assert samples == {"ck-step_1+x+a": 8, "ck-step_2+x+a": 4, "ck-step_3+x+a": 8}
    assert swept(2, 1, 2, 3)[1] == []
    assert len((tmp_path / "out/ck-step_2+x+a/a/samples.jsonl").read_text().splitlines()) == 8


def test_a_server_that_did_not_start_is_started_again_only_for_other_files_or_a_new_command(tmp_path: Path) -> None:
    (tmp_path / "ck/step_1").mkdir(parents=True)
    questions(tmp_path, "a", 1, 3)
    starts = tmp_path / "starts"
    failing = f"open({str(starts)!r}, 'a').write('x'); exit(1)"
    content: dict[str, Any] = {
        "checkpoints": f"{tmp_path}/ck/step_*",
        "servers": [{"name": "x", "command": [sys.executable, "-c", failing, "{port}"]}],
    }
    paths = [tmp_path / "ck/step_1"]

    def n_starts(unchanged: Collection[Path], samples: int = 1) -> int:
        """How often a server is started in a round; the row keeps its reason in any case."""
        starts.write_text("")
        benchmarks = [{"data": str(tmp_path / "a.jsonl"), "samples": samples}]
        (tmp_path / "s.yaml").write_text(json.dumps(content | {"benchmarks": benchmarks}))
        plan = plan_of(str(tmp_path / "s.yaml"), {"out": tmp_path / "out"}, {})
        ended = carry_out(plan.of_checkpoints(paths, WRITING, unchanged), Told())
        assert [result.reason.partition(":")[0] for result in ended.lost] == ["the server did not start"]
        return len(starts.read_text())

    assert n_starts(()) == 1
    assert n_starts(paths) == 0
    assert n_starts(()) == 1, "changed files, or the command given anew"
    assert n_starts(paths, samples=2) == 1, "a cell that was never tried"
    assert n_starts(paths, samples=2) == 0


def test_a_follower_says_that_it_tries_again_by_itself(tmp_path: Path) -> None:
    (tmp_path / "ck/step_1").mkdir(parents=True)
    os.utime(tmp_path / "ck/step_1", (1, 1))
    questions(tmp_path, "a", 1, 3)
    servers = [{"name": "x", "command": [sys.executable, "-c", "exit(1)", "{port}"]}]
    content = {"checkpoints": "ck/step_*", "servers": servers, "benchmarks": [{"data": "a.jsonl", "samples": 1}]}
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.001", "--no-progress")
    by_itself = "this command tries them again: if the server did not start, once the files of its checkpoint change"
    assert by_itself in done.err
    alone = harness(tmp_path, "sweep", "s.yaml", "--no-progress")
    assert "the same command tries them again" in alone.err


def test_without_a_checkpoint_it_says_what_it_waited_for(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {})
    with pytest.raises(UsageError, match=r"no checkpoint that fits .*step_\* appeared in 2 min$"):
        followed(training, 120)
    assert training.runs == []


def test_a_path_without_a_step_is_no_checkpoint(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {})
    training.events = {20: lambda: training.write("step_last")}
    with pytest.raises(UsageError, match=r"appeared in 2 min\. .*step_last: its name has no training step"):
        followed(training, 120)
    training.events = {training.time + 20: lambda: training.write("step_1")}
    assert followed(training, 120) == 1


def test_a_checkpoint_that_is_still_written_is_waited_for_however_short_the_patience(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {10: lambda: training.write("step_1")})
    told = Told()
    assert followed(training, 15, watcher=told) == 1
    assert [names for _, names in training.runs] == [["step_1"]]
    assert told.standings[-1].endswith("it found 1 checkpoint in the folder")


def test_a_checkpoint_that_was_deleted_after_its_run_is_counted_apart(tmp_path: Path) -> None:
    training = Training(tmp_path / "ck", {10: lambda: training.write("step_1"), 20: lambda: training.write("step_2")})
    training.events[90] = lambda: training.delete("step_1")
    told = Told()
    followed(training, 120, watcher=told)
    assert told.standings[-1].endswith("it found 2 checkpoints in the folder, 1 of which is deleted now")


def test_without_following_a_checkpoint_that_has_just_changed_is_named(tmp_path: Path) -> None:
    for name, changed in (("step_1", 100), ("step_2", 160), ("step_3", 190)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (changed, changed))
    told = Told()
    following.warn_of_fresh([tmp_path / "step_1", tmp_path / "gone"], told, now=lambda: 180)
    assert not told.warnings
    following.warn_of_fresh([tmp_path / f"step_{n}" for n in (1, 2, 3)], told, now=lambda: 195)
    (warning,) = told.warnings
    assert warning.startswith(f"{tmp_path}/step_3 changed less than 30 s ago and is run now: if the training is still")


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("benchmarks: [dmo]\n", (), "Did you mean demo?"),
        ("benchmarks: [demo]\n", ("--track", "trakio"), "Did you mean trackio?"),
        ("benchmarks: [demo]\nrun: {filter: [topc=word]}\n", (), "topc"),
        ("benchmarks: [demo, aime24]\n", (), "s.yaml:3: HuggingFaceH4/aime_2024 is not in the cache and "),
    ],
)
def test_mistakes_are_named_before_the_first_checkpoint(
    tmp_path: Path, text: str, words: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (tmp_path / "s.yaml").write_text(f"checkpoints: ck/step_*\nservers: [{{engine: llama_cpp}}]\n{text}")
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "60", *words)
    assert (done.code, reason in done.err, "waiting" in done.err) == (2, True, False), done.err


@pytest.mark.parametrize(
    ("servers", "reason"),
    [
        ("{engine: vllm, python: ./none}", "vllm"),
        ("{command: [pyhton, serve.py]}", "pyhton is not installed; correct its name, or give the path of"),
    ],
)
def test_a_server_that_cannot_be_started_is_named_before_the_first_checkpoint(
    tmp_path: Path, servers: str, reason: str
) -> None:
    text = "checkpoints: ck/step_*\nservers: [{}]\nbenchmarks: [demo]\n"
    (tmp_path / "s.yaml").write_text(text.replace("{}", servers))
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "60")
    assert (done.code, "waiting" in done.err) == (2, False), done.err
    assert "no server of this sweep can be started here: " in done.err
    assert reason in done.err
    # Wrong twin: that the model is not there yet is no obstacle.
    (tmp_path / "s.yaml").write_text(text.replace("{}", "{engine: llama_cpp}"))
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.001")
    assert (done.code, "waiting for checkpoints" in done.err, "can be started" in done.err) == (2, True, False), (
        done.err
    )


def test_a_sweep_of_models_has_nothing_to_follow(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("models: [m]\nbenchmarks: [demo]\n")
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "1")
    assert (done.code, "needs the key 'checkpoints'" in done.err) == (2, True)
    assert harness(tmp_path, "sweep", "s.yaml", "--follow", "1", "--dry-run").code == 2


def test_an_engine_that_cannot_be_started_is_not_waited_with(tmp_path: Path) -> None:
    (tmp_path / "ck" / "step_1").mkdir(parents=True)
    (tmp_path / "ck" / "step_1" / "config.json").write_text("{}")
    os.utime(tmp_path / "ck" / "step_1" / "config.json", (1, 1))
    os.utime(tmp_path / "ck" / "step_1", (1, 1))
    text = "checkpoints: ck/step_*\nservers: [{engine: vllm, python: ./none}]\nbenchmarks: [demo]\n"
    (tmp_path / "s.yaml").write_text(text)
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "60")
    assert (done.code, "no server of this sweep can be started here: " in done.err) == (2, True), done.err
    assert "Traceback" not in done.err
    planned = harness(tmp_path, "sweep", "s.yaml", "--dry-run")
    assert "cannot be started here: " in planned.out
