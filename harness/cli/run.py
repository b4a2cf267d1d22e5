"""`harness run`: from the command line to `RunOptions`, and how the session ended."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from harness.cli import terminal
from harness.cli.run_options import run_options
from harness.cli.server_options import with_server
from harness.cli.spelling import Command, spelt
from harness.core.errors import EXIT_COMPLETE, EXIT_OWED, StoppedByRule
from server_launchers.command_line import server_options

if TYPE_CHECKING:
    from harness.experiments.session import Sampled
    from harness.generation.outcome import Outcome
    from harness.generation.settings import RunSettings

SHOWN_CAUSES = 5


@click.command("run", cls=Command)
@click.argument("benchmarks", required=False)
@run_options
@server_options(hidden=True)
def command(dry_run: bool, pilot: bool, progress: bool, quiet: bool, **given: Any) -> None:
    """Sample completions for BENCHMARK[,BENCHMARK...] (NAME, NAME:SAMPLES or a card's file) into a run folder.

    The same command again asks only for what is missing; more --samples extend the run. Score it with
    `harness score RUN_FOLDER`.

    \b
    harness run aime24:64 --model Qwen/QwQ-32B --base-url http://127.0.0.1:8000
    harness run aime24:64 --serve vllm --model Qwen/QwQ-32B --tp 8
    harness run --data questions.jsonl --question-key Problem --answer-key Answer
    """
    from harness.cli.watching import Terminal
    from harness.experiments.options import RunOptions
    from harness.experiments.prepare import prepare, questions_of, server_of
    from harness.experiments.sample import sample

    options = RunOptions.of(**with_server(given, given.pop("serve")))
    if dry_run and options.serve is not None:
        from harness.cli.serve import plan_lines

        for line in plan_lines(server_of(questions_of(options, Terminal()))):
            click.echo(line)
        return
    with (
        Terminal(progress=progress and not quiet) as watcher,
        prepare(options, watcher, must_answer=dry_run) as prepared,
    ):
        if dry_run:
            from harness.cli import dry_run as settings_table

            settings_table.show(prepared.settings, prepared.sets, prepared.contexts)
            return
        if not pilot:
            sys.exit(_closing(sample(prepared, watcher), prepared.settings))
        from harness.cli.pilot import lines
        from harness.experiments.pilot import pilot as take_pilot

        piloted = take_pilot(prepared, watcher)
        code = _ending(piloted.outcome, prepared.settings)
        for line in lines(piloted):
            click.echo(line)
        terminal.note("the same command without --pilot goes on from here")
        sys.exit(code)


def _closing(sampled: Sampled, settings: RunSettings) -> int:
    """Say how the session ended and what to do next. Returns the exit code."""
    if not (sampled.reached or sampled.missed):
        return _ending(sampled.outcome, settings)
    _summary(sampled.outcome, settings)
    if sampled.reached:
        terminal.note(f"target reached: {sampled.reached}")
    else:
        click.echo(f"harness: target missed: {spelt(sampled.missed)}", err=True)
    terminal.note(f"score them with: harness score {shlex.quote(str(settings.out))}")
    return EXIT_COMPLETE if sampled.reached else StoppedByRule.exit_code


def _summary(outcome: Outcome, settings: RunSettings) -> None:
    """Say what the session brought."""
    from harness.cli.progress import duration

    for warning in outcome.warnings:
        terminal.warn(warning)
    if outcome.n_session:
        terminal.note(
            f"{outcome.n_session} samples in {duration(outcome.elapsed_s)}, {outcome.tokens:,} new tokens"
            f" ({outcome.tokens / max(outcome.elapsed_s, 1e-9):,.0f} tokens/s)"
        )
        for n, what in (
            (outcome.n_truncated, "truncated"),
            (outcome.n_loops, "ending in a loop of the same words"),
            (outcome.n_duplicates, "repeating another reply to the same question word by word"),
        ):
            if n:
                terminal.note(f"  {n} of them {what} ({n / outcome.n_session:.1%})")
        if settings.prices is not None:
            terminal.note(f"this session: {outcome.spent.sentence(settings.prices)}")


def _ending(outcome: Outcome, settings: RunSettings) -> int:
    """Say how a session without a target ended and what to do next. Returns the exit code."""
    from harness.experiments.session import with_suggestion

    _summary(outcome, settings)
    for cause in outcome.causes[:SHOWN_CAUSES]:
        click.echo(f"harness: {spelt(with_suggestion(str(cause)))}", err=True)
    if outcome.complete:
        missing = f" ({outcome.n_missing} can never succeed and are accepted as missing)" if outcome.n_missing else ""
        what = "complete" if outcome.n_session else "nothing is owed"
        terminal.note(f"{what}: {outcome.n_done} of {outcome.n_expected} samples{missing}")
        terminal.note(f"score them with: harness score {shlex.quote(str(settings.out))}")
        return EXIT_COMPLETE
    why = f" ({spelt(outcome.stopped)})" if outcome.stopped else ""
    owed = f"{outcome.n_owed} of {outcome.n_expected} samples are owed{why}"
    click.echo(f"harness: {owed}; the same command asks for them again", err=True)
    return EXIT_OWED
