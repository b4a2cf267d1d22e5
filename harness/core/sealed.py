"""Fields that go into a request's body, with the keys among them as `Secret`.

A key in a body has no place of its own: a service may call its field `api_key`, `credentials` or `byok`. So a text is
sealed where its field is called as keys are, and everything below such a field; where it looks like a key anywhere in
it (`looks_like_a_key`); a person's words, names, numbers and grammars stay as they are.
Not covered: a short or wordy password in a field of an unusual name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness.core.secret import Secret

_SECRET_NAME = re.compile(
    r"(?i)(api[-_]?keys?|access[-_]?keys?|token|secrets?|passw(or)?ds?|authorization|credentials?|cookies?)\Z"
)
_KEY_SHAPED = re.compile(r"(sk|pk|hf|gsk|xai|nvapi|AIza)[-_A-Za-z0-9]{16,}\Z")
_TOKEN = re.compile(r"[A-Za-z0-9_+/=.~-]{16,}")
"""Characters in a row that could be a key."""
_SEPARATORS = re.compile(r"[_+/=.~-]+")
_WORD = re.compile(r"[A-Za-z]*+[0-9]{0,8}+[A-Za-z]*+")
"""Parts of names of models, files and fields, between their separators: `DeepSeek`, `R1`, `20241022`, `v2b`."""


def names_a_secret(name: str) -> bool:
    """Whether a field is called as keys and passwords are."""
    return bool(_SECRET_NAME.search(name))


def is_secret(name: str, value: Any) -> bool:
    """Whether a field of this name and value is one that nobody should read."""
    if not isinstance(value, str):
        return isinstance(value, Secret)
    return names_a_secret(name) or bool(_KEY_SHAPED.match(value))


def looks_like_a_key(text: str) -> bool:
    """Whether 16 or more characters in a row are not made of words and numbers, as those of keys are not."""
    return any(
        not all(_WORD.fullmatch(part) for part in _SEPARATORS.split(token[0])) for token in _TOKEN.finditer(text)
    )


def sealed(value: Any, name: str = "") -> Any:
    """A value as JSON has it, its keys sealed. name: of the field that holds it; sealed fields stay as they are."""
    if isinstance(value, Mapping):
        return {field: sealed(part, name if names_a_secret(name) else str(field)) for field, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(sealed(part, name) for part in value)
    if isinstance(value, str) and (is_secret(name, value) or looks_like_a_key(value)):
        return Secret(value)
    return value


def opened(value: Any) -> Any:
    """The same with the characters of its keys: to be sent, or handed to a process of ours."""
    if isinstance(value, Mapping):
        return {field: opened(part) for field, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(opened(part) for part in value)
    return value.reveal() if isinstance(value, Secret) else value


def secrets_in(value: Any) -> Iterator[Secret]:
    """The keys of sealed fields."""
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from secrets_in(part)
