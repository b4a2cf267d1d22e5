"""A sweep that follows a folder runs each checkpoint once it is written whole, and ends when none appears any more.

For: harness.sweeps.checkpoints, harness.cli.sweep.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from harness.core.errors import InUse, StoreError, UsageError
from harness.progress.watching import Watcher
from harness.sweeps import checkpoints
from harness.sweeps import file as files
from harness.sweeps.checkpoints import POLL_S, SETTLED_S, follow
from harness.testing import FakeServer, Request, serving
from tests.commands.test_sweep_runs import questions
from tests.system.command import harness


class Training:
    """A clock that moves when somebody sleeps, and the checkpoints that a training run writes meanwhile.

    events: second -> the names that are written then; a name with a minus before it is deleted.
    """

    def __init__(self, folder: Path, events: dict[float, list[str]]) -> None:
        self.folder, self.events, self.time, self.told = folder, dict(events), 0.0, Mock(Watcher)
        self.runs: list[tuple[float, list[str]]] = []
        (folder / "ck.yaml").write_text(f"checkpoints: {folder}/ck/step_*\nbenchmarks: [demo]\n")

    def write(self, name: str) -> None:
        if name.startswith("-"):
            shutil.rmtree(self.folder / "ck" / name[1:])
            return
        path = self.folder / "ck" / name / "model.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        for each in (path, path.parent):
            os.utime(each, (self.time, self.time))

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        for at in sorted(at for at in self.events if at <= self.time):
            for name in self.events.pop(at):
                self.write(name)

    def run(self, settled: Sequence[Path]) -> int:
        self.runs.append((self.time, sorted(path.name for path in settled)))
        for _ in range(10):
            self.sleep(10)  # the training goes on meanwhile
        return len(self.runs)

    def follow(self, patience_s: float, run: Callable[[Sequence[Path]], int] | None = None) -> list[list[str]]:
        """Follow the training by its own clock. Returns the checkpoints of each run."""
        file = files.read(self.folder / "ck.yaml")
        code = follow(file, run or self.run, patience_s, self.told, now=lambda: self.time, sleep=self.sleep)
        assert code == len(self.runs), "the last exit code"
        return [names for _, names in self.runs]


@pytest.mark.parametrize(
    ("events", "patience_s", "runs", "first_s"),
    [
        # Written on while it settles; the second comes later.
        ({20: ["step_1"], 40: ["step_1"], 300: ["step_2"]}, 600, [["step_1"], ["step_2"]], 40),
        # Changed after its run: it is run again.
        ({20: ["step_1"], 260: ["step_1"]}, 300, [["step_1"], ["step_1"]], 20),
        # One that is written for long holds up no other, and is waited for.
        ({20: ["step_1"], **{at: ["step_2"] for at in range(21, 900, 20)}}, 300, [["step_1"], ["step_2"]], 20),
        # However short the patience is, one that is being written is waited for.
        ({10: ["step_1"]}, 15, [["step_1"]], 10),
        # Deleted before it was settled, and after its run.
        ({20: ["step_1"], 40: ["-step_1"], 60: ["step_2"], 300: ["-step_2"]}, 300, [["step_2"]], 60),
        # Without a step it is no checkpoint.
        ({20: ["step_last"], 30: ["step_1"]}, 300, [["step_1"]], 30),
    ],
    ids=["settled", "changed", "long", "short", "deleted", "no step"],
)
def test_each_checkpoint_is_run_once_it_is_settled(
    tmp_path: Path, events: dict[float, list[str]], patience_s: float, runs: list[list[str]], first_s: float
) -> None:
    training = Training(tmp_path, events)
    assert training.follow(patience_s) == runs
    assert first_s + SETTLED_S <= training.runs[0][0] <= first_s + SETTLED_S + 2 * POLL_S
    last = training.runs[-1][0] + 100
    assert last + patience_s <= training.time <= last + patience_s + POLL_S or patience_s < 100
    assert training.told.standing.call_args[0][0].startswith(
        f"no new checkpoint for {patience_s / 60:g} min, so the sweep ends"
    )


def test_a_folder_that_its_own_server_changes_is_not_run_for_ever(tmp_path: Path) -> None:
    training = Training(tmp_path, {20: ["step_1"]})

    def run(settled: Sequence[Path]) -> int:
        training.write("step_1")
        return training.run(settled)

    assert training.follow(300, run) == [["step_1"]]


def test_a_folder_in_use_is_waited_for_and_said_once(tmp_path: Path) -> None:
    training = Training(tmp_path, {20: ["step_1"]})

    def run(settled: Sequence[Path]) -> int:
        if training.time < 400:
            raise InUse("out is in use by process 7 on x; a run can have only one writer.")
        return training.run(settled)

    assert training.follow(120, run) == [["step_1"]], "longer in use than the sweep waits for a checkpoint"
    assert [call[0][0] for call in training.told.standing.call_args_list if "in use" in call[0][0]] == [
        "out is in use by process 7 on x; a run can have only one writer. The sweep is waiting until the folder is free"
    ]

    def broken(_settled: Sequence[Path]) -> int:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="full"):  # Wrong twin: any other refusal ends the sweep.
        Training(tmp_path, {20: ["step_2"]}).follow(120, broken)


def test_without_a_checkpoint_it_says_what_it_waited_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no checkpoint matching .*step_\* appeared within 2 min$"):
        Training(tmp_path, {}).follow(120)


def test_a_follower_scores_each_step_and_leaves_out_a_second_folder_of_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "POLL_S", 0.05)
    questions(tmp_path, "a", 1, 3)

    def write(*names: str) -> None:
        for name in names:
            (tmp_path / "new" / name).mkdir(parents=True)
            os.utime(tmp_path / "new" / name, (1, 1))
            (tmp_path / "new" / name).rename(tmp_path / "ck" / name)

    def reply(request: Request) -> str:
        if request.json["model"] == "ck/step_1":  # the training goes on meanwhile
            (tmp_path / "s.yaml").write_text("half of a fi")
            write("step_01", "step_2", "step_3")
        return r"\boxed{3}"

    (tmp_path / "ck").mkdir()
    write("step_1")
    with FakeServer(serving(reply, *(f"ck/step_{step}" for step in (1, 2, 3)))) as server:
        run = {"fingerprint": False, "canary": False, "base_url": server.base_url}
        content = {"checkpoints": "ck/step_*", "benchmarks": [{"data": "a.jsonl", "samples": 1}], "run": run}
        (tmp_path / "s.yaml").write_text(json.dumps(content))
        done = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.1")
    assert done.code == 0, done.err
    assert "warning: ck/step_01 is skipped: ck/step_1 has the same step or name; rename one of them" in done.err
    assert [done.err.count(f"ck-step_{step}+a: scored") for step in (1, 2, 3)] == [1, 1, 1]
    assert "complete so far: 3 cells" in done.err
    assert "a: accuracy by training step" in done.out


def test_a_server_that_did_not_start_is_tried_again_once_its_checkpoint_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "POLL_S", 0.05)
    (tmp_path / "ck/step_1").mkdir(parents=True)
    os.utime(tmp_path / "ck/step_1", (1, 1))
    questions(tmp_path, "a", 1, 3)
    failing = "open('starts', 'a').write('x'); exit(1)"
    servers = [{"name": "x", "command": [sys.executable, "-c", failing, "{port}", "{model}"]}]
    content = {"checkpoints": "ck/step_*", "servers": servers, "benchmarks": [{"data": "a.jsonl", "samples": 1}]}
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "0.01")
    assert (done.code, (tmp_path / "starts").read_text()) == (1, "x")
    assert "1 of 1 cell is incomplete; each new or changed checkpoint retries them" in done.err
    alone = harness(tmp_path, "sweep", "s.yaml")
    assert "the same command retries them" in alone.err


PYHTON = "servers: [{command: [pyhton, '{model}']}]"


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("servers: [{engine: llama_cpp}]\nbenchmarks: [dmo]\n", (), "Did you mean demo?"),
        ("servers: [{engine: llama_cpp}]\nbenchmarks: [demo]\n", ("--track", "trakio"), "Did you mean trackio?"),
        ("servers: [{engine: llama_cpp}]\nbenchmarks: [demo]\nrun: {filter: [topc=word]}\n", (), "topc"),
        ("benchmarks: [demo, aime24]\n", (), "s.yaml:2: HuggingFaceH4/aime_2024 is not in the cache and "),
        (
            PYHTON + "\nbenchmarks: [demo]\n",
            (),
            "none of this sweep's servers can be started here: pyhton is not installed; correct the name",
        ),
        # The base may be a step that comes: only the server is wrong.
        (
            PYHTON + "\nbenchmarks: [demo]\ntable: {base: ck-step_9}\n",
            (),
            "pyhton is not",
        ),
        ("benchmarks: [demo\n", (), "s.yaml"),
        # A step that `except` names may come, too; a benchmark may not.
        (
            PYHTON + "\nbenchmarks: [demo]\nexcept: [{models: ck-step_9}]\n",
            (),
            "pyhton is not",
        ),
        ("benchmarks: [demo]\nexcept: [{models: ck-step_9, benchmarks: dmo}]\n", (), "Did you mean demo?"),
    ],
)
def test_mistakes_are_named_before_the_first_checkpoint(
    tmp_path: Path, text: str, words: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (tmp_path / "s.yaml").write_text(f"checkpoints: ck/step_*\n{text}")
    done = harness(tmp_path, "sweep", "s.yaml", "--follow", "60", *words)
    assert (done.code, reason in done.err, "waiting" in done.err) == (2, True, False), done.err
