"""Servers that fail: what is asked again, what is given up, when the run ends, and that every key is accounted for.

For: harness.generation.dispatch.
"""

from __future__ import annotations

import gzip
import heapq
import importlib
import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec
import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.apis.api import Call
from harness.client.protocol.failures import FailureKind, RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.request_fields import Spelling
from harness.core.errors import ServerError, StoppedByRule, StoreError
from harness.core.literals import ApiName
from harness.core.records import Timing, Usage
from harness.core.sanitize import quoted
from harness.generation.dispatch import too_many_requests
from harness.generation.dispatch.canary import FIRST_SAMPLES, Canary
from harness.generation.dispatch.lanes import SET_ASIDE_AFTER, Lanes
from harness.generation.dispatch.retry import Cause, Causes, Sign, sign_of
from harness.generation.dispatch.state import Arrivals, Flight, Lane, Work
from harness.generation.dispatch.too_many_requests import Pace
from harness.generation.network import admission as admission_module
from harness.generation.network.admission import Admission
from harness.generation.settings import BenchmarkSettings, Patience
from harness.presets.sampling import Sampling
from harness.runs.missing import Task
from harness.testing import (
    CLOSE,
    RESET,
    FakeServer,
    Pause,
    Request,
    Step,
    completion,
    delta,
    event,
    event_stream,
    http,
    scripted,
)
from tests.budget import examples, thinned
from tests.generation.small_runs import QUICK, expected_keys, keys_of, question_set, run, run_settings, samples_of, well
from tests.patience import PATIENCE_SECONDS, until


def question_of(request: Request) -> str:
    """`q3` for the question "What is 3 + 1?"."""
    return "q" + request.json["messages"][-1]["content"].split()[2]


@pytest.mark.parametrize("wait", ["header", "words", "event"])
def test_a_wait_of_hours_ends_the_run_and_the_same_command_resumes(tmp_path: Path, wait: str) -> None:
    numbers = itertools.count()
    words = {"error": {"message": "free-models-per-day. Your quota will reset after 5h0m0s", "code": 429}}
    refusal: dict[str, list[Step]] = {
        "header": [http(429, {"error": "free-models-per-day"}, retry_after="18000")],
        "words": [http(429, words)],
        "event": [*event_stream(event(words))],
    }

    def answer(request: Request) -> Iterable[Step]:
        return well(request) if next(numbers) < 5 else refusal[wait]

    with FakeServer(answer) as server:
        settings = run_settings(tmp_path / "run", server.base_url, concurrency=2)
        now = time.time()
        with pytest.raises(
            ServerError, match=r"free-models-per-day.*5 of 20 samples .* Run the same command to resume"
        ) as ended:
            run(settings, question_set(tmp_path, 10))
        assert len(server.requests) <= 7
        ends = [datetime.fromtimestamp(now + 18_000 + 60 * minute).astimezone() for minute in range(3)]
        assert any(f"(retry after {end:%Y-%m-%d %H:%M %Z})" in str(ended.value) for end in ends)
        server.answer = well
        assert run(settings, question_set(tmp_path, 10)).complete


def test_a_server_that_is_not_there_is_one_sentence_with_its_address(tmp_path: Path) -> None:
    with FakeServer(well) as server:
        pass
    settings = run_settings(tmp_path / "run", server.base_url, patience=replace(QUICK, start_up=0.2))
    with pytest.raises(ServerError, match=f"127.0.0.1:{server.port}"):
        run(settings, question_set(tmp_path, 5))


@pytest.mark.parametrize("sound", ["first", "later", "never"])
def test_a_refusing_endpoint_stops_the_run_only_if_no_other_answers(tmp_path: Path, sound: str) -> None:
    came = {"refusal": threading.Event(), "reply": threading.Event()}
    refusal = [http(401, {"error": {"message": "wrong key"}})]

    def refused(_: Request) -> Iterable[Step]:
        if sound == "first":
            came["reply"].wait(PATIENCE_SECONDS)
        came["refusal"].set()
        return refusal

    def other(request: Request) -> Iterable[Step]:
        if sound == "later":
            came["refusal"].wait(PATIENCE_SECONDS)
            time.sleep(0.2)
        yield from refusal if sound == "never" else well(request)
        came["reply"].set()

    with FakeServer(refused) as one, FakeServer(other) as two:
        settings = run_settings(tmp_path / "run", one.base_url, two.base_url, key_variable="MY_KEY")
        if sound == "never":
            with pytest.raises(ServerError, match=r"refuses: HTTP 401: wrong key; .* into MY_KEY\Z"):
                run(settings, question_set(tmp_path, 5))
        else:
            assert run(settings, question_set(tmp_path, 5)).complete


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("end", [CLOSE, RESET])
def test_a_question_that_fails_alone_is_given_up_if_its_model_is_listed(tmp_path: Path, end: Step, lists: bool) -> None:
    others = threading.Semaphore(0)

    def answer(request: Request) -> Iterable[Step]:
        if question_of(request) == "q0":
            if first.acquire(blocking=False):  # nothing else is left to be asked then
                [others.acquire(timeout=PATIENCE_SECONDS) for _ in range(5)]
            yield end
        else:
            yield from well(request)
            others.release()

    first = threading.Semaphore(1)
    with FakeServer(answer) as server:
        patience = replace(QUICK, outage=4.0)
        settings = run_settings(tmp_path / "run", server.base_url, samples=1, patience=patience)
        outcome = run(
            settings,
            question_set(tmp_path, 6),
            interval=0.01,
            listing=lambda failures: [url for url, why in failures.items() if why and lists],
        )
    (cause,) = outcome.causes
    assert (outcome.n_done, cause.kind, cause.attempts[0] >= settings.patience.attempts) == (5, "connect", lists)
    assert ("no request has been answered" in outcome.stopped) != lists


WHOLE = {"object": "chat.completion", "model": "test-model", "choices": "42"}
PATHS = {"chat": "chat/completions", "responses": "responses", "messages": "messages"}
APIS_REPLIES = [f"{path} {how}" for path in PATHS.values() for how in ("streamed", "whole")]


def framed(head: str, *chunks: bytes) -> list[Step]:
    """A reply of status 200 with this header, whose body comes in these pieces; then the connection is closed."""
    return [f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode(), *chunks, CLOSE]


def streamed(*events: bytes) -> list[Step]:
    return [*event_stream(*events)]


PACKED = gzip.compress(b"data: 4")
UNREADABLE: dict[str, list[Step]] = {
    **{f"compressed by {name}": framed(f"Content-Encoding: {name}", PACKED) for name in ("gzip", "br", "zstd")},
    "packed bytes": [http(200, PACKED)],
    "packed bytes in a stream": framed("Content-Type: text/event-stream", PACKED),
    "random bytes": [http(200, bytes(range(200, 256)) + bytes(range(30)))],
    "UTF-16": [http(200, json.dumps(WHOLE).encode("utf-16"))],
    "no HTTP": [b"\x15\x03\x03\x00\x02\x02\x46", CLOSE],
    "a header without a colon": framed("Content-Length 4", b"text"),
    "no number as length": framed("Content-Length: four", b"text"),
    "two lengths": framed("Content-Length: 4, 5", b"text"),
    "too long a length": framed("Content-Length: 9999", b'{"choices": ['),
    "no number as size of a chunk": framed("Transfer-Encoding: chunked", b"zz\r\ndata: 4\r\n"),
    "too small a size of a chunk": framed("Transfer-Encoding: chunked", b"3\r\ndata: 4\r\n"),
    "too large a size of a chunk": framed("Transfer-Encoding: chunked", b"fff\r\n" + event({"choices": []})),
    "half of a JSON value": [http(200, b'{"choices": [{"message": {"content": "')],
    "Python in place of JSON": [http(200, str({"choices": [{"message": {"content": "4"}}]}).encode())],
    "an event that is half of one": streamed(event(b'{"choices": [{"delta": {"content": "4')),
    "an event that is a list": streamed(event([{"content": 4}])),
    "a line of no field": streamed(delta("4"), b"choices\n\n"),
    "choices that are a string": [http(200, WHOLE)],
    "choices that are a string, in a stream": streamed(event(WHOLE)),
    "a choice that is a number": streamed(event({"choices": [4]})),
    "two choices of one index": streamed(event({"choices": [{"index": 0, "delta": {"content": "4"}}] * 2})),
    "no end": streamed(delta("4")),
    "no text and no end": [*event_stream(delta(role="assistant"))],
    "an empty body": [http(200)],
    "only comments": streamed(b": alive\n\n"),
    **{f"the finish reason {word}": streamed(delta("4"), delta(finish=word)) for word in ("abort", "error")},
    "another API's body": [http(200, {"candidates": [{"content": {"parts": [{"text": "4"}]}}]})],
}
"""Name → a reply that no client can read."""


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        *thinned(("chat", kind) for kind in UNREADABLE),
        *thinned(product(PATHS, APIS_REPLIES)),
    ],
)
def test_a_run_ends_after_one_round_if_no_reply_can_be_read(tmp_path: Path, api: ApiName, kind: str) -> None:
    path, _, how = kind.partition(" ")
    scripts, n_good = scripted("42"), 0

    def oddly(request: Request) -> Iterable[Step]:
        if request.number <= n_good:
            return scripts(request)
        body = json.dumps(request.json | {"stream": how == "streamed"}).encode()
        return UNREADABLE.get(kind) or scripts(replace(request, path=f"/v1/{path}", body=body))

    with FakeServer(oddly) as server:
        spelling = Spelling(api_name=api)
        settings = run_settings(tmp_path / "run", server.base_url, spelling=spelling, samples=2, canary=False)
        if path.partition("/")[0] == api:
            assert run(settings, question_set(tmp_path, 12)).complete
            return
        with pytest.raises(ServerError, match="fails every request alike: ") as ended:
            run(settings, question_set(tmp_path, 12))
        # What is in flight, and one at a time until as many questions have failed as may be bad ones.
        assert len(server.requests) <= settings.concurrency + 3
        assert "same command" not in str(ended.value)
        assert [f"set `api={path.partition('/')[0]}`" in str(ended.value), "drop=stream" in str(ended.value)] == [
            kind in APIS_REPLIES, kind in UNREADABLE
        ]  # fmt: skip
        n_good = len(server.requests) + 4
        outcome = run(replace(settings, patience=replace(QUICK, outage=0.3)), question_set(tmp_path, 12))
        assert outcome.n_done == 4
        assert "the same command again" in outcome.advice


# -- messages in place of replies --------------------------------------------------------------------------------------


FIELDS = ("message", "msg", "error_msg", "detail", "reason", "info", "error", "status", "title", "error_description")
PLEAS = [
    "Open api qps request limit reached", "Your rate of requests has reached the rate limit", "Too many requests",
    "The throttling threshold has been reached: policy user over ratelimit", "ThrottlingException", "server busy",
    "Capacity temporarily exceeded, please try again.", "Selected model is at capacity.", "warming_up", "RPM_LIMIT",
    "Loading model", "model is still loading", "engine_starting", "cold start", "initializing", "ServiceUnavailable",
    "queue is full", "Quota exceeded for requests", "You are being rate-limited", "too many concurrent requests",
    "The model is overloaded", "not ready", "provisioning", "您的请求过于频繁，请稍后再试", "并发数过高", "模型加载中",
]  # fmt: skip
"""Words that ask to wait."""
FAULTS = ["internal error", "worker 3 died", "E1017", "upstream reset", "CUDA out of memory", "hatching", "连接失败"]
"""Words of any other failure."""


class Message(NamedTuple):
    """A message in place of a reply. steps: as sent. words: what the user must read of it."""

    steps: list[Step]
    words: str
    waits: bool

    @classmethod
    def drawn(cls, chance: random.Random) -> Message:
        waits = chance.random() < 0.7
        words = chance.choice(PLEAS if waits else FAULTS)
        name, code = chance.choice(FIELDS), chance.choice([18, 1302, "E18", None, -1])
        value: Any = {name: words, chance.choice(["code", "error_code", "request_id"]): code}
        value = chance.choice([
            value, [value], {"error": value}, {"success": False, "errors": [value], "result": None}, {name: words},
            [words, words], {"data": {"of": [value]}}, {"object": "status", **value}, words,
            {"choices": [], "usage": None, **value}, {"choices": None, "base_resp": value},
        ])  # fmt: skip
        body = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode()
        sent = words.encode()
        status = chance.choice([200, 200, 200, 500, 503, 529, *([400, 403, 404, 409, 429] if waits else [])])
        places: list[list[Step]] = [
            [http(status, body)],
            [http(status, chance.choice([sent, b"<html><body><p>" + sent + b"</p></body></html>"]))],
            streamed(event(body)),
            streamed(b"event: error\ndata: " + body + b"\n\n"),
            streamed(delta(role="assistant"), event(body)),
            streamed(delta("4"), delta("2"), event(body)),
        ]
        if waits:  # of another event, only such words tell it from a part of a reply
            places.append(streamed(event(sent)))
        return cls(chance.choice(places), words, waits)


Where = Literal["first", "middle", "around", "cold", "always"]
"""When the message comes: eight times at the start, or after some replies; whenever two requests are being served;
thirty times at the start; always."""


def with_messages(message: Message, where: Where, done: list[int]) -> Callable[[Request], Iterator[Step]]:
    """A server that sends the message, and else good replies. done: takes the number of each request that it served."""
    serving, n_said, lock = set[int](), itertools.count(), threading.Lock()

    def answer(request: Request) -> Iterator[Step]:
        with lock:
            refuses = {
                "first": request.number <= 8,
                "middle": len(done) >= 4 and next(n_said) < 8,
                "around": len(serving) >= 2,
                "cold": request.number <= 30,
                "always": True,
            }[where]
            serving.update(() if refuses else (request.number,))
        for step in message.steps if refuses else well(request):
            yield step
            if where == "around":
                yield Pause(0.003)
        with lock:
            done.extend(serving & {request.number})
            serving.discard(request.number)

    return answer


@pytest.mark.fuzz
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("where", get_args(Where))
def test_no_message_in_place_of_a_reply_costs_a_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Where
) -> None:
    monkeypatch.setattr(too_many_requests, "FIRST_REST_S", 0.002)
    monkeypatch.setattr(too_many_requests, "CREDIT_S", 0.02)
    patience = replace(QUICK, start_up=0.3, outage=0.3) if where == "always" else replace(QUICK, start_up=5.0)
    first, sets = random.randrange(1 << 30), question_set(tmp_path, 6)
    for seed in range(first, first + examples(40)):
        message, done = Message.drawn(random.Random(seed)), list[int]()
        with FakeServer(with_messages(message, where, done)) as server:
            out = tmp_path / f"{where}{seed}"
            settings = run_settings(out, server.base_url, samples=4, patience=patience, concurrency=24)
            outcome = run(settings, sets)
        case = f"seed {seed}: {message} {where}: {outcome.stopped} {outcome.causes} {outcome.advice}"
        assert outcome.n_done >= len(done), case
        if where == "always":
            assert quoted(message.words) in f"{outcome.stopped} {outcome.causes}", case
            assert "run the same command again" in outcome.advice, case
        elif message.waits or where != "around":
            assert outcome.complete, case


def test_a_prompt_over_the_context_costs_its_question_one_request(tmp_path: Path) -> None:
    words = "This model's maximum context length is 10 tokens, your prompt contains 11"

    def answer(request: Request) -> Iterable[Step]:
        if question_of(request) == "q1":
            return [http(400, {"error": {"message": words}})]
        return well(request)

    with FakeServer(answer) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=6, concurrency=1)
        outcome = run(settings, question_set(tmp_path, 4))
        assert not outcome.complete
        assert [(c.kind, c.count) for c in outcome.causes] == [("too_long", 6)]
        assert words in outcome.causes[0].example
        assert sum(question_of(r) == "q1" for r in server.requests) == 1
        accepted = run(replace(settings, accept_missing=True), question_set(tmp_path, 4))
        assert (accepted.complete, accepted.n_missing, accepted.n_missing, accepted.tally.finished) == (True, 6, 6, 0)
        server.answer = well
        again = run(settings, question_set(tmp_path, 4))
    assert (again.complete, again.n_missing) == (True, 0), "it is asked again without `accept_missing`"
    no_field = pytest.raises(ServerError, match=rf"rejects every request: .*{words}\Z")
    with FakeServer(lambda _: [http(400, {"error": {"message": words}})]) as short, no_field:
        run(run_settings(tmp_path / "all", short.base_url), question_set(tmp_path, 4))


@pytest.mark.parametrize("n_questions", [1, 4])
@pytest.mark.parametrize(
    ("refusal", "left_out"),
    [
        (http(422, {"detail": [{"loc": ["body", "top_k"], "msg": "Extra inputs are not permitted"}]}), "`drop=top_k`"),
        (http(400, {"error": {"message": "Unrecognized request argument supplied: top_k"}}), "`drop=top_k`"),
        (http(400, {"error": {"message": 'Invalid JSON. Unknown name "seed": Cannot find field.'}}), "`seed=None`"),
        (http(400, {"error": {"message": "Unsupported value", "param": "temperature"}}), "`drop=temperature`"),
        (http(422, {"detail": "body -> top_k\n Extra inputs\nbody -> stream\n Extra"}), "`drop=stream,top_k`"),
        (http(400, {"message": "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k')}]"}), "`drop=top_k`"),
        (http(400, {"error": {"message": "Unsupported parameter: 'stream_options'"}}), "`drop=stream_options`"),
        (http(400, {"error": {"message": "seed: Extra inputs are not permitted"}}), "`seed=None`"),
        (http(400, {"error": {"message": "minnow: no such bait"}}), "no minnow in `extra_body`"),
        (http(400, {"error": {"message": "messages: the stream of your thoughts is a seed; stop"}}), None),
        (http(400, {"detail": "This model does not support streaming; set stream to false"}), "`drop=stream`"),
        (http(400, {"error": {"message": "Streaming is not supported for this model"}}), "`drop=stream`"),
        (http(400, {"error": {"message": "stream=true is not allowed"}}), "`drop=stream`"),
        (http(400, {"error": {"message": "min_p is not supported by this model"}}), None),  # it was not sent
    ],
)
def test_a_refused_field_has_a_way_out(tmp_path: Path, refusal: bytes, left_out: str | None, n_questions: int) -> None:
    with FakeServer(lambda _: [refusal]) as server:
        settings = run_settings(
            tmp_path / "run",
            server.base_url,
            samples=1,
            spelling=Spelling(extra_body={"minnow": 1}),
            seed=0,
            benchmarks={"sums": BenchmarkSettings(samples=1, sampling=Sampling(temperature=0.6, top_k=20))},
        )
        try:
            said = str(run(settings, question_set(tmp_path, n_questions)).causes[0])
        except ServerError as error:
            said = str(error)
    assert (f"(omit with {left_out or ''}" in said) == (left_out is not None), said


def test_another_model_at_the_same_url_stops_the_run_without_its_reply(tmp_path: Path) -> None:
    def renamed(request: Request) -> Iterable[Step]:
        steps = list(well(request))
        return [s.replace(b"test-model", b"evil-model") for s in steps] if request.number > 8 else steps

    with FakeServer(renamed) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=5, concurrency=2)
        with pytest.raises(StoppedByRule, match="evil-model"):
            run(settings, question_set(tmp_path, 5))
        with pytest.raises(StoppedByRule, match="evil-model"):
            run(settings, question_set(tmp_path, 5))  # the name is kept with the run
    assert {s.server_model for s in samples_of(settings)} == {"test-model"}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (event_stream(delta("so"), delta(finish="length")), "truncated"),
        (event_stream(delta(""), delta(finish="stop")), "empty"),
        (completion("The answer is 4."), "all the same"),
        (event_stream(delta(reasoning="so 4"), delta(finish="stop")), "harness score RUN --answer-from-reasoning"),
    ],
    ids=["truncated", "empty", "identical", "all reasoning"],
)
def test_a_broken_set_up_is_stopped_by_its_first_samples(tmp_path: Path, reply: Iterable[bytes], reason: str) -> None:
    steps = list(reply)
    with FakeServer(lambda _: steps) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=20)
        with pytest.raises(StoppedByRule, match=reason):
            run(settings, question_set(tmp_path, 10))
        assert FIRST_SAMPLES <= len(samples_of(settings)) <= FIRST_SAMPLES + settings.concurrency
        assert run(replace(settings, canary=False), question_set(tmp_path, 10)).complete
    assert keys_of(settings) == expected_keys(10, 20)


def test_equal_texts_after_unequal_hidden_reasoning_stop_no_run(tmp_path: Path) -> None:
    with FakeServer(lambda request: completion("The answer is 4.", tokens=request.number)) as server:
        assert run(run_settings(tmp_path / "run", server.base_url, samples=4), question_set(tmp_path, 10)).complete


STAGES = {
    "the request's body": "harness.client.request_fields.RequestTemplate.body",
    "the scheduler, at a sample's end": "harness.generation.dispatch.schedule.Scheduler.finish",
    "the scheduler, at a sample's start": "harness.generation.dispatch.schedule.Scheduler.next",
    "the endpoints": "harness.generation.dispatch.lanes.Lanes.answered_by",
    "the journal's door": "harness.runs.journal.Journal.append",
    "the journal's writer": "harness.runs.record.encode",
    "the canary": "harness.generation.dispatch.canary.Canary.observe",
}


@pytest.mark.parametrize("stage", list(STAGES.values()), ids=list(STAGES))
def test_a_bug_in_any_stage_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    owner, _, name = stage.rpartition(".")
    module, _, cls = owner.rpartition(".")
    place = importlib.import_module(owner) if cls.islower() else getattr(importlib.import_module(module), cls)
    real, calls = getattr(place, name), itertools.count(1)

    def sometimes(*args: Any, **more: Any) -> Any:
        if next(calls) == 7:
            raise ZeroDivisionError("a bug")
        return real(*args, **more)

    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=3)
        with monkeypatch.context() as patch:
            patch.setattr(place, name, sometimes)
            try:
                outcome = run(settings, question_set(tmp_path, 5))
            except (ZeroDivisionError, StoreError) as error:
                assert "a bug" in str(error)  # noqa: PT017 - either end is right
            else:
                assert outcome.n_missing == 1
                assert [(c.kind, c.count) for c in outcome.causes] == [("internal", 1)]
        assert run(settings, question_set(tmp_path, 5)).complete
    assert keys_of(settings) == expected_keys(5, 3)


# -- endpoints that slow down, fail, come back: who may be sent what, on a clock of the test's own ---------------------


PATIENCE = Patience(start_up=30.0, outage=600.0, first_wait=1.0, longest_wait=60.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def two(concurrency: int = 16, n: int = 2) -> tuple[Lanes, Clock]:
    clock = Clock()
    endpoints = [Endpoint.parse(f"http://server{i}:80") for i in range(n)]
    return Lanes(endpoints, concurrency, PATIENCE, clock, jitter=lambda low, high: high), clock


def at(lanes: Lanes, place: int) -> Lane:
    return list(lanes)[place]


def room(lanes: Lanes) -> list[int]:
    """The places of the lanes that may be sent a request now, the least loaded first."""
    return [list(lanes).index(lane) for lane in lanes.available()]


def sent(lanes: Lanes, place: int) -> Flight:
    return lanes.record_sent(at(lanes, place), Work(Task("b", "q", 0)))


def fail(lanes: Lanes, clock: Clock, place: int, kind: FailureKind, times: int = 1, after: float | None = None) -> None:
    for _ in range(times):
        lanes.failed(sent(lanes, place), RequestFailed(kind, f"{kind}!", retry_after=after))


def answer(lanes: Lanes, place: int, times: int = 1) -> None:
    for _ in range(times):
        lanes.answered_by(sent(lanes, place))


def fill(lanes: Lanes) -> list[int]:
    """Send as much as there is room for; requests in flight by endpoint."""
    while free := room(lanes):
        sent(lanes, free[0])
    return [lane.in_flight for lane in lanes]


def test_one_restart_that_cuts_every_request_counts_as_one_outage() -> None:
    lanes, clock = two(1024)
    tickets = [sent(lanes, 0) for _ in range(512)]
    clock.now += 10
    for ticket in tickets:
        lanes.failed(ticket, RequestFailed("cut", "reset"))
    assert at(lanes, 0).pause(clock.now) <= PATIENCE.first_wait
    at(lanes, 1).opens_at = clock.now + 50
    assert (lanes.next_change() or 50) <= PATIENCE.first_wait, "the first of them"


def test_a_server_that_asks_for_a_long_pause_gets_it() -> None:
    lanes, clock = two(1, n=1)
    for _ in range(SET_ASIDE_AFTER + 1):
        fail(lanes, clock, 0, "rate_limited", after=3600.0)
    assert (lanes.patience_left or 0.0) >= 3600.0, "longer than the patience"
    clock.now += 3599
    assert lanes.failure_to_end() is None
    change = lanes.next_change()
    assert change is not None
    assert change > 0.5, "who waits for it must not spin"
    assert room(lanes) == []
    clock.now += 10
    fail(lanes, clock, 0, "connect")
    assert lanes.failure_to_end() is not None, "it was tried after its pause"


def test_the_share_of_a_dead_endpoint_goes_to_the_others_and_back() -> None:
    lanes, clock = two(24, 3)
    dead = [sent(lanes, 2) for _ in range(8)]
    assert (room(lanes), sent(lanes, 0) and room(lanes)) == ([0, 1], [1, 0]), "the least loaded first"
    assert fill(lanes) == [8, 8, 8]
    for ticket in dead:
        lanes.failed(ticket, RequestFailed("connect", "refused"))
    lanes.advance()
    at(lanes, 2).opens_at = clock.now + 1000
    assert fill(lanes) == [12, 12, 0]
    at(lanes, 2).opens_at = clock.now
    answer(lanes, 2)
    assert [at(lanes, i).limit for i in range(3)] == [8, 8, 8]


def test_an_endpoint_that_leaves_is_not_checked_again() -> None:
    endpoint, late, before = Endpoint.parse("http://late:80"), threading.Event(), {*threading.enumerate()}
    begun: list[int] = []

    def check(_: Endpoint) -> str | None:
        begun.append(1)
        late.wait(PATIENCE_SECONDS)
        return None

    admission = Admission(check, [endpoint], [], lambda *_, **__: None)
    assert admission.members([endpoint]) == []
    (first,) = {*threading.enumerate()} - before
    assert admission.members([]) == []
    admission.stop()  # The next listing begins no check that asks anything.
    assert admission.members([endpoint]) == []
    late.set()
    first.join(PATIENCE_SECONDS)
    assert admission.members([endpoint]) == [], "the verdict was of the listing before"
    assert len(begun) == 1


def test_a_down_endpoint_uses_one_thread_however_often_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: Endpoint) -> str | None:
        raise ServerError("down")

    monkeypatch.setattr(admission_module, "RETRY_S", 0.01)
    endpoint, before = Endpoint.parse("http://down:80"), {*threading.enumerate()}
    admission = Admission(check, [endpoint], [], lambda *_, **__: None)
    for _ in range(6):
        admission.members([endpoint])
        admission.members([])
    admission.members([endpoint])
    until(lambda: len({*threading.enumerate()} - before) == 1, "the end of six threads")
    admission.stop()


@pytest.mark.parametrize(
    ("kind", "status", "words", "sign"),
    [
        ("connect", None, "", "away"), ("server", 502, "", "away"), ("rate_limited", 503, "", "busy"),
        ("server", 504, "", "away"), ("server", 501, "", "faulty"), ("server", 505, "", "faulty"),
        ("timeout", None, "", "broken"), ("server", 500, "", "faulty"), ("server", None, "", "unreadable"),
        ("cut", None, "", "unreadable"), ("malformed", None, "", "unreadable"), ("rate_limited", 429, "", "busy"),
        ("too_long", 400, "", "too long"), ("rejected", 400, "", "rejected"), ("runaway", None, "", "runaway"),
        ("refused", 401, "", "no account"), ("refused", 402, "", "no account"), ("refused", 429, "", "no account"),
        ("refused", 404, "no such key", "refused"), ("refused", 302, "", "refused"), ("refused", 400, "", "refused"),
        ("refused", 403, "Forbidden", "refused"), ("refused", 403, "Request blocked", "refused"),
        ("refused", 403, "Country, region, or territory not supported", "no account"),
        ("refused", 403, "your API key may not use it", "no account"),
        ("refused", 403, "unauthorized", "no account"), ("refused", 403, "the monkey is blocked", "refused"),
    ],
)  # fmt: skip
def test_each_failure_has_one_sign(kind: FailureKind, status: int | None, words: str, sign: Sign) -> None:
    assert sign_of(RequestFailed(kind, words, status=status)) == sign
    assert sign_of(RequestFailed(kind, words, status=status), probing=True) == ("away" if kind == "timeout" else sign)
    busy = "still busy" if sign == "busy" else sign
    assert sign_of(RequestFailed(kind, words, status=status), has_waited=True) == busy
    unsent = "unsent" if kind == "connect" else sign
    assert sign_of(RequestFailed(kind, words, status=status, sent=False)) == unsent
    for n_events, resumable in ((0, True), (9, False), (9, True)):
        lost = RequestFailed(kind, words, status=status, n_events=n_events, resumable=resumable)
        is_lost = n_events and (sign == "faulty" or (sign == "unreadable" and resumable))
        assert sign_of(lost) == ("broken" if is_lost else sign)


@pytest.mark.parametrize(
    ("kinds", "answered", "unreachable"),
    [
        (("connect", "connect"), False, True),
        (("connect", "connect"), True, False),
        (("connect", "server"), False, False),
        (("connect",), False, False),
    ],
)
def test_only_endpoints_that_were_never_reached_are_unreachable(
    kinds: tuple[FailureKind, ...], answered: bool, unreachable: bool
) -> None:
    lanes, clock = two()
    answer(lanes, 0, times=answered)
    for place, kind in enumerate(kinds):
        fail(lanes, clock, place, kind)
    assert lanes.unreachable is unreachable


@pytest.mark.parametrize(("asked_s", "pause_s"), [(None, 0.1), (0.5, 0.55), (5.0, 5.5), (100.0, 101.0)])
def test_a_pause_is_a_tenth_longer_than_it_was_asked_for_or_a_second(asked_s: float | None, pause_s: float) -> None:
    lanes, clock = two(1, n=1)
    fail(lanes, clock, 0, "rate_limited", after=asked_s)
    (shown,) = lanes.progress()
    assert (shown.state, shown.failed, shown.wait_s) == ("paused", 1, pytest.approx(pause_s))


# -- arrivals ------------------------------------------------------------------------------------------------------


def test_a_reply_in_one_piece_says_nothing_of_the_tokens_of_an_event() -> None:
    for events, each in ((0, 1.0), (1, 1.0), (2, 20.0), (40, 1.0)):
        clock = Clock()
        lanes = Lanes([Endpoint.parse("http://a")], 2, Patience(), clock)
        first, second = (lanes.record_sent(next(iter(lanes)), Work(Task("b", "q", n))) for n in range(2))
        second.arriving.count = lambda: 3
        arrivals = Arrivals(clock, {second.task: second})
        clock.now += 1
        arrivals.finished(first, 40, events)
        arrivals.count_arrived()
        assert arrivals.tokens == 40 + 3 * each


# -- causes ---------------------------------------------------------------------------------------------


def test_causes_are_grouped_counted_and_forgotten() -> None:
    causes = Causes()
    tasks = [Task("b", f"q{n}", 0) for n in range(5)] + [Task("c", "q0", 0)]
    for task in tasks[:2]:
        causes.record_retry(task, RequestFailed("timeout", "slow", status=None))
    causes.record_loss(tasks[2], "too_long", "more than 4096", 400, 1)
    causes.record_loss(tasks[5], "too_long", "more than 8192", 400, 3)
    causes.record_loss(tasks[3], "server", "broken", 500, 5)
    assert causes.too_long() == {"b": {"q2": "more than 4096"}, "c": {"q0": "more than 8192"}}
    assert causes.lost_tasks() == {tasks[2]: "too_long", tasks[5]: "too_long", tasks[3]: "server"}
    listed = causes.listed(9, "the budget")
    assert listed[:1] == [Cause("not asked", 4, "the budget")]
    assert sorted(map(str, listed[1:])) == [
        "1 × server: broken (given up after 5 attempts)",
        "2 × timeout: slow",
        "2 × too_long: more than 4096 (given up after 1 to 3 attempts)",
    ]
    assert [cause.count for cause in listed] == sorted((cause.count for cause in listed), reverse=True)
    causes.arrived(tasks[0])
    causes.arrived(tasks[4])
    assert [cause for cause in causes.listed(4, "") if cause.kind == "timeout"] == [Cause("timeout", 1, "slow")]
    assert "not asked" not in {cause.kind for cause in causes.listed(4, "")}


def said(text: str | None, finish: str = "stop", usage: Usage | None = None) -> Reply:
    timing = Timing(started=0, total=1, events=40)
    return Reply(text=text, reasoning=None, finish_reason=finish, usage=usage or Usage(), timing=timing)


def test_replies_cut_by_a_server_limit_do_not_suggest_raising_max_tokens() -> None:
    """Events alone are no length in tokens, so that a server without usage shows no limit."""
    for word, tokens, says in (
        ("length", 40, "were truncated by the server at 40 tokens although `max_tokens` was 64"),
        ("length", None, "Raise"),
        ("max_steps", 40, "Allow more tool steps"),
        ("model_context_window_exceeded", 40, "longer context"),
    ):
        canary = Canary()
        replies = [said(text, word, Usage(completion_tokens=tokens)) for text in "abcdefghijklmnop"]
        *_, verdict = [canary.observe(Task("b", reply.text or "", 0), reply, 64) for reply in replies]
        assert says in str(verdict)
        assert ("Raise" in str(verdict)) == (tokens is None)


@pytest.mark.parametrize(("n_questions", "stops"), [(2, False), (3, True)])
def test_replies_that_are_all_the_same_are_a_sign_from_three_questions_on(n_questions: int, stops: bool) -> None:
    canary = Canary()
    *_, verdict = [canary.observe(Task("b", f"q{n % n_questions}", n), said("4"), None) for n in range(16)]
    assert (verdict is not None) is stops


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ((), "are all empty"),
        ((Call("c", "save", ""),), "are all the same: 'save'"),
        ((Call("c", "save", '{"n": 1}'),), """are all the same: 'save {"n": 1}'"""),
    ],
)
def test_replies_with_calls_alone_are_not_empty_and_are_quoted(calls: tuple[Call, ...], says: str) -> None:
    canary, reply = Canary(), msgspec.structs.replace(said(""), calls=calls)
    *_, verdict = [canary.observe(Task("b", f"q{n}", 0), reply, None) for n in range(16)]
    assert says in str(verdict)


ROUND_TRIP_S = 0.005

Accepts = Callable[[float, int, random.Random], bool]
"""(second, requests that the server works on, chance) → whether it takes one more."""


class Result(NamedTuple):
    """seconds: of the whole run; refused: 429s for each sample."""

    seconds: float
    refused: float


def slots(n: int) -> Accepts:
    return lambda now, working, chance: working < n


def a_second(rate: float) -> Accepts:
    """A bucket of one second's worth."""
    state = {"at": 0.0, "left": rate}

    def accepts(now: float, working: int, chance: random.Random) -> bool:
        state["left"] = min(rate, state["left"] + (now - state["at"]) * rate)
        state["at"] = now
        taken = state["left"] >= 1
        state["left"] -= taken
        return taken

    return accepts


def at_random(share: float) -> Accepts:
    return lambda now, working, chance: chance.random() >= share


def simulate(
    accepts: Accepts,
    *,
    samples: int,
    mean_s: float,
    concurrency: int,
    seed: int = 1,
    refusal_s: float = ROUND_TRIP_S / 2,
) -> Result:
    """Ask for all samples (lengths of exponential distribution), as the network thread does."""
    chance, now, counter = random.Random(seed), 0.0, itertools.count()
    lanes = Lanes([Endpoint.parse("http://server:80")], concurrency, Patience(), lambda: now, chance.uniform)
    due: list[tuple[float, int, str, Flight | None]] = []
    waiting, done, working, n_refused = samples, 0, 0, 0

    def later(seconds: float, what: str, flight: Flight | None = None) -> None:
        heapq.heappush(due, (now + seconds, next(counter), what, flight))

    later(0.0, "look")
    wakes_at = -1.0
    while done < samples:
        now, _, what, flight = heapq.heappop(due)
        if what == "look":
            later(0.5, "look")
        elif flight is None:
            pass
        elif what == "arrive" and accepts(now, working, chance):
            working += 1
            later(max(mean_s / 20, chance.expovariate(1 / mean_s)), "end", flight)
        elif what == "arrive":
            later(refusal_s, "refused", flight)
        elif what == "end":
            working -= 1
            done += 1
            lanes.answered_by(flight)
        else:
            n_refused += 1
            waiting += 1
            lanes.failed(flight, RequestFailed("rate_limited", "slow down"))
        lanes.advance()
        while waiting and lanes.available():
            waiting -= 1
            later(ROUND_TRIP_S / 2, "arrive", lanes.record_sent(next(iter(lanes)), Work(Task("b", "q", waiting))))
        change = lanes.next_change()
        if change is not None and not now < wakes_at <= now + change:
            wakes_at = now + max(0.001, change)
            later(max(0.001, change), "wake")
    return Result(now, n_refused / samples)


SERVERS = [
    # make, samples, mean seconds, requests in flight, seconds without the limiter's refusals
    (lambda: slots(16), 2000, 0.1, 64, 2000 * 0.1 / 16),
    (lambda: slots(16), 1000, 3.0, 64, 1000 * 3.0 / 16),
    (lambda: slots(100), 1000, 60.0, 256, 1000 * 60.0 / 100),
    (lambda: slots(1), 200, 0.5, 8, 200 * 0.5),
    (lambda: a_second(5), 500, 0.1, 64, 500 / 5),
    (lambda: a_second(5), 500, 3.0, 64, 500 / 5),
    (lambda: a_second(50), 3000, 1.0, 64, 3000 / 50),
]


@pytest.mark.parametrize(("make", "samples", "mean_s", "concurrency", "ideal_s"), SERVERS)
def test_a_limiter_is_obeyed_and_used(
    make: Callable[[], Accepts], samples: int, mean_s: float, concurrency: int, ideal_s: float
) -> None:
    result = simulate(make(), samples=samples, mean_s=mean_s, concurrency=concurrency)
    assert result.refused <= 2.0
    tail = 8 * mean_s  # the longest of them
    assert result.seconds <= 1.2 * ideal_s + tail


@pytest.mark.parametrize(("mean_s", "samples"), [(0.1, 4000), (3.0, 2000), (100.0, 1000)])
@pytest.mark.parametrize(("share", "times"), [(0.02, 1.1), (0.1, 1.2), (0.3, 1.7), (0.5, 4.0)])
def test_refusals_at_random_do_not_throttle(share: float, times: float, mean_s: float, samples: int) -> None:
    result = simulate(at_random(share), samples=samples, mean_s=mean_s, concurrency=64)
    ideal_s, tail = samples * mean_s / 64, 8 * mean_s
    assert result.seconds <= (times if mean_s < 1 else min(times, 1.3)) * ideal_s + tail
    assert result.refused <= 1.2 * share / (1 - share) + 0.05


def played(word: str) -> float:
    """Seconds that a slot rests after requests that were refused (R), accepted (A) or cut (C) one after the other."""
    now, rest = 0.0, 0.0
    pace = Pace(1, lambda: now, lambda low, high: high)
    for letter in word:
        now += rest
        pace.advance(now)
        assert (pace.limit, pace.in_flight) == (1, 0)
        ticket, rest = pace.record_sent(), 0.0
        if letter == "R":
            pace.refused(ticket)
            assert pace.rest_ends is not None
            assert pace.limit == 0
            rest = pace.rest_ends - now
        elif letter == "A":
            pace.answered(ticket)
        else:
            pace.ended(ticket)
    return rest


@pytest.mark.parametrize(
    ("word", "rest"),
    [
        ("A", 0.0),
        ("C", 0.0),
        ("R", 0.1),
        ("RR", 0.17),
        ("RRR", 0.289),
        ("R" * 12, 34.27),
        ("R" * 40, 60.0),
        ("R" * 2000, 60.0),
        ("RRRCR", 0.4913),
        ("RRRAR", 0.17),
        ("RRRAAR", 0.1),
        ("AAAR", 0.1),
    ],
)
def test_a_slot_waits_longer_after_each_refusal_and_recovers_by_two(word: str, rest: float) -> None:
    assert played(word) == pytest.approx(rest, rel=1e-3)


def resting(n: int, credit_s: float) -> Pace:
    """A pace with one request in flight, after `n` others were refused, when their rests are over after `credit_s`."""
    pace = Pace(n + 1, lambda: 0.0, lambda low, high: high)
    for refusals in [pace.record_sent() for _ in range(n + 1)][1:]:
        pace.refused(refusals)
    pace.advance(credit_s)
    return pace


@pytest.mark.parametrize(("credit_s", "n_awake"), [(4.9, 0), (5.1, 1), (14.9, 2), (15.1, 3)])
def test_each_slot_that_wakes_beside_a_request_in_flight_takes_a_credit(credit_s: float, n_awake: int) -> None:
    pace = resting(4, credit_s)
    assert (pace.limit, pace.rest_ends) == (1 + n_awake, pytest.approx(credit_s + 0.17)), "the others rest longer"


def test_of_fewer_slots_those_that_rest_go() -> None:
    pace = Pace(4, lambda: 0.0, lambda low, high: high)
    first, *_ = [pace.record_sent() for _ in range(4)]
    pace.refused(first)
    pace.set_ceiling(2)
    assert (pace.limit, pace.rest_ends) == (2, None)


def test_a_slot_that_wakes_because_nothing_is_in_flight_leaves_no_debt() -> None:
    pace = Pace(2, lambda: 0.0, lambda low, high: high)
    for refusals in [pace.record_sent(), pace.record_sent()]:
        pace.refused(refusals)
    pace.advance(0.2)
    assert (pace.limit, pace.record_sent()) == (1, 1)
    pace.advance(5.3)
    assert pace.limit == 2, "5.1 seconds give a credit"
