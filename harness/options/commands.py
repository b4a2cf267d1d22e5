"""The commands: each has a class of options, from which its flags, its help and the Python keywords are made.

The class is below `harness.options`, and its docstring is the command's help. The function is in `harness.commands` or
a neighboring package (`probes`, `judges`, `sweeps`, `gates`), and `harness.cli` has a module of the command's name that
prints the result. None of them is imported before it is needed: `harness --help` uses the lines below, and
`harness COMMAND --help` one module of options.

The error for an option that a command does not accept is also made here, the same for the command line and Python.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import NamedTuple, ParamSpec, TypeVar

from harness.core.errors import UsageError
from harness.core.options import Options, options_of
from harness.options.command import CommandOptions

P = ParamSpec("P")
R = TypeVar("R")


class Listed(NamedTuple):
    """A command. line: what it does, for `harness --help`. options: MODULE:CLASS of its options; empty for a group of
    commands, which is defined in its module in `harness.cli`.
    """

    line: str
    options: str = ""


GROUPS = {
    "Serve": {
        "serve": Listed("Start an inference server, or list or stop running servers."),
        "probe": Listed("Check a server for faults that would invalidate a score.", "probing:ProbeCommand"),
    },
    "Ask": {
        "run": Listed("Sample completions for benchmarks; rerun to resume.", "run:RunCommand"),
        "sweep": Listed("Run and score models × servers × settings × benchmarks.", "run:SweepCommand"),
        "benchmarks": Listed("List the benchmark cards, or show one."),
        "status": Listed("Watch a run, a sweep, or all active runs.", "display:StatusCommand"),
        "merge": Listed("Merge the run folders of several clients into one run.", "finished_runs:MergeCommand"),
    },
    "Grade": {
        "score": Listed("Grade and score a run, or another tool's outputs.", "score:ScoreCommand"),
        "grade": Listed("Grade one response against a reference, and explain why.", "finished_runs:GradeCommand"),
        "audit": Listed("Grade samples by hand to measure the grader's errors.", "finished_runs:AuditCommand"),
    },
    "Read": {
        "report": Listed("Print a table of runs, and write Markdown and HTML.", "finished_runs:ReportCommand"),
        "show": Listed("Read a run's questions and samples in the terminal.", "display:ShowCommand"),
        "view": Listed("View runs in the browser.", "display:ViewCommand"),
        "export": Listed("Export a run for training, as a table or for another tool.", "finished_runs:ExportCommand"),
    },
    "Decide": {
        "compare": Listed("Show which run is better, and how certain that is.", "decisions:CompareCommand"),
        "gate": Listed("Check a model against accuracy floors, with few samples.", "decisions:GateCommand"),
        "plan": Listed("Estimate how many samples a comparison needs and what they cost.", "decisions:PlanCommand"),
        "verify": Listed("Check whether a run agrees with published scores.", "decisions:VerifyCommand"),
    },
    "More": {
        "doctor": Listed("Check plug-ins, cards or a run's checksums; run the demo.", "display:DoctorCommand"),
    },
}
"""Heading in `harness --help` → command → what it does, in the order of use."""

COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}


@cache
def options_class(command: str) -> type[CommandOptions]:
    """The options of a command that is not a group."""
    module, _, name = COMMANDS[command].options.partition(":")
    declared: type[CommandOptions] = getattr(importlib.import_module(f"harness.options.{module}"), name)
    return declared


def all_options() -> dict[str, type[CommandOptions]]:
    """Command → its options, in the order of `harness --help`."""
    return {name: options_class(name) for name, command in COMMANDS.items() if command.options}


def refusal(command: str, name: str, typed: str = "") -> UsageError | None:
    """The error for an option that the command does not accept; None if it does, or if no help shows the option.

    typed: the word for the option on a command line; empty for Python, which uses its name.
    """
    # The run comes first, because most people know it.
    declared = {"run": options_class("run"), **all_options()}
    tables = {taker: options_of(options) for taker, options in declared.items()}
    takers = {taker: table[name] for taker, table in tables.items() if name in table}
    flag = f"--{typed.replace('_', '-')}"
    if typed and command in takers and takers[command].flag_word != flag:
        # One name may mean two options: `tool` of a run, and of a scored file, where the flag is --from.
        takers = {taker: option for taker, option in takers.items() if option.flag_word == flag}
    if not takers or command in takers:
        return None
    listed = ", ".join(f"`harness {taker}`" for taker in takers)
    why = f"`harness {command}` does not support this option; it belongs to {listed}"
    return UsageError(f"{flag}: {why}") if typed else UsageError(why, field=name)


def refuse_flag(command: str, flag: str) -> None:
    """Raise `UsageError` if another command has this flag and this one does not."""
    names: dict[str, str] = {}
    for declared in all_options().values():
        for option in options_of(declared).values():
            if not option.argument:
                names.setdefault(option.flag_word, option.name)
    name, typed = names.get(flag.replace("_", "-")), flag.removeprefix("--").replace("-", "_")
    if name is not None and (typed != name or name not in options_of(options_class(command))):
        check(command, [name], typed=typed)


def check(command: str, names: Iterable[str], typed: str = "") -> None:
    """Raise `UsageError` for the first of these options that another command accepts but this one does not.

    typed: as in `refusal`.
    """
    for name in names:
        if (refused := refusal(command, name, typed)) is not None:
            raise refused


def takes(declared: type[Options]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The decorator for a command's function whose `**options` are those of `declared`.

    `help` and editors then show these options by name. An option that only other commands accept raises the same
    `UsageError` as on the command line.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        """The function, which first rejects options of other commands."""
        signature = inspect.signature(function)
        parameters = signature.parameters.items()
        own = {name: parameter for name, parameter in parameters if parameter.kind != parameter.VAR_KEYWORD}
        options = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.accepts)
            for name, option in options_of(declared).items()
            if not option.argument and option.default is not ...
        ]

        @wraps(function)
        def checked(*args: P.args, **keywords: P.kwargs) -> R:
            """Reject options of other commands, then call the function."""
            check(function.__name__, [name for name in keywords if name not in own])
            return function(*args, **keywords)

        checked.__signature__ = signature.replace(parameters=[*own.values(), *options])  # type: ignore[attr-defined]
        return checked

    return decorate
