"""What a server's refusal means, in its own words."""

from __future__ import annotations

import json
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.client.protocol.failures import (
    classify,
    error_words,
    failure_of_event,
    failure_of_status,
    retry_after_seconds,
)
from harness.core.secret import Secret
from tests.client.dialects import Recording, refusals

NOW = 1_800_000_000.0


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
        (418, "teapot", "rejected"), (413, "too large", "rejected"), (422, "bad", "rejected"),
        (401, "Unauthorized", "refused"), (403, "Forbidden", "refused"), (408, "", "server"), (500, "boom", "server"),
        *((status, "", "server") for status in (409, 423, 425)),
        (502, "", "server"), (503, "no_available_workers", "server"), (504, "", "server"),
    ],
)  # fmt: skip
def test_each_servers_wording_has_its_kind(status: int, words: str, kind: str) -> None:
    assert classify(status, words) == kind


@pytest.mark.parametrize("refusal", refusals(), ids=lambda one: one.name)
def test_the_refusals_of_every_server_have_their_kind(refusal: Recording) -> None:
    assert failure_of_status(refusal.status, refusal.body).kind == refusal.failure


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", None),
        ("3", 3.0),
        (" 2.5 ", 2.5),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        ("", None),
        ("in a while", None),
        (formatdate(NOW + 30, usegmt=True), 30.0),
        (formatdate(NOW - 30, usegmt=True), None),
        ("Wed, 99 Foo 2026 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_a_number_or_a_date_to_come_or_nothing(value: str, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds", "message"),
    [
        ({"retry-after": "9", "retry-after-ms": "1500"}, 1.5, "no explanation"),
        ({"retry-after": "3600"}, 3600.0, "no explanation"),
        ({"retry-after": "3601"}, 3600.0, "no explanation (asks to wait 3601 s; waiting 3600 s)"),
    ],
)
def test_milliseconds_go_before_seconds_and_a_pause_is_bounded(
    headers: dict[str, str], seconds: float, message: str
) -> None:
    failure = failure_of_status(429, b"", headers, now=NOW)
    assert (failure.retry_after, failure.message) == (seconds, f"HTTP 429: {message}")


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (400, 400, "rejected"),
        ("599", 599, "server"),
        (399, None, "server"),
        (600, None, "server"),
        ("²29", None, "server"),
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
