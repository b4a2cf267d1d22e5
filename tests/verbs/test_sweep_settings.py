"""A setting that changes in the middle of a training: no server is started for samples made with another one, scores
stay, and no step is compared across the change.

For: harness.asking.prepare, harness.generation.settings, harness.verbs.sweep.running,
harness.verbs.sweep.results, harness.reports.trainings, harness.runs.recorded_settings.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.asking import prepare
from harness.asking.watching import Watcher
from harness.cli import sweep_plan
from harness.core.errors import StoreError
from harness.reports.plots import draw
from harness.reports.trainings import settings_apart
from harness.runs import setting_names
from harness.runs.manifest import BenchmarkRecord, Plan
from harness.runs.recorded_settings import differences_in_curve
from harness.testing import FakeServer, Request, completion, models
from harness.verbs.report import report
from harness.verbs.sweep import cells, record, running, table
from harness.verbs.sweep import whole as sweeps
from harness.verbs.sweep.results import results
from harness.verbs.sweep.scorer import CellScore
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
    return cells.plan_of("s.yaml", {}, {})


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

    with FakeServer(answer) as server:
        sweeps.carry_out(write(tmp_path, server=server.base_url), Watcher(), score=no_scores)
    planned = write(tmp_path, start=True)
    for group in planned.groups:
        for cell in group.cells:
            shutil.copytree(planned.out / cell.name.replace("+x+", "+"), planned.folder(cell))
            write_record(planned, cell)
    return tmp_path


@pytest.mark.parametrize("name", [*REFUSED, *FREE])
def test_settings_are_compared_before_a_server_by_what_no_server_decides(trained: Path, name: str) -> None:
    changed = {name: (REFUSED | FREE)[name]} if name != "canary" else {}
    asked = prepare.questions_of(write(trained, **changed).cells[0].options)
    if name in FREE:
        prepare.refuse_other_settings(asked)
        return
    with pytest.raises(StoreError) as caught:
        prepare.refuse_other_settings(asked)
    assert caught.value.other_settings
    assert name != "max_tokens" or "sampling.max_tokens: 32 → 100" in caught.value.other_settings


def test_other_questions_are_named_by_their_digest_and_a_folder_without_samples_is_free(trained: Path) -> None:
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
    monkeypatch.setattr(running.servers, "launched", lambda *_, **__: pytest.fail("a server is started"))
    planned = write(trained, start=True, max_tokens=100)
    capsys.readouterr()
    assert sweep_plan.show(planned) == 2
    shown = capsys.readouterr()
    assert "2 cells on 2 servers, 0 of them done; 0 samples to come" in shown.out
    reasons = [
        "its samples are of other settings: sampling.max_tokens: 32 → 100. For new scores, delete "
        f"{planned.folder(cell)}, or give the benchmark another `name`"
        for cell in planned.cells
    ]
    assert all(reason in shown.err for reason in reasons)

    def stamps() -> list[str]:
        return [found.done for cell in planned.cells if (found := record.read(planned.out, cell.name)) is not None]

    former = stamps()
    ended = sweeps.carry_out(planned, Watcher(), score=no_scores)
    assert [result.reason for result in ended.lost] == reasons
    assert stamps() == former
    # Wrong twin: with the former settings nothing is missing.
    back = sweeps.carry_out(write(trained, start=True), Watcher(), score=no_scores)
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
    for path in ("concurrency", "deadlines.idle", "neutral", "questions", *setting_names.CHECKSUMS):
        one, other = (BenchmarkRecord(identity={}, plan=Plan(samples=4), settings={path: value}) for value in (1, 2))
        assert path in ("neutral", "questions") or not differences_in_curve(one, other), path


def test_a_step_of_other_settings_is_named_wherever_a_curve_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
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
    (shown,) = (one for one in table.tables(swept) if one.title.startswith("demo: accuracy against step"))
    assert "; a row with other settings is passed over" in shown.title
    assert list(shown.notes) == [f"ck-step_{step}+demo: {words}" for step in (10, 30)]
    assert "differs" not in shown.title, "the base has other settings than the last step: nothing is compared"
    assert [row[-1] == "–" for row in shown.rows] == [True, True, True, False, False]
    demo, means = table.plots(swept)
    assert all("No point, since settings differ: steps 10, 30." in plot.summary for plot in (demo, means))
    # A report knows no file: the settings are those of the last step.
    page = report([plan.out])
    (table_of,) = (one for one in page.tables if one.title.startswith("demo: accuracy against step"))
    assert [words in note for note in table_of.notes].count(True) == 2
    (curve,) = (plot for plot in page.plots() if plot.name == "series-demo")
    assert curve.rows == demo.rows
    # A curve of one step is none: its former files are removed, and those of others stay.
    folder = plan.out / "plots"
    monkeypatch.setattr(draw, "svg", lambda *_, **_titled: "")
    monkeypatch.setattr(draw, "png", lambda *_: b"")
    table.write(swept)
    (folder / "series-mine.csv").write_text("of another program")
    assert len([*folder.iterdir()]) == 7
    for step in (20, 40):
        shutil.rmtree(plan.out / f"ck-step_{step}+demo")
    table.write(results(plan))
    assert [path.name for path in folder.iterdir()] == ["series-mine.csv"]
