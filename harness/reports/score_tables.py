"""The tables of accuracies that open a report, and the row with verdicts by hand below the grader's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.core.inert import safe_name
from harness.reports.tables import (
    ABSENT,
    AS_GRADED,
    BY_HAND,
    MEANINGS,
    Table,
    accuracy_cell,
    interval_cell,
    note,
    percent,
    samples_cell,
    short,
    with_interval,
)
from harness.scoring import Score
from harness.scoring.by_hand import split_warnings, with_verdicts_by_hand
from harness.scoring.intervals import why_narrower

if TYPE_CHECKING:
    from harness.reports.scored import ScoredRun

NO_SCORE = "it is not scored yet; `harness score` does that"


def summary_table(runs: Sequence[ScoredRun]) -> Table:
    """One row per run, benchmarks as columns; the notes hold the warnings."""
    names = list(dict.fromkeys(name for run in runs for name in run.benchmarks))
    notes: list[str] = []
    rows = []
    # The model's name is shown unless every folder is named after it.
    named_by_model = all(run.label == safe_name(run.manifest.model) for run in runs)
    heads = ("run",) if named_by_model else ("run", "model")
    for run in runs:
        scores = {name: run.benchmarks[name].score for name in names if name in run.benchmarks}
        by_hand = any(score is not None and with_verdicts_by_hand(score) for score in scores.values())
        models = [short(run.manifest.model)][: len(heads) - 1]
        for kind in (AS_GRADED, BY_HAND) if by_hand else ("",):
            cells = [f"{short(run.label)}, {kind}" if kind else short(run.label), *models]
            for name in names:
                if name not in scores:
                    cells.append(ABSENT)
                elif (score := scores[name]) is None:
                    mark = "" if kind == BY_HAND else note(notes, run.label, name, (NO_SCORE,))
                    cells.append("not scored" + mark)
                else:
                    cells.append(_summary_cell(notes, run, score, name, kind))
            rows.append(tuple(cells))
    return Table(
        "Accuracy in %, with its 95 % interval (same questions, asked again)",
        (*heads, *map(short, names)),
        tuple(rows),
        tuple(notes),
        frozenset(range(len(heads), len(heads) + len(names))),
    )


def _summary_cell(notes: list[str], run: ScoredRun, score: Score, name: str, kind: str) -> str:
    """The accuracy of a run on the benchmark `name`, with the mark of its notes.

    notes: gets the warnings. kind: of the row: `AS_GRADED`, `BY_HAND`, or empty where the run has no verdicts by hand.
    """
    by_hand = with_verdicts_by_hand(score)
    if kind == BY_HAND and by_hand is None:
        return ABSENT
    warnings = _warnings_of_row(score, kind)
    if kind != BY_HAND:
        return accuracy_cell(score) + note(notes, run.label, name, (*run.remarks, *warnings), kind)
    assert by_hand is not None
    return with_interval(*by_hand) + note(notes, run.label, name, warnings, kind)


def _warnings_of_row(score: Score, kind: str) -> Sequence[str]:
    """The warnings that belong to a row of the score. kind: as above."""
    if not kind:
        return score.warnings
    of_grader, by_hand = split_warnings(score)
    return of_grader if kind == AS_GRADED else by_hand


def score_table(scores: Sequence[tuple[str, Score]], *, with_notes: bool = True) -> Table:
    """One row per (run label, score), with both 95 % intervals under their names; the notes hold the warnings.

    A second row directly below has the accuracy with verdicts by hand, where these differ from the grader's. A note
    says why where the question interval is the narrower one. size: questions × samples of each. If answers were also
    taken from the reasoning, these have a column of their own.
    """
    notes: list[str] = []
    rows = []
    searched = any(score.accuracy_from_reasoning is not None for _, score in scores)
    for label, score in scores:
        most = max(score.pass_at, default=None)
        at_most = score.sampling_error is None
        by_hand = with_verdicts_by_hand(score)
        kind = AS_GRADED if by_hand else ""
        remarks = (
            *(_warnings_of_row(score, kind) if with_notes else ()),
            *why_narrower(score.sampling_interval, score.question_interval, at_most=at_most),
        )
        rows.append(
            (
                short(label),
                _row_name(score, kind) + note(notes, label, score.benchmark, remarks, kind),
                percent(score.accuracy),
                *(
                    [with_interval(score.accuracy_from_reasoning, score.accuracy_from_reasoning_intervals)]
                    if searched
                    else []
                ),
                interval_cell(score.sampling_interval, at_most=at_most),
                interval_cell(score.question_interval),
                f"{score.n_questions} × {samples_cell(score)}",
                ABSENT if most is None else f"{percent(score.pass_at[most])} @{most}",
                ABSENT if most is None else f"{percent(score.maj_at[most])} @{most}",
            )
        )
        if by_hand is not None:
            intervals = by_hand.intervals
            remarks = tuple(_warnings_of_row(score, BY_HAND)) if with_notes else ()
            rows.append(
                (
                    short(label),
                    _row_name(score, BY_HAND) + note(notes, label, score.benchmark, remarks, BY_HAND),
                    percent(by_hand.accuracy),
                    *([ABSENT] if searched else []),
                    interval_cell(intervals.sampling_interval, at_most=intervals.at_most) if intervals else ABSENT,
                    interval_cell(intervals.question_interval) if intervals else ABSENT,
                    f"{score.n_questions} × {samples_cell(score)}",
                    ABSENT,
                    ABSENT,
                )
            )
    accuracies = ("accuracy", "with answers from reasoning") if searched else ("accuracy",)
    columns = ("run", "benchmark", *accuracies, "sampling interval", "question interval", "size", "pass@k", "maj@k")
    title = f"Scores in %, with 95 % intervals ({MEANINGS})"
    return Table(title, columns, tuple(rows), tuple(notes), frozenset(range(2, len(columns))))


def _row_name(score: Score, kind: str) -> str:
    """The benchmark of a score, with the kind of the row; see `AS_GRADED` and `BY_HAND`."""
    return f"{short(score.benchmark)}, {kind}" if kind else short(score.benchmark)
