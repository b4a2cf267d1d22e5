"""What a real llama.cpp says of tokens, and that it goes on over those that it had written."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.facts.tokens import Tokenizer
from harness.client.interface import Arriving
from harness.client.protocol.reply import RequestFailed
from harness.client.transport import Transport as HttpTransport
from harness.core.errors import ServerError
from harness.generation.settings import RunSettings, Salvage
from server_launchers.keeping.supervisor import RunningServer
from tests.client.test_real_server import question
from tests.generation.small_runs import question_set, run, run_settings, samples_of

pytestmark = pytest.mark.server


def _itself(value: Any) -> Any:
    return value


@pytest.fixture
def tokenizer(embedded_server: RunningServer) -> Tokenizer:
    return Tokenizer(Endpoint.parse(embedded_server.base_urls[0]), "llama.cpp", embedded_server.model)


def short(settings: RunSettings, max_tokens: int) -> None:
    """Let the replies be of a few tokens, each of which is real work of the server."""
    sampling = settings.benchmarks["sums"].sampling.but(max_tokens=max_tokens, temperature=1.0)
    object.__setattr__(settings.benchmarks["sums"], "sampling", sampling)


def test_the_prompt_is_as_long_as_the_server_counts_it(
    tokenizer: Tokenizer, embedded_server: RunningServer, tmp_path: Path
) -> None:
    settings = run_settings(tmp_path / "run", embedded_server.base_urls[0], samples=1, model=embedded_server.model)
    short(settings, max_tokens=4)
    run(settings, questions := question_set(tmp_path, 1), transport_factory=HttpTransport)
    (sample,) = samples_of(settings)
    assert sample.usage.prompt_tokens == len(tokenizer.prompt_tokens(questions.questions[0], {}).ids)


def test_a_server_without_such_pages_is_a_typed_error(embedded_server: RunningServer) -> None:
    with pytest.raises(ServerError):
        Tokenizer(Endpoint.parse(embedded_server.base_urls[0]), "vllm", "m").prompt_tokens(question("Hi"), {})


def test_a_broken_answer_goes_on_over_its_own_tokens(embedded_server: RunningServer, tmp_path: Path) -> None:
    class Cutting(HttpTransport):
        async def complete(self, endpoint: Any, path: str, *given: Any) -> Any:
            body, deadlines, max_body_bytes, *rest = given
            arriving = (rest and rest[0]) or Arriving()
            reply = super().complete(endpoint, path, body, deadlines, max_body_bytes, arriving)
            request = asyncio.ensure_future(reply)
            while path == "/chat/completions" and not request.done():
                if arriving.count() >= 18:
                    arriving.so_far = partial(_itself, arriving.so_far())
                    request.cancel()
                    raise RequestFailed("cut", "cut by the test")
                await asyncio.sleep(0.01)
            return await request

    settings = run_settings(
        tmp_path / "run", embedded_server.base_urls[0], samples=3, model=embedded_server.model, concurrency=3,
        salvage=Salvage(mode="exact", engine="llama.cpp"), canary=False,
    )  # fmt: skip
    short(settings, max_tokens=64)
    outcome = run(settings, question_set(tmp_path, 2), transport_factory=Cutting)
    samples = samples_of(settings)
    assert outcome.complete
    continued = [one for one in samples if one.salvaged_at]
    assert outcome.n_continued == len(continued) > 0
    for one in continued:
        assert one.salvaged_at[0].exact
        assert one.salvaged_at[0].tokens >= 16
        assert (one.usage.completion_tokens or 0) <= 64
        assert one.usage.prompt_tokens is not None
    by_question = {(one.question_id, one.usage.prompt_tokens) for one in samples}
    assert len(by_question) == 2, "a continued sample counts other prompt tokens than a whole one"
