"""A setting that changes in the middle of a training: no server is started for samples made with another one, scores
stay, and no step is compared across the change.

For: harness.asking.prepare, harness.generation.settings, harness.verbs.sweep.running,
harness.verbs.sweep.results, harness.reports.trainings, harness.runs.recorded_settings.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.asking import prepare
from harness.asking.options import ReportOptions
from harness.asking.watching import Watcher
from harness.cli import sweep_plan
from harness.cli.sweep import _next as next_of
from harness.core.errors import StoreError
from harness.reports.plots import draw
from harness.reports.trainings import settings_apart
from harness.runs import setting_names
from harness.runs.manifest import BenchmarkRecord, Plan
from harness.runs.recorded_settings import differences_in_curve
from harness.verbs.report import report
from harness.verbs.sweep import record, run_notes, running, table
from harness.verbs.sweep import whole as sweeps
from harness.verbs.sweep.results import results
from harness.verbs.sweep.scorer import CellScore
from tests.faults.server import FaultServer, Request, completion, models
from tests.reports.run_folders import write_run
from tests.verbs.test_sweep_runs import questions
from tests.verbs.test_sweep_series import write_record

REFUSED: dict[str, Any] = {
    "max_tokens": 100, "temperature": 0.3, "top_p": 0.5, "seed": 7, "system_prompt": "Be brief.",
    "prompt": "boxed_letter", "api": "completions",
}  # fmt: skip
"""Options that the samples of a run share, each with another value than the run's."""

FREE: dict[str, Any] = {"samples": 3, "concurrency": 2, "canary": True, "attempts": 2, "fit_context": True, "limit": 1}
"""Options that may change between the sessions of a run."""


def no_scores(*_: Any) -> CellScore:
    return CellScore(code=0)


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
    return sweeps.plan_of("s.yaml", {}, {})


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two checkpoints that are sampled, by cells of a running server and of one that is started."""
    monkeypatch.chdir(tmp_path)
    names = [f"ck/step_{step}" for step in (1, 2)]
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    questions(tmp_path, "a", 2, 3)

    def answer(request: Request) -> Any:
        return iter([models(*names)]) if request.method == "GET" else completion(r"\boxed{3}", tokens=5)

    with FaultServer(answer) as server:
        sweeps.carry_out(write(tmp_path, server=server.base_url), Watcher(), score=no_scores)
    planned = write(tmp_path, start=True)
    for group in planned.groups:
        for cell in group.cells:
            shutil.copytree(planned.out / cell.name.replace("+x+", "+"), planned.folder(cell))
            write_record(planned, cell)
    return tmp_path


def test_settings_are_compared_before_a_server_by_what_no_server_decides(trained: Path) -> None:
    generator = random.Random(3)
    n_refused = 0
    for number in range(80):
        others = REFUSED | FREE
        names = generator.sample([*others], generator.randint(0, 3)) if number >= len(others) else [[*others][number]]
        changed = {name: others[name] for name in names}
        planned = write(trained, **{name: value for name, value in changed.items() if name != "canary"})
        asked = prepare.questions_of(planned.cells[0].options)
        expected = REFUSED.keys() & changed.keys()
        try:
            prepare.refuse_other_settings(asked)
            said = ""
        except StoreError as error:
            said = error.other_settings
        assert bool(said) == bool(expected), (changed, said)
        n_refused += bool(said)
        if "max_tokens" in changed:
            assert "sampling.max_tokens: 32 → 100" in said
    assert 25 < n_refused < 75
    # Changed data are named by their digest; a folder without samples is free.
    questions(trained, "a", 2, 4)
    asked = prepare.questions_of(write(trained).cells[0].options)
    with pytest.raises(StoreError, match="dataset_digest: "):
        prepare.refuse_other_settings(asked)
    for path in trained.glob("results/s/*/a/samples.*"):
        path.unlink()
    prepare.refuse_other_settings(asked)


def test_no_server_is_started_for_samples_of_other_settings_and_their_scores_stay(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def launched(*_: Any, **__: Any) -> Any:
        pytest.fail("a server is started")

    monkeypatch.setattr(running.servers, "launched", launched)
    planned = write(trained, start=True, max_tokens=100)
    capsys.readouterr()
    assert sweep_plan.show(planned) == 2
    shown = capsys.readouterr()
    assert "2 cells on 2 servers, 2 refused, 0 of them done; 0 samples in the others" in shown.out
    assert shown.out.count(" refused ") == 2
    reasons = [
        "its samples are of other settings: sampling.max_tokens: 32 → 100. For new scores, delete "
        f"{planned.folder(cell)}, or give the benchmark another `name`"
        for cell in planned.cells
    ]
    assert all(reason in shown.err for reason in reasons)
    former = [record.read(planned.out, cell.name) for cell in planned.cells]
    ended = sweeps.carry_out(planned, Watcher(), score=no_scores)
    assert [result.reason for result in ended.lost] == reasons
    assert next_of(ended, follows=True) == "the reason says how samples of other settings are replaced"
    for cell, before in zip(planned.cells, former, strict=True):
        after = record.read(planned.out, cell.name)
        assert before is not None
        assert after is not None
        assert after.done == before.done
    # Wrong twin: with the former settings nothing is missing.
    back = sweeps.carry_out(write(trained, start=True), Watcher(), score=no_scores)
    assert {result.reason for result in back.lost} == {"not scored"}, "by the scorer of this test"


# ---- curves


def test_the_settings_of_a_curve_are_those_that_the_samples_of_a_run_share() -> None:
    """Random curves, against an oracle that compares what each step was given."""
    generator = random.Random(5)
    values: dict[str, list[Any]] = {
        "max_tokens": [32, 100], "temperature": [0.6, 1.0], "seed": [0, 1], "model": ["a", "b"], "prompt": ["p", "q"],
        "concurrency": [4, 8], "canary": [True, False], "samples": [4, 8],
    }  # fmt: skip
    for _ in range(300):
        given = [{name: generator.choice(among) for name, among in values.items()} for _ in range(5)]
        asked = [generator.random() < 0.4 for _ in given]
        order = generator.sample(range(5), 5)
        steps = [
            (
                "curve",
                10.0 * number,
                str(number),
                BenchmarkRecord(
                    identity={
                        "model": given[number]["model"],
                        "seed": given[number]["seed"],
                        "prompt": given[number]["prompt"],
                        "sampling": {name: given[number][name] for name in ("max_tokens", "temperature")},
                    },
                    plan=Plan(samples=given[number]["samples"]),
                    settings={name: given[number][name] for name in ("concurrency", "canary")},
                ),
                asked[number],
            )
            for number in order
        ]
        latest = given[max((number for number in range(5) if asked[number]), default=4)]
        expected = {
            str(number)
            for number in range(5)
            if any(given[number][name] != latest[name] for name in ("max_tokens", "temperature", "prompt"))
        }
        apart = settings_apart(steps)
        assert apart.keys() == expected, (given, asked)
        for name, words in apart.items():
            differs = given[int(name)]["max_tokens"] != latest["max_tokens"]
            assert differs == (
                f"max_tokens {given[int(name)]['max_tokens']}, the others {latest['max_tokens']}" in words
            )
    # Of all settings that a session records, none keeps steps apart.
    plain = BenchmarkRecord(identity={}, plan=Plan(samples=4), settings={})
    for path in ("concurrency", "deadlines.idle", "neutral", "questions", *setting_names.DECIDED_BY):
        one, other = (BenchmarkRecord(identity={}, plan=plain.plan, settings={path: value}) for value in (1, 2))
        assert path in ("neutral", "questions") or not differences_in_curve(one, other), path


def test_a_step_of_other_settings_is_passed_over_wherever_a_curve_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    steps = {10: 32, 20: 100, 30: 32, 40: 100, 50: 100}
    for step in steps:
        Path(f"ck/step_{step}").mkdir(parents=True)
    suite = {"suite": {"title": "SFT", "aggregate": "mean"}}

    def planned(max_tokens: int) -> Any:
        benchmarks = [{"benchmark": "demo", "max_tokens": max_tokens}, "aime24"]
        Path("s.yaml").write_text(json.dumps({"checkpoints": "ck/step_*", "benchmarks": benchmarks, **suite}))
        return sweeps.plan_of("s.yaml", {}, {})

    for step, max_tokens in steps.items():
        plan = planned(max_tokens)
        for group in plan.groups:
            for cell in group.cells:
                if plan.step_of(cell) == ("ck", step):
                    sampling = {"sampling": {"max_tokens": max_tokens if cell.benchmark == "demo" else 64}}
                    one = [(cell.benchmark, 10, 2)]
                    write_run(
                        plan.folder(cell), benchmarks=one, strength=0.2 + step / 100, seed=step, identity=sampling
                    )
                    write_record(plan, cell)
    run_notes.note_cells(plan)
    swept = results(plan)
    words = "max_tokens 32, the others 100"
    lines = [line for line in table.score_lines(swept) if "+demo" in line]
    assert [words in line for line in lines] == [True, False, True, False, False]
    assert ["since the step before" in line for line in lines] == [False, False, False, True, True]
    rows = [row for row in table.records(swept) if row.benchmarks == "demo"]
    of = {step: row.accuracy or 0 for step, row in zip(steps, rows, strict=True)}
    assert rows[3].change == pytest.approx(of[40] - of[20]), "from the last step with the same settings"
    assert [row.difference is None for row in rows] == [True, True, True, False, False], "step 20 is the base"
    shown = {one.title.partition(":")[0]: one for one in table.tables(swept)}
    assert "; a row with other settings is passed over" in shown["demo"].title
    assert "passed over" not in shown["aime24"].title
    assert [row[-2] == "–" for row in shown["demo"].rows] == [True, True, True, False, False]
    assert shown["demo"].notes[0] == f"ck-step_10+demo: {words}"
    # The pictures, their data, and the mean.
    demo, aime24, means = table.plots(swept)
    for plot in (demo, means):
        assert "No point, since settings differ: steps 10, 30." in plot.summary
        assert [row[2] is None for row in plot.rows] == [True, False, True, False, False]
    assert "settings differ" not in aime24.summary
    lost = [row.p for row in table.mean_records(swept) if row.models in ("ck-step_10", "ck-step_30")]
    assert lost == [None, None], "the mean of a step holds the score of other settings"
    # A report knows no file: the settings are those of the last step.
    page = report([plan.out], ReportOptions(), lambda *_: [])
    (table_of,) = (one for one in page.tables if one.title.startswith("demo: accuracy against step"))
    assert [words in note for note in table_of.notes].count(True) == 2
    assert [row[-1] == "–" for row in table_of.rows] == [True, True, True, False, False]
    (curve,) = (plot for plot in page.plots() if plot.name == "series-demo")
    assert curve.rows == demo.rows
    # Wrong twins: the former settings are asked for, and no step has those that are.
    back = [row.change is None for row in table.records(results(planned(32))) if row.benchmarks == "demo"]
    assert back == [True, True, False, True, True]
    none = [row.change is None for row in table.records(results(planned(64))) if row.benchmarks == "demo"]
    assert none == [True, True, True, False, False]
    # A curve of one step is none: its former files are removed, and those of the other benchmark and of others stay.
    folder = plan.out / "plots"
    monkeypatch.setattr(draw, "svg", lambda *_, **_titled: "")
    monkeypatch.setattr(draw, "png", lambda *_: b"")
    table.write(swept)
    (folder / "series-mine.csv").write_text("of another program")
    drawn = {path.name for path in folder.iterdir()}
    for step in (20, 40):
        shutil.rmtree(plan.out / f"ck-step_{step}+demo")
    table.write(results(planned(100)))
    gone = {f"{name}.{suffix}" for name in ("series-demo", "means") for suffix in ("svg", "png", "csv")}
    assert gone < drawn
    assert {path.name for path in folder.iterdir()} == drawn - gone
