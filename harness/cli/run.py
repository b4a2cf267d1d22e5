"""`harness run`: makes `RunOptions` from the command line, and prints how the session ended."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import msgspec

from harness.cli import terminal
from harness.cli.flag_spelling import as_typed
from harness.cli.flags import judge_of, typed_run_options
from harness.cli.follower import ScoredTerminal
from harness.cli.json_output import print_json
from harness.commands.run import run_at
from harness.core import yaml_file
from harness.core.errors import Exit, UsageError
from harness.core.number_text import count_noun, duration, is_are
from harness.core.sanitize import visible
from harness.core.secret import command_words
from harness.generation.dispatch.retry import Cause
from harness.generation.outcome import Outcome
from harness.generation.run_progress import Spent
from harness.options.judge import JudgeOptions
from harness.options.run import RunCommand, RunOptions
from harness.runs.layout import RunFolder

SHOWN_CAUSES = 5
"""Largest number of causes of missing samples to print."""


class SampleCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Sample counts."""

    expected: int
    """Number of planned samples."""
    done: int
    """Number of samples on disk."""
    missing: int
    """Number of missing samples."""
    accepted_as_missing: int
    """Number of missing samples that can never succeed."""
    this_session: int
    """Number of samples finished in this session."""
    truncated_this_session: int
    """Number of samples finished in this session that were truncated by max_tokens."""


class SessionEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one session of a run."""

    run: str
    """Run folder."""
    model: str
    """Name of the model."""
    exit_code: int
    """Exit code of the command."""
    complete: bool
    """Whether all planned samples are present."""
    samples: SampleCounts
    """Sample counts."""
    new_tokens: int
    """Completion tokens generated in this session, as reported by the servers."""
    seconds: float
    """Duration of the session, in seconds."""
    causes: list[Cause]
    """Reasons why samples are missing."""
    warnings: list[str]
    """Warnings to show with a score."""
    stopped: str
    """Why the session ended early; otherwise empty."""
    target_reached: str
    """Message saying that the `--target-error` target was reached; otherwise empty."""
    target_missed: str
    """Message saying that the `--target-error` target was not reached; empty if it was reached or no target is set."""


def carry_out(options: RunCommand) -> int:
    """Run the benchmarks, or show what a run would send. Returns the exit code."""
    with terminal.stopped_with_a_line():
        _refuse_sweep(options)
        run_options, judge = RunOptions(**typed_run_options(options)), judge_of(options.judge)
        if not options.dry_run:
            return _run(options, run_options, judge)
        from harness.cli import dry_run  # not needed for a real run

        dry_run.show(run_options, options.on, judge)
        return Exit.YES


def _run(options: RunCommand, run_options: RunOptions, judge: JudgeOptions | None) -> int:
    """Run the benchmarks with progress in the terminal, and print how the session ended. Returns the exit code."""
    with ScoredTerminal() if options.scores else terminal.Terminal() as watcher:
        outcome = run_at(options.on, run_options, watcher, judge)
    for sentence in watcher.advice if outcome.tally.finished else ():
        terminal.warn(sentence)
    code = _print_end(outcome, options)
    if isinstance(watcher, ScoredTerminal):
        watcher.print_tables(stderr=options.as_json)
    if options.as_json:
        print_json(_record(outcome, code))
    return code


def _refuse_sweep(options: RunCommand) -> None:
    """Raise `UsageError` if the argument BENCHMARKS is a sweep file."""
    path = Path(",".join(options.benchmarks))
    # A list of card files, `a.yaml,b.yaml`, ends like a single file.
    if path.suffix not in (".yaml", ".yml") or ("," in str(path) and not path.exists()):
        return
    if not {"benchmarks", "extends"}.isdisjoint(yaml_file.read_mapping(path, "a sweep or a card")):
        raise UsageError(f"{visible(str(path), 200)} is a sweep file: run it with `harness sweep`")


def _print_end(outcome: Outcome, options: RunCommand) -> int:
    """Print how the session ended and what to do next. Returns the exit code."""
    _summary(outcome)
    if not (outcome.reached or outcome.missed):
        return _print_outcome(outcome, options)
    if outcome.reached:
        terminal.note(f"target reached: {outcome.reached}")
    else:
        click.echo(as_typed(f"harness: target missed: {outcome.missed}"), err=True)
    _print_score_command(outcome.folder, options)
    return Exit.YES if outcome.reached else Exit.CANNOT_SAY


def _print_score_command(folder: Path, options: RunCommand) -> None:
    """Print the command that scores the run, with the judge that was tried; print nothing if the run is already
    scored.
    """
    words = [] if options.judge is None else ["--judge", options.judge]
    if not options.scores:
        run = RunFolder(folder).run_of_shard()
        scored = str(folder if run is None else run.path)
        terminal.note(f"score them with: {shlex.join(['harness', 'score', scored, *command_words(words)])}")


def _record(outcome: Outcome, code: int) -> SessionEnd:
    """The result of the session, as `--json` prints it. code: the exit code."""
    return SessionEnd(
        run=str(outcome.folder),
        model=outcome.model,
        exit_code=code,
        complete=outcome.complete,
        samples=SampleCounts(
            expected=outcome.n_expected,
            done=outcome.n_done,
            missing=outcome.n_missing,
            accepted_as_missing=outcome.n_impossible,
            this_session=outcome.tally.finished,
            truncated_this_session=outcome.tally.truncated,
        ),
        new_tokens=outcome.tally.tokens,
        seconds=outcome.elapsed_s,
        causes=[*outcome.causes],
        warnings=[*outcome.warnings],
        stopped=outcome.stopped,
        target_reached=outcome.reached,
        target_missed=outcome.missed,
    )


def _summary(outcome: Outcome) -> None:
    """Print the session's samples, tokens, and anomalies."""
    for warning in outcome.warnings:
        terminal.warn(warning)
    tally, prices = outcome.tally, outcome.prices
    if tally.finished:
        terminal.note(
            f"{count_noun(tally.finished, 'sample')} in {duration(outcome.elapsed_s)}, "
            f"{count_noun(tally.tokens, 'new token')}"
            f" ({tally.tokens / max(outcome.elapsed_s, 1e-9):,.0f} tokens/s)"
        )
        if tally.truncated:
            terminal.note(f"  {tally.truncated} of them truncated ({tally.truncated / tally.finished:.1%})")
        if outcome.progress is not None and outcome.progress.failed:
            kinds = ", ".join(f"{failure.count} × {failure.kind}" for failure in outcome.progress.failed)
            terminal.note(f"  besides, {count_noun(outcome.progress.failures, 'failed request')}: {kinds}")
        if prices is not None:
            terminal.note(f"this session: {outcome.spent.sentence(prices)}")
    if prices is not None and outcome.spent_before != Spent():
        terminal.note(f"all sessions: {outcome.spent.add(outcome.spent_before).sentence(prices)}")


def _print_outcome(outcome: Outcome, options: RunCommand) -> int:
    """Print how a session without a target ended, and what to do next. Returns the exit code."""
    for cause in outcome.causes[:SHOWN_CAUSES]:
        click.echo(as_typed(f"harness: {cause}"), err=True)
    if outcome.complete:
        missing = f" ({outcome.n_impossible} can never succeed and are allowed to be missing)" * bool(
            outcome.n_impossible
        )
        what = "complete" if outcome.tally.finished else "no samples are missing"
        terminal.note(f"{what}: {outcome.n_done} of {count_noun(outcome.n_expected, 'sample')}{missing}")
        _print_score_command(outcome.folder, options)
        return Exit.YES
    why = f" ({outcome.stopped})" if outcome.stopped else ""
    lost, why = outcome.n_missing, why + (outcome.advice and f"; {outcome.advice}")
    click.echo(f"harness: {lost} of {count_noun(outcome.n_expected, 'sample')} {is_are(lost)} missing{why}", err=True)
    return Exit.CANNOT_SAY
