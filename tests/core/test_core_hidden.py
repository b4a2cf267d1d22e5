"""What a person typed is printed and stored without its secrets, and otherwise unchanged."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.secret import HIDDEN, command_words, without_secrets

KEY = "canary5up3rs3cr3t"


@pytest.mark.parametrize(
    "line",
    [
        f"run --header Authorization:{KEY}",
        f"run --header 'X-Key: {KEY}'",
        f"run --header {KEY}",
        f"run --serve-option env=X_KEY={KEY}",
        f"run --serve-option=env=X_KEY={KEY}",
        f"run --base-url https://user:{KEY}@host/v1",
        f"run --judge=m@https://{KEY}@host/v1",
        f"run --base-url 'https://host/v1?key={KEY}'",
        f"""run --extra-body '{{"api_key": "{KEY}"}}'""",
        f"""run --extra-body='{{"provider": {{"access_token": "{KEY}"}}}}'""",
        f"""run --extra-body '{{"api_key": "{KEY}"'""",
        f"serve vllm --env HF_TOKEN={KEY}",
        f"serve vllm -- --api-key {KEY}",
        f"run --data sk-{KEY}0123456789",
    ],
)
def test_a_command_line_is_shown_without_the_secrets_in_it(line: str) -> None:
    shown = shlex.join(command_words(shlex.split(line)))
    assert KEY not in shown
    assert shlex.split(shown)[0] == shlex.split(line)[0]
    assert len(shlex.split(shown)) == len(shlex.split(line))


@pytest.mark.parametrize(
    "line",
    [
        "run aime24:64 --model Qwen/QwQ-32B --base-url http://127.0.0.1:8000/v1 --api-key-env MY_KEY --max-tokens 9",
        "run --data a.jsonl --question-key Problem --answer-key Answer --id-key id --prompt 'a: b=c'",
        """run --extra-body '{"top_k": 20, "stop": ["a"]}'""",
        "run --base-url unix:/a@b/c.sock --filter 'subject=maths' --rpm 3",
    ],
)
def test_a_command_line_without_secrets_is_shown_as_it_was_typed(line: str) -> None:
    assert command_words(shlex.split(line)) == shlex.split(line)


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
