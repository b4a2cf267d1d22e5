"""The parts of a command line and its variables that may be shown or stored: all but keys and passwords.

A secret is known by the name of its option, variable or JSON field (`harness.core.secret`, and whatever ends in "key"),
or by look (a variable's value of 20 or more characters with letters and digits). User names and passwords in
addresses are hidden too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from harness.core.secret import names_a_secret, without_user_info

HIDDEN = "HIDDEN"
"""The text in place of a secret."""

MIN_SECRET_CHARS = 4
"""Shortest value that is hidden in a log, in characters; a shorter one would mangle the log."""

_IN_JSON = re.compile(r'("([^"]*)"\s*:\s*)"[^"]*"')
"""A text in JSON behind its field and the field's name."""
_KEY_SHAPED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+/=.-]{20,}\Z")
"""Values that look like a key."""


def _names_a_key(name: str) -> bool:
    return names_a_secret(name) or name.lower().endswith("key")


def is_secret(variable: str, value: str) -> bool:
    """Whether the value of an environment variable must not be shown or logged.

    It must not if the variable is called like a key, or if the value looks like one.
    """
    # Paths look like keys too: long, of letters and digits.
    shaped = bool(_KEY_SHAPED.match(value)) and not value.startswith((".", "/"))
    return shaped or _names_a_key(variable)


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """The values of variables that no log may contain."""
    return [value for name, value in environment.items() if len(value) >= MIN_SECRET_CHARS and is_secret(name, value)]


def assignments(environment: Mapping[str, str]) -> list[str]:
    """NAME=VALUE words for a shell, sorted by name; in place of a secret value stands a reference: `NAME="$NAME"`."""
    return [
        f'{name}="${name}"' if is_secret(name, value) else f"{name}={shlex.quote(value)}"
        for name, value in sorted(environment.items())
    ]


def words(argv: Iterable[str]) -> Iterator[str]:
    """The words of a command line; values of options and variables called like keys are hidden."""
    # Whether the words that follow are values of such an option, and whether the next word is the first of them.
    in_secret = at_first_value = False
    for word in argv:
        name, equals, _ = word.partition("=")
        # The first value may begin with a dash; after it, a dash begins the next option.
        if in_secret and (at_first_value or not word.startswith("-")):
            at_first_value = False
            yield HIDDEN
        elif equals and _names_a_key(name):
            in_secret = False
            yield f"{name}={HIDDEN}"
        else:
            in_secret = word.startswith("-") and _names_a_key(word)
            at_first_value = in_secret
            shown = _IN_JSON.sub(lambda part: f'{part[1]}"{HIDDEN}"' if _names_a_key(part[2]) else part[0], word)
            yield without_user_info(shown)
