"""The tables of a report as plain values, before any format: what stands in which cell, and the footnotes in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.core.inert import safe_name, visible
from harness.reports.scored import ScoredRun
from harness.scoring import PairedComparison, PublishedComparison, Score

MAX_SETTING_CHARS = 400
"""Longest setting (a system prompt, say) in the table of settings."""

MAX_SETTING_DEPTH = 6
"""Levels of nested settings that get a row each; deeper ones stand as they are."""

MAX_CELL_CHARS = 80
"""Longest run, model or setting text in a table."""

ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """title and columns; rows of text cells; notes that cells name by [number]; numeric: columns aligned right.

    Cells may hold foreign text; each format escapes for itself.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numeric: frozenset[int] = field(default_factory=frozenset)


def percent(value: float | None) -> str:
    """A fraction in percent with one decimal."""
    return ABSENT if value is None else f"{100 * value:.1f}"


def accuracy_cell(score: Score) -> str:
    """`57.1 ± 0.9` (sampling error); `57.1 ± ≤9.1` when that is only bounded; `57.1 (50.0 to 61.2)` (bounds) when
    what is missing can move the accuracy further than the error does."""
    reach = (score.bounds.high - score.bounds.low) / 2
    if score.accuracy is None or (score.partial and reach > (score.sampling_error or 0.0)):
        return f"{percent(score.accuracy)} ({percent(score.bounds.low)} to {percent(score.bounds.high)})"
    if score.sampling_error is not None:
        return f"{percent(score.accuracy)} ± {percent(score.sampling_error)}"
    return f"{percent(score.accuracy)} ± ≤{percent(score.sampling_error_bound)}"


def summary_table(runs: Sequence[ScoredRun]) -> Table:
    """One row a run, benchmarks as columns; the notes hold the warnings."""
    names = list(dict.fromkeys(name for run in runs for name in run.benchmarks))
    notes: list[str] = []
    rows = []
    # The model's name is shown unless every folder is named after it.
    told = all(run.label == safe_name(run.manifest.model) for run in runs)
    heads = ("run",) if told else ("run", "model")
    for run in runs:
        cells = [_short(text) for text in (run.label, run.manifest.model)[: len(heads)]]
        for name in names:
            benchmark = run.benchmarks.get(name)
            if benchmark is None:
                cells.append(ABSENT)
            elif benchmark.score is None:
                cells.append("not scored")
            else:
                cells.append(accuracy_cell(benchmark.score) + _note(notes, run.label, name, benchmark.score))
        rows.append(tuple(cells))
    return Table(
        "Accuracy in % ± sampling error (the same questions, run again)",
        (*heads, *map(_short, names)),
        tuple(rows),
        tuple(notes),
        frozenset(range(len(heads), len(heads) + len(names))),
    )


def score_table(scores: Sequence[tuple[str, Score]], *, with_notes: bool = True) -> Table:
    """One row a (run label, score), with both errors, each by its name; the notes hold the warnings.

    size: questions × samples of each. Answers taken from the reasoning have a column where they were asked for.
    """
    notes: list[str] = []
    rows = []
    searched = any(score.accuracy_from_reasoning is not None for _, score in scores)
    for label, score in scores:
        most = max(score.pass_at, default=None)
        error = percent(score.sampling_error)
        if score.sampling_error is None and score.sampling_error_bound is not None:
            error = f"≤{percent(score.sampling_error_bound)}"
        rows.append(
            (
                _short(label),
                _short(score.benchmark) + (_note(notes, label, score.benchmark, score) if with_notes else ""),
                percent(score.accuracy),
                *([percent(score.accuracy_from_reasoning)] if searched else []),
                error,
                percent(score.question_error),
                f"{score.n_questions} × {score.rounds}",
                ABSENT if most is None else f"{percent(score.pass_at[most])} @{most}",
                ABSENT if most is None else f"{percent(score.maj_at[most])} @{most}",
            )
        )
    accuracies = ("accuracy", "with answers from reasoning") if searched else ("accuracy",)
    columns = ("run", "benchmark", *accuracies, "sampling error", "question error", "size", "pass@k", "maj@k")
    return Table("Scores in %", columns, tuple(rows), tuple(notes), frozenset(range(2, len(columns))))


def sample_table(scores: Sequence[tuple[str, Score]]) -> Table:
    """One row a (run label, score): what became of its samples."""
    rows = []
    for label, score in scores:
        samples = score.n_samples or 1
        tokens = score.mean_completion_tokens
        rows.append(
            (
                _short(label),
                _short(score.benchmark),
                ABSENT if tokens is None else f"{tokens:.0f}",
                percent(score.n_truncated / samples),
                percent(score.n_no_answer / samples),
                str(score.n_undecided),
                str(score.n_missing),
            )
        )
    columns = ("run", "benchmark", "mean tokens", "cut %", "no answer %", "undecided", "missing")
    return Table("Samples", columns, tuple(rows), (), frozenset(range(2, 7)))


def speed_table(scores: Sequence[tuple[str, Score]]) -> Table | None:
    """One row a (run label, score) whose replies were streamed; None when none were."""
    rows = []
    notes: tuple[str, ...] = ()
    for label, score in scores:
        speed = score.speed
        if speed is None:
            continue
        withheld = speed.gap_p50 is None and speed.tokens_per_s is not None
        if withheld:
            notes = ("* not shown: shorter than four times the lag of the client, or that was not measured",)
        rows.append(
            (
                _short(label),
                _short(score.benchmark),
                _milliseconds(speed.first_token_p50),
                _milliseconds(speed.first_token_p99),
                "*" if withheld else _milliseconds(speed.gap_p50),
                "*" if withheld else _milliseconds(speed.gap_p99),
                ABSENT if speed.tokens_per_s is None else f"{speed.tokens_per_s:.1f}",
                _milliseconds(speed.lag),
                "kernel" if speed.kernel_stamps == 1 else "client" if speed.kernel_stamps == 0 else "both",
            )
        )
    columns = ("run", "benchmark", "first token p50", "p99", "gap p50", "p99", "tokens/s", "lag", "stamps by")
    title = "Speed of one stream, in ms; lag: how late the client came to its sockets, p99"
    return Table(title, columns, tuple(rows), notes, frozenset(range(2, 8))) if rows else None


def endpoint_table(scores: Sequence[tuple[str, Score]]) -> Table | None:
    """One row an endpoint of each score that has several; None when none has. An outlier ends in an asterisk."""
    rows = [
        (
            _short(label),
            _short(score.benchmark),
            _short(one.endpoint) + (" *" if one.outlier else ""),
            str(one.n_samples),
            percent(one.accuracy),
            percent(one.expected_accuracy),
            ABSENT if one.z_accuracy is None else f"{one.z_accuracy:+.1f}",
            percent(one.truncated),
            percent(one.no_answer),
            ABSENT if one.tokens_per_s is None else f"{one.tokens_per_s:.1f}",
            str(one.n_failures),
        )
        for label, score in scores
        for one in score.endpoints
    ]
    if not rows:
        return None
    notes = ("* stands out among the endpoints",) if any(row[2].endswith(" *") for row in rows) else ()
    columns = ("run", "benchmark", "endpoint", "samples", "accuracy", "expected", "z", "cut %", "no answer %")
    return Table(
        "By endpoint, in %; expected: of the same questions at all endpoints; tokens/s of one stream",
        (*columns, "tokens/s", "failed requests"),
        tuple(rows),
        notes,
        frozenset(range(3, 11)),
    )


def paired_table(baseline: str, comparisons: Sequence[tuple[str, PairedComparison]]) -> Table:
    """Every other run minus the baseline, question by question."""
    rows = tuple(
        (
            _short(label),
            _short(found.benchmark),
            _signed(found.difference),
            percent(found.sampling_error),
            percent(found.question_error),
            ABSENT if found.z_sampling is None else f"{found.z_sampling:+.1f}",
            f"{found.better} / {found.worse} / {found.n_questions - found.better - found.worse}",
        )
        for label, found in comparisons
    )
    columns = ("run", "benchmark", "difference", "sampling error", "question error", "z", "better / worse / same")
    return Table(f"Paired with {_short(baseline)}, in points", columns, rows, (), frozenset(range(2, 7)))


def published_table(comparisons: Sequence[tuple[str, PublishedComparison]]) -> Table:
    """Runs beside published scores of the same model and benchmark, with the settings that differ."""
    notes: list[str] = []
    rows = []
    for label, found in comparisons:
        reference = found.published
        differing = "; ".join(
            f"{_short(name)} {_setting(ours)} here, {_setting(theirs)} there"
            for name, (ours, theirs) in found.differing.items()
        )
        source = reference.source
        by = "reported by the authors" if source.by == "authors" else "measured by others"
        note = f"{source.title}, {by}, {source.url}" + (f": {source.note}" if source.note else "")
        if note not in notes:
            notes.append(note)
        number = ABSENT if found.z is None else f"{found.z:+.1f}"
        rows.append(
            (
                _short(label),
                _short(reference.benchmark),
                reference.metric,
                percent(found.ours),
                f"{percent(reference.value)} [{notes.index(note) + 1}]",
                number,
                found.verdict + (f": {found.reason}" if found.reason else ""),
                differing or "none known",
            )
        )
    columns = ("run", "benchmark", "metric", "this run", "published", "z", "verdict", "settings that differ")
    return Table("Beside published scores, in %", columns, tuple(rows), tuple(notes), frozenset(range(3, 6)))


def breakdown_table(label: str, score: Score, by: str) -> Table:
    """The score of the questions of each level, subject …"""
    rows = tuple(
        (
            _short(value),
            str(group.n_questions),
            percent(group.accuracy),
            percent(group.sampling_error),
            percent(group.question_error),
        )
        for value, group in score.breakdowns[by].items()
    )
    columns = (_short(by), "questions", "accuracy", "sampling error", "question error")
    return Table(f"{_short(label)} by {_short(by)}, in %", columns, rows, (), frozenset(range(1, 5)))


def settings_table(runs: Sequence[ScoredRun], benchmark: str) -> Table:
    """The settings of the runs side by side; a field in which they differ ends in an asterisk."""
    columns = [run for run in runs if benchmark in run.benchmarks]
    settings = [flat_settings(run, benchmark) | _circumstances(run) for run in columns]
    fields = list(dict.fromkeys(name for one in settings for name in one))
    rows = []
    for name in fields:
        values = [_setting(one.get(name), MAX_SETTING_CHARS) for one in settings]
        rows.append((_short(name) + (" *" if len(set(values)) > 1 else ""), *values))
    notes = ("* differs between the runs",) if any(row[0].endswith(" *") for row in rows) else ()
    return Table(
        f"Settings of {_short(benchmark)}", ("setting", *(_short(r.label) for r in columns)), tuple(rows), notes
    )


def flat_settings(run: ScoredRun, benchmark: str) -> dict[str, object]:
    """Identity and settings of one benchmark's samples by name: `max_tokens`, where `sampling.max_tokens` is the only
    field of that last name."""
    record = run.benchmarks[benchmark].record
    found = _flat({**record.settings, **record.identity, "samples": record.plan.samples})
    last = Counter(name.rsplit(".", 1)[-1] for name in found)
    return {(tail if last[tail := name.rsplit(".", 1)[-1]] == 1 else name): value for name, value in found.items()}


def _circumstances(run: ScoredRun) -> dict[str, object]:
    """What is known of the run as a whole."""
    manifest = run.manifest
    known = {"created": manifest.created, "harness": manifest.harness_version, "environment": manifest.environment}
    return _flat(known)


def _flat(tree: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and prefix.count(".") < MAX_SETTING_DEPTH:
            found.update(_flat(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found


def _note(notes: list[str], label: str, benchmark: str, score: Score) -> str:
    if not score.warnings:
        return ""
    notes.append(f"{_short(label)}, {_short(benchmark)}: {'; '.join(score.warnings)}.")
    return f" [{len(notes)}]"


def _short(text: str) -> str:
    return visible(text, MAX_CELL_CHARS)


def _setting(value: object, limit: int = MAX_CELL_CHARS) -> str:
    return "not set" if value is None else visible(str(value), limit)


def _milliseconds(seconds: float | None) -> str:
    """Three significant digits."""
    return ABSENT if seconds is None else f"{1000 * seconds:.3g}" if seconds < 0.1 else f"{1000 * seconds:.0f}"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f}"
