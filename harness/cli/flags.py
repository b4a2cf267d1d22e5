"""The flags of a command, made from the declarations of its options (`harness.core.options`).

A flag sets the parameter that has the option's name. One that is not typed sets None, and the option keeps its default;
only a seed has its default here, since None is a seed that is not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.asking.options import RunOptions
from harness.asking.options.headings import ORDER
from harness.cli import completing
from harness.cli.flag_words import flag_of
from harness.cli.help import under
from harness.cli.spelling import LineEnds, SeedType
from harness.core.options import COMMAS, LINES, POINTS, SEED, SERIES, Option, Options, options_of
from harness.core.secret import Secret
from harness.core.wording import UNSET, worded

F = TypeVar("F", bound=Callable[..., Any])

_REPEATED = (tuple[str, ...], tuple[int, ...], tuple[tuple[str, Secret], ...])
"""Types whose flag may be repeated, unless commas divide its value."""


NO_CLASSES: Mapping[str, type[click.Option]] = {}


def flags_of(
    *declared: type[Options],
    scope: str = "",
    heading: str = "",
    without: Iterable[str] = (),
    classes: Mapping[str, type[click.Option]] = NO_CLASSES,
) -> tuple[Callable[[F], F], ...]:
    """The decorators that give a command the flags of these options, by heading.

    scope: begins the flags and the parameters of options that are about another server than the run's: `judge` makes
    `--judge-votes` of votes. heading: of all of them, in the place of their own. without: options that get no flag.
    classes: kinds of flag of their own, by option.
    """
    table = {name: option for options in declared for name, option in options_of(options).items()}
    left_out = set(without)
    shown = [option for name, option in table.items() if not option.argument and name not in left_out]
    words = {option.name: flag_of(option, scope) for option in shown}
    headed = sorted((replace(option, under=heading or option.under) for option in shown), key=_place)
    return tuple(_flag(option, scope, words, classes.get(option.name)) for option in headed)


def takes(*declared: type[Options], **how: Any) -> Callable[[F], F]:
    """Give a command the flags of these options. how: as `flags_of` has it."""
    return lambda function: give(function, *flags_of(*declared, **how))


def give(function: F, *decorators: Callable[[F], F]) -> F:
    """`function` with these flags, which its help shows in this order."""
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def _place(option: Option) -> int:
    return ORDER.index(option.under) if option.under in ORDER else len(ORDER)


def _help(option: Option, words: Mapping[str, str]) -> str:
    """The option's help, in which other options are named by their flags. words: the flags of the same command."""

    def flag(name: str, value: object) -> str:
        theirs = options_of(RunOptions).get(name)
        if name not in words and theirs is not None:
            return f"{flag_of(theirs)} of `harness run`"
        word = words.get(name) or f"--{name.replace('_', '-')}"
        return word if value is UNSET else f"{word} {value}"

    text = worded(option.help, flag)
    stated = option.kind is SEED or (option.choices and option.default is not None)
    return f"{text}  [default: {option.default}]" if stated else text


def _flag(option: Option, scope: str, words: Mapping[str, str], kind: type[click.Option] | None) -> Callable[[F], F]:
    word = words[option.name]
    attributes: dict[str, Any] = {
        "help": _help(option, words),
        "metavar": option.metavar or ("FILE" if option.file else "POINTS" if option.kind is POINTS else None),
    }
    if option.type is bool and option.default is None:
        word = f"{word}/--no-{word[2:]}"
        attributes["default"] = None  # without it, click makes it off
    elif option.type is bool:
        attributes |= {"is_flag": True, "flag_value": not option.default, "default": None}
    else:
        attributes["type"] = _type(option)
        attributes["required"] = option.default is ...
        # click would hand on an empty tuple, which says more than an option that is left as it is.
        attributes["callback"] = lambda _context, _parameter, value: None if value == () else value
        attributes["multiple"] = option.type in _REPEATED and option.kind not in (COMMAS, SERIES)
    if option.kind is SEED:
        attributes["default"] = option.default
    if option.complete is not None:
        attributes["shell_complete"] = completing.names(getattr(completing, option.complete))
    if kind is not None:
        attributes["cls"] = kind
    decorator: Callable[[F], F] = click.option(word, f"{scope}_{option.name}" if scope else option.name, **attributes)
    return under(option.under, decorator)[0] if option.under else decorator


def _type(option: Option) -> Any:
    """The type of one value of the flag; its bounds are checked where the option is."""
    if option.choices:
        return click.Choice(option.choices)
    if option.kind in (SEED, LINES):
        return SeedType() if option.kind is SEED else LineEnds()
    if option.kind is SERIES:
        return click.STRING
    plain: dict[Any, Any] = {int: click.INT, float: click.FLOAT, tuple[int, ...]: click.INT}
    # As text: an empty path is refused by the option, and would be the current folder here.
    return click.Path() if option.type is Path else plain.get(option.type, click.STRING)
