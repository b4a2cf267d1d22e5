"""A series of models: accuracy against the step, with the scores' own intervals."""

from __future__ import annotations

import re
from pathlib import Path

from harness.reports.series import Step, series_plot, series_table
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.score import Score
from tests.reports.run_folders import write_run
from tests.scoring.graded import graded
from tests.system.command import harness


def scored(*rows: str) -> Score:
    return score_benchmark(*graded(**{f"q{i}": row for i, row in enumerate(rows)}), len(rows[0]))


EARLY, LATE = scored("cwww", "wwww"), scored("cccw", "ccww")
EMPTY = scored("....", "....")


def test_the_plot_holds_each_steps_accuracy_with_its_sampling_interval_steps_rising() -> None:
    plot = series_plot([Step("aime", 1000, LATE), Step("aime", 500, EARLY)])
    assert plot is not None
    assert plot.rows == (
        ("aime", 500, 0.125, *(EARLY.accuracy.sampling or ()), *(EARLY.accuracy.question or ())),
        ("aime", 1000, 0.625, *(LATE.accuracy.sampling or ()), *(LATE.accuracy.question or ())),
    )
    assert "aime from 12.5 to 62.5%" in plot.summary


def test_a_single_step_is_no_series_and_a_score_without_a_sample_is_left_out() -> None:
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


def test_a_step_that_differs_from_the_base_is_marked_and_one_with_missing_samples_has_a_note() -> None:
    steps = [
        Step("a", 1, EARLY),
        Step("a", 2, LATE, differs=True),
        Step("a", 3, LATE, remark="a: 8 samples are missing"),
    ]
    table = series_table(steps, legend="; * differs from step 1")
    assert [row[2] for row in table.rows] == ["12.5", "62.5 *", "62.5 [1]"]
    assert table.notes == ("a: 8 samples are missing",)
    assert table.title.endswith("change: relative to the previous row; * differs from step 1")


def test_the_table_says_the_change_within_each_series_and_which_interval_is_at_most_so_wide() -> None:
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


def test_a_score_of_a_run_that_ended_early_is_no_point_and_the_caption_names_it() -> None:
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
    rows = [line.split()[0] for line in done.out.splitlines() if line.strip().startswith("step_")]
    assert rows[:3] == ["step_30+demo", "step_200+demo", "step_1000+demo"]
    assert (tmp_path / "sweep" / "report.html").is_file()
    assert "by training step" not in done.out  # No sweep has noted the steps of these runs.
    refused = harness(tmp_path, "score", "sweep")
    assert (refused.code, refused.err) == (
        3,
        f"harness: {tmp_path}/sweep is a folder of runs. Choose one of them, such as {tmp_path}/sweep/step_30+demo.\n",
    )
