"""A key as a value that cannot be shown by mistake.

Guarantees: text, `repr`, format and JSON of a secret, and of what holds it, are `[hidden]` or refused; `pickle` is
refused; a copy is the secret itself. Its characters come out by `reveal` alone, and a test lists who calls that.
Not covered: the memory of the process, and texts of others in which the key stands (`client.address.redact`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

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
