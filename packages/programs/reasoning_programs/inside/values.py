"""Encode plain values as JSON and decode them, without loss. Processes exchange arguments and results in this form.

    None, bool, str, float, small int as in JSON
    list tuple set frozenset dict bytes    ["l", items] ["t", items] ["s", items] ["z", items] ["d", pairs] ["b", hex]
    complex, other int, deque              ["c", real, imaginary] ["i", hex] ["q", items]
    Decimal, Fraction                      ["m", text] ["r", numerator, denominator]
    range, views of a dict                 ["g", start, stop, step] ["k", keys] ["v", values] ["e", pairs]
    date, datetime, time, timedelta        ["y", text] ["x", text] ["h", text] ["w", days, seconds, microseconds]
    anything else                          ["o", number]: an object that stays in its process, identified by a number

Guarantee: a decoded value is of exactly these types, so that comparing it runs no code of the process that sent it.
Instances of a subclass are decoded as the base class. A value nested deeper than `MAX_DEPTH`, or larger than
`MAX_ITEMS`, raises `ValueError`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_DEPTH = 300
"""Maximum nesting depth of a value."""

MAX_ITEMS = 5_000_000
"""Maximum number of parts in a value."""

_MAX_PLAIN_INT = 2**53
"""Largest integer that is written as a JSON number; larger integers are written in hexadecimal, which can be parsed in
linear time."""

_SEQUENCES: tuple[tuple[str, type[Any], Callable[[list[Any]], Any]], ...] = (
    *(("l", list, list), ("t", tuple, tuple), ("s", set, set), ("z", frozenset, frozenset), ("q", deque, deque)),
    ("k", type({}.keys()), lambda keys: dict.fromkeys(keys).keys()),
    ("v", type({}.values()), lambda values: dict(enumerate(values)).values()),
    ("e", type({}.items()), lambda pairs: dict(pairs).items()),
)
"""Tag, Python type, function that builds the value from the decoded items."""
_FORMS: tuple[tuple[str, Any, Callable[[Any], list[Any]], Callable[..., Any]], ...] = (
    ("b", (bytes, bytearray), lambda v: [v.hex()], bytes.fromhex),
    ("c", complex, lambda v: [v.real, v.imag], lambda real, imaginary: complex(float(real), float(imaginary))),
    ("m", Decimal, lambda v: [str(v)], Decimal),
    ("r", Fraction, lambda v: [hex(v.numerator), hex(v.denominator)], lambda *n: Fraction(*(int(i, 16) for i in n))),
    ("w", timedelta, lambda v: [v.days, v.seconds, v.microseconds], lambda *n: timedelta(*map(int, n))),
    ("x", datetime, lambda v: [v.isoformat()], datetime.fromisoformat),
    ("y", date, lambda v: [v.isoformat()], date.fromisoformat),
    ("h", time, lambda v: [v.isoformat()], time.fromisoformat),
)
"""Tag, Python type, function that returns the parts to write, function that builds the value from them. A time zone
must be a fixed offset."""
_DECODERS = {tag: from_parts for tag, _, _, from_parts in _FORMS} | {"i": lambda text: int(text, 16)}
"""Tag → function that builds the value from the written parts."""


def _refuse(value: Any) -> int:
    """Raise `ValueError` for an object that is not plain."""
    raise ValueError(f"{type(value).__name__} is not a plain value")


def encode(value: Any, hold: Callable[[Any], int] = _refuse) -> Any:
    """`value` as JSON lists, strings and numbers. hold: returns a number for an object that is not plain.

    Raises `ValueError` if the value is too deep or too large.
    """
    return _encode(value, hold, 0, [MAX_ITEMS])


def _encode(value: Any, hold: Callable[[Any], int], depth: int, allowance: list[int]) -> Any:
    """Encode one value. hold: returns a number for an object that is not plain. depth: levels of lists around it.

    allowance: a list with one number, the number of parts still allowed, which each call decreases.
    """
    allowance[0] -= 1
    if depth > MAX_DEPTH or allowance[0] < 0:
        raise ValueError("the value is nested too deeply or has too many parts")
    kind = type(value)
    # Exact types first; bool before int, of which it is a subclass.
    if value is None or kind is bool or kind is float:
        return value
    if isinstance(value, str):
        # A subclass may override its own conversion, so the base's is called.
        return value if kind is str else str.__str__(value)
    if isinstance(value, int):
        number = int(value)
        return number if -_MAX_PLAIN_INT <= number <= _MAX_PLAIN_INT else ["i", hex(number)]
    for tag, sequence, _ in _SEQUENCES:
        if isinstance(value, sequence):
            return [tag, [_encode(item, hold, depth + 1, allowance) for item in value]]
    if isinstance(value, dict):
        pairs = [
            [_encode(key, hold, depth + 1, allowance), _encode(item, hold, depth + 1, allowance)]
            for key, item in value.items()
        ]
        return ["d", pairs]
    if isinstance(value, float):
        return float(value)
    for tag, plain, parts, _ in _FORMS:
        # The type first: for one of the program's objects, even an attribute lookup would be a request.
        if isinstance(value, plain) and isinstance(getattr(value, "tzinfo", None), (timezone, type(None))):
            return [tag, *parts(value)]
    if kind is range and _is_short(value):
        return ["g", *(_encode(part, hold, depth + 1, allowance) for part in (value.start, value.stop, value.step))]
    if kind.__module__ == "numpy" and hasattr(value, "tolist"):  # an array, or a numpy number
        return _encode(value.tolist(), hold, depth + 1, allowance)
    return ["o", hold(value)]


def decode(value: Any, held: Callable[[int], Any] = _refuse) -> Any:
    """The value from its encoded form. Raises `ValueError` for anything that is not an encoded value.

    held: returns the object that the encoded form refers to by this number.
    """
    return _decode(value, held, 0)


def _decode(value: Any, held: Callable[[int], Any], depth: int) -> Any:
    """Decode one value. held: a function from an object's number to the object. depth: levels of lists around the
    value.

    Raises `ValueError`.
    """
    if depth > 2 * MAX_DEPTH:
        raise ValueError("the value is nested too deeply")
    if value is None or isinstance(value, (bool, str, int, float)):
        return value
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[0], str):
        raise ValueError("not an encoded value")
    tag, body = value[0], value[1]
    try:
        for name, _, from_items in _SEQUENCES:
            if tag == name:
                return from_items([_decode(item, held, depth + 1) for item in _list(body)])
        if tag == "d":
            pairs = (_list(pair) for pair in _list(body))
            return {_decode(key, held, depth + 1): _decode(item, held, depth + 1) for key, item in pairs}
        if tag == "g":
            span = range(*(_decode(item, held, depth + 1) for item in value[1:]))
            if not _is_short(span):
                raise ValueError("not an encoded value: a long range")
            return span
        if tag in _DECODERS:
            return _DECODERS[tag](*value[1:])
        if tag == "o" and isinstance(body, int):
            return held(body)
    except (TypeError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"not an encoded value: {error}") from error
    raise ValueError(f"not an encoded value: unknown tag {tag[:10]!r}")


def _is_short(span: range) -> bool:
    """Whether a test that iterates over the range would finish in time."""
    return abs(span.stop - span.start) <= MAX_ITEMS * abs(span.step)


def _list(value: Any) -> list[Any]:
    """`value` if it is a list. Raises `ValueError`."""
    if not isinstance(value, list):
        raise ValueError("not an encoded value: a list is missing")
    return value
