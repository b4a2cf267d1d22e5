"""What stands beside a suite's cells: the suite's own numbers first, never another attention, and the verdict of the
same number in table, CSV, JSON, report and `verify`.

For: harness.verbs.sweep.columns, harness.verbs.sweep.expected, harness.verbs.sweep.results, harness.scoring.beside,
harness.runs.suite_file.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.asking.options.deciding import VerifyOptions
from harness.benchmarks import catalogue
from harness.core.errors import StoreError
from harness.reports.tables import Table
from harness.verbs.compare import published_beside, verify
from harness.verbs.sweep import cells, table, whole
from harness.verbs.sweep.expected import estimates
from harness.verbs.sweep.results import Results, results
from harness.viewer.library import Library
from harness.viewer.pages import benchmark_page
from tests.conftest import CHECKOUT
from tests.reports.run_folders import write_run

LIMO = "GAIR/LIMO"
QWEN = "Qwen/Qwen3-4B"
R1 = "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"


def swept(name: str, given: dict[str, Any], **runs: tuple[str, int, int, float]) -> Results:
    """The results of a sweep whose cells ran: end of a cell's name → (benchmark, questions, samples, strength)."""
    sweep = cells.plan_of(name, {"samples": None, **given}, {})
    for cell in sweep.cells:
        for end, (benchmark, n_questions, n_samples, strength) in runs.items():
            if cell.name.endswith(end.replace("__", "+")):
                prompt = {"prompt": cell.options.prompt or catalogue.load(benchmark).prompt}
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


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def budgets(tmp_path: Path, *names: str, **more: Any) -> str:
    servers = [{"name": name, "command": ["serve", "--port", "{port}"]} for name in names]
    content = {"extends": "seer4", "models": [QWEN], "servers": servers, "except": [], **more}
    (tmp_path / "budgets.yaml").write_text(json.dumps(content))
    return "budgets.yaml"


def test_cells_that_a_file_leaves_out_are_gaps_and_have_no_mean(tmp_path: Path) -> None:
    shipped = yaml.safe_load((CHECKOUT / "datasets/suites/seer4.yaml").read_text("utf-8"))
    names = ["full", "b1024", "b2048", "b4096", "b6144", "b8192"]
    found = swept(budgets(tmp_path, *names, **{"except": shipped["except"]}), {})
    assert len(found.sweep.cells) == 20, "as many as SeerAttention's tables have of a model"
    heads = {shown.title.partition(":")[0]: shown.columns[1:] for shown in table.tables(found)}
    assert heads["aime24"] == ("full", "b2048", "b4096", "b6144", "b8192")
    assert heads["gpqa_diamond"] == ("full", "b1024", "b2048", "b4096", "b6144")
    assert [mean.point["servers"] for mean in found.aggregates] == ["full", "b2048", "b4096", "b6144"]
    # One model lacks a column that another has: its cell is a gap, and the next one is not moved.
    some = {"models": [QWEN, "Qwen/Qwen3-8B"], "except": [{"models": "qwen3-4b", "servers": "b1024"}]}
    grid = table.tables(swept(budgets(tmp_path, "full", "b1024", "b2048", **some), {}))[0]
    assert [line[2] == "–" for line in grid.rows] == [True, False]


def test_a_dry_run_names_each_cell_s_own_number_and_none_of_another_budget_or_prompt(tmp_path: Path) -> None:
    plan = cells.plan_of(budgets(tmp_path, "full", "b2048", "b8192", prompts=["boxed", "none"]), {}, {})
    numbers = {
        (cell.cell.point["servers"], cell.cell.options.prompt): cell.published.partition(" ")[0]
        for cell in estimates(plan)
        if cell.benchmark == "aime24"
    }
    own = {"full": "71.25", "b2048": "55.83", "b8192": "72.60"}
    assert {server: numbers[server, "boxed"] for server in own} == own
    assert numbers["b2048", "none"] == numbers["b8192", "none"] == ""
    assert numbers["full", "none"] not in own.values()


def test_a_sparse_cell_stands_beside_its_own_budget_and_agrees(tmp_path: Path) -> None:
    cells = {"full__aime24": ("aime24", 30, 64, 0.64), "b2048__aime24": ("aime24", 30, 64, 0.56)}
    found = swept(budgets(tmp_path, "full", "b2048"), {}, **cells)
    cell = row(next(grid for grid in table.tables(found) if grid.title.startswith("aime24:")), "Qwen3-4B")
    assert ", reported 55.83" in cell["b2048"]
    assert ", reported 71.25" in cell["full"]
    (sparse,) = (result for result in found.results if "b2048+aime24" in result.cell.name)
    assert sparse.standing == "compatible"
    nearest = sparse.nearest("pass@1")
    assert nearest is not None
    assert nearest.published.settings["attention_budget"] == 2048
    # The same number and verdict in CSV, in `verify` of the run's folder alone, and in its report.
    (line,) = (line for line in table.records(found) if line.cell == sparse.cell.name)
    assert (line.standing, line.reported) == ("compatible", 0.5583)
    folder = found.sweep.folder(sparse.cell)
    (verified,) = verify(folder, VerifyOptions())
    assert (verified.standing, verified.comparisons[0].published.printed) == ("compatible", "55.83")
    assert harness.report(folder).tables[-1].rows[0][4].startswith("55.83 [")
    bare = write_run(tmp_path / "bare", model=QWEN, benchmarks=[("aime24", 30, 64)], scored=False)
    assert published_beside(bare, "aime24") == ""


@pytest.mark.parametrize(
    ("suite", "model", "run", "printed"),
    [
        ("limo10", LIMO, ("aime24", 30, 16, 0.46), {"reported": "57.1", "previous best": "6.5"}),
        # GPQA is asked by its card's prompt, and the cell says that this is another than LIMO's.
        ("limo10", LIMO, ("gpqa_diamond", 198, 1, 0.5), {"reported": "66.7 (another prompt)", "previous best": "73.3"}),
        ("limo10", LIMO, ("gpqa_diamond", 198, 1, 0.5), {"reported improvement": "-6.6", "verdict": "cannot say"}),
        # LLMEval has no number of QwQ on MATH-500; others have, at other settings.
        ("llmeval", "Qwen/QwQ-32B", ("math500", 500, 8, 0.4), {"reported": "–", "verdict": "cannot say"}),
        (
            "sglang",
            R1,
            ("aime24", 30, 64, 0.3),
            {"samples": "64", "reported": "33.2", "quoted": "28.9", "reported error": "3.4"},
        ),
        # The source quotes 28.9 above of the model's authors, and 25.0 of nobody named.
        ("sglang", R1, ("aime25_i", 15, 64, 0.28), {"reported": "29.9", "quoted": "25.0"}),
        ("sglang", R1, ("limo", 817, 8, 0.48), {"reported": "47.7", "quoted": "–"}),
        ("sglang", R1, ("limo", 8, 0, 0.3), {"pass@1": "missing"}),
        # LIMO's own files say how many questions its sets have; the hub's OlympiadBench lacks one of them.
        ("limo10", LIMO, ("gaokao", 79, 1, 0.4), {"verdict": "not compatible"}),
        ("limo10", LIMO, ("olympiadbench", 674, 1, 0.3), {"verdict": "cannot say"}),
        ("llmeval", "Qwen/QwQ-32B", ("aime24", 30, 64, 0.72), {"reported": "78.65", "by the model's authors": "79.5"}),
        # AIME24 has no budget of 1,024 in the source: what is left is full attention, which decides nothing.
        ("b1024", "Qwen3-4B", ("aime24", 30, 64, 0.3), {"b1024": ", reported 71.25 (full attention): cannot say"}),
        # Zeros stand as the source printed them.
        ("b8192", "Qwen3-4B", ("aime24", 30, 64, 0.64), {"b8192": ", reported 72.60: not compatible"}),
    ],
)
def test_a_cell_stands_beside_what_the_suite_s_source_reports(
    tmp_path: Path, suite: str, model: str, run: tuple[str, int, int, float], printed: dict[str, str]
) -> None:
    if suite.startswith("b"):
        found = swept(budgets(tmp_path, suite), {}, **{f"{suite}__aime24": run})
    else:
        given = {"model": model, "base_url": "http://127.0.0.1:9"}
        found = swept(suite, given, **({run[0]: run} if run[2] else {}))
    shown = next(shown for shown in table.tables(found) if shown.title.startswith(("aime24:", model.split("/")[-1])))
    cells = row(shown, model if suite.startswith("b") else run[0])
    assert {head: cells[head][-len(text) :] for head, text in printed.items()} == printed


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


@pytest.mark.parametrize(
    ("prompt", "strength", "reported", "verdict"),
    [
        ("boxed_prefix", 0.01, "0.0", "compatible"),
        ("boxed_prefix", 0.4, "0.0", "not compatible"),
        ("boxed", 0.4, "0.0", "cannot say"),
        ("boxed_prefix, and a system prompt", 0.4, "0.0", "cannot say"),
        ("long_thought", 0.03, "3.3", "compatible"),
        ("long_thought", 0.4, "3.3", "not compatible"),
    ],
)
def test_a_run_stands_beside_the_row_of_its_own_prompt(
    tmp_path: Path, prompt: str, strength: float, reported: str, verdict: str
) -> None:
    given = {"model": "Qwen/Qwen2.5-1.5B-Instruct", "base_url": "http://127.0.0.1:9"}
    given["prompt"], _, system = prompt.partition(", and ")
    if system:
        given["system_prompt"] = system
    (line,) = [
        line
        for shown in table.tables(swept("efficient-reasoning", given, aime24=("aime24", 30, 10, strength)))
        if "pass@10" in shown.columns
        for line in shown.rows
    ]
    assert (line[2].partition(" ")[0], line[-1]) == (reported, verdict)


@pytest.mark.parametrize(
    ("former", "own", "mean"),
    [
        ("", "", "44.5"),
        ("samples: 8, temperature: 0.0", "samples: 8, temperature: 0.1", "–"),
        ("[t0.0, t0.3, t0.6]", "[t0.0, t0.3, t0.6, aime24]", "–"),
    ],
)
def test_a_published_mean_over_temperatures_stands_beside_the_mean_alone(
    tmp_path: Path, former: str, own: str, mean: str
) -> None:
    suite = (CHECKOUT / "datasets/suites/aime-preview.yaml").read_text("utf-8")
    first = "  - {benchmark: aime24, samples: 8, temperature: 0.3}\n"
    suite = suite.replace(first, "").replace("table:", f"{first}table:")  # The mean's first run has its own score.
    Path("own.yaml").write_text(suite.replace(former, own))
    names = ("t0.0", "t0.3", "t0.6")
    runs = dict.fromkeys(names, ("aime25_i", 15, 8, 0.45)) | {"aime24": ("aime24", 30, 8, 0.56)}
    found = swept("own.yaml", {"model": LIMO, "base_url": "http://127.0.0.1:9"}, **runs)
    tables = {shown.title.split(",")[0].partition(" of")[0]: shown for shown in table.tables(found)}
    cells = [row(tables[name], "LIMO") for name in ("aime24", *names)]
    assert [(cell["reported"], cell["verdict"] != "–") for cell in cells] == [("56.3", True)] + [("–", True)] * 3
    assert {cell["training samples"] for cell in cells} == {"817"}
    of_mean = row(tables["Mean"], "LIMO")
    of_all = ("aime24",) if "aime24" in own else ()
    assert list(of_mean)[1:] == [*names, *of_all, "mean", "new questions", *(["reported"] if mean != "–" else [])]
    assert of_mean.get("reported", "–") == mean
    (record,) = table.mean_records(found)
    assert record.reported == (0.445 if mean != "–" else None)
    (verified,) = verify(found.sweep.folder(found.results[0].cell), VerifyOptions())
    reasons = {one.published.printed: one.reason for one in verified.comparisons}
    assert (verified.standing, reasons["44.5"]) == ("cannot say", "it is the mean over several values of temperature")


def test_a_damaged_note_of_a_suite_is_refused_and_none_is_no_suite(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", model=QWEN, benchmarks=[("aime24", 30, 64)], strength=0.46)
    (alone,) = verify(folder.path, VerifyOptions())
    assert "attention_budget" not in alone.comparisons[0].differing
    (folder.path / "suite.json").write_text('{"source": 3}')
    with pytest.raises(StoreError, match=r"suite\.json is not a sweep's note about a run .*\. Remove it"):
        verify(folder.path, VerifyOptions())


def test_several_sources_stand_in_one_cell_and_all_outputs_agree(tmp_path: Path) -> None:
    """Table, CSV and JSON (one record), `verify` and the viewer take sources and verdict from one function."""
    given = {"extends": "llmeval", "table": {"layout": "benchmarks", "shown": ["accuracy", "sources", "verdict"]}}
    given["models"] = ["Qwen/QwQ-32B"]
    (tmp_path / "own.yaml").write_text(json.dumps(given))
    found = swept("own.yaml", {"base_url": "http://127.0.0.1:9"}, aime24=("aime24", 30, 64, 0.72))
    (result,) = (result for result in found.results if result.score is not None)
    folder = found.sweep.folder(result.cell)
    aime = row(table.tables(found)[0], "aime24")
    sources = aime["reported by"].split(" · ")
    assert sources[:2] == ["LLMEval 78.65", "vendor 79.5"]
    assert len(sources) == len({source.split()[0] for source in sources}) <= 4
    line = next(line for line in table.records(found) if line.cell == result.cell.name)
    assert line.standing == aime["verdict"]
    (verified,) = verify(folder, VerifyOptions())
    assert verified.standing == line.standing
    run = Library([folder]).run(folder.name)
    page = benchmark_page(run.benchmark("aime24"), published_beside(run.folder, "aime24"))
    assert page["published"] == f"{aime['reported by']}: {line.standing}"


def test_the_error_per_question_is_that_of_sglang(tmp_path: Path) -> None:
    """sd/√n of each question, and the mean over the questions."""
    found = swept("sglang", {"model": R1, "base_url": "http://127.0.0.1:9"}, aime24=("aime24", 30, 64, 0.3))
    (result,) = (one for one in found.results if one.benchmark is not None)
    accuracies = [(tally.correct / tally.n, tally.n) for tally in result.benchmark.questions]
    mean = sum((p * (1 - p) / (n - 1)) ** 0.5 for p, n in accuracies) / len(accuracies)
    assert row(table.tables(found)[0], "aime24")["error per question"] == f"{100 * mean:.1f}"


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
    assert ("does not differ beyond chance" in "".join(high.notes)) == (key == "reasoning_effort")
    assert not results(sweep).results[0].notes[-1]
