"""Half-written answers are gone on with: the whole is what an undisturbed request gives, or it is asked anew."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.address.providers import Prefill, load
from harness.client.facts.tokens import Rendered
from harness.client.interface import Deadlines
from harness.client.protocol.reply import Reply
from harness.client.protocol.written import KEPT_LOGPROBS, SoFar
from harness.client.spelling import RequestTemplate, Spelling
from harness.client.transport import Transport as HttpTransport
from harness.core.records import Message, Question, Sample, Seam, Timing, Usage
from harness.generation.comparing import BOUND_NATS, MAX_SENT, TokenBefore, difference, tokens_before_seam
from harness.generation.continuing import (
    Continuation,
    Salvage,
    WrittenAnew,
    continuation,
    objection,
    whole,
    written_so_far,
)
from harness.generation.dispatch.retry import TRIES
from harness.generation.settings import RunSettings
from harness.runs import inflight
from harness.runs.inflight import Partial
from harness.runs.layout import RunFolder
from tests.budget import thinned
from tests.faults.server import FAILING, RESET
from tests.faults.token_server import TAGS, THINK_END, Model, TokenServer, ids_of, text_of
from tests.generation.small_runs import QUICK, changed, question_set, run, run_settings, samples_of
from tests.patience import PATIENCE_SECONDS
from tests.system.command import harness, start

ASKED = Question(
    benchmark="b",
    question_id="q",
    messages=(Message("user", "What is 1 + 1?"),),
    references=("2",),
    kind="integer",
    row_digest="",
    prompt_digest="",
)
MESSAGES = [{"role": "user", "content": "What is 1 + 1?"}]


class Tokenizer:
    """The model's own, without a server."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def prompt_tokens(self, question: Question, template_kwargs: Any) -> Rendered:
        messages = [{"role": m.role, "content": m.content} for m in question.messages]
        return Rendered(self._model.prompt(messages), ends_open=self._model.thinks > 0)

    def tokens_of(self, text: str) -> list[int]:
        return ids_of(text)

    def tokens_of_pieces(self, pieces: list[str]) -> list[int] | None:
        ids = [ids_of(piece) for piece in pieces]
        return [n for one in ids for n in one] if all(len(one) == 1 for one in ids) else None


def seen(model: Model, ids: list[int], engine: str, *, raw: bool = False) -> SoFar:
    """What a server's stream has said of these tokens. raw: it is a completion, in which tags are text."""
    reasoning, text = (None, "".join(map(text_of, ids))) if raw else model.said(ids)
    pieces = [text_of(n) for n in ids if raw or n != THINK_END]
    known = engine != "llama.cpp"
    return SoFar(
        text=text or None,
        reasoning=reasoning,
        ids=ids if known else None,
        prompt_ids=model.prompt(MESSAGES) if known and not raw else None,
        lengths=[len(piece) for piece in pieces],
        n_events=len(pieces),
        server_model="test-model",
    )


def replied(text: str, finish: str, n_prompt: int, n_new: int) -> Reply:
    usage = Usage(prompt_tokens=n_prompt, completion_tokens=n_new)
    return Reply(text=text, reasoning=None, finish_reason=finish, usage=usage, timing=Timing(started=0.0, total=1.0))


def going_on(begun: Partial, model: Model, mode: str, engine: str, **template: Any) -> Continuation:
    given_template = RequestTemplate(model="test-model", max_tokens=10_000, **template)
    salvage = Salvage(mode=mode, engine=engine)  # type: ignore[arg-type]
    return continuation(begun, ASKED, given_template, salvage, Tokenizer(model), max_tokens=10_000, seed=7)


@pytest.mark.parametrize(
    ("engine", "mode", "thinks"),
    [("vllm", "exact", 0), ("vllm", "exact", 30), ("llama.cpp", "exact", 0), ("sglang", "near", 0)],
)
@given(cuts=st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_cut_anywhere_and_as_often_as_you_like_the_parts_are_the_whole(
    engine: str, mode: str, thinks: int, cuts: list[int]
) -> None:
    model = Model(thinks)
    prompt = model.prompt(MESSAGES)
    ids = model.onward(prompt, None)[0]
    request: Continuation | None = None
    partial, sent = Partial(request=""), list(prompt)
    for cut in cuts:
        new = model.onward(sent, cut)[0]
        partial = written_so_far(request, "digest", engine, seen(model, new, engine, raw=request is not None))
        try:
            request = going_on(partial, model, mode, engine)
        except WrittenAnew:
            return  # too short, or its tokens are not known: asked from the start
        assert request.prompt is not None
        assert request.prompt == prompt + ids[: request.seam.tokens]
        assert (partial.reasoning or "") == "".join(map(text_of, ids))[: len(partial.reasoning or "")]
        sent = request.prompt
    assert request is not None
    rest, reason = model.onward(sent, None)
    reply = whole(request, replied("".join(map(text_of, rest)), reason, len(sent), len(rest)))
    assert (reply.reasoning, reply.text) == model.said(ids)
    assert reply.usage.completion_tokens == len(ids)
    assert reply.usage.prompt_tokens == len(prompt)
    body = json.loads(request.body)
    assert body["max_tokens"] == 10_000 - request.seam.tokens
    assert body["seed"] != 7
    assert "messages" not in body


def test_a_reasoning_that_its_last_token_closed_is_closed() -> None:
    """The event brought the end of the reasoning and the tag, of which the text says nothing."""
    model = Model(thinks=30)
    ids = model.answer(MESSAGES)[0]
    begun = written_so_far(None, "", "vllm", seen(model, ids[:31], "vllm"))
    request = going_on(begun, model, "exact", "vllm")
    rest = "".join(map(text_of, ids[31:50]))
    reply = whole(request, replied(rest, "length", len(request.prompt or ()), 19))
    assert (reply.reasoning, reply.text) == model.said(ids[:50])


def test_a_reasoning_whose_tag_is_no_token_of_the_model_is_asked_anew() -> None:
    class Harmony(Tokenizer):
        def tokens_of(self, text: str) -> list[int]:
            return [1000 + ord(c) for c in text]

    model = Model(thinks=30)
    begun = written_so_far(None, "", "vllm", seen(model, model.answer(MESSAGES)[0][:20], "vllm"))
    salvage = Salvage(mode="near", engine="vllm")
    with pytest.raises(WrittenAnew, match="is not a single token of this model"):
        continuation(begun, ASKED, RequestTemplate(model="m"), salvage, Harmony(model), max_tokens=None, seed=None)


def test_a_server_that_counts_other_tokens_than_were_sent_has_answered_something_else() -> None:
    model = Model()
    ids = model.answer(MESSAGES)[0]
    request = going_on(written_so_far(None, "", "vllm", seen(model, ids[:30], "vllm")), model, "exact", "vllm")
    assert request.prompt is not None
    with pytest.raises(WrittenAnew, match="the server counted 3"):
        whole(request, replied("x", "stop", 3, 1))
    assert whole(request, replied("x", "stop", len(request.prompt), 1)).finish_reason == "stop"


def test_an_answer_that_ends_inside_its_reasoning_is_asked_anew_and_a_truncated_one_is_taken() -> None:
    model = Model(thinks=30)
    ids = model.answer(MESSAGES)[0]
    request = going_on(written_so_far(None, "", "vllm", seen(model, ids[:20], "vllm")), model, "exact", "vllm")
    assert request.prompt is not None
    with pytest.raises(WrittenAnew, match="inside its reasoning"):
        whole(request, replied(" on and on", "stop", len(request.prompt), 3))
    cut = whole(request, replied(" on and on", "length", len(request.prompt), 3))
    assert cut.text is None or cut.text == ""
    assert (cut.reasoning or "").endswith(" on and on")


@pytest.mark.parametrize(
    ("extra_body", "sampling", "exact", "near"),
    [
        ({}, {"temperature": 0.6, "top_p": 0.95}, True, True),
        ({"top_k": 20, "min_p": 0.1}, {}, True, True),
        ({}, {"repetition_penalty": 1.1}, False, True),
        ({}, {"stop": ["\n\n"]}, False, True),
        ({}, {"presence_penalty": 0.5}, False, False),
        ({}, {"frequency_penalty": 0.5}, False, False),
        ({"grammar": "root ::= [0-9]"}, {}, False, False),
        ({"response_format": {"type": "json_object"}}, {}, False, False),
        ({"thinking_token_budget": 100}, {}, False, False),
    ],
)
def test_what_looks_at_the_words_before_is_not_gone_on_with(
    extra_body: dict[str, Any], sampling: dict[str, Any], exact: bool, near: bool
) -> None:
    template = RequestTemplate(model="m", sampling=sampling, spelling=Spelling(extra_body=extra_body))
    assert (objection(template, "exact") == "") == exact
    assert (objection(template, "near") == "") == near
    assert objection(template, "off")
    assert objection(replace(template, spelling=Spelling(stream=False)), "exact")


def test_a_providers_begun_message_is_near_only_and_never_for_a_reasoning() -> None:
    begun = Partial(request="", text="word " * 20, tokens=20)
    template = RequestTemplate(model="m", max_tokens=100)
    tokens = Tokenizer(Model())

    def asked(begun: Partial, mode: str, *, echoes: bool = False) -> Continuation:
        prefill = Prefill(fields={"prefix": True}, echoes=echoes, page="p", checked=False)
        salvage = Salvage(mode=mode, prefill=prefill)  # type: ignore[arg-type]
        return continuation(begun, ASKED, template, salvage, tokens, max_tokens=100, seed=None)

    request = asked(begun, "near")
    body = json.loads(request.body)
    message = {"role": "assistant", "content": ("word " * 20).rstrip(), "prefix": True}
    assert body["messages"][-1] == message, "a provider would take the blank away, or refuse it"
    assert body["max_tokens"] == 80
    assert not request.seam.exact
    assert whole(request, replied(" end", "stop", 50, 2)).text == "word " * 20 + "end"
    echoing = asked(begun, "near", echoes=True)
    assert whole(echoing, replied("word " * 20 + "end", "stop", 50, 2)).text == "word " * 20 + "end"
    with pytest.raises(WrittenAnew, match="does not begin with"):
        whole(echoing, replied("end", "stop", 50, 2))
    with pytest.raises(WrittenAnew):
        asked(begun, "exact")
    with pytest.raises(WrittenAnew):
        asked(Partial(request="", text="word " * 20, reasoning="hm", tokens=20), "near")
    with pytest.raises(WrittenAnew):
        asked(Partial(request="", text="<think>" + "word " * 20, tokens=20), "near")


# ---- whole runs over real sockets


LOGPROBS = {"logprobs": True}


def settings_for(out: Path, server: TokenServer, mode: str = "exact", **more: Any) -> RunSettings:
    prefill = load("generic").prefill_on(server.engine)
    salvage = Salvage(mode=mode, engine=server.engine, prefill=prefill)  # type: ignore[arg-type]
    spelling = Spelling(token_ids=salvage.states_ids("chat"))
    return run_settings(out, server.base_url, salvage=salvage, spelling=spelling, **more)


def undisturbed(model: Model, sample: Sample, folder: Path) -> tuple[str | None, str]:
    """(reasoning, text) that a quiet server gives to the sample's question."""
    (question,) = [q for q in question_set(folder, 20).questions if q.question_id == sample.question_id]
    return model.said(model.answer([{"role": m.role, "content": m.content} for m in question.messages])[0])


@pytest.mark.parametrize("transport", [HttpTransport])
@pytest.mark.parametrize(("engine", "thinks"), [("vllm", 0), ("vllm", 25), ("llama.cpp", 0)])
def test_broken_streams_go_on_and_their_texts_are_those_of_a_quiet_server(
    tmp_path: Path, engine: str, thinks: int, transport: Any
) -> None:
    chosen = random.Random(f"{engine} {thinks}")
    model = Model(thinks)
    cuts = {n: chosen.randrange(18, 60) for n in range(1, 9)}
    with TokenServer(model, engine, cut_after=cuts) as server:
        settings = settings_for(tmp_path / "run", server, samples=1)
        outcome = run(settings, question_set(tmp_path, 4), transport_factory=transport)
    assert outcome.complete
    samples = samples_of(settings)
    assert [undisturbed(model, one, tmp_path) for one in samples] == [(one.reasoning, one.text) for one in samples]
    assert sum(len(one.salvaged_at) for one in samples) > 0
    assert outcome.n_continued == sum(bool(one.salvaged_at) for one in samples)
    for one in samples:
        reasoning, text = undisturbed(model, one, tmp_path)
        n_tags = 1 if thinks else 0
        assert one.usage.completion_tokens == len(ids_of((reasoning or "") + text)) + n_tags
        assert all(seam.exact for seam in one.salvaged_at)
    # What had come was not asked again, but for what was on its way when a stream broke.
    needed = sum(one.usage.completion_tokens or 0 for one in samples)
    assert server.generated <= needed + 2 * len(cuts)
    assert not RunFolder(settings.out).inflight.exists()


def test_a_signal_after_the_last_answer_changes_nothing(tmp_path: Path) -> None:
    raised = []

    def stop(progress: Any) -> None:
        if not any(thread.name == "network" for thread in threading.enumerate()):
            raised.append(progress.done)
            signal.raise_signal(signal.SIGINT)

    with TokenServer(Model(), "vllm") as server:
        settings = settings_for(tmp_path / "run", server, samples=1)
        outcome = run(settings, question_set(tmp_path, 2), on_progress=stop)
    assert set(raised) == {2}
    assert outcome.complete


@pytest.mark.parametrize("mode", ["off", "exact"])
def test_what_is_not_exact_is_asked_anew_unless_wanted(tmp_path: Path, mode: str) -> None:
    """SGLang's chat states no ids, so its answers can be gone on with by their text only."""
    model = Model()
    for mode_of_run, continued in ((mode, 0), ("near", 1)):
        with TokenServer(model, "sglang", cut_after={1: 30}) as server:
            settings = settings_for(tmp_path / mode_of_run, server, mode_of_run, samples=1, concurrency=1)
            outcome = run(settings, question_set(tmp_path, 1))
            paths = [request.path for request in server.requests]
        (sample,) = samples_of(settings)
        assert outcome.n_continued == len(sample.salvaged_at) == continued
        assert (None, sample.text) == undisturbed(model, sample, tmp_path)
        assert ("/v1/completions" in paths) == bool(continued)
        assert not any(seam.exact for seam in sample.salvaged_at)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("mode", ["exact", "near"])
def test_behind_a_gateway_the_begun_message_is_gone_on_with(tmp_path: Path, engine: str, mode: str) -> None:
    """Neither ids nor a tokenizer are to be had there; blanks at the end of a message are lost on the way."""
    model = Model()
    cuts = {n: 16 + n for n in range(1, 30, 2)}  # some end in a blank
    with TokenServer(model, engine, cut_after=cuts, gateway=True) as server:
        patience = replace(QUICK, attempts=30)
        settings = settings_for(tmp_path / "run", server, mode, samples=3, concurrency=1, patience=patience)
        outcome = run(settings, question_set(tmp_path, 5))
        bodies = [request.json for request in server.requests if request.path == "/v1/chat/completions"]
    assert outcome.complete, outcome.causes
    samples = samples_of(settings)
    assert [undisturbed(model, one, tmp_path) for one in samples] == [(None, one.text) for one in samples]
    assert outcome.n_continued == sum(bool(one.salvaged_at) for one in samples)
    assert (outcome.n_continued > 2) == (mode == "near")
    assert not any(seam.exact for one in samples for seam in one.salvaged_at)
    onward = [one for one in bodies if one.get("continue_final_message")]
    assert len(onward) == sum(len(one.salvaged_at) for one in samples)


def leave_half(tmp_path: Path, server: TokenServer, settings: RunSettings, n: int = 2) -> None:
    """A session that a second Ctrl-C ended with every answer half written."""

    def stop(progress: Any) -> None:
        if progress.arrived > 30 * n:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    from harness.core.errors import Interrupted

    with pytest.raises(Interrupted):
        run(settings, question_set(tmp_path, n), on_progress=stop, interval=0.02)


@contextmanager
def half_written(tmp_path: Path, model: Model, n: int = 2) -> Iterator[tuple[TokenServer, RunSettings]]:
    with TokenServer(model, "vllm", pause=0.01) as server:
        settings = settings_for(tmp_path / "run", server, samples=1)
        leave_half(tmp_path, server, settings, n)
        server.pause = 0.0
        server.generated = 0
        yield server, settings


def test_a_later_session_goes_on_with_what_the_last_one_left(tmp_path: Path) -> None:
    model = Model(shortest=200, longest=400)
    with half_written(tmp_path, model) as (server, settings):
        partials = inflight.read(RunFolder(settings.out)).partials
        assert len(partials) == 2
        outcome = run(settings, question_set(tmp_path, 2))
        samples = samples_of(settings)
        assert outcome.kept_tokens == sum(one.tokens for one in partials.values())
        assert server.generated == sum(one.usage.completion_tokens or 0 for one in samples) - outcome.kept_tokens
    assert [undisturbed(model, one, tmp_path) for one in samples] == [(one.reasoning, one.text) for one in samples]
    assert all(one.salvaged_at for one in samples)
    assert not RunFolder(settings.out).inflight.exists()


# ---- gateways that take whole requests and fail every continuation

SILENCE = Deadlines(first_token=2.0, idle=2.0)
"""Short, where a silent server must be given up; a busy machine may take so long for a right answer, too."""


@pytest.mark.parametrize("kind", thinned(FAILING))
def test_a_run_whose_continuations_all_fail_is_asked_anew_to_its_end(tmp_path: Path, kind: str) -> None:
    """In a session that begins with half-written answers only, and needs no other."""
    n = 8
    with half_written(tmp_path, Model(shortest=200, longest=400), n) as (server, settings):
        begun = inflight.read(RunFolder(settings.out)).partials
        server.onward = FAILING[kind]
        patient = replace(QUICK, start_up=PATIENCE_SECONDS, outage=PATIENCE_SECONDS)
        deadlines = SILENCE if kind == "silence" else settings.asker.deadlines
        outcome = run(
            changed(settings, deadlines=deadlines, patience=patient, concurrency=4), question_set(tmp_path, n)
        )
        samples = samples_of(settings)
        assert outcome.complete, outcome.causes
        assert [undisturbed(server.model, one, tmp_path) for one in samples] == [(o.reasoning, o.text) for o in samples]
        assert len(begun) >= n // 2
        assert not any(one.salvaged_at for one in samples)
        assert 0 < server.n_onward <= TRIES * len(begun)


def test_what_fails_without_a_token_tells_nothing_of_a_server_that_answers_whole_requests(tmp_path: Path) -> None:
    """Streams that break leave beginnings; their continuations fail, and nobody is set aside for it."""
    with TokenServer(Model(), "vllm", cut_after=dict.fromkeys(range(1, 5), 30)) as server:
        server.onward = FAILING["502"]
        settings = settings_for(tmp_path / "run", server, samples=1)
        paths: list[str] = []
        outcome = run(
            settings, question_set(tmp_path, 10), on_progress=lambda now: paths.extend(e.state for e in now.endpoints)
        )
    assert outcome.complete
    assert set(paths) <= {"open"}


def test_a_server_that_was_down_loses_no_beginning_by_it(tmp_path: Path) -> None:
    """Its continuations failed as whole requests did: they go on when it is back."""
    with half_written(tmp_path, Model(shortest=200, longest=400), 6) as (server, settings):
        kept = inflight.read(RunFolder(settings.out)).partials
        real, server.answer = server.answer, lambda _: iter([RESET])
        patient = replace(QUICK, start_up=30.0, outage=30.0)
        back = threading.Timer(1.0, lambda: setattr(server, "answer", real))
        back.start()
        outcome = run(changed(settings, patience=patient), question_set(tmp_path, 6))
        back.join()
        samples = samples_of(settings)
    assert outcome.complete
    assert sum(bool(one.salvaged_at) for one in samples) >= len(kept) - 2
    assert [undisturbed(server.model, one, tmp_path) for one in samples] == [
        (one.reasoning, one.text) for one in samples
    ]


@pytest.mark.parametrize("kind", ["silence", "empty"])
def test_the_command_ends_complete_behind_a_gateway_that_fails_continuations(tmp_path: Path, kind: str) -> None:
    question_set(tmp_path, 12)
    cuts = dict.fromkeys(range(1, 40, 3), 30)
    with TokenServer(Model(), "vllm", cut_after=cuts) as server:
        server.onward = FAILING[kind]
        words = command(
            tmp_path / "run", tmp_path / "sums.jsonl", server, "--concurrency", "6", "--first-token-timeout", "1"
        )
        for _ in range(2):
            done = harness(tmp_path, *words)
            if done.code == 0:
                break
    assert done.code == 0, done.err
    assert "complete: 12 of 12 samples" in done.out + done.err


@pytest.mark.parametrize("changed", ["prompt", "sampling", "engine"])
def test_another_prompt_other_sampling_or_another_server_is_asked_anew(tmp_path: Path, changed: str) -> None:
    model = Model(shortest=200, longest=400)
    with half_written(tmp_path, model) as (server, settings):
        questions = question_set(tmp_path, 2)
        if changed == "prompt":
            questions = question_set(tmp_path, 2, system_prompt="Think twice.")
        elif changed == "sampling":
            sampling = settings.benchmarks["sums"].sampling.but(temperature=0.7)
            settings = replace(settings, benchmarks={"sums": replace(settings.benchmarks["sums"], sampling=sampling)})
        else:
            settings = replace(settings, salvage=Salvage(mode="near", engine="sglang"))
        outcome = run(settings, questions)
        assert outcome.n_continued == 0
        assert not any(one.salvaged_at for one in samples_of(settings))
        assert {request.path for request in server.requests} == {"/v1/chat/completions"}
        log = RunFolder(settings.out).log.read_text()
        assert log.count('"written_anew"') == 2


@pytest.mark.parametrize("damage", ["every line", "the last line", "no file"])
def test_damage_costs_what_was_kept_and_never_makes_a_false_sample(tmp_path: Path, damage: str) -> None:
    model = Model(shortest=200, longest=400)
    with half_written(tmp_path, model) as (_, settings):
        file = RunFolder(settings.out).inflight
        data = bytearray(file.read_bytes())
        if damage == "no file":
            file.unlink()
        elif damage == "every line":
            data = data.replace(b'"text"', b'"tEXT"')
        else:
            del data[-20:]
        if damage != "no file":
            file.write_bytes(data)
        outcome = run(settings, question_set(tmp_path, 2))
    samples = samples_of(settings)
    assert [undisturbed(model, one, tmp_path) for one in samples] == [(one.reasoning, one.text) for one in samples]
    assert any("damaged" in warning for warning in outcome.warnings) == (damage != "no file")


def compared(
    tmp_path: Path, swap: Callable[[TokenServer], object], mode: str = "exact"
) -> tuple[Any, list[Sample], TokenServer]:
    """(outcome, samples, server) of a run with log-probabilities, whose server was changed between two sessions."""
    with TokenServer(Model(shortest=200, longest=400), "vllm", pause=0.01) as server:
        settings = settings_for(tmp_path / "run", server, mode, samples=1)
        settings = changed(settings, spelling=replace(settings.spelling, extra_body=LOGPROBS))
        leave_half(tmp_path, server, settings)
        partials = inflight.read(RunFolder(settings.out)).partials.values()
        assert all(len(one.logprobs) == KEPT_LOGPROBS for one in partials)
        server.pause = 0.0
        swap(server)
        outcome = run(settings, question_set(tmp_path, 2))
        return outcome, samples_of(settings), server


@pytest.mark.parametrize("off", [0.0, 0.02])
def test_the_model_that_wrote_a_beginning_goes_on_and_the_record_says_how_far_off_it_is(
    tmp_path: Path, off: float
) -> None:
    outcome, samples, server = compared(tmp_path, lambda server: setattr(server.model, "off", off))
    assert outcome.n_continued == 2
    for one in samples:
        assert (None, one.text) == undisturbed(server.model, one, tmp_path)
        (seam,) = one.salvaged_at
        assert (seam.exact, seam.compared, seam.difference) == (True, KEPT_LOGPROBS, pytest.approx(off, abs=1e-5))
        assert one.odd_logprobs is None
    assert not any("log-probabilities" in warning for warning in outcome.warnings)


@pytest.mark.parametrize("mode", ["exact", "near"])
def test_another_model_under_the_same_name_asks_anew_unless_nearly_is_enough(tmp_path: Path, mode: str) -> None:
    """It has the same tokens and counts as many; what it says of them tells it apart."""
    second_model = Model(shortest=200, longest=400, mind=1)
    outcome, samples, _ = compared(tmp_path, lambda server: setattr(server, "model", second_model), mode)
    note = {"exact": "asked anew", "near": "went on as near"}[mode]
    assert any(f"{note}: 2 half-written answers" in warning for warning in outcome.warnings)
    assert outcome.n_continued == (2 if mode == "near" else 0)
    log = RunFolder(tmp_path / "run").log.read_text()
    assert log.count('"written_anew"') == (0 if mode == "near" else 2)
    for one in samples:
        assert ((None, one.text) == undisturbed(second_model, one, tmp_path)) == (mode == "exact")
        for seam in one.salvaged_at:
            assert not seam.exact
            assert seam.difference is not None
            assert seam.difference > BOUND_NATS


def test_a_server_that_lists_no_likeliest_tokens_is_gone_on_with_uncompared(tmp_path: Path) -> None:
    outcome, samples, server = compared(tmp_path, lambda server: setattr(server, "most_listed", 5))
    assert outcome.n_continued == 2
    assert [(one.salvaged_at[0].compared, one.salvaged_at[0].difference) for one in samples] == [(0, None)] * 2
    assert [(None, one.text) for one in samples] == [undisturbed(server.model, one, tmp_path) for one in samples]


@pytest.mark.parametrize(("engine", "mode"), [("vllm", "exact"), ("vllm", "near"), ("sglang", "exact")])
def test_a_seam_is_compared_in_places_whose_prompts_are_bounded_together(engine: str, mode: str) -> None:
    logprobs = tuple(-n / 10 for n in range(16))
    for n in (16, 1_000, 4_000, 8_000, 60_000, 70_000):
        ids = list(range(100 + n))
        seam = Seam(tokens=n, text=n, reasoning=0, exact=mode == "exact")
        begun = Partial(request="", engine=engine, tokens=n, logprobs=logprobs)
        request = Continuation(begun=begun, path="", body=b"", seam=seam, prompt=ids, n_prompt=100)
        places = tokens_before_seam(request, Salvage(mode="near", engine=engine))
        n_asked = min(16, MAX_SENT // len(ids)) if (engine, mode) == ("vllm", "exact") else 0
        assert sum(place.n_before for place in places) <= MAX_SENT
        assert [place.token for place in places] == ids[len(ids) - n_asked :]
        assert [place.logprob for place in places] == list(logprobs[16 - n_asked :])


@given(
    logprob=st.floats(-30, 0),
    listed=st.dictionaries(st.integers(0, 50), st.floats(-30, 0), min_size=20, max_size=21),
    token=st.integers(0, 50),
)
def test_a_token_that_is_not_listed_is_as_far_off_at_least_as_those_that_are(
    logprob: float, listed: dict[int, float], token: int
) -> None:
    likeliest = {f"token_id:{n}": value for n, value in listed.items()}
    nats = difference(TokenBefore(n_before=1, token=token, logprob=logprob), likeliest)
    assert nats is not None
    if token in listed:
        assert nats == abs(listed[token] - logprob)
    else:  # whatever it is now, it is no likelier than the twentieth
        twentieth = sorted(listed.values())[-20]
        assert nats <= max(0.0, logprob - twentieth)
        assert nats >= logprob - twentieth


@pytest.mark.parametrize(
    "likeliest", [{}, {"token_id:1": -0.1}, {f"w{n}": -1.0 for n in range(20)}], ids=["none", "few", "no ids"]
)
def test_where_a_server_does_not_say_it_nothing_is_compared(likeliest: dict[str, float]) -> None:
    assert difference(TokenBefore(n_before=1, token=7, logprob=-1.0), likeliest) is None


def command(out: Path, data: Path, server: TokenServer, *more: str) -> list[str]:
    asked = ["--question-key", "problem", "--answer-key", "answer", "--id-key", "id", "--no-canary", "--no-progress"]
    asked += ["--no-fingerprint"]
    where = ["--base-url", server.base_url, "--model", "test-model", "--out", str(out), "--samples", "1"]
    return ["run", "--data", str(data), *asked, *where, "--system-prompt", "none", *more]


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM, then SIGKILL"])
def test_a_killed_process_loses_seconds_of_its_answers_and_the_next_one_goes_on(tmp_path: Path, how: str) -> None:
    """By the command itself: what the server is, is found out; ids are asked for without being told to."""
    question_set(tmp_path, 4)
    data = tmp_path / "sums.jsonl"
    model = Model(thinks=30, shortest=700, longest=900)
    with TokenServer(model, "vllm", pause=0.02) as server:
        with_logprobs = how == "SIGKILL"
        more = ["--extra-body", json.dumps(LOGPROBS)] if with_logprobs else []
        asked = command(tmp_path / "run", data, server, *more)
        with start(tmp_path, asked) as process:
            file = RunFolder(tmp_path / "run").inflight
            if how != "SIGKILL":
                assert server.wait_for(lambda: server.generated > 200)
                process.send_signal(signal.SIGTERM)
            assert server.wait_for(
                lambda: file.exists() and len(inflight.read(RunFolder(tmp_path / "run")).partials) == 4, 60
            )
            process.kill()
            process.wait()
        kept = sum(one.tokens for one in inflight.read(RunFolder(tmp_path / "run")).partials.values())
        assert kept >= 4 * 16
        server.pause = 0.0
        time.sleep(0.1)  # the streams of the dead process end
        server.generated = 0
        done = harness(tmp_path, *asked)
    assert done.code == 0, done.err
    samples = samples_of(run_settings(tmp_path / "run"))
    assert "continued 4 half-written answers" in done.out + done.err
    assert sum(one.salvaged_at[0].tokens for one in samples) == kept
    assert server.generated == sum(one.usage.completion_tokens or 0 for one in samples) - kept
    for one in samples:
        assert TAGS[THINK_END] not in (one.text or "") + (one.reasoning or "")
        text = one.text or ""
        assert text
        assert one.reasoning is not None
        assert len(ids_of(one.reasoning)) == 30
        (seam,) = one.salvaged_at
        assert (seam.compared, seam.difference) == ((KEPT_LOGPROBS, 0.0) if with_logprobs else (0, None))
