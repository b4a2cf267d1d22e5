"""The table that opens a report, a row for each run, and the tables of a score by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from harness.core.inert import safe_name
from harness.reports.tables import AS_GRADED, BY_HAND, MEANINGS, Table, note, short, warnings_of_row
from harness.scoring import GroupScore, Score
from harness.scoring.score import accuracy_cell, with_verdicts_by_hand
from harness.scoring.uncertainty import ABSENT, interval_cell, percent, with_interval

if TYPE_CHECKING:
    from harness.reports.scored import ScoredRun

NO_SCORE = "it is not scored yet; `harness score` does that"

_UNANSWERED = "1 of 4 questions: only one of the four has a sample, and the accuracy is that of this one"
"""The footnote of a breakdown in which some questions have no sample."""

_WITH_VERDICTS_BY_HAND = (
    "accuracy and intervals count the grader's verdicts; with verdicts by hand: the accuracy if the verdicts given by "
    "hand count in place of the grader's, and the samples that are undecided then; it is not the audited accuracy"
)
"""The footnote of a breakdown with verdicts by hand."""


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
    warnings = warnings_of_row(score, kind)
    if kind != BY_HAND:
        return accuracy_cell(score) + note(notes, run.label, name, (*run.remarks, *warnings), kind)
    assert by_hand is not None
    return with_interval(*by_hand) + note(notes, run.label, name, warnings, kind)


def breakdown_table(label: str, score: Score, by: str) -> Table:
    """The score for each value of the metadata field `by`, such as a level or a subject.

    questions: `1 of 4` in a group of which only one question has a sample; a note says what the accuracy covers.
    undecided, with verdicts by hand: only where the grader left samples undecided, or where they differ.
    """
    groups = score.breakdowns[by].items()
    undecided = any(group.n_undecided is not msgspec.UNSET for _, group in groups)
    by_hand = any(group.accuracy_overridden is not msgspec.UNSET for _, group in groups)
    rows = tuple(
        (
            short(value),
            _questions_cell(group),
            percent(group.accuracy),
            interval_cell(group.sampling_interval, at_most=group.sampling_error is None),
            interval_cell(group.question_interval),
            *((str(group.n_undecided or 0),) if undecided else ()),
            *(_by_hand_cells(group) if by_hand else ()),
        )
        for value, group in groups
    )
    columns = (
        *(short(by), "questions", "accuracy", "sampling interval", "question interval"),
        *(("undecided",) if undecided else ()),
        *((BY_HAND, "still undecided") if by_hand else ()),
    )
    title = f"{short(label)}, {short(score.benchmark)} by {short(by)}, in %, with 95 % intervals ({MEANINGS})"
    unanswered = (_UNANSWERED,) if any(group.n_answered is not msgspec.UNSET for _, group in groups) else ()
    notes = (*unanswered, *((_WITH_VERDICTS_BY_HAND,) if by_hand else ()))
    return Table(title, columns, rows, notes, frozenset(range(1, len(columns))))


def _by_hand_cells(group: GroupScore) -> tuple[str, str]:
    """The accuracy of a group and its number of undecided samples, if the verdicts by hand count."""
    accuracy, undecided = group.accuracy_overridden, group.n_undecided_overridden
    unset = undecided is msgspec.UNSET
    return percent(None if accuracy is msgspec.UNSET else accuracy), ABSENT if unset else str(undecided)


def _questions_cell(group: GroupScore) -> str:
    """The number of questions of a group; `1 of 4` if only one of four has a sample."""
    answered = "" if group.n_answered is msgspec.UNSET else f"{group.n_answered} of "
    return f"{answered}{group.n_questions}"
