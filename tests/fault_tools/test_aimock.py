"""A run through aimock, which answers some requests with faults and hands the others to the real server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from server_launchers.keeping.supervisor import RunningServer
from tests.embedded import MODEL
from tests.fault_tools.runs import HEALTH_SECONDS, Texts, ask, failures, free_port, running, texts

pytestmark = pytest.mark.server

TRANSPORTS = ("http", "openai")
RATE = 0.3
# It lists the models of its fixtures, and invented ones when there is none.
NEVER_ASKED = {"match": {"model": MODEL, "userMessage": "never asked"}, "response": {"content": "never given"}}


@contextmanager
def chaos(llmock: list[str], folder: Path, server: RunningServer, *kinds: str) -> Iterator[str]:
    """Base URL of aimock before `server`, with these kinds of faults at the same rate each."""
    fixtures = folder / "fixtures"
    fixtures.mkdir()
    (fixtures / "model.json").write_text(json.dumps({"fixtures": [NEVER_ASKED]}))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = ["--port", str(port), "--fixtures", str(fixtures), "--proxy-only", "--provider-openai", server.base_urls[0]]
    rates = [word for kind in kinds for word in (f"--chaos-{kind}", str(RATE))]
    with running([*llmock, *words, *rates], folder / "aimock.log", f"{url}/health"):
        yield url


def injected(url: str) -> Counter[str]:
    """The faults that aimock's own journal has."""
    journal = httpx.get(f"{url}/__aimock/journal", trust_env=False, timeout=HEALTH_SECONDS).json()
    entries = journal if isinstance(journal, list) else journal["entries"]
    return Counter(entry["response"].get("chaosAction") for entry in entries if entry["response"].get("chaosAction"))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("kind", "action", "failure"), [("drop", "drop", "server"), ("ratelimit", "rateLimit", "rate_limited")]
)
def test_a_run_through_one_kind_of_fault_has_the_samples_of_a_quiet_one(
    tmp_path: Path,
    llmock: list[str],
    embedded_server: RunningServer,
    quiet: Texts,
    transport: str,
    kind: str,
    action: str,
    failure: str,
) -> None:
    with chaos(llmock, tmp_path, embedded_server, kind) as url:
        done = ask(tmp_path, url, transport)
        faults = injected(url)
    assert done.code == 0, done.err
    assert texts(tmp_path) == quiet
    assert faults[action] >= 2
    assert sum(failed["kind"] == failure for failed in failures(tmp_path)) >= faults[action]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_connections_that_end_without_a_reply_lose_nothing(
    tmp_path: Path, llmock: list[str], embedded_server: RunningServer, quiet: Texts, transport: str
) -> None:
    with chaos(llmock, tmp_path, embedded_server, "disconnect") as url:
        done = ask(tmp_path, url, transport)
        faults = injected(url)
    assert done.code == 0, done.err
    assert texts(tmp_path) == quiet
    # Where the connection was a kept one, the request went out again at once and is no failure.
    assert faults["disconnect"] >= 2


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_malformed_replies_are_asked_for_again(
    tmp_path: Path, llmock: list[str], embedded_server: RunningServer, quiet: Texts, transport: str
) -> None:
    with chaos(llmock, tmp_path, embedded_server, "malformed") as url:
        # aimock lets streams pass: only whole replies are malformed.
        done = ask(tmp_path, url, transport, "--no-stream")
        faults = injected(url)
    assert done.code == 0, done.err
    assert texts(tmp_path) == quiet
    assert faults["malformed"] >= 2
    assert sum(failed["kind"] == "malformed" for failed in failures(tmp_path)) >= faults["malformed"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_storm_of_all_faults_over_requests_in_flight_loses_and_doubles_nothing(
    tmp_path: Path, llmock: list[str], embedded_server: RunningServer, transport: str
) -> None:
    with chaos(llmock, tmp_path, embedded_server, "drop", "ratelimit", "disconnect") as url:
        done = ask(tmp_path, url, transport, "--concurrency", "4")
        faults = injected(url)
    assert done.code == 0, done.err
    assert len(texts(tmp_path)) > 0
    assert len(faults) >= 2
