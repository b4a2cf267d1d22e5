"""Half-written answers are gone on with: the whole is what an undisturbed request gives, or it is asked anew."""

from __future__ import annotations

import hashlib
import json
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.interface import Deadlines
from harness.client.protocol.reply import Reply, SoFar
from harness.client.request_fields import RequestTemplate, Spelling
from harness.core.errors import Interrupted
from harness.core.records import Sample, Timing, Usage
from harness.generation.network import partial_replies
from harness.generation.network.continuation import (
    Continuation,
    Salvage,
    WrittenAnew,
    continuation,
    joined_reply,
    objection,
    written_so_far,
)
from harness.generation.network.partial_replies import DOWN, TRIES, Partial
from harness.generation.settings import RunSettings
from harness.runs.layout import RunFolder
from harness.testing import CLOSE, END, FAULTS, HEAD, FakeServer, Pause, Request, Step, chunk, event, http
from tests.budget import thinned
from tests.generation.small_runs import QUICK, changed, question_set, run, run_settings, samples_of
from tests.patience import PATIENCE_SECONDS
from tests.runs.recorded import question
from tests.system.command import harness, start

WORDS = [f" w{n}" for n in range(40)] + ["!", "é", " 😀", "\n\n"]
END_OF_PROMPT, THINK, THINK_END = 900, 901, 902
TAGS = {END_OF_PROMPT: "<assistant>", THINK: "<think>", THINK_END: "</think>"}


def ids_of(text: str) -> list[int]:
    """The tokens of a text: words and tags where they stand, else characters."""
    tokens = sorted([*enumerate(WORDS), *TAGS.items()], key=lambda pair: -len(pair[1]))
    ids = []
    while text:
        number, word = next(((n, w) for n, w in tokens if text.startswith(w)), (1000 + ord(text[0]), text[0]))
        ids.append(number)
        text = text[len(word) :]
    return ids


def text_of(token: int) -> str:
    return WORDS[token] if token < len(WORDS) else TAGS.get(token) or chr(token - 1000)


class Model:
    """thinks: tokens of reasoning before the answer; 0 = none."""

    def __init__(self, thinks: int = 0, shortest: int = 40, longest: int = 120) -> None:
        self.thinks, self.shortest, self.longest = thinks, shortest, longest

    def next(self, ids: list[int]) -> int | None:
        """The token after these; None at the end."""
        begin = ids.index(END_OF_PROMPT) + 1
        n = len(ids) - begin
        length = self.shortest + _number(ids[:begin], self.longest - self.shortest)
        if n >= length + self.thinks:
            return None
        return THINK_END if self.thinks and n == self.thinks else _number(ids, len(WORDS))

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """The rendered prompt. A model that thinks has its reasoning opened."""
        rendered = "".join(f"<{m['role']}>{m['content']}" for m in messages)
        return [*ids_of(rendered), END_OF_PROMPT]

    def answer(self, messages: list[dict[str, str]]) -> list[int]:
        """The ids of an undisturbed request."""
        return self.onward(self.prompt(messages), None)[0]

    def onward(self, ids: list[int], max_tokens: int | None) -> tuple[list[int], str]:
        """(ids, finish reason) of what follows."""
        ids, begin = list(ids), len(ids)
        while (token := self.next(ids)) is not None:
            if max_tokens is not None and len(ids) - begin >= max_tokens:
                return ids[begin:], "length"
            ids.append(token)
        return ids[begin:], "stop"

    def said(self, ids: list[int]) -> tuple[str | None, str]:
        """(reasoning, text) of an answer's ids."""
        text = "".join(map(text_of, ids))
        if not self.thinks:
            return None, text
        head, _, tail = text.partition(TAGS[THINK_END])
        return head, tail


class TokenServer(FakeServer):
    """engine: as which it lists its model; only vLLM states ids. cut_after: how many events of a stream come before it
    breaks by `cut`; a number for each request, by its place. pause: seconds between events. onward: what becomes of
    requests over token ids, in place of an answer; n_onward counts those. held_at: behind this many tokens a stream
    waits, and closes once it is None again. n_open: streams that have not ended.
    """

    onward: tuple[Step, ...] = ()
    cut: Step = CLOSE
    n_onward = n_open = 0
    held_at: int | None = None

    def __init__(
        self, model: Model, engine: str, *, pause: float = 0.0, cut_after: dict[int, int] | None = None
    ) -> None:
        super().__init__(self._answer)
        self.model, self.engine, self.pause, self.cut_after = model, engine, pause, dict(cut_after or {})
        self.generated = self.streams = 0

    def _answer(self, request: Request) -> Iterator[Step]:
        if request.path == "/v1/models":
            owner = self.engine.replace(".", "")
            yield http(200, {"data": [{"id": "test-model", "owned_by": owner, "max_model_len": 100_000}]})
        elif request.path == "/v1/chat/completions":
            yield from self._stream(request.json, self.model.prompt(request.json["messages"]), chat=True)
        elif request.path == "/v1/completions":
            self.n_onward += 1
            yield from self.onward or self._stream(request.json, request.json["prompt"], chat=False)
        elif request.path == "/tokenize":
            yield http(200, {"tokens": ids_of(request.json["prompt"])})
        else:
            yield http(404, {"error": {"message": "nothing here"}})

    def _stream(self, body: dict[str, Any], prompt: list[int], *, chat: bool) -> Iterator[Step]:
        self.n_open += 1
        try:
            yield from self._events(body, prompt, chat=chat)
        finally:
            self.n_open -= 1

    def _events(self, body: dict[str, Any], prompt: list[int], *, chat: bool) -> Iterator[Step]:
        self.streams += 1
        cut = self.cut_after.get(self.streams)
        ids, reason = self.model.onward(prompt, body.get("max_tokens"))
        stated = body.get("return_token_ids") and self.engine == "vllm"
        yield HEAD
        head: dict[str, Any] = {"id": f"c-{self.streams}", "model": "test-model"}
        choice: dict[str, Any] = {"index": 0, "finish_reason": None}
        if chat:
            first = {**head, "choices": [{**choice, "delta": {"role": "assistant", "content": ""}}]}
            yield chunk(event({**first, "prompt_token_ids": prompt} if stated else first))
        thinking = chat and self.model.thinks > 0
        for n, token in enumerate(ids):
            if n == self.held_at:
                while self.held_at is not None:
                    yield Pause(0.02)
                yield CLOSE
            if n == cut:
                yield self.cut
                return
            self.generated += 1
            word = text_of(token)
            if thinking and token == THINK_END:
                thinking, word = False, ""
            field = "reasoning" if thinking else "content"
            piece = {**choice, "delta": {field: word}} if chat else {**choice, "text": word}
            if stated:
                piece |= {"token_ids": [token]} | ({"prompt_token_ids": prompt} if not chat and n == 0 else {})
            yield chunk(event({**head, "choices": [piece]}))
            if self.pause:
                yield Pause(self.pause)
        last = {**choice, "finish_reason": reason, **({"delta": {}} if chat else {"text": ""})}
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(ids)}
        yield chunk(event({**head, "choices": [last], "usage": usage}))
        yield chunk(b"data: [DONE]\n\n")
        yield END


def _number(value: object, below: int) -> int:
    text = json.dumps(value).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") % below


ASKED = question(text="What is 1 + 1?")
MESSAGES = [{"role": "user", "content": "What is 1 + 1?"}]


def seen(model: Model, ids: list[int], *, raw: bool = False) -> SoFar:
    """What a server's stream has said of these tokens. raw: it is a completion, in which tags are text."""
    reasoning, text = (None, "".join(map(text_of, ids))) if raw else model.said(ids)
    return SoFar(
        text=text or None,
        reasoning=reasoning,
        ids=ids,
        prompt_ids=None if raw else model.prompt(MESSAGES),
        n_events=len([n for n in ids if raw or n != THINK_END]),
        server_model="test-model",
    )


def replied(text: str, finish: str, n_prompt: int, n_new: int) -> Reply:
    usage = Usage(prompt_tokens=n_prompt, completion_tokens=n_new)
    return Reply(text=text, reasoning=None, finish_reason=finish, usage=usage, timing=Timing(started=0.0, total=1.0))


def n_sent(request: Continuation) -> int:
    """Number of token ids in its prompt."""
    return len(json.loads(request.body)["prompt"])


def going_on(begun: Partial) -> Continuation:
    template = RequestTemplate(model="test-model", max_tokens=10_000)
    salvage = Salvage(mode="exact", engine="vllm")
    return continuation(begun, ASKED, template, salvage, ids_of, seed=7)


@pytest.mark.parametrize("thinks", [0, 30])
@given(cuts=st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_cut_anywhere_and_as_often_as_you_like_the_parts_are_the_whole(thinks: int, cuts: list[int]) -> None:
    model = Model(thinks)
    prompt = model.prompt(MESSAGES)
    ids = model.onward(prompt, None)[0]
    request: Continuation | None = None
    partial, sent = Partial(request=""), list(prompt)
    for cut in cuts:
        new = model.onward(sent, cut)[0]
        partial = written_so_far(request, "digest", "vllm", seen(model, new, raw=request is not None))
        try:
            request = going_on(partial)
        except WrittenAnew:
            return  # too short, or its tokens are not known: asked from the start
        sent = [*request.part.prompt_ids, *request.part.ids]
        assert sent == prompt + ids[: request.seam.tokens]
        assert (partial.reasoning or "") == "".join(map(text_of, ids))[: len(partial.reasoning or "")]
    assert request is not None
    rest, reason = model.onward(sent, None)
    reply = joined_reply(request, replied("".join(map(text_of, rest)), reason, len(sent), len(rest)))
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
    ids = model.answer(MESSAGES)
    begun = written_so_far(None, "", "vllm", seen(model, ids[:31]))
    request = going_on(begun)
    rest = "".join(map(text_of, ids[31:50]))
    reply = joined_reply(request, replied(rest, "length", n_sent(request), 19))
    assert (reply.reasoning, reply.text) == model.said(ids[:50])


def test_a_reasoning_whose_tag_is_no_token_of_the_model_is_asked_anew() -> None:
    def in_characters(text: str) -> list[int]:
        return [1000 + ord(c) for c in text]

    model = Model(thinks=30)
    begun = written_so_far(None, "", "vllm", seen(model, model.answer(MESSAGES)[:20]))
    salvage = Salvage(mode="exact", engine="vllm")
    with pytest.raises(WrittenAnew, match="is not a single token in this model's vocabulary"):
        continuation(begun, ASKED, RequestTemplate(model="m"), salvage, in_characters, seed=None)


def test_a_server_that_counts_other_tokens_answered_another_prompt() -> None:
    model = Model()
    ids = model.answer(MESSAGES)
    request = going_on(written_so_far(None, "", "vllm", seen(model, ids[:30])))
    with pytest.raises(WrittenAnew, match="the server counted 3"):
        joined_reply(request, replied("x", "stop", 3, 1))
    assert joined_reply(request, replied("x", "stop", n_sent(request), 1)).finish_reason == "stop"


def test_an_answer_that_ends_while_reasoning_is_retried_unless_truncated() -> None:
    model = Model(thinks=30)
    ids = model.answer(MESSAGES)
    request = going_on(written_so_far(None, "", "vllm", seen(model, ids[:20])))
    with pytest.raises(WrittenAnew, match="in the middle of its reasoning"):
        joined_reply(request, replied(" on and on", "stop", n_sent(request), 3))
    cut = joined_reply(request, replied(" on and on", "length", n_sent(request), 3))
    assert cut.text is None or cut.text == ""
    assert (cut.reasoning or "").endswith(" on and on")


@pytest.mark.parametrize(
    ("extra_body", "sampling", "exact"),
    [
        ({}, {"temperature": 0.6, "top_p": 0.95}, True),
        ({"top_k": 20, "min_p": 0.1}, {}, True),
        ({}, {"repetition_penalty": 1.1}, False),
        ({}, {"stop": ["\n\n"]}, False),
        ({}, {"presence_penalty": 0.5}, False),
        ({}, {"frequency_penalty": 0.5}, False),
        ({"grammar": "root ::= [0-9]"}, {}, False),
        ({"response_format": {"type": "json_object"}}, {}, False),
        ({"thinking_token_budget": 100}, {}, False),
        ({"logprobs": True}, {}, False),
    ],
)
def test_what_looks_at_the_words_before_is_not_gone_on_with(
    extra_body: dict[str, Any], sampling: dict[str, Any], exact: bool
) -> None:
    template = RequestTemplate(model="m", sampling=sampling, spelling=Spelling(extra_body=extra_body))
    assert (objection(template, "exact") == "") == exact
    assert objection(template, "off")
    assert objection(replace(template, spelling=Spelling(stream=False)), "exact")


# ---- whole runs over real sockets


def settings_for(out: Path, server: TokenServer, mode: str = "exact", **more: Any) -> RunSettings:
    salvage = Salvage(mode=mode, engine=server.engine)  # type: ignore[arg-type]
    spelling = Spelling(token_ids=salvage.states_ids("chat"))
    return run_settings(out, server.base_url, salvage=salvage, spelling=spelling, **more)


def whole_samples(model: Model, settings: RunSettings, folder: Path) -> list[Sample]:
    """What is stored; each says what a quiet server gives to its question."""
    questions = {question.question_id: question for question in question_set(folder, 20).questions}
    samples = samples_of(settings)
    for one in samples:
        messages = [{"role": m.role, "content": m.content} for m in questions[one.question_id].messages]
        assert (one.reasoning, one.text) == model.said(model.answer(messages))
    return samples


@pytest.mark.parametrize(("thinks", "end"), [(0, CLOSE), (25, END)])
def test_broken_streams_go_on_and_their_texts_are_those_of_a_quiet_server(
    tmp_path: Path, thinks: int, end: Step
) -> None:
    chosen = random.Random(thinks)
    model = Model(thinks)
    cuts = {n: chosen.randrange(18, 60) for n in range(1, 9)}
    with TokenServer(model, "vllm", cut_after=cuts) as server:
        server.cut = end
        settings = settings_for(tmp_path / "run", server, samples=1)
        outcome = run(settings, question_set(tmp_path, 4))
    assert outcome.complete
    samples = whole_samples(model, settings, tmp_path)
    assert sum(len(one.salvaged_at) for one in samples) > 0
    assert outcome.tally.continued == sum(bool(one.salvaged_at) for one in samples)
    for one in samples:
        assert one.usage.completion_tokens == len(ids_of((one.reasoning or "") + (one.text or ""))) + bool(thinks)
        assert all(seam.exact for seam in one.salvaged_at)
    # What had come was not asked again, but for what was on its way when a stream broke.
    needed = sum(one.usage.completion_tokens or 0 for one in samples)
    assert server.generated <= needed + 2 * len(cuts)
    assert not RunFolder(settings.out).inflight.exists()


@pytest.mark.parametrize(("engine", "mode"), [("vllm", "off"), ("sglang", "exact"), ("llama.cpp", "exact")])
def test_what_is_not_exact_is_asked_anew(tmp_path: Path, engine: str, mode: str) -> None:
    """Chats of SGLang and llama.cpp state no ids."""
    model = Model()
    with TokenServer(model, engine, cut_after={1: 30}) as server:
        settings = settings_for(tmp_path / "run", server, mode, samples=1, concurrency=1)
        outcome = run(settings, question_set(tmp_path, 1))
        paths = {request.path for request in server.requests}
    (sample,) = whole_samples(model, settings, tmp_path)
    assert outcome.tally.continued == len(sample.salvaged_at) == 0
    assert "/v1/completions" not in paths


HELD_AT = 60
"""Tokens of a half-written answer, at most."""


@contextmanager
def half_written(tmp_path: Path, model: Model, n: int = 2) -> Iterator[tuple[TokenServer, RunSettings]]:
    """A session that a second Ctrl-C ended with every answer half written."""

    def stop(progress: Any) -> None:
        if progress.arrived > n * HELD_AT - 20:  # so each has at least 40
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with TokenServer(model, "vllm") as server:
        settings = settings_for(tmp_path / "run", server, samples=1)
        server.held_at = HELD_AT
        with pytest.raises(Interrupted):
            run(settings, question_set(tmp_path, n), on_progress=stop, interval=0.02)
        server.held_at = None
        assert server.wait_for(lambda: not server.n_open)
        server.generated = 0
        yield server, settings


def test_a_later_session_goes_on_with_what_the_last_one_left(tmp_path: Path) -> None:
    model = Model(shortest=200, longest=400)
    with half_written(tmp_path, model) as (server, settings):
        partials = partial_replies.read_parts(RunFolder(settings.out)).partials
        assert len(partials) == 2
        outcome = run(settings, question_set(tmp_path, 2))
        samples = whole_samples(model, settings, tmp_path)
        assert outcome.tally.kept_tokens == sum(one.tokens for one in partials.values())
        assert server.generated == sum(one.usage.completion_tokens or 0 for one in samples) - outcome.tally.kept_tokens
        assert outcome.progress is not None
        assert outcome.progress.arrived == server.generated
    assert all(one.salvaged_at for one in samples)
    assert not RunFolder(settings.out).inflight.exists()


# ---- gateways that take whole requests and fail every continuation

SILENCE = Deadlines(first_token=2.0, idle=2.0)
"""Short, where a silent server must be given up; a busy machine may take so long for a right answer, too."""


@pytest.mark.parametrize("kind", thinned(FAULTS))
def test_a_run_whose_continuations_all_fail_is_asked_anew_to_its_end(tmp_path: Path, kind: str) -> None:
    """In a session that begins with half-written answers only, and needs no other."""
    n = 4 if kind == "silence" else 8  # Each silence takes its time.
    with half_written(tmp_path, Model(shortest=200, longest=400), n) as (server, settings):
        begun = partial_replies.read_parts(RunFolder(settings.out)).partials
        server.onward = FAULTS[kind]
        patient = replace(QUICK, start_up=PATIENCE_SECONDS, outage=PATIENCE_SECONDS)
        deadlines = SILENCE if kind == "silence" else settings.asker.deadlines
        outcome = run(
            changed(settings, deadlines=deadlines, patience=patient, concurrency=4), question_set(tmp_path, n)
        )
        samples = whole_samples(server.model, settings, tmp_path)
        assert outcome.complete, outcome.causes
        assert len(begun) >= n // 2
        assert not any(one.salvaged_at for one in samples)
        assert 0 < server.n_onward <= TRIES / DOWN * len(begun)


@pytest.mark.parametrize("changed", ["prompt", "sampling", "engine"])
def test_another_prompt_other_sampling_or_another_server_is_asked_anew(tmp_path: Path, changed: str) -> None:
    model = Model(shortest=200, longest=400)
    with half_written(tmp_path, model) as (server, settings):
        questions = question_set(tmp_path, 2)
        if changed == "prompt":
            questions = question_set(tmp_path, 2, system_prompt="Think twice.")
        elif changed == "sampling":
            sampling = settings.benchmarks["sums"].sampling.replace(temperature=0.7)
            settings = replace(settings, benchmarks={"sums": replace(settings.benchmarks["sums"], sampling=sampling)})
        else:
            settings = replace(settings, salvage=Salvage(mode="exact", engine="sglang"))
        outcome = run(settings, questions)
        assert outcome.tally.continued == 0
        assert not any(one.salvaged_at for one in samples_of(settings))
        assert {request.path for request in server.requests} == {"/v1/chat/completions"}
        log = RunFolder(settings.out).log.read_text()
        assert log.count('"written_anew"') == 2


def test_damage_costs_what_was_kept_and_never_makes_a_false_sample(tmp_path: Path) -> None:
    model = Model(shortest=200, longest=400)
    with half_written(tmp_path, model) as (_, settings):
        file = RunFolder(settings.out).inflight
        file.write_bytes(file.read_bytes().replace(b'"text"', b'"tEXT"'))
        outcome = run(settings, question_set(tmp_path, 2))
    whole_samples(model, settings, tmp_path)
    assert any("damaged" in warning for warning in outcome.warnings)


def test_a_killed_process_loses_nothing_written_and_the_next_resumes(tmp_path: Path) -> None:
    """By the command itself: what the server is, is found out; ids are asked for without being told to."""
    question_set(tmp_path, 4)
    model = Model(thinks=30, shortest=700, longest=900)
    with TokenServer(model, "vllm", pause=0.02) as server:
        asked = ["run", "--data", "sums.jsonl", "--id-key", "id", "--no-canary", "--out", "run"]
        asked += ["--base-url", server.base_url, "--model", "test-model", "--samples", "1", "--system-prompt", "none"]
        with start(tmp_path, asked) as process:
            file = RunFolder(tmp_path / "run").inflight
            assert server.wait_for(lambda: server.generated > 200)
            process.send_signal(signal.SIGTERM)
            assert server.wait_for(
                lambda: file.exists() and len(partial_replies.read_parts(RunFolder(tmp_path / "run")).partials) == 4, 60
            )
            process.kill()
            process.wait()
        kept = sum(one.tokens for one in partial_replies.read_parts(RunFolder(tmp_path / "run")).partials.values())
        assert kept >= 4 * 16
        server.pause = 0.0
        assert server.wait_for(lambda: not server.n_open), "the streams of the dead process end"
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
        assert [seam.exact for seam in one.salvaged_at] == [True]
