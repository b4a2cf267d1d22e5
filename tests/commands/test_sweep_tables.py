"""The tables of a sweep: published scores, suites, load curves, repeats, and checkpoints.

For: harness.sweeps.columns, harness.sweeps.sweep_runner, harness.sweeps.results, harness.deciding.published_order,
harness.runs.sweep_cell, harness.reports.inputs, harness.sweeps, harness.benchmarks.row_forms,
harness.sweeps.load_curve, harness.sweeps.plan, harness.sweeps.table, harness.scoring.load,
harness.reports.report_plots, harness.reports.plots.pictures, harness.sweeps.cells, harness.reports.series,
harness.preparing.run_questions, harness.generation.settings, harness.sweeps.execution, harness.runs.recorded_settings.
"""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

import harness as reasoning_harness
from harness.benchmarks import catalog
from harness.cli import sweep
from harness.commands.compare import published_beside, verify
from harness.commands.report import report
from harness.core.errors import StoreError, UsageError
from harness.core.number_text import in_points
from harness.deciding.difference_stats import holm
from harness.options.decisions import VerifyOptions
from harness.preparing.run_questions import questions_of
from harness.preparing.run_settings import refuse_other_settings
from harness.progress.events import Watcher
from harness.reports.plots.plot import Dot, Plot
from harness.reports.series import settings_apart
from harness.reports.table import Table
from harness.runs import RunFolder
from harness.runs.manifest import BenchmarkRecord, Plan
from harness.runs.recorded_settings import CHECKSUMS, differences_in_curve
from harness.scoring.load import LoadPoint, Rate
from harness.scoring.stats import Interval
from harness.sweeps import cells, execution, record, sweep_runner, table
from harness.sweeps import sweep_runner as sweeps
from harness.sweeps.cell_state import stamp
from harness.sweeps.cells import plan_of
from harness.sweeps.execution import CellScore
from harness.sweeps.load_curve import CurvePoint, frontier
from harness.sweeps.plan import Cell, Sweep
from harness.sweeps.record import CellRecord
from harness.sweeps.results import CellResult, Results, results
from harness.testing import END, HEAD, FakeServer, Pause, Request, Said, Step, chunk, serving
from harness.viewer.pages import Library, benchmark_page, overview
from tests.commands.test_comparing import long_reply, with_replies
from tests.commands.test_sweep_runs import answering, questions
from tests.conftest import CHECKOUT
from tests.faults.able import able, sums
from tests.generation.called_tools import calling
from tests.reports.run_folders import write_run
from tests.system.command import harness

LIMO = "GAIR/LIMO"
QWEN = "Qwen/Qwen3-4B"
R1 = "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"


def swept(name: str, given: dict[str, Any], **runs: tuple[str, int, int, float]) -> Results:
    """The results of a sweep whose cells ran: end of a cell's name → (benchmark, questions, samples, strength)."""
    sweep = cells.plan_of(name, {"samples": None, **given}, {})
    for cell in sweep.cells:
        for end, (benchmark, n_questions, n_samples, strength) in runs.items():
            if cell.name.endswith(end.replace("__", "+")):
                prompt = {"prompt": cell.options.prompt or catalog.load(benchmark).prompt}
                if cell.options.system_prompt:
                    prompt["system_prompt"] = cell.options.system_prompt
                sampling = {"temperature": cell.options.temperature, "top_p": cell.options.top_p, "max_tokens": 32768}
                write_run(
                    sweep.folder(cell),
                    model=cell.model,
                    benchmarks=[(benchmark, n_questions, n_samples)],
                    strength=strength,
                    identity={"model": cell.model, "sampling": sampling},
                    settings=prompt,
                )
    sweep_runner.note_cells(sweep)
    return results(sweep)


def row(shown: Table, first: str) -> dict[str, str]:
    """The row of a table that begins with this text: head → text, the footnote's number taken away."""
    cells = next(cells for cells in shown.rows if cells[0] == first)
    return {head: re.sub(r" \[\d+\]", "", cell) for head, cell in zip(shown.columns, cells, strict=True)}


def budgets(tmp_path: Path, *names: str, **more: Any) -> str:
    servers = [{"name": name, "command": ["serve", "{model}", "--port", "{port}"]} for name in names]
    content = {"extends": "seer4", "models": [QWEN], "servers": servers, "except": [], **more}
    (tmp_path / "budgets.yaml").write_text(json.dumps(content))
    return "budgets.yaml"


def test_a_sparse_cell_stands_beside_its_own_budget_and_agrees(tmp_path: Path) -> None:
    cells = {"full__aime24": ("aime24", 30, 64, 0.64), "b2048__aime24": ("aime24", 30, 64, 0.56)}
    found = swept(budgets(tmp_path, "full", "b2048"), {}, **cells)
    cell = row(next(grid for grid in table.tables(found) if grid.title.startswith("aime24:")), "Qwen3-4B")
    assert ", reported 55.83" in cell["b2048"]
    assert ", reported 71.25" in cell["full"]
    (sparse,) = (result for result in found.results if "b2048+aime24" in result.cell.name)
    assert sparse.standing == "compatible"
    nearest = sparse.nearest
    assert nearest.published.settings["attention_budget"] == 2048
    # The same number and verdict in CSV, in `verify` of the run's folder alone, and in its report.
    (line,) = (line for line in table.records(found) if line.cell == sparse.cell.name)
    assert (line.standing, line.reported) == ("compatible", 0.5583)
    folder = found.sweep.folder(sparse.cell)
    (verified,) = verify(folder, VerifyOptions())
    assert (verified.standing, verified.comparisons[0].published.printed) == ("compatible", "55.83")
    assert reasoning_harness.report(folder).tables[-1].rows[0][4].startswith("55.83 [")
    run = Library([folder]).run(folder.name)
    page = benchmark_page(run.benchmark("aime24"), published_beside(run.folder, "aime24"))
    assert "55.83" in page["published"]
    assert page["published"].endswith(f": {line.standing}")
    bare = write_run(tmp_path / "bare", model=QWEN, benchmarks=[("aime24", 30, 64)], scored=False)
    assert published_beside(bare, "aime24") == ""


@pytest.mark.parametrize(
    ("model", "benchmark", "theirs", "others"),
    [
        (LIMO, "math500", "94.8", ["open-thoughts 86.6"]),
        ("open-thoughts/OpenThinker-32B", "math500", "91.2", []),
        ("Qwen/Qwen2.5-Math-7B-Instruct", "math500", "–", ["rllm 79.8"]),
    ],
)
def test_a_vendors_number_needs_its_own_model(model: str, benchmark: str, theirs: str, others: list[str]) -> None:
    """OpenThoughts measured LIMO, and DeepScaleR a model of Qwen, beside models of their own."""
    table_of = {"layout": "models", "shown": ["vendor", "sources"]}
    Path("own.yaml").write_text(
        json.dumps(
            {"models": [model], "benchmarks": [{"benchmark": benchmark, "samples": 4}], "table": table_of}
            | {"run": {"base_url": "http://127.0.0.1:9"}}
        )
    )
    swept_results = swept("own.yaml", {}, math500=(benchmark, 500, 4, 0.9))
    cells = next(iter(table.tables(swept_results)[0].rows))
    assert re.sub(r" [\[(].*", "", cells[1]) == theirs
    sources = [re.sub(r" \(.*?\)", "", source) for source in cells[2].split(" · ")]
    assert [source for source in others if source in sources] == others
    assert any(source.startswith("vendor") for source in sources) is (theirs != "–")


def test_a_damaged_note_of_a_suite_is_refused_and_none_is_no_suite(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", model=QWEN, benchmarks=[("aime24", 30, 64)], strength=0.46)
    (alone,) = verify(folder.path, VerifyOptions())
    assert "attention_budget" not in alone.comparisons[0].differing
    (folder.path / "suite.json").write_text('{"source": 3}')
    with pytest.raises(StoreError, match=r"suite\.json is not a sweep's note about a run .*\. Remove it"):
        verify(folder.path, VerifyOptions())


@pytest.mark.parametrize("key", ["reasoning_effort", "priority"])
def test_a_cell_says_that_more_effort_made_no_reply_longer(key: str) -> None:
    sampling = [{"name": level, "extra_body": {key: level}} for level in ("low", "high")]
    content = {"models": [QWEN], "benchmarks": ["demo:4"], "sampling": sampling}
    Path("efforts.yaml").write_text(json.dumps(content), "utf-8")
    sweep = cells.plan_of("efforts.yaml", {"base_url": ("http://127.0.0.1:9",)}, {})
    for seed, cell in enumerate(sweep.cells):
        body = dict(cell.options.extra_body)
        write_run(sweep.folder(cell), benchmarks=[("demo", 20, 4)], seed=seed, identity={"extra_body": body})
    sweep_runner.note_cells(sweep)
    _, high = results(sweep).results
    assert ("do not differ significantly" in "".join(high.notes)) == (key == "reasoning_effort")
    assert not results(sweep).results[0].notes[-1]


@pytest.mark.parametrize("key", ["reasoning_effort", "priority"])
def test_a_sweep_over_efforts_draws_accuracy_by_tokens_spent(key: str) -> None:
    sampling = [{"name": level, "extra_body": {key: level}} for level in ("low", "high", "max")]
    content = {"models": [QWEN], "benchmarks": ["demo:4"], "sampling": sampling}
    Path("efforts.yaml").write_text(json.dumps(content), "utf-8")
    sweep = cells.plan_of("efforts.yaml", {"base_url": ("http://127.0.0.1:9",)}, {})
    for seed, (cell, strength) in enumerate(zip(sweep.cells, (0.3, 0.8, 0.5), strict=True)):
        body = dict(cell.options.extra_body)
        write_run(
            sweep.folder(cell),
            benchmarks=[("demo", 20, 4)],
            seed=seed,
            strength=strength,
            identity={"extra_body": body},
            cut=0.3 * (seed == 2),
        )
    sweep_runner.note_cells(sweep)
    read = results(sweep)
    drawn = [one for one in table.plots(read) if one.name == "demo-thinking"]
    if key == "priority":  # not a setting of thinking
        assert drawn == []
        return
    (one,) = drawn
    rows = [dict(zip(one.columns, row, strict=True)) for row in one.rows]
    for row, result in zip(rows, read.results, strict=True):
        assert result.score is not None
        assert result.score.accuracy is not None
        assert (row["tokens"], row["accuracy"]) == (result.score.mean_completion_tokens, result.score.accuracy.value)
        assert row["truncated"] == (result.score.n_truncated or 0) / result.score.n_samples
        beaten = any(
            other["tokens"] <= row["tokens"] and other["accuracy"] >= row["accuracy"] for other in rows if other != row
        )
        assert row["frontier"] is not beaten
    assert [row["setting"] for row in rows] == ["low", "high", "max"]
    assert [mark.title for mark in one.marks if isinstance(mark, Dot) and mark.hollow] == ["max"], "truncated replies"
    assert rows[2]["finished"] > rows[2]["accuracy"]
    ET.fromstring(one.svg())


# ----
# Two benchmarks of one sweep from one card: `compare` and `report` know them by their names in the sweep.

TOPICS = [
    {"name": "sums", "benchmark": "demo", "filter": ["topic=arithmetic"]},
    {"name": "facts", "benchmark": "demo", "filter": ["topic=fact"]},
]
LENGTHS = [
    {"name": "short", "benchmark": "demo", "max_tokens": 64},
    {"name": "long", "benchmark": "demo", "max_tokens": 512},
]
SWEEP = Path("results/s")


def carry_out(benchmarks: list[dict[str, Any]]) -> list[Path]:
    """Run a sweep of two models on two benchmarks; returns the cells, both benchmarks of m50 before those of m80."""
    with FakeServer(answering("m50", "m80")) as server:
        run = {"base_url": server.base_url, "canary": False, "limit": 3, "samples": 2}
        content = {"models": ["m50", "m80"], "benchmarks": benchmarks, "run": run, "score": {"workers": 1}}
        Path("s.yaml").write_text(json.dumps(content))
        sweeps.run_sweep(cells.plan_of("s.yaml", {}, {}), Watcher())
    return [SWEEP / f"{model}+{entry['name']}" for model in ("m50", "m80") for entry in benchmarks]


def compared(*runs: Path, **options: Any) -> list[tuple[str, str, str]]:
    """(benchmark, run, baseline) of each comparison."""
    pairs = reasoning_harness.compare(runs, **options)
    return [(pair.decision.paired.benchmark, pair.decision.run, pair.decision.baseline) for pair in pairs]


@pytest.mark.parametrize("benchmarks", [TOPICS, LENGTHS], ids=["other questions", "other settings"])
def test_two_benchmarks_of_a_card_are_compared_separately(tmp_path: Path, benchmarks: list[dict[str, Any]]) -> None:
    cells = carry_out(benchmarks)
    names = [entry["name"] for entry in benchmarks]
    assert compared(*cells) == [(name, f"m80+{name}", f"m50+{name}") for name in names]
    report = reasoning_harness.report([SWEEP])
    (paired,) = (one for one in report.tables if "Paired" in one.title)
    compared_with_base = [("m80", name) for name in [*names, "mean of 2 benchmarks"]]
    assert [(row[0], row[1].partition(" [")[0]) for row in paired.rows] == compared_with_base
    assert not any("not compared" in note for note in paired.notes)
    assert {*names} <= {*report.tables[0].columns}
    # The same by the other door; the heading of each comparison is the name in the sweep.
    done = harness(tmp_path, "compare", *map(str, cells))
    assert [f"no difference seen between m80+{name} and m50+{name} on {name}: " in done.out for name in names] == [
        True,
        True,
    ], done.out
    assert "differs: max_tokens" not in done.out
    # Wrong twin: two different benchmarks of the sweep are never compared, whatever questions they share.
    with pytest.raises(UsageError, match=f"has no benchmarks in common.*m50.{names[0]} contains {names[0]}"):
        compared(cells[0], cells[3])


def test_a_run_outside_the_sweep_is_compared_under_the_card_s_name(tmp_path: Path) -> None:
    cells = carry_out(TOPICS)
    with FakeServer(answering("m50", "m80")) as server:
        options = {"model": "m50", "base_url": server.base_url, "canary": False, "samples": 2}
        alone = reasoning_harness.run(["demo"], out=tmp_path / "alone", **options).path
    reasoning_harness.score(alone, workers=1)
    assert compared(alone, cells[0], cells[1]) == [("demo", "m50+sums", "alone"), ("demo", "m50+facts", "alone")]
    assert compared(*cells[:2], alone) == [("sums", "alone", "m50+sums")], "the first benchmark that shares questions"
    # A sweep that names the same questions otherwise.
    elsewhere = Path("results/t/m80+arithmetic")
    shutil.copytree(cells[2], elsewhere)
    record = Path("results/t/cells/m80+arithmetic.json")
    record.parent.mkdir()
    shutil.copy(SWEEP / "cells/m80+sums.json", record)
    assert compared(cells[0], elsewhere) == [("sums", "m80+arithmetic", "m50+sums")]
    # Wrong twin: a run of another card has nothing to do with them.
    write_run(tmp_path / "other", benchmarks=[("aime24", 6, 4)])
    with pytest.raises(UsageError, match="has no benchmarks in common"):
        compared(cells[0], tmp_path / "other")


def test_models_and_benchmarks_form_one_table_with_one_base_everywhere(tmp_path: Path) -> None:
    """The base, first in the file, is the last by name; rows and columns have the file's order."""
    (tmp_path / "two.yaml").write_text(
        f"models: [{R1}, {QWEN}, a/small]\nbenchmarks: ['aime24:8', 'demo:4', 'math500:2']\n"
    )
    ends = {"aime24": ("aime24", 30, 8), "demo": ("demo", 20, 4), "math500": ("math500", 20, 2)}
    models = {"qwen-1.5b": 0.3, "qwen3-4b": 0.7, "small": 0.1}
    runs = {f"{m}__{b}": (*run, strength) for m, strength in models.items() for b, run in ends.items()}
    found = swept("two.yaml", {"out": "results/two"}, **runs)
    for result in found.results:
        record.write(found.sweep.out, CellRecord(cell=result.cell.name, model=result.cell.model))
    (shown, *others) = table.tables(found)
    assert (shown.columns, others) == (("model", "aime24", "demo", "math500"), [])
    assert [line[0] for line in shown.rows] == ["DeepSeek-R1-Distill-Qwen-1.5B", "Qwen3-4B", "small"]
    page = reasoning_harness.report("results/two")
    summary = page.tables[0]
    assert summary.columns == ("run", "model", "aime24", "demo", "math500")
    assert [line[1] for line in summary.rows] == [R1, QWEN, "a/small"]
    accuracies = [[cell.replace(" *", "").partition(" [")[0] for cell in line[1:]] for line in shown.rows]
    assert accuracies == [[cell.partition(" [")[0] for cell in line[2:]] for line in summary.rows]
    paired = next(one for one in page.tables if one.title.startswith("Paired differences from "))
    assert paired.title.startswith("Paired differences from deepseek-r1-distill-qwen-1.5b, in points")
    by_cell = {line.cell: line for line in table.records(found)}
    for run, benchmark, difference, *_ in paired.rows:
        if not benchmark.startswith("mean"):
            own = by_cell[f"{run}+{benchmark.partition(' [')[0]}"].difference
            assert own is not None
            assert difference == in_points(own)
    lines = overview(Library([Path("results/two")]))
    assert {line["row"]: [one["column"] for one in line["benchmarks"]] for line in lines} == {
        name: ["aime24", "demo", "math500"] for name in ("deepseek-r1-distill-qwen-1.5b", "qwen3-4b", "small")
    }
    # Wrong twin: a sweep whose base is another entry is compared with it, in its table and in the report.
    (tmp_path / "two.yaml").write_text((tmp_path / "two.yaml").read_text() + "table: {base: qwen3-4b}\n")
    swept("two.yaml", {"out": "results/two"})
    paired = next(
        one
        for one in reasoning_harness.report("results/two").tables
        if one.title.startswith("Paired differences from ")
    )
    assert paired.title.startswith("Paired differences from qwen3-4b, in points")


def test_a_suites_table_shows_printed_values_and_its_csv_has_no_noise(tmp_path: Path) -> None:
    found = swept("llmeval", {"model": "Qwen/QwQ-32B", "out": "results/l"}, aime24=("aime24", 30, 64, 0.745))
    line = next(line for line in table.records(found) if line.cell.endswith("aime24"))
    published = [one.published for result in found.results for one in result.published]
    printed = next(one.printed for one in published if one.source.title == "LLMEval README")
    assert any(text.startswith(printed) for text in row(table.tables(found)[0], "aime24").values())
    assert not re.search(r"\d\.\d{13}", table.to_csv(found).replace(str(line.p), "").replace(str(line.mean_tokens), ""))


def test_a_dry_run_says_once_what_cells_have_in_common_and_fits_a_terminal(tmp_path: Path) -> None:
    models = ", ".join(f"org/model-{n}" for n in range(10))
    (tmp_path / "many.yaml").write_text(f"models: [{models}]\nbenchmarks: [aime24, demo, math500]\n")
    shown = harness(tmp_path, "sweep", "many.yaml", "--dry-run").out
    assert shown.count("temperature 0.6") == 1
    assert shown.count("max_tokens") == 3, "once a benchmark"
    assert shown.count("the server in OPENAI_BASE_URL") == 1
    assert all(f"model-{n}+{name}" in shown for n in range(10) for name in ("aime24", "demo", "math500"))
    assert max(map(len, shown.splitlines()[:-2])) <= 80
    (tmp_path / "few.yaml").write_text("models: [org/m]\nbenchmarks: [{benchmark: demo, samples: 1.25}]\n")
    # 40 × 1.25 are 50 on average: the ids decide which questions have two.
    assert "53 samples left" in harness(tmp_path, "sweep", "few.yaml", "--dry-run").out


# -- `harness sweep bfcl` ----------------------------------------------------------------------------------------------


NON_LIVE = {"simple_python": 4, "multiple": 3, "parallel": 2, "parallel_multiple": 1}
"""Category → how many of its four questions the server answers rightly; of all other categories none."""
OTHERS = ("irrelevance", "live", "live_irrelevance", "live_relevance")


def stand_in(folder: Path, category: str) -> None:
    """The card of a category under its name, with four questions."""
    card = yaml.safe_load((CHECKOUT / "datasets" / f"bfcl_{category}.yaml").read_text("utf-8"))
    card |= {"source": {"kind": "file", "path": f"{category}.jsonl"}, "questions": 4, "checksum": None}
    (folder / f"bfcl_{category}.yaml").write_text(yaml.safe_dump({key: value for key, value in card.items() if value}))
    row: dict[str, Any] = {"function": [{"name": "math.f", "parameters": {"type": "dict", "properties": {}}}]}
    if not category.endswith("relevance"):
        row["ground_truth"] = [{"math.f": {}}] * (1 + ("parallel" in category))
    named = "live_simple" if category == "live" else category
    turns = ([[{"role": "user", "content": f"{category}: {n}?"}]] for n in range(4))
    rows = (json.dumps(row | {"id": f"{named}_{n}", "question": turn}) for n, turn in enumerate(turns))
    (folder / f"{category}.jsonl").write_text("\n".join(rows))


def answered(request: Request) -> Said:
    """The calls of a question, or calls where none are right and none where one is."""
    category, number = re.findall(r"(\w+): (\d)\?", json.dumps(request.json["messages"]))[0]
    if (int(number) < NON_LIVE.get(category, 0)) == category.endswith("irrelevance"):
        return Said("No call.")
    return calling(*["{}"] * (1 + ("parallel" in category)), name="math_f")


def test_the_suite_prints_the_mean_of_four_categories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cards").mkdir()
    for category in (*NON_LIVE, *OTHERS):
        stand_in(tmp_path / "cards", category)
    (tmp_path / "cards" / "suites").symlink_to(CHECKOUT / "datasets" / "suites")
    monkeypatch.setattr(catalog, "shipped_folder", lambda: tmp_path / "cards")
    with FakeServer(serving(answered, "test-model")) as server:
        done = harness(tmp_path, "sweep", "bfcl", "--model", "test-model", "--base-url", server.base_url, "--out", "s")
        assert done.code == 0, done.err
    offered = [each.json for each in server.requests if b"tools" in each.body]
    assert [(body["temperature"], body["tools"][0]["function"]["name"]) for body in offered] == [(0.001, "math_f")] * 32
    assert re.search(r"test-model +100\.0 .* 75\.0 .* 50\.0 .* 25\.0 .* 62\.5 ", done.out), done.out


# -- load curves -------------------------------------------------------------------------------------------------------


class Overloaded:
    """A model that is always right; with so many requests in flight its answers are empty, and faster."""

    def __init__(self, limit: int) -> None:
        self.limit, self.in_flight, self.lock = limit, 0, threading.Lock()

    def answer(self, request: Request) -> Iterator[Step]:
        number = int(request.json["messages"][-1]["content"].split()[2])
        with self.lock:
            self.in_flight += 1
            n = self.in_flight
        text = "so" if n >= self.limit else rf"\boxed{{{number + 1}}}"
        yield HEAD
        yield Pause(0.01)
        for event in Said(text, 12).events():
            yield chunk(event)
            yield Pause(0.0005 if n >= self.limit else 0.002)
        with self.lock:
            self.in_flight -= 1
        yield END


def loaded(folder: Path, limit: int, *more: str, **content: Any) -> tuple[Any, list[dict[str, str]]]:
    """The end of a sweep at 1, 2 and 6 in flight, and the rows of its table.csv."""
    sums(folder, 12)
    run = {"id_key": "id", "canary": False}
    file = {"benchmarks": [{"data": "sums.jsonl", "samples": 2}], "concurrency": [6, 1, 2], "run": run, **content}
    (folder / "s.yaml").write_text(json.dumps(file))
    with FakeServer(serving(Overloaded(limit).answer)) as server:
        done = harness(folder, "sweep", "s.yaml", "--base-url", server.base_url, "--out", "out", *more)
    return done, list(csv.DictReader((folder / "out/table.csv").read_text("utf-8").splitlines()))


def timings(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)["timing"]
        for path in folder.rglob("samples.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]


def test_a_load_that_drops_answers_is_worse_and_not_on_the_frontier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    limits = {"token_gap": "1s", "total": "60s"}
    done, rows = loaded(tmp_path, 4, gpus=2, score={"workers": 1, "limits": limits})
    assert done.code == 0, done.err
    assert [row["load_concurrency"] for row in rows] == ["6", "1", "2"]
    for row in rows:
        assert float(row["load_tokens_per_s_value"]) > 0
        assert float(row["load_first_token_p50"]) <= float(row["load_first_token_p99"]) < float(row["load_total_p99"])
    shown = [line.split(" | ") for line in (tmp_path / "out/table.md").read_text("utf-8").splitlines() if " | " in line]
    assert shown[0][:6] == ["| in flight", "frontier", "accuracy %", "tokens in / out", "tokens/s", "tokens/s/GPU"]
    assert {line[3] for line in shown[2:]} == {"9 / 12"}
    assert shown[2][1] == "less accurate"
    assert shown[3][1] == "yes", "the base"
    assert re.fullmatch(r"may lose \d+\.\d points", shown[4][1]), "24 samples do not rule out a loss of one point"
    assert "*" in shown[2][2]
    drawn = list(csv.DictReader((tmp_path / "out/plots/load-curve.csv").read_text("utf-8").splitlines()))
    assert [(row["concurrency"], row["verdict"]) for row in drawn] == [
        ("6", "less accurate"),
        ("1", ""),
        ("2", shown[4][1]),
    ]
    assert [row["frontier"] == "True" for row in drawn] == [line[1] == "yes" for line in shown[2:]]
    per_gpu = [float(row["load_tokens_per_s_value"]) / 2 for row in rows]
    assert [float(row["tokens_per_s"]) for row in drawn] == pytest.approx(per_gpu)
    # A server that drops answers keeps every limit: right answers are counted, too.
    assert [row["goodput_within_value"] for row in rows] == ["1.0"] * 3
    assert float(rows[0]["goodput_right_value"]) < 0.8 < float(rows[1]["goodput_right_value"])
    assert shown[0][-2:] == ["within %", "right within/s/GPU |"]
    assert all(line[-2].partition(" (")[0] == "100" for line in shown[2:])
    answer = (tmp_path / "out/table.md").read_text("utf-8").splitlines()[0]
    assert answer == "At no measured load could it be shown that 90% of the requests meet token gap ≤ 1 s, total ≤ 60 s"
    assert answer in (tmp_path / "out/table.html").read_text("utf-8")
    assert answer in " ".join(done.out.split())
    pieces = done.out.partition("Load curve")[2].split("── \n")[1:]
    assert len(pieces) > 2, done.out
    for piece in pieces:
        assert re.findall(r"(?m)^ *(\d+)\*?(?: |$)", piece)[:3] == ["6", "1", "2"], done.out
    assert (tmp_path / "out/plots/load-latency.svg").is_file()
    of_stalls = list(csv.DictReader((tmp_path / "out/plots/load-stalls.csv").read_text("utf-8").splitlines()))
    assert [(row["p50"], row["p99"]) for row in of_stalls] == [
        (row["load_largest_gap_p50"], row["load_largest_gap_p99"]) for row in rows
    ]
    gaps = shown[0].index("gap p99 ms")
    assert shown[0][gaps + 1] == "largest gap ms"
    for line, row in zip(shown[2:], rows, strict=True):
        assert float(line[gaps]) == pytest.approx(1000 * float(row["load_gap_p99"]))
        assert float(line[gaps + 1].split(" / ")[2]) >= float(line[gaps]) >= 1
    numbers = [(sum(timing["gaps"].values()), timing["events"] - 1) for timing in timings(tmp_path / "out")]
    assert all(n == expected > 0 for n, expected in numbers), numbers
    assert (tmp_path / "out/plots/load-goodput.svg").is_file()
    assert "Hollow points are not on it: 6 (less accurate), 2 (may lose" in (tmp_path / "out/table.html").read_text(
        "utf-8"
    )
    assert "were sent over 0.1 s" not in (tmp_path / "out/table.md").read_text("utf-8")
    # Wrong twin: a server that keeps its answers, with the loads typed.
    words = "--data sums.jsonl --id-key id -n 2 --no-canary -c 6,1,2 --limits token_gap=1s,total=60s"
    with FakeServer(serving(Overloaded(99).answer)) as server:
        done = harness(tmp_path, "sweep", *words.split(), "--base-url", server.base_url, "--out", "b")
    assert done.code == 0, done.err
    drawn = list(csv.DictReader((tmp_path / "b/plots/load-curve.csv").read_text("utf-8").splitlines()))
    assert {row["concurrency"] for row in drawn} == {"1", "2", "6"}
    assert "less accurate" not in {row["verdict"] for row in drawn}
    assert "requests meet token gap ≤ 1 s, total ≤ 60 s" in (tmp_path / "b/table.md").read_text("utf-8")
    # Wrong twin: one load and no limits, which records what a run records.
    with FakeServer(serving(Overloaded(99).answer)) as server:
        words = words.partition(" --limits")[0].replace("-c 6,1,2", "-c 2")
        done = harness(tmp_path, "sweep", *words.split(), "--base-url", server.base_url, "--out", "c")
    assert done.code == 0, done.err
    assert {" ".join(timing) for timing in timings(tmp_path / "c")} == {
        "started queued first_token last_token total gap_p50 gap_p99 events clock lag"
    }


def test_a_sweep_over_rates_says_which_arrivals_a_cap_delayed(tmp_path: Path) -> None:
    sums(tmp_path, 40)
    words = "--data sums.jsonl --id-key id -n 1 --no-canary --rate 400,5 -c 1 --limits first_token=500ms"
    with FakeServer(serving(Overloaded(99).answer)) as server:
        done = harness(tmp_path, "sweep", *words.split(), "--base-url", server.base_url, "--out", "out")
    assert done.code == 0, done.err
    rows = list(csv.DictReader((tmp_path / "out/plots/load-goodput.csv").read_text("utf-8").splitlines()))
    assert [row["rate"] for row in rows] == ["400.0", "5.0"]
    assert float(rows[0]["within"]) < float(rows[1]["within"])
    text = (tmp_path / "out/table.md").read_text("utf-8")
    first, second = (line.split(" | ") for line in text.splitlines() if line.startswith(("| 400", "| 5")))
    assert (first[0], second[0].strip("| ")) != ("| 400", ""), text
    assert "requests were sent over 0.1 s after their planned arrivals" in text
    assert "requests/s" in text


@pytest.mark.parametrize(("low", "verdict"), [(-0.009, ""), (-0.04, "may lose 4.0 points"), (0.002, "")])
def test_a_load_is_on_the_frontier_if_a_loss_of_one_point_is_ruled_out(low: float, verdict: str) -> None:
    pair = SimpleNamespace(difference=SimpleNamespace(value=low + 0.01, sampling=Interval(low, low + 0.02)))
    result = SimpleNamespace(against_base=pair, differs=False, reason="", cell=SimpleNamespace(benchmark="b"))
    load = SimpleNamespace(user_tokens_per_s=Rate(1.0), tokens_per_s=Rate(1.0), n_retried=0, requests=1)
    point = CurvePoint("", cast(CellResult, result), cast(LoadPoint, load), 1, 8)
    assert (point.verdict, frontier([point])) == (verdict, [] if verdict else [point])


def test_a_load_that_is_never_reached_has_no_speed_and_says_why(tmp_path: Path) -> None:
    done, rows = loaded(tmp_path, 99, "--json", concurrency=[2, 40])
    assert done.code == 0, done.err
    assert [row["load_requests"] != "" for row in rows] == [True, False]
    small, large = json.loads(done.out)["cells"]
    assert small["load"]["total"].keys() == {"p50", "p90", "p99"}
    assert "load" not in large
    assert "too few requests were in flight" in (tmp_path / "out/table.md").read_text("utf-8")


def test_each_load_is_compared_with_the_first_setup_at_its_lowest_load(tmp_path: Path) -> None:
    content = {
        "models": ["a", "b"],
        "sampling": [{"name": "cool", "temperature": 0.6}, {"name": "hot", "temperature": 1.0}],
        "concurrency": [4, 1],
        "repeat": 2,
        "benchmarks": ["demo", "aime24"],
    }
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    plan = plan_of(str(tmp_path / "s.yaml"), {"base_url": "http://127.0.0.1:1/v1"}, {})
    assert len(plan.cells) == 2 * 2 * 2 * 2 * 2
    firsts = {f"a+cool-seed-1-concurrency-1+{name}" for name in ("demo", "aime24")}
    assert set(plan.base_cells.values()) == firsts
    assert len(plan.base_cells) == len(plan.cells) - 2
    assert all(base.endswith(cell.rpartition("+")[2]) for cell, base in plan.base_cells.items())
    configurations = [plan.configuration(cell) for cell in plan.cells]
    assert configurations[0] == "a cool seed 1 demo"
    assert len(set(configurations)) == len(plan.cells) / 2
    (tmp_path / "s.yaml").write_text(json.dumps(content | {"table": {"base": "b"}}))
    plan = plan_of(str(tmp_path / "s.yaml"), {"base_url": "http://127.0.0.1:1/v1"}, {})
    assert plan.base_cells["a+cool-seed-1-concurrency-4+demo"] == "b+cool-seed-1-concurrency-4+demo"


# -- repeats -----------------------------------------------------------------------------------------------------------


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def test_a_sweep_repeats_cells_with_separate_seeds_and_all_sample_counts(tmp_path: Path) -> None:
    sums(tmp_path, 6)
    content = {
        "models": ["test-model"],
        "benchmarks": [{"data": "sums.jsonl"}],
        "repeat": 3,
        "samples": [2, 4],
        "run": {"id_key": "id", "canary": False},
    }
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    with FakeServer(able(0.5)) as server:
        done = harness(tmp_path, "sweep", "s.yaml", "--base-url", server.base_url, "--out", "out")
        seeds = [request.json["seed"] for request in server.requests if request.method == "POST"]
    assert (done.code, "the points are not independent" in done.err) == (0, True), done.err
    assert len(seeds) == len(set(seeds)) + 3 * 6 * 2 == 3 * 6 * (2 + 4), "a seed's first two samples have its seeds"
    assert (tmp_path / "out" / "test-model+samples-4-seed-3+sums" / "manifest.json").exists()
    done = harness(tmp_path, "report", "out")
    assert all(f"test-model+samples-2-seed-{seed}" in done.out for seed in (1, 2, 3)), done.out


@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        (
            {"samples": [2], "benchmarks": ["demo:4"]},
            (),
            "s.yaml:1: the file's `samples`, `repeat`, `concurrency` and `rate` set this option for each run",
        ),
        ({"repeat": 2}, ("--seed", "3"), "harness: --seed: the file sets this option for each repeat; omit it"),
        ({"samples": [2, 4]}, ("-n", "2"), "harness: --samples: the file sets this option for each repeat"),
        ({"repeat": 0}, (), "s.yaml:1: repeat: expected"),
        ({"repeat": 2, "benchmarks": [{"data": "sums.jsonl", "seed": 7}]}, (), "omit seed"),
        ({"samples": [2], "sampling": [{"temperature": 1.0, "samples": 4}]}, (), "omit samples"),
        ({"samples": [2, 2]}, (), "s.yaml:1: the same number is listed twice"),
        ({"concurrency": [1, 4, 1]}, (), "s.yaml:1: the same number is listed twice"),
        ({"concurrency": [1, 4]}, ("--concurrency", "2"), "harness: --concurrency: the file sets this option for each"),
        ({"concurrency": [1, 4], "benchmarks": [{"benchmark": "demo", "concurrency": 2}]}, (), "omit concurrency"),
        ({"concurrency": [1, 4], "rate": [1]}, (), "s.yaml:1: list either `rate` or `concurrency`, not both"),
        ({"rate": [0, 1]}, (), "s.yaml:1: rate.0: expected a number greater than 0"),
        ({"rate": [1, 1.0]}, (), "s.yaml:1: the same number is listed twice"),
        ({}, ("--rate", "2", "--rpm", "60"), "--rpm: --rate already sets how often requests are sent"),
        ({}, ("--rate", "1,-2"), "harness: --rate 1,-2: expected a number greater than 0"),
        ({}, ("-c", "1,4,1"), "harness: concurrency: the same number is listed twice"),
        ({}, ("-c", "1,0"), "harness: --concurrency 1,0: expected a number greater than or equal to 1"),
        ({}, ("-c", "1,x"), "harness: --concurrency 1,x: expected a valid integer"),
        ({}, ("--limits", "first_token=2"), "first_token: expected a time above 0 with its unit"),
    ],
)
def test_bad_repeats_are_refused(tmp_path: Path, content: dict[str, object], words: tuple[str, ...], said: str) -> None:
    (tmp_path / "s.yaml").write_text(json.dumps({"models": ["m"], "benchmarks": ["demo"]} | content))
    done = harness(tmp_path, "sweep", "s.yaml", "--dry-run", *words)
    assert (done.code, said in done.err) == (2, True), done.err


# -- checkpoints -------------------------------------------------------------------------------------------------------


BENCHMARKS = ("demo", "aime24")


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a training with three checkpoints, and a sweep's file in the present folder."""
    for step in (10, 20, 30):
        (tmp_path / f"ck/step_{step}").mkdir(parents=True)
    (tmp_path / "s.yaml").write_text(json.dumps({"checkpoints": "ck/step_*", "benchmarks": [*BENCHMARKS]}))
    return tmp_path / "results/s"


def write_runs(out: Path, strengths: Mapping[str, Mapping[int, float]], **run: Any) -> None:
    """benchmark → step → how strong the checkpoint is, for each cell that is scored."""
    for benchmark, steps in strengths.items():
        for step, strength in steps.items():
            write_run(
                out / f"ck-step_{step}+{benchmark}",
                benchmarks=[(benchmark, 40, 8)],
                strength=strength,
                seed=step,
                **run,
            )


def write_record(planned: Sweep, cell: Cell) -> None:
    """Record the cell as scored with the settings that the file has now."""
    done = CellRecord(cell=cell.name, done=stamp(planned, cell), model=cell.model)
    record.write(planned.out, done)


@dataclass
class Made:
    """A cell as it is made. missing: share of its samples. apart: its settings are not those of its curve."""

    step: int
    scored: bool
    missing: float
    other: bool
    failed: bool
    lost: int = 0
    accuracy: float = 0.0
    apart: bool = False

    @property
    def fits(self) -> bool:
        return self.scored and not self.apart

    @property
    def is_point(self) -> bool:
        return self.fits and self.lost <= 0.01 * N_SAMPLES


STEPS = (10, 20, 30, 40)
N_SAMPLES = 20 * 8


def make_cell(planned: Sweep, cell: Cell, generator: random.Random) -> Made:
    """A random cell of a checkpoint: a run of another strength, with samples missing, of other settings, or none."""
    step = cell.checkpoint.step if cell.checkpoint else 0
    missing, wanted = generator.choice((0.0, 0.0, 0.0, 0.004, 0.7)), [generator.random() for _ in range(3)]
    made = Made(step, wanted[0] < 0.85, missing, wanted[1] < 0.15, wanted[2] < 0.15)
    if made.scored:
        strength, sampling = generator.choice((0.1, 0.2, 0.45)), {"max_tokens": 32 if made.other else 100}
        one = [(cell.benchmark, 20, 8)]
        write_run(
            planned.folder(cell),
            benchmarks=one,
            strength=strength,
            seed=step,
            missing=missing,
            identity={"sampling": sampling},
        )
    reason = "it failed" if made.failed or not made.scored else ""
    record.write(planned.out, CellRecord(cell=cell.name, model=cell.model, reason=reason))
    return made


@pytest.mark.parametrize("seed", range(8))
def test_each_step_has_its_base_its_step_before_and_its_mean(tmp_path: Path, seed: int) -> None:
    """Cells in any state, against an oracle of some lines."""
    generator = random.Random(seed)
    named = generator.choice((None, None, 20))
    content: dict[str, Any] = {"checkpoints": f"{tmp_path}/ck/step_*", "benchmarks": [*BENCHMARKS]}
    content |= {"suite": {"title": "SFT", "aggregate": "mean"}} if seed % 4 else {}
    content |= {"table": {"base": f"ck-step_{named}"}} if named else {}
    for step in STEPS:
        (tmp_path / f"ck/step_{step}").mkdir(parents=True)
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    planned = plan_of(str(tmp_path / "s.yaml"), {"out": str(tmp_path / "out")}, {})
    made = {cell.name: make_cell(planned, cell, generator) for cell in planned.cells}
    swept = results(planned)
    rows = {row.cell: row for row in table.records(swept)}
    shown = {one.title.partition(":")[0]: one for one in table.tables(swept) if "by training step" in one.title}
    drawn = {plot.name: plot for plot in table.plots(swept)}
    n_points, base = {}, named or STEPS[0]
    for name in BENCHMARKS:
        cells = [made[f"ck-step_{step}+{name}"] for step in STEPS]
        scored = [cell for cell in cells if cell.scored]
        for cell in scored:
            row = rows[f"ck-step_{cell.step}+{name}"]
            cell.accuracy, cell.lost = row.accuracy or 0, N_SAMPLES - (row.samples or 0)
            now = max(scored, key=lambda one: one.step)
            cell.apart = cell.other != now.other
        before = None
        n_points[f"series-{name}"] = sum(cell.is_point for cell in cells)
        for number, cell in enumerate(cells):
            row, reference = rows[f"ck-step_{cell.step}+{name}"], next((one for one in cells if one.step == base), cell)
            compared = cell.fits and reference.fits and reference is not cell
            assert (row.difference is not None) == (row.p is not None) == compared, row
            if compared and not cell.lost + reference.lost:
                assert row.difference == pytest.approx(cell.accuracy - reference.accuracy)
            if scored:
                change = shown[name].rows[number][shown[name].columns.index("change")]
                changed = cell.accuracy - before.accuracy if cell.is_point and before is not None else None
                assert change == ("–" if changed is None else in_points(changed))
                assert ("*" in shown[name].rows[number][2]) == (row.p is not None and row.p < 0.05)
                plot = drawn.get(f"series-{name}")
                assert plot is None or (plot.rows[number][2] is not None) == cell.is_point
            before = cell if cell.is_point else before
        if scored:
            signs = any(rows[f"ck-step_{cell.step}+{name}"].p is not None for cell in scored)
            assert (f"differs from ck-step_{base} (p" in shown[name].title) == signs
            gone = any(cell.scored and cell.lost > 0.01 * N_SAMPLES and not cell.apart for cell in cells)
            assert ("rows with more than 1% missing samples are skipped" in shown[name].title) == gone
    assert drawn.keys() == {name for name, n in n_points.items() if n > 1}
    # All comparisons are corrected together.
    if "suite" not in content:
        pairs = [(one.p, one.against_base.p_sampling) for one in swept.results if one.against_base is not None]
        assert [p for p, _ in pairs] == pytest.approx(holm([raw for _, raw in pairs]))
        assert not swept.aggregates
        return
    by_step = [[made[f"ck-step_{step}+{name}"] for name in BENCHMARKS] for step in STEPS]
    for mean, cells in zip(table.mean_records(swept), by_step, strict=True):
        lost = [name for name, cell in zip(BENCHMARKS, cells, strict=True) if cell.failed or not cell.scored]
        assert mean.missing == ", ".join(lost)
        assert (mean.mean is not None) == all(cell.scored for cell in cells)
        assert mean.mean is None or mean.mean == pytest.approx(sum(cell.accuracy for cell in cells) / 2)
        assert (mean.sampling_low is not None) == all(cell.scored and not cell.lost for cell in cells)
        references = by_step[STEPS.index(base)]
        compared = references is not cells and all(one.fits and not one.lost for one in (*cells, *references))
        assert (mean.difference is not None) == compared, mean
        if compared:
            of_base = sum(one.accuracy for one in references) / 2
            assert mean.difference == pytest.approx((mean.mean or 0) - of_base)


def test_what_is_missing_is_named_in_footnotes_and_promises_no_sign(training: Path) -> None:
    content = json.loads(Path("s.yaml").read_text()) | {"table": {"base": "ck-step_10"}}
    Path("s.yaml").write_text(json.dumps(content | {"suite": {"title": "SFT", "aggregate": "mean"}}))
    write_runs(training, {"demo": {10: 0.1, 20: 0.4, 30: 0.4}, "aime24": {20: 0.4, 30: 0.4}})
    shown = {one.title.partition(" ")[0]: one for one in table.tables(results(plan_of("s.yaml", {}, {})))}
    series, mean = shown["aime24:"], shown["Mean"]
    assert (series.rows[0][2], series.notes[0]) == ("missing [1]", "ck-step_10+aime24: not run")
    assert "differs" not in series.title + mean.title, "without a comparison they promise no sign"
    assert "incomplete: demo, aime24; see the benchmark tables for the reasons" in mean.notes


def test_a_report_of_the_sweep_draws_each_curve_that_its_table_draws(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.1, 20: 0.2, 30: 0.45}, "aime24": {30: 0.45}})
    planned = plan_of("s.yaml", {}, {})
    # A step whose run ended early is no point.
    shutil.rmtree(training / "ck-step_20+demo")
    write_runs(training, {"demo": {20: 0.2}}, missing=0.7)
    sweeps.note_cells(planned)

    def curves(*folders: Path) -> list[Plot]:
        return [plot for plot in report([*folders]).plots() if "series" in plot.name]

    (curve,) = curves(training)  # one step of aime24 is no curve
    drawn = table.plots(results(planned))[0]
    assert (curve.name, curve.title, curve.rows) == ("series-demo", drawn.title, drawn.rows)
    assert (curve.rows[1][2], "samples are missing: 1 step." in curve.summary) == (None, True)
    # Two trainings have two curves.
    shutil.copytree(training, training.parent / "twin")
    (both,) = curves(training, training.parent / "twin")
    assert [row[0] for row in both.rows] == ["s demo ck"] * 3 + ["twin demo ck"] * 3
    # Wrong twin: runs that no sweep has placed in a training.
    for note in training.glob("*/suite.json"):
        note.unlink()
    assert curves(training) == []


@pytest.mark.parametrize(
    ("texts", "repeats"),
    [
        (dict.fromkeys((10, 20, 30), long_reply), [False, True, True]),
        # The server loaded the weights of the last step only.
        ({10: long_reply, 20: long_reply, 30: lambda *key: f"Else: {long_reply(*key)}"}, [False, True, False]),
        # Less than half of the replies, such as those of two steps that hardly differ.
        (
            {
                10: long_reply,
                20: lambda name, index: long_reply(name, index) + "!" * (index > 2),
                30: lambda name, index: long_reply(name, index) + "?" * (index > 2),
            },
            [False, False, False],
        ),
        # Wrong twin: every step answers by a letter, which independent steps do, too.
        ({step: lambda *_: "B" for step in (10, 20, 30)}, [False, False, False]),
    ],
    ids=["one model", "two steps", "some", "short"],
)
def test_a_step_that_repeats_the_last_one_is_named(training: Path, texts: dict[int, Any], repeats: list[bool]) -> None:
    write_runs(training, {"demo": {10: 0.2, 20: 0.2, 30: 0.2}}, identity={"seed": 0})
    for step, text_of in texts.items():
        with_replies(RunFolder(training / f"ck-step_{step}+demo"), text_of)
    planned = plan_of("s.yaml", {}, {})
    sweeps.note_cells(planned)
    (shown,) = (one for one in table.tables(results(planned)) if "demo: accuracy by training step" in one.title)
    page = report([training]).markdown().replace("\\_", "_")
    for (former, step), repeated in zip(((0, 10), (10, 20), (20, 30)), repeats, strict=True):
        sentence = f"step {step} repeats step {former}: 200 of the 200 replies compared are identical"
        notes = [number for number, note in enumerate(shown.notes, 1) if sentence in note]
        row = next(row for row in shown.rows if row[1] == str(step))
        assert [f" [{number}]" in row[2] for number in notes] == [True] * repeated
        assert (sentence in page) == repeated
    advice = [
        "the server loads the weights of each checkpoint" in note for note in shown.notes if "repeats step" in note
    ]
    assert all(advice)
    assert page.count("the server loads the weights of each checkpoint") == sum(repeats)


# ----
# A setting that changes in the middle of a training: no server is started for samples made with another one,
# scores stay, and no step is compared across the change.

REFUSED: dict[str, Any] = {
    "max_tokens": 100,
    "temperature": 0.3,
    "top_p": 0.5,
    "seed": 7,
    "system_prompt": "Be brief.",
    "prompt": "boxed_letter",
    "api": "completions",
}
"""Options that the samples of a run share, each with another value than the run's."""

FREE: dict[str, Any] = {"samples": 3, "concurrency": 2, "canary": True, "attempts": 2, "fit_context": True, "limit": 1}
"""Options that may change between the sessions of a run."""


def no_scores(*_: Any) -> CellScore:
    return CellScore()


def write(folder: Path, *, server: str = "", start: bool = False, **benchmark: Any) -> Any:
    """Write the sweep's file and return its plan. server: base URL of a running server. start: a server is started."""
    content: dict[str, Any] = {
        "checkpoints": "ck/step_*",
        "benchmarks": [{"name": "a", "data": "a.jsonl", "samples": 2, "max_tokens": 32, "seed": 0, **benchmark}],
        "run": {"canary": False} | ({} if start else {"base_url": server or "http://127.0.0.1:9"}),
    }
    if start:
        content["servers"] = [{"name": "x", "command": ["false", "{model}", "{port}"]}]
    (folder / "s.yaml").write_text(json.dumps(content))
    return cells.plan_of("s.yaml", {}, {})


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two checkpoints that are sampled, by cells of a running server and of one that is started."""
    names = [f"ck/step_{step}" for step in (1, 2)]
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    questions(tmp_path, "a", 2, 3)

    with FakeServer(answering(*names)) as server:
        sweeps.run_sweep(write(tmp_path, server=server.base_url), Watcher(), score=no_scores)
    planned = write(tmp_path, start=True)
    for cell in planned.cells:
        shutil.copytree(planned.out / cell.name.replace("+x+", "+"), planned.folder(cell))
        write_record(planned, cell)
    return tmp_path


def test_settings_are_compared_before_a_server_by_what_no_server_decides(trained: Path) -> None:
    for name, value in (REFUSED | FREE).items():
        asked = questions_of(write(trained, **{name: value} if name != "canary" else {}).cells[0].options)
        if name in FREE:
            refuse_other_settings(asked)
            continue
        with pytest.raises(StoreError) as caught:
            refuse_other_settings(asked)
        assert caught.value.other_settings, name
        assert name != "max_tokens" or "sampling.max_tokens: 32 → 100" in caught.value.other_settings


def test_no_server_starts_for_samples_of_other_settings_and_scores_stay(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(execution, "launch_server", lambda *_, **__: pytest.fail("a server is started"))
    planned = write(trained, start=True, max_tokens=100)
    capsys.readouterr()
    assert sweep.show(planned) == 2
    shown = capsys.readouterr()
    assert "2 cells on 2 servers, 0 of them done; 0 samples left" in shown.out
    reasons = [
        "its samples were generated with different settings: sampling.max_tokens: 32 → 100. To get new scores, delete "
        f"{planned.folder(cell)}, or give the benchmark a different `name`"
        for cell in planned.cells
    ]
    assert all(reason in shown.err for reason in reasons)

    def stamps() -> list[str]:
        return [found.done for cell in planned.cells if (found := record.read(planned.out, cell.name)) is not None]

    former = stamps()
    ended = sweeps.run_sweep(planned, Watcher(), score=no_scores)
    assert [result.reason for result in ended.lost] == reasons
    assert stamps() == former
    # Wrong twin: with the former settings nothing is missing.
    back = sweeps.run_sweep(write(trained, start=True), Watcher(), score=no_scores)
    assert {result.reason for result in back.lost} == {"not scored"}, "by the scorer of this test"


# ---- curves


def recorded(number: int, **other: Any) -> BenchmarkRecord:
    given = {"max_tokens": 32, "temperature": 0.6, "seed": 0, "model": "a", "prompt": "p", "concurrency": 4} | other
    return BenchmarkRecord(
        identity={
            **{name: given[name] for name in ("model", "seed", "prompt")},
            "sampling": {name: given[name] for name in ("max_tokens", "temperature")},
        },
        plan=Plan(samples=number),
        settings={"concurrency": given["concurrency"]},
    )


def test_the_settings_of_a_curve_are_those_that_the_samples_of_a_run_share() -> None:
    others = {"max_tokens": 100, "temperature": 1.0, "seed": 1, "model": "b", "prompt": "q", "concurrency": 8}
    for name, value in others.items():
        steps = [("curve", 10.0, "0", recorded(4)), ("curve", 20.0, "1", recorded(8, **{name: value}))]
        apart = settings_apart(steps)
        assert apart.keys() == ({"0"} if name in ("max_tokens", "temperature", "prompt") else set()), name
        assert name != "max_tokens" or apart["0"] == "max_tokens 32, the others 100"
    # Of all settings that a session records, none keeps steps apart.
    for path in ("concurrency", "deadlines.idle", "neutral", "questions", *CHECKSUMS):
        one, other = (BenchmarkRecord(identity={}, plan=Plan(samples=4), settings={path: value}) for value in (1, 2))
        assert path in ("neutral", "questions") or not differences_in_curve(one, other), path


def test_a_step_of_other_settings_is_named_with_its_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {10: 32, 20: 100, 30: 32, 40: 100, 50: 100}
    for step in steps:
        Path(f"ck/step_{step}").mkdir(parents=True)
    content = {"checkpoints": "ck/step_*", "benchmarks": ["demo"], "suite": {"title": "SFT", "aggregate": "mean"}}
    Path("s.yaml").write_text(json.dumps(content))
    plan = cells.plan_of("s.yaml", {}, {})
    for cell, (step, max_tokens) in zip(plan.cells, steps.items(), strict=True):
        sampling = {"sampling": {"max_tokens": max_tokens}}
        one = [("demo", 10, 2)]
        write_run(plan.folder(cell), benchmarks=one, strength=0.2 + step / 100, seed=step, identity=sampling)
        write_record(plan, cell)
    sweeps.note_cells(plan)
    swept, words = results(plan), "max_tokens 32, the others 100"
    (shown,) = (one for one in table.tables(swept) if one.title.startswith("demo: accuracy by training step"))
    assert "; rows with different settings are skipped" in shown.title
    assert list(shown.notes) == [f"ck-step_{step}+demo: {words}" for step in (10, 30)]
    assert "differs" not in shown.title, "the base has other settings than the last step: nothing is compared"
    assert [row[-1] == "–" for row in shown.rows] == [True, True, True, False, False]
    (demo,) = table.plots(swept)
    assert "No point where settings differ: 2 steps." in demo.summary
    # A report knows no file: the settings are those of the last step.
    page = report([plan.out])
    (table_of,) = (one for one in page.tables if one.title.startswith("demo: accuracy by training step"))
    assert [note for note in table_of.notes if words in note] == [words], "both steps share the footnote"
    assert [row[2].endswith("[1]") for row in table_of.rows] == [True, False, True, False, False]
    (curve,) = (plot for plot in page.plots() if plot.name == "series-demo")
    assert curve.rows == demo.rows
    # A curve of one step is none: its former files are removed, and those of others stay.
    folder = plan.out / "plots"
    table.write(swept)
    (folder / "series-mine.csv").write_text("of another program")
    assert len([*folder.iterdir()]) == 3
    for step in (20, 40):
        shutil.rmtree(plan.out / f"ck-step_{step}+demo")
    table.write(results(plan))
    assert [path.name for path in folder.iterdir()] == ["series-mine.csv"]
