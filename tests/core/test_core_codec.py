"""JSON that carries every text and never crashes on foreign bytes."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.core import codec

ANY_TEXT = st.text(st.characters(exclude_categories=())).map(
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    max_leaves=10,
)


@given(VALUES)
@example("\ud800")
@example({"\udfff": ["\u2028"]})
def test_a_value_comes_back_equal_from_one_line(value: Any) -> None:
    line = codec.encode(value)
    assert b"\n" not in line
    assert codec.decode(line) == value
    assert json.loads(line) == value


@given(st.binary())
@example(b"\xff")
@example(b'"\\ud800')
@example(b'"\\ud800" x')
@example(b'{"a":"\\ud800"')
def test_foreign_bytes_give_a_value_or_our_error(data: bytes) -> None:
    with contextlib.suppress(codec.DecodeError):
        json.dumps(codec.decode(data))


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b'"\\ud800"',
        b'{"a":' * 100_000,
        b"1" * 5000,
        b'["\\ud800",' + b"1" * 5000 + b"]",
    ],
    ids=["arrays", "arrays and a surrogate", "objects", "long number", "long number and a surrogate"],
)
def test_deep_and_long_input_gives_our_error(data: bytes) -> None:
    with pytest.raises(codec.DecodeError):
        codec.decode(data, dict[str, int])


class Row(msgspec.Struct):
    name: str
    verdict: Literal["right", "wrong"] | None = None


@pytest.mark.parametrize(
    ("type", "data", "sentence"),
    [
        (Row, '{"name": "a", "verdict": "yes"}', "verdict: unknown value 'yes'; expected right, wrong or null"),
        (
            dict[str, list[Row]],
            '{"a": [{"name": "\\ud800", "verdict": "yes"}]}',
            "[...][0].verdict: unknown value 'yes'; expected right, wrong or null",
        ),
        (Literal["a", "b"], '"c"', "unknown value 'c'; expected a or b"),
        (Row, '{"name": 1}', "name: expected text, found a whole number"),
        (Row, "[]", "expected a mapping, found a list"),
        (Row, "{}", "missing required field `name`"),
    ],
)
def test_a_mistake_is_told_in_words_with_the_values_that_a_field_may_have(type: Any, data: str, sentence: str) -> None:
    with pytest.raises(codec.DecodeError) as error:
        codec.decode(data, type)
    assert str(error.value) == sentence
