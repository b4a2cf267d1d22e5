"""The help of commands, and the errors for words that a command does not accept.

For a command with many options, `--help` shows those that most people use; `--help-all` shows all of them under
headings (`under`). For another tool's flag, the error gives the name here; for its command line, our commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import click

from harness.cli.flag_spelling import as_typed, typed_in
from harness.core.errors import UsageError, misspelled, near_names
from harness.core.sanitize import visible
from harness.core.validation import FORMER
from harness.options.commands import refuse_flag

OTHER_HEADING = "Other options"


class Flag(click.Option):
    """A flag. heading: the heading under which the help shows the flag; empty: after all others. prints: the name of
    the result's type if the flag prints a result as JSON (`Option.prints`). help: the help text, or a function called
    when the help is shown.
    """

    def __init__(
        self, *args: Any, heading: str = "", prints: str = "", help: str | Callable[[], str] = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading or OTHER_HEADING
        self.prints = prints
        self._help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The flag and its help, as click shows them."""
        self.help = as_typed(self._help() if callable(self._help) else self._help)
        return super().get_help_record(ctx)


def heading_of(parameter: click.Parameter) -> str:
    """Return the heading under which the help shows the parameter."""
    return parameter.heading if isinstance(parameter, Flag) else OTHER_HEADING


class Helping(click.Command):
    """A command with a short help page if it has many options; it also recognizes option names of other tools.

    first: names of the parameters in the short help; empty: the help shows all. command: the name under which its
    options are listed (`harness.options.commands`). With click's setting `ignore_unknown_options`, its arguments may
    begin with a dash, such as `-5`; unknown long options are still rejected.
    """

    def __init__(self, *args: Any, first: Sequence[str] = (), command: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.command = command
        self.first = first
        # Without a short help, --help-all shows the same as --help, so that every command accepts it.
        self.params.append(help_all(hidden=not first))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings: those in `first`, or all of them after --help-all."""
        rows: dict[str, list[tuple[str, str]]] = {}
        hidden = 0
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None or isinstance(parameter, click.Argument):
                continue
            if not self.first:
                heading = "Options"
            elif ctx.meta.get(_ALL):
                heading = heading_of(parameter)
            elif parameter.name in self.first or parameter.is_eager:
                heading = "Options"
            else:
                hidden += 1
                continue
            rows.setdefault(heading, []).append(record)
        if OTHER_HEADING in rows:
            rows[OTHER_HEADING] = rows.pop(OTHER_HEADING)
        for heading, records in rows.items():
            with formatter.section(heading):
                formatter.write_dl(records)
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{hidden} more options: {ctx.command_path} --help-all")
            formatter.write_paragraph()

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """The context for the words that were typed; errors spell options as users type them (`flag_spelling`)."""
        with typed_in(self):
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; its messages spell options as users type them (`flag_spelling`)."""
        with typed_in(self):
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; the error for an unknown option names the command that has the option, or similar names."""
        if not ctx.resilient_parsing:
            refuse_misplaced(self, args)
        if ctx.ignore_unknown_options:
            self._refuse_long_options(ctx, args)
        # click would reject extra arguments with its own message, and it removes words from `args`.
        refuses_more, typed = not ctx.allow_extra_args, [*args]
        ctx.allow_extra_args = True
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            self._refuse(ctx, self._unknown(ctx, typed) or [error.option_name])
        except click.MissingParameter as error:
            if not (line := _example(self, ctx)):
                raise
            raise click.MissingParameter(f"{error.message} For example: `{line}`".strip(), ctx, error.param) from None
        if refuses_more and rest and not ctx.resilient_parsing:
            raise UsageError(_too_many(rest, self, ctx))
        return rest

    def _refuse_long_options(self, ctx: click.Context, args: list[str]) -> None:
        """Raise an error that lists similar flags for a word that looks like a long option but is not a flag."""
        if (unknown := self._unknown(ctx, args)) and not ctx.resilient_parsing:
            self._refuse(ctx, unknown, " If it is the reference or the response, put -- before it.")

    def _unknown(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The distinct words before ` -- ` that look like long options but are not flags."""
        names = [word.partition("=")[0] for word in (args[: args.index("--")] if "--" in args else args)]
        known = flags_and_arguments(self) | {*self.get_help_option_names(ctx)}
        return [
            *dict.fromkeys(one for one in names if _LONG_OPTION.fullmatch(one) and one.replace("_", "-") not in known)
        ]

    def _refuse(self, ctx: click.Context, flags: Sequence[str], remark: str = "") -> NoReturn:
        """Raise the error for unknown options, with a sentence for each: what another tool's option is called here, or
        else the command that has it, or else similar names; `remark` follows.
        """
        if len(flags) == 1 and self.command and not _meaning(flags[0], self, ctx):
            refuse_flag(self.command, flags[0])
        sentences = dict.fromkeys(_no_such(flag, self, ctx) for flag in flags)
        raise click.UsageError("\n".join(sentences) + remark, ctx) from None


_LONG_OPTION = re.compile(r"--[A-Za-z][A-Za-z_-]*")


def refuse_misplaced(command: click.Command, args: Sequence[str]) -> None:
    """Raise a `UsageError` if an option before ` -- ` has no value, or if one that takes a single value is repeated.

    A word that begins with `--`, or that is an option of the command, is no value of the option before it, unless `=`
    joins the two: otherwise `--out $OUT --dry-run`, with an empty OUT, would send requests.
    """
    takes = {
        flag: one for one in command.params if isinstance(one, click.Option) and not one.is_flag for flag in one.opts
    }
    flags, given = flags_and_arguments(command), set[str]()
    words = [*args[: args.index("--") + 1 if "--" in args else None], ""]
    for word, following in pairwise(words):
        flag, joined, _ = word.partition("=")
        flag = flag.replace("_", "-") if word.startswith("--") else word[:2]
        if (option := takes.get(flag)) is None:
            continue
        is_alone = not joined and (word.startswith("--") or len(word) == 2)
        if is_alone and (following.startswith("--") or following in flags):
            there = visible(following.partition("=")[0], 80)
            raise UsageError(
                f"{flag}: expected a value, but found the option {there}. Type the value after {flag}, "
                f"or {flag}={there} if that is the value"
            )
        if not option.multiple and option.name in given:
            raise UsageError(f"{flag}: it accepts one value, but it was typed more than once. Type it once")
        given.add(option.name or "")


def _example(command: click.Command, ctx: click.Context) -> str:
    """The first example in the command's help, without its remark or a second command; empty if the help has none."""
    # The program may have been started by its path.
    _, _, command_name = ctx.command_path.partition(" ")
    lines = map(str.strip, f"{command.help}\n{command.epilog}".splitlines())
    example = next((line for line in lines if line.startswith(f"harness {command_name} ")), "")
    return re.split(" +#| && ", example)[0]


def _too_many(rest: Sequence[str], command: click.Command, ctx: click.Context) -> str:
    """The sentence about arguments beyond those that the command accepts."""
    first, benchmarks = visible(rest[0], 80), ctx.params.get("benchmarks")
    pieces = command.collect_usage_pieces(ctx)
    if isinstance(benchmarks, str) and "BENCHMARKS" in " ".join(pieces):
        listed = visible(",".join(word.strip(",") for word in [benchmarks, *rest]), 200)
        return f"unexpected argument {first}: separate multiple benchmarks with commas, as in {listed}"
    taken = " ".join(piece for piece in pieces if piece != command.options_metavar)
    return f"unexpected argument {first}: `{ctx.command_path}` accepts {taken or 'only options'}"


_ALL = "harness.cli.help.all"


def help_all(*, hidden: bool) -> click.Option:
    """The --help-all option of a command or a group. hidden: omit it from the help."""
    return click.Option(
        ["--help-all"],
        is_flag=True,
        # Eager, so that it works even if required arguments are missing.
        is_eager=True,
        expose_value=False,
        callback=show_all,
        help="Show all options, grouped by topic.",
        hidden=hidden,
    )


def show_all(ctx: click.Context, _parameter: click.Parameter, typed: bool) -> None:
    """If `--help-all` was typed, print the help with all options, for a group also that of its commands, and exit."""
    # Shell completion also parses the line and must print nothing.
    if not typed or ctx.resilient_parsing:
        return
    ctx.meta[_ALL] = True
    click.echo(ctx.get_help(), color=ctx.color)
    if isinstance(ctx.command, click.Group):
        for page in whole_help(ctx.command, ctx):
            click.echo(f"\n\n{page}", color=ctx.color)
    ctx.exit()


def whole_help(group: click.Group, ctx: click.Context) -> Iterator[str]:
    """Yield the help of each command of `group`, with all options; a nested group is followed by the help of its
    commands.
    """
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        own = command.context_class(command, parent=ctx, info_name=name)
        own.meta[_ALL] = True
        with typed_in(command):
            yield command.get_help(own)
        if isinstance(command, click.Group):
            yield from whole_help(command, own)


def _no_such(name: str, command: click.Command, ctx: click.Context) -> str:
    """The error for an unknown option, with the flag or argument that was probably meant, or similar names."""
    flags = [flag for parameter in command.params if isinstance(parameter, click.Option) for flag in parameter.opts]
    meaning = _meaning(name, command, ctx)
    dashed, name = name.replace("_", "-"), visible(name, 80)  # click would strip an escape sequence and show a flag
    if not meaning and (near := misspelled(name, (flag for flag in flags if flag.startswith("--")))):
        return f"No such option: {name}.{near}"
    # For an engine's command: if the sentence names none of its flags, it is about a flag of `harness run`.
    if (command.options_metavar or "").endswith("[-- ENGINE FLAGS]") and not {*flags} & {*_FLAG.findall(meaning)}:
        from server_launchers.spec import refusal_of

        behind = f"Put engine flags after ` -- `: `{ctx.command_path} MODEL -- {name}`."
        why = refusal_of(dashed.removeprefix("--"))
        meaning = f"You cannot set this flag: {as_typed(why)}." if why else behind
    page = "--help-all" if isinstance(command, Helping) and command.first else "--help"
    listed = f"`{ctx.command_path} {page}` lists all options."
    likely = near_names(name.strip("-"), (), {flag.strip("-"): flag for flag in flags})
    return f"No such option: {name}. {meaning or f'{listed}{likely}'}"


def _meaning(flag: str, command: click.Command, ctx: click.Context) -> str:
    """A sentence on what to use for an unknown option in this command; empty if the command has no counterpart."""
    name = flag.removeprefix("--").replace("-", "_")
    for parameter in command.params:
        if parameter.name == name:
            return _suggestion(_name_of(parameter), command, ctx)
    if gone := FORMER.get(name.removeprefix("no_")):
        return f"It {gone}."
    names = flags_and_arguments(command)
    from harness.cli.foreign.tables import Answer, answers_to  # only errors need the tables

    own = Answer(f"--{name.replace('_', '-')} VALUE")
    group = ctx.command_path.split()[1:2]
    for found in (*answers_to(group[0] if group else "", flag), own):
        if words := found.words_for(names):
            return _suggestion(words.replace("{field}", f"""'{{"{name}": …}}'"""), command, ctx)
        if reason := found.reason_for(names):
            return reason
    return ""


def _suggestion(words: str, command: click.Command, ctx: click.Context) -> str:
    """The sentence that tells the user which words to type instead."""
    name, _, value = words.partition(" ")
    if name == "--serve-option":
        return f"For the server that --serve starts, use {name} {re.sub(r'{[a-z]*}', 'VALUE', value)}."
    if not name.startswith("-"):
        return "Give its value without a flag" + (f", as in `{line}`." if (line := _example(command, ctx)) else ".")
    is_whole = "…" in value if name == "--extra-body" else value and "{" not in value
    return f"Use {words if is_whole else name} instead."


def _name_of(parameter: click.Parameter) -> str:
    """The flag, or the argument's name without brackets."""
    return parameter.human_readable_name.strip("[].") if isinstance(parameter, click.Argument) else parameter.opts[-1]


def flags_and_arguments(command: click.Command) -> set[str]:
    """The flags of a command, and the names of its arguments."""
    arguments = {_name_of(one) for one in command.params if isinstance(one, click.Argument)}
    return arguments | {flag for one in command.params for flag in (*one.opts, *one.secondary_opts) if flag[0] == "-"}


def single_value_flags(command: click.Command) -> dict[str, str]:
    """Map each flag that sets a single value to the name of its parameter."""
    single = [one for one in command.params if isinstance(one, click.Option) and not one.multiple]
    return {flag: _name_of(one) for one in single for flag in (*one.opts, *one.secondary_opts)}


_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


class HelpingGroup(click.Group):
    """A group of commands whose errors list the available commands. unknown: what the error calls an unknown word."""

    command_class = Helping
    unknown = "unknown command"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(help_all(hidden=True))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names. Raises a `click.UsageError` that lists the commands."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            hint = misspelled(args[0], self.commands)
            if args[0] and not hint and "show" in self.commands:
                hint = f" To see {args[0]}: {ctx.command_path} show {args[0]}"
            listed = ", ".join(self.list_commands(ctx))
            ctx.fail(f"{self.unknown} {visible(args[0], 100)!r}; expected one of {listed}.{hint}")
        return super().resolve_command(ctx, args)


class NumberType(click.types.StringParamType):
    """A number. kind: int or float. or_none: whether `none` is also accepted and converted to None."""

    def __init__(self, kind: type[int] | type[float], example: float = 0.6, *, or_none: bool = False) -> None:
        self.kind, self.name, self.or_none = kind, {int: "integer", float: "float"}[kind], or_none
        self.example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number that a text spells in digits; units, such as k, % or s, are rejected."""
        if self.or_none and value.lower() == "none":
            return None
        try:
            return self.kind(value)
        except ValueError:
            expected = f"a {'whole number written in digits' if self.kind is int else 'number'}, such as {self.example}"
            self.fail(f"{value!r}: expected {expected}{', or `none`' if self.or_none else ''}.", param, ctx)
