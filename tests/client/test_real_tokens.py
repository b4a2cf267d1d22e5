"""What a real llama.cpp says of tokens, and that it goes on over those that it had written."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.facts.tokens import Tokenizer
from harness.client.transport import Transport as HttpTransport
from harness.core.errors import ServerError
from harness.generation.settings import RunSettings
from server_launchers.keeping.launch import RunningServer
from tests.client.test_real_server import question
from tests.generation.small_runs import question_set, run, run_settings, samples_of

pytestmark = pytest.mark.server


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
    assert sample.usage.prompt_tokens == len(tokenizer.render(questions.questions[0].messages, {})[1])


def test_a_server_without_such_pages_is_a_typed_error(embedded_server: RunningServer) -> None:
    with pytest.raises(ServerError):
        Tokenizer(Endpoint.parse(embedded_server.base_urls[0]), "vllm", "m").render(question("Hi").messages, {})
