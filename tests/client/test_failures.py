"""What a server's refusal means, in its own words; where a key is hidden, and what is left alone.

For: harness.client.address.endpoint, harness.core.secret, harness.client.protocol.failures.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from harness.client.address.endpoint import Endpoint, quote_safely, redact
from harness.client.address.endpoint import without_repeats as shown
from harness.client.protocol.failures import (
    classify,
    error_words,
    failure_of_event,
    failure_of_status,
)
from harness.core.inert import MAX_MESSAGE_CHARS
from harness.core.secret import HIDDEN, Secret, command_words, is_secret, without_secrets
from tests.client.dialects import Recording, refusals


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "boom", "type": "BadRequestError", "code": 400}}, "boom (BadRequestError)"),
        ({"error": {"message": "boom", "code": "context_length_exceeded"}}, "boom (context_length_exceeded)"),
        ({"error": "Unauthorized"}, "Unauthorized"),
        ({"object": "error", "message": "boom", "code": 400}, "boom"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"loc": ["body", "n"], "msg": "must be 1"}]}, "body.n: must be 1"),
        ([{"error": {"message": "boom"}}], "boom"),
        ({"message": "boom"}, "boom"),
        ({"error": {"message": {"detail": "deep"}}}, "deep"),
    ],
)
def test_the_message_of_every_known_shape_is_found(body: Any, words: str) -> None:
    assert error_words(json.dumps(body).encode()) == words


def test_a_page_is_shown_by_its_words() -> None:
    page = b"<html><style>a{}</style><h1>502 Bad Gateway</h1>\n<hr>nginx</html>"
    assert error_words(page) == "502 Bad Gateway nginx"


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "too many tokens (context_length_exceeded)", "too_long"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "too_long"),
        (400, "Invalid model name passed in model=x. Call `/v1/models`", "refused"),
        (402, "Insufficient Balance", "refused"),
        (429, "You exceeded your current quota, please check your plan (insufficient_quota)", "refused"),
        (429, "Rate limit reached", "rate_limited"),
        (529, "Overloaded", "server"),
        (418, "teapot", "rejected"),
        (413, "too large", "rejected"),
        (422, "bad", "rejected"),
        (401, "Unauthorized", "refused"),
        (403, "Forbidden", "refused"),
        (408, "", "server"),
        (500, "boom", "server"),
        *((status, "", "server") for status in (409, 423, 425)),
        (502, "", "server"),
        (503, "no_available_workers", "server"),
        (504, "", "server"),
    ],
)
def test_each_servers_wording_has_its_kind(status: int, words: str, kind: str) -> None:
    assert classify(status, words) == kind


@pytest.mark.parametrize("refusal", refusals(), ids=lambda one: one.name)
def test_the_refusals_of_every_server_have_their_kind(refusal: Recording) -> None:
    assert failure_of_status(refusal.status, refusal.body).kind == refusal.failure


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (400, 400, "rejected"),
        ("599", 599, "server"),
        (399, None, "server"),
        (600, None, "server"),
        ("²29", None, "server"),
        ("of_no_table", None, "server"),
    ],
)
def test_an_error_in_a_stream_counts_by_the_status_that_it_states(code: object, status: int | None, kind: str) -> None:
    failure = failure_of_event({"error": {"message": "boom", "code": code}})
    assert (failure.status, failure.kind) == (status, kind)


def test_a_redirect_names_its_target_without_user_info() -> None:
    failure = failure_of_status(302, b"", {"location": "https://user:secret@elsewhere/v1"})
    assert failure.kind == "refused"
    assert "https://elsewhere/v1" in failure.message
    assert "secret" not in failure.message


@pytest.mark.parametrize(
    "echo", ["Bearer sk-canary-12345678", "api_key=sk-canary-12345678", "http://u:sk-canary-12345678@h/"]
)
def test_keys_are_hidden_even_if_nobody_named_them(echo: str) -> None:
    assert "canary" not in failure_of_status(401, json.dumps({"error": f"bad {echo}"}).encode()).message


def test_a_secret_at_the_edge_of_the_bound_is_not_shown_in_part() -> None:
    body = json.dumps({"error": "x" * 290 + "sk-canary-123"}).encode()
    assert "sk-c" not in failure_of_status(401, body, secrets=[Secret("sk-canary-123")]).message


def test_the_message_is_short_and_on_one_line() -> None:
    message = failure_of_status(400, json.dumps({"error": "a\nb\x1b]52;c;x\x07" + "y" * 10**5}).encode()).message
    assert len(message) < 400
    assert message.isprintable()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("error", "message", "detail", "type", "code", "msg", "loc")), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(json_values, st.integers(300, 599), st.text(max_size=20), st.binary(max_size=40))
@settings(deadline=None)
def test_any_refusal_is_a_failure_of_some_kind(value: Any, status: int, header: str, body: bytes) -> None:
    failure_of_event(value)
    failure_of_status(status, json.dumps(value).encode(), {"retry-after": header, "location": header})
    failure_of_status(status, body, {"content-encoding": "gzip", "retry-after-ms": header})


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
