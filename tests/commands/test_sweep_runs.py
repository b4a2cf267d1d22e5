"""A sweep against real server processes: a cell that is lost stops no other and is named, and what is done stays.

For: harness.cli.sweep, harness.sweeps, harness.commands.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import harness as reasoning_harness
from harness.benchmarks import catalog
from harness.options.score import ScoreOptions
from harness.presets.grading import GradingOptions
from harness.progress.events import Watcher
from harness.runs import RunFolder
from harness.scoring.pipeline import score_run
from harness.sweeps import cells, table
from harness.sweeps import sweep_runner as sweeps
from harness.sweeps.execution import CellScore
from harness.testing import FakeServer, Request, Step, completion, models, serving
from tests.commands import judged_runs
from tests.conftest import CHECKOUT
from tests.patience import PATIENCE_SECONDS, until
from tests.system.command import harness, start

SERVER = CHECKOUT / "tests" / "commands" / "able_server.py"


def questions(folder: Path, name: str, n: int, shift: int) -> None:
    rows = [{"id": f"{name}{i}", "problem": f"What is {i} + {shift}?", "answer": str(i + shift)} for i in range(n)]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def command(*more: str) -> list[str]:
    return [sys.executable, str(SERVER), "--port", "{port}", *more]


def write(folder: Path, name: str, content: dict[str, Any], *, n: int = 8) -> str:
    """Write a sweep's file, by default of the model `able` on the `n` questions of a.jsonl; there is b.jsonl, too."""
    questions(folder, "a", n, 3)
    questions(folder, "b", 6, 5)
    run = {"id_key": "id", "canary": False, "concurrency": 4, **content.get("run", {})}
    common = {"benchmarks": [{"data": "a.jsonl", "samples": 1}], "score": {"workers": 1}}
    models = {} if "checkpoints" in content else {"models": ["able"]}
    (folder / name).write_text(json.dumps(models | common | content | {"run": run}), encoding="utf-8")  # JSON is YAML
    return name


def none_is_left(*words: str) -> None:
    """Wait until no process has these words in its command line."""

    def listed() -> list[str]:
        shown = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        return [line for line in shown.splitlines() if all(word in line for word in words)]

    until(lambda: not listed(), f"the end of {words}", 0.2)


def stages(out: Path) -> Counter[str]:
    """How many cells are scored, and how many are lost."""
    done = [json.loads(path.read_text("utf-8"))["done"] for path in (out / "cells").glob("*.json")]
    return Counter("scored" if stamp else "lost" for stamp in done)


def table_of(out: Path) -> list[dict[str, str]]:
    with (out / "table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_lost_cell_stops_no_other_and_is_named_with_its_reason(tmp_path: Path) -> None:
    broken = [sys.executable, "-c", "print('CUDA out of memory'); raise SystemExit(3)", "--port", "{port}"]
    content = {
        "servers": [{"name": "broken", "command": broken}, {"name": "good", "command": command()}],
        "benchmarks": [{"data": "a.jsonl", "samples": 2}, {"data": "absent.jsonl"}],
    }
    name = write(tmp_path, "s.yaml", content)
    done = harness(tmp_path, "sweep", name)
    assert done.code == 4, done.err
    lost = [line for line in done.err.splitlines() if line.startswith("harness: able+")]
    assert [line.split()[1] for line in lost] == ["able+broken+absent:", "able+broken+a:", "able+good+absent:"]
    assert re.search("the server did not start.*; its log: ", lost[1]), "the cause, and where its log is"
    assert "absent.jsonl" in lost[2]
    for line in lost:
        assert line.partition(": ")[2].partition(": ")[2][:60] in " ".join(done.out.split())
    assert done.out.count("does not exist") == 1, "a reason of two cells is one footnote"
    assert "3 of 4 cells are incomplete; the same command retries them" in done.err
    questions(tmp_path, "absent", 3, 2)
    again = harness(tmp_path, "sweep", name)
    assert again.code == 4
    assert "able+good+absent: scored" in again.err
    assert "able+good+a: scored" not in again.err
    questions(tmp_path, "absent", 3, 4)  # other questions are another run, which the folder refuses; nothing is skipped
    changed = harness(tmp_path, "sweep", name)
    assert changed.code == 4
    assert re.search("able\\+good\\+absent: .*absent.jsonl has changed since this run began", changed.err)


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_error_of_all_cells_is_told_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Without a score there is no table, whose every row would tell the error again; the files have them."""
    questions(tmp_path, "a", 3, 2)
    questions(tmp_path, "b", 3, 2)
    name = write(tmp_path, "s.yaml", {"benchmarks": [{"data": "a.jsonl"}, {"data": "b.jsonl"}]})
    done = harness(tmp_path, "sweep", name, "--base-url", "http://127.0.0.1:9/v1", *words)
    assert done.code == 4, done.err
    assert (done.err if words else done.out + done.err).count("no server answers at 127.0.0.1:9") == 1
    assert "able+b: the same" in done.err
    assert "2 of 2 cells are incomplete" in done.err
    assert "no server answers at 127.0.0.1:9" in (tmp_path / "results/s/table.md").read_text()


def test_a_cell_without_judge_verdicts_is_unscored_until_a_later_call(tmp_path: Path) -> None:
    verdicts = {"3": False}

    def judging(request: Request) -> Iterator[Step]:
        if verdicts["3"]:
            return judged_runs.ruling_by({"3": True})(request)
        return iter([models("judge")]) if request.method == "GET" else completion("I am not sure.", tokens=5)

    with FakeServer(answering("able")) as server, FakeServer(judging) as judge:
        name = write(tmp_path, "s.yaml", {})
        judged = ["--judge", f"judge@{judge.base_url},scope=all"]
        words = ["sweep", name, "--base-url", server.base_url, *judged]
        mute = harness(tmp_path, *words)
        assert mute.code == 4, mute.err
        assert "able+a: scoring ended with 4: the judge was asked about" in mute.out
        assert "1 of 1 cell is incomplete; the same command retries them" in mute.err
        assert "lost" not in mute.err
        n_sampled = sum(request.method == "POST" for request in server.requests)
        verdicts["3"] = True
        shutil.rmtree(tmp_path / "results/s/able+a/judge")
        again = harness(tmp_path, *words)
        assert again.code == 0, again.err
        assert sum(request.method == "POST" for request in server.requests) == n_sampled, "the samples are kept"
    assert stages(tmp_path / "results" / "s") == {"scored": 1}


def test_two_sweeps_of_one_folder_do_not_run_at_once(tmp_path: Path) -> None:
    slow = command("--starts", "30", "--mark", f"{tmp_path}/")
    name = write(tmp_path, "s.yaml", {"servers": [{"name": "x", "command": slow}]})
    first = start(tmp_path, ["sweep", name])
    until((tmp_path / "state" / "servers").is_dir, "the start of a server")
    second = harness(tmp_path, "sweep", name)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=PATIENCE_SECONDS)
    assert second.code == 3, second.err
    assert first.returncode == 130
    none_is_left(f"{tmp_path}/", str(SERVER))


def test_a_score_unlike_the_published_one_fails_only_the_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions(tmp_path, "aime24", 30, 3)
    card = {
        "name": "aime24",
        "title": "Sums in its place",
        "source": {"kind": "file", "path": "aime24.jsonl"},
        "columns": {"question": "problem", "answer": "answer", "id": "id"},
        "prompt": "boxed",
    }
    (tmp_path / "aime24.yaml").write_text(json.dumps(card), encoding="utf-8")
    monkeypatch.setattr(catalog, "shipped_folder", lambda: tmp_path)
    published = "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"
    with FakeServer(answering(published)) as server:
        content = {
            "models": [{"name": "x", "model": published, "base_url": server.base_url}],
            "benchmarks": ["aime24:4"],
            "run": {"canary": False},
            "score": {"workers": 1},
        }
        Path("s.yaml").write_text(json.dumps(content), encoding="utf-8")
        swept = reasoning_harness.sweep("s.yaml")
        assert (swept.complete, swept.disagreeing, swept.lost) == (True, ["x+aime24"], {})
        assert swept.records()[0]["standing"] == "not compatible"
        assert harness(tmp_path, "sweep", "s.yaml").code == 0
        gate = harness(tmp_path, "sweep", "s.yaml", "--verify")
    assert gate.code == 1
    assert "x+aime24 does not agree with published scores of deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B" in gate.err


def test_a_lost_cell_is_told_in_python_with_the_scorers_words(tmp_path: Path) -> None:
    with FakeServer(answering("able")) as server:
        name = write(tmp_path, "s.yaml", {"score": {"k": 3}})
        swept = reasoning_harness.sweep(name, base_url=server.base_url)
        assert "pass@3 needs 3 samples" in swept.lost["able+a"]
        with pytest.raises(reasoning_harness.UsageError, match="no suite is named 'nosuch'"):
            reasoning_harness.sweep("nosuch")


answering = partial(serving, r"\boxed{3}")
"""A server of models of these names."""


def test_the_cells_of_a_series_are_steps_of_one_tracker_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "trackers_named", lambda _names: {})
    for step in (20, 100):
        (tmp_path / f"ck/step_{step}").mkdir(parents=True)
    with FakeServer(answering(str(tmp_path / "ck/step_20"))) as server:
        content = {"checkpoints": [f"{tmp_path}/ck/step_*"], "run": {"base_url": server.base_url}}
        write(tmp_path, "s.yaml", content, n=1)

        def sent(*names: str, failing: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
            """The trackers that each scoring of the cell of step 20 sent its scores to."""
            scored: list[ScoreOptions] = []

            def score(folder: Path, options: Any, *_: Any) -> CellScore:
                scored.append(options)
                score_run(RunFolder(folder), GradingOptions(workers=1))
                return CellScore(code=2 * bool(failing), unsent=failing)

            sweeps.run_sweep(cells.plan_of("s.yaml", {}, {}, track=names), Watcher(), score=score)
            assert all(options.series == "s ck" for options in scored if getattr(options, "step", None) == 20)
            return [options.track for options in scored if getattr(options, "step", None) == 20]

        assert sent("notes") == [("notes",)]
        assert sent("notes") == sent() == [], "sent once, and not scored again without a tracker"
        assert sent("notes", "good", "bad", failing=("bad",)) == [("good", "bad")], "only what is missing is sent"
        assert sent("notes", "good", "bad") == [("bad",)], "a failure of one tracker does not forget what another has"
        assert sum(request.path.endswith("/completions") for request in server.requests) == 1, "nothing is asked again"


def test_a_deleted_checkpoint_keeps_its_place_in_the_tables(tmp_path: Path) -> None:
    folders = {step: tmp_path / f"ck/step_{step}" for step in (20, 100, 300)}
    folders[20].mkdir(parents=True)
    with FakeServer(answering("ck/step_20")) as server:
        content = {"checkpoints": "ck/step_*", "run": {"base_url": server.base_url}}
        write(tmp_path, "s.yaml", content, n=1)
        sweeps.run_sweep(cells.plan_of("s.yaml", {}, {}), Watcher())
        folders[20].rmdir()
        folders[100].mkdir()
        server.answer = answering("ck/step_100")
        ended = sweeps.run_sweep(cells.plan_of("s.yaml", {}, {}), Watcher())
        assert [row.accuracy for row in table.records(ended)] == [1.0, 1.0]
        assert [row[1] for row in table.tables(ended)[-1].rows] == ["20", "100"], "both are points of the curve"
        # One that is written anew takes the place of the deleted one of its step; without its run there is none.
        folders[100].rmdir()
        (tmp_path / "ck/step_0100").mkdir()
        paths = [checkpoint.path for checkpoint in cells.plan_of("s.yaml", {}, {}).checkpoints]
        assert paths == [Path("ck/step_20"), Path("ck/step_0100")]
        shutil.rmtree(tmp_path / "results/s/ck-step_20+a")
        # Another pattern is another training.
        write(tmp_path, "s.yaml", content | {"checkpoints": "ck/step_*0"}, n=1)
        assert [checkpoint.step for checkpoint in cells.plan_of("s.yaml", {}, {}).checkpoints] == [100]
        assert sum(request.path.endswith("/completions") for request in server.requests) == 2


def test_a_cell_of_a_deleted_checkpoint_is_lost_with_a_reason(tmp_path: Path) -> None:
    folders = {step: tmp_path / f"ck/step_{step}" for step in (20, 30)}
    for folder in folders.values():
        folder.mkdir(parents=True)
    content = {"checkpoints": "ck/step_*", "servers": [{"name": "x", "command": command("--model", "{model}")}]}

    def swept(samples: int) -> dict[str, str]:
        """Name of each cell → why it is incomplete. Step 30 is deleted while step 20 runs."""
        benchmarks = [{"data": "a.jsonl", "samples": samples}]
        planned = cells.plan_of(write(tmp_path, "s.yaml", content | {"benchmarks": benchmarks}, n=1), {}, {})
        ended = sweeps.run_sweep(planned, Watcher(), lambda _record: folders[30].exists() and folders[30].rmdir())
        return {result.cell.name: result.reason for result in ended.results}

    gone = "its checkpoint ck/step_{} was deleted, but the file now specifies more or different samples"
    assert swept(1) == {"ck-step_20+x+a": "", "ck-step_30+x+a": gone.format(30)}
    folders[20].rmdir()
    assert swept(1) == {"ck-step_20+x+a": ""}, "it has what the file asks for; without a run the other has no place"
    assert swept(2) == {"ck-step_20+x+a": gone.format(20)}
    none_is_left(f"{tmp_path}/", str(SERVER))


def test_a_deleted_checkpoint_that_has_read_no_replies_keeps_its_score(tmp_path: Path) -> None:
    folders = [tmp_path / f"ck/step_{step}" for step in (20, 30)]
    for folder in folders:
        folder.mkdir(parents=True)
    content = {"checkpoints": "ck/step_*", "servers": [{"name": "x", "command": command("--model", "{model}")}]}
    write(tmp_path, "s.yaml", content, n=1)
    assert harness(tmp_path, "sweep", "s.yaml").code == 0
    for folder in folders:
        folder.rmdir()
    # The key comes when the training has deleted what it saved.
    write(tmp_path, "s.yaml", content | {"likelihood": {}}, n=1)
    for _ in range(2):
        done = harness(tmp_path, "sweep", "s.yaml")
        assert (done.code, done.out.count("its checkpoint was deleted before")) == (0, 2), done.out + done.err
    none_is_left(f"{tmp_path}/", str(SERVER))


def test_a_checkpoint_that_was_overwritten_is_named_with_what_to_delete(tmp_path: Path) -> None:
    for step in (20, 30):
        (tmp_path / f"ck/step_{step}").mkdir(parents=True)
        (tmp_path / f"ck/step_{step}/config.json").write_text("{}")
        (tmp_path / f"ck/step_{step}/model.safetensors").write_bytes(b"1" * 100)
    content = {"checkpoints": "ck/step_*", "servers": [{"name": "x", "command": command("--model", "{model}")}]}
    write(tmp_path, "s.yaml", content, n=1)
    out = tmp_path / "results/s"

    def warned() -> list[str]:
        done = harness(tmp_path, "sweep", "s.yaml")
        assert done.code == 0, done.err
        return [line for line in done.err.splitlines() if "changed after" in line]

    assert warned() == []
    # Wrong twins: the same bytes once more, and a checkpoint that is gone.
    (tmp_path / "ck/step_30/config.json").write_text("{}")
    shutil.rmtree(tmp_path / "ck/step_20")
    assert warned() == []
    (tmp_path / "ck/step_30/model.safetensors").write_bytes(b"2" * 100)
    assert warned() == [
        "harness: warning: ck-step_30+x+a: ck/step_30 changed after its samples were generated (weights_sample): its "
        "scores belong to the old files. To get new scores, delete results/s/ck-step_30+x+a"
    ]
    # Who reads only the pages is told, too: a footnote of the tables and of the report.
    sentence = "changed after its samples were generated (weights_sample): its scores belong to the old files"
    assert harness(tmp_path, "report", "results/s").code == 0
    for name in ("table.md", "table.html", "report.html"):
        text = (out / name).read_text("utf-8").replace("\\_", "_")
        assert sentence in text
        assert "step_20 changed" not in text
    shutil.rmtree(out / "ck-step_30+x+a")
    assert warned() == []
    assert (out / "ck-step_30+x+a/manifest.json").is_file()
    # With more samples, the server of the new files may not go on with the run; the tables say what to delete, too.
    (tmp_path / "ck/step_30/model.safetensors").write_bytes(b"3" * 100)
    write(tmp_path, "s.yaml", content | {"benchmarks": [{"data": "a.jsonl", "samples": 2}]}, n=1)
    refused = harness(tmp_path, "sweep", "s.yaml")
    allow = {"--accept-server-change": refused.err, "`accept_server_change`": (out / "table.csv").read_text("utf-8")}
    for option, text in allow.items():
        assert "to get new scores, delete results/s/ck-step_30+x+a and run the same command. " in text
        assert f"To mix the samples of both models instead, use {option}" in text


def test_a_finished_cell_starts_no_server_after_its_entry_is_edited(tmp_path: Path) -> None:
    """Scores are sent where cells are scored, so a cell that is not scored sends nothing."""
    (tmp_path / "ck/step_10").mkdir(parents=True)

    def swept(mark: int, **more: Any) -> tuple[list[str], bool]:
        servers = [{"name": "x", "command": command("--model", "{model}", "--mark", str(mark))}]
        write(tmp_path, "s.yaml", {"checkpoints": "ck/step_*", "servers": servers, **more})
        done = harness(tmp_path, "sweep", "s.yaml")
        assert done.code == 0, done.err
        lines = [line for line in done.err.splitlines() if " answers at " in line or ": scored" in line]
        return lines, "an earlier version of the sweep file" in done.err

    lines, warned = swept(50)
    assert (len(lines), warned) == (2, False), "a server, a scored cell"
    assert swept(50) == ([], False)
    assert swept(60) == ([], True)
    # Scored again by other rules, the samples stay those of the former server.
    lines, warned = swept(60, score={"workers": 1, "k": [1]})
    assert ([line for line in lines if " answers at " in line], len(lines), warned) == ([], 1, True)
    # More samples, by the server as it is now: the former ones are still in the run.
    lines, warned = swept(60, benchmarks=[{"data": "a.jsonl", "samples": 2}])
    assert (len(lines), warned) == (2, True)
    # Wrong twin: a cell without its run is sampled by the new server, and no warning is left.
    for folder in tmp_path.glob("results/s/ck-*"):
        shutil.rmtree(folder)
    lines, warned = swept(60)
    assert (len(lines), warned) == (2, False)
    assert swept(50) == ([], True)


@pytest.mark.parametrize("damaged", ["manifest.json", "b/questions.jsonl"])
def test_damaged_files_of_one_cell_leave_the_scores_of_the_others(tmp_path: Path, damaged: str) -> None:
    with FakeServer(answering("able")) as server:
        content = {
            "models": [{"name": "x", "model": "able", "base_url": server.base_url}],
            "benchmarks": [{"data": "a.jsonl", "samples": 1}, {"data": "b.jsonl", "samples": 1}],
        }
        name = write(tmp_path, "s.yaml", content)
        assert harness(tmp_path, "sweep", name).code == 0
        assert harness(tmp_path, "sweep", name, "--dry-run").out.split().count("done") == 2
        (tmp_path / "results/s/x+b" / damaged).write_text("[]\n")
        again = harness(tmp_path, "sweep", name)
    assert again.code == 4
    assert "1 of 2 cells is incomplete" in again.err
    rows = {row["cell"]: row for row in table_of(tmp_path / "results/s")}
    assert rows["x+a"]["accuracy"]
    assert not rows["x+a"]["reason"]
    assert not rows["x+b"]["accuracy"]
    assert Path(damaged).name in rows["x+b"]["reason"]
    # Without a score no table is printed, whose note would say it.
    write(tmp_path, name, content | {"benchmarks": content["benchmarks"][1:]})
    alone = harness(tmp_path, "sweep", name)
    assert alone.err.count(Path(damaged).name) == 1, alone.err


def test_a_server_that_now_serves_another_model_is_not_reused(tmp_path: Path) -> None:
    with FakeServer(answering("one")) as server:
        name = write(tmp_path, "s.yaml", {"models": [{"name": "x", "base_url": server.base_url}]})
        done = harness(tmp_path, "sweep", name)
        assert done.code == 0, done.err
        scored = (tmp_path / "results/s/x+a/a/scores.json").stat()
        assert harness(tmp_path, "sweep", name).code == 0
        assert (tmp_path / "results/s/x+a/a/scores.json").stat() == scored, "the same model: nothing is scored anew"
        server.answer = answering("other")
        other = harness(tmp_path, "sweep", name)
    assert other.code == 4
    assert "model" in next(line for line in other.err.splitlines() if line.startswith("harness: x+a"))
