"""Where a key is hidden, and what is left alone.

For: harness.client.address.endpoint, harness.core.secret.
"""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from harness.client.address.endpoint import Endpoint, quote_safely, redact
from harness.client.address.endpoint import without_repeats as shown
from harness.core.limits import MAX_MESSAGE_CHARS
from harness.core.secret import HIDDEN, Secret, command_words, is_secret, without_secrets

KEY = "canary-5f0c9d2e71ab4c38-Zq81-0b7e6f92ac"


def test_a_key_of_four_characters_is_hidden_and_a_shorter_placeholder_is_not() -> None:
    assert redact("the key abc9", [Secret("abc9")]) == f"the key {HIDDEN}"
    assert redact("the key abc", [Secret("abc")]) == "the key abc"


def test_what_is_left_of_a_key_at_the_cut_is_not_shown() -> None:
    """The cut divides a key, and what was hidden before made the text short."""
    key = "".join(f"{n:04d}" for n in range(500))
    for n_before in range(0, 2001, 9):
        message = quote_safely("x" * n_before + f"{key} " * 20, [Secret(key)])
        assert key[:2] not in message.replace(HIDDEN, ""), message


def test_all_that_follows_the_first_word_of_a_header_is_one_key() -> None:
    assert redact("you sent yyyy zzzz!", [Secret("X yyyy zzzz")]) == f"you sent {HIDDEN}!"


def test_a_key_of_eight_mixed_characters_is_hidden_in_a_good_reply_and_one_of_seven_is_not() -> None:
    assert shown("it is ab12cd34", [Secret("ab12cd34")]) == f"it is {HIDDEN}"
    assert shown("it is ab12cd3", [Secret("ab12cd3")]) == "it is ab12cd3"


def test_a_long_message_is_shown_from_its_first_character_to_its_bound() -> None:
    words = "".join(chr(ord("a") + n % 26) for n in range(20_000))
    assert quote_safely(words)[: MAX_MESSAGE_CHARS - 1] == words[: MAX_MESSAGE_CHARS - 1]
    long_key = "k7" * 400
    message = quote_safely(f"{long_key} {words}", [Secret(long_key)])
    assert message.startswith(f"{HIDDEN} abc")
    assert len(message) == len(quote_safely(words))


def test_a_sealed_value_is_a_secret_under_any_name_and_a_number_under_none() -> None:
    assert is_secret("page", Secret(KEY)) is True
    assert is_secret("api_key", 7) is False


def test_a_secret_keeps_the_width_of_a_format_and_is_made_of_a_text_only() -> None:
    assert f"{Secret(KEY):>10}" == f"  {HIDDEN}"
    with pytest.raises(ValidationError, match="valid string"):
        TypeAdapter(Secret).validate_python(KEY.encode())


def test_a_query_is_shown_where_nobody_asked_to_hide_it() -> None:
    assert without_secrets("http://h/v1?page=2") == "http://h/v1?page=2"
    words = ["run", "--extra-body", '{"page": "http://h/?page=2"}']
    assert command_words(words) == words


def test_the_name_of_a_variable_is_shown_without_its_value() -> None:
    assert command_words(["serve", "--env", f"HF_TOKEN={KEY}"]) == ["serve", "--env", f"HF_TOKEN={HIDDEN}"]


@pytest.mark.parametrize(
    ("given", "base_url"),
    [
        ("localhost:8000", "http://localhost:8000/v1"),
        ("https://h", "https://h/v1"),
        ("https://h/v1/chat/completions?api-version=word", "https://h/v1"),
        ("http://me:word@H:80/v2/chat/completions/", "http://h:80/v2"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("unix:/tmp/A.sock", "http+unix://%2Ftmp%2FA.sock/v1"),
        ("unix:///tmp/A.sock", "http+unix://%2Ftmp%2FA.sock/v1"),
        ("http+unix://me:word@%2Ftmp%2FA.sock/v1", "http+unix://%2Ftmp%2FA.sock/v1"),
    ],
)
def test_an_address_is_shown_without_its_key(given: str, base_url: str) -> None:
    endpoint = Endpoint.parse(given)
    assert endpoint.base_url == base_url
    assert (endpoint.api_key is None) is ("me:word" not in given)
    assert "word" not in repr(endpoint)
