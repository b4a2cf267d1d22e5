"""`harness compare`: which run is better, how sure that is, and what would settle it. Exit code 4 for a gate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options import CompareOptions
from harness.cli import terminal
from harness.cli.flags import takes
from harness.cli.json_output import json_option, say
from harness.cli.spelling import Command
from harness.core.errors import EXIT_COMPLETE, EXIT_OWED, StoppedByRule, UsageError
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.scoring.deciding import Decision
    from harness.scoring.intervals import Interval
    from harness.verbs.compare import Beside

SHOWN_QUESTIONS = 5
"""Questions that fell most, and that rose most."""


def _prints() -> Any:
    from harness.scoring.deciding import Decision

    return list[Decision]


@click.command("compare", cls=Command, verb="compare")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@takes(CompareOptions)
@click.option(
    "--fail-if-worse",
    type=click.FloatRange(0, 100),
    metavar="POINTS",
    help="Exit with 4 if a run is found worse than the baseline by at least POINTS; with 1 if none is, but the samples "
    "could not have shown it. Default: no gate.",
)
@click.option("--pass-unseen", is_flag=True, help="With --fail-if-worse: exit with 0 instead of 1. Default: off.")
@json_option(_prints, "a list of the decisions")
def command(
    runs: tuple[Path, ...], fail_if_worse: float | None, pass_unseen: bool, as_json: bool, **given: Any
) -> None:
    """Compare scored RUNS question by question with the first of them, or with --baseline.

    A run is a run folder, or another tool's outputs that `harness score` has graded.
    Two lines for each benchmark: same questions, asked again; and other questions of this kind. p values are corrected
    for all lines that are printed (Holm), so that any of them is a false alarm in 5 % of such printouts. That holds for
    one look: to look again and again while runs grow, take `harness race`.

    \b
    harness compare results/base results/tuned
    harness compare results/base theirs.jsonl
    harness compare results/checkpoint-* --baseline results/base --fail-if-worse 1.0
    """
    from harness.verbs.compare import compare

    found = compare(runs, CompareOptions.of(**given))
    if as_json:
        say([one.decision for one in found])
    else:
        for one in found:
            _print(one)
    if fail_if_worse is not None:
        code = _gate(found, fail_if_worse / 100)
        sys.exit(EXIT_COMPLETE if pass_unseen and code == EXIT_OWED else code)
    if pass_unseen:
        raise UsageError("--pass-unseen changes what --fail-if-worse returns: give --fail-if-worse POINTS too")


def _gate(found: list[Beside], margin: float) -> int:
    """Say what the gate refuses, and what it could not have seen. Returns the exit code."""
    refused = [one.decision for one in found if one.decision.is_worse_by(margin)]
    for one in refused:
        click.echo(
            f"harness: {visible(one.run)} is worse than {visible(one.baseline)} on {visible(one.paired.benchmark)} by "
            f"{-100 * one.paired.difference:.1f} points",
            err=True,
        )
    unseen = [one.decision for one in found if not one.decision.rules_out(margin) and one.decision not in refused]
    for one in unseen:
        terminal.warn(
            f"on {visible(one.paired.benchmark)}, {visible(one.run)} has too few samples for this gate: the "
            f"smallest difference that they find in 80 % of repetitions is {100 * one.detectable:.1f} points, and the "
            f"run may be worse by {-100 * one.paired.sampling_interval.low:.1f}; sample more, or let it pass by "
            "--pass-unseen"
        )
    return StoppedByRule.exit_code if refused else EXIT_OWED if unseen else EXIT_COMPLETE


def _print(found: Beside) -> None:
    one, paired = found.decision, found.decision.paired
    run, baseline = visible(one.run), visible(one.baseline)
    click.echo(
        f"{visible(paired.benchmark)}: {run} {100 * paired.first_accuracy:.1f} %, {baseline} "
        f"{100 * paired.second_accuracy:.1f} %: {100 * paired.difference:+.1f} points over "
        f"{paired.n_questions} questions"
    )
    at_most = "at most " if paired.at_most else ""
    click.echo(
        f"  same questions   {at_most}{_points(paired.sampling_interval):18} p {_p(one.p_sampling)}  {one.verdict}"
    )
    if one.p_question is None:
        click.echo("  new questions    cannot be told from one question")
    else:
        click.echo(
            f"  new questions    {_points(paired.question_interval):18} p {_p(one.p_question)}  {one.kind_verdict}"
        )
    same = paired.n_questions - paired.better - paired.worse
    click.echo(
        f"  better on {paired.better}, worse on {paired.worse}, the same on {same}; smallest difference that these "
        f"samples find in 80 % of repetitions: {100 * one.detectable:.1f} points"
    )
    if one.verdict == "no difference seen" and one.settling is not None:
        click.echo(
            f"  a difference of this size would take about {one.settling:,} samples a question of each{_range(one)}"
        )
    for move in (*found.moved[:SHOWN_QUESTIONS], *found.moved[SHOWN_QUESTIONS:][-SHOWN_QUESTIONS:]):
        sure = "" if move.p >= 0.05 else f" (p {_p(move.p)})"
        click.echo(
            f"    {visible(move.question.question_id, 40)}: {move.first_correct} of {move.first_n} → "
            f"{move.second_correct} of {move.second_n}{sure}"
        )
    for difference in found.settings:
        click.echo(f"  differs: {difference}")
    for warning in one.warnings:
        terminal.warn(warning)


def _range(one: Decision) -> str:
    """How far the number that would settle it can be off: the observed difference is an estimate too."""
    if one.settling_range is None:
        return ""
    fewest, most = one.settling_range
    return f" (from {fewest:,} to {'any number' if most is None else f'{most:,}'}, as the difference is as uncertain)"


def _points(interval: Interval | None) -> str:
    return "unknown" if interval is None else f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"
