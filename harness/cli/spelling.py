"""Options in messages as they are typed here: a message names an option by its field, as Python and files write it.

`as_typed` is the one place that writes them as flags of the command that runs: `budget_usd` becomes --budget-usd,
`canary=False` --no-canary, and `model`, an argument, MODEL. Words in quotes, commands, and the sentences about a line
of a file, whose keys are meant, stay as they are.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping

import click

from harness.core.errors import HarnessError, UsageError

_spellings: list[Mapping[str, click.Parameter]] = []
"""The parameters of the running command by name; a list, not a context variable: threads warn, too."""

SERVER = "server_"
"""Prefix of the parameters of an engine's command that describe the server."""


@contextlib.contextmanager
def typed_in(command: click.Command) -> Iterator[None]:
    """A `with` block in which messages spell options as this command takes them; its errors leave it spelled so."""
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
    # What stays comes first: texts in quotes, and code of more than a name.
    r"""(?P<kept>(?<!\w)(?:'[^'\n]*'|"[^"\n]*")(?!\w)|`[^`\n]*[^\w`=,.'-][^`\n]*`)"""
    r"|(?P<tick>`?)(?<![\w./{,-])(?P<name>[a-z]+(?:_[a-z]+)*)(?:=(?P<value>'[^'\n]*'|\[[^]\n]*\]|[\w.-]+))?(?P=tick)(?![\w/}.=-]\w|=)"
)


_FLAG_BEFORE = re.compile(r"--[a-z-]+[ =]\Z")
_TWICE = re.compile(r"(--[a-z][a-z-]*) \((\1(?![a-z-])[^()]*)\)")
"""A flag beside itself, where a message spells an option both ways."""
_BEFORE_ADVICE = ("give ", "as ", "or ", "with ", "by ", "add ", "set ", "use ")
"""Words before an option with its value in advice; elsewhere a word with a value may be the label of a sweep's cell."""


def as_typed(sentence: str, field: str | None = None) -> str:
    """The sentence with the options of the running command as they are typed. field: the option that it begins with."""
    if not _spellings or _OF_FILE.match(sentence):
        return sentence
    parameters = _spellings[-1]
    if sentence.startswith("judge: "):  # behind it stand keys of the option's own value
        return f"--{sentence}" if "judge" in parameters else sentence

    # A bare word, such as model, may be plain English: it is an option in backticks, with `_`, first, or in advice.
    def spelled(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        # A word behind a flag is its value.
        if name is None or _FLAG_BEFORE.search(sentence[: match.start()]):
            return match[0]
        is_first = field == name and match.start() == 0
        advised = value is not None and sentence[: match.start()].endswith(_BEFORE_ADVICE)
        if name in parameters and (match["tick"] or "_" in name or is_first or advised):
            return _flag_or_argument(parameters[name], value)
        # An option of another command, which was typed here.
        return f"--{name.replace('_', '-')}" if is_first and value is None else match[0]

    return _TWICE.sub(r"\2", _OPTION.sub(spelled, sentence))


def _flag_or_argument(parameter: click.Parameter, value: str | None) -> str:
    """The parameter with its value, as it is typed."""
    text = None if value is None else shlex.quote(value.strip("[]'"))
    if isinstance(parameter, click.Argument):
        name = re.sub(r"[\[\]]", "", parameter.human_readable_name)
        return name if text is None else f"{name} {text}"
    is_switch = isinstance(parameter, click.Option) and parameter.is_flag
    flag = parameter.opts[-1]
    if is_switch and value == "False" and not flag.startswith("--no-"):
        return f"--no-{flag[2:]}"
    return flag if text is None or is_switch else f"{flag} {'none' if value == 'None' else text}"
