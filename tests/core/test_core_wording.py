"""A sentence names an option as Python does."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import UNSET, UsageError, as_keyword


def test_an_error_shows_the_option_as_a_keyword_and_keeps_its_field() -> None:
    error = UsageError("expected 1 to 9; or give fit_context=True", field="samples", value="0 x")
    assert str(error) == error.sentence == "samples='0 x': expected 1 to 9; or give fit_context=True"
    assert (error.field, error.value) == ("samples", "0 x")
    assert UsageError("no such card").field is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (UNSET, "stop"),
        (None, "stop=None"),
        (("a",), "stop=['a']"),
        (Path("a"), "stop='a'"),
        ({"a": 1}, "stop={'a': 1}"),
    ],
)
def test_python_sees_a_keyword_argument(value: object, shown: str) -> None:
    assert as_keyword("stop", value) == shown
