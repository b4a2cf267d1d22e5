"""The table that opens a report, a row for each run, and the tables of a score by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.core.inert import safe_name
from harness.reports.tables import MEANINGS, Table, note, short
from harness.scoring.score import Score, accuracy_cell
from harness.scoring.uncertainty import ABSENT, cells

if TYPE_CHECKING:
    from harness.reports.scored import ScoredRun

NO_SCORE = "it is not scored yet; `harness score` does that"
"""The footnote of a benchmark without a score."""


def summary_table(runs: Sequence[ScoredRun]) -> Table:
    """One row per run, benchmarks as columns; the notes hold the warnings. The cells of a sweep that differ in the
    benchmark only are one row.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.benchmarks))
    notes: list[str] = []
    rows = []
    # The model's name is shown unless every folder is named after it.
    named_by_model = all(run.label == safe_name(run.manifest.model) for run in runs)
    heads = ("run",) if named_by_model else ("run", "model")
    by_row: dict[tuple[str, str], dict[str, ScoredRun]] = {}
    for run in runs:
        for name in run.benchmarks or [""]:
            by_row.setdefault((run.row(name), run.manifest.model), {})[name] = run
    for (label, model), by_benchmark in by_row.items():
        row = [short(label), short(model)][: len(heads)]
        for name in names:
            if name not in by_benchmark:
                row.append(ABSENT)
            elif (score := by_benchmark[name].benchmarks[name].score) is None:
                row.append("not scored" + note(notes, label, name, (NO_SCORE,)))
            else:
                remarks = (*by_benchmark[name].remarks, *score.sentences)
                row.append(accuracy_cell(score) + note(notes, label, name, remarks))
        rows.append(tuple(row))
    return Table(
        "Accuracy in %, with its 95 % interval (same questions, asked again)",
        (*heads, *map(short, names)),
        tuple(rows),
        tuple(notes),
        frozenset(range(len(heads), len(heads) + len(names))),
    )


def breakdown_table(label: str, score: Score, by: str) -> Table:
    """The score for each value of the metadata field `by`, such as a level or a subject.

    questions: `1 of 4` in a group of four of which only one question has a sample; the accuracy is that of this one.
    undecided: only where the grader left samples undecided.
    """
    groups = score.breakdowns[by].items()
    undecided = any(group.n_undecided for _, group in groups)
    rows = tuple(
        (
            short(value),
            f"{group.n_answered} of " * (group.n_answered < group.n_questions) + str(group.n_questions),
            *cells(group.accuracy),
            *((str(group.n_undecided),) if undecided else ()),
        )
        for value, group in groups
    )
    columns = (
        *(short(by), "questions", "accuracy", "sampling interval", "question interval"),
        *(("undecided",) if undecided else ()),
    )
    title = f"{short(label)}, {short(score.benchmark)} by {short(by)}, in %, with 95 % intervals ({MEANINGS})"
    return Table(title, columns, rows, (), frozenset(range(1, len(columns))))
