"""A process's command line and variables, and the parts that may be shown or stored: all except keys and passwords.

A secret is recognized by the name of its option, variable or JSON field (`harness.core.secret`, and any name that ends
in "key"), or by its form (a variable's value of 20 or more characters with letters and digits). User names and
passwords in addresses are hidden too.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from harness.core.secret import names_a_secret, without_user_info

HIDDEN = "HIDDEN"
"""The text in place of a secret."""

MIN_SECRET_CHARS = 4
"""Minimum length of a value that is hidden in logs, in characters; hiding shorter values would garble the log."""

_IN_JSON = re.compile(r'("([^"]*)"\s*:\s*)"[^"]*"')
"""A JSON field name followed by its text value."""
_KEY_SHAPED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+/=.-]{20,}\Z")
"""Values that look like a key."""


def _names_a_key(name: str) -> bool:
    return names_a_secret(name) or name.lower().endswith("key")


def is_secret(variable: str, value: str) -> bool:
    """Whether the value of an environment variable must not be shown or logged, because the variable is named like a
    key or the value looks like one.
    """
    # Paths look like keys too: long, with letters and digits.
    shaped = bool(_KEY_SHAPED.match(value)) and not value.startswith((".", "/"))
    return shaped or _names_a_key(variable)


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """The values of variables that no log may contain."""
    return [value for name, value in environment.items() if len(value) >= MIN_SECRET_CHARS and is_secret(name, value)]


def assignments(environment: Mapping[str, str]) -> list[str]:
    """NAME=VALUE words for a shell, sorted by name; a secret value is replaced with a reference: `NAME="$NAME"`."""
    return [
        f'{name}="${name}"' if is_secret(name, value) else f"{name}={shlex.quote(value)}"
        for name, value in sorted(environment.items())
    ]


def shown_words(argv: Iterable[str]) -> Iterator[str]:
    """The words of a command line; values of options and variables named like keys are hidden."""
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


class ProcessCommand(msgspec.Struct, frozen=True):
    """A program's arguments, and the variables that it needs in addition to the inherited ones."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}
    """Environment variable of the program → variable of this process that contains its value. The value is never shown
    or stored.
    """
    container: str | None = None
    """Name of the container that this program starts as a client; the container is removed once the client is stopped.
    """

    def with_env(self, environment: Mapping[str, str]) -> ProcessCommand:
        """A copy of this command with these variables added; a variable that the command sets keeps its value."""
        return replace(self, environment={**environment, **self.environment})

    def line(self) -> str:
        """The command as one line for a POSIX shell.

        Secret variables appear as references; secrets in arguments are hidden.
        """
        words = assignments(self.environment)
        words += [f'{name}="${source}"' for name, source in sorted(self.secrets.items()) if name != source]
        return " ".join([*words, shlex.join(shown_words(self.argv))])

    def resolved(self) -> dict[str, str]:
        """All variables, with the values of the secrets."""
        return {**self.environment, **{name: os.environ[source] for name, source in self.secrets.items()}}
