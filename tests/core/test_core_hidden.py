"""What a person typed is printed and stored without its secrets, and otherwise unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.secret import HIDDEN, command_words, without_secrets

KEY = "canary5up3rs3cr3t"


@given(st.lists(st.text()))
def test_any_command_line_keeps_its_number_of_words(words: list[str]) -> None:
    assert len(command_words(words)) == len(words)


VALUES: list[tuple[Any, Any]] = [
    ({"api_key": KEY, "top_k": 1}, {"api_key": HIDDEN, "top_k": 1}),
    ({"a": [{"token": KEY}]}, {"a": [{"token": HIDDEN}]}),
    ({"max_tokens": 5, "token": 7}, {"max_tokens": 5, "token": 7}),
    ({"tokens": "all", "stop": ("x",)}, {"tokens": "all", "stop": ("x",)}),
    ({"user": f"sk-{KEY}0123456789"}, {"user": HIDDEN}),
    ({"judge_extra_body": {"byok": KEY}}, {"judge_extra_body": {"byok": HIDDEN}}),
    (f"http://u:{KEY}@h/v1", "http://h/v1"),
]


@pytest.mark.parametrize(("given_value", "shown"), VALUES)
def test_a_value_is_shown_without_the_secrets_in_it(given_value: Any, shown: Any) -> None:
    assert without_secrets(given_value) == shown


def test_a_refused_option_quotes_no_password() -> None:
    error = UsageError("expected http", field="base_url", value=f"ftp://user:{KEY}@host/v1")
    assert KEY not in str(error)
    assert "ftp://host/v1" in str(error)
    assert error.value == "ftp://host/v1"
