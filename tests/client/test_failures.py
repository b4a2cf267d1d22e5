"""What a server's refusal means, in its own words; where a key is hidden, and what is left alone.

A refusal is also drawn as a meaning (whose fault, how long to wait), and then written in a drawn place, word and form.
The client has to read the meaning back, as a careful person would.

For: harness.client.address.endpoint, harness.core.secret, harness.client.protocol.failures, harness.client.loop.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from harness.client.address.endpoint import Endpoint, quote_safely, redact
from harness.client.address.endpoint import without_repeats as shown
from harness.client.apis.chat import CHAT
from harness.client.interface import Deadlines, Post
from harness.client.loop import BEAT_S, LagMeter, current_lag, measure_lag, new_event_loop
from harness.client.protocol.failures import RequestFailed, classify, error_words, failure_of_event, failure_of_status
from harness.client.transport import Transport
from harness.core.sanitize import MAX_MESSAGE_CHARS
from harness.core.secret import HIDDEN, Secret, command_words, is_secret, without_secrets
from harness.generation.batching.submission import read_result
from harness.generation.dispatch.retry import Cause, advice
from harness.testing import FakeServer, Step, delta, event, event_stream, http
from tests.budget import examples
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
        (529, "Overloaded", "rate_limited"),
        (418, "teapot", "rejected"),
        (413, "too large", "rejected"),
        (422, "bad", "rejected"),
        (401, "Unauthorized", "refused"),
        (403, "Forbidden", "refused"),
        (408, "", "server"),
        (500, "boom", "server"),
        *((status, "", "server") for status in (409, 423, 425)),
        (502, "", "server"),
        (503, "no_available_workers", "rate_limited"),
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


def test_a_four_character_key_is_hidden_and_a_shorter_placeholder_is_not() -> None:
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


def test_keys_of_eight_mixed_characters_are_hidden_and_of_seven_are_not() -> None:
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


WORDS: dict[str, tuple[int, str]] = {
    "pace": (429, "rate_limit_error rate_limit_exceeded RESOURCE_EXHAUSTED ThrottlingException too_many_requests"),
    "away": (529, "overloaded_error server_is_overloaded engine_overloaded_error"),
    "unavailable": (503, "service_unavailable_error UNAVAILABLE"),
    "chance": (500, "api_error server_error InternalServerError INTERNAL"),
    "slow": (408, "timeout_error"),
    "absent": (501, "not_supported_error NotImplementedError UNIMPLEMENTED"),
    "payload": (400, "invalid_request_error invalid_prompt INVALID_ARGUMENT BadRequestError"),
    "key": (401, "authentication_error UNAUTHENTICATED"),
    "account": (429, "insufficient_quota"),
    "unpaid": (402, "billing_error"),
    "forbidden": (403, "permission_error PERMISSION_DENIED"),
}
"""Meaning → the status, and the words of OpenAI, Anthropic, Google, vLLM, Moonshot and AWS for it."""

KINDS = {
    **dict.fromkeys(("pace", "away", "unavailable"), "rate_limited"),
    "payload": "rejected",
    "absent": "rejected",
    "key": "refused",
    "account": "refused",
    "unpaid": "refused",
    "forbidden": "refused",
}
"""Meaning → the kind of failure, if it is not "server"."""

LAST_WORDS = {
    **dict.fromkeys(("pace", "away", "unavailable"), "once the server accepts requests"),
    **dict.fromkeys(("chance", "slow"), "every request fails; check the server's log"),
}
"""Meaning → when the same command helps, if every request ends so; of all others no such words are known."""

TEXTS = {"pace": ["Rate limit exceeded: free-models-per-min.", "Too many requests"], "away": ["Overloaded"]}
"""Explanations that say it all, without any word of a table."""

SECONDS = (0.12, 0.7, 2.0, 36.0, 62.5, 360.0, 3599.0, 18_000.0, 99_696.0, 900_000.0)


AHEAD_S = [0.0]
"""By how many seconds the server's clock is ahead of ours."""


def _now() -> float:
    """The Unix time by the server's clock."""
    return time.time() + AHEAD_S[0]


def _units(seconds: float) -> str:
    """`27h41m36s`, `120ms`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours:.0f}h{minutes:.0f}m{rest:g}s" if hours else f"{minutes:.0f}m{rest:g}s" if minutes else f"{rest:g}s"


def _rfc3339(seconds: float) -> str:
    return (datetime.fromtimestamp(_now(), UTC) + timedelta(seconds=seconds)).isoformat()


IN_HEADERS: dict[str, Callable[[float], dict[str, str]]] = {
    "retry-after": lambda s: {"retry_after": f"{s:g}"},
    "retry-after-ms": lambda s: {"retry_after_ms": f"{s * 1000:.0f}", "retry_after": "86400"},
    "a date": lambda s: {"retry_after": formatdate(_now() + s, usegmt=True)},
    "OpenAI": lambda s: {
        "x_ratelimit_reset_requests": "8h",
        "x_ratelimit_remaining_requests": "12",
        "x_ratelimit_reset_tokens": _units(s),
        "x_ratelimit_remaining_tokens": "0",
    },
    "Cerebras": lambda s: {"x_ratelimit_reset_requests_day": str(s), "x_ratelimit_remaining_requests_day": "0"},
    "OpenRouter": lambda s: {"x_ratelimit_reset": str(round((_now() + s) * 1000)), "x_ratelimit_remaining": "0"},
    "GitHub": lambda s: {"x_ratelimit_reset": str(round(_now() + s))},
    "Anthropic": lambda s: {"anthropic_ratelimit_tokens_reset": _rfc3339(s)},
    "the IETF": lambda s: {"ratelimit_reset": f"{s:.1f}"},
    "the IETF, 2022": lambda s: {"ratelimit": f"limit=10, remaining=0, reset={s:.0f}"},
    "the IETF, 2025": lambda s: {"ratelimit": f'"minute";r=3;t=1, "day";pk=:a=:;t={s:.0f};r=0'},
}
"""Where a status can say how long to wait. From OpenAI's on only a 429 does."""

IN_WORDS: tuple[Callable[[float], str], ...] = (
    lambda s: f"Limit 30000, Used 29500, Requested 1200. Please try again in {_units(s)}. Visit our page.",
    lambda s: f"Your limit will reset after {_units(s)}.",
    lambda s: (
        f"Please retry after {s * 1000:.0f} milliseconds" if s < 1 else f"Please wait {s:g} seconds before retrying."
    ),
    lambda s: f"limit resets at: {_rfc3339(s)}",
)

IN_FIELDS: tuple[Callable[[float], dict[str, Any]], ...] = (
    lambda s: {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{s}s"}]},
    lambda s: {"resets_in_seconds": s},
    lambda s: {"retry_after": s},
    lambda s: {"resets_at": _now() + s},
)

NONSENSE: tuple[dict[str, str], ...] = (
    *({"retry_after": value} for value in ("0", "-3", "nan", "inf", "1e400", "in a while", "99999999999999", "²")),
    {"retry_after": "Wed, 99 Foo 2026 99:99:99 GMT"},
    {"retry_after": formatdate(time.time() - 10**8)},
    {"x_ratelimit_reset": "-1"},
    {"x_ratelimit_reset_tokens": "0s"},
    {"x_ratelimit_reset": "1700000000"},
)


class Refusal(NamedTuple):
    """A refusal as sent, and what it means. wait: seconds; None: it states none. spent: of them before it is read."""

    place: str
    answer: list[Step]
    meaning: str
    wait: float | None
    spent: float = 0.0


def drawn(chance: random.Random) -> Refusal:
    """A refusal of a drawn meaning in a drawn place, word and form."""
    meaning = chance.choice([*WORDS])
    status, words = WORDS[meaning]
    error: dict[str, Any] = {"message": chance.choice(["it failed", "Provider returned error"])}
    if meaning in TEXTS and chance.random() < 0.3:
        error["message"] = chance.choice(TEXTS[meaning])
        error |= chance.choice([{}, {"type": "api_error"}])
    elif meaning != "account" and chance.random() < 0.3:
        error["code"] = chance.choice([status, str(status)])
    else:
        error[chance.choice(["code", "type", "status"][: 2 if meaning == "account" else 3])] = chance.choice(
            words.split()
        )
    places = ["status", "event", "named event", "flat event", "error line", "after text", "body", "list", "choice"]
    place = chance.choice([*places, "batch"])
    AHEAD_S[0] = 0.0 if place == "batch" else chance.choice([0.0, 3600.0, -3600.0, 9e6, -9e6])
    headers: dict[str, str] = {}
    wait = None
    if meaning in ("pace", "away", "unavailable", "chance") and chance.random() < 0.7:
        wait = chance.choice(SECONDS)
        # A moment is over before it is read if it is too near.
        n_forms = None if wait > 3 else -1
        how = chance.choice(["header", "words", "field"])
        if how == "header" and place == "status":
            forms = [*IN_HEADERS.values()] if meaning == "pace" and wait > 3 else [*IN_HEADERS.values()][:2]
            headers = chance.choice(forms)(wait)
        elif how == "field":
            error |= chance.choice(IN_FIELDS[:n_forms])(wait)
        else:
            error["message"] += ". " + chance.choice(IN_WORDS[:n_forms])(wait)
            states_fault = status >= 500 and (place == "status" or error.get("code") in (status, str(status)))
            wait = None if states_fault else wait
    elif place == "status" and chance.random() < 0.3:
        headers = chance.choice(NONSENSE)
    head, *body = written(place, error, status, headers)
    if AHEAD_S[0]:
        assert isinstance(head, bytes)
        head = head.replace(b"\r\n", f"\r\nDate: {formatdate(_now(), usegmt=True)}\r\n".encode(), 1)
    return Refusal(place, [head, *body], meaning, wait)


def written(place: str, error: dict[str, Any], status: int, headers: dict[str, str]) -> Iterable[Step]:
    """The reply that states `error` in this place."""
    if place == "status":
        return [http(status, {"error": error}, **headers)]
    if place in ("body", "list"):
        return [http(200, json.dumps([{"error": error}] if place == "list" else {"error": error}).encode())]
    stated = {"choices": [{"index": 0, "delta": {}, "error": error}]} if place == "choice" else {"error": error}
    stated = {"object": "error", **error} if place == "flat event" else stated
    name = b"event: error\n" if place == "named event" else b""
    line = b"error: " + json.dumps(error).encode() + b"\n\n" if place == "error line" else name + event(stated)
    return event_stream(*([delta("4")] if place == "after text" else []), line, end=())


async def readings(seeds: range) -> list[tuple[Refusal, RequestFailed | None]]:
    """Refusals drawn from these seeds, and what the client reads of each from a real server."""
    sent: list[Refusal] = []
    read: list[tuple[Refusal, RequestFailed | None]] = []
    with FakeServer(lambda _: sent[-1].answer) as server:
        transport, endpoint = Transport(), Endpoint.parse(server.base_url)
        for seed in seeds:
            begun, refusal = time.monotonic(), drawn(random.Random(seed))
            sent.append(refusal)
            failure = in_a_batch(refusal) if refusal.place == "batch" else None
            if failure is None:
                try:
                    await transport.complete(Post(endpoint, CHAT, b"{}", Deadlines(), 1 << 20))
                except RequestFailed as failed:
                    failure = failed
            read.append((refusal._replace(spent=time.monotonic() - begun), failure))
        await transport.close()
    return read


def in_a_batch(refusal: Refusal) -> RequestFailed | None:
    """What is read of a refusal in a batch's line of results."""
    body = b"".join(step for step in refusal.answer if isinstance(step, bytes))
    error = json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])["error"]
    line = json.dumps({"custom_id": "a", "response": None, "error": error}).encode()
    result = read_result(line, CHAT, started=0.0, seconds=1.0, max_body_bytes=1 << 20)
    return result.outcome if result is not None and isinstance(result.outcome, RequestFailed) else None


@pytest.mark.fuzz
@pytest.mark.timeout(14_400)
def test_every_word_place_and_wait_is_read_as_it_was_meant() -> None:
    first = random.randrange(1 << 30)
    seeds = range(first, first + examples(1200))
    for seed, (refusal, failure) in zip(seeds, asyncio.run(readings(seeds)), strict=True):
        case = f"seed {seed}: {refusal} was read as {failure!r}, {vars(failure) if failure else ''}"
        assert failure is not None, case
        assert failure.kind == KINDS.get(refusal.meaning, "server"), case
        last = advice([Cause(failure.kind, 1, "")], [failure])
        assert (words := LAST_WORDS.get(refusal.meaning, "")) in last, case
        assert bool(words) == bool(last), case
        # A date has whole seconds.
        assert failure.retry_after == (refusal.wait and pytest.approx(refusal.wait, abs=2 + refusal.spent)), case


ASKING = (
    "Please try again in {}.", "Rate limit reached for gpt-4o. Please try again in {}. Visit our page.",
    "Please retry after {}", "Too many requests; retry in {}", "Please retry your request after {}.",
    "You can try again in about {}.", "quota exceeded, please retry in {}.", "Please wait {} before retrying.",
    "You must wait at least {} between requests", "slow down (retry after {})", "Try again after {}!",
    "Your limit will reset after {}.", "The limit resets in {}", "Daily quota reset in {}", "Limit reset at {}",
    "The model will be available in {}.", "capacity is full, and you may retry after {}", "Kindly wait for {}.",
    "Over capacity: available again in {}", "requests can be retried after {}",
)  # fmt: skip
TELLING = (
    "Service Unavailable: the upstream did not answer within {}", "connection reset after {}",
    "unavailable for {}", "upstream unavailable after {}", "we waited {} for the upstream", "timed out after {}",
    "the request was retried for {}", "no server was available within {}", "gave up on retry 3 after {}",
    "the connection resets after {} of silence", "queue wait limit of {} exceeded", "Gateway retrying took {}",
    "stream resets after {}", "availability window: {}", "the last retry after {} failed", "waiting for {} so far",
    "not available in the last {}", "requests are limited to 60 in {}", "the reset took {}", "up again for {}",
)  # fmt: skip
"""Frames of sentences with a duration: those that ask to wait for it, and those that report something else."""

SPANS = {"2 hours": 7200, "3601 s": 3601, "6m0s": 360, "120 ms": 0.12, "1 hour, 30 minutes": 5400}


def test_a_duration_is_a_wait_only_where_the_sentence_asks_for_one() -> None:
    for frames, asks in ((ASKING, True), (TELLING, False)):
        for frame, (text, seconds) in product(frames, SPANS.items()):
            for status in (429, 502, 503):
                body = {"error": {"message": frame.format(text)}}
                read = failure_of_status(status, json.dumps(body).encode()).retry_after
                assert read == (seconds if asks and status == 429 else None), (status, body)
    # A fault's header is believed, and so is a named field.
    words = b'{"error": {"message": "Bad gateway after 2 hours"}}'
    assert failure_of_status(502, words, {"retry-after": "20"}).retry_after == 20


# -- event-loop lag ----------------------------------------------------------------------------------------------------


def metered(*late: float) -> float:
    meter = LagMeter()
    for seconds in late:
        meter.add(seconds)
    return meter.lag()


def test_a_quantile_is_never_below_the_true_one() -> None:
    for late in (0.00013, 0.004, 0.7):
        lag = metered(*[late] * 5)
        assert late <= lag * (1 + 1e-9)
        assert lag <= late * 1.2


@pytest.mark.parametrize("loop_factory", [new_event_loop, asyncio.new_event_loop])
def test_a_loop_that_was_held_up_tells_it(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def held_up() -> float | None:
        with measure_lag():
            await asyncio.sleep(0)
            time.sleep(BEAT_S + 0.1)
            await asyncio.sleep(0.01)
            return await asyncio.create_task(told())

    async def told() -> float | None:
        return current_lag()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        lag = runner.run(held_up())
    assert lag is not None
    assert lag >= 0.09
    assert current_lag() is None
