"""How a sentence names an option, so that each door says it in its own words.

A sentence below the doors writes `option("max_tokens")`, never a flag: a mark that holds the option's name and, where
one is given, its value. `Sentence` shows the mark as Python's callers know the option (`max_tokens`, `canary=False`);
`harness.cli` shows it as the flag of the command that was typed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_OPEN, _VALUE, _CLOSE = "\x0e", "\x1f", "\x0f"
"""Control characters: foreign text is made visible before it enters a sentence, so it cannot hold a mark."""

_MARK = re.compile(f"{_OPEN}([a-z0-9_.]+)(?:{_VALUE}([^{_OPEN}{_CLOSE}]*))?{_CLOSE}")


class _Unset:
    """The type of `UNSET`."""


UNSET: Final = _Unset()
"""No value: the option is named only."""

Spell = Callable[[str, Any], str]
"""(name of an option, its value or `UNSET`) → the words of a door for the option."""


def option(name: str, value: object = UNSET) -> str:
    """The mark of an option in a sentence. name: as Python spells it; `server.port` is the port of a server's spec."""
    if value is UNSET:
        return f"{_OPEN}{name}{_CLOSE}"
    plain = dict(value) if isinstance(value, Mapping) else value
    return f"{_OPEN}{name}{_VALUE}{json.dumps(plain, default=str)}{_CLOSE}"


def worded(marked: str, spell: Spell) -> str:
    """`marked` with every mark in the words of `spell`."""
    return _MARK.sub(lambda m: spell(m[1], UNSET if m[2] is None else json.loads(m[2])), marked)


def as_keyword(name: str, value: object) -> str:
    """An option as Python's callers write it: `samples`, `samples=4`."""
    word = name.rpartition(".")[2]
    return word if value is UNSET else f"{word}={value!r}"


class Sentence(str):
    """A finished sentence. As text it is in Python's words; `marked` keeps the marks for another door."""

    __slots__ = ("marked",)
    marked: str

    def __new__(cls, marked: str) -> Sentence:
        """From text with marks, or from a sentence."""
        marked = marked.marked if isinstance(marked, Sentence) else marked
        sentence = super().__new__(cls, worded(marked, as_keyword))
        sentence.marked = marked
        return sentence
