"""The flags of a judge in `harness score`, the options made of them, and the printed report on the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.asking.options import JudgeOptions
from harness.asking.options.headings import JUDGE
from harness.cli import terminal
from harness.cli.agreement import disagreement_lines, matrix_lines
from harness.cli.flags import flags_of, give, with_server
from harness.cli.help import spelt, under
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.wording import option
from server_launchers.command_line import server_options

if TYPE_CHECKING:
    from harness.verbs.judge import Judged, JudgeReport, JudgeSettings

SHOWN_CAUSES = 5

F = TypeVar("F", bound=Callable[..., Any])

_STARTED = under(
    JUDGE,
    click.option(
        "--engine-flag",
        "server_extra_flags",
        multiple=True,
        help="A flag handed to the engine unchanged, with --serve; may be repeated.",
    ),
)


def judge_options(function: F) -> F:
    """A decorator that gives a command the flags of a judge and of a server to start for it."""
    function = server_options(shown=())(function)
    return give(function, *flags_of(JudgeOptions, scope="judge", heading=JUDGE), *_STARTED)


def plain_judge_options(function: F) -> F:
    """A decorator that gives a command the flags of a judge whose server is already running."""
    return give(function, *flags_of(JudgeOptions, scope="judge", heading=JUDGE, without=("serve",)))


def judge_options_of(given: Mapping[str, Any]) -> JudgeOptions | None:
    """The options of the judge in the flags; None if no judge is named. Raises `UsageError`."""
    if not given["judge_model"]:
        for name, value in given.items():
            if value not in (None, ()):
                flag = option(name.removeprefix("judge_").replace("server_", "server.", 1))
                raise UsageError(f"{flag} is an option of the judge and needs {option('model', 'MODEL')}")
        return None
    own = judge_given(given)
    described = {name: value for name, value in given.items() if name.startswith("server_")}
    return JudgeOptions.of(**with_server({**described, **own}, own.pop("serve")))


def judge_given(given: Mapping[str, Any]) -> dict[str, Any]:
    """The judge's options among a command's parameters."""
    return {name.removeprefix("judge_"): value for name, value in given.items() if name.startswith("judge_")}


def show(judged: Judged, judge: JudgeSettings, *, stderr: bool) -> None:
    """Print the agreement with the rules, the disagreements that move the score most, and the judge's tokens."""
    for report in judged.reports:
        for line in _lines(report, judge):
            click.echo(line, err=stderr)
    outcome = judged.outcome
    if outcome is None:
        return
    for warning in outcome.warnings:
        terminal.warn(f"judge: {warning.marked}")
    for cause in outcome.causes[:SHOWN_CAUSES]:
        click.echo(f"harness: judge: {spelt(str(cause))}", err=True)
    if not outcome.complete:
        click.echo(
            f"harness: {outcome.n_owed} of the judge's {outcome.n_expected} replies are missing; these answers keep "
            f"the rules' verdict, and the same command asks again",
            err=True,
        )


def _lines(report: JudgeReport, judge: JudgeSettings) -> Iterator[str]:
    name = visible(report.benchmark, 100)
    if not report.n_answers:
        yield f"{name}: nothing for the judge (--judge-scope {judge.scope})"
        return
    yield f"{name}: judged by {visible(judge.model, 100)}, prompt {judge.prompt.name}"
    yield from matrix_lines(report.agreement, "judge")
    parts = [f"{report.n_answers} distinct answer{'' if report.n_answers == 1 else 's'}"]
    if report.n_silent:
        parts.append(f"{report.n_silent} without a verdict")
    if report.n_owed:
        parts.append(f"{report.n_owed} not yet judged")
    if report.n_hidden:
        parts.append(f"{report.n_hidden} samples with nothing to show")
    yield f"  {', '.join(parts)}; {report.n_decided} samples decided by the judge"
    yield f"  cost: {_cost(report)}"
    counts = "the judge's verdict counts" if judge.override else "the rules' verdict counts (see --judge-override)"
    yield from disagreement_lines(report.agreement, "judge", counts)


def _cost(report: JudgeReport) -> str:
    if report.prompt_tokens is None and report.completion_tokens is None:
        return "unknown, the server states no tokens"
    return f"{report.prompt_tokens or 0:,} prompt tokens, {report.completion_tokens or 0:,} completion tokens"
