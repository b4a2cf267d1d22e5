"""API keys and passwords that cannot be printed by mistake, and functions that find and hide them in other values.

    function           takes                             returns
    seal_secrets       fields of a request's body        the same fields, with a `Secret` for each API key
    bearer             a key                             the header that sends it
    reveal_secrets     sealed fields                     the fields with the keys' characters, to be sent
    without_secrets    any JSON value                    the value with `[hidden]` for keys, to be stored or shown
    address_shown      a server's address, right or not  scheme, host and path; the text for a message or a record
    command_words      words of a command line           the words with `[hidden]` for keys

Guarantees: text, `repr`, format and JSON of a `Secret`, and of what holds it, are `[hidden]` or refused; `pickle` is
refused; a copy is the secret itself. Its characters come out by `reveal` alone, and a test lists who calls that.

Which field of a request's body holds a key cannot be listed: a service may call it `api_key`, `credentials` or `byok`.
So `seal_secrets` takes a text for a key if its field, or a field around it, has a name usual for keys
(`names_a_secret`), or if the text contains characters that look like a key (`looks_like_a_key`). Ordinary words,
names, numbers and grammars stay readable.

Not covered: the memory of the process; a key in the path of an address; a short password, or one made of words, in a
field of an unusual name; texts of servers that repeat a key. For those `harness.client.address.endpoint` compares with
the keys of the run.
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
        """A text as a secret; a secret stays as it is."""
        return value if isinstance(value, Secret) else cls(value)

    def reveal(self) -> str:
        """The key's characters: to send them, to search a text for them, or to hand them to a process of ours."""
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
        """Let a pydantic model have a field of this class: it takes a text or a secret, and is hidden in JSON."""
        from pydantic_core import core_schema

        text = core_schema.no_info_after_validator_function(cls, core_schema.str_schema(strict=True))
        return core_schema.json_or_python_schema(
            json_schema=text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), text]),
            serialization=core_schema.to_string_ser_schema(when_used="json"),
        )


# ---- keys in the fields of a request's body


_SECRET_NAME = re.compile(
    r"(?i)(api[-_]?keys?|access[-_]?keys?|token|secrets?|passw(or)?ds?|passphrase|auth(orization)?|credentials?|cookies?|hft)\Z"
)
"""Ends of the names of fields, options and variables that hold keys or passwords; `-hft` is llama.cpp's."""
_KEY_SHAPED = re.compile(r"(sk|pk|hf|gsk|xai|nvapi|AIza)[-_A-Za-z0-9]{16,}\Z")
"""Keys of well-known services, known by their first letters."""
_TOKEN = re.compile(r"[A-Za-z0-9_+/=.~-]{16,}")
"""A run of characters that is long enough to be a key."""
_SEPARATORS = re.compile(r"[_+/=.~-]+")
# Possessive: a long text must not be tried in every way to split it.
_WORD = re.compile(r"[A-Za-z]*+[0-9]{0,8}+[A-Za-z]*+")
"""A part, between separators, of an ordinary name: `DeepSeek`, `R1`, `20241022`, `v2b`. Keys mix letters and digits."""


def names_a_secret(name: str) -> bool:
    """Whether a field of this name holds a key or a password, such as `api_key`."""
    return bool(_SECRET_NAME.search(name))


def is_secret(name: str, value: Any) -> bool:
    """Whether the value must not be shown: its field is named as a key's, or it begins as a known service's keys do."""
    if not isinstance(value, str):
        return isinstance(value, Secret)
    return names_a_secret(name) or bool(_KEY_SHAPED.match(value))


def looks_like_a_key(text: str) -> bool:
    """Whether `text` contains 16 or more characters in a row that are not made of ordinary words and numbers."""
    return any(
        not all(_WORD.fullmatch(part) for part in _SEPARATORS.split(token[0])) for token in _TOKEN.finditer(text)
    )


def seal_secrets(value: Any, name: str = "") -> Any:
    """A copy of a JSON value in which each API key (a secret string) is replaced by a `Secret`.

    name: the field that holds the value; empty if none does.
    """
    if isinstance(value, Mapping):
        # Below a field with a key's name, that name goes down along with the values: all of them are sealed.
        return {
            field: seal_secrets(part, name if names_a_secret(name) else str(field)) for field, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(seal_secrets(part, name) for part in value)
    if isinstance(value, str) and (is_secret(name, value) or looks_like_a_key(value)):
        return Secret(value)
    return value


def bearer(key: Secret | None) -> dict[str, str]:
    """The header that sends `key`; none without a key. No other place writes this header."""
    return {"Authorization": f"Bearer {key.reveal()}"} if key else {}


def reveal_secrets(value: Any) -> Any:
    """A sealed JSON value with the characters of its keys: to be sent, or to be handed to a process of ours."""
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


# ---- what a person typed


# Up to a slash or a juror only: an @ in the path of a URL, or behind the name of the next judge, ends no password.
_USER_INFO = re.compile(r"(?<=://)(?:(?!,jury=)[^/\s@])+@")
"""Name and password in a URL: `name:password@`."""
_BEFORE_HOST = re.compile(r"^(?!unix:)(?:[^\s/=]*//)?([^\s=?#]+)@")
"""Name and password in an address that may have no scheme."""
_QUERY_VALUE = re.compile(r"(?<=[?&])([^=&\s#]+)=([^&\s#]+)")
"""A name and its value in a URL's query."""
_NAMED_VALUES = re.compile(r"(.*[-_])?headers?|(server[-_])?env(ironment)?")
"""Options that take NAME:VALUE or NAME=VALUE; the VALUE is hidden."""
_FIELD = re.compile(r"""([A-Za-z][\w-]*)["'\\]*\s*[:=]\s*""")
"""A name before its value inside a longer text: `api_key=`, `"api_key": `, `header=`."""
_KEY_IN_TEXT = re.compile(r"""(?<![^\s=:,"'])(?:sk|pk|hf|gsk|xai|nvapi|AIza)[-_A-Za-z0-9]{16,}""")
"""A key of a well-known service, at the beginning of a text or after a space, a quote, or one of `=:,`."""
_KEY_IN_PATH = re.compile(r"(?<=/)(?:sk|pk|hf|gsk|xai|nvapi|AIza)[-_A-Za-z0-9]{16,}")
"""A part of a path, of a socket or of an image's name, that begins as a known service's keys do."""

_BODY_FIELDS = frozenset({"extra_body", "chat_template_kwargs"})
"""Options whose values go into the request's body; `seal_secrets` looks for keys in them."""


def without_secrets(value: Any, *, queries: bool = False) -> Any:
    """A JSON value with `[hidden]` in place of its secrets, to be stored or shown.

    Names and passwords in URLs are left out. queries: also hide the values in the query of a URL. In fields that go
    into a request's body, texts that look like keys are hidden too.
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


def address_shown(address: str) -> str:
    """The scheme, the host and the path of a text that stands for an address, of whatever form, to be shown.

    What stands before an @ is a name or a password, with or without a scheme, and what stands behind a ? or # may be a
    key. Where an @ follows a ? or #, either may be part of a password, and only the scheme stays.
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
    the value of a header or a variable; what follows the name of a secret, as the next word (also if both are passed
    on to an engine) or inside a longer text; texts in JSON that look like keys; keys of well-known services.
    """
    return [shown for shown, _ in _read(words)]


def without_typed_secrets(text: str, words: Iterable[str]) -> str:
    """`text` without the secrets in the words of the command line that led to it: an error may quote any of them."""
    # Words too: an error may cut a text, or write its quotes in another way.
    typed = {part for _, secrets in _read(words) for secret in secrets for part in (secret, *_PARTS.findall(secret))}
    for secret in sorted(typed, key=len, reverse=True):
        if len(secret) >= MIN_HIDDEN_CHARS:
            text = text.replace(secret, HIDDEN)
    return text


_PARTS = re.compile(r"""[^\s"'{}]+""")
"""The words of a secret that is written in JSON or in several words."""

MIN_HIDDEN_CHARS = 4
"""A shorter secret is not looked for in a text, where it may be a part of any word."""


def _read(words: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield (the word with its secrets hidden, its secrets) for each word of a command line.

    A word is a flag (`--api-key`), or a value with or without its flag (`--api-key=KEY`, `KEY`). A value may itself be
    a flag, of an engine, and its own value then comes with a later word:
    `--serve-option=engine-flag=--api-key --serve-option=engine-flag=KEY`.
    """
    # The flag of the value, without dashes, in the same word or the one before; empty if it has none.
    option = ""
    # Whether a flag that is named as a key's awaits its value: the next word that is no flag is a key.
    awaits_key = False
    for word in words:
        if word.startswith("--") and "=" not in word:
            option, awaits_key = word[2:], awaits_key or names_a_secret(word)
            yield word, []
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        option = flag[2:] if equals else option
        # What --serve-option holds is an option with a value of its own.
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
    if option == "judge":  # `model=…,base_url=…`; its names stay, or the shown command would ask another judge.
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
            # Of a header's NAME:VALUE, an error may quote the VALUE alone.
            yield secret_text.rpartition(":")[2].strip("'\" ")
            return
    body = value.find("{")
    if body >= 0 and looks_like_a_key(value[body:]):
        yield value[body:]
