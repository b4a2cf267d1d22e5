"""API keys and passwords that cannot be printed by mistake, and functions that find and hide them in other values.

    function           takes                             returns
    seal_secrets       fields of a request's body        the same fields, with a `Secret` for each API key
    bearer             a key                             the header that sends it
    reveal_secrets     sealed fields                     the fields with the keys' characters, to be sent
    without_secrets    any JSON value                    the value with `[hidden]` for keys, to be stored or shown
    redacted_address      a server's address, valid or not  scheme, host and path; the text for a message or a record
    command_words      words of a command line           the words with `[hidden]` for keys

Guarantees: text, `repr`, format and JSON of a `Secret`, and of any value that contains it, are `[hidden]` or fail;
`pickle` fails; a copy is the secret itself. Only `reveal` returns its characters, and a test lists the callers.

It is impossible to list the fields of a request's body that contain a key: a service may call it `api_key`,
`credentials` or `byok`. So `seal_secrets` takes a text for a key if its field, or an enclosing field, has a typical
name for keys (`names_a_secret`), or if the text contains characters that look like a key (`looks_like_a_key`). Ordinary
words, names, numbers and grammars stay readable.

Not covered: the memory of the process; a key in the path of an address; a short password, or one made of words, in a
field with an unusual name; texts from servers that repeat a key (`harness.client.address.endpoint` compares those with
the keys of the run).
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
"""The text that is shown in place of a key."""


class Secret:
    """A key, a password, or the value of a header that only its user knows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    @classmethod
    def of(cls, value: str | Secret) -> Secret:
        """A text as a secret; a secret is unchanged."""
        return value if isinstance(value, Secret) else cls(value)

    def reveal(self) -> str:
        """The key's characters, in order to send them, search a text for them, or pass them to one of our processes."""
        return self._value

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, value: object) -> bool:
        return isinstance(value, Secret) and self._value == value._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret cannot be pickled; pass it by name (`WhichServer.for_worker`)")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a secret cannot be serialized")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Allow fields of this class in pydantic models: they accept a text or a secret, and are hidden in JSON."""
        from pydantic_core import core_schema

        text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema(strict=True))
        return core_schema.json_or_python_schema(
            json_schema=text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), text]),
            serialization=core_schema.to_string_ser_schema(when_used="json"),
        )


# ---- keys in the fields of a request's body


_SECRET_NAME = re.compile(
    r"(?i)(api[-_]?keys?|access[-_]?keys?|(?<!first_)token|secrets?|passw(or)?ds?|passphrase|auth(orization)?|credentials?|cookies?|hft)\Z"
)
"""Endings of the names of fields, options and variables that contain keys or passwords; `-hft` is llama.cpp's.
`first_token` is a time.
"""
_KEY_SHAPED = re.compile(r"(sk|pk|hf|gsk|xai|nvapi|AIza)[-_A-Za-z0-9]{16,}\Z")
"""Keys of well-known services, recognized by their first letters."""
_TOKEN = re.compile(r"[A-Za-z0-9_+/=.~-]{16,}")
"""A run of characters that is long enough to be a key."""
_SEPARATORS = re.compile(r"[_+/=.~-]+")
# Possessive quantifiers, so that a long text is not split in every possible way.
_WORD = re.compile(r"[A-Za-z]*+[0-9]{0,8}+[A-Za-z]*+")
"""A part, between separators, of an ordinary name: `DeepSeek`, `R1`, `20241022`, `v2b`. Keys mix letters and digits."""


def names_a_secret(name: str) -> bool:
    """Whether a field of this name, such as `api_key`, contains a key or a password."""
    return bool(_SECRET_NAME.search(name))


def is_secret(name: str, value: Any) -> bool:
    """Whether the value must not be shown: its field has a name for keys, or it begins like a known service's keys."""
    if not isinstance(value, str):
        return isinstance(value, Secret)
    return names_a_secret(name) or bool(_KEY_SHAPED.match(value))


def looks_like_a_key(text: str) -> bool:
    """Whether `text` contains 16 or more consecutive characters that are not made of ordinary words and numbers."""
    return any(
        not all(_WORD.fullmatch(part) for part in _SEPARATORS.split(token[0])) for token in _TOKEN.finditer(text)
    )


def seal_secrets(value: Any, name: str = "") -> Any:
    """A copy of a JSON value in which each API key (a secret string) is replaced by a `Secret`.

    name: the field that contains the value; empty if there is none.
    """
    if isinstance(value, Mapping):
        # Below a field with a name for keys, that name is passed down, so that all values are sealed.
        return {
            field: seal_secrets(part, name if names_a_secret(name) else str(field)) for field, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(seal_secrets(part, name) for part in value)
    if isinstance(value, str) and (is_secret(name, value) or looks_like_a_key(value)):
        return Secret(value)
    return value


def bearer(key: Secret | None) -> dict[str, str]:
    """The header that sends `key`; empty without a key. This header is written nowhere else."""
    return {"Authorization": f"Bearer {key.reveal()}"} if key else {}


def reveal_secrets(value: Any) -> Any:
    """A sealed JSON value with the characters of its keys, in order to send it or pass it to one of our processes."""
    if isinstance(value, Mapping):
        return {field: reveal_secrets(part) for field, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(reveal_secrets(part) for part in value)
    return value.reveal() if isinstance(value, Secret) else value


def secrets_in(value: Any) -> Iterator[Secret]:
    """The secrets in a sealed JSON value."""
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from secrets_in(part)


# ---- what the user typed


# Only up to a slash or another judge: an @ in the path of a URL, or after the next judge's name, ends no password.
_USER_INFO = re.compile(r"(?<=://)(?:(?!,jury=)[^/\s@])+@")
"""Name and password in a URL: `name:password@`."""
_BEFORE_HOST = re.compile(r"^(?!unix:)(?:[^\s/=]*//)?([^\s=?#]+)@")
"""Name and password in an address that may have no scheme."""
_QUERY_VALUE = re.compile(r"(?<=[?&])([^=&\s#]+)=([^&\s#]+)")
"""A name and its value in a URL's query."""
_NAMED_VALUES = re.compile(r"(.*[-_])?headers?|(server[-_])?env(ironment)?")
"""Options whose value is NAME:VALUE or NAME=VALUE; the VALUE is hidden."""
_FIELD = re.compile(r"""([A-Za-z][\w-]*)["'\\]*\s*[:=]\s*""")
"""A name before its value inside a longer text: `api_key=`, `"api_key": `, `header=`."""
_KEY_IN_TEXT = re.compile(r"""(?<![^\s=:,"'])(?:sk|pk|hf|gsk|xai|nvapi|AIza)[-_A-Za-z0-9]{16,}""")
"""A key of a well-known service, at the beginning of a text or after a space, a quote, or one of `=:,`."""
_KEY_IN_PATH = re.compile(r"(?<=/)(?:sk|pk|hf|gsk|xai|nvapi|AIza)[-_A-Za-z0-9]{16,}")
"""A part of a path, such as that of a socket or an image, that begins like a known service's keys."""

_BODY_FIELDS = frozenset({"extra_body", "chat_template_kwargs"})
"""Options whose values go into the request's body; `seal_secrets` looks for keys in them."""


def without_secrets(value: Any, *, queries: bool = False) -> Any:
    """A JSON value with `[hidden]` in place of its secrets, to be stored or shown.

    Names and passwords in URLs are left out. queries: also hide the values in the query of a URL. In fields that become
    part of a request's body, texts that look like keys are also hidden.
    """
    if isinstance(value, dict):
        return {name: _hide_in_field(str(name), part, queries) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(without_secrets(part, queries=queries) for part in value)
    if isinstance(value, Secret):
        return HIDDEN
    if not isinstance(value, str):
        return value
    shown = without_user_info(value)
    return _QUERY_VALUE.sub(rf"\1={HIDDEN}", shown) if queries and "://" in value else shown


def _hide_in_field(name: str, value: Any, queries: bool) -> Any:
    """The value of a field of this name, as `without_secrets` returns it."""
    if is_secret(name, value):
        return HIDDEN
    if name.removeprefix("judge_") in _BODY_FIELDS:
        value = seal_secrets(value)
    return without_secrets(value, queries=queries)


def without_user_info(text: str) -> str:
    """`text` without the names and passwords in its URLs: `http://me:word@host` becomes `http://host`."""
    return _USER_INFO.sub("", text) if "@" in text else text


def redacted_address(address: str) -> str:
    """The scheme, host and path of a text that represents an address, in whatever form, to be shown.

    Text before an @ is a name or a password, with or without a scheme, and text after a ? or # may be a key. If an @
    follows a ? or #, either may be part of a password, and only the scheme is kept.
    """
    scheme = re.match(r"([A-Za-z][\w+.-]*:)?//", address)
    start = scheme[0] if scheme else ""
    host, *rest = re.split(r"([?#])", address[len(start) :], maxsplit=1)
    if rest and "@" in rest[1]:
        return start + HIDDEN
    return start + host.rpartition("@")[2] + (rest[0] + HIDDEN if rest else "")


def command_words(words: Iterable[str]) -> list[str]:
    """The words of a command line with `[hidden]` in place of secrets, for a log or a manifest.

    What is hidden depends on the form of a word and on the option before it, never on a list of commands or options:
    the value of a header or a variable; what follows the name of a secret, as the next word (even if both are passed on
    to an engine) or inside a longer text; texts in JSON that look like keys; keys of well-known services.
    """
    return [shown for shown, _ in _read(words)]


def without_typed_secrets(text: str, words: Iterable[str]) -> str:
    """`text` without the secrets in the words of the command line that caused it: an error may quote any of them."""
    # Search for single words as well: an error may cut a text, or write its quotes differently.
    typed = {part for _, secrets in _read(words) for secret in secrets for part in (secret, *_PARTS.findall(secret))}
    for secret in sorted(typed, key=len, reverse=True):
        if len(secret) >= MIN_HIDDEN_CHARS:
            text = text.replace(secret, HIDDEN)
    return text


_PARTS = re.compile(r"""[^\s"'{}]+""")
"""The words of a secret that is written as JSON or as several words."""

MIN_HIDDEN_CHARS = 4
"""A shorter secret is not searched for in a text, where it may be part of any word."""


def _read(words: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (the word with its secrets hidden, its secrets) for each word of a command line.

    A word is a flag (`--api-key`), or a value with or without its flag (`--api-key=KEY`, `KEY`). A value may itself be
    an engine's flag, whose value then comes with a later word:
    `--serve-option=engine-flag=--api-key --serve-option=engine-flag=KEY`.
    """
    # The flag of the value, without dashes, in the same or the previous word; empty if there is none.
    option = ""
    # Whether a flag with a name for keys awaits its value: the next word that is not a flag is a key.
    awaits_key = False
    for word in words:
        if word.startswith("--") and "=" not in word:
            option, awaits_key = word[2:], awaits_key or names_a_secret(word)
            yield word, []
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        option = flag[2:] if equals else option
        # The value of --serve-option is an option with its own value.
        if option == "serve-option" and re.match(r"[\w-]+=", value):
            option, _, value = value.partition("=")
            flag, equals = f"{flag}{equals}{option}", "="
        secrets: list[str] = []
        if value.startswith("--") and "=" not in value:  # the value is a flag
            awaits_key = awaits_key or names_a_secret(value)
        else:
            is_key = awaits_key or names_a_secret(flag)
            secrets = [value] if is_key else [*_secrets_in_argument(option, value)]
            for secret in sorted(filter(None, secrets), key=len, reverse=True):
                value = value.replace(secret, HIDDEN)
            value, awaits_key = without_user_info(value), False
        yield f"{flag}{equals}{value}", secrets
        option = ""


def _secrets_in_argument(option: str, value: str) -> Iterator[str]:
    """Yield the secrets in a word of a command line. option: the flag before it, without dashes; empty if none."""
    if option == "judge":  # `model=…,base_url=…`; keep its names, or the shown command would use another judge
        for part in re.split(r",(?=\s*\w+=)", value):
            yield from _secrets_in_argument("", part)
        return
    if _NAMED_VALUES.fullmatch(option):  # NAME:VALUE or NAME=VALUE; any value counts as a secret
        named = re.match(r"[^:=]*[:=]", value)
        yield value[named.end() if named else 0 :].strip()
        return
    is_address = option.replace("_", "-") == "base-url"
    if is_address:
        yield from _BEFORE_HOST.findall(value)
    yield from (text.rpartition(":")[2][:-1] for text in _USER_INFO.findall(value))
    if value.startswith(("{", "[")):
        try:
            sealed = seal_secrets(codec.decode(value))
        except codec.DecodeError:
            pass
        else:
            yield from (secret.reveal() for secret in secrets_in(sealed))
            return
    if is_address or "://" in value:
        yield from (text for _, text in _QUERY_VALUE.findall(value))
    yield from _KEY_IN_TEXT.findall(value)
    yield from filter(looks_like_a_key, _KEY_IN_PATH.findall(value))
    for field in _FIELD.finditer(value):
        if names_a_secret(field[1]) or _NAMED_VALUES.fullmatch(field[1]):
            secret_text = value[field.end() :]
            yield secret_text
            # An error may quote only the VALUE of a header's NAME:VALUE.
            yield secret_text.rpartition(":")[2].strip("'\" ")
            return
    body = value.find("{")
    if body >= 0 and looks_like_a_key(value[body:]):
        yield value[body:]
