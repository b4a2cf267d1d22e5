"""The tables of other tools' flags, `tables/*.yaml`, and how to find the answer to a flag.

A flag is written without dashes: `name`. `name=PATTERN` is the flag with a matching value, `a.b` the option `b` in the
value of `a`, `score:name` a flag of our `score` only, and `name*` every flag with this prefix. Our words are a flag or
an argument's name, followed by `{}` for the value, or `{kind}` for the value as `command_line.RENDERINGS` writes it.
Alternatives for different commands are separated by ` / `.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from harness.core import yaml_file

COMMON = "common"
"""The table of flags that mean the same in every tool."""
ASKED = ("run", "score", "serve")
"""The commands that answer the flags of every table; the others answer those of `common`."""
SERVE_OPTION = "--serve-option"
"""The flag, of commands that start their own server, for a server option; its value is KEY=VALUE or
engine-flag=WORD.
"""
_OUR_FLAG, _COMMAND = re.compile(r"(?<![\w-])--[a-z][a-z-]*"), re.compile(r"`[^`]*`")


_PAIR = re.compile(r"--([a-z-]+)(?: (?!--)(\S+))?")
"""A flag and its value, if any."""


class Answer(NamedTuple):
    """Our equivalent of a flag: our words (`--samples {}`), or a sentence that says why there are none."""

    text: str
    is_reason: bool = False
    is_loss: bool = False
    """Whether a command without the flag does less than the other tool's."""

    def words_for(self, names: Collection[str]) -> str:
        """The words for a command with these flags and arguments; empty if none of the words fit."""
        from server_launchers.spec import OPTIONS, flag_of

        for words in () if self.is_reason else self.text.split(" / "):
            name = words.partition(" ")[0]
            if name in names:
                return words
            if SERVE_OPTION in names and name in map(flag_of, OPTIONS):
                return " ".join(f"{SERVE_OPTION} {key}={value or 'true'}" for key, value in _PAIR.findall(words))
        return ""

    def reason_for(self, names: Collection[str]) -> str:
        """The sentence if the command has every flag mentioned in it; otherwise empty."""
        has_all = {*names}.issuperset(_OUR_FLAG.findall(_COMMAND.sub("", self.text)))
        return self.text if self.is_reason and has_all else ""


@dataclass(frozen=True)
class FlagTable:
    """The table of one tool."""

    name: str = ""
    """The name of the table's file."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Our words → the flags that mean the same; no words: flags whose effect is always on here."""
    harmless: Mapping[str, str] = field(default_factory=dict)
    """Sentence → the flags that have no counterpart, and whose absence changes neither scores nor times."""
    losses: Mapping[str, str] = field(default_factory=dict)
    """Sentence → the flags without which our command does less than the other tool's."""
    starts: Mapping[str, str] = field(default_factory=dict)
    """First words of the tool's command → first words of ours."""
    words: str = ""
    """The flags that the tool's first, second, … arguments stand for; the last flag covers all further arguments."""
    fields: str = ""
    """The flags whose value contains options: `a=1,b=2`, or JSON."""
    default: str = ""
    """The benchmark of a command that does not name one."""
    rest: str = ""
    """`engine`: any other flag is passed to the engine unchanged."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Flags of one meaning → the value that the tool uses if none of them is given."""
    key: str = "OPENAI_API_KEY"
    """The variable that holds the API key."""
    like: str = ""
    """The table whose flags the tool takes, too."""
    marks: str = ""
    """Flags of which only this tool has one, for a script whose name other projects use, too."""
    program: str = ""
    """The first words after the name of a server that is started as any program."""
    launchers: str = ""
    """Programs that start another program, which a later word names."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """First words of a tool's command → why there is no equivalent."""
    on_ascend: Mapping[str, str] = field(default_factory=dict)
    """Engine → the engine in its place on Ascend NPUs."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """A word typed in place of a command → what to use instead."""

    @cached_property
    def answers(self) -> Mapping[str, Answer]:
        """Name → answer."""
        rows = [(names, Answer(words)) for words, names in self.options.items()]
        rows += [(names, Answer(sentence, is_reason=True)) for sentence, names in self.harmless.items()]
        rows += [(names, Answer(sentence, is_reason=True, is_loss=True)) for sentence, names in self.losses.items()]
        return {name: one for names, one in rows for name in names.split()}

    def find(self, name: str, value: str = "", *, groups: bool = False) -> Answer | None:
        """The answer to the flag with this value, or else to the flag alone. groups: return the answer to the flag's
        group instead.
        """
        if groups:
            return next((self.answers[one] for one in self.answers if "=" not in one and fnmatchcase(name, one)), None)
        valued = (one for one in self.answers if "=" in one and fnmatchcase(f"{name}={value}", one))
        return self.answers.get(next(valued, name))


@cache
def tables() -> Mapping[str, FlagTable]:
    """Name → table."""
    files = sorted((Path(__file__).parent / "tables").glob("*.yaml"))
    read = {path.stem: yaml_file.read_mapping(path, "a table of flags") for path in files}
    for table in read.values():
        for part, entries in read.get(table.get("like", ""), {}).items():
            if part != "starts":
                table[part] = entries | table.get(part, {}) if isinstance(entries, dict) else table.get(part, entries)
    return {name: FlagTable(name=name, **table) for name, table in read.items()}


def flag_name(word: str) -> str:
    """The name of a flag in tables: `--max_tokens` → `max-tokens`."""
    return word.lstrip("-+").replace("_", "-")


def answer(table: FlagTable, flag: str, value: str = "") -> Answer | None:
    """The answer to a typed flag, or to an option in a value (`--model_args.base_url`); None if there is none."""
    name = flag_name(flag)
    for groups in (False, True):
        for known in (table, tables()[COMMON]):
            for spelling in (name, name.rpartition(".")[2]):
                found = known.find(spelling, value, groups=groups)
                # A flag without a counterpart here may be an engine option.
                if found is not None and not (table.rest and found.is_reason and known is not table):
                    return found
    return None


def answers_to(command: str, flag: str) -> Iterator[Answer]:
    """Yield the answers of all tables to a flag that our command does not accept, starting with `common`."""
    common, every = tables()[COMMON], tables().values()
    for name in (f"{command}:{flag_name(flag)}", flag_name(flag)):
        for table in (common, *(one for one in every if one.starts)) if command in ASKED else (common,):
            yield from filter(None, (table.find(name), table.find(name, groups=True)))
