"""The commands and their flags, generated from the option declarations.

A command builds its options from the words that were typed: an option that was not typed keeps its default and is not
in `explicit`. The values of --serve-option are collected in the option `serve` (`typed_run_options`). No environment
variable sets an option, so that a forgotten variable cannot silently change a score.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_origin

import click
from click.core import ParameterSource

from harness.cli.help import Flag, Helping, NumberType, refuse_misplaced
from harness.cli.json_output import schema_flag
from harness.core.errors import UsageError, misspelled
from harness.core.option_kinds import COMMAS, POINTS, SEED
from harness.core.options import Option, Options, options_of
from harness.core.sanitize import visible
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
"""Short forms of the most common flags."""


def command_of(name: str) -> click.Command:
    """The command with this name. `carry_out` in the module with this name runs it and returns the exit code."""
    declared = options_class(name)

    @click.pass_context
    def carry_out(context: click.Context, /, **_parameters: Any) -> None:
        """Run the command with the options that were typed, and exit with its exit code."""
        module = importlib.import_module(f"harness.cli.{name}")
        context.exit(module.carry_out(options_typed(context, declared)) or 0)

    # A command's own options, which have no heading, come first.
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
    """The options built from the words that a command received. Raises `UsageError`."""
    sources = {name: context.get_parameter_source(name) for name in options_of(declared)}
    return declared(**{name: context.params[name] for name in sources if sources[name] is not ParameterSource.DEFAULT})


class _NewestRun(click.Argument):
    """An argument for runs: if it is missing, the run here that was written last."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        from harness.cli import terminal  # imported late: a help text needs neither
        from harness.cli.status import newest_run

        value, source = super().consume_value(ctx, opts)
        if source is not ParameterSource.DEFAULT or ctx.resilient_parsing:
            return value, source
        if (run := newest_run()) is None:
            raise click.MissingParameter("There is no run in results/ or in the current folder.", ctx, self)
        terminal.note(f"the newest run: {visible(str(run.path), 200)}")
        return [str(run.path)] if self.nargs == -1 else str(run.path), ParameterSource.COMMANDLINE


def _parameters(option: Option) -> list[click.Parameter]:
    """The argument or flag of an option; for the flag that prints a result as JSON, also the flag that prints the
    schema.
    """
    if option.argument:
        nargs = -1 if option.is_list and option.kind is not COMMAS else 1
        is_required = option.default is ...
        kind = _NewestRun if option.newest else click.Argument
        return [kind([option.name], nargs=nargs, required=is_required, metavar=option.metavar, type=_type(option))]
    word = option.flag_word
    return [_flag(option, word), schema_flag()] if option.prints else [_flag(option, word)]


def _help(option: Option) -> str:
    """The option's help, with its default where the default matters."""
    stated = option.kind is SEED or (option.choices and option.default is not None)
    return f"{option.help}  [default: {option.default}]" if stated else option.help


def _flag(option: Option, word: str, scope: str = "", *, hidden: bool = False) -> Flag:
    """The flag for one option.

    scope: prefix of the parameter's name, such as `server`; empty for none. word: the flag. hidden: omit it from the
    help.
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
            del attributes["default"]  # With it, click treats a missing flag as one with the value None.
        is_variables = scope == SERVER_SCOPE and get_origin(option.type) is dict
        attributes["multiple"] = is_variables or (option.is_list and option.kind is not COMMAS)
    short = () if scope else SHORT.get(option.name, ())
    name = f"{scope}_{option.name}" if scope else option.name
    return Flag(
        [*short, word, name], heading=option.under, prints=option.prints, help=lambda: _help(option), **attributes
    )


def _type(option: Option) -> Any:
    """The type of one value of the flag; the option itself checks the limits."""
    if option.choices:
        return click.Choice(option.choices)
    if option.kind is COMMAS:
        return click.STRING
    if option.kind is SEED:
        return NumberType(int, option.example(16), or_none=True)
    numbers = {kind: NumberType(kind, option.example(usual)) for kind, usual in ((int, 16), (float, 0.6))}
    plain: dict[Any, Any] = {**numbers, bool: click.BOOL, Path: click.Path()}
    # A path remains text here: an empty Path would become the current folder, which the option accepts.
    return plain.get(option.item_type, click.STRING)


# ---- a server to start


SERVER_SCOPE = "server"
"""Prefix of the parameters of flags that describe a server to start."""


def typed_run_options(options: RunFlags) -> dict[str, Any]:
    """The run options that were typed; those that describe a server are collected in `serve`. Raises `UsageError` if a
    server is described but no engine to start it is given.
    """
    from harness.options.run import RunOptions

    given = {name: value for name, value in options.explicit.items() if name in options_of(RunOptions)}
    if options.serve is not None:
        return given | {"serve": {**options.serve, **described_server(options.serve_option)}}
    if options.serve_option:
        raise UsageError(
            "it configures a server that the harness starts, so it requires --serve ENGINE", field="serve_option"
        )
    return given


def described_server(texts: Iterable[str]) -> dict[str, Any]:
    """The fields of a server's spec that the KEY=VALUE texts set, just as the flags of `harness serve ENGINE` would.

    Raises a `UsageError` that names the key.
    """
    words, extra = list[str](), list[str]()
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip().removeprefix("--").replace("_", "-")
        if not equals or not key:
            raise UsageError("expected KEY=VALUE", field="serve_option")  # The typed value may be an API key.
        if key == "engine-flag":
            extra.append(value)
        elif value.lower() in ("true", "false"):
            words.append(f"--{'' if value.lower() == 'true' else 'no-'}{key}")
        else:
            words.append(f"--{key}={value}")

    fields = click.Command("serve", params=[*server_flags()], add_help_option=False)
    try:
        refuse_misplaced(fields, words)
        given = fields.make_context("serve", words).params
    except click.NoSuchOption as error:
        names = [flag.removeprefix("--") for parameter in fields.params for flag in parameter.opts]
        key = error.option_name.lstrip("-")
        raise UsageError(
            f"there is no server option {visible(key, 80)}.{misspelled(key, names)}", field="serve_option"
        ) from None
    except (click.UsageError, UsageError) as error:
        sentence = error.sentence if isinstance(error, UsageError) else error.format_message()
        raise UsageError(visible(sentence.replace("--", ""), 400), field="serve_option") from None
    return server_fields(given | {f"{SERVER_SCOPE}_extra_flags": tuple(extra)})


def server_flags(shown: Collection[str] | None = None) -> list[Flag]:
    """The flags that describe a server, with parameters named `server_<field>`.

    shown: the fields whose flags appear in the command's help; None: all. Hidden flags work, too.
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
        # The spec rejects a variable without a value, in a message that omits the text, which may be an API key.
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
        if name in fields and not option.is_list:
            raise UsageError(f"{name}: it accepts one value, but it was typed more than once", field="judge")
        if name == "jury":
            juror = _judge_options(value)
            value = "@".join((juror["model"], *juror.get("base_url", ())))
        try:
            converted = _type(option).convert(value, None, None)
            fields[name] = (*fields.get(name, ()), converted) if option.is_list else converted
        except click.UsageError:
            # without the value, which may be an API key typed in the wrong place
            kinds = {int: "a whole number", float: "a number", bool: "true or false"}
            expected = f"one of {', '.join(option.choices)}" if option.choices else kinds[option.type]
            raise UsageError(f"{name}: expected {expected}", field="judge") from None
    return _judge_options(addressed) | fields


def _judge_options(typed: str) -> dict[str, Any]:
    """The judge's model, and its server if the text names one: MODEL@URL, or MODEL@NAME for a running server."""
    if (addressed := ADDRESSED.fullmatch(typed)) is not None:
        return {"model": addressed[1], "base_url": (addressed[2],)}
    model, at, name = typed.rpartition("@")
    # A revision contains no colon, query, or field. The message does not repeat the text, which may contain an API key.
    if _BARE_ADDRESS.search(typed):
        raise UsageError("an address must begin with http:// or https://, as in MODEL@http://HOST:PORT", field="judge")
    if at and model:
        from harness.preparing.launched_servers import running_as  # judges are rarely named this way

        if (server := running_as(name)) is not None:
            return {"model": model, "base_url": (server.base_urls[0],)}
    # An @ in the model's own name, such as before a revision, does not introduce a server.
    return {"model": typed}
