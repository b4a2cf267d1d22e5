"""The tables of a sweep over checkpoints: with which step each one is compared, and what is said where nothing is.

For: harness.verbs.sweep.results, harness.verbs.sweep.table, harness.reports.series.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.asking.options import ReportOptions
from harness.cli import sweep as cli_sweep
from harness.reports.tables import Table
from harness.runs import RunFolder
from harness.scoring.stats_differences import holm
from harness.verbs.report import report
from harness.verbs.sweep import record, run_notes, stamps, table
from harness.verbs.sweep import whole as sweeps
from harness.verbs.sweep.cells import Cell, Sweep
from harness.verbs.sweep.record import CellRecord
from harness.verbs.sweep.results import Results, results
from tests.reports.run_folders import write_run
from tests.verbs.test_comparing import long_reply, with_replies

BENCHMARKS = ("demo", "aime24")


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a training with three checkpoints, and a sweep's file in the present folder."""
    monkeypatch.chdir(tmp_path)
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
    done = CellRecord(cell=cell.name, done=stamps.stamp(planned, cell), model=cell.model)
    record.write(planned.out, done)


def write_records(samples: int, *steps: int, benchmarks: Sequence[str] = ("demo",)) -> None:
    """Record these steps as sampled with so many samples of each question of demo, as the file says then."""
    write_file(samples)
    planned = sweeps.plan_of("s.yaml", {}, {})
    for group in planned.groups:
        for cell in group.cells:
            if cell.benchmark in benchmarks and planned.step_of(cell) in {("ck", step) for step in steps}:
                write_record(planned, cell)


def write_file(samples: int) -> None:
    benchmarks = [{"benchmark": "demo", "samples": samples}, "aime24"]
    Path("s.yaml").write_text(json.dumps({"checkpoints": "ck/step_*", "benchmarks": benchmarks}))


def titles(swept: Results, words: str) -> list[str]:
    return [one.title for one in table.tables(swept) if words in one.title]


def test_each_benchmark_is_compared_with_its_own_first_step_that_has_a_score(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.1, 20: 0.1, 30: 0.45}, "aime24": {20: 0.1, 30: 0.45}})
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    assert [(row.cell, row.difference is None) for row in table.records(swept)] == [
        ("ck-step_10+demo", True),  # the base of demo
        ("ck-step_10+aime24", True),  # without a score
        ("ck-step_20+demo", False),
        ("ck-step_20+aime24", True),  # the base of aime24
        ("ck-step_30+demo", False),
        ("ck-step_30+aime24", False),
    ]
    series = [one for one in table.tables(swept) if "against step" in one.title]
    assert [one.title.partition(":")[0] for one in series] == [*BENCHMARKS]
    assert ["differs from ck-step_10 (" in one.title for one in series] == [True, False]
    assert ["differs from ck-step_20 (" in one.title for one in series] == [False, True]
    assert [["*" in row[2] for row in one.rows] for one in series] == [[False, False, True], [False, False, True]]
    assert next(row[2] for row in series[1].rows) == "missing [1]", "a step without a score is named with the reason"
    assert series[1].notes[0] == "ck-step_10+aime24: not run"


def test_the_table_of_steps_names_those_with_cut_replies(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.1}}, cut=0.5)
    write_runs(training, {"demo": {20: 0.1}, "aime24": {10: 0.1}})
    notes = [table_of.notes for table_of in table.tables(results(sweeps.plan_of("s.yaml", {}, {})))]
    (note,) = [note for listed in notes for note in listed if "max_tokens cut" in note]
    assert re.match(r"of the samples, max_tokens cut \d\d\.\d% at step 10; ", note)


def test_a_benchmark_with_a_table_of_steps_has_no_grid_of_the_same_accuracies(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.1, 20: 0.1}})

    def listed() -> list[str]:
        return [one.title.partition(",")[0] for one in table.tables(results(sweeps.plan_of("s.yaml", {}, {})))]

    assert listed() == ["aime24: accuracy in %", "demo: accuracy against step"], "without a score no step has a row"
    # Wrong twin: columns that the file names.
    content = {"checkpoints": "ck/step_*", "benchmarks": [*BENCHMARKS], "table": {"columns": "models"}}
    Path("s.yaml").write_text(json.dumps(content))
    assert listed() == ["demo: accuracy in %", "aime24: accuracy in %", "demo: accuracy against step"]


def test_a_first_step_with_samples_missing_is_no_base_where_a_whole_one_is(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.1}}, missing=0.7)
    write_runs(training, {"demo": {20: 0.1, 30: 0.45}})
    write_records(8, 20, 30)
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    assert [row.difference is None for row in table.records(swept) if row.benchmarks == "demo"] == [False, True, False]
    assert all("differs from ck-step_20 (" in title for title in titles(swept, "demo"))
    assert not any("differs" in title for title in titles(swept, "aime24")), "no step has a score"


def test_a_deleted_step_is_no_base_once_the_sweep_plans_more_samples(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.1, 20: 0.1, 30: 0.45}})
    write_records(4, 10)
    write_records(8, 20, 30)
    (Path("ck") / "step_10").rmdir()

    def base() -> str:
        shown = titles(results(sweeps.plan_of("s.yaml", {}, {})), "demo: accuracy against step")
        return shown[0].partition("differs from ")[2].partition(" ")[0]

    assert base() == "ck-step_20"
    # Wrong twins: as many samples as it has, and a sweep without a step that has all.
    write_records(8, 10)
    assert base() == "ck-step_10"
    write_file(16)
    assert base() == "ck-step_10"


def test_without_a_whole_step_the_first_that_has_a_score_is_the_base(training: Path) -> None:
    write_runs(training, {"demo": {20: 0.1, 30: 0.45}}, missing=0.7)
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    assert all("differs from ck-step_20 (" in title for title in titles(swept, "demo"))


def test_a_base_that_the_file_names_stays_the_base_and_is_named_where_it_has_no_score(training: Path) -> None:
    content = {"checkpoints": "ck/step_*", "benchmarks": [*BENCHMARKS], "table": {"base": "ck-step_10"}}
    Path("s.yaml").write_text(json.dumps(content))
    write_runs(training, {"demo": {10: 0.1, 20: 0.1, 30: 0.45}, "aime24": {20: 0.1, 30: 0.45}})
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    why = [f"ck-step_{step}+aime24 is not compared: ck-step_10+aime24 has no score" for step in (20, 30)]
    for one in table.tables(swept):
        named = [note for note in one.notes if "not compared" in note]
        assert len(named) == (2 if one.title.startswith("aime24") else 0)
        assert all(note.endswith(reason) for note, reason in zip(named, why, strict=False))
    assert [row.difference for row in table.records(swept) if row.benchmarks == "aime24"] == [None] * 3


def test_a_base_that_is_a_checkpoint_to_come_counts_once_it_is_there(training: Path) -> None:
    def write_file_with(base: str) -> None:
        content = {"checkpoints": "ck/step_*", "benchmarks": ["demo"], "table": {"base": base}}
        Path("s.yaml").write_text(json.dumps(content))

    def bases(*steps: int) -> list[str | None]:
        """The base of each step. steps: those that are not held."""
        planned = sweeps.plan_of("s.yaml", {}, {}).only([Path(f"ck/step_{step}") for step in steps])
        return [one.base and one.base.name for one in results(planned).results]

    write_file_with("ck-step_40")
    write_runs(training, {"demo": {10: 0.1, 20: 0.1, 30: 0.45}})
    assert bases(10, 20, 30) == [None] * 3
    assert "no entry is called 'ck-step_40'" in sweeps.plan_of("s.yaml", {}, {}).remarks[0]
    Path("ck/step_40").mkdir()
    write_runs(training, {"demo": {40: 0.3}})
    assert bases(10, 20, 30, 40) == ["ck-step_40+demo"] * 3 + [None]
    assert not sweeps.plan_of("s.yaml", {}, {}).remarks
    # While its folder is written, its row stays.
    assert bases(10, 20, 30) == ["ck-step_40+demo"] * 3 + [None]


def test_tables_by_model_name_the_base_of_each_benchmark(training: Path) -> None:
    content = {"checkpoints": "ck/step_*", "benchmarks": [*BENCHMARKS], "table": {"layout": "benchmarks"}}
    Path("s.yaml").write_text(json.dumps(content))
    write_runs(training, {"demo": {10: 0.1, 20: 0.1, 30: 0.45}, "aime24": {20: 0.1, 30: 0.45}})
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    (last,) = titles(swept, "ck-step_30, in %")
    assert "differs from ck-step_10 or ck-step_20, the first step with all samples there (p" in last


def test_each_step_is_compared_with_the_scored_step_before_it_and_all_p_are_corrected_together(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.1, 20: 0.4, 30: 0.42}, "aime24": {10: 0.2, 30: 0.4}})
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    rows = {row.cell: row for row in table.records(swept)}
    of_demo = [rows[f"ck-step_{step}+demo"] for step in (10, 20, 30)]
    assert (of_demo[0].change, of_demo[0].p_change) == (None, None)
    assert (of_demo[1].change, of_demo[1].p_change) == (of_demo[1].difference, of_demo[1].p), "one comparison, once"
    assert of_demo[2].change == pytest.approx((of_demo[2].accuracy or 0) - (of_demo[1].accuracy or 0))
    assert (of_demo[2].p_change or 0) > (of_demo[2].p or 1)
    last = rows["ck-step_30+aime24"]
    assert last.change == last.difference, "step 20 has no score, so the step before is 10"
    # Four pairs of cells: 20-10, 30-10 and 30-20 on demo, 30-10 on aime24.
    raw = {
        frozenset((one.cell.name, other.name)): paired.p_sampling
        for one in swept.results
        for other, paired in ((one.base, one.against_base), (one.before, one.since_before))
        if paired is not None and other is not None
    }
    assert len(raw) == 4
    shown = [of_demo[1].p, of_demo[2].p, of_demo[2].p_change, last.p]
    assert sorted(shown, key=float) == pytest.approx(sorted(holm([*raw.values()])))
    (series,) = (one for one in table.tables(swept) if one.title.startswith("demo: accuracy against step"))
    assert series.columns[-3:] == ("samples", "change", "p")
    assert [row[-3] for row in series.rows] == ["320"] * 3
    assert series.rows[0][-1] == "–"
    assert series.rows[1][-1] == "<0.001"


@pytest.mark.parametrize(("missing", "passed_over"), [(0.7, True), (0.002, False)])
def test_a_change_is_counted_from_the_last_step_that_does_not_lack_samples(
    training: Path, missing: float, passed_over: bool
) -> None:
    write_runs(training, {"demo": {10: 0.2, 30: 0.4}})
    write_runs(training, {"demo": {20: 0.45}}, missing=missing)
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    accuracy = [row.accuracy or 0 for row in table.records(swept) if row.benchmarks == "demo"]
    change = [row.change for row in table.records(swept) if row.benchmarks == "demo"]
    (lost,) = (40 * 8 - (row.samples or 0) for row in table.records(swept) if row.cell == "ck-step_20+demo")
    assert lost, "samples of step 20 are missing in both cases"
    before = 0 if passed_over else 1
    assert change[2] == pytest.approx(accuracy[2] - accuracy[before], abs=0.01)
    assert (change[1] is None) == passed_over, "a step whose run ended early has no change of its own"
    (series,) = (one for one in table.tables(swept) if one.title.startswith("demo: accuracy against step"))
    assert (series.rows[1][-2] == "–") == passed_over
    assert float(series.rows[2][-2]) == pytest.approx(100 * (change[2] or 0), abs=1.0), "one change in both"
    assert ("a row with more than 1 % of its samples missing is passed over" in series.title) == passed_over


def test_the_tables_are_written_after_each_cell_of_a_checkpoint(
    training: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_runs(training, {"demo": {10: 0.1}})
    write_records(8, 10)
    planned = sweeps.plan_of("s.yaml", {}, {})

    def interrupted(sweep: Any, _watcher: Any, on_cell: Any, *_: Any) -> None:
        on_cell(record.read(sweep.out, sweep.cells[0].name))
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeps, "carry_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cli_sweep._run(planned, verify=False, as_json=False)
    assert "ck-step_20+demo" in (training / "table.md").read_text("utf-8").replace("\\_", "_")


def write_suite() -> None:
    """Make the sweep's file in the present folder a suite with means."""
    suite = {"suite": {"title": "SFT", "aggregate": "mean"}}
    Path("s.yaml").write_text(json.dumps(json.loads(Path("s.yaml").read_text()) | suite))


def mean_table(swept: Results) -> Table:
    (shown,) = (one for one in table.tables(swept) if one.title.startswith("Mean of"))
    return shown


def test_the_mean_of_a_deleted_step_stays_once_the_sweep_plans_more_samples(training: Path) -> None:
    write_runs(training, {name: {10: 0.1, 20: 0.4, 30: 0.45} for name in BENCHMARKS})
    write_records(8, 10, 20, 30, benchmarks=BENCHMARKS)
    write_suite()
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    before, (cell, *_) = table.mean_records(swept), [row[-2] for row in mean_table(swept).rows]
    assert "[" not in cell
    # The checkpoint of step 10 is deleted; then more samples are asked for, and the step is recorded as incomplete.
    write_records(16, 20, 30)
    planned = sweeps.plan_of("s.yaml", {}, {})
    lost = CellRecord(cell="ck-step_10+demo", reason="it was deleted")
    record.write(planned.out, lost)
    write_suite()
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    after, shown = table.mean_records(swept), mean_table(swept)
    numbers = [[(row.mean, row.sampling_low, row.sampling_high) for row in rows] for rows in (before, after)]
    assert numbers[0] == numbers[1]
    assert [row.missing for row in after] == ["demo", "", ""]
    note = f" [{shown.notes.index('incomplete: demo; the tables of the benchmarks say why') + 1}]"
    assert [row[-2] == f"{cell} *{note}" for row in shown.rows] == [True, False, False], "step 20 is the base now"
    # Wrong twin: a benchmark without any score leaves no mean.
    shutil.rmtree(training / "ck-step_10+demo")
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    assert table.mean_records(swept)[0].mean is None
    assert mean_table(swept).rows[0][-2].startswith("missing")


def test_the_mean_of_a_step_whose_files_changed_has_the_footnote_of_its_benchmarks(
    training: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_runs(training, {name: {10: 0.1, 20: 0.1, 30: 0.1} for name in BENCHMARKS})
    write_suite()
    changed = "ck/step_20 changed after its samples were made"
    monkeypatch.setattr(
        "harness.verbs.run_remarks.changed_model", lambda folder: [changed] if "step_20" in folder.path.name else []
    )
    shown = mean_table(results(sweeps.plan_of("s.yaml", {}, {})))
    mark = f" [{shown.notes.index(changed) + 1}]"
    assert [row[-2].count(mark) for row in shown.rows] == [0, 1, 0], "once for both benchmarks; other steps have none"


def test_means_are_compared_with_the_first_step_that_has_all_samples_of_all_benchmarks(training: Path) -> None:
    write_runs(training, {name: {10: 0.1, 20: 0.1, 30: 0.45} for name in BENCHMARKS})
    write_records(4, 10, benchmarks=["demo"])  # deleted before the samples of demo were raised
    write_records(8, 10, benchmarks=["aime24"])
    write_records(8, 20, 30, benchmarks=BENCHMARKS)
    write_suite()
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    cells = {row.cell: row.accuracy or 0 for row in table.records(swept)}
    assert [row.difference is None for row in table.records(swept)] == [False, True, True, False, False, False]
    means = table.mean_records(swept)
    last = sum(cells[f"ck-step_30+{name}"] - cells[f"ck-step_20+{name}"] for name in BENCHMARKS) / 2
    assert [row.difference is None for row in means] == [False, True, False]
    assert means[2].difference == pytest.approx(last)
    shown = mean_table(swept)
    assert "; * differs from ck-step_20 (p < 0.05" in shown.title
    assert [" *" in row[-2] for row in shown.rows] == [False, False, True]
    assert not any("not compared" in note for note in shown.notes)
    # Wrong twin: with all samples of both benchmarks the first step is the base.
    write_records(8, 10, benchmarks=["demo"])
    write_suite()
    assert "; * differs from ck-step_10 (p" in mean_table(results(sweeps.plan_of("s.yaml", {}, {}))).title


def test_a_mean_that_cannot_be_compared_has_a_footnote_and_its_title_promises_no_sign(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.1, 20: 0.4, 30: 0.4}, "aime24": {20: 0.4, 30: 0.4}})
    content = {"checkpoints": "ck/step_*", "benchmarks": [*BENCHMARKS], "table": {"base": "ck-step_10"}}
    Path("s.yaml").write_text(json.dumps(content))
    write_suite()
    shown = mean_table(results(sweeps.plan_of("s.yaml", {}, {})))
    assert "differs" not in shown.title
    named = [note for note in shown.notes if "not compared" in note]
    assert named == ["the mean is not compared: ck-step_10+aime24 has no score"]
    # With samples missing, too.
    write_runs(training, {"aime24": {10: 0.1}}, missing=0.4)
    shown = mean_table(results(sweeps.plan_of("s.yaml", {}, {})))
    assert "differs" not in shown.title
    assert any("not compared: samples of aime24 are missing" in note for note in shown.notes)


def test_a_mean_of_a_run_that_misses_samples_has_no_interval(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.3}}, missing=0.4)
    write_runs(training, {"aime24": {10: 0.3}})
    write_records(8, 10, benchmarks=BENCHMARKS)
    write_suite()
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    row, shown = table.mean_records(swept)[0], mean_table(swept).rows[0]
    assert row.mean is not None
    assert (row.sampling_low, row.question_low, row.p) == (None, None, None)
    assert "(" not in shown[-2]


def test_the_mean_has_a_curve_that_names_the_steps_of_which_a_score_is_missing(training: Path) -> None:
    (training.parent.parent / "ck/step_40").mkdir()
    write_runs(training, {"demo": {10: 0.1, 20: 0.1, 30: 0.3, 40: 0.4}, "aime24": {10: 0.1, 30: 0.4, 40: 0.4}})
    write_records(8, 10, 20, 30, benchmarks=BENCHMARKS)
    lost = CellRecord(cell="ck-step_40+demo", reason="it was deleted")
    record.write(training, lost)
    write_records(8, 40, benchmarks=["aime24"])
    write_suite()
    swept = results(sweeps.plan_of("s.yaml", {}, {}))
    *_, plot = table.plots(swept)
    means = {row.models: row for row in table.mean_records(swept)}
    assert (plot.name, plot.title) == ("means", "Mean of the benchmarks: accuracy against training steps")
    assert [row[:3] for row in plot.rows] == [
        ("mean ck", step, means[f"ck-step_{step}"].mean) for step in (10, 20, 30, 40)
    ]
    assert plot.rows[1][2] is None
    assert plot.rows[0][3:5] == (means["ck-step_10"].sampling_low, means["ck-step_10"].sampling_high)
    assert plot.summary.endswith(
        "The mean counts each benchmark once: demo, aime24. No point, since a benchmark has no score: step 20. "
        "Of an incomplete score: step 40."
    )
    # A step whose run ended early has no point, on its benchmark and in the mean.
    shutil.rmtree(training / "ck-step_40+demo")
    write_runs(training, {"demo": {40: 0.4}}, missing=0.7)
    of_demo, _, of_means = table.plots(results(sweeps.plan_of("s.yaml", {}, {})))
    for plot in (of_demo, of_means):
        assert plot.rows[3] == (plot.rows[0][0], 40, *[None] * 5)
        assert "No point, since samples are missing: step 40." in plot.summary
        assert "incomplete score" not in plot.summary
    # Wrong twin: without `suite` the file says nothing of how benchmarks are joined, and there is no such curve.
    write_file(8)
    plots = table.plots(results(sweeps.plan_of("s.yaml", {}, {})))
    assert [plot.name for plot in plots] == ["series-demo", "series-aime24"]


def test_a_report_of_the_sweep_draws_each_curve_that_its_table_draws(training: Path) -> None:
    write_runs(training, {"demo": {10: 0.1, 20: 0.2, 30: 0.45}, "aime24": {30: 0.45}})
    planned = sweeps.plan_of("s.yaml", {}, {})
    run_notes.note_cells(planned)
    curves = [plot for plot in report([training], ReportOptions(), lambda *_: []).plots() if "series" in plot.name]
    assert [plot.name for plot in curves] == ["series-demo"], "one step of aime24 is no curve"
    drawn = table.plots(results(planned))
    assert (curves[0].title, curves[0].rows) == (drawn[0].title, drawn[0].rows)
    # A step whose run ended early is no point of either.
    shutil.rmtree(training / "ck-step_20+demo")
    write_runs(training, {"demo": {20: 0.2}}, missing=0.7)
    run_notes.note_cells(planned)
    (curve,) = [plot for plot in report([training], ReportOptions(), lambda *_: []).plots() if "series" in plot.name]
    assert curve.rows == table.plots(results(planned))[0].rows
    assert (curve.rows[1][2], "samples are missing: step 20." in curve.summary) == (None, True)
    # Two trainings have two curves.
    shutil.copytree(training, training.parent / "twin")
    both = report([training, training.parent / "twin"], ReportOptions(), lambda *_: [])
    (curve,) = (plot for plot in both.plots() if "series" in plot.name)
    assert [row[0] for row in curve.rows] == ["s demo ck"] * 3 + ["twin demo ck"] * 3
    # Wrong twin: runs that no sweep has placed in a training.
    for note in training.glob("*/suite.json"):
        note.unlink()
    assert not [plot for plot in report([training], ReportOptions(), lambda *_: []).plots() if "series" in plot.name]


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
def test_a_step_that_repeats_the_step_before_is_named_with_it(
    training: Path, texts: dict[int, Any], repeats: list[bool]
) -> None:
    write_runs(training, {"demo": {10: 0.2, 20: 0.2, 30: 0.2}}, identity={"seed": 0})
    for step, text_of in texts.items():
        with_replies(RunFolder(training / f"ck-step_{step}+demo"), text_of)
    planned = sweeps.plan_of("s.yaml", {}, {})
    run_notes.note_cells(planned)
    (shown,) = (one for one in table.tables(results(planned)) if "demo: accuracy against step" in one.title)
    page = report([training], ReportOptions(), lambda *_: []).markdown().replace("\\_", "_")
    for (former, step), repeated in zip(((0, 10), (10, 20), (20, 30)), repeats, strict=True):
        sentence = f"step {step} repeats step {former}: 200 of 200 replies that were compared are the same"
        notes = [number for number, note in enumerate(shown.notes, 1) if sentence in note]
        row = next(row for row in shown.rows if row[1] == str(step))
        assert [f" [{number}]" in row[2] for number in notes] == [True] * repeated
        assert (sentence in page) == repeated
    advice = ["the `command` of the server holds {model}" in note for note in shown.notes if "repeats step" in note]
    assert advice == [True, False][: len(advice)], "once in full"
    assert page.count("the server loads the weights of each checkpoint") == any(repeats)
