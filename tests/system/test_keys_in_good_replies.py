"""Keys that are mistyped, or that a text repeats, are hidden; ordinary words and names are not.

For: harness.client.address.endpoint, harness.core.secret, server_launchers.command_line.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.address.endpoint import without_repeats
from harness.core.secret import (
    HIDDEN,
    Secret,
    command_words,
    looks_like_a_key,
    reveal_secrets,
    seal_secrets,
    without_secrets,
)
from server_launchers.command_line import is_secret, secrets_of
from tests.system.command import harness

KEY = "canary-5f0c9d2e71ab4c38-Zq81"


def leaks(text: str) -> bool:
    """Whether 16 characters of the key in a row stand in a text."""
    return any(KEY[at : at + 16] in text for at in range(len(KEY) - 15))


@pytest.mark.parametrize("words", ["EMPTY", "none", "x", "anything", "12345678", "password", "Bearer token"])
def test_a_placeholder_in_a_keys_place_takes_no_word_from_an_answer(words: str) -> None:
    text = f"The password is anything but 12345678, EMPTY or none; a Bearer token, x = {words}."
    assert without_repeats(text, [Secret(words)]) == text


@pytest.mark.parametrize("length", range(8, 40))
def test_a_key_of_any_length_is_hidden_and_nothing_beside_it(length: int) -> None:
    key = ("k3y-" + "a1B2c3D4e5F6g7H8" * 3)[:length]
    for before, after in (("", ""), ("so ", "."), ("x", "y"), ("Bearer ", "\n")):
        assert without_repeats(before + key + after, [Secret(key)]) == before + HIDDEN + after
        assert without_repeats(before + key + after, [Secret(f"Bearer {key}")]) == before + HIDDEN + after
    part = key[: min(15, length // 2)]
    assert without_repeats(part, [Secret(key)]) == part


PLAIN: list[Any] = [
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "claude-3-5-sonnet-20241022",
    "Qwen2.5-Math-7B-Instruct-AWQ",
    "json_schema_strict_v2",
    "high",
    "https://example.com/v1/models/list",
    "root ::= [A-Za-z0-9 .,+=]{20,120} think",
    "{% for message in messages %}{{ message['content'] | trim }}{% endfor %}",
    {"order": ["deepinfra/fp8-turbo"]},
    {"type": "json_object"},
    {"enable_thinking": False, "thinking_budget": 4096},
    3,
    None,
    "0123",
]


def test_names_of_models_grammars_and_words_of_a_body_stay_to_be_read() -> None:
    for value in PLAIN:
        assert seal_secrets({"field": value}) == {"field": value}, value


KEYS = [
    KEY,
    "sk-proj-abcdefghijklmnopqrst",
    "550e8400-e29b-41d4-a716-446655440000",
    "9f86d081884c7d659a2feaa0c55ad015",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "AKIA5T7XQ2M9LPZ4WJ6C0D",
    "see wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY2z9 there",
    "xK9v2Lq8Rt5Yw3Zp",
]


def test_keys_of_a_body_are_sealed_under_any_name_and_come_out_by_name() -> None:
    for key in KEYS:
        assert looks_like_a_key(key) or key.startswith("sk-"), key
        for body in ({"byok": key}, {"a": {"b": [key]}}, {"a": [{"b": key}]}):
            assert key not in str(seal_secrets(body)) + repr(seal_secrets(seal_secrets(body)))
            assert reveal_secrets(seal_secrets(body)) == body
    for body in ({"api_key": "short"}, {"passwords": ["a", "b"]}, {"credentials": {"user": "u", "value": "v"}}):
        assert "short" not in str(seal_secrets(body))
        assert str(seal_secrets(body)).count(HIDDEN) in (1, 2)
        assert reveal_secrets(seal_secrets(body)) == body


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        (["--env", f"X_TOKEN={KEY}"], 'X_TOKEN="$X_TOKEN"'),
        (["--env", f"ODD={KEY}0123456789"], 'ODD="$ODD"'),
        (["--env", "PLAIN=a b"], "PLAIN='a b'"),
        (["--", "--api-key", KEY], "--api-key HIDDEN"),
        (["--", f"--api-key={KEY}"], "--api-key=HIDDEN"),
        (["--", "--config", json.dumps({"hf_token": KEY})], '"hf_token": "HIDDEN"'),
    ],
)
def test_a_dry_run_of_a_server_shows_no_key(words: list[str], stays: str, tmp_path: Path) -> None:
    done = harness(tmp_path, "serve", "command", "m", "--dry-run", *(words if "--" in words else [*words, "--", "x"]))
    if "--" in words:
        done = harness(tmp_path, "serve", "command", "m", "--dry-run", "--", "x", *words[1:])
    assert (done.code, leaks(done.out + done.err)) == (0, False), done.out
    assert stays in done.out
    assert shlex.split(done.out)


def test_a_key_shaped_value_of_a_variable_is_hidden_and_a_path_is_not() -> None:
    assert is_secret("X", KEY)
    assert not is_secret("X", "/opt/model-0123456789-abcdef")
    assert secrets_of({"A_KEY": "abc", "B_KEY": "abcd"}) == ["abcd"]


TYPED = "canary5up3rs3cr3t"


@given(st.lists(st.text()))
def test_any_command_line_keeps_its_number_of_words(words: list[str]) -> None:
    assert len(command_words(words)) == len(words)


VALUES: list[tuple[Any, Any]] = [
    ({"api_key": TYPED, "top_k": 1}, {"api_key": HIDDEN, "top_k": 1}),
    ({"a": [{"token": TYPED}]}, {"a": [{"token": HIDDEN}]}),
    ({"max_tokens": 5, "token": 7}, {"max_tokens": 5, "token": 7}),
    ({"tokens": "all", "stop": ("x",)}, {"tokens": "all", "stop": ("x",)}),
    ({"user": f"sk-{TYPED}0123456789"}, {"user": HIDDEN}),
    ({"judge_extra_body": {"byok": TYPED}}, {"judge_extra_body": {"byok": HIDDEN}}),
    (f"http://u:{TYPED}@h/v1", "http://h/v1"),
]


@pytest.mark.parametrize(("given_value", "shown"), VALUES)
def test_a_value_is_shown_without_the_secrets_in_it(given_value: Any, shown: Any) -> None:
    assert without_secrets(given_value) == shown
