"""Fields that go into a request's body, with the keys among them as `Secret`.

A key in a body has no place of its own: a service may call its field `api_key`, `credentials` or `byok`. So a text is
sealed where its field is called as keys are, and everything below such a field; where it looks like a key anywhere in
it (`hidden.looks_like_a_key`); a person's words, names, numbers and grammars stay as they are.
Not covered: a short or wordy password in a field of an unusual name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.core.hidden import is_secret, looks_like_a_key, names_a_secret
from harness.core.secret import Secret


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
