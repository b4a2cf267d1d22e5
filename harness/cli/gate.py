"""`harness gate`: checks whether a model still reaches its floors."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click

from harness.cli import terminal
from harness.cli.json_output import print_json
from harness.cli.plan import forecast_lines
from harness.core.errors import Exit, UsageError
from harness.core.number_text import count_noun, count_points, in_percent
from harness.core.sanitize import visible
from harness.gates import execution, output
from harness.gates import policy as policies
from harness.gates.decision import Gated
from harness.gates.execution import Expected
from harness.options.decisions import GateCommand

COMMIT = ("GITHUB_SHA", "CI_COMMIT_SHA")
"""Environment variables in which a CI system provides the commit: GitHub, GitLab."""

COMMIT_CHARS = 12
"""Number of characters of the commit used as a folder name."""


def carry_out(options: GateCommand) -> int:
    """Gate the model, or print what that would cost. Returns the exit code."""
    if options.example:
        click.echo(policies.EXAMPLE.read_text(encoding="utf-8"), nl=False)
        return Exit.YES
    if options.policy is None:
        raise UsageError("specify a policy file (`harness gate --example` prints an example)")
    read = policies.read(options.policy)
    if options.dry_run:
        with terminal.Terminal() as watcher:
            return _print_forecast(read, execution.simulate_policy(read, watcher), execution.expected_lines(read))
    if options.forget:
        n = output.forget(read, options.forget)
        click.echo(f"{count_noun(n, 'run')} of the history will be ignored by later decisions")
        return Exit.YES
    out, runs, changes = options.out, options.runs, list[str]()
    with terminal.stopped_with_a_line():
        if runs:
            gated = execution.gate_runs(read, runs)
            run = runs[0]  # without --out, the gate's files go into the first run's folder
            folder = out or (run if run.is_dir() else run.parent)
        else:
            commit = next(filter(None, map(os.environ.get, COMMIT)), "")[:COMMIT_CHARS]
            folder = out or execution.new_folder(read, datetime.now(UTC), commit)
            # The gate samples several times; sharing a terminal prints a repeated warning only once.
            with terminal.Terminal() as watcher:
                gated = execution.run_gate(read, folder, execution.with_watcher(watcher), _print_states)
    folder.mkdir(parents=True, exist_ok=True)
    if not runs and output.read_decision(folder) == gated:
        click.echo(
            f"this gate has already been decided by samples of {visible(gated.sampled)}; for a new gate, use another "
            "folder or omit --out",
            err=True,
        )
    else:
        changes = output.write(read, gated, folder)
    if options.as_json:
        print_json(gated)
    else:
        click.echo(gated.sentence)
        for check in gated.lines:
            click.echo(f"  {visible(check.label)} ({check.tier}): {check.state}: {visible(check.why)}")
        for sentence in changes:
            click.echo(f"  {visible(sentence)}")
        click.echo(f"written to {visible(str(folder))}")
    return gated.exit_code


def _print_states(gated: Gated) -> None:
    """Print the state of each benchmark that has graded samples; called after each look at the data."""
    for check in gated.checks:
        if check.rounds:
            rounds = f"{check.rounds:g} {'round' if check.rounds == 1 else 'rounds'}"
            click.echo(f"  {visible(check.label)}: {check.state} after {rounds}", err=True)


def _print_forecast(policy: policies.Policy, benchmarks: list[Expected], lines: list[tuple[str, bool]]) -> int:
    """Print what the gate will cost and detect. lines: lines about its measures, each with whether the measure detects
    its loss. Returns the exit code.
    """
    for each in benchmarks:
        seen = each.forecast  # by simulation
        n = each.n_questions
        click.echo(
            f"{visible(each.label)}: {count_noun(n, 'question')}; expected samples: {seen.rounds * n:,.0f} if "
            f"there is no loss, {seen.rounds_of_loss * n:,.0f} if there is a loss; at most {each.max_rounds * n:,}"
        )
        for which, (ahead, concurrency) in zip(("without a loss", "at most"), each.ahead, strict=False):
            if ahead is not None:
                click.echo(f"  {which}: {'; '.join(line.strip() for line in forecast_lines(ahead, concurrency))}")
        click.echo(
            f"  in simulations: without a loss, {in_percent(seen.false_alarm)}% false alarms and "
            f"{in_percent(seen.passes)}% passes; a loss of {count_points(in_percent(each.loss))} is detected in "
            f"{in_percent(seen.power)}% of cases"
        )
        click.echo(
            "  deviation between runs beyond sampling error: "
            f"SD {policy.run_deviation:g} points (from the policy); "
            f"at twice this value, {in_percent(seen.alarm_if_twice)}% false alarms"
        )
        if each.known_runs:
            click.echo(f"  earlier runs in the accepted state: {each.known_runs}")
        if each.mend:
            click.echo(f"  the power is below {policy.power:g}%{each.mend}")
    for sentence, finds in lines:
        click.echo(
            f"{visible(sentence)}{'' if finds else f'; its loss is detected in less than {policy.power:g}% of cases'}"
        )
    found = all(finds for _, finds in lines) and not any(each.mend for each in benchmarks)
    return Exit.YES if found else Exit.NO
