"""`harness compare`: shows which run is better, how certain that is, and how many samples would settle it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli import terminal
from harness.cli.json_output import print_json
from harness.commands.compare import RunComparison, compare
from harness.commands.imported_runs import open_scored
from harness.core.errors import Exit, UsageError
from harness.core.number_text import count_noun, count_points, in_percent, in_points
from harness.core.sanitize import visible
from harness.deciding.paired_comparison import MeanComparison, PairedComparison
from harness.deciding.verdicts import Decision, MarginDecision, MeanDecision, answer
from harness.options.decisions import CompareCommand
from harness.reports.comparison_tables import open_points
from harness.reports.inputs import read_runs
from harness.reports.table import p_cell
from harness.runs import RunFolder
from harness.runs.recorded_settings import describe_difference, is_checksum
from harness.scoring.run_reader import OpenRun
from harness.scoring.stats import Interval
from harness.scoring.table_cells import point_cells, sampling_cell, why_narrower
from harness.viewer.rows import WORDS
from harness.viewer.run_comparison import Compared
from harness.viewer.run_comparison import compare as compared_samples


def carry_out(options: CompareCommand) -> int:
    """Print the comparisons, or the differences between two runs. Returns the exit code."""
    if options.show_samples:
        if len(options.runs) != 2:
            raise UsageError(f"expected exactly two runs, got {len(options.runs)}", field="samples")
        show(*options.runs)
        return Exit.YES
    pairs = compare(options.runs, options)
    decisions = [pair.decision for pair in pairs]
    if options.as_json:
        print_json(decisions)
    else:
        for i, pair in enumerate(pairs):
            _print(pair, with_others=len(pairs) > 1)
            run = pair.decision.of_mean[0]
            if all(later.decision.of_mean[0] != run for later in pairs[i + 1 :]):  # the run's last benchmark
                _print_means(pairs, run)
    for sentence in pairs.uncompared:
        terminal.warn(sentence)
    return Exit.YES if options.margin is None else _margin_code(decisions, pairs.uncompared)


def _margin_code(decisions: Sequence[Decision], uncompared: Sequence[str]) -> int:
    """Return the exit code for a margin: whether any run is clearly worse by the margin, or clearly none is."""
    verdicts = ["open" if decision.margin is None else decision.margin.verdict for decision in decisions]
    codes = {"worse": Exit.NO, "open": Exit.CANNOT_SAY}
    return Exit.of([codes.get(verdict, Exit.YES) for verdict in verdicts] + [Exit.CANNOT_SAY for _ in uncompared])


def _print(pair: RunComparison, *, with_others: bool) -> None:
    """Print the comparison of one run with the baseline on one benchmark. with_others: whether other comparisons are
    printed, too.
    """
    decision, paired = pair.decision, pair.decision.paired
    run, baseline = visible(decision.run), visible(decision.baseline)
    same = paired.n_questions - paired.better - paired.worse
    of_log = bool(paired.trigger and paired.trigger.of_log)  # no right answers, so the calls are the result
    if paired.trigger and of_log:
        click.echo(f"{visible(paired.benchmark)}: {paired.trigger.sentence}")
    click.echo(decision.sentence)
    click.echo(
        f"  {_sides(paired, decision)} over {count_noun(paired.n_questions, 'question')}: better on {paired.better}, "
        f"worse on {paired.worse}, the same on {same}"
    )
    if paired.trigger and not of_log:
        click.echo(f"  {paired.trigger.sentence}")
    if decision.p_question is None:
        click.echo("  new questions    no estimate, because the runs have only one question in common")
    else:
        click.echo(
            f"  new questions    {point_cells(paired.difference)[2]:18} p {p_cell(decision.p_question)}  "
            f"{decision.kind_verdict}"
        )
    if (ratio := paired.recovery) is not None:
        new = f", new questions {ratio.question.in_percent}" if ratio.question else ""
        click.echo(f"  recovery         {in_percent(ratio.value)}% of the baseline (95%: {sampling_cell(ratio)}{new})")
    _print_margin(decision.margin, paired.difference.sampling)
    for reason in why_narrower(paired.difference, imported=decision.imported):
        click.echo(f"  {reason}")
    click.echo(f"  minimum detectable difference (80% power): {_detectable(decision.detectable)}")
    if words := _sample_counts(pair):
        click.echo(f"  baseline → run: {words}")
    for line in (*pair.engine, *open_points(decision)):
        click.echo(f"  {line}")
    for difference in pair.settings:
        if not is_checksum(difference.field):  # A warning explains it in words.
            click.echo(f"  differs: {describe_difference(difference)}")
    # Warnings are not next to the comparison, which is on standard output.
    named = f"{visible(paired.benchmark)}, {run} against {baseline}: " if with_others else ""
    for warning in decision.warnings:
        terminal.warn(f"{named}{warning}")


def _print_means(pairs: Sequence[RunComparison], run: str) -> None:
    """For each baseline that shares several benchmarks with a run, print the run's mean over these benchmarks.

    run: the run's name in `Decision.of_mean`.
    """
    by_baseline: dict[str, list[RunComparison]] = {}
    for pair in pairs:
        if pair.decision.of_mean[0] == run:
            by_baseline.setdefault(pair.decision.of_mean[1], []).append(pair)
    for of_run in by_baseline.values():
        if len(of_run) > 1:
            _print_mean(of_run)


def _print_mean(of_run: Sequence[RunComparison]) -> None:
    """Print the mean over the benchmarks that a run shares with one baseline; each has the same weight."""
    decision, (run, baseline) = of_run[0].decision, of_run[0].decision.of_mean
    if decision.mean is None:
        click.echo(f"mean of {len(of_run)} benchmarks: not compared, because samples are missing")
        return
    mean, over = decision.mean.compared, f"the mean of {len(of_run)} benchmarks"
    click.echo(answer(run, baseline, over, mean.difference, decision.mean.verdict, decision.mean.margin))
    click.echo(f"  {_sides(mean, decision.mean)}")
    sizes = {pair.decision.paired.n_questions for pair in of_run}
    if len(sizes) > 1:
        click.echo(f"  all benchmarks have equal weight, whether they have {min(sizes):,} or {max(sizes):,} questions")
    _print_margin(decision.mean.margin, mean.difference.sampling)
    click.echo(
        f"  minimum detectable difference (80% power), assuming it is the same on every benchmark: "
        f"{_detectable(decision.mean.detectable)}"
    )


def _detectable(smallest: float | None) -> str:
    """Return the text for the smallest difference that the samples can detect."""
    return "none possible" if smallest is None else f"{in_percent(smallest)} points"


def _sides(compared: PairedComparison | MeanComparison, decision: Decision | MeanDecision) -> str:
    """The accuracies of the run and the baseline, with p for the same questions. compared: what is decided."""
    both = f"{in_percent(compared.first_accuracy)}% against {in_percent(compared.second_accuracy)}%"
    return f"{both} (p {p_cell(decision.p_sampling)})"


def _print_margin(decision: MarginDecision | None, interval: Interval | None) -> None:
    """Print whether the run is worse by the margin or more; print nothing without a margin.

    interval: the interval in the first sentence, which, unlike p, is not corrected for several margins.
    """
    if decision is None or interval is None:
        return
    points = count_points(f"{100 * decision.margin:g}")
    verdict: str = decision.verdict
    if decision.n_margins > 1:
        verdict += f" (p corrected for {decision.n_margins} margins"
        if decision.verdict == "open" and not interval.low <= -decision.margin <= interval.high:
            side = "above" if interval.low > -decision.margin else "below"
            verdict += f"; the uncorrected interval is {side} -{100 * decision.margin:g}"
        verdict += ")"
    click.echo(f"  {f'margin {points}':16} {'':18} p {p_cell(decision.p)}  {verdict}")


def _sample_counts(pair: RunComparison) -> str:
    """The numbers of undecided, truncated, and unanswered samples of the baseline and the run, and their mean lengths;
    empty without any. Each may reveal a server fault that the accuracies do not.
    """
    before, after = pair.baseline_samples, pair.samples
    change = pair.decision.cut
    cut = change and f" ({in_points(change.value)} points, {in_points(change.low)} to {in_points(change.high)})"
    counts = (
        ("undecided", before.undecided, after.undecided, ""),
        ("truncated at a length limit", before.truncated, after.truncated, cut or ""),
        ("without an answer", before.no_answer, after.no_answer, ""),
        *((name, before.calls[name], after.calls[name], "") for name in {**before.calls, **after.calls}),
    )
    parts = [
        f"{words} {first} of {before.n:,} → {second} of {after.n:,}{interval}"
        for words, first, second, interval in counts
        if None not in (first, second) and (first or second)
    ]
    lengths = before.mean_completion_tokens, after.mean_completion_tokens
    if lengths[0] is not None and lengths[1] is not None:
        change = pair.decision.tokens
        ratio = change and f" (ratio {change.value:.3f}, {change.low:.3f} to {change.high:.3f})"
        parts.append(f"tokens per reply {lengths[0]:,.0f} → {lengths[1]:,.0f}{ratio or ''}")
    return ", ".join(parts)


SHOWN_QUESTIONS = 20
"""Largest number of questions listed whose fraction correct changed."""


def show(first: Path, second: Path) -> None:
    """Print the questions whose fraction correct changed most from run A to run B, the flipped verdicts, and the
    settings that differ.
    """
    folders = [open_scored(path) for path in (first, second)]
    a, b = (OpenRun.of(folder, path.name) for folder, path in zip(folders, (first, second), strict=True))
    shared = {name: name for name in a.benchmarks if name in b.benchmarks} or _named_otherwise(folders)
    if not shared:
        raise UsageError(f"{a.label} and {b.label} have no benchmarks in common.")
    for name, other in shared.items():
        compared = compared_samples(a, b, name, other)
        for problem in (*a.benchmarks[name].problems, *b.benchmarks[other].problems):
            terminal.warn(visible(problem))
        _print_compared(compared)


def _named_otherwise(folders: Sequence[RunFolder]) -> dict[str, str]:
    """Benchmark of the first run → the name of the same questions in the files of the second run.

    Only for runs that share no benchmark name. Outputs of another tool form a benchmark named after their file;
    `read_runs` gives the same questions one name in both runs, and `stored_name` is the name in the files.
    """
    first, second = read_runs(folders)
    return {
        name: second.stored_name(benchmark) for name, benchmark in second.benchmarks.items() if name in first.benchmarks
    }


def _print_compared(compared: Compared) -> None:
    """Print how two runs differ on one benchmark."""
    click.echo(visible(compared.benchmark))
    for line in compared.lines:
        click.echo(f"  {visible(line)}")
    for name, old, new in compared.settings:
        click.echo(f"  {visible(name)}: {old} → {new}")
    if not compared.settings:
        click.echo("  no setting differs")
    moved = sorted(
        (question for question in compared.moved if question.change),
        key=lambda question: (-abs(question.change), question.id),
    )
    if moved:
        rows = [
            (
                visible(" ".join(question.title.split()) or question.id, 60),
                question.first,
                question.second,
                f"{question.change:+.0f}",
            )
            for question in moved[:SHOWN_QUESTIONS]
        ]
        terminal.table(("question", "A", "B", "points"), rows)
        if len(moved) > SHOWN_QUESTIONS:
            click.echo(f"  and {len(moved) - SHOWN_QUESTIONS} more questions")
    for flip in compared.flips:
        click.echo(f"  {count_noun(flip.n, 'sample')} from {WORDS[flip.first]} to {WORDS[flip.second]}")
    click.echo(f"  {count_noun(compared.n_same, 'sample')} with the same verdict in both runs")
