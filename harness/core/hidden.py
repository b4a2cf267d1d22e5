"""What a person typed, fit to be printed or stored: values that are secrets by their name or their look are hidden.

Covers fields of JSON, words of a command line and URLs. The keys of a run's servers are known by value; what servers
send is cleared of them in `harness.client.address.redact`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from harness.core import codec
from harness.core.secret import HIDDEN, Secret

_SECRET_NAME = re.compile(
    r"(?i)(api[-_]?keys?|access[-_]?keys?|token|secrets?|passw(or)?ds?|authorization|credentials?|cookies?)\Z"
)
_KEY_SHAPED = re.compile(r"(sk|pk|hf|gsk|xai|nvapi|AIza)[-_A-Za-z0-9]{16,}\Z")
_TOKEN = re.compile(r"[A-Za-z0-9_+/=.~-]{16,}")
"""Characters in a row that could be a key."""
_SEPARATORS = re.compile(r"[_+/=.~-]+")
_WORD = re.compile(r"[A-Za-z]*[0-9]{0,8}[A-Za-z]*")
"""What names of models, files and fields are made of, between their separators: `DeepSeek`, `R1`, `20241022`, `v2b`."""
_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY_VALUE = re.compile(r"(?<=[?&])([^=&\s#]+)=([^&\s#]+)")
_NAMED_VALUES = frozenset({"header", "judge-header", "env"})
"""Options whose values are NAME:VALUE or NAME=VALUE, and the value a secret."""

_JSON_VALUES = frozenset({"extra-body", "chat-template-kwargs"})
_BODY_FIELDS = frozenset({"extra_body", "chat_template_kwargs"})
"""Fields whose values go into a request's body: keys in them are known by their look, too (`sealed`)."""


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
        from harness.core.sealed import sealed

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
    if _KEY_SHAPED.match(value):
        return HIDDEN
    return _address(value)


def _address(text: str) -> str:
    """`text`, where it holds an address, without the names and passwords in it and the values of its query."""
    return _QUERY_VALUE.sub(rf"\1={HIDDEN}", without_user_info(text)) if "://" in text else text
