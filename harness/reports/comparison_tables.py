"""Tables of differences: between runs, between runs and published scores, and between questions and their twins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.core.nouns import are, count_noun
from harness.reports.looks import open_points
from harness.reports.published import settings_in_words
from harness.reports.tables import AT_MOST, Table, note, p_cell, short
from harness.scoring.comparison_published import PublishedComparison
from harness.scoring.deciding import Decision, RunPair, decide
from harness.scoring.score import Score
from harness.scoring.stats import Estimate
from harness.scoring.twins import TwinDrop
from harness.scoring.uncertainty import ABSENT, percent, point_cells, why_narrower


def paired_table(
    baselines: Mapping[str, str], comparisons: Sequence[RunPair], uncompared: Sequence[tuple[str, str, str]] = ()
) -> Table:
    """The table of differences, question by question, of each run from the baseline of its benchmark.

    All p values of the table are corrected together (Holm). baselines: benchmark → name of the run that the others are
    compared with. comparisons: their warnings become notes. uncompared: (name of the run, benchmark, why it is not
    compared).
    """
    decisions = decide(comparisons)
    notes = []
    if any(decision.paired.difference.at_most for decision in decisions):
        notes.append(AT_MOST)
    rows: list[tuple[str, ...]] = []
    for decision in decisions:
        label, comparison = decision.run, decision.paired
        remarks = [*decision.warnings, *why_narrower(comparison.difference, imported=decision.imported)]
        remarks += open_points(decision)
        other = baselines.get(comparison.benchmark, decision.baseline) != decision.baseline
        label += f" (with {decision.baseline})" * other
        n_same = comparison.n_questions - comparison.better - comparison.worse
        rows.append(
            (
                short(label),
                short(comparison.benchmark) + note(notes, label, comparison.benchmark, remarks),
                *_difference_cells(comparison.difference, decision),
                f"{comparison.better} / {comparison.worse} / {n_same}",
            )
        )
    rows += _mean_rows(decisions, notes)
    for label, benchmark, why in uncompared:
        rows.append((short(label), short(benchmark) + note(notes, label, benchmark, [why]), *[ABSENT] * 7))
    columns = ("run", "benchmark", "difference", "same questions", "p", "new questions", "p", "detectable")
    title = (
        f"Paired with {_name_of(baselines)}, in points, with 95 % intervals (same questions, asked again; new "
        "questions of this kind); p corrected for all comparisons of this table (Holm); detectable: the smallest true "
        "difference seen in 80 % of repetitions"
    )
    return Table(title, (*columns, "better / worse / same"), tuple(rows), tuple(notes), frozenset(range(2, 9)))


def _difference_cells(difference: Estimate, tests: Decision | TwinDrop) -> tuple[str, ...]:
    """The difference with the interval and p value for the same questions and for new ones, and the smallest that is
    found. tests: has the p values.
    """
    value, same, new = point_cells(difference)
    p_new = ABSENT if tests.p_question is None else p_cell(tests.p_question)
    return value, same, p_cell(tests.p_sampling), new, p_new, percent(tests.detectable)


def _mean_rows(decisions: Sequence[Decision], notes: list[str]) -> Iterator[tuple[str, ...]]:
    """A row for each run that shares several benchmarks with one baseline: the mean of their differences.

    notes: gets the reason where samples are missing and the mean is not compared.
    """
    by_run: dict[tuple[str, str], list[Decision]] = {}
    for decision in decisions:
        by_run.setdefault((decision.run, decision.baseline), []).append(decision)
    for (label, _), of_run in by_run.items():
        if len(of_run) < 2:
            continue
        name, mean = f"mean of {len(of_run)} benchmarks", of_run[0].mean
        if mean is None:
            remark = note(notes, label, name, ["not compared, since samples are missing"])
            yield (short(label), name + remark, *[ABSENT] * 7)
            continue
        value, same, _ = point_cells(mean.compared.difference)
        p, detectable = p_cell(mean.p_sampling), percent(mean.detectable)
        yield (short(label), name, value, same, p, ABSENT, ABSENT, detectable, ABSENT)


def _name_of(baselines: Mapping[str, str]) -> str:
    """The baseline's name; if the benchmarks have several baselines, each with its benchmark."""
    if len(set(baselines.values())) == 1:
        return short(next(iter(baselines.values())))
    each = "; ".join(f"{short(benchmark)}: {short(label)}" for benchmark, label in baselines.items())
    return f"the first run of each benchmark ({each})"


def published_table(comparisons: Sequence[tuple[str, PublishedComparison]], reasons: Iterable[str] = ()) -> Table:
    """The table of runs beside published scores of the same model and benchmark, a row for each comparison.

    The last column names the settings that differ, those that move a score most first. comparisons: (name of the run,
    its comparison with a published score). reasons: why scores stand beside no run, for the notes.
    """
    notes: list[str] = []
    rows = []
    for label, comparison in comparisons:
        reference = comparison.published
        source = reference.source
        by = "reported by the authors" if reference.by == "authors" else "measured by others"
        quoted = "quoted by " if reference.quoted else ""
        by_whom = f"{quoted}{source.named}, {by}" + (f": {source.note}" if source.note else "")
        notes += [by_whom] if by_whom not in notes else []
        rows.append(
            (
                short(label),
                short(reference.benchmark),
                reference.metric,
                percent(comparison.ours),
                f"{reference.printed} [{notes.index(by_whom) + 1}]",
                ABSENT if comparison.p is None else p_cell(comparison.p),
                percent(comparison.detectable),
                comparison.verdict + (f": {comparison.reason}" if comparison.reason else ""),
                "; ".join(settings_in_words(comparison)) or "none known",
            )
        )
    columns = ("run", "benchmark", "metric", "this run", "published", "p", "detectable", "verdict")
    measured = ", in %; detectable: the smallest true difference seen in 80 % of repetitions" if rows else ""
    return Table(
        f"Beside published scores{measured}",
        (*columns, "settings that differ"),
        tuple(rows),
        (*notes, *reasons),
        frozenset(range(3, 7)),
    )


def twin_table(scores: Sequence[tuple[str, Score]]) -> Table | None:
    """The table of how much lower the accuracy is on twins than on their originals; None if there are no twins.

    Twins are the same questions with other numbers. scores: (run label, score).
    """
    rows = []
    notes: list[str] = []
    for label, score in scores:
        drop = score.twins
        if drop is None:
            continue
        remarks = []
        if drop.n_unpaired:
            remarks.append(f"{drop.n_unpaired} questions have no twin or original here and count in neither accuracy")
        if drop.n_missing:
            missing = count_noun(drop.n_missing, "sample")
            remarks.append(f"{missing} {are(drop.n_missing)} missing; intervals and p allow for any result of these")
        rows.append(
            (
                short(label),
                short(score.benchmark) + note(notes, label, score.benchmark, remarks),
                short(drop.original),
                f"{drop.n_originals} : {drop.n_twins}",
                percent(drop.original_accuracy),
                percent(drop.twin_accuracy),
                *_difference_cells(drop.drop, drop),
            )
        )
    columns = ("run", "twins", "originals", "questions", "originals %", "twins %", "drop", "same questions", "p")
    title = (
        "Same skill, other numbers: accuracy of the originals minus that of their twins, in points, with 95 % "
        "intervals (same questions and twins, asked again; other questions of this kind, other numbers); detectable: "
        "the smallest true drop seen in 80 % of repetitions"
    )
    heads = (*columns, "other questions", "p", "detectable")
    return Table(title, heads, tuple(rows), tuple(notes), frozenset(range(3, 12))) if rows else None
