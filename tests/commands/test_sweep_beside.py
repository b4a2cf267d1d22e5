"""What stands beside a suite's cells: the suite's own numbers first, never another attention, and the verdict of the
same number in table, CSV, JSON, report and `verify`.

For: harness.sweeps.columns, harness.sweeps.whole, harness.sweeps.results, harness.deciding.published_order,
harness.runs.sweep_cell, harness.runs.sweep_cell, harness.reports.scored, harness.sweeps.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import harness as reasoning_harness
from harness.benchmarks import catalog
from harness.commands.compare import published_beside, verify
from harness.core.errors import StoreError, UsageError
from harness.core.nouns import in_points
from harness.options.deciding import VerifyOptions
from harness.progress.watching import Watcher
from harness.reports.table import Table
from harness.sweeps import cells, record, table, whole
from harness.sweeps import whole as sweeps
from harness.sweeps.record import CellRecord
from harness.sweeps.results import Results, results
from harness.testing import FakeServer
from harness.viewer.pages import Library, benchmark_page, overview
from tests.commands.test_sweep_runs import answering
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
    whole.note_cells(sweep)
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
def test_a_number_is_the_vendor_s_only_if_the_model_is_its_source_s_own(
    model: str, benchmark: str, theirs: str, others: list[str]
) -> None:
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
    whole.note_cells(sweep)
    _, high = results(sweep).results
    assert ("do not differ significantly" in "".join(high.notes)) == (key == "reasoning_effort")
    assert not results(sweep).results[0].notes[-1]


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
        run = {"base_url": server.base_url, "fingerprint": False, "canary": False, "limit": 3, "samples": 2}
        content = {"models": ["m50", "m80"], "benchmarks": benchmarks, "run": run, "score": {"workers": 1}}
        Path("s.yaml").write_text(json.dumps(content))
        sweeps.run_sweep(cells.plan_of("s.yaml", {}, {}), Watcher())
    return [SWEEP / f"{model}+{entry['name']}" for model in ("m50", "m80") for entry in benchmarks]


def compared(*runs: Path, **options: Any) -> list[tuple[str, str, str]]:
    """(benchmark, run, baseline) of each comparison."""
    pairs = reasoning_harness.compare(runs, **options)
    return [(pair.decision.paired.benchmark, pair.decision.run, pair.decision.baseline) for pair in pairs]


@pytest.mark.parametrize("benchmarks", [TOPICS, LENGTHS], ids=["other questions", "other settings"])
def test_two_benchmarks_of_one_card_are_compared_each_with_its_own(
    tmp_path: Path, benchmarks: list[dict[str, Any]]
) -> None:
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
    assert [f"{name}: candidate m80+{name} " in done.out for name in names] == [True, True], done.out
    assert "differs: max_tokens" not in done.out
    # Wrong twin: two different benchmarks of the sweep are never compared, whatever questions they share.
    with pytest.raises(UsageError, match=f"has no benchmarks in common.*m50.{names[0]} contains {names[0]}"):
        compared(cells[0], cells[3])


def test_a_run_outside_the_sweep_is_compared_under_the_card_s_name(tmp_path: Path) -> None:
    cells = carry_out(TOPICS)
    with FakeServer(answering("m50", "m80")) as server:
        options = {"model": "m50", "base_url": server.base_url, "canary": False, "fingerprint": False, "samples": 2}
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


def test_models_and_benchmarks_are_one_table_with_one_base_wherever_they_are_read(tmp_path: Path) -> None:
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


def test_a_suite_s_table_shows_what_its_source_printed_and_its_csv_has_no_noise(tmp_path: Path) -> None:
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
