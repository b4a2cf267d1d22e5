"""How an option is spelt on a command line, and the error for a flag that the command lacks."""

from __future__ import annotations

from harness.asking.options.verbs import VERBS, refusal
from harness.core.options import Option, options_of


def flag_of(option: Option) -> str:
    """The flag of an option; for a switch that is on by default, the flag that turns it off."""
    plain = option.flag or option.name.replace("_", "-")
    return f"--no-{plain}" if option.type is bool and option.default is True else f"--{plain}"


def refuse(verb: str, flag: str) -> None:
    """Raise `UsageError` if another command has this flag and a sentence says why this one does not. Otherwise return.

    verb: the verb of this command.
    """
    options = [
        option for taker in VERBS.values() for option in options_of(taker.options).values() if not option.argument
    ]
    names = {flag_of(option): option.name for option in reversed(options)}
    names |= {f"--{name.replace('_', '-')}": name for taker in VERBS.values() for name in taker.refused}
    if (name := names.get(flag.replace("_", "-"))) is not None and (refused := refusal(verb, name)) is not None:
        raise refused
