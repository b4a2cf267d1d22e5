"""What a person typed, fit to be printed or stored: values that are secrets by their name or their look are hidden.

Covers fields of JSON, words of a command line and URLs. The keys of a run's servers are known by value; what servers
send is cleared of them in `harness.client.address.redact`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from harness.core import codec
from harness.core.sealed import is_secret, sealed
from harness.core.secret import HIDDEN, Secret

_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY_VALUE = re.compile(r"(?<=[?&])([^=&\s#]+)=([^&\s#]+)")
_NAMED_VALUES = frozenset({"header", "judge-header", "env"})
"""Options whose values are NAME:VALUE or NAME=VALUE, and the value a secret."""

_JSON_VALUES = frozenset({"extra-body", "chat-template-kwargs"})
_BODY_FIELDS = frozenset({"extra_body", "chat_template_kwargs"})
"""Fields whose values go into a request's body: keys in them are known by their look, too (`sealed`)."""


def without_secrets(value: Any, *, queries: bool = False) -> Any:
    """A value as JSON has it, secrets in it hidden; the same where there is none. queries: also the values in the query
    of an address. Fields of a request's body are sealed first."""
    if isinstance(value, dict):
        return {name: _hidden_in(str(name), part, queries) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(without_secrets(part, queries=queries) for part in value)
    if isinstance(value, Secret):
        return HIDDEN
    if not isinstance(value, str):
        return value
    return _address(value) if queries else without_user_info(value)


def _hidden_in(name: str, value: Any, queries: bool) -> Any:
    if is_secret(name, value):
        return HIDDEN
    if name in _BODY_FIELDS:
        value = sealed(value)
    return without_secrets(value, queries=queries)


def without_user_info(text: str) -> str:
    """`text`, the names and passwords in its URLs left out."""
    return _USER_INFO.sub("", text) if "@" in text else text


def command_words(words: Iterable[str]) -> list[str]:
    """The words of a command line, secrets in them hidden."""
    shown: list[str] = []
    option = ""
    for word in words:
        name, equals, value = word.partition("=") if word.startswith("--") else ("", "", "")
        if equals:
            shown.append(f"{name}={_argument(name.removeprefix('--'), value)}")
            option = ""
        else:
            shown.append(_argument(option, word))
            option = word.removeprefix("--") if word.startswith("--") else ""
    return shown


def _argument(option: str, value: str) -> str:
    """The value of an option, by its name without dashes; option: empty for a word of its own."""
    if option in _NAMED_VALUES:
        named = re.match(r"[^:=]*[:=]", value)
        return f"{named[0] if named else ''}{HIDDEN}"
    if option in _JSON_VALUES:
        try:
            given: Any = codec.decode(value)
        except codec.DecodeError:
            return HIDDEN
        hidden = _hidden_in("extra_body", given, queries=False)
        return value if hidden == given else codec.encode(hidden).decode()
    if option and not value.startswith("-") and is_secret(option, value):
        return HIDDEN
    if is_secret("", value):
        return HIDDEN
    return _address(value)


def _address(text: str) -> str:
    """`text`, where it holds an address, without the names and passwords in it and the values of its query."""
    return _QUERY_VALUE.sub(rf"\1={HIDDEN}", without_user_info(text)) if "://" in text else text
