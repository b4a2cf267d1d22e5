"""Every transport gets the same samples from a real server, asked one at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.facts.discovery import Pages, find_model, stated_concurrency
from harness.client.facts.tokens import Tokenizer
from harness.client.interface import Deadlines, Post
from harness.client.loop import new_event_loop
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.request_fields import RequestTemplate, Spelling
from harness.client.transport import Transport as HttpTransport
from harness.client.transport import open_transport
from harness.core.errors import ServerError
from harness.core.literals import TransportName
from harness.generation.settings import RunSettings
from server_launchers.lifecycle.launch import RunningServer
from tests.embedded import CONTEXT, SLOTS, THINKING_GRAMMAR
from tests.generation.small_runs import question_set, run, run_settings, samples_of
from tests.runs.recorded import question

pytestmark = pytest.mark.server

TRANSPORTS: tuple[TransportName, ...] = ("http", "openai")
DEADLINES = Deadlines(first_token=60, idle=60)


def ask(name: TransportName, server: RunningServer, template: RequestTemplate, text: str, seed: int) -> Reply:
    async def main() -> Reply:
        transport = open_transport(name)
        endpoint = Endpoint.parse(server.base_urls[0])
        try:
            body = template.body(question(text=text, prompt=text), seed)
            return await transport.complete(Post(endpoint, template.spelling.api, body, DEADLINES, 10**7))
        finally:
            await transport.close()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main())


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_seed_gives_one_sample_on_every_transport(embedded_server: RunningServer, api: str, stream: bool) -> None:
    template = RequestTemplate(
        model=embedded_server.model,
        sampling={"temperature": 0.8},
        max_tokens=12,
        spelling=Spelling(api_name=api, stream=stream),  # type: ignore[arg-type]
    )
    replies = [ask(name, embedded_server, template, "Name three colours:", 7) for name in TRANSPORTS]
    facts = {(r.text, r.reasoning, r.finish_reason, r.usage.completion_tokens, r.notes) for r in replies}
    assert len(facts) == 1
    assert replies[0].text
    assert replies[0].finish_reason == "length"
    assert replies[0].usage.completion_tokens == 12


def test_reasoning_and_answer_come_apart_by_every_transport(thinking_server: RunningServer) -> None:
    template = RequestTemplate(
        model=thinking_server.model,
        sampling={"temperature": 0.8},
        max_tokens=120,
        spelling=Spelling(extra_body={"grammar": THINKING_GRAMMAR}),
    )
    replies = [ask(name, thinking_server, template, "What is 17+25?", 3) for name in TRANSPORTS]
    assert len({(r.text, r.reasoning) for r in replies}) == 1
    assert replies[0].reasoning
    assert replies[0].text


def test_a_prompt_over_the_context_is_told_as_such(embedded_server: RunningServer) -> None:
    template = RequestTemplate(model=embedded_server.model, max_tokens=4)
    for name in TRANSPORTS:
        with pytest.raises(RequestFailed) as caught:
            ask(name, embedded_server, template, "word " * 6000, 1)
        assert caught.value.kind == "too_long"


def test_the_server_states_its_slots_and_the_context_of_one(embedded_server: RunningServer) -> None:
    endpoint = Endpoint.parse(embedded_server.base_urls[0])
    info = find_model(endpoint, embedded_server.model)
    assert info is not None
    assert stated_concurrency(endpoint, Pages()) == SLOTS
    assert info.context_tokens is not None
    assert info.context_tokens <= CONTEXT


@pytest.fixture
def tokenizer(embedded_server: RunningServer) -> Tokenizer:
    return Tokenizer(Endpoint.parse(embedded_server.base_urls[0]), "llama.cpp", embedded_server.model)


def short(settings: RunSettings, max_tokens: int) -> None:
    """Let the replies be of a few tokens, each of which is real work of the server."""
    sampling = settings.benchmarks["sums"].sampling.replace(max_tokens=max_tokens, temperature=1.0)
    object.__setattr__(settings.benchmarks["sums"], "sampling", sampling)


def test_a_prompt_has_the_servers_length(tokenizer: Tokenizer, embedded_server: RunningServer, tmp_path: Path) -> None:
    settings = run_settings(tmp_path / "run", embedded_server.base_urls[0], samples=1, model=embedded_server.model)
    short(settings, max_tokens=4)
    run(settings, questions := question_set(tmp_path, 1), transport_factory=HttpTransport)
    (sample,) = samples_of(settings)
    assert sample.usage.prompt_tokens == len(tokenizer.render(questions.questions[0].messages, {})[1])


def test_a_server_without_such_pages_is_a_typed_error(embedded_server: RunningServer) -> None:
    with pytest.raises(ServerError):
        Tokenizer(Endpoint.parse(embedded_server.base_urls[0]), "vllm", "m").render(question(text="Hi").messages, {})
