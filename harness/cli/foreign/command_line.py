"""Translates another tool's command line into one of ours. Nothing is run, and no API key is shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase

from harness.cli.foreign.tables import COMMON, FlagTable, answer, flag_name, tables
from harness.cli.foreign.translation import MANY, Translation, fields_in, quoted
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.sanitize import visible
from harness.core.secret import is_secret, looks_like_a_key, names_a_secret

_FLAG = re.compile(r"--?[A-Za-z]|\+\+")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\$`]|\\.)*\"", re.DOTALL)
_SYNTAX = {
    r"^(services|apiVersion):": "Compose files and manifests are not read: type the command of a container",
    r"^\s*(for|while|until|if|case|select|function)\b": "Loops and conditions are not read: type one command",
    r"<[A-Za-z_][\w.-]*>": "Put a value in place of <NAME>",
    r"[<>]": "Redirections are not read: type the command without them",
    r"[;&|()\n]": "Only one command is read: type each command after its own `harness`",
    r"[$`]": "Variables are filled in by a shell: type the command as words, without quotes around it",
}
"""Pattern in the unquoted part of a text → why the text is not one command."""
_OPERATOR = re.compile(r"[;&|()]+|\d*&?[<>]{1,2}&?[\w./-]*|for|while|until|if|case|select|function")
"""A typed word that can only be a shell's."""
_MAX_CHARACTERS = 100_000
UNKNOWN_FLAG = "The harness does not know this flag, so check whether it changes the result"
NOT_TAKEN = "Our command has no equivalent"
AMBIGUOUS = "Several projects have a script of this name, and none of its flags belongs to one that the harness knows"


def words_of(typed: Sequence[str]) -> list[str]:
    """The words of one command, typed as words or as one text. Raises `UsageError` for anything else in a shell's
    language.
    """
    text = typed[0].replace("\\\n", " ").strip() if len(typed) == 1 else ""
    if len(text) > _MAX_CHARACTERS:
        raise UsageError(f"the command line has more than {_MAX_CHARACTERS:,} characters")
    plain = _QUOTED.sub("_", text) or " ".join(word if _OPERATOR.fullmatch(word) else "_" for word in typed)
    for pattern, sentence in _SYNTAX.items():
        if re.search(pattern, plain, re.MULTILINE):
            raise UsageError(sentence)
    try:
        return shlex.split(text) if re.search(r"\s", text) else [*typed]
    except ValueError:
        raise UsageError("the command line contains an unclosed quote") from None


def translation_of(words: Sequence[str], takes: Callable[[Sequence[str]], Collection[str]]) -> Translation | None:
    """Our equivalent of another tool's command; None if it names no known tool.

    takes: returns the names of our command's flags and arguments.
    """
    if (started := _started(words)) is None:
        return None
    at, start, table, ours = started
    if table is None:
        return Translation([], (), lost={" ".join(words[at : at + start])[:80]: ours})
    environment = {match[1]: match[2] for match in map(_ASSIGNMENT.fullmatch, words[:at]) if match}
    keys = [name for name, value in environment.items() if is_secret(name, value) or looks_like_a_key(value)]
    plain = [f"{name}={quoted(value)}" for name, value in environment.items() if name not in keys]
    named = ours.split()[: 1 + ours.startswith("serve ")]
    of_ours = {*takes(named), *(["BENCHMARKS", "--limits"] if named == ["sweep"] else [])}
    translation = Translation(named, of_ours, plain, tool=table.name)
    for variable in keys:
        translation.add_key(table.key, variable)
    translation.add_options(ours.split()[len(named) :])
    translation.engine += [words[at], *table.program.split()] if table.program else []
    typed = _translate(translation, table, words[at + start :])
    _add_defaults(translation, table, typed)
    translation.finish(table, typed)
    return translation


def _is_before(word: str) -> bool:
    """Whether another program's command follows this word: a variable, or a program that starts others."""
    name = word.rpartition("/")[2]
    return bool(_ASSIGNMENT.fullmatch(word) or name in tables()[COMMON].launchers.split())


def program_in(words: Sequence[str]) -> str:
    """The program that a command starts, or its Python script or module; the first word if no other is found."""
    left = [*words]
    while left and _is_before(left[0]):
        del left[0]
        while left and left[0].startswith("-"):
            if left.pop(0) == "-m":
                return left[0] if left else "-m"
    return (left or [*words])[0]


def _started(words: Sequence[str]) -> tuple[int, int, FlagTable | None, str] | None:
    """Where a known tool starts among the words, in how many words, its table, and our first words; without a table, a
    sentence on why there are none. None if no tool is known.
    """
    names = [word.rpartition("/")[2] for word in words]
    starts = [(start.split(), ours, table) for table in tables().values() for start, ours in table.starts.items()]
    starts.sort(key=lambda one: -len(one[0]))
    refused = [(start.split(), sentence, None) for start, sentence in tables()[COMMON].refusals.items()]
    flags = {flag_name(word.partition("=")[0]) for word in words}
    for i in range(len(names) if words and _is_before(words[0]) else min(1, len(names))):
        whole = f"/{words[i]}"
        here = [
            one
            for one in (*starts, *refused)
            if names[i : i + len(one[0])] == one[0] or ("/" in one[0][0] and whole.endswith(f"/{one[0][0]}"))
        ]
        for start, ours, table in here:
            if table is None or not start[0].endswith(".py") or flags & {*table.marks.split()}:
                return i, len(start), table, ours
        if here:
            return i, 1, None, AMBIGUOUS
    return None


def _translate(translation: Translation, table: FlagTable, words: Sequence[str]) -> dict[str, str]:
    """Translate each flag and each argument among the words; return the flags' first values by name."""
    left, arguments, typed = [*words], table.words.split(), dict[str, str]()
    while left:
        flag, is_set, value = left.pop(0).partition("=")
        if not _FLAG.match(flag):
            name = arguments[0] if arguments else visible(flag, 80)
            del arguments[: len(arguments) > 1]
            _answer(translation, table, name, [flag + is_set + value])
            continue
        end = next((i for i, word in enumerate(left) if _FLAG.match(word)), len(left))
        values = [value] if is_set else left[:end]
        typed[flag_name(flag)] = values[0] if values else ""
        left = [*_answer(translation, table, flag, values), *left[0 if is_set else end :]]
    return typed


def _add_defaults(translation: Translation, table: FlagTable, typed: Collection[str]) -> None:
    """Translate what the tool does without flags. typed: the flags that are given, without dashes."""
    for names, value in table.defaults.items():
        flag, *_ = alike = names.split()
        found = answer(table, flag, value)
        words = found.words_for(translation.takes) if found is not None else ""
        if not {*alike} & {*typed} and translation.value_of(words.partition(" ")[0]) is None:
            _answer(translation, table, flag, [value])
    if table.default and not translation.benchmarks:
        translation.benchmarks.append(table.default)


def _answer(translation: Translation, table: FlagTable, flag: str, values: Sequence[str]) -> Sequence[str]:
    """Translate one flag; return the words after it that are not its values."""
    name, shown, value = flag_name(flag), visible(flag, 80), values[0] if values else ""
    if any(fnmatchcase(name, pattern) for pattern in table.fields.split()):
        fields = [pair for text in values for pair in fields_in(text)]
        for key, part in fields:
            text = part if isinstance(part, str) else codec.encode(part).decode()
            _answer(translation, table, f"{flag}.{key}", [text])
        if fields:
            return ()
    found = answer(table, flag, value)
    if names_a_secret(flag) and found in (None, tables()[COMMON].answers["api-key"]):
        translation.add_key(table.key, shown, value)
        return ()
    if found is not None and (words := found.words_for(translation.takes)):
        translation.add(words, flag, values)
        return () if MANY.search(words) else values[int("{" in words) :]
    if table.rest and (found is None or (found.text and not found.is_reason)):
        translation.engine += [flag, *values]
    elif found is None:
        translation.lost[shown] = UNKNOWN_FLAG
    elif found.text:
        reason = found.text if found.is_reason else NOT_TAKEN
        is_harmless = found.is_reason and not found.is_loss
        (translation.notes if is_harmless else translation.lost)[shown] = reason.rstrip(".")
    return ()
