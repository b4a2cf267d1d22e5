"""A key as a value that cannot be shown by mistake; keys among a request's fields; what may be shown of typed words.

Guarantees: text, `repr`, format and JSON of a `Secret`, and of what holds it, are `[hidden]` or refused; `pickle` is
refused; a copy is the secret itself. Its characters come out by `reveal` alone, and a test lists who calls that.

A key in a request's body has no place of its own: a service may call its field `api_key`, `credentials` or `byok`. So
`sealed` makes a `Secret` of a text where its field is called as keys are, and of everything below such a field; and
where the text looks like a key anywhere in it (`looks_like_a_key`). A person's words, names, numbers and grammars stay.
`without_secrets` and `command_words` hide keys in fields of JSON, in URLs and in the words of a command line.

Not covered: the memory of the process; a short or wordy password in a field of an unusual name; texts of others in
which a key stands: the keys of a run's servers are known by value, and `client.address.endpoint` hides them there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from harness.core import codec

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

HIDDEN = "[hidden]"
"""The text that stands wherever a key would be shown."""


class Secret:
    """A key, a password, or the value of a header that only its user knows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    @classmethod
    def of(cls, value: str | Secret) -> Secret:
        """The secret that `value` is."""
        return value if isinstance(value, Secret) else cls(value)

    def reveal(self) -> str:
        """The characters themselves: to be sent, to be looked for, or to be handed to a process of ours."""
        return self._value

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is not pickled: hand it on by name (`WhichServer.for_worker`)")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a secret has no state to be stored")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A text or a secret becomes one; as JSON it is hidden."""
        from pydantic_core import core_schema

        text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema(strict=True))
        return core_schema.json_or_python_schema(
            json_schema=text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), text]),
            serialization=core_schema.to_string_ser_schema(when_used="json"),
        )


# ---- keys in the fields of a request's body


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


# ---- what a person typed


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
