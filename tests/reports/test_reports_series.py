"""A series of models: accuracy against the step, with the scores' own intervals."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from harness.commands.compare import compare
from harness.core.records import ServerFacts
from harness.options.decisions import CompareOptions
from harness.reports.inputs import read_history, read_runs
from harness.reports.series import Step, series_plot, series_table
from harness.reports.settings import (
    by_weight,
    checksum_table,
    failure_table,
    given_table,
    run_table,
    settings_table,
    value_text,
)
from harness.runs.layout import RunFolder, RunLog
from harness.runs.manifest import Manifest, Provenance
from harness.runs.recorded_settings import describe_difference
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.score import Score
from tests.reports.run_folders import write_run
from tests.scoring.graded import graded
from tests.system.command import harness


def scored(*rows: str) -> Score:
    return score_benchmark(*graded(**{f"q{i}": row for i, row in enumerate(rows)}), len(rows[0]))


EARLY, LATE = scored("cwww", "wwww"), scored("cccw", "ccww")
EMPTY = scored("....", "....")


def test_the_plot_has_each_steps_accuracy_and_interval_in_rising_order() -> None:
    plot = series_plot([Step("aime", 1000, LATE), Step("aime", 500, EARLY)])
    assert plot is not None
    assert plot.rows == (
        ("aime", 500, 0.125, *(EARLY.accuracy.sampling or ()), *(EARLY.accuracy.question or ())),
        ("aime", 1000, 0.625, *(LATE.accuracy.sampling or ()), *(LATE.accuracy.question or ())),
    )
    assert "aime from 12.5 to 62.5%" in plot.summary


def test_a_single_step_is_no_series_and_empty_scores_are_omitted() -> None:
    assert series_plot([Step("aime", 500, EARLY), Step("math", 500, LATE)]) is None
    assert series_plot([Step("aime", 500, EARLY), Step("aime", 1000, EMPTY)]) is None


def test_a_step_beside_a_gap_shows_its_interval_as_a_line() -> None:
    steps = [Step("a", 1, EARLY), Step("a", 2, LATE), Step("a", 3, None), Step("a", 4, LATE)]
    for listed, alone in ((steps, 1), (steps[:2], 0), ([*steps[:2], Step("b", 1, LATE)], 1)):
        plot = series_plot(listed)
        assert plot is not None
        assert plot.svg().count('stroke-width="1.8"') == alone


def test_series_keep_the_order_in_which_they_are_named() -> None:
    steps = [Step("z", 2, EARLY), Step("a", 1, EARLY), Step("z", 1, LATE), Step("a", 2, LATE)]
    plot = series_plot(steps)
    assert plot is not None
    assert [row[:2] for row in plot.rows] == [("z", 1), ("z", 2), ("a", 1), ("a", 2)]


def test_steps_that_differ_from_the_base_are_marked_and_missing_ones_noted() -> None:
    steps = [
        Step("a", 1, EARLY),
        Step("a", 2, LATE, differs=True),
        Step("a", 3, LATE, remark="a: 8 samples are missing"),
    ]
    table = series_table(steps, legend="; * differs from step 1")
    assert [row[2] for row in table.rows] == ["12.5", "62.5 *", "62.5 [1]"]
    assert table.notes == ("a: 8 samples are missing",)
    assert table.title.endswith("change: relative to the previous row; * differs from step 1")


def test_the_table_has_the_change_in_each_series_and_explains_at_most() -> None:
    table = series_table([Step("a", 1, EARLY), Step("a", 2, LATE), Step("b", 1, LATE)])
    assert ([row[-1] for row in table.rows], table.notes) == (["–", "+50.0", "–"], ())
    single = series_table([Step("a", 1, scored("c", "w"))])
    assert (single.rows[0][3][:8], single.rows[0][3][-4:]) == ("at most ", " [1]")
    assert [note.partition(":")[0] for note in single.notes] == ["at most"], "and a footnote says what that means"


def test_a_step_without_a_score_has_a_row_that_says_why() -> None:
    shown = series_table(
        [Step("a", 1, EARLY), Step("a", 2, None, remark="the server did not start"), Step("a", 3, LATE)]
    )
    assert [row[2] for row in shown.rows] == ["12.5", "missing [1]", "62.5"]
    assert [row[-1] for row in shown.rows] == ["–", "–", "+50.0"], "the change is that since the last score"


def lines_in(picture: str) -> int:
    """Number of separate lines of a picture's curves."""
    return len(re.findall(r'd="M[^"]*L[^"]*"[^>]* stroke="#0072b2" stroke-width="2"', picture))


def test_the_line_has_a_gap_at_a_step_without_a_score() -> None:
    early, late = [Step("a", 1, EARLY), Step("a", 2, EARLY)], [Step("a", 4, LATE), Step("a", 5, LATE)]
    gap = series_plot([*early, Step("a", 3, None), *late])
    assert gap is not None
    assert [row[1:3] for row in gap.rows] == [(1, 0.125), (2, 0.125), (3, None), (4, 0.625), (5, 0.625)]
    assert gap.csv().splitlines()[3] == "a,3,,,,,"
    assert gap.summary.endswith(" Gaps are steps without a score.")
    assert lines_in(gap.svg()) == 2
    # Wrong twins: steps without a score at the ends, or none at all.
    ends = series_plot([Step("a", 0, None), *early, *late, Step("a", 6, EMPTY)])
    assert ends is not None
    assert [row[1:3] for row in ends.rows] == [(0, None), (1, 0.125), (2, 0.125), (4, 0.625), (5, 0.625), (6, None)]
    assert ends.csv().splitlines()[-1] == "a,6,,,,,", "the last step has its row before a later one has a score"
    assert "Gaps" not in ends.summary
    assert lines_in(ends.svg()) == 1


def test_a_run_that_ended_early_is_no_point_and_the_caption_names_it() -> None:
    stopped, nearly = scored("w...", "...."), scored("c" * 120, "w" * 119 + ".")
    steps = [Step("a", 1, EARLY), Step("a", 2, stopped), Step("a", 3, LATE), Step("a", 4, stopped)]
    plot = series_plot(steps)
    assert plot is not None
    assert [row[1:3] for row in plot.rows] == [(1, 0.125), (2, None), (3, 0.625), (4, None)]
    assert plot.summary == (
        "a from 12.5 to 62.5%. Bands: 95% sampling intervals (same questions, sampled again). "
        "No point where samples are missing: 2 steps."
    )
    assert lines_in(plot.svg()) == 0, "a gap between the two points"
    assert series_plot([*steps[:2], *steps[3:]]) is None, "one point is no curve"
    # Wrong twin: one sample of 240 is missing, and cannot make a jump.
    plot = series_plot([Step("a", 1, EARLY), Step("a", 2, nearly)])
    assert plot is not None
    assert (plot.rows[1][2], "No point" in plot.summary) == (nearly.accuracy.value, False)


def test_the_runs_of_a_sweep_are_reported_in_the_order_of_their_steps(tmp_path: Path) -> None:
    for step in (1000, 200, 30):
        write_run(tmp_path / "sweep" / f"step_{step}+demo", seed=step)
    (tmp_path / "sweep" / "cells").mkdir()
    done = harness(tmp_path, "report", "sweep")
    assert done.code == 0, done.err
    answer = (
        r"no difference seen between step_\d+\+demo and step_30\+demo on demo: .* \(the clearest of 2 comparisons: 2 no"
    )
    assert re.match(answer, " ".join(done.out.split()))
    rows = [line.split()[0] for line in done.out.splitlines()[3:] if line.strip().startswith("step_")]
    assert rows[:3] == ["step_30+demo", "step_200+demo", "step_1000+demo"]
    assert (tmp_path / "sweep" / "report.html").is_file()
    assert "by training step" not in done.out  # No sweep has noted the steps of these runs.
    refused = harness(tmp_path, "score", "sweep")
    assert (refused.code, refused.err) == (
        3,
        f"harness: {tmp_path}/sweep is a folder of runs. Choose one of them, such as {tmp_path}/sweep/step_30+demo.\n",
    )


# -- settings, cost and log of a run -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not set"),
        ("", "not set"),
        (True, "yes"),
        (False, "no"),
        (32768, "32,768"),
        (0.6, "0.6"),
        (0.800000011920929, "0.8"),  # 0.8 of 32 bits, as servers state it
        (0.949999988079071, "0.95"),
        (1e300, "1e+300"),
        (1.0, "1"),
        ([], "none"),
        ({}, "none"),
        (["a", "b"], "a; b"),
        ({"base_url": "http://x/v1", "weight": 1.0}, "address http://x/v1, weight 1"),
        (list(range(20)), "0; 1; 2; 3; 4; 5; 6; 7; 8; 9; 10; 11 and 8 more"),
        ("0c1f88b04e09955a7f8556c2c1dcc9ad8105d79aa4c90d20eb8f22ca8344dd6e", "0c1f88b04e09"),
        ("seal-1:0c1f88b04e09955a7f8556c2c1dcc9ad8105d79aa4c90d20eb8f22ca8344dd6e", "seal-1:0c1f88b04e09"),
        ("see: the notes", "see: the notes"),
        ("\x1b[2J", r"\x1b[2J"),
    ],
)
def test_a_value_is_said_as_a_person_says_it(value: object, words: str) -> None:
    assert value_text(value) == words


def test_settings_that_move_a_score_most_come_first() -> None:
    settings = {"top_p": 1, "zeta": 1, "temperature": 1, "chat_template_kwargs.enable_thinking": 1, "max_tokens": 1}
    ranked = [name for name, _ in sorted(settings.items(), key=by_weight)]
    assert ranked == ["max_tokens", "chat_template_kwargs.enable_thinking", "temperature", "top_p", "zeta"]


def test_where_a_sampling_value_or_a_given_option_comes_from_is_said(tmp_path: Path) -> None:
    recorded: dict[str, object] = {
        "sampling_from": {"temperature": "preset r1"},
        "spelt_by": {"seed_field": "options"},
        "seed_field": "seed",
        "chosen_by": {"samples": "card"},
        "canary": False,
        "questions_made": {"rows_digest": "0c1f"},
    }
    folder = write_run(tmp_path / "run", settings=recorded)
    manifest = Manifest.load(folder)
    demo = msgspec.structs.replace(manifest.benchmarks["demo"], options={"canary": False})
    msgspec.structs.replace(manifest, benchmarks={"demo": demo}).save(folder)
    (run,) = read_runs([folder])
    rows = {name: (value, who) for name, value, who in given_table(run, "demo").rows}
    assert rows["temperature"][1] == "preset r1"
    assert rows["canary"] == ("no", "options")
    assert rows["seed_field"] == ("seed", "server")
    assert rows["samples"][1] == ""
    assert not rows.keys() & {"sampling_from", "spelt_by", "chosen_by", "questions_made.rows_digest"}
    (checksum,) = checksum_table([run], "demo").rows
    assert checksum == ("questions_made.rows_digest", "0c1f")


def _note_server(folder: RunFolder, url: str, **host: str) -> None:
    """Note in the run's manifest which server made its samples. host: facts of its host."""
    manifest = Manifest.load(folder)
    provenance = Provenance().after("2026-01-01T00:00:00+00:00", {url: ServerFacts(host=host)}, [])
    msgspec.structs.replace(manifest, provenance=provenance).save(folder)


def test_settings_that_a_comparison_lists_are_starred_and_explained(tmp_path: Path) -> None:
    def run(name: str, port: int, digest: str) -> RunFolder:
        endpoints = [{"base_url": f"http://127.0.0.1:{port}/v1"}]
        made = {"rows_digest": digest}
        settings = {"endpoints": endpoints, "order": "longest", "questions_made": made}
        return write_run(tmp_path / name, settings=settings)

    folders = [run("base", 8001, "a"), run("other", 8002, "b"), run("twin", 8001, "a")]
    runs = read_runs(folders)
    (beside,) = compare(folders[:2], CompareOptions())
    assert [change.field for change in beside.settings] == ["endpoints"]
    table = settings_table(runs[:2], "demo")
    assert [row[0] for row in table.rows if row[0].endswith(" *")] == ["endpoints *"]
    assert (table.title, table.notes) == ("Settings of demo (* differs between runs)", ())
    assert checksum_table(runs[:2], "demo").rows == (("questions_made.rows_digest *", "a", "b"),)
    for folder, port in ((folders[0], 8001), (folders[1], 8002)):
        _note_server(folder, f"http://127.0.0.1:{port}/v1", launcher="command")
    (beside,) = compare(folders[:2], CompareOptions())
    assert not beside.settings, "the harness started both servers at free ports"
    assert "endpoints *" not in [row[0] for row in settings_table(read_runs(folders[:2]), "demo").rows]
    _note_server(folders[1], "http://127.0.0.1:8002/v1")
    (beside,) = compare(folders[:2], CompareOptions())
    (change,) = beside.settings
    for_people = "endpoints: address http://127.0.0.1:8001/v1 → address http://127.0.0.1:8002/v1"
    assert describe_difference(change) == for_people, "one server is the user's"
    equal = settings_table([runs[0], runs[2]], "demo")
    assert (equal.title, [row for row in equal.rows if "*" in row[0]]) == ("Settings of demo", [])


def test_what_no_run_has_set_is_left_out(tmp_path: Path) -> None:
    runs = read_runs([write_run(tmp_path / "run", settings={"budget_usd": None, "order": "longest", "missing": {}})])
    names = [row[0] for row in settings_table(runs, "demo").rows]
    assert "order" in names
    assert not {"budget_usd", "missing"} & set(names)


def test_a_chosen_set_of_questions_and_one_without_an_end_are_said(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", n_failures=4)
    with RunLog(folder) as log:
        log.write("session_started", missing=1, done=0)
    (run,) = read_runs([folder])
    rows = {row[0]: row[1] for row in run_table([run]).rows}
    assert rows["sessions"] == "2, 1 without an end"
    assert rows["failed requests"] == "4"
    assert rows["retried requests"] == "4"
    assert rows["last reply (UTC)"].startswith("2026-01-01 1")
    failures = failure_table([run])
    assert failures is not None
    assert sorted((row[2], row[3]) for row in failures.rows) == [("connect", "2"), ("status 503", "2")]


def test_a_damaged_or_missing_log_costs_its_lines_only(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", n_failures=3)
    before = read_history(folder)
    with folder.log.open("ab") as log:
        log.write(b'{"event":"session_started"\n\xff\xfe"request_failed"\n"session_' + b"x" * 100_000 + b"\n")
    assert read_history(folder) == before
    folder.log.unlink()
    assert read_history(folder).sessions == 0


def test_many_causes_of_failure_are_bounded(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    with RunLog(folder) as log:
        for number in range(500):
            log.write("request_failed", endpoint=f"http://{number}", kind="connect", status=None, message="x" * 5000)
    found = read_history(folder).failures
    assert len(found) == 200
    assert max(len(one.message) for one in found) <= 201
