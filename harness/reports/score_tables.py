"""The tables of scores and runs in a report. All rows about a score are made the same way (`_by_score`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from harness.core.sanitize import safe_name
from harness.reports.table import MEANINGS, Notes, Table, short
from harness.scoring.engine_metrics import EngineMetrics
from harness.scoring.load import Rate
from harness.scoring.score import Score
from harness.scoring.table_cells import (
    ABSENT,
    accuracy_cell,
    cells,
    percent,
    sampling_cell,
    value_cell,
    why_narrower,
    with_interval,
)

if TYPE_CHECKING:
    from harness.reports.inputs import ScoredRun

WITHHELD = "*: not shown, because the gap is less than four times the client's lag, or the lag was not measured"
"""The footnote of a speed table in which gaps are not shown."""

NO_MEAN_INTERVAL = "(?): no interval, because there are too few samples to show how much the lengths vary"
"""The footnote for a mean number of tokens without an interval."""


def samples_cell(score: Score) -> str:
    """Number of samples per question that the score covers: `64`; `≤ 64` if another tool's outputs have fewer for some
    questions.
    """
    fewer = score.samples_per_question is None and score.n_samples < score.n_questions * score.rounds
    return f"≤ {score.rounds:,}" if fewer else f"{score.rounds:,}"


def accuracy_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per (run label, score): the accuracy with the interval for the same questions. The notes contain the
    warnings, and which replies look wrong.
    """

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        yield accuracy_cell(score, "%"), f"{score.n_questions} × {samples_cell(score)}"

    def remarks_of(score: Score) -> Sequence[str]:
        odd = score.anomalies.sentence if score.anomalies is not None else ""
        used = score.tool.sentence if score.tool else ""
        return [*score.sentences, *filter(None, (odd, used)), *_from_reasoning(score)]

    title = "Accuracy, with the 95% interval for the same questions, sampled again, in brackets"
    return _by_score(title, ("accuracy", "questions × samples"), scores, cells_of, remarks_of=remarks_of)


def _from_reasoning(score: Score) -> list[str]:
    """A remark on the accuracy with answers taken from the reasoning; empty if the score has none."""
    estimate = score.accuracy_from_reasoning
    return [] if estimate is None else [f"with answers from the reasoning: {with_interval(estimate, '%')}"]


def score_table(scores: Sequence[tuple[str, Score]], *, with_notes: bool = True) -> Table:
    """One row per (run label, score), with both 95% intervals under their names; the notes contain the warnings.

    If the question interval is the narrower one, a note explains why. size: questions × samples per question.
    """

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        most = max(score.pass_at, default=None)
        value, *intervals = cells(score.accuracy)
        yield (
            value,
            *intervals,
            f"{score.n_questions} × {samples_cell(score)}",
            ABSENT if most is None else f"{value_cell(score.pass_at[most])} @{most}",
            ABSENT if most not in score.maj_at else f"{value_cell(score.maj_at[most])} @{most}",
        )

    def remarks_of(score: Score) -> Sequence[str]:
        """The footnotes of a score's row."""
        return [*(score.sentences if with_notes else ()), *_from_reasoning(score), *why_narrower(score.accuracy)]

    heads = ("accuracy", "sampling interval", "question interval", "size", "pass@k", "maj@k")
    title = f"Scores in %, with 95% intervals ({MEANINGS})"
    return _by_score(title, heads, scores, cells_of, remarks_of=remarks_of)


def sample_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per (run label, score): mean length, and the truncated, unanswered, undecided and missing samples."""

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        tokens = score.mean_completion_tokens
        yield (
            ABSENT if tokens is None else f"{tokens:.0f}",
            percent(None if score.n_truncated is None else score.n_truncated / (score.n_samples or 1)),
            with_interval(score.accuracy_finished),
            percent(score.n_no_answer / (score.n_samples or 1)),
            str(score.n_undecided),
            str(score.n_missing),
        )

    heads = ("mean tokens", "cut %", "accuracy uncut", "no answer %", "undecided", "missing")
    odd = [(label, score.benchmark, score.anomalies.sentence) for label, score in scores if score.anomalies]
    odd += [(label, score.benchmark, score.tool.sentence) for label, score in scores if score.tool]
    notes = tuple(f"{short(label)}, {short(name)}: {sentence}" for label, name, sentence in odd if sentence)
    return _by_score("Samples", heads, scores, cells_of, notes)


def speed_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per (run label, score) with streamed replies; without rows if no reply was streamed."""

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        speed = score.speed
        if speed is not None:
            withheld = speed.gap_p50 is None and speed.tokens_per_s is not None
            yield (
                _milliseconds(speed.first_token_p50),
                _milliseconds(speed.first_token_p99),
                "*" if withheld else _milliseconds(speed.gap_p50),
                "*" if withheld else _milliseconds(speed.gap_p99),
                ABSENT if speed.tokens_per_s is None else f"{speed.tokens_per_s:.1f}",
                _milliseconds(speed.lag),
            )

    def remarks_of(score: Score) -> Sequence[str]:
        hidden = score.speed.hidden if score.speed is not None else None
        return [f"visible tokens only: {percent(hidden)}% of the samples do not show their reasoning"] if hidden else []

    heads = ("first token p50", "p99", "gap p50", "p99", "tokens/s", "lag")
    lag = "lag: how long received tokens waited before being read (99th percentile)"
    title = f"Latency of one stream, in ms, and its tokens/s. {lag}"
    return _noted(_by_score(title, heads, scores, cells_of, remarks_of=remarks_of), "*", WITHHELD)


def goodput_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per (run label, score) that was scored with limits; without rows if none was."""

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        if good := score.goodput:
            yield (
                good.limits.text,
                f"{good.n_requests:,.0f}",
                rate_cell(good.within, 100),
                rate_cell(good.right, 100),
                rate_cell(good.within_per_s),
                rate_cell(good.right_per_s),
            )

    heads = ("limits", "requests", "within %", "right within %", "within/s", "right within/s")
    title = "Requests within the limits, of those at full load; 95% intervals based on variation over time"
    return _by_score(title, heads, scores, cells_of)


def rate_cell(rate: Rate, factor: float = 1) -> str:
    """A rate with its interval, if it has one."""
    ends = "" if rate.low is None or rate.high is None else f" ({factor * rate.low:,.4g}–{factor * rate.high:,.4g})"
    return f"{factor * rate.value:,.4g}{ends}"


ENGINE_COLUMNS: dict[str, tuple[str, str, float]] = {
    "tokens/s": ("tokens_per_s", ",.0f", 1),
    "at full load": ("client_tokens_per_s", ",.0f", 1),
    "first token": ("first_token_s", ".0f", 1000),
    "gap": ("gap_s", ".3g", 1000),
    "running": ("running", ".1f", 1),
    "waiting": ("waiting", ".1f", 1),
    "cache %": ("kv_cache", ".0f", 100),
    "preempted": ("preempted", ",.0f", 1),
    "cache hits %": ("cache_hit_rate", ".1f", 100),
    "acceptance length": ("acceptance_length", ".3f", 1),
    "accepted %": ("acceptance_rate", ".1f", 100),
    "steps with a draft %": ("draft_share", ".1f", 100),
}
"""Heading → the field of `EngineMetrics`, the format of its value, and the factor applied to it."""


def engine_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per (run label, score) with the engine's own metrics; without rows if no score has any. A note lists the
    metrics that no row has.
    """
    metrics = [score.engine for _, score in scores if score.engine]
    heads = [head for head in ENGINE_COLUMNS if {engine_cell(each, head) for each in metrics} - {UNKNOWN}]

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        if score.engine:
            cells = [engine_cell(score.engine, head) for head in heads]
            yield [*cells, *([_by_replies(score)] if replies else [])]

    replies = ["tokens per step, from replies"] if any(score.speculation for _, score in scores) else []
    missing = [head for head in ENGINE_COLUMNS if head not in heads]
    notes = (f"not reported by the servers' metrics pages: {', '.join(missing)}",) if missing else ()
    title = (
        "Engine metrics over the whole run: tokens/s reported by the engine and, at full load, by the client; mean "
        "times in ms"
    )

    def remarks_of(score: Score) -> Sequence[str]:
        return score.engine.remarks if score.engine else ()

    return _by_score(title, [*heads, *replies], scores, cells_of, notes, remarks_of=remarks_of)


def _by_replies(score: Score) -> str:
    """The tokens per step counted from the replies, with the 95% interval for other questions."""
    if not score.speculation:
        return UNKNOWN
    ends = score.speculation.low, score.speculation.high
    return f"{score.speculation.length:.3f}" + ("" if None in ends else f" ({ends[0]:.3f}–{ends[1]:.3f})")


def engine_lines(metrics: EngineMetrics) -> Iterator[str]:
    """The known engine metrics in two lines: the load, and the effect of caches and drafts."""
    for name, heads in (("engine", [*ENGINE_COLUMNS][:8]), ("caches and drafts", [*ENGINE_COLUMNS][8:])):
        cells = {head: engine_cell(metrics, head) for head in heads}
        if shown := [f"{head} {cell}" for head, cell in cells.items() if cell != UNKNOWN]:
            yield f"{name}: {', '.join(shown)}"


UNKNOWN = "unknown"
"""The cell of a metric that the servers' pages do not report."""


def engine_cell(metrics: EngineMetrics | msgspec.UnsetType, head: str) -> str:
    """The metric of a column; `UNKNOWN` if it is unknown, never 0 or empty."""
    field, form, factor = ENGINE_COLUMNS[head]
    value = getattr(metrics, field, None)
    return UNKNOWN if value is None else format(factor * value, form)


def endpoint_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per endpoint of each score with several endpoints."""

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        """A row for each endpoint of the score."""
        for url, endpoint in score.endpoints.items():
            yield (
                short(url),
                str(endpoint.n_samples),
                value_cell(endpoint.accuracy),
                sampling_cell(endpoint.accuracy),
                percent(endpoint.expected_accuracy),
                percent(endpoint.truncated),
                percent(endpoint.no_answer),
                ABSENT if endpoint.tokens_per_s is None else f"{endpoint.tokens_per_s:.1f}",
            )

    heads = ("endpoint", "samples", "accuracy", "interval", "expected", "cut %")
    title = (
        "By endpoint, in %. interval: 95%, same questions, sampled again. expected: accuracy of all endpoints on these "
        "questions. tokens/s: per stream"
    )
    return _by_score(title, (*heads, "no answer %", "tokens/s"), scores, cells_of, n_names=1)


def over_k_table(scores: Sequence[tuple[str, Score]], ks: Sequence[int] = ()) -> Table:
    """One row per (run label, score, k): pass@k, pass^k and maj@k, each with its 95% intervals. ks: show only these k;
    empty: all.
    """

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        for k in score.pass_at:
            if not ks or k in ks:
                by_ks = (score.pass_at, score.pass_hat, score.maj_at)
                yield (str(k), *(cell for by_k in by_ks for cell in cells(by_k.get(k))))

    names = [f"{kind}{what}" for kind in ("pass@k", "pass^k", "maj@k") for what in ("", " sampling", " question")]
    title = (
        "Over k samples, in %: pass@k (any correct), pass^k (all correct), maj@k (majority correct), with 95% "
        f"intervals ({MEANINGS})"
    )
    return _by_score(title, ("k", *names), scores, cells_of)


def measure_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per (run label, score, additional metric)."""
    title = f"Additional metrics defined by the benchmark's authors, in %, with 95% intervals ({MEANINGS})"
    heads = ("measure", "value", "sampling interval", "question interval")

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        return ((name, *cells(measure)) for name, measure in score.measures.items())

    return _by_score(title, heads, scores, cells_of, n_names=1)


def turn_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row per (run label, score, graded turn of its conversations)."""
    title = f"By turn, in %; a turn that was not reached is wrong, with 95% intervals ({MEANINGS})"
    heads = ("turn", "accuracy", "sampling interval", "question interval", "parts", "samples", "reached %")

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        for number, turn in (score.turns or {}).items():
            yield (
                str(number),
                *cells(turn.accuracy),
                percent(turn.parts),
                f"{turn.n:,}",
                percent(turn.n_reached / turn.n),
            )

    return _by_score(title, heads, scores, cells_of, n_names=1)


def budget_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """Accuracy by token budget, with longer replies counted as wrong; without rows if the tokens are unknown."""
    # All replies fit into the last budget of a score, so this budget alone only repeats the accuracy.
    scores = scores if any(len(score.budgets) > 1 for _, score in scores) else ()
    title = f"Accuracy within a token budget (longer replies count as wrong), in %, with 95% intervals ({MEANINGS})"
    return _by_score(
        title,
        ("tokens", "accuracy", "sampling interval", "question interval", "longer %"),
        scores,
        lambda score: ((str(n), *cells(one.accuracy), percent(one.cut)) for n, one in score.budgets.items()),
    )


def token_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """The completion tokens of all samples, of right samples, and of the others, and the reasoning tokens of all
    samples; without rows if no server reported any tokens.
    """

    def cells_of(score: Score) -> Iterator[Sequence[str]]:
        tokens = score.tokens
        if tokens is None:
            return
        for kind, of, counts in (
            ("completion", "all", tokens.completion),
            ("completion", "right", tokens.completion_right),
            ("completion", "not right", tokens.completion_wrong),
            ("reasoning", "all", tokens.reasoning),
        ):
            if counts is not None:
                interval = sampling_cell(counts.mean) if counts.mean.sampling else "?"
                mean = f"{counts.mean.value:.0f} ({interval})"
                yield (kind, of, str(counts.n), mean, f"{counts.p50:.0f}", f"{counts.p99:.0f}")

    heads = ("tokens", "of", "samples", "mean", "p50", "p99")
    return _noted(_by_score("Tokens per sample", heads, scores, cells_of, n_names=2), "(?)", NO_MEAN_INTERVAL)


def _by_score(
    title: str,
    heads: Sequence[str],
    scores: Sequence[tuple[str, Score]],
    cells_of: Callable[[Score], Iterable[Sequence[str]]],
    notes: tuple[str, ...] = (),
    *,
    n_names: int = 0,
    remarks_of: Callable[[Score], Sequence[str]] = lambda _score: (),
) -> Table:
    """A table whose rows start with a run and a benchmark. cells_of: the other cells of each row of a score.

    n_names: number of name columns before the numeric columns. remarks_of: the notes that a benchmark's name refers to,
    for a table with one row per score.
    """
    listed = Notes(*notes)
    rows = [
        (short(label), short(score.benchmark) + listed.mark_remarks(label, score.benchmark, remarks_of(score)), *row)
        for label, score in scores
        for row in cells_of(score)
    ]
    return Table.of(title, ("run", "benchmark", *heads[:n_names]), heads[n_names:], rows, listed.texts)


def _noted(table: Table, mark: str, text: str) -> Table:
    """The table with a footnote, if a cell ends with the mark that it explains."""
    is_marked = any(cell.endswith(mark) for row in table.rows for cell in row[2:])
    return replace(table, notes=(*table.notes, text)) if is_marked else table


def _milliseconds(seconds: float | None) -> str:
    """A time in milliseconds, with three significant digits below 100 ms."""
    if seconds is None:
        return ABSENT
    return f"{1000 * seconds:.3g}" if seconds < 0.1 else f"{1000 * seconds:.0f}"


# ---- all runs, and groups of questions

NO_SCORE = "not scored yet; run `harness score`"
"""The footnote for a benchmark without a score."""


def summary_table(runs: Sequence[ScoredRun]) -> Table:
    """One row per run, with benchmarks as columns; the notes contain the warnings. Cells of a sweep that differ only in
    the benchmark share a row.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.benchmarks))
    notes, rows = Notes(), []
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
                row.append("not scored" + notes.mark_remarks(label, name, (NO_SCORE,)))
            else:
                remarks = (*by_benchmark[name].remarks, *score.sentences)
                row.append(accuracy_cell(score) + notes.mark_remarks(label, name, remarks))
        rows.append(row)
    title = "Accuracy in %, with its 95% interval (same questions, sampled again)"
    return Table.of(title, heads, [*map(short, names)], rows, notes.texts)


def breakdown_table(label: str, score: Score, by: str) -> Table:
    """The score for each value of the metadata field `by`, such as a level or a subject.

    questions: `1 of 4` if only one question in a group of four has samples; the accuracy is then based on this
    question. undecided: only if the grader left samples undecided.
    """
    groups = score.breakdowns[by].items()
    undecided = any(group.n_undecided for _, group in groups)
    rows = (
        (
            short(value),
            f"{group.n_answered} of " * (group.n_answered < group.n_questions) + str(group.n_questions),
            *cells(group.accuracy),
            *((str(group.n_undecided),) if undecided else ()),
        )
        for value, group in groups
    )
    heads = ("questions", "accuracy", "sampling interval", "question interval", *(["undecided"] if undecided else ()))
    title = f"{short(label)}, {short(score.benchmark)} by {short(by)}, in %, with 95% intervals ({MEANINGS})"
    return Table.of(title, (short(by),), heads, rows)
