"""Checkpoints on one SGLang server: other weights by its own endpoint, as its documentation has it, and a start anew
where that fails. The replies are those of SGLang 0.5's `http_server.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.asking import servers
from harness.asking.options import RunOptions
from harness.asking.watching import Watcher
from harness.presets.grading import GradingOptions
from harness.reports.plots import draw
from harness.runs import RunFolder
from harness.scoring.pipeline import score_run
from harness.verbs.sweep import cells, file
from harness.verbs.sweep.results import results
from harness.verbs.sweep.running import Hold, run_group
from harness.verbs.sweep.scorer import CellScore
from harness.verbs.sweep.table import tables, write
from server_launchers.errors import LaunchError
from server_launchers.keeping import swapping
from server_launchers.keeping.supervisor import RunningServer
from server_launchers.spec import ServerSpec
from tests.faults.server import FaultServer, Request, Step, completion, http, models


class SGLang:
    """Lists its model by its path, and takes the weights of others; refusing: paths that it refuses."""

    def __init__(self, model: str, refusing: tuple[str, ...] = (), deaf: bool = False) -> None:
        self.model, self.refusing, self.deaf = model, refusing, deaf

    def __call__(self, request: Request) -> Iterator[Step]:
        page = urlsplit(request.path).path
        if page == "/update_weights_from_disk":
            path = request.json["model_path"]
            if path in self.refusing:
                message = f"Failed to update weights: [Errno 2] No such file or directory: '{path}'."
                return iter([http(400, {"success": False, "message": message, "num_paused_requests": 0})])
            self.model = self.model if self.deaf else path
            answer = {"success": True, "message": "Succeeded to update model weights.", "num_paused_requests": 0}
            return iter([http(200, answer)])
        if page == "/get_model_info":
            return iter([http(200, {"model_path": self.model, "is_generation": True})])
        if request.method == "GET":
            return iter([models(self.model)] if page.endswith("/models") else [http(404, {})])
        if not request.json.get("stream"):
            return iter([http(200, {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]})])
        step = int(self.model.rpartition("_")[2])
        return completion(rf"so \boxed{{{3 if step > request.json['seed'] % 300 else 4}}}", tokens=5)


class Told(Watcher):
    """Keeps the warnings."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def warn(self, sentence: str) -> None:
        self.said.append(str(sentence))


def running(server: FaultServer, model: str) -> RunningServer:
    return RunningServer(
        name="sgl",
        base_urls=(server.base_url.removesuffix("/v1"),),
        model=model,
        pid=1,
        log=None,
        detached=True,
        _lifeline=None,
        _guard=None,
    )


STEP = ServerSpec(engine="sglang", model="ck/step_100", tp=2)


def test_weights_are_swapped_and_the_server_says_so_itself() -> None:
    with FaultServer(SGLang("ck/step_100")) as server:
        found = swapping.swap(running(server, "ck/step_100"), replace(STEP, model="ck/step_200"))
        assert (found.model, found.swapped) == ("ck/step_200", True)
        assert [r.json for r in server.requests if "update" in r.path] == [{"model_path": "ck/step_200"}]
        options = servers.at_server(RunOptions(benchmarks="demo", model="ck/step_200"), found)
    assert (options.base_url, options.server) == (
        (server.base_url.removesuffix("/v1"),),
        None,
    )  # its state names other weights


def test_a_server_that_refuses_or_does_as_before_is_not_believed() -> None:
    with FaultServer(SGLang("ck/step_100", refusing=("ck/step_200",))) as server:
        with pytest.raises(LaunchError, match="No such file or directory: 'ck/step_200'"):
            swapping.swap(running(server, "ck/step_100"), replace(STEP, model="ck/step_200"))
        server.answer = SGLang("ck/step_100", deaf=True)
        with pytest.raises(LaunchError, match="sgl reports the model ck/step_100, not ck/step_300"):
            swapping.swap(running(server, "ck/step_100"), replace(STEP, model="ck/step_300"))


def test_only_weights_may_differ_and_the_name_must_be_the_path() -> None:
    other = replace(STEP, model="ck/step_200")
    assert swapping.possible(STEP, other)
    assert not swapping.possible(STEP, replace(other, tp=4))
    assert not swapping.possible(replace(STEP, served_name="m"), replace(other, served_name="m"))
    assert not swapping.possible(replace(STEP, dp=2), replace(other, dp=2))
    assert not swapping.possible(replace(STEP, engine="vllm"), replace(other, engine="vllm"))


def test_a_series_is_served_by_one_start_and_one_more_where_a_swap_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for step in (100, 200, 300):
        (tmp_path / "ck" / f"step_{step}").mkdir(parents=True)
    rows = [{"id": f"q{i}", "problem": f"{i}: What is 1 + 2?", "answer": "3"} for i in range(6)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "series.yaml"
    path.write_text(
        "checkpoints: ck/step_*\nservers: [sglang]\nrun: {id_key: id, canary: false}\n"
        "benchmarks: [{data: sums.jsonl, samples: 4}]\n"
    )
    sweep = cells.plan(file.read(path))
    starts: list[str] = []

    def score(folder: Path, *_: object) -> CellScore:
        score_run(RunFolder(folder), GradingOptions(workers=1))
        return CellScore(code=0)

    with FaultServer(SGLang("", refusing=("ck/step_300",))) as server:

        def launched(spec: ServerSpec, *_: object, stem: str) -> RunningServer:
            starts.append(spec.model)
            server.answer = SGLang(spec.model, refusing=("ck/step_300",))
            return replace(running(server, spec.model), pid=None)

        monkeypatch.setattr(servers, "launched", launched)
        watcher = Told()
        with Hold(watcher) as hold:
            for group in sweep.groups:
                run_group(sweep, group, score, hold, watcher)
    assert [sentence for sentence in watcher.said if "started again" in sentence] == watcher.said
    assert "No such file" in watcher.said[0]
    assert starts == ["ck/step_100", "ck/step_300"]
    assert not any(result.reason for result in results(sweep).results)
    found = results(sweep)
    accuracies = [one.score.accuracy for one in found.results if one.score is not None]
    assert len(accuracies) == 3
    assert accuracies[0] < accuracies[2] == 1.0
    series = next(table for table in tables(found) if "accuracy against step" in table.title)
    assert [row[1] for row in series.rows] == ["100", "200", "300"]
    assert [" *" in row[2] for row in series.rows] == [False, True, True]
    written = {one.name for one in write(found)}
    assert {"table.md", "table.html", "series-sums.svg", "series-sums.csv"} <= written
    page = (sweep.out / "table.html").read_text()
    assert ("<svg" in page, "not drawn" in page) == (True, False)
    monkeypatch.setattr(draw, "installed", lambda: False)
    write(found)
    assert "The pictures are not drawn: they need the extra" in (sweep.out / "table.html").read_text()
