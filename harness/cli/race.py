"""`harness race`: samples candidates in whole rounds until it is clear which is better."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import click

from harness.cli import terminal
from harness.cli.flags import run_given
from harness.cli.json_output import say
from harness.cli.printed.scores import RaceEnd
from harness.core import codec
from harness.core.errors import EXIT_COMPLETE, EXIT_INCOMPLETE, UsageError
from harness.core.inert import quoted, visible
from harness.core.nouns import count_noun, in_points
from harness.deciding.race import RaceStanding
from harness.gates.race import Raced, race
from harness.gates.race import candidates as candidates_of
from harness.options.deciding import RaceRules
from harness.options.run import RaceCommand


def carry_out(options: RaceCommand) -> int:
    """Race the candidates, and print how it ended. Returns the exit code."""
    with terminal.stopped_with_a_line():
        return _race(options)


def _race(options: RaceCommand) -> int:
    """Run the race; print the result on standard output, and warnings and missing samples on standard error."""
    entrants = candidates_of([_name_and_options(text) for text in options.candidates], run_given(options))
    with terminal.Terminal() as watcher:
        raced = race(entrants, options.narrowed(RaceRules), watcher, _print_look)
    code = EXIT_COMPLETE if raced.decided else EXIT_INCOMPLETE
    if options.as_json:
        say(_record(raced, code))
    else:
        _closing(raced)
    for name, warnings in raced.warnings.items():
        for warning in warnings:
            terminal.warn(f"{visible(name)} against {visible(raced.baseline)}: {warning}")
    if raced.missing:
        click.echo(f"harness: {raced.missing}; run the same command again to request them", err=True)
    return code


def _name_and_options(text: str) -> tuple[str, dict[str, Any]]:
    """Split a race candidate, `NAME KEY=VALUE …`, into its name and options. Raises a `UsageError` that names the wrong
    word.
    """
    try:
        name, *words = shlex.split(text) or [""]
    except ValueError as error:  # The text contains an unclosed quote.
        raise UsageError(f"expected NAME KEY=VALUE …: {error}", field="candidates", value=text) from error
    if not name:
        raise UsageError("expected NAME KEY=VALUE …, but the name is missing", field="candidates", value=text)
    own: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"expected KEY=VALUE, found {quoted(word)!r}", field="candidates", value=text)
        try:
            own[key] = codec.decode(value)
        except codec.DecodeError:
            own[key] = value
    return name, own


def _print_look(standings: Mapping[str, RaceStanding]) -> None:
    """Print how each candidate compares with the baseline at an interim look."""
    for name, state in standings.items():
        if state.rounds:
            click.echo(f"  {visible(name)}: {_in_words(state)}", err=True)


def _in_words(state: RaceStanding) -> str:
    """A comparison in words: `+1.2 points after 16 rounds, between -0.4 and +2.8: undecided`."""
    between = " and ".join(in_points(end) for end in state.interval)
    why = f" ({state.withheld})" if state.withheld else ""
    after = count_noun(state.rounds, "round")
    return f"{in_points(state.difference)} points after {after}, between {between}: {state.verdict}{why}"


def _record(raced: Raced, code: int) -> RaceEnd:
    """The result of the race, as `--json` prints it. code: the exit code."""
    return RaceEnd(
        baseline=raced.baseline,
        exit_code=code,
        decided=raced.decided,
        standings=dict(raced.standings),
        samples=dict(raced.n_rounds),
        folders={name: str(path) for name, path in raced.folders.items()},
    )


def _closing(raced: Raced) -> None:
    """Print the verdict on each candidate, the samples used, and the folders of the runs."""
    for name, state in raced.standings.items():
        click.echo(f"{visible(name)} against {visible(raced.baseline)}: {_in_words(state)}")
    used = ", ".join(f"{visible(name)} {n}" for name, n in raced.n_rounds.items())
    click.echo(f"samples per question: {used}")
    for name, path in raced.folders.items():
        click.echo(f"  {visible(name)}: {visible(str(path))}")
