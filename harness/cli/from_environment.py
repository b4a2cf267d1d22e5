"""Defaults of `harness run` from the environment: HARNESS_RUN_ and the option's name, as HARNESS_RUN_MAX_TOKENS.

A typed option goes before its variable. A file of variables is read only if `--env-file` names it. Every run prints
the variables that it took: an environment that nobody remembers must not change a score unseen.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from harness.cli.help import under
from harness.core.errors import UsageError, near_names
from harness.core.files import read_named
from harness.core.inert import visible

PREFIX = "HARNESS_RUN"
SETTINGS = {"auto_envvar_prefix": PREFIX}
"""The context setting of a command whose options may come from the environment."""

F = TypeVar("F", bound=Callable[..., Any])

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z")

MAX_FILE_BYTES = 1024 * 1024
"""Longest file of variables."""


def taken(context: click.Context) -> list[str]:
    """Each option that the environment set, with its variable. Raises `UsageError` for a variable that sets none."""
    variables = {
        f"{PREFIX}_{parameter.name}".upper(): parameter for parameter in context.command.params if parameter.name
    }
    settings = {name: value for name, value in os.environ.items() if name.startswith(f"{PREFIX}_")}
    if unknown := sorted(set(settings) - set(variables)):
        raise UsageError(
            f"the environment variable {visible(unknown[0], 100)} sets no option of a run."
            f"{near_names(unknown[0], variables)}"
        )
    return [
        f"{parameter.opts[0]} ({name})"
        for name, parameter in variables.items()
        if context.get_parameter_source(str(parameter.name)) is ParameterSource.ENVIRONMENT
    ]


def _read(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> None:
    """Set the variables of the file, unless the environment has them."""
    if path is None:
        return
    try:
        text = read_named(path, MAX_FILE_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if len(text) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is longer than {MAX_FILE_BYTES} bytes; expected lines of NAME=VALUE")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line.strip())
        try:
            words = shlex.split(match[2], comments=True) if match else []
        except ValueError:
            match = None
        if match is None or len(words) > 1:
            # The line may hold a key: it is not shown.
            raise UsageError(f"{path}:{number}: expected NAME=VALUE; a value with spaces stands in quotes")
        os.environ.setdefault(match[1], "".join(words))


(env_file_option,) = under(
    "Of whom",
    click.option(
        "--env-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_read,
        help=f"File of NAME=VALUE lines: keys, and defaults of options ({PREFIX}_MAX_TOKENS=…). Default: no file.",
    ),
)
