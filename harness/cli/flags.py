"""The commands and their flags, made from the declarations of options.

A command makes its options of the words that were typed: what was not typed keeps its default, and is not in `given`.
The texts of --serve-option are gathered into the option `serve` (`run_given`).
No variable sets an option: a forgotten one must not change a score unseen.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_origin

import click
from click.core import ParameterSource

from harness.cli.help import Flag, Helping, NumberType
from harness.cli.json_output import schema_flag
from harness.core.errors import UsageError, misspelled
from harness.core.inert import visible
from harness.core.options import COMMAS, POINTS, SEED, Option, Options, options_of
from harness.options.command import ORDER
from harness.options.commands import options_class
from harness.options.judge import ADDRESSED, JUDGE_KEYS, JudgeOptions

if TYPE_CHECKING:
    from harness.options.run import RunFlags

Made = TypeVar("Made", bound=Options)

SHORT: Mapping[str, tuple[str, ...]] = {
    "model": ("-m",),
    "samples": ("-n",),
    "concurrency": ("-c",),
    "out": ("-o",),
    "quiet": ("-q",),
}
"""Short forms of the flags that are typed most."""


def command_of(name: str) -> click.Command:
    """The command of this name. The module of its name carries it out (`carry_out`), and returns the exit code."""
    declared = options_class(name)

    @click.pass_context
    def carry_out(context: click.Context, /, **_parameters: Any) -> None:
        """Carry out the command with the options that were typed; its exit code ends the command."""
        module = importlib.import_module(f"harness.cli.{name}")
        context.exit(module.carry_out(options_typed(context, declared)) or 0)

    # A command's own options, which stand under no heading, come first.
    options = sorted(options_of(declared).values(), key=lambda option: ("", *ORDER).index(option.under))
    return Helping(
        name,
        params=[parameter for option in options for parameter in _parameters(option)],
        callback=carry_out,
        help=declared.__doc__,
        first=declared.first,
        command=name,
        context_settings={"ignore_unknown_options": declared.dashed},
    )


def options_typed(context: click.Context, declared: type[Made]) -> Made:
    """The options of the words that a command got. Raises `UsageError`."""
    sources = {name: context.get_parameter_source(name) for name in options_of(declared)}
    return declared(**{name: context.params[name] for name in sources if sources[name] is not ParameterSource.DEFAULT})


def _parameters(option: Option) -> list[click.Parameter]:
    """The argument or the flag of an option; the flag that prints a result as JSON has one that prints its schema."""
    if option.argument:
        nargs = -1 if option.is_list and option.kind is not COMMAS else 1
        is_required = option.default is ...
        return [
            click.Argument([option.name], nargs=nargs, required=is_required, metavar=option.metavar, type=_type(option))
        ]
    word = option.flag_word
    return [_flag(option, word), schema_flag()] if option.prints else [_flag(option, word)]


def _help(option: Option) -> str:
    """The option's help, with its default where that decides much."""
    stated = option.kind is SEED or (option.choices and option.default is not None)
    return f"{option.help}  [default: {option.default}]" if stated else option.help


def _flag(option: Option, word: str, scope: str = "", *, hidden: bool = False) -> Flag:
    """The flag of one option.

    scope: a word before the parameter's name, such as `server`; empty for none. word: the flag. hidden: leave it out of
    the help.
    """
    attributes: dict[str, Any] = {
        "hidden": hidden,
        "metavar": option.metavar or ("POINTS" if option.kind is POINTS else None),
        "default": None,  # Without this, click would set a switch to "off".
    }
    if option.type is bool and option.default is None:
        word = f"{word}/--no-{word[2:]}"
    elif option.type is bool:
        attributes |= {"is_flag": True, "flag_value": not option.default}
    else:
        attributes["type"] = _type(option)
        if option.default is ...:
            attributes["required"] = True
            del attributes["default"]  # With it, click takes a flag that was not typed for one of the value None.
        is_variables = scope == SERVER_SCOPE and get_origin(option.type) is dict
        attributes["multiple"] = is_variables or (option.is_list and option.kind is not COMMAS)
    short = () if scope else SHORT.get(option.name, ())
    name = f"{scope}_{option.name}" if scope else option.name
    return Flag(
        [*short, word, name], heading=option.under, prints=option.prints, help=lambda: _help(option), **attributes
    )


def _type(option: Option) -> Any:
    """The type of one value of the flag; the option itself checks the bounds."""
    if option.choices:
        return click.Choice(option.choices)
    if option.kind is SEED:
        return NumberType(int, option.example(16), or_none=True)
    numbers = {kind: NumberType(kind, option.example(usual)) for kind, usual in ((int, 16), (float, 0.6))}
    plain: dict[Any, Any] = {**numbers, bool: click.BOOL, Path: click.Path()}
    # A path stays a text here: as a Path, an empty one would become the current folder, which the option accepts.
    return plain.get(option.item_type, click.STRING)


# ---- a server to start


SERVER_SCOPE = "server"
"""Prefix of the parameters of flags that describe a server to start."""


def run_given(options: RunFlags) -> dict[str, Any]:
    """The options of a run that were typed; those that describe a server are gathered into `serve`. Raises `UsageError`
    if a server is described that no engine starts.
    """
    from harness.options.run import RunOptions

    given = {name: value for name, value in options.given.items() if name in options_of(RunOptions)}
    if options.serve is not None:
        return given | {"serve": {**options.serve, **described_server(options.serve_option)}}
    if options.serve_option:
        raise UsageError("it configures a server to start, so it requires --serve ENGINE", field="serve_option")
    return given


def described_server(texts: Iterable[str]) -> dict[str, Any]:
    """The fields of a server's spec that texts KEY=VALUE set, as the flags of `harness serve ENGINE` set them.

    Raises `UsageError` that names the key.
    """
    words, extra = list[str](), list[str]()
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip().removeprefix("--").replace("_", "-")
        if not equals or not key:
            raise UsageError("expected KEY=VALUE", field="serve_option")  # The typed value may be a key.
        if key == "engine-flag":
            extra.append(value)
        elif value.lower() in ("true", "false"):
            words.append(f"--{'' if value.lower() == 'true' else 'no-'}{key}")
        else:
            words.append(f"--{key}={value}")

    fields = click.Command("serve", params=[*server_flags()], add_help_option=False)
    try:
        given = fields.make_context("serve", words).params
    except click.NoSuchOption as error:
        names = [flag.removeprefix("--") for parameter in fields.params for flag in parameter.opts]
        key = error.option_name.lstrip("-")
        raise UsageError(
            f"there is no server option {visible(key, 80)}.{misspelled(key, names)}", field="serve_option"
        ) from None
    except click.UsageError as error:
        raise UsageError(visible(error.format_message().replace("--", ""), 400), field="serve_option") from None
    return server_fields(given | {f"{SERVER_SCOPE}_extra_flags": tuple(extra)})


def server_flags(shown: Collection[str] | None = None) -> list[Flag]:
    """The flags of a server, with parameters called `server_<field>`.

    shown: the fields whose flags the command's help shows; None: all. The other flags work, too.
    """
    from server_launchers.spec import OPTIONS, flag_of  # most commands start no server

    return [
        _flag(option, flag_of(name), SERVER_SCOPE, hidden=shown is not None and name not in shown)
        for name, option in OPTIONS.items()
    ]


def server_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a server's spec that the flags set."""
    fields = {
        name.removeprefix(f"{SERVER_SCOPE}_"): value
        for name, value in given.items()
        if name.startswith(f"{SERVER_SCOPE}_") and value not in (None, ())
    }
    if "environment" in fields:
        variables = (text.partition("=") for text in fields["environment"])
        # A variable without a value is refused by the spec, in words that leave the text out: it may be a key.
        fields["environment"] = {name: value if equals else None for name, equals, value in variables}
    return fields


# ---- the flag of a judge


_BARE_ADDRESS = re.compile(r"@.*[:?=]|@[^/]*\w\.\w[^/]*/")
_JUDGE_FIELD = re.compile(r",\s*(?=\w+=)")


def judge_of(typed: str | None) -> JudgeOptions | None:
    """The judge that `--judge` names; None without one. Raises `UsageError`."""
    fields = judge_fields(typed)
    try:
        return JudgeOptions.of(**fields) if fields else None
    except UsageError as error:
        raise UsageError(f"judge: {error.sentence}") from error


def judge_fields(typed: str | None) -> dict[str, Any]:
    """The fields of `JudgeOptions` that `--judge` gives; none without it. Raises `UsageError`."""
    if typed is None:
        return {}
    addressed, *keyed = _JUDGE_FIELD.split(typed)
    fields: dict[str, Any] = {}
    for text in keyed:
        name, _, value = text.partition("=")
        option = options_of(JudgeOptions).get(name)
        if option is None or name not in JUDGE_KEYS:
            there = f"unknown judge key {visible(name, 80)}; expected one of {', '.join(JUDGE_KEYS)}"
            raise UsageError(there, field="judge")
        if name == "jury":
            juror = _addressed(value)
            value = "@".join((juror["model"], *juror.get("base_url", ())))
        try:
            converted = _type(option).convert(value, None, None)
            fields[name] = (*fields.get(name, ()), converted) if option.is_list else converted
        except click.UsageError:
            # Without the value, which may be a key that was typed in the wrong place.
            kinds = {int: "a whole number", float: "a number", bool: "true or false"}
            expected = f"one of {', '.join(option.choices)}" if option.choices else kinds[option.type]
            raise UsageError(f"{name}: expected {expected}", field="judge") from None
    return _addressed(addressed) | fields


def _addressed(typed: str) -> dict[str, Any]:
    """The judge's model, and its server if it stands behind the name: MODEL@URL, or MODEL@NAME of a running server."""
    if (addressed := ADDRESSED.fullmatch(typed)) is not None:
        return {"model": addressed[1], "base_url": (addressed[2],)}
    model, at, name = typed.rpartition("@")
    # A revision has no colon, no query and no field. The text is not repeated: it may hold a key.
    if _BARE_ADDRESS.search(typed):
        raise UsageError("an address must begin with http:// or https://, as in MODEL@http://HOST:PORT", field="judge")
    if at and model:
        from harness.preparing.own_servers import running_as  # a judge is seldom named so

        if (server := running_as(name)) is not None:
            return {"model": model, "base_url": (server.base_urls[0],)}
    # An @ of the model's own name, such as a revision, names no server.
    return {"model": typed}
