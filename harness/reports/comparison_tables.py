"""Tables of differences: runs beside each other, and beside published scores."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reports.settings import by_weight, in_words
from harness.reports.tables import ABSENT, Table, percent, short
from harness.scoring import PairedComparison, PublishedComparison
from harness.scoring.differences import holm, smallest_difference
from harness.scoring.intervals import Interval


def paired_table(baseline: str, comparisons: Sequence[tuple[str, PairedComparison]]) -> Table:
    """Every other run minus the baseline, question by question; p values by Holm over all of the table."""
    found = [comparison for _, comparison in comparisons]
    adjusted = holm([p for one in found for p in (one.p_sampling, one.p_question) if p is not None])
    p_values = iter(adjusted)
    notes = []
    if any(one.at_most for one in found):
        notes.append("at most: one sample of every question does not show the sampling error")
    rows = []
    for label, one in comparisons:
        mark = ""
        if one.n_missing:
            notes.append(
                f"{short(label)}, {short(one.benchmark)}: {one.n_missing} samples of one of the runs are missing; "
                "intervals and p hold whatever they would be"
            )
            mark = f" [{len(notes)}]"
        rows.append(
            (
                short(label),
                short(one.benchmark) + mark,
                _signed(one.difference),
                ("at most " if one.at_most else "") + _signed_interval(one.sampling_interval),
                _p(next(p_values)),
                _signed_interval(one.question_interval),
                ABSENT if one.p_question is None else _p(next(p_values)),
                percent(smallest_difference(one.sampling_error, len(adjusted))),
                f"{one.better} / {one.worse} / {one.n_questions - one.better - one.worse}",
            )
        )
    columns = ("run", "benchmark", "difference", "these questions", "p", "such questions", "p", "detectable")
    title = f"Paired with {short(baseline)}, in points, with 95 % intervals; p by Holm over this table"
    return Table(title, (*columns, "better / worse / same"), tuple(rows), tuple(notes), frozenset(range(2, 9)))


def published_table(comparisons: Sequence[tuple[str, PublishedComparison]]) -> Table:
    """Runs beside published scores of the same model and benchmark, with the settings that differ, what moves a score
    most first."""
    notes: list[str] = []
    rows = []
    for label, found in comparisons:
        reference = found.published
        differing = "; ".join(
            f"{short(name)}: {in_words(ours)} here, {in_words(theirs)} there"
            for name, (ours, theirs) in sorted(found.differing.items(), key=by_weight)
        )
        source = reference.source
        by = "reported by the authors" if source.by == "authors" else "measured by others"
        note = f"{source.named}, {by}" + (f": {source.note}" if source.note else "")
        if note not in notes:
            notes.append(note)
        rows.append(
            (
                short(label),
                short(reference.benchmark),
                reference.metric,
                percent(found.ours),
                f"{percent(reference.value)} [{notes.index(note) + 1}]",
                ABSENT if found.p is None else _p(found.p),
                percent(found.detectable),
                found.verdict + (f": {found.reason}" if found.reason else ""),
                differing or "none known",
            )
        )
    columns = ("run", "benchmark", "metric", "this run", "published", "p", "detectable", "verdict")
    return Table(
        "Beside published scores, in %; detectable: the smallest true difference seen in 80 % of repetitions",
        (*columns, "settings that differ"),
        tuple(rows),
        tuple(notes),
        frozenset(range(3, 7)),
    )


def _signed(value: float) -> str:
    return f"{100 * value:+.1f}"


def _signed_interval(interval: Interval | None) -> str:
    return ABSENT if interval is None else f"{_signed(interval.low)} to {_signed(interval.high)}"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"
