"""Options as the flags of the command that was typed: the one place where a field of an error becomes a flag."""

from __future__ import annotations

import json
import shlex
from functools import partial
from typing import Any

import click

from harness.cli.help import Helping
from harness.core.errors import HarnessError
from harness.core.wording import UNSET, Sentence, as_keyword, worded

_SCOPES = ("judge", "server")
"""Prefixes of parameters that belong to another server than the run's: `--judge-base-url` is `judge_base_url`."""


class SpelledCommand(Helping):
    """A command whose refusals name its own flags."""

    def invoke(self, ctx: click.Context) -> Any:
        """See `click.Command.invoke`."""
        try:
            return super().invoke(ctx)
        except HarnessError as error:
            error.sentence = Sentence(spelt(error.sentence, self))
            raise


class SpelledGroup(click.Group):
    """A group whose commands are of this kind."""

    command_class = SpelledCommand


class SeedType(click.types.StringParamType):
    """An integer, or `none`."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; None for `none`."""
        if value is None or isinstance(value, int):
            return value
        if value.lower() == "none":
            return None
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r}: expected an integer, or `none`", param, ctx)


class LineEnds(click.types.StringParamType):
    """A text in which `\\n` stands for the end of a line, so that it can be typed in any shell."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text that is meant."""
        return str(super().convert(value, param, ctx)).replace("\\n", "\n")


def spelt(sentence: str, command: click.Command | None = None) -> str:
    """`sentence` with its options written as flags of `command`; None: of the command that runs."""
    if command is None:
        context = click.get_current_context(silent=True)
        command = context.command if context is not None else None
    marked = sentence.marked if isinstance(sentence, Sentence) else sentence
    return worded(marked, partial(_flag, command.params if command is not None else []))


def _flag(parameters: list[click.Parameter], name: str, value: Any) -> str:
    """`name` with its value as it is typed. Where none of the parameters sets it: the flag of `harness run`, if it is
    only named; else as Python has it. `score.tool` is a flag of `harness score`, whatever runs."""
    if name.startswith("score."):
        parameters = _parameters_of("score")
    if (own := _set_by(parameters, name)) is not None:
        return _typed(own, value)
    if value is UNSET and (theirs := _set_by(_parameters_of("run"), name)) is not None:
        return f"{_typed(theirs, value)} of `harness run`"
    return as_keyword(name, value)


def _parameters_of(name: str) -> list[click.Parameter]:
    """Parameters of another command, found by its name: that command imports this module."""
    context = click.get_current_context(silent=True)
    root = context.find_root().command if context is not None else None
    command = root.get_command(context, name) if isinstance(root, click.Group) and context is not None else None
    return command.params if command is not None else []


def _set_by(parameters: list[click.Parameter], name: str) -> click.Parameter | None:
    """The parameter that sets the option."""
    by_name = {parameter.name: parameter for parameter in parameters}
    scoped = name.replace(".", "_")
    candidates = (scoped, *(f"{scope}_{scoped}" for scope in _SCOPES), name.rpartition(".")[2])
    return next((by_name[candidate] for candidate in candidates if candidate in by_name), None)


def _typed(parameter: click.Parameter, value: Any) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name if value is UNSET else _word(value)
    flag = parameter.opts[-1]
    if value is UNSET:
        return flag
    if isinstance(parameter, click.Option) and parameter.is_flag:
        if parameter.secondary_opts:
            return flag if value else parameter.secondary_opts[-1]
        return flag if value is (parameter.flag_value is not False) else f"no {flag}"
    if value is None:
        return f"{flag} none" if isinstance(parameter.type, SeedType) else f"no {flag}"
    if parameter.multiple and isinstance(value, list):
        return " ".join(f"{flag} {_word(member)}" for member in value)
    if isinstance(parameter.type, LineEnds):
        return f"{flag} {shlex.quote(str(value)).replace(chr(10), chr(92) + 'n')}"
    return f"{flag} {_word(value)}"


def _word(value: Any) -> str:
    """`value` as one word of a command line."""
    if isinstance(value, dict):
        return shlex.quote(json.dumps(value))
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return shlex.quote(text) if any(c.isspace() for c in text) else text
