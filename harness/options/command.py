"""The base class for the options of a command, their headings, and options that several commands share."""

from __future__ import annotations

from typing import Annotated, ClassVar

from harness.core.errors import UsageError
from harness.core.options import Option, Options
from harness.presets import grading, sampling

# The headings under which a command's help shows its options.
ASKED = "Questions"
WHOM = "Server"
SAMPLING = sampling.HEADING
REQUEST = "Requests"
BATCH = "Batch API"
LIMITS = "Limits"
MONEY = "Prices"
RESUMING = "Resuming"
OUTPUTS = "Outputs of another tool"
GRADING = grading.HEADING
JUDGE = "Judge"
OUTPUT = "Output"

ORDER = (ASKED, WHOM, SAMPLING, REQUEST, BATCH, LIMITS, MONEY, RESUMING, OUTPUTS, GRADING, JUDGE, OUTPUT)
"""The headings in order."""


class CommandOptions(Options):
    """Options of a command; the docstring of a subclass is the command's help.

    first: names of the options in the short help; empty: the help shows all. dashed: whether an argument may begin with
    a dash, such as -5. apart: tuples of options, the first of which cannot be combined with any of the others.
    """

    first: ClassVar[tuple[str, ...]] = ()
    dashed: ClassVar[bool] = False
    apart: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def _check(self) -> None:
        super()._check()
        self._check_combination()

    def _check_combination(self) -> None:
        """Raise `UsageError` for options that cannot be combined."""
        changed = self.changed
        for name, *others in self.apart:
            if name in changed and (other := next((each for each in others if each in changed), "")):
                raise UsageError(f"it does not work with `{other}`: omit one of them", field=name)


def prints(what: str, type_name: str, under: str = "") -> Option:
    """The option that prints a result as JSON. type_name: the result's type, MODULE:TYPE or list[MODULE:TYPE]."""
    return Option(computed=f"Print {what} as JSON (docs/json.md).", flag="json", under=under, prints=type_name)


class JudgeFlag(Options):
    """A command's judge, with its server and options, as one text."""

    judge: Annotated[
        str | None,
        Option(under=JUDGE, metavar="MODEL[@URL|@NAME][,KEY=VALUE...]"),
    ] = None
    """Model that grades answers left undecided by the rules, followed by its URL or a running server's name. For the
    keys, see docs/judge.md.
    """
