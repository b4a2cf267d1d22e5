"""Servers that fail: what is asked again, what is given up, when the run ends, and that every key is accounted for."""

from __future__ import annotations

import importlib
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from harness.client.spelling import Spelling
from harness.core.choices import ApiName
from harness.core.errors import ServerError, StoppedByRule, StoreError
from harness.core.nouns import Prices
from harness.generation.dispatch.canary import FIRST_SAMPLES
from harness.generation.settings import BenchmarkSettings
from harness.presets.sampling import Sampling
from harness.runs.layout import RunFolder
from harness.testing import (
    CLOSE,
    RESET,
    FakeServer,
    Request,
    Step,
    completion,
    delta,
    event,
    event_stream,
    http,
    scripted,
)
from tests.generation.small_runs import QUICK, expected_keys, keys_of, question_set, run, run_settings, samples_of, well
from tests.patience import PATIENCE_SECONDS

BROKEN = http(500, {"error": {"message": "out of memory"}})


def question_of(request: Request) -> str:
    """`q3` for the question "What is 3 + 1?"."""
    return "q" + request.json["messages"][-1]["content"].split()[2]


def test_cut_streams_errors_and_resets_are_asked_again(tmp_path: Path) -> None:
    seen: Counter[int] = Counter()
    lock = threading.Lock()

    def answer(request: Request) -> Iterable[Step]:
        seed = request.json["seed"]
        with lock:
            seen[seed] += 1
        faults: list[list[Step]] = [[BROKEN], [*list(event_stream(delta("half"), end=()))], [RESET], [CLOSE]]
        if seen[seed] == 1 and seed % 2:
            return faults[seed // 2 % len(faults)]
        return well(request)

    with FakeServer(answer) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=4)
        outcome = run(settings, question_set(tmp_path, 10))
    assert outcome.complete
    assert keys_of(settings) == expected_keys(10, 4)
    for sample in samples_of(settings):
        # A kept connection that is closed before a byte came may have been closed before the request: asked at once.
        assert sample.attempts in (1, seen[sample.seed or 0])
    assert {s.attempts for s in samples_of(settings)} == {1, 2}
    logged = [json.loads(line) for line in RunFolder(settings.out).log.read_text().splitlines()]
    failed = [event for event in logged if event["event"] == "request_failed"]
    assert {event["kind"] for event in failed} >= {"server", "cut"}
    assert all(event["task"][0] == "sums" and event["message"] and event["attempt"] == 1 for event in failed)
    assert outcome.progress is not None
    counts = {failure.kind: failure.count for failure in outcome.progress.failed}
    assert counts == Counter(event["kind"] for event in failed)
    n_cut = counts["cut"]
    assert [f"{n_cut} of {40 + n_cut} streams" in warning for warning in outcome.warnings] == [True]


@pytest.mark.parametrize("wait", ["header", "words", "event"])
def test_a_wait_of_hours_ends_the_run_with_its_time_and_the_same_command_goes_on(tmp_path: Path, wait: str) -> None:
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
        with pytest.raises(ServerError, match=r"free-models-per-day.*5 of 20 samples .* Resume with: again") as ended:
            run(settings, question_set(tmp_path, 10), resume_command="again")
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


@pytest.mark.parametrize(("status", "n_paid", "prices"), [(402, 0, None), (402, 5, Prices(1.0, 10.0)), (401, 5, None)])
def test_a_refusal_says_what_is_stored_what_it_cost_and_how_to_resume_if_that_may_help(
    tmp_path: Path, status: int, n_paid: int, prices: Prices | None
) -> None:
    numbers = itertools.count()
    empty = http(status, {"error": {"message": "insufficient balance"}})

    def answer(request: Request) -> Iterable[Step]:
        return well(request) if next(numbers) < n_paid else [empty]

    with FakeServer(answer) as server:
        settings = run_settings(tmp_path / "run", server.base_url, concurrency=1, prices=prices)
        with pytest.raises(ServerError, match=f"refuses: HTTP {status}: insufficient balance") as refused:
            run(settings, question_set(tmp_path, 10), resume_command="harness run sums")
    kept = f". 5 of 20 samples are stored in {settings.out}."
    kept += " This session: 0.00040 USD for 45 tokens in, 35 out." if prices else ""
    kept += " Resume with: harness run sums" if status == 402 else ""
    assert str(refused.value).endswith(kept if n_paid else "insufficient balance")
    assert len(keys_of(settings)) == n_paid


@pytest.mark.parametrize("sound", ["first", "later", "never"])
def test_an_endpoint_that_refuses_stops_the_run_only_where_no_other_answers(tmp_path: Path, sound: str) -> None:
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
def test_a_question_that_fails_alone_is_given_up_if_the_server_still_lists_its_model(
    tmp_path: Path, end: Step, lists: bool
) -> None:
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
FORMS = {
    **{(api, streamed): None for api in ("chat/completions", "responses", "messages") for streamed in (True, False)},
    ("its choices are", False): [http(200, WHOLE)],
    ("the reply is not a completion", False): [http(200, {"candidates": [{"content": {"parts": [{"text": "42"}]}}]})],
    ("its choices are", True): [*event_stream(event(WHOLE))],
}
"""The forms of each API, and three that are of none."""


@pytest.mark.parametrize(("form", "streamed"), FORMS)
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_replies_in_another_form_end_a_run_in_one_round_if_all_are_and_one_alone_does_not(
    tmp_path: Path, api: ApiName, form: str, streamed: bool
) -> None:
    said, scripts, alone = form.partition("/")[0], scripted("42"), True

    def oddly(request: Request) -> Iterable[Step]:
        if alone and len(server.requests) > 1:
            return scripts(request)
        odd = FORMS[form, streamed]
        body = json.dumps(request.json | {"stream": streamed}).encode()
        return odd or scripts(replace(request, path=f"/v1/{form}", body=body))

    with FakeServer(oddly) as server:
        settings = run_settings(
            tmp_path / "run", server.base_url, spelling=Spelling(api_name=api), samples=1, canary=False
        )
        assert run(settings, question_set(tmp_path, 6)).complete
        assert len(server.requests) in (6, 6 + (said != api))
        alone, settings = False, replace(settings, out=tmp_path / "other")
        if said == api:
            return
        n_before = len(server.requests)
        with pytest.raises(ServerError, match="sends responses that cannot be parsed: ") as ended:
            run(settings, question_set(tmp_path, 6))
        assert len(server.requests) <= n_before + 12
    is_apis = FORMS[form, streamed] is None
    named = f"api={said}" if is_apis else said if api == "chat" else "api"
    assert named in str(ended.value)
    assert ("drop=stream" in str(ended.value)) == (streamed and not is_apis and api == "chat")


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
        (http(422, {"detail": [{"loc": ["body", "top_k"], "msg": "Extra inputs are not permitted"}]}), "--drop top_k"),
        (http(400, {"error": {"message": "Unrecognized request argument supplied: top_k"}}), "--drop top_k"),
        (http(400, {"error": {"message": 'Invalid JSON. Unknown name "seed": Cannot find field.'}}), "`seed` none"),
        (http(400, {"error": {"message": "Unsupported value", "param": "temperature"}}), "--drop temperature"),
        (http(422, {"detail": "body -> top_k\n Extra inputs\nbody -> stream\n Extra"}), "--drop stream,top_k"),
        (http(400, {"message": "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k')}]"}), "--drop top_k"),
        (http(400, {"error": {"message": "Unsupported parameter: 'stream_options'"}}), "--drop stream_options"),
        (http(400, {"error": {"message": "seed: Extra inputs are not permitted"}}), "`seed` none"),
        (http(400, {"error": {"message": "minnow: no such bait"}}), "no minnow in extra_body"),
        (http(400, {"error": {"message": "messages: the stream of your thoughts is a seed; stop"}}), None),
        (http(400, {"error": {"message": "min_p is not supported by this model"}}), None),  # it was not sent
    ],
)
def test_a_refused_field_is_named_with_what_leaves_it_out(
    tmp_path: Path, refusal: bytes, left_out: str | None, n_questions: int
) -> None:
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
    assert (f"(omit with {left_out or ''}" in said.replace("`drop` (", "")) == (left_out is not None), said


def test_another_model_behind_the_same_url_stops_the_run_and_its_reply_is_not_stored(tmp_path: Path) -> None:
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
        (event_stream(delta(reasoning="so 4"), delta(finish="stop")), "answer_from_reasoning=True"),
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
    "the request's body": "harness.client.spelling.RequestTemplate.body",
    "the scheduler, at a sample's end": "harness.generation.dispatch.schedule.Scheduler.finish",
    "the scheduler, at a sample's start": "harness.generation.dispatch.schedule.Scheduler.next",
    "the endpoints": "harness.generation.dispatch.lanes.Lanes.answered_by",
    "the journal's door": "harness.runs.journal.Journal.append",
    "the journal's writer": "harness.runs.record.encode",
    "the canary": "harness.generation.dispatch.canary.Canary.observe",
}


@pytest.mark.parametrize("stage", list(STAGES.values()), ids=list(STAGES))
def test_a_bug_in_any_stage_is_a_listed_sample_or_a_stop_and_never_a_missing_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
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
