"""`harness run`: makes `RunOptions` of the command line, and prints how the session ended."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from harness.asking.options import RunOptions
from harness.asking.options.headings import OUTPUT
from harness.asking.options.verbs import SpreadRunOptions
from harness.cli import flags, terminal
from harness.cli.flags import FIRST, give, judge_of, run_given, run_options
from harness.cli.help import Helping, under
from harness.cli.json_output import json_option, say
from harness.core.errors import EXIT_COMPLETE, EXIT_OWED, StoppedByRule, UsageError
from harness.core.inert import visible
from harness.core.nouns import are, count_noun
from harness.core.secret import command_words
from harness.runs.layout import RunFolder

if TYPE_CHECKING:
    from harness.asking.options import JudgeOptions
    from harness.asking.session import Ran
    from harness.cli.printed.ends import SessionEnd
    from harness.core.money import Prices
    from harness.generation.outcome import Outcome

SHOWN_CAUSES = 5

F = TypeVar("F", bound=Callable[..., Any])


_END_FLAGS = under(
    OUTPUT,
    json_option("harness.cli.printed.ends:SessionEnd", "how the session ended"),
    click.option("--dry-run", is_flag=True, help="Show every setting and the first prompt; request no sample."),
    click.option("--score", "scores", is_flag=True, help="Score while sampling, in a process of its own."),
)


def _end_flags(function: F) -> F:
    """A decorator that gives the command the flags in `_END_FLAGS`."""
    return give(function, *_END_FLAGS)


@click.command("run", cls=Helping, verb="run", first=(*FIRST, "judge"))
@click.argument("benchmarks", required=False)
@_end_flags
@run_options(SpreadRunOptions)
@flags.judge_option
@flags.env_file_option
def command(dry_run: bool, scores: bool, as_json: bool, on: str | None, **given: Any) -> None:
    """Sample completions for BENCHMARK[,BENCHMARK...] (NAME, NAME:SAMPLES, a card's file,
    hf://datasets/OWNER/NAME with an eval.yaml, or the file of a sweep of one cell) into a run folder.

    The same command again asks only for what is missing; more --samples extend the run. Score it with
    `harness score RUN_FOLDER`. A judge that will score the run is tried on two answers before the first request; if the
    judge does not answer, nothing is sampled.

    \b
    harness run aime24:64 --model Qwen/QwQ-32B --base-url http://127.0.0.1:8000
    harness run aime24:64 --serve vllm --model Qwen/QwQ-32B --serve-option tp=8
    harness run --data questions.jsonl --question-key Problem --answer-key Answer
    harness run one-cell.yaml
    """
    with terminal.stopped_with_a_line():
        _command(dry_run, scores, as_json, on, given)


def _command(dry_run: bool, scores: bool, as_json: bool, on: str | None, given: dict[str, Any]) -> None:
    """Carry out the command; the parameters are those of `command`."""
    from harness.cli.dry_run import show

    if former := next((name for name in os.environ if name.startswith("HARNESS_RUN_")), None):
        raise UsageError(
            f"{visible(former, 100)} sets no option any more: type it, or write it into a sweep's file of one cell"
        )
    if as_json and dry_run:
        raise UsageError("--json prints how a session ended: leave out --dry-run")
    if scores and on is not None:
        raise UsageError("--score does not work with --on: leave one of them out")
    options = _of_file(given) or RunOptions.of(**run_given(given))
    judge = judge_of(given["judge"])
    if dry_run:
        show(options, on, judge)
    else:
        _run(options, on, judge, scores=scores, as_json=as_json)


def _run(options: RunOptions, on: str | None, judge: JudgeOptions | None, *, scores: bool, as_json: bool) -> NoReturn:
    """Run the benchmarks, with progress in the terminal; print how the session ended, and exit with its code.

    scores: score the run meanwhile; the tables stand at the end.
    """
    from harness.cli.following import ScoredTerminal
    from harness.cli.terminal import Terminal
    from harness.verbs.run import run_at

    with ScoredTerminal() if scores else Terminal() as watcher:
        ran = run_at(on, options, watcher, judge)
    for sentence in watcher.advice if ran.sampled.outcome.tally.finished else ():
        terminal.warn(sentence)
    code = _print_end(ran)
    if isinstance(watcher, ScoredTerminal):
        tables = watcher.tables()
        click.echo(tables, nl=False, err=as_json)
    if as_json:
        say(_record(ran, code))
    sys.exit(code)


def _of_file(given: dict[str, Any]) -> RunOptions | None:
    """The options of the only cell, if the argument BENCHMARKS is a sweep's file; else None."""
    path = Path(given["benchmarks"] or "")
    # A list of cards' files, `a.yaml,b.yaml`, ends as one file does.
    if path.suffix not in (".yaml", ".yml") or ("," in str(path) and not path.exists()):
        return None
    from harness.cli.flags import typed_parameters
    from harness.verbs.sweep import cells, file, whole

    if not file.is_sweep(path):
        return None
    return cells.only_run(whole.plan_of(str(path), run_given(typed_parameters(given)), {}))


def _print_end(ran: Ran) -> int:
    """Print how the session ended and what to do next. Returns the exit code."""
    sampled = ran.sampled
    if not (sampled.reached or sampled.missed):
        return _print_outcome(sampled.outcome, ran.folder, ran.prices)
    _summary(sampled.outcome, ran.prices)
    if sampled.reached:
        terminal.note(f"target reached: {sampled.reached}")
    else:
        click.echo(f"harness: target missed: {sampled.missed}", err=True)
    _say_score(ran.folder)
    return EXIT_COMPLETE if sampled.reached else StoppedByRule.exit_code


def _say_score(folder: Path) -> None:
    """Print the command that scores the run, with the judge that was tried; nothing if the run is scored already."""
    typed = click.get_current_context().params
    words = [] if typed["judge"] is None else ["--judge", typed["judge"]]
    if not typed["scores"]:
        run = RunFolder(folder).run_of_shard()
        scored = str(folder if run is None else run.path)
        terminal.note(f"score them with: {shlex.join(['harness', 'score', scored, *command_words(words)])}")


def _record(ran: Ran, code: int) -> SessionEnd:
    """The session's end as `--json` prints it. code: the exit code."""
    from harness.cli.printed.ends import CauseCount, SampleCounts, SessionEnd

    sampled, outcome = ran.sampled, ran.sampled.outcome
    return SessionEnd(
        run=str(ran.folder),
        model=ran.model,
        exit_code=code,
        complete=outcome.complete,
        samples=SampleCounts(
            expected=outcome.n_expected,
            done=outcome.n_done,
            owed=outcome.n_owed,
            accepted_as_missing=outcome.n_missing,
            this_session=outcome.tally.finished,
            truncated_this_session=outcome.tally.truncated,
        ),
        new_tokens=outcome.tally.tokens,
        seconds=outcome.elapsed_s,
        causes=[CauseCount(kind=one.kind, count=one.count, example=one.example) for one in outcome.causes],
        warnings=[*outcome.warnings],
        stopped=outcome.stopped,
        target_reached=sampled.reached,
        target_missed=sampled.missed,
    )


def _summary(outcome: Outcome, prices: Prices | None) -> None:
    """Print the samples, tokens and oddities of the session."""
    from harness.generation.dispatch.canary import MIN_DUPLICATE_CHARS
    from harness.generation.spending import Spent
    from harness.showing.lines import continued_in_words, duration

    for warning in outcome.warnings:
        terminal.warn(warning)
    repeating = (
        f"repeating word by word an earlier reply of {MIN_DUPLICATE_CHARS} characters or more to the same question"
    )
    tally = outcome.tally
    if tally.finished:
        terminal.note(
            f"{count_noun(tally.finished, 'sample')} in {duration(outcome.elapsed_s)}, "
            f"{count_noun(tally.tokens, 'new token')}"
            f" ({tally.tokens / max(outcome.elapsed_s, 1e-9):,.0f} tokens/s)"
        )
        for n, what in (
            (tally.truncated, "truncated"),
            (tally.loops, "ending in a loop of the same words"),
            (tally.duplicates, repeating),
        ):
            if n:
                terminal.note(f"  {n} of them {what} ({n / tally.finished:.1%})")
        if outcome.progress is not None and outcome.progress.failed:
            kinds = ", ".join(f"{failure.count} × {failure.kind}" for failure in outcome.progress.failed)
            terminal.note(f"  besides, {count_noun(outcome.progress.failures, 'failed request')}: {kinds}")
        if tally.continued:
            terminal.note(f"  {continued_in_words(tally.continued, tally.kept_tokens)}")
        if prices is not None:
            terminal.note(f"this session: {outcome.spent.sentence(prices)}")
    if prices is not None and outcome.spent_before != Spent():
        terminal.note(f"all sessions: {outcome.spent.plus(outcome.spent_before).sentence(prices)}")


def _print_outcome(outcome: Outcome, out: Path, prices: Prices | None) -> int:
    """Print how a session without a target ended, and what to do next. Returns the exit code."""
    _summary(outcome, prices)
    for cause in outcome.causes[:SHOWN_CAUSES]:
        click.echo(f"harness: {cause}", err=True)
    if outcome.complete:
        missing = f" ({outcome.n_missing} can never succeed and are accepted as missing)" if outcome.n_missing else ""
        what = "complete" if outcome.tally.finished else "no sample is missing"
        terminal.note(f"{what}: {outcome.n_done} of {count_noun(outcome.n_expected, 'sample')}{missing}")
        _say_score(out)
        return EXIT_COMPLETE
    why = f" ({outcome.stopped})" if outcome.stopped else ""
    owed = f"{outcome.n_owed} of {count_noun(outcome.n_expected, 'sample')} {are(outcome.n_owed)} missing{why}"
    is_final = outcome.causes and all(cause.kind in ("too_long", "rejected") for cause in outcome.causes)
    how = "command again with a max_tokens or a field that the server accepts" if is_final else "same command again"
    click.echo(f"harness: {owed}; give the {how} to request them", err=True)
    return EXIT_OWED
