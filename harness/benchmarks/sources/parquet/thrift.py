"""Structs of Thrift's compact protocol, as Parquet files hold them: bytes in, field numbers and values out.

Guarantees: what is read lies inside the data; nesting and the number of values are bounded by `MAX_NESTING` and by
`MAX_METADATA_BYTES`. Not covered: maps, which Parquet does not use. Source: the compact protocol's specification in the
Thrift repository (doc/specs/thrift-compact-protocol.md).
"""

from __future__ import annotations

import struct
from typing import Any, TypeVar

_T = TypeVar("_T")

MAX_NESTING = 16
"""Deepest nesting of structs and lists; the metadata of Parquet has 8 levels."""

MAX_VARINT_BYTES = 10
"""Bytes of the longest integer: 64 bits, 7 in each byte."""

MAX_METADATA_BYTES = 16 * 1024**2
"""Bytes of the longest footer and of the longest header of a page. A byte of them may become an object of some 80 bytes
in memory.
"""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class DamagedError(ValueError):
    """The bytes are not what their format says."""


class Fields(dict[int, Any]):
    """A struct: field number -> value. The methods check the type, which hostile data choose."""

    def integer(self, number: int, absent: int = 0) -> int:
        """The integer of a field, `absent` without the field. Raises `DamagedError` for another type."""
        return self._typed(number, int, absent)

    def fields(self, number: int) -> Fields:
        """The struct of a field, empty without the field. Raises `DamagedError` for another type."""
        return self._typed(number, Fields, Fields())

    def structs(self, number: int) -> list[Fields]:
        """The structs of a field's list, none without the field. Raises `DamagedError` for another type."""
        values = self._typed(number, list, [])
        if not all(isinstance(value, Fields) for value in values):
            raise DamagedError(f"field {number} of the metadata holds more than structs; expected a list of structs")
        return values

    def text(self, number: int) -> str:
        """The text of a field, empty without the field. Raises `DamagedError` for another type."""
        return self._typed(number, bytes, b"").decode("utf-8", "replace")

    def _typed(self, number: int, kind: type[_T], absent: _T) -> _T:
        value = self.get(number, absent)
        if not isinstance(value, kind):
            raise DamagedError(f"field {number} of the metadata is of {type(value).__name__}, expected {kind.__name__}")
        return value


class ByteReader:
    """A position in bytes. Every method reads at the position and moves it; `DamagedError` past the end."""

    def __init__(self, data: bytes | memoryview, position: int = 0) -> None:
        self.data = memoryview(data)
        self.position = position

    def take(self, n_bytes: int) -> memoryview:
        """The next `n_bytes` bytes."""
        end = self.position + n_bytes
        if n_bytes < 0 or end > len(self.data):
            raise DamagedError("the data end too early")
        piece = self.data[self.position : end]
        self.position = end
        return piece

    def rest(self) -> memoryview:
        """All bytes up to the end."""
        return self.take(len(self.data) - self.position)

    def varint(self) -> int:
        """An unsigned integer, 7 bits in each byte, the low ones first."""
        value = 0
        for n in range(MAX_VARINT_BYTES):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << (7 * n)
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF
        raise DamagedError("an integer has more than 64 bits")

    def zigzag(self) -> int:
        """A signed integer: 0, -1, 1, -2 … are written as 0, 1, 2, 3 …"""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def metadata(self) -> Fields:
        """The struct at the position, of at most `MAX_METADATA_BYTES`."""
        near = ByteReader(self.data[: self.position + MAX_METADATA_BYTES], self.position)
        fields = near.struct()
        self.position = near.position
        return fields

    def struct(self, depth: int = 0) -> Fields:
        """A struct up to its end. A struct in it is `Fields`, a list is a list, and a text is bytes.

        depth: how many structs and lists hold this one; bounded.
        """
        if depth > MAX_NESTING:
            raise DamagedError("the metadata are nested too deeply")
        fields = Fields()
        number = 0
        while True:
            (head,) = self.take(1)
            kind, step = head & 0x0F, head >> 4
            if not head:
                return fields
            # The head has the step from the last field's number; after a step of 0 the number itself follows.
            number = number + step if step else self.zigzag()
            # The type of a boolean field is its value.
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        """Read one value of Thrift's compact protocol. kind: the protocol's number of the value's type.

        depth: how many structs and lists hold this value; bounded.
        """
        if kind in (_TRUE, _FALSE):  # in a list: one byte each
            return self.take(1)[0] == _TRUE
        if kind == _BYTE:
            return struct.unpack("<b", self.take(1))[0]
        if kind in (_I16, _I32, _I64):
            return self.zigzag()
        if kind == _DOUBLE:
            return struct.unpack("<d", self.take(8))[0]
        if kind == _BINARY:
            return bytes(self.take(self.varint()))
        if kind in (_LIST, _SET):
            (head,) = self.take(1)
            # Four bits of the head hold the length of a short list; 15 means that the length follows.
            n_values = head >> 4 if head >> 4 != 0x0F else self.varint()
            if n_values > len(self.data) - self.position or depth > MAX_NESTING:
                raise DamagedError("a list is longer than the data")
            return [self._value(head & 0x0F, depth + 1) for _ in range(n_values)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise DamagedError(f"the metadata have a value of type {kind}, which Parquet files do not use")
