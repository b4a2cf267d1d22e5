"""The flags of a judge in `harness score`, what they become, and the account of what the judge said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.cli import terminal
from harness.cli.agreement import disagreement_lines, matrix_lines
from harness.cli.server_options import refuse_server_flags
from harness.core.errors import UsageError
from harness.core.inert import visible
from server_launchers.command_line import server_options

if TYPE_CHECKING:
    from harness.experiments.judging import Judged, JudgeReport, JudgeSettings, Serve, Server

DEFAULT_CONCURRENCY = 64
SHOWN_CAUSES = 5
SHOWN_DISAGREEMENTS = 10
SHOWN_ANSWER_CHARS = 60

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--judge", "judge_model", metavar="MODEL", help="A model to decide what the rules leave undecided."),
    click.option(
        "--judge-base-url",
        "judge_base_url",
        multiple=True,
        metavar="URL[,weight=N]",
        help="The judge's server; repeat it for several. Default: OPENAI_BASE_URL, else the running server.",
    ),
    click.option("--judge-server", metavar="NAME", help="The judge's server by its name in `harness serve status`."),
    click.option(
        "--serve",
        "judge_serve",
        metavar="ENGINE",
        help="Start this engine for the judge and stop it after; takes every flag of `harness serve ENGINE`.",
    ),
    click.option(
        "--engine-flag", "engine_flags", multiple=True, help="With --serve: a flag for the engine as it stands."
    ),
    click.option(
        "--judge-scope",
        type=click.Choice(["undecided", "wrong", "all"]),
        help="Samples the judge sees: undecided by the rules (default), also those called wrong, or all.",
    ),
    click.option("--judge-prompt", metavar="NAME", help="verdict (default) or limo."),
    click.option(
        "--judge-votes", type=click.IntRange(1, 99), help="Replies for each distinct answer; most win. Default: 1."
    ),
    click.option(
        "--judge-override", is_flag=True, default=None, help="Let the judge's verdict replace what the rules decided."
    ),
    click.option("--judge-temperature", type=click.FloatRange(0), help="Default: 0; 0.6 with several votes."),
    click.option("--judge-max-tokens", type=click.IntRange(1), help="New tokens of one reply. Default: 4096."),
    click.option("--judge-concurrency", type=click.IntRange(1), help="Requests in flight. Default: the server says."),
    click.option("--judge-api-key-env", metavar="VARIABLE", help="Variable with the key. Default: the provider's."),
)  # fmt: skip


def judge_options(function: F) -> F:
    """Give a command the flags of a judge and of the server that may be started for it."""
    function = server_options(hidden=True)(function)
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def refuse_without_judge(flags: dict[str, Any]) -> None:
    """Raises `UsageError` naming the first flag that means nothing here."""
    for name, value in flags.items():
        if value not in (None, ()):
            flag = name.removeprefix("server_").replace("_", "-")
            flag = {"judge-serve": "serve", "engine-flags": "engine-flag"}.get(flag, flag)
            raise UsageError(f"--{flag} is about a judge: it goes with --judge MODEL")


def judge_of(flags: dict[str, Any]) -> tuple[JudgeSettings, Serve]:
    """(the judge, what makes its server available). Raises `UsageError`; nothing is started or contacted."""
    from harness.experiments.judging import JudgeSettings
    from harness.grading.second import judge_prompts

    engine = flags["judge_serve"]
    if not engine:
        refuse_server_flags(flags)
    elif flags["judge_base_url"] or flags["judge_server"]:
        raise UsageError(
            "--serve starts a server; --judge-base-url and --judge-server name one that runs: give one of them"
        )
    temperature = flags["judge_temperature"]
    if temperature is not None and not math.isfinite(temperature):
        raise UsageError(f"--judge-temperature {temperature}: expected a number of at least 0")
    if temperature == 0 and (flags["judge_votes"] or 1) > 1:
        terminal.warn(f"{flags['judge_votes']} votes at temperature 0 are all alike on most servers")
    model, serve = _started(flags) if engine else (flags["judge_model"], _running(flags))
    settings = {
        "scope": flags["judge_scope"],
        "votes": flags["judge_votes"],
        "override": flags["judge_override"],
        "temperature": temperature,
        "max_tokens": flags["judge_max_tokens"],
    }
    prompt = judge_prompts.named(flags["judge_prompt"] or judge_prompts.DEFAULT)
    given = {name: value for name, value in settings.items() if value is not None}
    return JudgeSettings(model=model, prompt=prompt, **given), serve


def _started(flags: dict[str, Any]) -> tuple[str, Serve]:
    """(name of the model, what starts its server for a while)."""
    from harness.cli.server_options import spec_of

    spec = spec_of(flags["judge_serve"], flags["judge_model"], flags, flags["engine_flags"], None)

    @contextmanager
    def serve() -> Iterator[Server]:
        from harness.cli.serve import launch

        with launch(spec, detach=False) as server:
            yield _server((), server.name, server.model, flags)

    return spec.client_name, serve


def _running(flags: dict[str, Any]) -> Serve:
    @contextmanager
    def serve() -> Iterator[Server]:
        yield _server(flags["judge_base_url"], flags["judge_server"], flags["judge_model"], flags)

    return serve


def _server(urls: tuple[str, ...], name: str | None, model: str, flags: dict[str, Any]) -> Server:
    from harness.cli import find_server as addresses
    from harness.client.facts import discovery
    from harness.experiments.judging import Server

    endpoints, _ = addresses.resolve(urls, name, (), flags["judge_api_key_env"])
    concurrency = flags["judge_concurrency"]
    if concurrency is None:
        slots = [discovery.stated_concurrency(endpoint) for endpoint in endpoints]
        concurrency = sum(n for n in slots if n) if all(slots) else DEFAULT_CONCURRENCY
    return Server(endpoints=endpoints, model=model, concurrency=concurrency)


def show(judged: Judged, judge: JudgeSettings, *, stderr: bool) -> None:
    """The agreement with the rules, the disagreements that move the score most, and what the judge cost."""
    for report in judged.reports:
        for line in _lines(report, judge):
            click.echo(line, err=stderr)
    outcome = judged.outcome
    if outcome is None:
        return
    for warning in outcome.warnings:
        terminal.warn(f"judge: {warning}")
    for cause in outcome.causes[:SHOWN_CAUSES]:
        click.echo(f"harness: judge: {cause}", err=True)
    if not outcome.complete:
        click.echo(
            f"harness: {outcome.n_owed} of the judge's {outcome.n_expected} replies are owed; their answers stay as "
            "the rules have them, and the same command asks for them again",
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
