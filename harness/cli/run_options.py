"""The flags of `harness run`: its options (`harness.asking.options`), and those that only a terminal has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from harness.asking.options import RunOptions
from harness.asking.options.headings import OUTPUT, WHOM
from harness.cli.flags import flags_of, give
from harness.cli.help import under
from harness.cli.server_options import SERVER_SCOPE, with_server
from harness.core.options import options_of
from server_launchers.command_line import server_options

F = TypeVar("F", bound=Callable[..., Any])

_STARTED = under(
    WHOM,
    click.option(
        "--engine-flag",
        "server_extra_flags",
        multiple=True,
        help="A flag handed to the engine unchanged, with --serve; may be repeated.",
    ),
)
_SHOWN = under(
    OUTPUT,
    click.option(
        "--no-progress",
        "progress",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Show no progress. NO_COLOR takes the colours out of it.",
    ),
    click.option("--quiet", "-q", is_flag=True, help="Print only warnings, errors and results."),
)

FIRST = (
    *("samples", "limit", "data", "model", "base_url", "serve", "preset", "temperature", "max_tokens", "concurrency"),
    *("out", "dry_run"),
)
"""Options that most people use: the short help of a run shows only these."""


def run_options(declared: type[RunOptions] = RunOptions) -> Callable[[F], F]:
    """Give a command the flags of a run, with the help that its own class of options declares, and of its server."""
    decorators = (*flags_of(declared), *_STARTED, *_SHOWN, server_options(shown=()))
    return lambda function: give(function, *decorators)


def typed(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were typed: what a sweep's file says goes before defaults of the environment."""
    context = click.get_current_context()
    unsaid = (ParameterSource.DEFAULT, ParameterSource.ENVIRONMENT)
    return {name: value for name, value in given.items() if context.get_parameter_source(name) not in unsaid}


def run_given(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run among a command's parameters, with those that describe a server gathered into `serve`."""
    names = set(options_of(RunOptions)) - {"serve"}
    of_run = {name: value for name, value in given.items() if name in names or name.startswith(SERVER_SCOPE)}
    return with_server(of_run, given.get("serve"))
