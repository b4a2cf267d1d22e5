"""The flags of a command, made from its options' declarations; and a file of variables.

`flags_of` makes flags from declarations (`harness.core.options`). A flag sets the parameter that has the option's name.
A flag that is not typed sets None, and the option keeps its default. Only the flag of a seed sets the default itself,
since None there means that no seed is sent. The texts of --serve-option are gathered into the option
`serve` (`with_server`).

A file of variables is read only if `--env-file` names it. No variable sets an option: a forgotten one must not change a
score unseen.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_origin

import click
from click.core import ParameterSource

from harness.asking.options import JudgeOptions, RunOptions
from harness.asking.options.headings import JUDGE, ORDER, OUTPUT, WHOM
from harness.asking.options.judge import NO_KEY
from harness.cli.help import SeedType, under
from harness.core.errors import UsageError, near_names
from harness.core.files import read_named
from harness.core.inert import visible
from harness.core.options import COMMAS, POINTS, SEED, Option, Options, options_of

F = TypeVar("F", bound=Callable[..., Any])


NO_CLASSES: Mapping[str, type[click.Option]] = {}


def flags_of(
    *declared: type[Options],
    without: Iterable[str] = (),
    classes: Mapping[str, type[click.Option]] = NO_CLASSES,
) -> tuple[Callable[[F], F], ...]:
    """The decorators that give a command the flags of these options, in groups by heading.

    without: options that get no flag. classes: click classes for single options.
    """
    table = {name: option for options in declared for name, option in options_of(options).items()}
    left_out = set(without)
    shown = [option for name, option in table.items() if not option.argument and name not in left_out]
    headed = sorted(shown, key=_heading_number)
    return tuple(_flag(option, "", option.flag_word, classes.get(option.name)) for option in headed)


SHORT: Mapping[str, tuple[str, ...]] = {"model": ("-m",), "samples": ("-n",), "concurrency": ("-c",), "out": ("-o",)}
"""Short forms of the flags that are typed most."""


def takes(*declared: type[Options], **how: Any) -> Callable[[F], F]:
    """A decorator that gives a command the flags of these options. how: keyword arguments for `flags_of`, such as the
    heading in the help.
    """
    return lambda function: give(function, *flags_of(*declared, **how))


def give(function: F, *decorators: Callable[[F], F]) -> F:
    """Add these flags to `function` and return it; its help shows them in this order."""
    # The decorator that is applied last stands first in the help.
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def _heading_number(option: Option) -> int:
    """The position of the option's heading in the help."""
    return ORDER.index(option.under) if option.under in ORDER else len(ORDER)


def _help(option: Option) -> str:
    """The option's help, with its default where that decides much."""

    stated = option.kind is SEED or (option.choices and option.default is not None)
    return f"{option.help}  [default: {option.default}]" if stated else option.help


def _flag(
    option: Option, scope: str, word: str, kind: type[click.Option] | None, *, hidden: bool = False
) -> Callable[[F], F]:
    """The decorator that gives a command the flag of one option.

    scope: a word before the parameter's name, such as `server`; empty for none. word: the flag. kind: the option's own
    click class; None: click's usual one. hidden: leave it out of the help.
    """
    attributes: dict[str, Any] = {
        "help": _help(option),
        "hidden": hidden,
        "metavar": option.metavar or ("FILE" if option.file else "POINTS" if option.kind is POINTS else None),
    }
    if option.type is bool and option.default is None:
        word = f"{word}/--no-{word[2:]}"
        attributes["default"] = None  # Without this, click would set the flag to "off".
    elif option.type is bool:
        attributes |= {"is_flag": True, "flag_value": not option.default, "default": None}
    else:
        attributes["type"] = _type(option)
        attributes["required"] = option.default is ...
        # click would pass an empty tuple, which differs from an option that was not given.
        attributes["callback"] = lambda _context, _parameter, value: None if value == () else value
        is_variables = scope == SERVER_SCOPE and get_origin(option.type) is dict
        attributes["multiple"] = is_variables or (option.is_list and option.kind is not COMMAS)
    if option.kind is SEED:
        attributes["default"] = option.default
    if kind is not None:
        attributes["cls"] = kind
    short = () if scope else SHORT.get(option.name, ())
    name = f"{scope}_{option.name}" if scope else option.name
    decorator: Callable[[F], F] = click.option(*short, word, name, **attributes)
    return under(option.under, decorator)[0] if option.under else decorator


def _type(option: Option) -> Any:
    """The type of one value of the flag; the option itself checks the bounds."""
    if option.choices:
        return click.Choice(option.choices)
    if option.kind is SEED:
        return SeedType()
    plain: dict[Any, Any] = {int: click.INT, float: click.FLOAT, bool: click.BOOL, tuple[int, ...]: click.INT}
    # A path stays a text here: as a Path, an empty one would become the current folder, which the option accepts.
    return click.Path() if option.type is Path else plain.get(option.type, click.STRING)


# ---- a file of variables


_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z")

MAX_FILE_BYTES = 1024 * 1024
"""Longest file of variables."""


def _read(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> None:
    """Set the variables of the file, unless the environment has them."""
    if path is None:
        return
    try:
        text = read_named(path, MAX_FILE_BYTES).decode()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
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
            # The message leaves out the line, which may hold a key.
            raise UsageError(f"{path}:{number}: expected NAME=VALUE; put a value with spaces in quotes")
        os.environ.setdefault(match[1], "".join(words))


(env_file_option,) = under(
    "Of whom",
    click.option(
        "--env-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        # Eager: the variables are set before another option looks for its key.
        is_eager=True,
        expose_value=False,
        callback=_read,
        help="File of NAME=VALUE lines: keys and addresses. A variable that is set already stays. Default: no file.",
    ),
)


# ---- a server to start


SERVER_SCOPE = "server"
"""Prefix of the parameters of flags that describe a server to start."""


def with_server(given: Mapping[str, Any], engine: str | None) -> dict[str, Any]:
    """Return the parameters `given`, with the texts of `serve_option` gathered into the one option `serve`. Raises
    `UsageError` without an engine.
    """
    rest = {name: value for name, value in given.items() if name != "serve_option"}
    described = given.get("serve_option") or ()
    if engine is None:
        if described:
            raise UsageError("it describes a server to start, and needs --serve ENGINE", field="serve_option")
        return rest
    return rest | {"serve": {"engine": engine, **described_server(described)}}


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

    @click.command(add_help_option=False)
    @server_options()
    def fields(**_given: Any) -> None:
        """Holds the flags of a server, to read the texts by them."""

    try:
        given = fields.make_context("serve", words).params
    except click.NoSuchOption as error:
        names = [flag.removeprefix("--") for parameter in fields.params for flag in parameter.opts]
        key = error.option_name.lstrip("-")
        raise UsageError(
            f"no server has an option {visible(key, 80)}.{near_names(key, names)}", field="serve_option"
        ) from None
    except click.UsageError as error:
        raise UsageError(visible(error.format_message().replace("--", ""), 400), field="serve_option") from None
    return server_fields(given | {f"{SERVER_SCOPE}_extra_flags": tuple(extra)})


def server_options(*, shown: Collection[str] | None = None) -> Callable[[F], F]:
    """A decorator that gives a command the flags of a server, with parameters called `server_<field>`.

    shown: the fields whose flags the command's help shows; None: all. The other flags work, too.
    """
    from server_launchers.spec import OPTIONS, flag_of  # most commands start no server

    flags = (
        _flag(option, SERVER_SCOPE, flag_of(name), None, hidden=shown is not None and name not in shown)
        for name, option in OPTIONS.items()
    )
    return lambda function: give(function, *flags)


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


# ---- the flags of a run


_SERVE_OPTION = click.option(
    "--serve-option",
    "serve_option",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of `harness serve ENGINE` for the server that --serve starts, such as tp=8; engine-flag=WORD hands "
    "a word to the engine unchanged. May be repeated.",
)
_SHOWN = under(
    OUTPUT,
    click.option(
        "--quiet",
        "-q",
        is_flag=True,
        help="Print only warnings, errors and results. NO_COLOR takes the colours out of the progress.",
    ),
)

FIRST = (
    *("samples", "limit", "data", "model", "base_url", "serve", "preset", "temperature", "max_tokens", "concurrency"),
    *("out", "dry_run"),
)
"""Options that most people use: the short help of a run shows only these."""


def run_options(declared: type[RunOptions] = RunOptions) -> Callable[[F], F]:
    """A decorator that gives a command the flags of a run."""
    decorators = (*flags_of(declared), *under(WHOM, _SERVE_OPTION), *_SHOWN)
    return lambda function: give(function, *decorators)


def typed_parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the parameters that were typed on the command line. They override a sweep's file."""
    source = click.get_current_context().get_parameter_source
    return {name: value for name, value in given.items() if source(name) is not ParameterSource.DEFAULT}


def run_given(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run among a command's parameters; those that describe a server are gathered into `serve`."""
    names = (set(options_of(RunOptions)) - {"serve"}) | {"serve_option"}
    of_run = {name: value for name, value in given.items() if name in names}
    return with_server(of_run, given.get("serve"))


# ---- the flag of a judge


_JUDGE_FIELD = re.compile(r",\s*(?=\w+=)")

judge_option = under(
    JUDGE,
    click.option(
        "--judge",
        metavar="MODEL[@URL|@NAME][,KEY=VALUE...]",
        help="A model to decide what the rules leave undecided, at its server: an address or a name of `harness serve "
        "status`; without one OPENAI_BASE_URL, else the running server. KEY: "
        f"{', '.join(name for name in options_of(JudgeOptions) if name not in ('model', *NO_KEY))} (docs/judge.md).",
    ),
)[0]


def judge_of(typed: str | None) -> JudgeOptions | None:
    """The judge that `--judge` names; None without one. Raises `UsageError`."""
    if typed is None:
        return None
    fields = judge_fields(typed)
    try:
        return JudgeOptions.of(**fields)
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
        if option is None or name in ("model", *NO_KEY):
            keys = [key for key in options_of(JudgeOptions) if key not in ("model", *NO_KEY)]
            raise UsageError(f"a judge has no key {visible(name, 80)}; there are {', '.join(keys)}", field="judge")
        try:
            fields[name] = _type(option).convert(value, None, None)
        except click.UsageError:
            # Without the value, which may be a key that was typed in the wrong place.
            kinds = {int: "a whole number", float: "a number", bool: "true or false"}
            expected = f"one of {', '.join(option.choices)}" if option.choices else kinds[option.type]
            raise UsageError(f"{name}: expected {expected}", field="judge") from None
    return _addressed(addressed) | fields


def _addressed(typed: str) -> dict[str, Any]:
    """The judge's model, and its server if it stands behind the model's name."""
    if typed.startswith("@"):
        return {"model": ""}
    if (addressed := re.fullmatch(r"(.+?)@((?:https?|unix):.+)", typed)) is not None:
        return {"model": addressed[1], "base_url": (addressed[2],)}
    model, at, name = typed.rpartition("@")
    if at and model:
        from harness.asking.servers import address_of_running  # a judge is seldom named so

        if (server := address_of_running(name)) is not None:
            return {"model": model, "base_url": (server,)}
    # An @ of the model's own name, such as a revision, names no server.
    return {"model": typed}
