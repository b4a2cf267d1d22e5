"""The parts of a command line and its variables that may be shown or stored: all but keys and passwords.

A secret is known by name (options, variables and JSON fields called like keys) or by look (a variable's value of 20 or
more characters with letters and digits). User names and passwords in addresses are hidden too. Standard library only.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

HIDDEN = "HIDDEN"
"""The text in place of a secret."""

MIN_SECRET_CHARS = 4
"""Shortest value that is hidden in a log, in characters; a shorter one would mangle the log."""

_SENSITIVE = r"(?:key|token|secret|password|passwd|hft)"
"""Ends of the names of options and fields that hold a secret."""
_NAMES_A_SECRET = re.compile(rf"(?:^|[-_]){_SENSITIVE}$", re.IGNORECASE)
_SECRET_IN_JSON = re.compile(rf'("[^"]*{_SENSITIVE}"\s*:\s*)"[^"]*"', re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")
"""Name and password in an address."""
_SECRET_VARIABLE = re.compile(r"(?i)(key|token|secret|passw(or)?d|passphrase|credentials?|auth|cookie)\Z")
"""Names of variables that hold a secret."""
_KEY_SHAPED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+/=.-]{20,}\Z")
"""Values that look like a key."""


def is_secret(variable: str, value: str) -> bool:
    """Whether the value of an environment variable must not be shown or logged.

    It must not if the variable is called like a key, or if the value looks like one.
    """
    # Paths look like keys too: long, of letters and digits.
    shaped = bool(_KEY_SHAPED.match(value)) and not value.startswith((".", "/"))
    return shaped or bool(_SECRET_VARIABLE.search(variable))


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
        elif equals and _NAMES_A_SECRET.search(name):
            in_secret = False
            yield f"{name}={HIDDEN}"
        else:
            in_secret = word.startswith("-") and bool(_NAMES_A_SECRET.search(word))
            at_first_value = in_secret
            yield _USER_INFO.sub("", _SECRET_IN_JSON.sub(rf'\1"{HIDDEN}"', word))
