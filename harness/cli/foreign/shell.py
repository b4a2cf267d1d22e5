"""Reads a text as a shell program: its commands, their words, and the variables that are set for them.

Nothing is run, and nothing comes from this machine, neither its environment nor its files. A variable that the text
does not set stays a variable in a word (`\ue000NAME\ue001`); what only a run of the program would tell, such as
`$(date)` or `$1`, is `UNKNOWN`.

No library is used: bashlex has the GPL; tree-sitter-bash are two native packages, and expanding their tree takes as
much code as this module; the standard library's shlex does not tell `'$HOME'` from `"$HOME"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from harness.cli.foreign import containers
from harness.core.errors import UsageError

MAX_CHARACTERS = 400_000
"""How much text is read in all: the program, the programs in it, and the values of its variables."""
MAX_NESTING = 8
"""How deep programs may be nested in programs (`bash -c`), and defaults in defaults."""

UNKNOWN = "\ue002"
"""Stands in a word for text that only a run of the program would tell."""
_PIECES = "\ue003"
"""Separates the words that an unquoted variable or an array expands to."""
_ITEMS = "\ue004"
"""Separates the items of an array."""
PRIVATE = dict.fromkeys(map(ord, f"\ue000\ue001{UNKNOWN}{_PIECES}{_ITEMS}"), "�")
UNSET = re.compile("\ue000(\\w+)\ue001")
"""A variable in a word that the text does not set."""

_BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_BLANK_LINES = re.compile(r"\s+|\\\r?\n")
_OPERATOR = re.compile(r"[\n;()]|\|[|&]?|&&?(?!>)")
_REDIRECTION = re.compile(r"(?:\d+|&)?(?:<<<|<<-?|<>|<&|<|>>|>\||>&|>)(?:[ \t]|\\\r?\n)*")
_PLAIN = re.compile(r"[^\s\\'\"$`;&|<>()]+")
_PLACEHOLDER = re.compile(r"<[A-Za-z_][\w.-]*>")
"""The sign of a page for a value, such as `<HOST>`; a shell would read it as redirections."""
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
_PARAMETER = re.compile(r"\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?(?:(:?[-=])|\}))", re.ASCII)
_BEFORE = re.compile(
    rf"[!{{}}$%]|if|then|elif|else|fi|while|until|do|done|time|export|env|{_ASSIGNMENT.pattern}", re.ASCII | re.DOTALL
)
"""Words before a command that it does not get; `$` and `%` are prompts."""
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z|k)?sh")
_PROGRAM = re.compile(r"--(?:wrap|serve-cmd|bench-cmd)(?:=(.*))?", re.DOTALL)
"""Flags of `sbatch` and `vllm bench sweep serve` whose value is a program."""


@dataclass(frozen=True)
class Command:
    """One command of a program. before: the words of the commands that start it (`bash -c`, `sbatch --wrap`)."""

    words: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()


def commands(typed: Sequence[str]) -> Iterator[Command]:
    """Yield the commands of a program, or of the containers in a compose or pod file; those that other commands start
    (`bash -c`, `sbatch --wrap`, a here-document) take the place of these.

    typed: one text, or the words of one command. Raises `UsageError` for an unclosed quote or too much text.
    """
    texts = [text.translate(PRIVATE) for text in typed]
    reader = _Reader(texts[0] if len(texts) == 1 else "")
    return _commands(reader, _found(reader) if len(texts) == 1 else [(texts, "")], {}, 0)


def _found(reader: _Reader) -> Iterable[tuple[list[str], str]]:
    """The simple commands in a reader's text, with their here-documents."""
    if not containers.is_manifest(reader.text):
        return reader.simple_commands()
    return ((words, "") for words in containers.runs(reader.text, reader.expanded, reader.words_in))


def _commands(
    reader: _Reader, found: Iterable[tuple[list[str], str]], exported: dict[str, str], nesting: int
) -> Iterator[Command]:
    """Yield the commands of the reader's program. exported: the variables that its commands get."""
    if nesting > MAX_NESTING:
        raise UsageError(f"programs are nested more than {MAX_NESTING} times")
    for words, body in found:
        local: dict[str, str] = {}
        while words and _BEFORE.fullmatch(words[0]):
            if match := _ASSIGNMENT.fullmatch(word := words.pop(0)):
                local[match[1]] = match[2]
            elif word == "env":
                while words and words[0].startswith("-"):
                    del words[: 1 + (words[0] in ("-u", "-C"))]
            elif word == "export":
                pairs = {match[1]: match[2] for match in map(_ASSIGNMENT.fullmatch, words) if match}
                reader.known |= pairs
                exported |= pairs | {name: reader.known[name] for name in words if name in reader.known}
                words = []
        if not words:
            reader.known |= local
            continue
        inner = list(_inner(words))
        for at, program in [*inner, *([(len(words), body)] if body else [])]:
            of_program = reader.nested(program, local)
            try:
                for one in _commands(of_program, _found(of_program), exported | local, nesting + 1):
                    yield replace(one, before=(*words[:at], *one.before))
            except UsageError:
                if program is not body:  # The lines of another language need not be a program.
                    raise
        if not inner:
            # A variable whose value is already in the words is not for the program.
            passed = {name: value for name, value in exported.items() if name not in reader.used}
            yield Command(words, passed | local)


def _inner(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the programs among a command's words, with the number of words before them."""
    for at, (word, following) in enumerate(zip(words, [*words[1:], ""], strict=True)):
        if _SHELL.fullmatch(word) and re.fullmatch(r"-[a-z]*c", following) and len(words) > at + 2:
            yield at, words[at + 2]
            return
        if match := _PROGRAM.fullmatch(word):
            yield at, following if match[1] is None else match[1]


class _Reader:
    """Reads a program from its first character to its last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.known = dict[str, str]()
        self.used = set[str]()
        self._at = self._depth = 0
        self._left = [MAX_CHARACTERS]
        self._spend(text)

    def nested(self, text: str, variables: Mapping[str, str]) -> _Reader:
        """The reader of a program in this one, which shares its limits. Raises `UsageError`."""
        reader = _Reader("")
        reader.text, reader.known, reader.used = text, {**self.known, **variables}, self.used
        reader._left = self._left
        reader._spend(text)
        return reader

    def _spend(self, text: str) -> None:
        """Count text that has to be read. Raises `UsageError`."""
        self._left[0] -= len(text)
        if self._left[0] < 0:
            raise UsageError(f"the text, with the values of its variables, has more than {MAX_CHARACTERS:,} characters")

    def words_in(self, text: str) -> list[str]:
        """The words of one command."""
        return [word for words, _ in self.nested(text, {}).simple_commands() for word in words]

    def expanded(self, text: str) -> str:
        """The text with the values of its variables."""
        return self.nested(text, {})._text("")

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """A `with` block for text within text. Raises `UsageError` if it is nested too deeply."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise UsageError(f"the text is nested more than {MAX_NESTING} times")
        yield
        self._depth -= 1

    def simple_commands(self) -> Iterator[tuple[list[str], str]]:
        """Yield the words of each simple command, and its here-document."""
        words: list[str] = []
        ends: list[str] = []  # of the here-documents that begin after this line
        while self._at < len(self.text):
            if self._skip(_BLANK):
                continue
            if self.text[self._at] == "#":
                self._at = self._until("\n", self._at)
            elif _PLACEHOLDER.match(self.text, self._at):
                words += self._word()
            elif redirection := self._skip(_REDIRECTION):
                target = self._word()
                ends += target if re.search("(?<!<)<<-?$", redirection.rstrip()) else []
            elif operator := self._skip(_OPERATOR):
                if operator == "\n" or not ends:
                    yield words, "\n".join(map(self._document, ends))
                    words, ends = [], []
            else:
                words += self._word()
        yield words, ""

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Skip what the pattern matches here, and return it."""
        match = pattern.match(self.text, self._at)
        self._at = match.end() if match else self._at
        return match[0] if match else ""

    def _until(self, end: str, start: int, *, required: bool = False) -> int:
        """The place of the next `end`; the text's length if there is none. Raises `UsageError` if it is required."""
        at = self.text.find(end, start)
        if at < 0 and required:
            raise UsageError("the command line contains an unclosed quote")
        return len(self.text) if at < 0 else at

    def _document(self, end: str) -> str:
        """The lines up to the line `end`."""
        match = re.compile(rf"^[ \t]*{re.escape(end)}[ \t]*$", re.MULTILINE).search(self.text, self._at)
        start, self._at = self._at, match.end() if match else len(self.text)
        return self.text[start : match.start() if match else self._at]

    def _word(self) -> list[str]:
        """The word that begins here; several if it is an unquoted variable with blanks, none if it is empty and
        unquoted.
        """
        start, word = self._at, ""
        while self._at < len(self.text):
            c = self.text[self._at]
            if plain := self._skip(_PLAIN) or self._skip(_PLACEHOLDER):
                word += plain
            elif c == "'":
                end = self._until("'", self._at + 1, required=True)
                word, self._at = word + self.text[self._at + 1 : end], end + 1
            elif c == '"':
                self._at += 1
                word += self._text('"')
            elif c == "\\":
                word += self.text[self._at + 1 : self._at + 2].replace("\n", "")
                self._at += 2
            elif c in "$`":
                word += re.sub(r"\s+", _PIECES, self._expansion())
            elif c == "(" and re.fullmatch(r"\w+\+?=", word):
                word += self._array()
            else:
                break
        if self._at == start:  # a character that cannot begin a word
            self._at += 1
        return [piece for piece in word.split(_PIECES) if piece or self.text[start : start + 1] in "'\""]

    def _text(self, end: str) -> str:
        """The text up to `end`, as in double quotes. Raises `UsageError`."""
        read = ""
        while (c := self.text[self._at : self._at + 1]) != end:
            if not c:
                raise UsageError("the command line contains an unclosed quote")
            if c in "$`":
                read += self._expansion()
            elif c == '"':  # in a default of `"${A:-"b"}"`
                self._at += 1
                read += self._text('"')
            elif c == "\\":
                escaped = self.text[self._at + 1 : self._at + 2]
                read += "" if escaped == "\n" else escaped if escaped in '$`"\\' else c + escaped
                self._at += 2
            else:
                read, self._at = read + c, self._at + 1
        self._at += 1
        return read

    def _array(self) -> str:
        """The words in the parentheses that begin here."""
        self._at += 1
        words: list[str] = []
        while self.text[self._at : self._at + 1] not in ("", ")"):
            if self.text[self._at] == "#":
                self._at = self._until("\n", self._at)
            elif not self._skip(_BLANK_LINES):
                with self._deeper():
                    words += self._word()
        self._at += 1
        return _ITEMS.join(words)

    def _expansion(self) -> str:
        """The value of the `$…` or backtick that begins here."""
        match = _PARAMETER.match(self.text, self._at)
        if match is None:
            return self._unknown()
        self._at = match.end()
        name = match[1] or match[2]
        value = self.known.get(name)
        if match[3]:
            with self._deeper():
                default = self._text("}")
            value = value or default
        if value is None:
            value = UNKNOWN if name.isdigit() else f"\ue000{name}\ue001"
        self._spend(value)
        self.used.add(name)
        return value.replace(_ITEMS, _PIECES)

    def _computed(self, text: str) -> str:
        """The value of `$((A*10))`, a whole number; `UNKNOWN` for anything else between `$` and its end."""
        names = re.sub(r"(?<![\w$])([A-Za-z_]\w*)|\$(\w+)", lambda name: self.known.get(name[1] or name[2], ""), text)
        match = re.fullmatch(r"\$\(\(\s*(\d{1,9})\s*([-+*/])\s*(\d{1,9})\s*\)\)", names, re.ASCII)
        if match is None or (match[2] == "/" and not int(match[3])):
            return UNKNOWN
        left, right = int(match[1]), int(match[3])
        return str({"+": left + right, "-": left - right, "*": left * right, "/": left // max(right, 1)}[match[2]])

    def _unknown(self) -> str:
        """Skip what only a run would tell: a substitution, arithmetic, another expansion; a lone `$` is itself."""
        opened = self.text[self._at : self._at + 2]
        if opened == "$'":
            end = self._until("'", self._at + 2, required=True)
            value, self._at = self.text[self._at + 2 : end], end + 1
            return value
        if opened not in ("$(", "${") and opened[0] != "`":
            self._at += 1
            return UNKNOWN if self._skip(re.compile(r"[@*#?$!-]")) else "$"
        if opened[0] == "`":
            self._at = self._until("`", self._at + 1, required=True) + 1
            return UNKNOWN
        depth, start = 0, self._at
        while self._at < len(self.text):
            c = self.text[self._at]
            self._at += 2 if c == "\\" else 1
            if c == "'" and opened == "$(":
                self._at = self._until("'", self._at, required=True) + 1
            depth += (c in "({") - (c in ")}")
            if depth == 0 and c in ")}":
                return self._computed(self.text[start : self._at])
        raise UsageError("the command line contains an unclosed substitution")
