"""The flags of `harness run`: its options (`harness.asking.options`), and those that only a terminal has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from harness.asking.options import RunOptions
from harness.asking.options.headings import OUTPUT, WHOM
from harness.cli.flags import flags_of, give
from harness.cli.help import under

F = TypeVar("F", bound=Callable[..., Any])

_STARTED = under(
    WHOM,
    click.option(
        "--engine-flag", "server_extra_flags", multiple=True, help="With --serve: a flag for the engine as it stands."
    ),
)
_SHOWN = under(
    OUTPUT,
    click.option("--dry-run", is_flag=True, help="Show every setting and the first prompt; send nothing."),
    click.option("--pilot", is_flag=True, help="Two samples a question, then a forecast of time, cost and error."),
    click.option(
        "--no-progress",
        "progress",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Show no progress. NO_COLOR takes the colours out of it.",
    ),
    click.option("--quiet", "-q", is_flag=True, help="Say nothing but warnings, errors and what was asked for."),
)

FIRST = (
    *("samples", "limit", "data", "model", "base_url", "serve", "preset", "temperature", "max_tokens", "concurrency"),
    *("out", "dry_run"),
)
"""What most people use: the help of a run shows these first."""


def run_options(declared: type[RunOptions] = RunOptions, *, without: Iterable[str] = ()) -> Callable[[F], F]:
    """Give a command the flags of a run, with the help that its own class of options declares."""
    return lambda function: give(function, *flags_of(declared, without=without), *_STARTED, *_SHOWN)
