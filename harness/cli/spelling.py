"""Rewrites options in messages as users type them: a message names an option by its field, as Python and files do.

Only `as_typed` writes them as flags of the running command: `budget_usd` becomes --budget-usd, `canary=False` becomes
--no-canary, and the argument `model` becomes MODEL. Quoted words, commands, and sentences about a line of a file, which
refer to the file's keys, remain unchanged.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping

import click

from harness.core.errors import HarnessError, UsageError

_spellings: list[Mapping[str, click.Parameter]] = []
"""The running command's parameters by name; a list instead of a context variable, because threads warn, too."""

SERVER = "server_"
"""Prefix of an engine command's parameters that describe the server."""


@contextlib.contextmanager
def typed_in(command: click.Command) -> Iterator[None]:
    """A `with` block in which messages spell options as this command accepts them, including errors that leave the
    block.
    """
    named = {parameter.name or "": parameter for parameter in command.params}
    _spellings.append({name.removeprefix(SERVER): one for name, one in named.items()} | named)
    try:
        yield
    except HarnessError as error:
        error.sentence = as_typed(error.sentence, error.field if isinstance(error, UsageError) else None)
        raise
    finally:
        _spellings.pop()


_OF_FILE = re.compile(r"\S+\.(?:ya?ml|json|jsonl|csv)(?::\d+)?: ")
_OPTION = re.compile(
    # First, what remains unchanged: quoted text, and code that is more than a name.
    r"""(?P<kept>(?<!\w)(?:'[^'\n]*'|"[^"\n]*")(?!\w)|`[^`\n]*[^\w`=,.'-][^`\n]*`)"""
    r"|(?P<tick>`?)(?<![\w./{,-])(?P<name>[a-z]+(?:_[a-z]+)*)(?:=(?P<value>'[^'\n]*'|\[[^]\n]*\]|[\w.-]+))?(?P=tick)(?![\w/}.=-]\w|=)"
)


_FLAG_BEFORE = re.compile(r"--[a-z-]+[ =]\Z")
_TWICE = re.compile(r"(--[a-z][a-z-]*) \((\1(?![a-z-])[^()]*)\)")
"""A flag next to itself, which results when a message spells an option both ways."""
_BEFORE_ADVICE = ("give ", "as ", "or ", "with ", "by ", "add ", "set ", "use ")
"""Words that precede an option with a value in advice; elsewhere, a word with a value may be the label of a sweep
cell.
"""


def as_typed(sentence: str, field: str | None = None) -> str:
    """The sentence with the running command's options as users type them. field: the option that begins the
    sentence.
    """
    if not _spellings or _OF_FILE.match(sentence):
        return sentence
    parameters = _spellings[-1]
    if sentence.startswith("judge: "):  # followed by keys of the option's own value
        return f"--{sentence}" if "judge" in parameters else sentence

    # A bare word, such as model, may be plain English. It is an option in backticks, with `_`, at the start, or in
    # advice.
    def spelled(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        # A word after a flag is the flag's value.
        if name is None or _FLAG_BEFORE.search(sentence[: match.start()]):
            return match[0]
        is_first = field == name and match.start() == 0
        advised = value is not None and sentence[: match.start()].endswith(_BEFORE_ADVICE)
        if name in parameters and (match["tick"] or "_" in name or is_first or advised):
            return _flag_or_argument(parameters[name], value)
        # an option of another command that was typed here
        return f"--{name.replace('_', '-')}" if is_first and value is None else match[0]

    return _TWICE.sub(r"\2", _OPTION.sub(spelled, sentence))


def _flag_or_argument(parameter: click.Parameter, value: str | None) -> str:
    """The parameter with its value, as users type it."""
    text = None if value is None else shlex.quote(value.strip("[]'"))
    if isinstance(parameter, click.Argument):
        name = re.sub(r"[\[\]]", "", parameter.human_readable_name)
        return name if text is None else f"{name} {text}"
    is_switch = isinstance(parameter, click.Option) and parameter.is_flag
    flag = parameter.opts[-1]
    if is_switch and value == "False" and not flag.startswith("--no-"):
        return f"--no-{flag[2:]}"
    return flag if text is None or is_switch else f"{flag} {'none' if value == 'None' else text}"
