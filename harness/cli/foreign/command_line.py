"""Translates another tool's command line into one of ours. Nothing is run, and no API key is shown."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from harness.benchmarks import catalog
from harness.cli.foreign.tables import SERVE_OPTION, FlagTable, answer, flag_name, tables
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.secret import command_words, is_secret, looks_like_a_key, names_a_secret
from server_launchers.engines import table as engines
from server_launchers.spec import OPTIONS, flag_of

_LAUNCHER = re.compile(r"accelerate|conda|docker|nohup|podman|poetry|python[\d.]*|srun|sudo|time|torchrun|uvx?")
"""Programs that start another program, which a later word names."""
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.ASCII | re.DOTALL)
_FLAG = re.compile(r"--?[A-Za-z]|\+\+")
_REDIRECTION = re.compile(r"(?<=\s)[0-9&]?>{1,2}\s*(&[0-9]|[\w./-]+)(?=\s|$)")
_PLACE = re.compile(r"\{(\w*)\}")
NO_COUNTERPART = "It has no equivalent here"
KEY = "Keys are not printed: export the key's environment variable"


@dataclass
class Translation:
    """Our equivalent of another tool's command."""

    command: Sequence[str]
    """The first words of our command."""
    takes: Collection[str]
    """The names of our command's flags and arguments."""
    environment: Sequence[str] = ()
    """NAME=VALUE words before our command."""
    benchmarks: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    options: list[tuple[str, ...]] = field(default_factory=list)
    """Flags, each with its value."""
    body: dict[str, Any] = field(default_factory=dict)
    """The value of --extra-body."""
    engine: list[str] = field(default_factory=list)
    """The words after ` -- `."""
    notes: dict[str, str] = field(default_factory=dict)
    """A flag of the other tool → why it is omitted."""

    def line(self) -> str:
        """The command for a shell, on one line without API keys; empty if its benchmark or model is missing."""
        options = [*self.options, *([("--extra-body", json.dumps(self.body))] if self.body else [])]
        arguments = [*filter(None, [",".join(dict.fromkeys(self.benchmarks))]), *dict.fromkeys(self.arguments)]
        flags = {*self.command, *(option[0] for option in options)}
        if not arguments and flags.isdisjoint(("--data", "probe")):
            return ""
        words = [*self.command, *arguments, *(word for option in options for word in option)]
        words += ["--", *self.engine] if self.engine else []
        return " ".join([*self.environment, *map(quoted, command_words(["harness", *words]))])

    def add(self, words: str, flag: str, values: Sequence[str]) -> None:
        """Add words of a table, with the values of the other tool's flag filled in."""
        value = values[0] if values else ""
        name, *rest = words.split(" ")
        if "{benchmark" in words:
            rest = self._cards(",".join(values), flag)
        rest = [_PLACE.sub(lambda place: RENDERINGS[place[1]](value, flag), word) for word in rest]
        if name == "BENCHMARKS":
            self.benchmarks += rest
        elif not name.startswith("-"):
            self.arguments += rest
        elif name == "--extra-body":
            for key, part in _fields(rest[0]):
                before = self.body.get(key)
                self.body[key] = before | part if isinstance(before, dict) and isinstance(part, dict) else part
        elif "{" in words or value.lower() not in ("false", "0", "none"):
            self.add_options([name, *rest])

    def add_options(self, words: Sequence[str]) -> None:
        """Add a switch, or flags that are each followed by a value."""
        self.options += [tuple(words[i : i + 2]) for i in range(0, len(words), 2)]

    def drop_unserved(self) -> None:
        """Omit options of a server that is not started or whose engine does not support them; add a note on each."""
        values = dict(option for option in self.options if len(option) == 2)
        engine = engines.find(None if "--base-url" in values else values.get("--serve"))
        names = [flag_of(name)[2:] for name in OPTIONS if engine is not None and name in engine.takes]
        for option in [option for option in self.options if option[0] == SERVE_OPTION]:
            if option[1].partition("=")[0] not in names:
                self.options.remove(option)
                self.notes[visible(" ".join(option), 80)] = (
                    "This option is not supported by any server that this command starts"
                )
        if engine is None:
            self.options = [option for option in self.options if option[0] != "--serve"]

    def _cards(self, names: str, flag: str) -> list[str]:
        """Return the cards of comma-separated tasks; add a note on each task without a card."""
        cards = {name: card_named(name) for name in re.split(r"[,\s]+", names) if name}
        for name in (name for name, card in cards.items() if not card):
            shown, hint = visible(re.split(r"[|/@]", name)[-1], 80), catalog.near_to(name)
            self.notes[f"{flag} {visible(name, 80)}"] = f"There is no benchmark {shown}.{hint} See `harness benchmarks`"
        return [card for card in cards.values() if card]


def card_named(task: str) -> str:
    """The card for another tool's task name, with the number of samples, as in `aime24:64`; empty if there is none."""
    number = re.search(r":\d+\Z", task)
    whole = task[: number.start()] if number else task
    pieces = [piece.replace(":", "_") for piece in re.split(r"[|/@]", whole)]
    names = [whole, *pieces, re.sub(r"_gen(_[0-9a-f]{4,8})?\Z", "", whole)]
    known = next(filter(catalog.knows, names), "")
    return catalog.load(known).name + (number[0] if number else "") if known else ""


RENDERINGS: Mapping[str, Callable[[str, str], str]] = {
    "": lambda value, _: value,
    "none": lambda _value, _: "",
    "url": lambda value, _: re.sub(r"/((chat/)?completions|responses|messages)/?\Z", "", value),
    "after": lambda value, _: value.partition("/")[2],
    "host": lambda value, _: value.rpartition(":")[0],
    "port": lambda value, _: value.rpartition(":")[2],
    "field": lambda value, flag: json.dumps({flag.rpartition(".")[2].lstrip("-"): _json(value)}),
    "chat": lambda value, flag: json.dumps({"chat_template_kwargs": {flag.rpartition(".")[2]: _json(value)}}),
}
"""Kind of a placeholder in a table's words → the function that renders a value and its flag there."""


def quoted(word: str) -> str:
    """A word quoted for a shell and safe for a terminal: control characters are written as escapes (`$'…'`)."""
    escaped = visible(word.replace("\\", "\\\\").replace("'", "\\'"))
    return shlex.quote(word) if visible(word) == word else f"$'{escaped}'"


def _json(text: str) -> Any:
    """The JSON value of a text; the text itself if it is not JSON."""
    try:
        return codec.decode(text)
    except (codec.DecodeError, RecursionError):
        return {"true": True, "false": False}.get(text.lower(), text)


def _fields(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and values in `a=1,b=2` or in a JSON object."""
    value = _json(text)
    pairs = [pair.partition("=") for pair in re.split(r",(?=\s*[\w.-]+=)", text)]
    yield from value.items() if isinstance(value, dict) else ((name.strip(), part) for name, is_, part in pairs if is_)


# ---- reading the other tool's words


def translations(args: Sequence[str], takes: Callable[[Sequence[str]], Collection[str]]) -> Iterator[Translation]:
    """Yield our equivalents of the other tools' commands in `args`; nothing if their first words match no known tool.

    args: words, or one text with whole lines. takes: returns the names of our command's flags and arguments. Raises
    `UsageError` for a text with an unclosed quote.
    """
    environment: dict[str, str] = {}
    for words in _commands(args):
        while words and (words[0] in ("export", "env") or _VARIABLE.fullmatch(words[0])):
            name, is_set, value = words.pop(0).partition("=")
            environment |= {name: value} if is_set else {}
        for table, ours, rest in _started(words):
            keys = [name for name, value in environment.items() if is_secret(name, value) or looks_like_a_key(value)]
            plain = [f"{name}={quoted(value)}" for name, value in environment.items() if name not in keys]
            named = [*takewhile(lambda word: word[0] != "-", ours)]
            translation = Translation(named, takes(named), plain, notes=dict.fromkeys(keys, KEY))
            translation.add_options(ours[len(named) :])
            _translate(translation, table, rest)
            yield translation


def _commands(args: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of each command; commands are separated by line ends, `&&`, `;`, and `|`."""
    if len(args) == 1:
        text = _REDIRECTION.sub("", args[0].replace("\\\n", " ")).replace("\n", " ; ")
        lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split, lexer.commenters = True, ""
        try:
            args = [*lexer]
        except ValueError:
            raise UsageError("the command line contains an unclosed quote") from None
    words: list[str] = []
    for word in [*args, ";"]:
        if word and not set(word) - set(";&|"):
            yield words
            words = []
        elif word.strip() not in ("", "\\", "$"):
            words.append(word)


def _started(words: Sequence[str]) -> Iterator[tuple[FlagTable, list[str], Sequence[str]]]:
    """Yield the table of the tool that the words start, our command, and the remaining words; nothing if no tool
    matches.
    """
    names = [word.rpartition("/")[2].partition(":")[0] for word in words]
    starts = [(start.split(), ours, table) for table in tables().values() for start, ours in table.starts.items()]
    starts.sort(key=lambda one: -len(one[0]))
    for i in range(len(names)):
        for start, ours, table in starts:
            if names[i : i + len(start)] == start:
                yield table, ours.split(), words[i + len(start) :]
                return
        if not _LAUNCHER.fullmatch(names[0]):
            return


def _translate(translation: Translation, table: FlagTable, words: Sequence[str]) -> None:
    """Translate each flag and each argument among the words."""
    left, arguments = [*words], table.words.split()
    while left:
        flag, is_set, value = left.pop(0).partition("=")
        if not _FLAG.match(flag):
            name = arguments[0] if arguments else visible(flag, 80)
            del arguments[: len(arguments) > 1]
            _answer(translation, table, name, [flag + is_set + value])
            continue
        end = next((i for i, word in enumerate(left) if _FLAG.match(word)), len(left))
        values = [value] if is_set else left[:end]
        left = [*_answer(translation, table, flag, values), *left[0 if is_set else end :]]
    if table.default and not translation.benchmarks:
        translation.benchmarks.append(table.default)
    translation.drop_unserved()


def _answer(translation: Translation, table: FlagTable, flag: str, values: Sequence[str]) -> Sequence[str]:
    """Translate one flag; return the words after it that are not its values."""
    found = answer(table, flag, values[0] if values else "")
    fields = [pair for text in values for pair in _fields(text)] if flag_name(flag) in table.fields.split() else []
    for name, part in fields:
        text = part if isinstance(part, str) else codec.encode(part).decode()
        _answer(translation, table, f"{flag}.{name}", [text])
    if found is not None and not fields and (words := found.words_for(translation.takes)):
        translation.add(words, flag, values)
        translation.notes |= {visible(flag, 80): KEY} if names_a_secret(flag) else {}
        return () if "{benchmark" in words else values[int("{" in words) :]
    if found is None and table.rest and not names_a_secret(flag):
        translation.engine += [flag, *values]
    elif not fields and (found is None or found.text):
        reason = (
            found.text if found is not None and found.is_reason else KEY if names_a_secret(flag) else NO_COUNTERPART
        )
        translation.notes[visible(flag, 80)] = reason.rstrip(".")
    return ()
