"""The tables of a sweep over checkpoints: with which step each one is compared, and what is said where nothing is.

For: harness.sweeps.results, harness.sweeps.table, harness.reports.series, harness.preparing.run_questions,
harness.generation.settings, harness.sweeps.running, harness.sweeps.results, harness.reports.series,
harness.runs.recorded_settings.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.cli import sweep
from harness.commands.report import report
from harness.core.errors import StoreError
from harness.core.nouns import in_points
from harness.deciding.stats_differences import holm
from harness.preparing.run_questions import questions_of
from harness.preparing.run_settings import refuse_other_settings
from harness.progress.watching import Watcher
from harness.reports.plots.plot import Plot
from harness.reports.series import settings_apart
from harness.runs import RunFolder
from harness.runs.manifest import BenchmarkRecord, Plan
from harness.runs.recorded_settings import CHECKSUMS, differences_in_curve
from harness.sweeps import cells, record, running, table
from harness.sweeps import whole as sweeps
from harness.sweeps.cells import plan_of
from harness.sweeps.done import stamp
from harness.sweeps.plan import Cell, Sweep
from harness.sweeps.record import CellRecord
from harness.sweeps.results import results
from harness.sweeps.running import CellScore
from harness.testing import FakeServer
from tests.commands.test_comparing import long_reply, with_replies
from tests.commands.test_sweep_runs import answering, questions
from tests.reports.run_folders import write_run

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
def test_a_step_that_repeats_the_step_before_is_named_with_it(
    training: Path, texts: dict[int, Any], repeats: list[bool]
) -> None:
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
        "run": {"fingerprint": False, "canary": False}
        | ({} if start else {"base_url": server or "http://127.0.0.1:9"}),
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


def test_no_server_is_started_for_samples_of_other_settings_and_their_scores_stay(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "launched", lambda *_, **__: pytest.fail("a server is started"))
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


def test_a_step_of_other_settings_is_named_wherever_a_curve_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
