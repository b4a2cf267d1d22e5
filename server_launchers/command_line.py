"""The flags that describe a server, for the commands that start one.

The parameter of a flag is called `server_<field>`: a command may have a `seed` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from server_launchers.spec import OPTIONS, ServerOption

FLAG_PREFIX = "server_"
"""Prefix of the parameters that hold a server's flags."""

F = TypeVar("F", bound=Callable[..., Any])


class EngineCommand(click.Command):
    """A command that collects the words after ` -- ` in its parameter `extra_flags`; the engine gets them unchanged."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # click drops the `--` and mixes the words behind it with its own arguments, so they are cut off before.
        end = args.index("--") if "--" in args else len(args)
        ctx.params["extra_flags"] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


def server_options(*, shown: Collection[str] = OPTIONS) -> Callable[[F], F]:
    """A decorator that gives a command the flags of a server.

    shown: the fields whose flags the command's help shows; the other flags work, too.
    """

    def decorate(function: F) -> F:
        # Decorators work from the inside out; reversed, the help lists options in the order of the spec.
        for option in reversed(OPTIONS.values()):
            function = _click_option(option, hidden=option.field not in shown)(function)
        return function

    return decorate


def words_of(engine: str, model: str, params: Mapping[str, Any]) -> list[str]:
    """The words after `serve` that start this server again. params: parameter of the command → its value."""
    words = [engine]
    if model:
        words.append(model)
    for option in OPTIONS.values():
        value = params.get(FLAG_PREFIX + option.field)
        if value in (None, ()):
            continue
        if option.kind is bool:
            words.append(option.flag if value else f"--no-{option.flag[2:]}")
        else:
            # An option that may be given several times has all its values in one tuple.
            values = value if isinstance(value, tuple) else (value,)
            for each in values:
                words += [option.flag, str(each)]
    return words


def _click_option(option: ServerOption, *, hidden: bool) -> Callable[[F], F]:
    """The click option for one field of the spec.

    hidden: leave it out of the help.
    """
    attributes: dict[str, Any] = {"help": option.form.help, "hidden": hidden, "metavar": option.form.metavar}
    flag = option.flag
    if option.kind is bool:
        # None, not False: a flag that is not given leaves the default to the spec.
        attributes |= {"is_flag": True, "default": None}
        flag = f"{flag}/--no-{flag[2:]}" if option.optional else flag
    elif option.choices:
        attributes["type"] = click.Choice(option.choices)
    elif option.kind is int:
        bounds = (option.form.minimum, option.form.maximum)
        attributes["type"] = click.INT if bounds == (None, None) else click.IntRange(*bounds)
    elif option.kind is float:
        attributes["type"] = click.FLOAT
    elif option.kind is Path:
        attributes["type"] = click.Path(exists=True, dir_okay=False, path_type=Path)
    elif option.kind is dict:
        attributes["multiple"] = True
    return click.option(flag, FLAG_PREFIX + option.field, **attributes)
