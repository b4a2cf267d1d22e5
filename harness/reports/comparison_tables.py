"""Tables of differences: between runs, between runs and published scores, and between questions and their twins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.benchmarks.prompts import beginning
from harness.core.nouns import are, count_noun, in_points
from harness.core.records import Question
from harness.reports.differences_by_hand import interval_by_hand, mean_by_hand
from harness.reports.published import settings_in_words
from harness.reports.tables import AS_GRADED, AT_MOST, BY_HAND, Table, note, p_cell, short
from harness.reports.unsettled import open_points
from harness.scoring import PairedComparison, PublishedComparison, Score
from harness.scoring.deciding import Decision, RunPair, decide
from harness.scoring.mean_difference import MeanComparison
from harness.scoring.moves import Move, largest
from harness.scoring.uncertainty import ABSENT, percent, points_interval, why_narrower

MAX_NAME_CHARS = 60
"""A question's text is cut to this length where it stands for an id."""

MAX_MOVED = 15
"""Largest number of questions that a table of two runs lists as fallen, and as many as risen."""


_GRADERS_COUNT = "the grader's verdicts count here"
"""The footnote of a mean of benchmarks, for which `harness compare` has no line of samples."""

COUNTS_GRADER = (
    f"{_GRADERS_COUNT}; `harness compare` (option samples) has the difference with verdicts by hand and what audits say"
)
"""The footnote of a table between runs of which one has verdicts by hand, where it has no figures with them."""


def paired_table(
    baselines: Mapping[str, str],
    comparisons: Sequence[RunPair],
    by_hand: Sequence[PairedComparison | None],
    uncompared: Sequence[tuple[str, str, str]] = (),
) -> Table:
    """The table of differences, question by question, of each run from the baseline of its benchmark.

    All p values of the table are corrected together (Holm). baselines: benchmark → name of the run that the others are
    compared with. comparisons: their warnings become notes. by_hand: of each comparison, the one with verdicts by hand
    (`paired_by_hand`), which has a row of its own below. uncompared: (name of the run, benchmark, why it is not
    compared).
    """
    decisions = decide(comparisons)
    notes = []
    if any(decision.paired.at_most for decision in decisions):
        notes.append(AT_MOST)
    rows: list[tuple[str, ...]] = []
    for decision, corrected in zip(decisions, by_hand, strict=True):
        label, comparison = decision.run, decision.paired
        kind = AS_GRADED if corrected else ""
        remarks = [
            *decision.warnings,
            *why_narrower(
                comparison.sampling_interval,
                comparison.question_interval,
                at_most=comparison.at_most,
                imported=decision.imported,
            ),
        ]
        remarks += open_points(decision)
        rows.append(
            (
                short(label),
                _row_name(comparison.benchmark, kind) + note(notes, label, comparison.benchmark, remarks, kind),
                in_points(comparison.difference),
                points_interval(comparison.sampling_interval, at_most=comparison.at_most),
                p_cell(decision.p_sampling),
                points_interval(comparison.question_interval),
                ABSENT if decision.p_question is None else p_cell(decision.p_question),
                percent(decision.detectable),
                _better_worse_same(comparison),
            )
        )
        if corrected is not None:
            rows.append(_row_by_hand(label, comparison.benchmark, corrected))
    rows += _mean_rows(decisions, by_hand, notes)
    for label, benchmark, why in uncompared:
        rows.append((short(label), short(benchmark) + note(notes, label, benchmark, [why]), *[ABSENT] * 7))
    columns = ("run", "benchmark", "difference", "same questions", "p", "new questions", "p", "detectable")
    title = (
        f"Paired with {_name_of(baselines)}, in points, with 95 % intervals (same questions, asked again; new "
        "questions of this kind); p corrected for all comparisons of this table (Holm); detectable: the smallest true "
        "difference seen in 80 % of repetitions"
    )
    return Table(title, (*columns, "better / worse / same"), tuple(rows), tuple(notes), frozenset(range(2, 9)))


def _row_name(benchmark: str, kind: str) -> str:
    """The benchmark of a row, with the kind of the row: `AS_GRADED`, `BY_HAND`, or empty without verdicts by hand."""
    return f"{short(benchmark)}, {kind}" if kind else short(benchmark)


def _better_worse_same(paired: PairedComparison) -> str:
    return f"{paired.better} / {paired.worse} / {paired.n_questions - paired.better - paired.worse}"


def _row_by_hand(label: str, benchmark: str, paired: PairedComparison | MeanComparison) -> tuple[str, ...]:
    """The row of a difference with verdicts by hand. The p values and the smallest difference are the grader's only."""
    of_questions = None if isinstance(paired, MeanComparison) else paired
    return (
        short(label),
        _row_name(benchmark, BY_HAND),
        in_points(paired.difference),
        interval_by_hand(paired),
        ABSENT,
        ABSENT if of_questions is None else points_interval(of_questions.question_interval),
        ABSENT,
        ABSENT,
        ABSENT if of_questions is None else _better_worse_same(of_questions),
    )


def _mean_rows(
    decisions: Sequence[Decision], by_hand: Sequence[PairedComparison | None], notes: list[str]
) -> Iterator[tuple[str, ...]]:
    """A row for each run that shares several benchmarks with one baseline: the mean of their differences; and a second
    row with verdicts by hand, if one of these benchmarks has them.

    by_hand: as in `paired_table`. notes: gets the reason where samples are missing and the mean is not compared.
    """
    by_run: dict[tuple[str, str], list[tuple[Decision, PairedComparison | None]]] = {}
    for decision, corrected in zip(decisions, by_hand, strict=True):
        by_run.setdefault((decision.run, decision.baseline), []).append((decision, corrected))
    for (label, _), of_run in by_run.items():
        if len(of_run) < 2:
            continue
        name, mean = f"mean of {len(of_run)} benchmarks", of_run[0][0].mean
        corrected_mean = mean_by_hand([(decision.paired, corrected) for decision, corrected in of_run])
        if mean is None:
            remark = note(notes, label, name, ["not compared, since samples are missing"])
            yield (short(label), name + remark, *[ABSENT] * 7)
            continue
        kind = AS_GRADED if corrected_mean else ""
        counts_grader = any(COUNTS_GRADER in decision.warnings for decision, _ in of_run)
        remarks = [_GRADERS_COUNT] if counts_grader and not corrected_mean else []
        yield (
            short(label),
            _row_name(name, kind) + note(notes, label, name, remarks),
            in_points(mean.compared.difference),
            points_interval(mean.compared.sampling_interval, at_most=mean.compared.at_most),
            p_cell(mean.p_sampling),
            ABSENT,
            ABSENT,
            percent(mean.detectable),
            ABSENT,
        )
        if corrected_mean is not None:
            yield _row_by_hand(label, name, corrected_mean)


def _name_of(baselines: Mapping[str, str]) -> str:
    """The baseline's name; if the benchmarks have several baselines, each with its benchmark."""
    if len(set(baselines.values())) == 1:
        return short(next(iter(baselines.values())))
    each = "; ".join(f"{short(benchmark)}: {short(label)}" for benchmark, label in baselines.items())
    return f"the first run of each benchmark ({each})"


def reported_table(rows: Sequence[tuple[str, str, float | None, str, str]]) -> Table:
    """The table of scores beside those of all sources that report the same model and benchmark.

    rows: (run, benchmark, accuracy, sources with their numbers as one text, verdict over all sources or "").
    """
    return Table(
        "Reported by others, in %",
        ("run", "benchmark", "this run", "reported by", "verdict"),
        tuple(
            (short(run), short(benchmark), percent(accuracy), sources, verdict or ABSENT)
            for run, benchmark, accuracy, sources, verdict in rows
        ),
        (),
        frozenset((2,)),
    )


def published_table(comparisons: Sequence[tuple[str, PublishedComparison]]) -> Table:
    """The table of runs beside published scores of the same model and benchmark, a row for each comparison.

    The last column names the settings that differ, those that move a score most first. comparisons: (name of the run,
    its comparison with a published score).
    """
    notes: list[str] = []
    rows = []
    for label, comparison in comparisons:
        reference = comparison.published
        source = reference.source
        by = "reported by the authors" if reference.by == "authors" else "measured by others"
        by_whom = f"{source.named}, {by}" + (f": {source.note}" if source.note else "")
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
    return Table(
        "Beside published scores, in %; detectable: the smallest true difference seen in 80 % of repetitions",
        (*columns, "settings that differ"),
        tuple(rows),
        tuple(notes),
        frozenset(range(3, 7)),
    )


def moved_table(
    baseline: str, second: str, moves: Sequence[Move], *, withheld: bool, notes: Sequence[str] = ()
) -> Table:
    """The questions that fell from the baseline to the second run, largest fall first, then those that rose.

    p: by Fisher's exact test, corrected by Holm over all questions of both runs. withheld: leave out their texts,
    because their authors ask not to publish them. notes: the footnotes.
    """
    fallen, risen = largest(moves, MAX_MOVED)
    rows = tuple(
        (
            _question(move.question, withheld=withheld),
            f"{move.first_correct} / {move.first_n}",
            f"{move.second_correct} / {move.second_n}",
            in_points(move.change),
            p_cell(move.p),
        )
        for move in (*fallen, *risen)
    )
    worse, better = sum(move.change < 0 for move in moves), sum(move.change > 0 for move in moves)
    return Table(
        f"Questions that moved: {worse} fell, {better} rose (at most {MAX_MOVED} of each are listed); p: the chance of "
        "such a change between equal models, corrected for all questions (Holm)",
        ("question", short(baseline), short(second), "points", "p"),
        rows,
        tuple(notes),
        frozenset(range(1, 5)),
    )


def _question(question: Question, *, withheld: bool) -> str:
    """The question's id, and its text on a second line; without the id where that is only a checksum."""
    lines = [short(question.question_id)] if withheld or question.has_own_id else []
    if not withheld and (text := beginning(question, MAX_NAME_CHARS)):
        lines.append(text)
    return "\n".join(lines) or short(question.question_id)


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
                in_points(drop.drop),
                points_interval(drop.sampling_interval, at_most=drop.at_most),
                p_cell(drop.p_sampling),
                points_interval(drop.question_interval),
                ABSENT if drop.p_question is None else p_cell(drop.p_question),
                percent(drop.detectable),
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
