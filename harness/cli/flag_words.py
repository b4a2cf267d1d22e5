"""The error for a flag that the command lacks, and another command has."""

from __future__ import annotations

from harness.asking.options.verbs import VERBS, refusal
from harness.core.options import options_of


def refuse(verb: str, flag: str) -> None:
    """Raise `UsageError` if another command has this flag and a sentence says why this one does not. Otherwise return.

    verb: the verb of this command.
    """
    options = [
        option for taker in VERBS.values() for option in options_of(taker.options).values() if not option.argument
    ]
    names = {option.flag_word: option.name for option in reversed(options)}
    names |= {f"--{name.replace('_', '-')}": name for taker in VERBS.values() for name in taker.refused}
    if (name := names.get(flag.replace("_", "-"))) is not None and (refused := refusal(verb, name)) is not None:
        raise refused
