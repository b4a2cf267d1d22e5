"""`harness gate`: whether a model still reaches its floors."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import terminal
from harness.cli.help import Helping
from harness.cli.json_output import json_option, say
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.nouns import count_noun, in_percent

if TYPE_CHECKING:
    from harness.verbs.gate.decide import Gated
    from harness.verbs.gate.running import Expected


@click.command("gate", cls=Helping)
@click.argument("policy", required=False, type=click.Path(path_type=Path))
@click.argument("runs", nargs=-1, metavar="[RUN]...", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of the new run, or of the files about runs that exist. The same folder continues. Default: "
    "results/gate-NAME, or the first RUN.",
)
@click.option("--dry-run", is_flag=True, help="Say what the gate will cost and find, by simulation; send no request.")
@click.option("--example", is_flag=True, help="Print a policy with comments, to be edited.")
@json_option("harness.verbs.gate.decide:Gated", "the decision (gate.json)")
def command(
    policy: Path | None, runs: tuple[Path, ...], out: Path | None, dry_run: bool, example: bool, as_json: bool
) -> None:
    """Say whether a model still reaches the floors of POLICY, a YAML file, within a promised rate of false alarms.

    Without RUN the benchmarks are sampled in rounds until each is decided or has used its samples; with RUN, scored
    runs that exist are looked at. gate.json, gate.md, gate.xml (JUnit) and gate.html (the run chart) are written, and
    a line is added to the policy's history. Exit code 0: pass. 1: a critical benchmark fails. 4: undecided, or samples
    are missing.

    \b
    harness gate --example > gate.yaml
    harness gate gate.yaml --dry-run
    harness gate gate.yaml --out results/gate-4f2c
    harness gate gate.yaml results/nightly
    """
    from harness.verbs.gate import policy as policies
    from harness.verbs.gate import running, written

    if example:
        click.echo(policies.EXAMPLE.read_text(encoding="utf-8"), nl=False)
        return
    if policy is None:
        raise UsageError("name the policy's file; `harness gate --example` prints one")
    read = policies.read(policy)
    if dry_run:
        _foretell(running.expected(read))
        return
    with terminal.stopped_with_a_line():
        if runs:
            gated = running.gate_runs(read, runs)
        else:
            out = out or Path("results", f"gate-{read.name}")
            with terminal.Terminal(warned=Counter()) as watcher:
                gated = running.run_gate(read, out, watcher, _look)
    folder = out or (runs[0] if runs[0].is_dir() else runs[0].parent)
    folder.mkdir(parents=True, exist_ok=True)
    written.write(read, gated, folder)
    if as_json:
        say(gated)
    else:
        for check in gated.checks:
            click.echo(f"{visible(check.benchmark)} ({check.tier}): {check.state}: {visible(check.why)}")
        click.echo(f"gate {gated.gate}: {gated.verdict}")
    sys.exit(gated.exit_code)


def _look(gated: Gated) -> None:
    """Print the state of each benchmark that has rounds at a look."""
    for check in gated.checks:
        if check.rounds:
            click.echo(
                f"  {visible(check.benchmark)}: {check.state} after {check.rounds:g} round{'s' * (check.rounds != 1)}",
                err=True,
            )


def _foretell(benchmarks: list[Expected]) -> None:
    """Print what the gate will cost and find."""
    from harness.cli.forecast import forecast_lines

    for each in benchmarks:
        seen, n = each.forecast, each.n_questions
        known = f"learnt from {each.deviation.known} runs" if each.deviation.known else "stated by the policy"
        click.echo(
            f"{visible(each.benchmark)}: {count_noun(n, 'question')}; samples: {seen.rounds * n:,.0f} if all is well, "
            f"{seen.rounds_of_loss * n:,.0f} if the loss is there, {each.max_rounds * n:,} at most"
        )
        for which, (ahead, concurrency) in zip(("if all is well", "at most"), each.ahead, strict=False):
            if ahead is not None:
                click.echo(f"  {which}: {'; '.join(line.strip() for line in forecast_lines(ahead, concurrency))}")
        click.echo(
            f"  by simulation: a false alarm in {in_percent(seen.false_alarm)}%, a pass in {in_percent(seen.passes)}% "
            f"if all is well; the loss is found in {in_percent(seen.power)}%"
        )
        least = "no loss" if seen.findable is None else f"a loss of {in_percent(seen.findable)} points"
        click.echo(
            f"  runs differ by sd {in_percent(each.deviation.sd)} points beyond sampling ({known}): with so many "
            f"samples {least} can be found as often as wanted"
        )
