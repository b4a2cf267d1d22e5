"""The tables of a report as plain values, before any format: text cells and footnotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from harness.core.inert import visible
from harness.scoring import Score
from harness.scoring.by_hand import split_warnings
from harness.scoring.score import accuracy_cell, cut_cell, with_verdicts_by_hand
from harness.scoring.uncertainty import ABSENT, interval_cell, percent, why_narrower, with_interval

MAX_CELL_CHARS = 80
"""Longest name of a run, model or benchmark in a table, in characters; longer ones are clipped."""

MEANINGS = "sampling: same questions, asked again; question: other questions of this kind"
"""The everyday meaning of both intervals, for the titles of tables."""

AT_MOST = (
    "at most: the interval for the same questions may be narrower than this; one sample of each question, or copies "
    "among the samples, do not show how much the answers vary"
)
"""The footnote of an interval that is only an upper bound."""

AS_GRADED = "as graded"
"""Marks the row of the grader's accuracy, where a row with verdicts by hand follows."""

BY_HAND = "with verdicts by hand"
"""Marks the row that counts verdicts by hand; it stands directly below the grader's."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. notes: cells refer to them by [number], from 1; numeric: the columns that are right-aligned.

    Cells may hold foreign text; each format does its own escaping.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numeric: frozenset[int] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        assert {len(row) for row in self.rows} <= {len(self.columns)}, f"{self.title}: a cell for each heading"


def p_cell(value: float) -> str:
    """A p value with three decimals."""
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def samples_cell(score: Score) -> str:
    """Samples of each question that the score covers: `64`; `≤ 64` where another tool's outputs have fewer of some."""
    fewer = score.samples_per_question is None and score.n_samples < score.n_questions * score.rounds
    return f"{'≤ ' if fewer else ''}{score.rounds:,}"


def accuracy_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per (run label, score): the accuracy with the interval for the same questions; the notes hold the
    warnings."""
    notes: list[str] = []
    rows = tuple(
        (
            short(label),
            short(score.benchmark) + note(notes, label, score.benchmark, score.warnings),
            accuracy_cell(score, " %"),
            f"{score.n_questions} × {samples_cell(score)}",
        )
        for label, score in scores
    )
    title = "Accuracy, and in brackets where it lies in 95 of 100 repetitions with the same questions"
    return Table(title, ("run", "benchmark", "accuracy", "questions × samples"), rows, tuple(notes), frozenset((2, 3)))


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
            *(warnings_of_row(score, kind) if with_notes else ()),
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
            remarks = tuple(warnings_of_row(score, BY_HAND)) if with_notes else ()
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


def warnings_of_row(score: Score, kind: str) -> Sequence[str]:
    """The warnings that belong to a row of the score. kind: as above."""
    if not kind:
        return score.warnings
    of_grader, by_hand = split_warnings(score)
    return of_grader if kind == AS_GRADED else by_hand


def sample_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per (run label, score): mean length, and how many samples were cut, unanswered, undecided or missing."""
    rows = []
    for label, score in scores:
        samples = score.n_samples or 1
        tokens = score.mean_completion_tokens
        rows.append(
            (
                short(label),
                short(score.benchmark),
                ABSENT if tokens is None else f"{tokens:.0f}",
                cut_cell(score),
                with_interval(score.accuracy_finished, score.accuracy_finished_intervals),
                percent(score.n_no_answer / samples),
                str(score.n_undecided),
                str(score.n_missing),
            )
        )
    columns = ("run", "benchmark", "mean tokens", "cut %", "accuracy uncut", "no answer %", "undecided", "missing")
    notes = tuple(
        f"{short(label)}, {short(score.benchmark)}: {sentence}"
        for label, score in scores
        if score.anomalies is not None and (sentence := score.anomalies.sentence)
    )
    return Table("Samples", columns, tuple(rows), notes, frozenset(range(2, len(columns))))


def speed_table(scores: Sequence[tuple[str, Score]]) -> Table | None:
    """One row per (run label, score) with streamed replies; None if no reply was streamed."""
    rows = []
    notes: tuple[str, ...] = ()
    for label, score in scores:
        speed = score.speed
        if speed is None:
            continue
        withheld = speed.gap_p50 is None and speed.tokens_per_s is not None
        if withheld:
            notes = (
                "a gap marked * is not shown: it is shorter than four times the lag of the client, or the lag was not "
                "measured",
            )
        rows.append(
            (
                short(label),
                short(score.benchmark),
                _milliseconds(speed.first_token_p50),
                _milliseconds(speed.first_token_p99),
                "*" if withheld else _milliseconds(speed.gap_p50),
                "*" if withheld else _milliseconds(speed.gap_p99),
                ABSENT if speed.tokens_per_s is None else f"{speed.tokens_per_s:.1f}",
                _milliseconds(speed.lag),
            )
        )
    columns = ("run", "benchmark", "first token p50", "p99", "gap p50", "p99", "tokens/s", "lag")
    title = "Speed of one stream, in ms; lag: how long an arrived token waited to be read (99th percentile)"
    return Table(title, columns, tuple(rows), notes, frozenset(range(2, 8))) if rows else None


def endpoint_table(scores: Sequence[tuple[str, Score]]) -> Table | None:
    """One row per endpoint of each score that has several; None if no score has several."""
    rows = [
        (
            short(label),
            short(score.benchmark),
            short(endpoint.endpoint),
            str(endpoint.n_samples),
            percent(endpoint.accuracy),
            interval_cell(endpoint.sampling_interval, at_most=endpoint.at_most),
            percent(endpoint.expected_accuracy),
            percent(endpoint.truncated),
            percent(endpoint.no_answer),
            ABSENT if endpoint.tokens_per_s is None else f"{endpoint.tokens_per_s:.1f}",
            str(endpoint.n_failures),
        )
        for label, score in scores
        for endpoint in score.endpoints
    ]
    if not rows:
        return None
    columns = ("run", "benchmark", "endpoint", "samples", "accuracy", "interval", "expected", "cut %")
    return Table(
        "By endpoint, in %; interval: 95 %, same questions, asked again; expected: the same questions at all "
        "endpoints; tokens/s of one stream",
        (*columns, "no answer %", "tokens/s", "failed requests"),
        tuple(rows),
        numeric=frozenset(range(3, 11)),
    )


def over_k_table(scores: Sequence[tuple[str, Score]], ks: Sequence[int] = ()) -> Table:
    """One row per (run label, score, k): pass@k, pass^k and maj@k, each with its 95 % intervals. ks: only these k."""
    rows = []
    for label, score in scores:
        kinds = (
            (score.pass_at, score.pass_at_intervals),
            (score.pass_hat, score.pass_hat_intervals),
            (score.maj_at, score.maj_at_intervals),
        )
        for k in (k for k in score.pass_at if not ks or k in ks):
            cells = [short(label), short(score.benchmark), str(k)]
            for values, intervals in kinds:
                both = intervals.get(k)
                cells += [
                    percent(values.get(k)),
                    interval_cell(both.sampling_interval, at_most=both.at_most) if both else ABSENT,
                    interval_cell(both.question_interval) if both else ABSENT,
                ]
            rows.append(tuple(cells))
    names = [f"{kind}{what}" for kind in ("pass@k", "pass^k", "maj@k") for what in ("", " sampling", " question")]
    columns = ("run", "benchmark", "k", *names)
    title = (
        "Over k samples, in %: pass@k any right, pass^k all right, maj@k the majority right; with 95 % intervals "
        f"({MEANINGS})"
    )
    return Table(title, columns, tuple(rows), (), frozenset(range(2, len(columns))))


def measure_table(scores: Sequence[tuple[str, Score]]) -> Table | None:
    """One row per (run label, score, measure beside the accuracy); None if no benchmark has such a measure."""
    rows = [
        (
            short(label),
            short(score.benchmark),
            measure.name,
            percent(measure.value),
            interval_cell(measure.intervals.sampling_interval, at_most=measure.intervals.at_most),
            interval_cell(measure.intervals.question_interval),
            f"{measure.n:,}",
        )
        for label, score in scores
        if score.measures is not msgspec.UNSET
        for measure in score.measures
    ]
    title = f"What the authors of a benchmark report beside the accuracy, in %, with 95 % intervals ({MEANINGS})"
    columns = ("run", "benchmark", "measure", "%", "sampling 95 %", "question 95 %", "questions")
    return Table(title, columns, tuple(rows), (), frozenset(range(3, 7))) if rows else None


def budget_table(scores: Sequence[tuple[str, Score]]) -> Table | None:
    """Accuracy by token budget, with longer replies counted as wrong; None if the tokens are unknown."""
    rows = [
        (
            short(label),
            short(score.benchmark),
            str(budget.budget),
            percent(budget.accuracy),
            interval_cell(budget.sampling_interval, at_most=score.sampling_error is None),
            interval_cell(budget.question_interval),
            percent(budget.cut),
        )
        for label, score in scores
        for budget in score.budgets
    ]
    # All replies fit into the last budget of a score: alone, it repeats the accuracy.
    if all(len(score.budgets) < 2 for _, score in scores):
        return None
    columns = ("run", "benchmark", "tokens", "accuracy", "sampling interval", "question interval", "longer %")
    title = (
        f"Accuracy within a budget of completion tokens, longer replies wrong, in %, with 95 % intervals ({MEANINGS})"
    )
    return Table(title, columns, tuple(rows), (), frozenset(range(2, len(columns))))


def note(notes: list[str], label: str, benchmark: str, warnings: Sequence[str], kind: str = "") -> str:
    """Add a note for each of these warnings to `notes`; return their mark, such as ` [3]` or ` [3–5]`.

    Without warnings, nothing is added and the mark is empty. kind: `AS_GRADED` or `BY_HAND`, where both have rows.
    """
    if not warnings:
        return ""
    first = len(notes) + 1
    name = f"{short(label)}, {short(benchmark)}" + (f", {kind}" if kind else "")
    notes += [f"{name}: {warning}." for warning in warnings]
    return f" [{first}]" if len(notes) == first else f" [{first}–{len(notes)}]"


def short(text: str) -> str:
    """A name made inert and cut to `MAX_CELL_CHARS`."""
    return visible(text, MAX_CELL_CHARS)


def _milliseconds(seconds: float | None) -> str:
    """A time in milliseconds, three significant digits below 100 ms."""
    if seconds is None:
        return ABSENT
    return f"{1000 * seconds:.3g}" if seconds < 0.1 else f"{1000 * seconds:.0f}"
