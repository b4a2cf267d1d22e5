"""Rewrites options in messages as users type them: a message names an option by its field, as Python and files do.

Only `as_typed` writes them as flags of the running command: `budget_usd` becomes --budget-usd, `canary=False` becomes
--no-canary, and the argument `model` becomes MODEL. Only names in backticks are options. Quoted words (of a server, a
user, a file) and indented lines remain unchanged. Sentences about a YAML file refer to its keys: `max_tokens: 8`.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping

import click

from harness.core.errors import HarnessError, UsageError, as_yaml

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


_OF_FILE = re.compile(r"\S+\.ya?ml(?::\d+)?: ")
_QUOTED = r"(?m:^  .*)|“[^”]*”?|(?<!\w)(?:'[^'\n]*'|\"[^\"\n]*\")(?!\w)"
_OPTION = re.compile(rf"{_QUOTED}|`(?P<name>[a-z]+(?:_[a-z]+)*)(?:=(?P<value>[^`\n]+))?`")
_VALUE = r"'[^'\n]*'|\"[^\"\n]*\"|\[[^]\n]*\]|[\w.-]+"


def as_typed(sentence: str, field: str | None = None) -> str:
    """The sentence with the running command's options, which it has in backticks, as users type them. field: the option
    that begins the sentence.
    """
    if not _spellings:
        return sentence
    if _OF_FILE.match(sentence):
        return as_yaml(sentence)
    parameters = _spellings[-1]
    if sentence.startswith("judge: "):  # followed by keys of the option's own value
        return f"--{sentence}" if "judge" in parameters else sentence

    def spelled(match: re.Match[str]) -> str:
        name, value = match["name"] or "", match["value"]
        if name in parameters:
            return _flag_or_argument(parameters[name], value)
        if "serve_option" in parameters and name:
            from server_launchers.spec import OPTIONS, flag_of  # most commands start no server

            if name in OPTIONS:
                return f"--serve-option {flag_of(name)[2:]}" + (f"={shlex.quote(value)}" if value else "")
        if value and {"policy", "file"} & parameters.keys():  # an option that only the file has
            return as_yaml(match[0])
        return match[0] if match.start() or field is None else match[0].strip("`")

    if field is not None:
        sentence = re.sub(rf"\A{re.escape(field)}(?:=(?:{_VALUE}))?(?=: )", r"`\g<0>`", sentence)
    return _OPTION.sub(spelled, sentence)


def _flag_or_argument(parameter: click.Parameter, value: str | None) -> str:
    """The parameter with its value, as users type it."""
    text = None if value is None else shlex.quote(re.sub(r"""\A(['"])(.*)\1\Z""", r"\2", value.strip("[]")))
    if isinstance(parameter, click.Argument):
        name = re.sub(r"[\[\]]", "", parameter.human_readable_name)
        return name if text is None else f"{name} {text}"
    is_switch = isinstance(parameter, click.Option) and parameter.is_flag
    flag = parameter.opts[-1]
    if is_switch and value == "False" and not flag.startswith("--no-"):
        return f"--no-{flag[2:]}"
    return flag if text is None or is_switch else f"{flag} {'none' if value == 'None' else text}"
