"""The flags of a command: made from its options' declarations, set by typing, a file of variables or the environment.

`flags_of` makes flags from declarations (`harness.core.options`). A flag sets the parameter that has the option's name.
A flag that is not typed sets None, and the option keeps its default. Only the flag of a seed sets the default itself,
since None there means that no seed is sent. The texts of --serve-option are gathered into the option
`serve` (`with_server`).

Defaults of `harness run` come from the environment, as HARNESS_RUN_MAX_TOKENS. A typed option overrides its variable.
A file of variables is read only if `--env-file` names it. Every run prints which variables it uses: a forgotten
variable must not change a score unseen.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, get_origin

import click
from click.core import ParameterSource

from harness.asking.options import JudgeOptions, RunOptions
from harness.asking.options.headings import JUDGE, ORDER, OUTPUT, WHOM
from harness.asking.options.judge import NO_FLAG
from harness.cli.flag_words import flag_of
from harness.cli.help import SeedType, under
from harness.core.errors import UsageError, near_names
from harness.core.files import read_named
from harness.core.inert import visible
from harness.core.options import COMMAS, POINTS, SEED, Option, Options, options_of

F = TypeVar("F", bound=Callable[..., Any])


NO_CLASSES: Mapping[str, type[click.Option]] = {}


def flags_of(
    *declared: type[Options],
    scope: str = "",
    heading: str = "",
    without: Iterable[str] = (),
    classes: Mapping[str, type[click.Option]] = NO_CLASSES,
) -> tuple[Callable[[F], F], ...]:
    """The decorators that give a command the flags of these options, in groups by heading.

    scope: prefix for options of another server than the run's: `judge` turns votes into `--judge-votes`. heading: one
    heading for all, instead of their own. without: options that get no flag. classes: click classes for single options.
    """
    table = {name: option for options in declared for name, option in options_of(options).items()}
    left_out = set(without)
    shown = [option for name, option in table.items() if not option.argument and name not in left_out]
    words = {option.name: flag_of(option, scope) for option in shown}
    headed = sorted((replace(option, under=heading or option.under) for option in shown), key=_heading_number)
    return tuple(_flag(option, scope, words, classes.get(option.name)) for option in headed)


SHORT: Mapping[str, tuple[str, ...]] = {"model": ("-m",), "samples": ("-n",), "concurrency": ("-c",), "out": ("-o",)}
"""Short forms of the flags that are typed most; none of them stands for an option of a judge."""


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
    option: Option, scope: str, words: Mapping[str, str], kind: type[click.Option] | None, *, hidden: bool = False
) -> Callable[[F], F]:
    """The decorator that gives a command the flag of one option.

    scope: a word before the parameter's name, such as `judge`; empty for none. words: option → its flag. kind: the
    option's own click class; None: click's usual one. hidden: leave it out of the help.
    """
    word = words[option.name]
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
    plain: dict[Any, Any] = {int: click.INT, float: click.FLOAT, tuple[int, ...]: click.INT}
    # A path stays a text here: as a Path, an empty one would become the current folder, which the option accepts.
    return click.Path() if option.type is Path else plain.get(option.type, click.STRING)


# ---- defaults from the environment


PREFIX = "HARNESS_RUN"
SETTINGS = {"auto_envvar_prefix": PREFIX}
"""The context setting of a command whose options may come from the environment."""


_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z")

MAX_FILE_BYTES = 1024 * 1024
"""Longest file of variables."""


def environment_values(context: click.Context) -> list[str]:
    """The options whose value comes from an environment variable, each as a text: `--max-tokens
    (HARNESS_RUN_MAX_TOKENS)`, and a switch as it is set: `HARNESS_RUN_STREAM=true`.

    Raises `UsageError` for a variable that matches no option.
    """
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
        # A switch may be set to either value, and has a flag for one of them only.
        f"{name}={settings[name]}" if getattr(parameter, "is_flag", False) else f"{parameter.opts[-1]} ({name})"
        for name, parameter in variables.items()
        if context.get_parameter_source(str(parameter.name)) is ParameterSource.ENVIRONMENT
    ]


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
        # Eager: the variables must be set before click looks for the defaults of the other options.
        is_eager=True,
        expose_value=False,
        callback=_read,
        help=f"File of NAME=VALUE lines: keys, and defaults of options ({PREFIX}_MAX_TOKENS=…). Default: no file.",
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

    words = {name: flag_of(name) for name in OPTIONS}
    flags = (
        _flag(option, SERVER_SCOPE, words, None, hidden=shown is not None and name not in shown)
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
    """A decorator that gives a command the flags of a run."""
    decorators = (*flags_of(declared), *under(WHOM, _SERVE_OPTION), *_SHOWN)
    return lambda function: give(function, *decorators)


def typed_parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the parameters that were typed on the command line. They override a sweep's file; defaults from the
    environment do not.
    """
    context = click.get_current_context()
    not_typed = (ParameterSource.DEFAULT, ParameterSource.ENVIRONMENT)
    return {name: value for name, value in given.items() if context.get_parameter_source(name) not in not_typed}


def run_given(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run among a command's parameters; those that describe a server are gathered into `serve`."""
    names = (set(options_of(RunOptions)) - {"serve"}) | {"serve_option"}
    of_run = {name: value for name, value in given.items() if name in names}
    return with_server(of_run, given.get("serve"))


# ---- the flags of a judge


_OF_GRADING = ("scope", "votes", "override", "temperature", "max_tokens", "concurrency")
"""Options of a judge that decide nothing before a run, when the judge is only tried."""


def judge_options(function: F, without: Iterable[str] = ()) -> F:
    """A decorator that gives a command the flags of a judge. without: options that get no flag here."""
    return give(function, *flags_of(JudgeOptions, scope="judge", heading=JUDGE, without=(*NO_FLAG, *without)))


def tried_judge_options(function: F) -> F:
    """A decorator that gives a command the flags of a judge that is tried before a run."""
    return judge_options(function, without=_OF_GRADING)


def judge_options_of(given: Mapping[str, Any]) -> JudgeOptions | None:
    """The options of the judge in the flags; None if no judge is named. Raises `UsageError`.

    given: parameters of the judge's flags.
    """
    own = judge_given(given)
    if not own["model"]:
        for name, value in given.items():
            if value not in (None, ()):
                raise UsageError(f"{name} is an option of the judge and needs --judge MODEL")
        return None
    try:
        return JudgeOptions.of(**own)
    except UsageError as error:
        raise UsageError(f"judge: {error.sentence}") from error


def judge_given(given: Mapping[str, Any]) -> dict[str, Any]:
    """The judge's options among a command's parameters; an address behind the model's name is that of its server."""
    own = {name.removeprefix("judge_"): value for name, value in given.items() if name.startswith("judge_")}
    typed = own.get("model") or ""
    if (addressed := re.fullmatch(r"(.+?)@((?:https?|unix|dns\+https?):.+)", typed)) is not None:
        return own | {"model": addressed[1], "base_url": (addressed[2],)}
    model, at, name = typed.rpartition("@")
    if at and model:
        from harness.asking.servers import address_of_running  # a judge is seldom named so

        if (server := address_of_running(name)) is not None:
            return own | {"model": model, "base_url": (server,)}
    # An @ of the model's own name, such as a revision, names no server.
    return own
