"""A run through mitmproxy, whose addon cuts, damages and delays the real server's streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server_launchers.keeping.supervisor import RunningServer
from tests.fault_tools.runs import QUESTIONS, SAMPLES, Texts, ask, failures, free_port, running, texts

pytestmark = pytest.mark.server

TRANSPORTS = ("http", "openai")
ADDON = Path(__file__).with_name("spoil.py")
STALLED = ("--first-token-timeout", "30")
"""Of a busy machine's sound replies the first token comes before that."""


@contextmanager
def spoiling(mitmdump: list[str], folder: Path, server: RunningServer, mode: str, every: int) -> Iterator[str]:
    """Base URL of mitmproxy before `server`; each fault leaves a line in `folder`/faults."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    options = {"spoil": mode, "every": str(every), "record": str(folder / "faults"), "confdir": str(folder / "mitm")}
    words = ["--mode", f"reverse:{server.base_urls[0]}", "--listen-host", "127.0.0.1", "--listen-port", str(port)]
    settings = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    argv = [*mitmdump, "--quiet", *words, "--scripts", str(ADDON), *settings]
    with running(argv, folder / "mitmproxy.log", f"{url}/health"):
        yield url


def injected(folder: Path) -> int:
    """How often the addon has spoilt an answer."""
    return len((folder / "faults").read_text().splitlines())


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("mode", "failure"),
    [
        ("killed", {"cut", "connect"}),
        ("ended", {"cut"}),
        ("leftover", {"cut"}),
        ("halved", {"malformed"}),
        ("page", {"malformed"}),
        ("stalled", {"timeout"}),
    ],
)
def test_a_spoilt_stream_is_asked_for_again_and_comes_out_as_in_a_quiet_run(
    tmp_path: Path,
    mitmdump: list[str],
    embedded_server: RunningServer,
    quiet: Texts,
    transport: str,
    mode: str,
    failure: set[str],
) -> None:
    with spoiling(mitmdump, tmp_path, embedded_server, mode, every=4) as url:
        done = ask(tmp_path, url, transport, *(STALLED if mode == "stalled" else ()))
    assert done.code == 0, done.err
    assert texts(tmp_path) == quiet
    assert injected(tmp_path) >= 2
    assert sum(failed["kind"] in failure for failed in failures(tmp_path)) >= injected(tmp_path)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", ["no_done", "crumbs", "slow"])
def test_an_odd_but_whole_stream_is_taken_as_it_is(
    tmp_path: Path, mitmdump: list[str], embedded_server: RunningServer, quiet: Texts, transport: str, mode: str
) -> None:
    with spoiling(mitmdump, tmp_path, embedded_server, mode, every=3 if mode == "slow" else 1) as url:
        done = ask(tmp_path, url, transport)
    assert done.code == 0, done.err
    assert texts(tmp_path) == quiet
    assert injected(tmp_path) >= QUESTIONS * SAMPLES // 3
    assert failures(tmp_path) == []
