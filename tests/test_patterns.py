"""One meaning on every Python: no regular expression has a construct in which versions of `re` differ.

For: reasoning_answers.patterns.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import harness
import reasoning_answers
import reasoning_programs
import server_launchers
from reasoning_answers.patterns import LazyPattern

SINGLE = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)
"""What matches a single character."""


def differing(item: Any, is_atomic: bool = False) -> Iterator[str]:
    """Yield what of a parsed pattern some allowed Python matches otherwise.

    `re` up to 3.11.4 repeats a group by a possessive quantifier wrongly (gh-106052, gh-100061); up to 3.12.7 and 3.13.0
    it fails on captures inside of one and of an atomic group (gh-101955).
    """
    match item:
        case (_constants.POSSESSIVE_REPEAT, (_, _, repeated)) if repeated[0][0] not in SINGLE or len(repeated) > 1:
            yield "a possessive quantifier behind a group"
        case (_constants.SUBPATTERN, (int(), *_)) if is_atomic:
            yield "a capture in an atomic group"
        case (_constants.ATOMIC_GROUP, _):
            is_atomic = True
    if isinstance(item, list | tuple | _parser.SubPattern):
        for part in item:
            yield from differing(part, is_atomic)


def sources(package: ModuleType) -> Iterator[tuple[str, str, int]]:
    """Yield (module, pattern, flags) of each pattern of a package: values of its modules, texts in calls of `re`."""
    for path in sorted(Path(package.__path__[0]).rglob("*.py")):
        name = ".".join(path.relative_to(Path(package.__path__[0]).parent).with_suffix("").parts)
        for call in ast.walk(ast.parse(source := path.read_text("utf-8"))):
            match call:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant(value=str(text)), *_]):
                    yield name, text, 0
        if "regex(" in source or "re.compile(" in source:
            for value in vars(importlib.import_module(name)).values():
                for pattern in value if isinstance(value, tuple) else [value]:
                    if isinstance(pattern, LazyPattern):
                        yield name, *pattern._source
                    elif isinstance(pattern, re.Pattern):
                        yield name, pattern.pattern, pattern.flags


def test_every_pattern_means_the_same_on_every_python() -> None:
    """A possessive quantifier stands behind a character or a class, and an atomic group holds no capture."""
    packages = (harness, server_launchers, reasoning_answers, reasoning_programs)
    tries = {each for package in packages for each in sources(package)}
    assert len(tries) > 300
    told = {(name, text, *differing(_parser.parse(text, flags))) for name, text, flags in tries}
    assert {row for row in told if len(row) > 2} == set()
    for text, n in {"(?:ab)*+": 1, "(?>(a)|b)": 1, "(?>(?:a|b)*)": 0, "[ab]*+.++a?+": 0, "(?:(?!a).){2}+": 1}.items():
        assert len([*differing(_parser.parse(text))]) == n
