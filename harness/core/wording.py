"""How messages name an option: one message serves Python (`max_tokens`) and the command line (`--max-tokens`).

Code that writes a message calls `option("max_tokens")` and never writes a flag. The call returns a mark: control
characters around the option's name and, if one is given, its value. `Sentence` shows the marks as Python's keywords
(`max_tokens`, `canary=False`); `harness.cli` shows them as the flags of the command that was typed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_OPEN, _VALUE, _CLOSE = "\x0e", "\x1f", "\x0f"
"""Control characters that begin a mark, separate name and value, and end it. Foreign text cannot forge a mark: its
control characters are escaped (`harness.core.inert`) before it enters a message."""

_MARK = re.compile(f"{_OPEN}([a-z0-9_.]+)(?:{_VALUE}([^{_OPEN}{_CLOSE}]*))?{_CLOSE}")


class _Unset:
    """The type of `UNSET`."""


UNSET: Final = _Unset()
"""Stands for "no value given": the message then shows the option's name only."""

Spell = Callable[[str, Any], str]
"""A function of (an option's name, its value or `UNSET`) that returns the text to show, such as `--samples 4`."""


def option(name: str, value: object = UNSET) -> str:
    """The mark that stands for an option in a message.

    name: the option's name in Python; `server.port` is the field `port` of a server's spec. value: what was given.
    """
    if value is UNSET:
        return f"{_OPEN}{name}{_CLOSE}"
    plain = dict(value) if isinstance(value, Mapping) else value
    return f"{_OPEN}{name}{_VALUE}{json.dumps(plain, default=str)}{_CLOSE}"


def spell_options(marked: str, spell: Spell) -> str:
    """`marked` with each mark replaced by what `spell` returns for it."""
    return _MARK.sub(lambda m: spell(m[1], UNSET if m[2] is None else json.loads(m[2])), marked)


def as_keyword(name: str, value: object) -> str:
    """An option as Python's callers write it: `samples`, or `samples=4` with a value."""
    word = name.rpartition(".")[2]
    return word if value is UNSET else f"{word}={value!r}"


class Sentence(str):
    """A finished message. As a text it names options as Python does; `marked` has the marks, for the command line."""

    __slots__ = ("marked",)
    marked: str

    def __new__(cls, marked: str) -> Sentence:
        """marked: a text with marks, or a finished sentence, which is copied."""
        marked = marked.marked if isinstance(marked, Sentence) else marked
        sentence = super().__new__(cls, spell_options(marked, as_keyword))
        sentence.marked = marked
        return sentence
