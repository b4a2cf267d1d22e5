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
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

from harness.cli.foreign import containers
from harness.core.errors import UsageError
from harness.core.secret import is_secret

MAX_CHARACTERS = 400_000
"""How much text is read in all: the program, the programs in it, and the values of its variables."""
MAX_NESTING = 8
"""How deep programs may be nested in programs (`bash -c`), and defaults in defaults."""
_MAX_LIST = 2_000
"""Number of characters in which the `&` after a list of commands is looked for."""

UNKNOWN = "\ue002"
"""Stands in a word for text that only a run of the program would tell."""
REPEATED = -1
"""The branch of a condition that repeats its commands."""
_PIECES = "\ue003"
"""Separates the words that an unquoted variable or an array expands to."""
_ITEMS = "\ue004"
"""Separates the items of an array."""
PRIVATE = dict.fromkeys(map(ord, f"\ue000\ue001{UNKNOWN}{_PIECES}{_ITEMS}"), "�")
UNSET = re.compile("\ue000(\\w+)\ue001")
"""A variable in a word that the text does not set."""

_EXPANSION = (
    r"\$\{(?:[^{}\"']|\"[^\"]*\"|'[^']*'|\$?\{(?:[^{}]|\{[^{}]*\})*\})*\}|`[^`]*`|\$\w+|\$[@*#?$!-]|"
    r"\$\((?:[^()'\"]|'[^']*'|\"[^\"]*\"|\((?:[^()]|\([^()]*\))*\))*\)"
)
_IN_QUOTES = re.compile(rf"\\.|{_EXPANSION}", re.DOTALL | re.ASCII)
PLACEHOLDER = re.compile(r"<[A-Za-z_][\w.-]*>")
"""The sign of a page for a value, such as `<HOST>`; a shell would read it as redirections."""
_START = r"(?<![^\s;&|()])"
_TOKEN = re.compile(
    rf"(?P<gap>(?:[ \t\r]|\\(?:\r?\n|\Z))+|{_START}\#[^\n]*)|"
    rf"(?P<part>{PLACEHOLDER.pattern}|\$?'[^']*'|{_EXPANSION}|\\.|"
    rf"\"(?:[^\"\\$`]|\\.|{_EXPANSION}|\$(?![{{(]))*\")|(?P<redirection>(?:{_START}\d+|&)?(?:<<<|<<-?|<>|<&|>>|>\||>&|[<>]))|"
    r"(?P<operator>[\n;()]|\|[|&]?|&&?)|(?P<plain>[^\s\\'\"$`;&|<>()]+|\$(?![{(]))",
    re.DOTALL | re.ASCII,
)
"""The next piece of a program; nothing matches an unclosed quote."""
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
_PARAMETER = re.compile(r"\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?(?::?[-=](.*))?\})", re.ASCII | re.DOTALL)
_BEFORE = re.compile(
    rf"[!{{}}$%]|if|then|elif|else|fi|while|until|do|done|time|export|env|{_ASSIGNMENT.pattern}", re.ASCII | re.DOTALL
)
"""Words before a command that it does not get; `$` and `%` are prompts."""
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
"""The lines around a program on a page in Markdown."""
_BEFORE_A_BRANCH = frozenset({"!", "{", "then", "do", "time"})
_GLOB = re.compile(r"[*?\[]|\{.*(?:,|\.\.)")
_IN_BACKGROUND = re.compile(r"[^\n;&]*(?:(?:(?<=[<>|])&|&[&>])[^\n;&]*)*&(?![&>])")
"""The rest of a list of commands that ends with `&`."""
_NUMBERS = count()
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z|k)?sh")
_PROGRAM = re.compile(r"--(?:wrap|serve-cmd|bench-cmd)(?:=(.*))?", re.DOTALL)
"""Flags of `sbatch` and `vllm bench sweep serve` whose value is a program."""
_SESSION = re.compile(r"(?:.*/)?(?:ssh|tmux|screen)")
"""Commands of which any word with blanks is a program."""


class _Simple(NamedTuple):
    """A simple command: its words, its here-document, the operator after it, and whether the shell waits for it."""

    words: list[str]
    body: str = ""
    end: str = "\n"
    is_awaited: bool = True


@dataclass(frozen=True)
class Command:
    """One command of a program. before: the words of the commands that start it (`bash -c`, `sbatch --wrap`). branches:
    number of a condition → its branch in which the command is, or `REPEATED`. is_awaited: whether the shell waits for
    its end.
    """

    words: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    branches: Mapping[int, int] = field(default_factory=dict)
    is_awaited: bool = True


def commands(typed: Sequence[str]) -> Iterator[Command]:
    """Yield the commands of a program, or of the containers in a compose or pod file; those that other commands start
    (`bash -c`, `sbatch --wrap`, a here-document) take the place of these.

    typed: one text, or the words of one command. Raises `UsageError` for an unclosed quote or too much text.
    """
    texts = [text.translate(PRIVATE) for text in typed]
    texts = [_FENCE.sub("", text) for text in texts] if len(texts) == 1 else texts
    reader = _Reader(texts[0] if len(texts) == 1 else "")
    return _commands(reader, _simple_commands(reader) if len(texts) == 1 else [_Simple(texts)], {}, 0)


def _simple_commands(reader: _Reader) -> Iterable[_Simple]:
    """The simple commands in a reader's text."""
    if not containers.is_manifest(reader.text):
        return reader.simple_commands()
    return (_Simple(words) for words in containers.runs(reader.text, reader.expanded, reader.words_in))


def _commands(reader: _Reader, found: Iterable[_Simple], exported: dict[str, str], nesting: int) -> Iterator[Command]:
    """Yield the commands of the reader's program. exported: the variables that its commands get."""
    if nesting > MAX_NESTING:
        raise UsageError(f"programs are nested more than {MAX_NESTING} times")
    branches = _Branches(reader)
    for words, body, end, is_awaited in found:
        local: dict[str, str] = {}
        branches.note(words, end)
        while words and _BEFORE.fullmatch(words[0]):
            if match := _ASSIGNMENT.fullmatch(word := words.pop(0)):
                local[match[1]] = match[2]
            elif word == "env":
                while words and words[0].startswith("-"):
                    del words[: 1 + (words[0] in ("-u", "-C"))]
            elif word == "export":
                pairs = {match[1]: match[2] for match in map(_ASSIGNMENT.fullmatch, words) if match}
                branches.set(pairs)
                exported |= pairs | {name: reader.known[name] for name in words if name in reader.known}
                words = []
        if not words:
            branches.set(local)
            continue
        inner = list(_inner(words))
        for at, program in [*inner, *([(len(words), body)] if body else [])]:
            of_program = reader.nested(program, local)
            try:
                for one in _commands(of_program, _simple_commands(of_program), exported | local, nesting + 1):
                    yield replace(
                        one,
                        before=(*words[:at], *one.before),
                        branches={**branches.path, **one.branches},
                        is_awaited=one.is_awaited and is_awaited,
                    )
            except UsageError:
                if program is not body:  # The lines of another language need not be a program.
                    raise
        if not inner:
            # A variable whose value is already in the words is not for the program.
            passed = {name: value for name, value in exported.items() if name not in reader.used}
            yield Command(words, passed | local, (), branches.path, is_awaited)


@dataclass
class _Branch:
    """An open `if`, `case` or loop, or a list of commands between which `||` stands."""

    kind: str = ""
    tested: str = ""
    """The words of its condition."""
    values_of: dict[str, set[str | None]] = field(default_factory=dict)
    """The values of the variables that are set in it, and before it."""
    number: int = field(default_factory=_NUMBERS.__next__)
    place: int = 0
    """The number of the branch that is read."""
    left: list[str] = field(default_factory=list)
    """The values for which a `for` still repeats its commands."""
    start: int = 0
    """Where these commands start in the text."""


class _Branches:
    """Sets variables, and repeats the commands of a `for`; a variable that has another value without a branch is
    `UNKNOWN` after it.
    """

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self._open = list[_Branch]()
        self._list, self._end = _Branch(), "\n"

    @property
    def path(self) -> Mapping[int, int]:
        """Number of each open condition → the branch that is read."""
        loops = ("while", "until", "select")
        return {one.number: REPEATED if one.kind in loops else one.place for one in (*self._open, self._list)}

    def note(self, words: Sequence[str], end: str) -> None:
        """Note what begins or ends with a command. end: the operator after it."""
        before, self._end = self._end, end
        if before not in ("||", "&&", "|", "|&"):
            self._list = _Branch()
        self._list.place += before == "||"
        start = next((i for i, word in enumerate(words) if word not in _BEFORE_A_BRANCH), len(words))
        word, *rest = [*words[start:], ""]
        if self._open and (word in ("else", "elif") or (not words and before == end == ";")):
            self._open[-1].place += 1
        elif word in ("if", "case", "while", "until", "for", "select"):
            self._open.append(_Branch(word, " ".join([word, *rest])))
            if word in ("for", "select"):
                values = [UNKNOWN if _GLOB.search(value) else value for value in rest[2:-1]]
                self._open[-1].left, self._open[-1].start = values or [UNKNOWN], self._reader.at
                self._reader.known[rest[0]] = self._open[-1].left.pop(0)
        elif word in ("fi", "esac", "done") and self._open:
            if self._open[-1].left:
                self._reader.repeat(self._open[-1].start)
                self._reader.known[self._open[-1].tested.split()[1]] = self._open[-1].left.pop(0)
                return
            done = self._open.pop()
            for name, others in done.values_of.items():
                # What is set only because it is unset, as by `if [ -z "$NAME" ]`, has a default.
                is_default = f"\ue000{name}\ue001" in done.tested
                if done.kind != "for" and len(others - ({None} if is_default else set())) > 1:
                    self.set({name: UNKNOWN})

    def set(self, values: Mapping[str, str]) -> None:
        """Set variables in the innermost branch."""
        known = self._reader.known
        for name, value in values.items():
            if self._open:
                self._open[-1].values_of.setdefault(name, {known.get(name)}).add(value)
        known |= values


def _inner(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the programs among a command's words, with the number of words before them."""
    for at, (word, following) in enumerate(zip(words, [*words[1:], ""], strict=True)):
        if _SHELL.fullmatch(word) and re.fullmatch(r"-[a-z]*c", following) and len(words) > at + 2:
            yield at, words[at + 2]
            return
        if " " in word and _SESSION.fullmatch(words[0]):
            yield at, word
        if match := _PROGRAM.fullmatch(word):
            yield at, following if match[1] is None else match[1]


class _Reader:
    """Reads the simple commands of a program, and the values of its variables."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.known = dict[str, str]()
        self.used = set[str]()
        self._depth = 0
        self._left = [MAX_CHARACTERS]
        self._spend(text)

    def nested(self, text: str, variables: Mapping[str, str]) -> _Reader:
        """The reader of a program in this one, which shares its limits. Raises `UsageError`."""
        reader = _Reader("")
        reader.text, reader.known, reader.used = text, {**self.known, **variables}, self.used
        reader._left = self._left
        reader._spend(text)
        return reader

    def words_in(self, text: str) -> list[str]:
        """The words of one command."""
        return [word for simple in self.nested(text, {}).simple_commands() for word in simple.words]

    def expanded(self, text: str) -> str:
        """The text with the values of its variables."""
        return _IN_QUOTES.sub(lambda part: self._value(part[0], quoted=True), text)

    def repeat(self, start: int) -> None:
        """Read the text up to here again. Raises `UsageError`."""
        self._spend(self.text[start : self.at])
        self.at = start

    def simple_commands(self) -> Iterator[_Simple]:
        """Yield the simple commands. Raises `UsageError` for an unclosed quote."""
        words: list[str] = []
        ends: list[str] = []  # of the here-documents that begin after this line
        word: str | None = None
        is_quoted = False  # `""` is a word, but an empty variable is not
        redirection = ""  # the one whose target is read
        array: tuple[str, int] | None = None  # its name, and the number of words before it
        while self.at <= len(self.text):
            token = _TOKEN.match(self.text, self.at)
            kind, piece = (token.lastgroup, token[0]) if token else ("operator", "\n")
            if token is None and self.at < len(self.text):
                raise UsageError("the command line contains an unclosed quote")
            self.at += len(piece)
            if kind in ("part", "plain"):
                is_quoted = piece[0] in "'\"" or (is_quoted and word is not None)
                word = (word or "") + (self._value(piece) if kind == "part" else piece)
                continue
            if piece == "(" and word is not None and re.fullmatch(r"\w+\+?=", word, re.ASCII):
                array, word = (word, len(words)), None
                continue
            if word is not None and not redirection:
                words += [part for part in word.split(_PIECES) if part or is_quoted]
            elif word is not None and redirection in ("<<", "<<-"):
                ends.append(word)
            redirection = piece if kind == "redirection" else redirection if word is None and kind == "gap" else ""
            word = None
            if piece == ")" and array is not None:
                name, start = array
                word, array = name + _ITEMS.join(words[start:]), None
                del words[start:]
            elif kind == "operator" and array is None and (piece == "\n" or not ends):
                body = ""
                for end in ends:
                    closing = re.compile(rf"^[ \t]*{re.escape(end)}[ \t]*$", re.MULTILINE).search(self.text, self.at)
                    body += self.text[self.at : closing.start() if closing else None]
                    self.at = closing.end() if closing else len(self.text)
                following = self.text[self.at : self.at + _MAX_LIST].replace("\\\n", "")
                goes_on = piece[0] in "&|" and piece != "&"
                yield _Simple(words, body, piece, piece != "&" and not (goes_on and _IN_BACKGROUND.match(following)))
                words, ends = [], []

    def _value(self, part: str, *, quoted: bool = False) -> str:
        """The text of a quoted part, an escape or an expansion. quoted: whether it is between double quotes."""
        if part[0] == "\\":
            return "" if part[1:] == "\n" else part if quoted and part[1:] not in '$`"\\' else part[1:]
        if part[0] in "'<" or part.startswith("$'"):
            return part if part[0] == "<" else part[part.index("'") + 1 : -1]
        if part[0] == '"':
            return self.expanded(part[1:-1])
        value = self._expansion(part)
        return value if quoted else re.sub(r"\s+", _PIECES, value)

    def _expansion(self, part: str) -> str:
        """The value of a variable; `UNKNOWN` for anything else."""
        match = _PARAMETER.fullmatch(part)
        if match is None:
            return UNKNOWN
        name, value = match[1] or match[2], self.known.get(match[1] or match[2])
        if not value and match[3] is not None:
            self._depth += 1
            if self._depth > MAX_NESTING:
                raise UsageError(f"the text is nested more than {MAX_NESTING} times")
            value = "".join(
                self._value(each[0]) if each.lastgroup == "part" else each[0] for each in _TOKEN.finditer(match[3])
            )
            self._depth -= 1
        if value and is_secret(name, value):  # It stays a variable, so that it is printed nowhere.
            value = None
        if value is None:
            value = UNKNOWN if name.isdigit() else f"\ue000{name}\ue001"
        self._spend(value)
        self.used.add(name)
        return value.replace(_ITEMS, _PIECES)

    def _spend(self, text: str) -> None:
        """Count text that has to be read. Raises `UsageError`."""
        self._left[0] -= len(text)
        if self._left[0] < 0:
            raise UsageError(f"the text, with the values of its variables, has more than {MAX_CHARACTERS:,} characters")
