"""`harness race`: sample candidates in whole rounds until it is clear which is better."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click

from harness.asking.options import RaceRules
from harness.asking.options.verbs import RaceOptions
from harness.cli import terminal
from harness.cli.flags import FIRST, run_given, run_options
from harness.cli.help import Helping
from harness.cli.json_output import json_option, say
from harness.core.errors import EXIT_COMPLETE, EXIT_OWED, UsageError
from harness.core.inert import quoted, visible
from harness.core.nouns import count_noun, in_points

if TYPE_CHECKING:
    from harness.cli.printed.ends import RaceEnd
    from harness.scoring.race import RaceState
    from harness.verbs.race import Raced


_FIRST = ("candidates", "margin", "step", "as_json", *FIRST)


@click.command("race", cls=Helping, verb="race", first=_FIRST)
@click.argument("benchmarks", metavar="BENCHMARK", required=False)
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    metavar="'NAME KEY=VALUE …'",
    help="A candidate with its own options of a run, by their names in Python. The first is the baseline.",
)
@json_option("harness.cli.printed.ends:RaceEnd", "how it ended")
@run_options(RaceOptions)
def command(
    candidates: tuple[str, ...],
    margin: float | None,
    step: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Sample BENCHMARK with each candidate, round by round, until it is clear how each compares with the first one.

    A candidate is a name with options of its own; all other options hold for every candidate. A round is one sample of
    each question, and --samples is the largest number of rounds. After every --step rounds the candidates are compared
    (a look); in 95 % of races no verdict of any look is false. The looks are fixed at the start.
    Verdicts: better, worse, equal within the margin, undecided. An early "better" or "worse" is checked
    by half as many rounds again, and withheld if those rounds contradict the verdict. The run folders are in --out, and
    the same command continues the race.

    \b
    harness race aime24:64 --base-url http://127.0.0.1:8000 --margin 1 --out races/temperature \\
        --candidate 'cool temperature=0.6' --candidate 'hot temperature=1.0'
    harness race aime24:64 --out races/tuned --candidate 'base model=org/base base_url=http://a:8000' \\
        --candidate 'tuned model=org/tuned base_url=http://b:8000'
    """
    with terminal.stopped_with_a_line():
        _command(candidates, RaceRules.of(margin=margin, step=step), as_json, given)


def _command(candidates: tuple[str, ...], rules: RaceRules, as_json: bool, given: dict[str, Any]) -> NoReturn:
    """Carry out the command; the parameters are those of `command`."""
    from harness.cli.terminal import Terminal
    from harness.verbs.race import candidates as candidates_of
    from harness.verbs.race import race

    entrants = candidates_of([_own(text) for text in candidates], run_given(given))
    with Terminal() as watcher:
        raced = race(entrants, rules, watcher, partial(_look, {}))
    code = EXIT_COMPLETE if raced.decided else EXIT_OWED
    if as_json:
        say(_record(raced, code))
    else:
        _closing(raced)
    for name, warnings in raced.warnings.items():
        for warning in warnings:
            terminal.warn(f"{visible(name)} beside {visible(raced.baseline)}: {warning}")
    if raced.owed:
        click.echo(f"harness: {raced.owed}; give the same command again to request them", err=True)
    sys.exit(code)


def _own(text: str) -> tuple[str, dict[str, Any]]:
    """Split `NAME KEY=VALUE …`, a candidate of a race, into its name and options. Raises `UsageError` that names the
    wrong word.
    """
    from harness.core import codec

    try:
        name, *words = shlex.split(text) or [""]
    except ValueError as error:  # A quote in the text is not closed.
        raise UsageError(f"expected NAME KEY=VALUE …: {error}", field="candidates", value=text) from error
    if not name:
        raise UsageError("expected NAME KEY=VALUE …, found no name", field="candidates", value=text)
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


def _look(printed: dict[str, str], standings: Mapping[str, RaceState]) -> None:
    """Print how each candidate compares with the baseline at a look, unless `printed` has its line from the last."""
    for name, state in standings.items():
        line = f"  {visible(name)}: {_in_words(state)}"
        if state.rounds and printed.get(name) != line:
            click.echo(line, err=True)
        printed[name] = line


def _in_words(state: RaceState) -> str:
    """A comparison in words: `+1.2 points after 16 rounds, between -0.4 and +2.8: undecided`."""
    between = " and ".join(in_points(end) for end in state.interval)
    why = f" ({state.withheld})" if state.withheld else ""
    after = count_noun(state.rounds, "round")
    return f"{in_points(state.difference)} points after {after}, between {between}: {state.verdict}{why}"


def _record(raced: Raced, code: int) -> RaceEnd:
    """The race's end as `--json` prints it. code: the exit code."""
    from harness.cli.printed.ends import RaceEnd, RaceStanding

    return RaceEnd(
        baseline=raced.baseline,
        exit_code=code,
        decided=raced.decided,
        standings={name: RaceStanding(**state._asdict()) for name, state in raced.standings.items()},
        samples=dict(raced.n_rounds),
        folders={name: str(path) for name, path in raced.folders.items()},
    )


def _closing(raced: Raced) -> None:
    """Print the verdict on each candidate, the samples used, and the folders of the runs."""
    for name, state in raced.standings.items():
        click.echo(f"{visible(name)} beside {visible(raced.baseline)}: {_in_words(state)}")
    used = ", ".join(f"{visible(name)} {n}" for name, n in raced.n_rounds.items())
    click.echo(f"samples a question: {used}")
    for name, path in raced.folders.items():
        click.echo(f"  {visible(name)}: {visible(str(path))}")
